"""The fields of the classes that `reservoir.save` writes: what each of them may hold.

`load` compares a file with this table before it makes an object, and `save` does so before it
writes one. A class has the fields of all classes that it is derived from, and of the groups of
parameters that it takes some from. One that has no line of
its own (a user's) may have others as well; no other field is taken from a file. A field without
which a class can be made (it has a default) may be missing.

====================================  ============================================================
``name: kind``                        several names, with commas, are of one kind each
``name?: kind``                       the field may be missing
``name?other: kind``                  it is missing exactly where another one is
``a.b: kind``                         an attribute of a field, which has a line of its own
``bool, int, str, None, 'text'``      plain values; also ``natural``, ``natural(most)``, ``count``
                                      (1 or more), ``positive``, ``fraction`` (in (0, 1]),
                                      ``number`` (finite), ``float`` (infinite or NaN, too)
``float64(n, 2)``                     an array of this dtype and shape, all of it finite; also
                                      ``int64``, ``bool_``, ``real`` (float32 or float64),
                                      ``indices``, ``numeric`` (of any size), ``labels``
``float64(n, 2, any)``                the same with NaN and infinity
``of(dtype, n, 2)``                   an array of a dtype that is an attribute of a field;
                                      ``scalar(dtype)``: a number of it
``csr(n, m)``                         a sparse array
``list[kind]``, ``tuple[a, b]``,      containers; ``tuple[kind, ...]`` has any length
``set[kind]``, ``dict[a, b]``
``Network``                           an object of that class, or of one derived from it
``Network(n_outputs=n)``              the same, with attributes that are equal to others, or arrays
``same(a.b)``, ``equal(a.b)``         the object, or the value, that stands elsewhere
``weights(network)``                  a trained network's arrays by name; ``flat``: in one
``a | b``, ``a if c else b``          one or the other
====================================  ============================================================

A size is a number, a field, an expression of fields, ``_`` (any), ``least(n)`` (n or more),
``most(n)`` (n or fewer), or a name that stands for the same number wherever it returns within the
object; ``...`` is any shape.
"""

#: Short names of kinds that several classes share.
KINDS = {
    "numbers": "float | numeric(...) | list[float] | tuple[float, ...]",
    "weights_given": "str | numeric(...) | csr(_, _) | list[any]",
    "column": "None | int | str",
    "seed": "None | whole | generator",
    "switch": "bool | int",
    # columns of X but for that of the ids
    "n_read": "equal(n_features_in_ if _sequence_column == None else n_features_in_ - 1)",
    "n_of_reader": "equal(n_features_in_ - 1 + int(_reader.sequence_column == None))",
    "record": "None | Activity | Growth",
    "record_of_units": "None | Growth | Activity(low=int64(reservoir_.n_units),"
    " inputs=float | float64(reservoir_.n_features, any),"
    " received=float | float64(reservoir_.n_outputs, any))",
    # of an echo state network: units, then the outputs that are fed back; in earlier files with
    # times of the units' dtype
    "state": "of(source.state_dtype, source.state_size + source.n_fed_back)"
    " | of(source.dtype, source.state_size + source.n_fed_back)",
}

#: Name of a class -> its fields.
FIELDS = {
    # ------------------------------------------------------------ parameters of estimators
    "ReservoirParameters": """
        n_units: int; topology, input_weights: weights_given; in_degree, bias_scaling: number
        weights: str; spectral_radius: None | number; leak_rate, input_scaling: numbers
        activation: str | Activation; bias: str | numbers
    """,
    "SequenceParameters": """
        initial_state: str | numbers; sequence_column: column; dtype: str | dtype
    """,
    "TimeParameters": "time_column: column; time_step: str | number",
    "DrawnParameters": "random_state: seed",
    "InputParameters": "include_input: bool",
    "LearnerParameters": "verbose: switch",
    "TargetParameters": "missing_targets: str",
    "LabelParameters": "class_weight: None | str | dict[any, number]",
    "DrivenParameters": """
        augment: None | str; feedback: bool; feedback_scaling: numbers; noise: number
    """,
    "ReadoutParameters": """
        alpha: 'auto' | numbers; solver, alpha_selection: str
        alpha_per_target, fit_intercept: bool; forgetting: number; readout: readout
        washout: str | int; n_jobs: None | int
    """,
    "FeatureParameters": """
        scaling: None | str; differences: bool | tuple[int, ...] | list[int]
        pool: str | tuple[str, ...] | list[str]; n_quantiles: int
        bidirectional, add_indicator: bool; missing_values: str; sequence_column: column
        time_column: column; time_step: str | number; dtype: str | dtype; n_jobs: None | int
        random_state: seed; verbose?: switch
    """,
    "ReadoutOfSequences": "alpha: numbers; relevance_weights: bool; readout: readout",
    "ForecasterParameters": """
        search: str | list[any] | tuple[any, ...]; season: None | numbers; panel: None | str
        sequence_column: column; n_networks: int; clip: None | str | bool | number
        horizon: str | int; missing_values: str; n_jobs: None | int; verbose: switch
        random_state: seed
    """,
    "NetworkParameters": """
        n_units, max_iter, n_iter_no_change, online_window: int; cell: str | Cell | Recipe
        activation, loss, learning_rate, target, missing_targets, online: str; leak_rate: numbers
        n_symbols: None | int; init: str | BaseEstimator; solver: str | HessianFree
        learning_rate_init, alpha, l1, validation_fraction, tol: number; batch_size: str | int
        truncation: None | str | int; clip_norm: None | number; gradient_control: number | Control
        early_stopping, warm_start: bool; washout: str | int
    """,
    # ------------------------------------------------------------ fitted estimators
    "BaseEstimator": """
        n_features_in_: natural; feature_names_in_?: labels(n_features_in_)
        _sklearn_output_config?: dict[str, any]
    """,
    "SourceEstimator": """
        _reader: DataReader; _reader.targets: TargetCoding(per_sequence=False)
        _model: ReadoutModel(n_outputs=n_outputs_); _model.source.n_features: n_of_reader
        n_outputs_: count; state_: equal(_model.state); washout_: int64(_)
        time_step_?: equal(None if _reader.clock == None else _reader.clock.step)
        certificate_?: same(_model.certificate); alpha_?intercept_: number | float64(n_outputs_)
        coef_?intercept_: of(_reader.dtype, _model.source.width)
            if _reader.targets.one_dimensional
            else of(_reader.dtype, n_outputs_, _model.source.width)
        intercept_?: scalar(_reader.dtype) if _reader.targets.one_dimensional
            else of(_reader.dtype, n_outputs_)
        training_error_?: float64(n_outputs_); alphas_?: float64(n_alphas)
        alpha_scores_?: float64(n_alphas, n_outputs_, any) | float64(n_alphas, 1, any)
        alpha_selection_?: str; temperature_?: positive; readout_?: BaseEstimator
    """,
    "ESNRegressor": """
        n_lags, skip: int; _reader.targets: Numbers | TargetCoding
        reservoir_: same(_model.source.reservoir); _model.activity: record_of_units
    """,
    "ESNClassifier": """
        reservoir_: same(_model.source.reservoir); _model.activity: record_of_units
        _reader.targets: Labels; classes_: equal(_reader.targets.classes)
        n_outputs_: equal(1 if _reader.targets.single and len(classes_) == 2 else len(classes_))
    """,
    "NVARRegressor": """
        n_lags, skip, degree: int; basis: str; increments: bool
        _model.source: LaggedPolynomials; input_range_?: float64(2, n_features_in_)
    """,
    "ReservoirTransformer": """
        _reader: DataReader; _source: FeatureSource; reservoir_: same(_source.reservoir)
        _source.n_features: n_of_reader; state_: of(_source.state_dtype, _source.state_size)
            | of(_source.dtype, _source.state_size); _n_trained: natural; _progress: Progress
        certificate_?: Certificate; certificate_.reservoir: None | same(reservoir_)
        _n_features_out: equal(reservoir_.n_units)
        time_step_?: equal(None if _reader.clock == None else _reader.clock.step)
    """,
    "BaseRNN": """
        _targets: TargetCoding; _target_names: None | list[any]
        _sequence_column: column; n_outputs_: count; washout_: int64(_)
        _time_column: column; _clock: None if _time_column == None else Clock
        time_step_?: equal(None if _clock == None else _clock.step)
        _control: None | Control; _engine: 'numpy' | 'numba'; _drawn_at_random?: bool
        init_: None | str; network_: Network(n_outputs=n_outputs_); network_.n_columns: n_read
        _progress.pairing.inputs: float64(_, network_.n_columns) | float64(0, 0)
        params_: weights(network_); loss_curve_: list[float]; validation_loss_curve_?: list[float]
        best_loss_?: float; best_epoch_?, n_iter_: natural; _progress: Progress
        state_: of(params_['coef'].dtype, network_.cell.state_size) if _clock == None
            else real(network_.cell.state_size)
        _online: None | OnlineLearner(network=network_)
        _recent: None | tuple[real(n, network_.n_columns), real(n, n_outputs_, any),
            real(network_.cell.state_size), natural]
    """,
    "RNNRegressor": "output, loss: str; refit_readout: bool",
    "RNNClassifier": "_targets: Labels; classes_: equal(_targets.classes)",
    "SequenceReadout": """
        _sequence_column, _time_column: column; _targets: TargetCoding; _per_row: bool
        features_: ReservoirFeatures(n_features_in_=n_features_in_); intercept_?: any
        input_scaling_: numbers; input_scaling_scores_?: numeric(...); readout_?: BaseEstimator
        _mean?, _scale?: float64(_); n_outputs_?: count; coef_?intercept_: real(...)
        alpha_?intercept_: number | float64(_); alpha_scores_?intercept_: float64(_, _, any)
    """,
    "ESNSequenceClassifier": """
        classes_: equal(_targets.classes); temperature_?: positive
        coef_?: float64(1 if len(classes_) == 2 else len(classes_), sum(features_._widths))
        intercept_?: float64(1 if len(classes_) == 2 else len(classes_))
    """,
    "ESNSequenceRegressor": """
        coef_?: float64(sum(features_._widths)) if _targets.one_dimensional
            else float64(n_outputs_, sum(features_._widths))
        intercept_?: number if _targets.one_dimensional else float64(n_outputs_)
    """,
    "ReservoirFeatures": """
        time_step_: None | positive; _container: str; n_channels_: count
        lags_: tuple[count, ...]; _inputs: SequenceInputs(lags=lags_)
        mean_: equal(_inputs.mean); scale_: equal(_inputs.scale); _inputs.mean: float64(n_channels_)
        reservoir_: Reservoir; _inputs.n_inputs: equal(reservoir_.n_features); _n_trained: natural
        _poolings: list[Pooling(thresholds=None | of(reservoir_.dtype, _, reservoir_.n_units))]
        thresholds_: None | of(reservoir_.dtype, n_quantiles, reservoir_.n_units)
            | of(reservoir_.dtype, len(_poolings), n_quantiles, reservoir_.n_units)
    """,
    "LiquidStateMachine": """
        n_units: int; inhibitory, connection_length, recurrent_scaling, input_scaling: number
        input_density: number; membrane_time, synapse_time, filter_time: positive
        refractory_time: tuple[int, int] | list[int]; pool: str | tuple[str, ...] | list[str]
        sequence_column: column; dtype: str | dtype; random_state: seed
        _sequence_column?: column; _container: str; n_channels_: count
        network_: SpikingNetwork; network_.W_in: csr(_, n_channels_); _pooling: Pooling
    """,
    "ESNForecaster": """
        _panel: Panel; _known: KnownInputs; kind_: 'series' | 'dynamics'
        seasons_: tuple[positive, ...]; _fits: list[StatisticalFit] | list[DynamicalFit]
        search_results_, best_params_: any; best_score_: float; _seed?: natural
    """,
    "RowRegressor": """
        n_features_in_?: count; fit_intercept: bool
        coef_?: float64(n_features_in_) | float64(n, n_features_in_)
        intercept_?coef_: number | float64(n)
    """,
    "LMS": """
        learning_rate, epsilon: number
        _coef?: float64(n_coef, n_features_in_); _constant?_coef: float64(n_coef)
    """,
    "RecursiveLeastSquares": """
        forgetting, alpha: number; _factor?: PenalisedFactor(n_features=n_features_in_)
    """,
    "SlidingWindow": "n_rows: int; alpha: number; _window?: WindowFactor",
    # ------------------------------------------------------------ where estimators stand
    "DataReader": """
        dtype: 'float64' | 'float32'; sequence_column, time_column: column
        clock: None if time_column == None else Clock; targets: None | TargetCoding
        target_names: None | list[any]
    """,
    "ReadoutModel": """
        source: FeatureSource; n_outputs: count; increments: bool; certificate: None | Certificate
        certificate.reservoir: None | same(source.reservoir); state: state; activity: record
        readout: Readout(width=source.width, n_outputs=n_outputs); progress: Progress
        noise_seed: None | natural; n_noisy, n_trained: natural; noise_generator: None | generator
        progress.last_output: float64(n_outputs, any)
        progress.target_range: float64(2, n_outputs, any)
        progress.pairing.inputs: float64(_, source.n_features) | float64(0, 0)
    """,
    "Progress": """
        washout, n_steps: natural; continues, last_is_target: bool
        last_output: float64(n, any); target_range: float64(2, n, any); pairing: Pairing
        ids: set[label]; last_id: label; ended: tuple[None | Ending, None | Ending]
    """,
    "Pairing": """
        n_outputs: natural; coded, feedback: bool; problem: None | str
        targets: float64(n_pairs, n_outputs); inputs: float64(n_pairs, _)
    """,
    "Ending": """
        kind, shown, unit, zone: str; last: number; following, widest: None | number; plain: bool
        recent: tuple[number, ...]; frequency: None | str; ids, names: tuple[label, ...]
    """,
    "Clock": "place: int; origin: number; step: positive",
    "Activity": """
        low?: int64(n_units); high?low: int64(n_units); n_rows?low, n_looked?low: natural
        inputs?low, received?low: float | float64(_, any)
        total?: float64(n_units, any); n_steps?total: natural
    """,
    "Growth": "n_rows: natural; first_size, first_drive, size, drive: float",
    "TargetCoding": "per_sequence: bool; one_dimensional?: bool",
    "Numbers": "one_dimensional: bool",
    "Labels": "low: number; single: bool; classes: labels(n_classes)",
    "Stream": """
        _estimator: BaseEstimator; _initial_state: str | numbers; callback: None
        state: None | of(_estimator.state_.dtype, len(_estimator.state_))
            | of(_estimator.dtype, len(_estimator.state_))
        n_learned_: natural; last_errors_: float64(_) | float64(_, _estimator.n_outputs_)
        _score: RunningScore; _own: None | BaseEstimator; _learner: None | SessionLearner
        _n_run, _first, _learned_to, _steps_before: natural; _anew: bool; _id: label
        _ended, _ended_before: tuple[None | Ending, None | Ending]; _waiting: WaitingRows
        _waiting.end: None | equal(_n_run)
        _waiting.chunks: deque[Chunk( rows=real(_, _estimator.n_features_in_
            if _estimator._sequence_column == None
            else _estimator.n_features_in_ - 1), state=of(_estimator.state_.dtype,
            len(_estimator.state_)), outputs=real(_, _estimator.n_outputs_))]
    """,
    "Chunk": """
        first: natural; rows: real(n_rows, _); state: real(_)
        outputs: real(n_rows, ...) | real(n_rows)
    """,
    "WaitingRows": "most: count; chunks: list[Chunk]",
    "RunningScore": "forgetting: fraction; n_rows: natural; total: number",
    "RunningR2": "spread, squares, mean: number | float64(n)",
    "RunningAccuracy": "right: number",
    "FeatureLearner": "readout: RowLearner; noise: None | generator; new: bool; activity: record",
    "NetworkLearner": "online: OnlineLearner",
    # ------------------------------------------------------------ sources of features
    "Reservoir": """
        W: real(n_units, n_units) | csr(n_units, n_units)
        W_in: of(W.dtype, n_units, _) | csr(n_units, _); W_in.dtype: equal(W.dtype)
        bias: of(W.dtype, n_units); leak_rate: fraction | of(W.dtype, n_units)
        activation: str | Activation; W_fb: None | of(W.dtype, n_units, _)
    """,
    "DrivenReservoir": """
        reservoir: Reservoir; include_input: bool; augment: None | 'square' | 'even_square'
        n_augmented: None
    """,
    "TimedReservoir": "driven: DrivenReservoir; clock: Clock",
    "LaggedSource": "source: FeatureSource; n_lags, skip: count",
    "PastInputs": "source: DrivenReservoir(include_input=True); n_lags, skip: count",
    "LaggedPolynomials": """
        n_features, n_lags, skip, degree: count; basis: 'monomial' | 'chebyshev'
        centre, width_of_input: real(n_features)
    """,
    "LagSource": "n_lags, n_outputs: count; n_known: natural",
    "RadialUnits": "centres: real(_, n_features); scaling: real(n_features)",
    "SpikingNetwork": """
        W: csr(n_units, n_units); W_in: csr(n_units, _); W.data, W_in.data: float64(_)
        refractory: int64(n_units); membrane_time, synapse_time: positive; background, reset: number
    """,
    "Pooling": "names: tuple[str, ...]; thresholds: None | real(_, _)",
    "SequenceInputs": """
        mean, scale, fill: float64(n_channels); lags: tuple[count, ...]
        lag_scale: float64(len(lags), n_channels); missing: str; indicator: bool
    """,
    # ------------------------------------------------------------ readouts
    "Readout": "settings: ReadoutSettings; width, n_outputs: natural",
    "ReadoutSettings": """
        estimator: readout; solver, selection: str; alpha: 'auto' | numbers
        alpha_per_target, fit_intercept, skip_missing, one_dimensional, partial: bool; rule?: None
        forgetting: fraction; dtype: str | dtype; decode: None; classes: None | labels(_)
    """,
    "RidgeReadout": """
        solver: None | 'cholesky' | 'qr'; kept: None | RowSample; runs?: None | Runs
        neighbours?: None | NeighbourSums
        neighbours.differences: RowSums(n_features=width, n_outputs=n_outputs)
        parts: dict[natural, RowSums(n_features=width, n_outputs=n_outputs)]
        kept._parts: list[tuple[int64(n), real(n, width), float64(n, n_outputs), float64(n)]]
    """,
    "NeighbourSums": """
        differences: RowSums; starts: int64(_); log_dets: float64(7); ends: dict[natural,
            RunEnd(h=float64(differences.n_features), y=float64(differences.n_outputs))]
    """,
    "RunEnd": "number: natural; weight: positive; age: float; h, y: float64(_); pivots: float64(7)",
    "Runs": "n_rows, filled, within: natural; half: natural(1); least: count",
    "LoopTrainedReadout": "",
    "StoredReadout": """
        rows: list[tuple[real(n, width), real(n, _, any), None | float64(n)]]
        learned: None | BaseEstimator; asked: dict[str, any]
    """,
    "RowSums": """
        n_features, n_outputs: count; forgetting, ageing: fraction; n_samples: natural
        weight: number; _ages: None | tuple[number, number]
    """,
    "GramAccumulator": """
        mean_h: float64(n_features); mean_y, sum_y2: float64(n_outputs)
        _upper: float64(n_features, n_features); cross: float64(n_features, n_outputs)
    """,
    "QRAccumulator": """
        n_blocks: number; R: float64(most(1 + n_features + n_outputs), 1 + n_features + n_outputs)
    """,
    "RowSample": """
        forgetting, ageing: fraction; level: natural(64)
        _parts: list[tuple[int64(n), real(n, width), float64(n, k), float64(n)]]
    """,
    "RidgeRows": """
        kept: RidgeReadout; factors: list[PenalisedFactor]; n_waiting: natural
        which: indices(kept.n_outputs)
        waiting: list[tuple[real(n, kept.width), real(n, kept.n_outputs), None | float64(n)]]
    """,
    "StoredRows": """
        kept: StoredReadout; estimator: BaseEstimator; classes: None | labels(_)
        takes_weights: bool
    """,
    "PenalisedFactor": """
        n_features, n_outputs: count; alpha, _scale: positive; _forgetting: fraction
        fit_intercept: bool; n_samples: natural; _factor: float64(width, width)
        _shift: float64(width - fit_intercept); _shift.size: equal(n_features + n_outputs)
        _penalty: float64(n_features); _turn: number; _fill: natural(len(_waiting))
        _waiting, _whitened: float64(most, width, any); _products: float64(most, most)
        _solved: None | tuple[float64(n_outputs, n_features), float64(n_outputs)]
    """,
    "WindowFactor": """
        n_rows, n_outputs: count; alpha: positive; fit_intercept, _stale, _solved: bool
        _first: equal(int(fit_intercept)); _next: natural(n_rows - 1); _count: natural(n_rows)
        _fill: natural(len(_signs)); n_remade: natural; _doubt: float; _R: float64(p, p)
        _C: float64(p, n_outputs); _raw: float64(n_rows, p - _first + n_outputs, any)
        _roots: float64(n_rows, any); _rows: float64(n_rows, p + n_outputs, any)
        _shift: float64(p - _first + n_outputs); _whitened: float64(most, p, any)
        _signs: float64(most, any); _products: float64(most, most, any)
    """,
    # ------------------------------------------------------------ trained networks
    "Network": """
        cell: Cell; n_features, n_outputs: count; output: output; loss: loss
        include_input, coded: bool
    """,
    "Cell": "n_units?: count",
    "SimpleCell": "activation: str; leak_rate: fraction | tuple[fraction, ...]",
    "TimedLeakyCell": "activation: str; leak_rate: fraction | tuple[fraction, ...]; place: natural",
    "GRUCell": "",
    "LSTMCell": "peephole: bool",
    "SCRNCell": """
        n_context: None | count; activation: str; decay: fraction | tuple[fraction, ...]
        learn_decay: bool
    """,
    "FeedforwardCell": "activation: str",
    "DeepTransitionCell": "hidden: tuple[count, ...]; activation: str; shortcut: bool",
    "GatedFeedbackCell": "n_layers: count; kind: str",
    "StackedCell": """
        cells: tuple[Cell, ...]; input_shortcuts, readout_shortcuts, same_mask: bool
        dropout: number
    """,
    "BidirectionalCell": "cells: tuple[Cell, ...]",
    "Recipe": "kind: str; parts: tuple[any, ...]; options: tuple[tuple[str, any], ...]",
    "Objective": """
        network: Network; l1, l2: number; clip_norm: None | positive; control: None | Control
    """,
    "GradientControl": "weight, low, high, target: number; kind: str; n_samples: None | count",
    "Omega": "weight: number; exact: bool",
    "SimplexDirection": "threshold: number",
    "HessianFree": """
        structural_damping, damping: number; gradient_size, curvature_size: None | count
        max_cg: count
    """,
    "OnlineLearner": """
        network: Network; method: str; running: bool; params: weights(network)
        learner: Learner; state?: real(network.cell.state_size)
    """,
    "Learner": """
        descent: Descent; network: same(descent.objective.network); rows_at_once: count
        window_length: count; seed: int; past?: Window
    """,
    "TruncatedBPTT": "",
    "RealTimeRecurrentLearning": """
        derivatives?: real(n, n, network.n_features + network.cell.state_size + 1)
    """,
    "WindowedLeastSquares": """
        follows: bool; errors: PairedErrors; held: None | weights(network)
        trial?: weights(network); held_state?, trial_state?: real(network.cell.state_size)
    """,
    "PairedErrors": "memory: count; n, total, squares: number",
    "Descent": """
        objective: Objective; solver: str; learning_rate: number
        slots: tuple[natural, tuple[number | flat(objective.network), ...]]
    """,
    "Window": """
        network: Network; start: real(network.cell.state_size); n_skipped: natural
        inputs: real(n_rows, network.n_columns); targets: real(n_rows, network.n_outputs, any)
    """,
    # ------------------------------------------------------------ proofs
    "Certificate": """
        holds, shared: bool; rate: float; method, theorem: str; box: float64(2, n_units, any)
        gains: float64(n_units, any); weights: None | float64(n_units) | float64(n_units, n_units)
        drive_min, drive_max: float64(n_units, any)
        input_range: None | float64(2, _, any) if reservoir == None
            else None | float64(2, reservoir.n_features, any)
        output_range: None | float64(2, _, any); resolution: None | float
        reservoir: None | Reservoir(n_units=len(gains)); step_range: None | float64(2)
    """,
    # ------------------------------------------------------------ forecasters of series
    "Panel": """
        kind: str; ids, levels: tuple[label, ...]; containers: tuple[SeriesContainer, ...]
        calendars: tuple[Calendar, ...]; whole: SeriesContainer; id_name: label; id_place: int
    """,
    "Calendar": """
        kind, dtype: str; n_rows: natural; first, last: number; step: str | number; plain: bool
        zone: None | str; name: label
    """,
    "SeriesContainer": """
        kind: 'array' | 'pandas' | 'polars'; flat, spelled: bool; n_outputs: count
        names, levels: tuple[label, ...]; dtype: 'float32' | 'float64'
    """,
    "KnownInputs": "container: None | SeriesContainer",
    "Scale": "mean, spread: float64(n)",
    "StatisticalFit": """
        ensemble: Ensemble; data: SeriesData; scale_of_exog: None | Scale; bands: Bands
        data.values: float64(_, n_outputs); ensemble.bounds.low: float64(n_outputs)
        bands.growths: float64(n_outputs)
    """,
    "DynamicalFit": """
        members: list[Member]; scale: Scale; scale_of_exog: None | Scale
        limits: float64(2, n_outputs); washout: natural; levels: float64(n_rows, n_outputs)
        known: float64(n_rows, _); earlier: list[tuple[float64(_, n_outputs), float64(_, _)]]
    """,
    "Member": """
        source: FeatureSource; coef: float64(n_outputs, source.width); intercept: float64(n_outputs)
    """,
    "NetworkPlan": """
        n_units, n_lags, skip: count; spectral_radius, input_scaling, bias_scaling: number
        leak_rate: fraction; augment: None | str
    """,
    "SeriesData": """
        values: float64(n_rows, n_outputs); observed: bool_(n_rows, n_outputs)
        known: float64(least(n_rows), _); seasons: tuple[positive, ...]
        positive: bool_(n_outputs); first: int
    """,
    "History": """
        levels: float64(n_rows, n_outputs); observed: bool_(n_rows, n_outputs)
        known: float64(least(n_rows), _); seasons: tuple[positive, ...]; first: int
    """,
    "Bounds": "low, high: float64(n_outputs)",
    "Ensemble": "members: list[Forecasting]; shares: float64(len(members)); bounds: Bounds",
    "Forecasting": "log: bool; model: FittedModel",
    "Differences": "lag: natural; mean, spread: float64(n_outputs)",
    "FittedNaive": "period: count; growth: float64(_)",
    "FittedTheta": "profiles: float64(_, n_outputs); slopes, smoothings: float64(n_outputs)",
    "FittedLoops": """
        differences: Differences; most_terms: natural; low, high: float64(n_outputs)
        members: list[tuple[FeatureSource(width=w), float64(n_outputs, w), float64(n_outputs)]]
    """,
    "FittedDirect": """
        learned: History; differences: Differences; source: FeatureSource; washout: natural
        alpha: number
    """,
    "Bands": """
        log: bool_(n_outputs); scales: tuple[float64(_), ...]; growths, freedom: float64(n_outputs)
        quantiles: float64(96, n_outputs); along: float64(n_steps, n_steps)
        across: float64(n_outputs, n_outputs)
    """,
}
