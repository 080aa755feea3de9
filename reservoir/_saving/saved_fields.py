"""Fields of the classes that `reservoir.save` writes, and the kinds of values they may contain.

`load` checks a file against this table before it creates an object, and `save` checks an object
before it writes it. A class has the fields of all its base classes, and of the groups of parameters
that it uses. A class that is not in this table, such as a user's class, may also have other fields;
for other classes no further field is read from a file. A field with a default may be missing.

====================================  ============================================================
``name: kind``                        several names, with commas, have the same kind
``name?: kind``                       the field may be missing
``name?other: kind``                  it is missing if and only if the field `other` is
``a.b: kind``                         the attribute `b` of field `a`, whose class is in the table
``bool, int, str, None, 'text'``      plain values; also ``natural``, ``natural(most)``, ``count``
                                      (1 or more), ``positive``, ``fraction`` (in (0, 1]),
                                      ``number`` (finite), ``float`` (infinite or NaN, too),
                                      ``amount`` (0 or more, or infinite)
``float64(n, 2)``                     an array of this dtype and shape with finite values; also
                                      ``int64``, ``bool_``, ``real`` (float32 or float64),
                                      ``indices``, ``numeric`` (of any size), ``labels``,
                                      ``amounts`` (float64, 0 or more, or infinite),
                                      ``counts(most, n)`` (int64, from 0 to `most`)
``float64(n, 2, any)``                the same with NaN and infinity
``of(dtype, n, 2)``                   an array of a dtype that is an attribute of a field;
                                      ``scalar(dtype)``: a number of that dtype
``csr(n, m)``                         a sparse array
``list[kind]``, ``tuple[a, b]``,      containers; ``tuple[kind, ...]`` has any length
``set[kind]``, ``dict[a, b]``         ``several(kind, n)`` is a tuple of n items
``Network``                           an object of that class, or of a derived class
``Network(n_outputs=n)``              the same, with conditions on the values of its attributes
``same(a.b)``, ``equal(a.b)``         the same object as another field, or an equal value
``weights(network)``                  a trained network's arrays by name; ``flat``: in a single one
``a | b``, ``a if c else b``          either kind; one kind or the other, depending on `c`
====================================  ============================================================

A size is a number, a field, an expression of fields, ``_`` (any size), ``least(n)`` (n or more),
``most(n)`` (n or fewer), or a name that stands for the same number wherever it occurs within the
object; ``...`` is any shape.
"""

from reservoir._saving.saved_parts import PARTS

#: Short names of kinds that several classes share.
KINDS = {
    "numbers": "float | numeric(...) | list[float] | tuple[float, ...]",
    "weights_given": "str | numeric(...) | csr(_, _) | list[any]",
    "column": "None | int | str",
    "seed": "None | whole | generator",
    "switch": "bool | int",
    "start": "'last' | 'zeros' | 'steady' | numbers",
    "time_unit": "'auto' | number",
    "missing": "'raise' | 'hold' | 'interpolate'",
    "skipping": "'raise' | 'skip'",
    # number of columns of X, without the id column
    "n_of_reader": "equal(n_features_in_ - 1 + int(_reader.sequence_column == None))",
    # with `n_lags_`, the readout receives some of the rows of the input over which sums are made
    "coef_of_all_rows": "of(_reader.dtype, _model.source.width) if _reader.targets.one_dimensional"
    " else of(_reader.dtype, n_outputs_, _model.source.width)",
    "coef_of_some_rows": "of(_reader.dtype, _model.source.width - (_model.readout.inputs.n_rows"
    " - n_lags_) * _model.readout.inputs.n_columns) if _reader.targets.one_dimensional else"
    " of(_reader.dtype, n_outputs_, _model.source.width - (_model.readout.inputs.n_rows"
    " - n_lags_) * _model.readout.inputs.n_columns)",
    # sums of a readout; older rows of the input may be apart
    "sums_of_rows": "GramBesideOlderRows(n_outputs=n_outputs) if inputs and inputs.apart and"
    " solver == 'cholesky' else RowSums(n_features=width, n_outputs=n_outputs)",
    "record": "None | Activity | Growth",
    "record_of_units": "None | Growth | Activity(low=int64(reservoir_.n_units),"
    " inputs=float | float64(reservoir_.n_features, any),"
    " received=float | float64(reservoir_.n_outputs, any))",
    # state of an echo state network: states of the units, then the outputs that are fed back; in
    # earlier files of networks with a column of times it has the dtype of the units
    "state": "of(source.state_dtype, source.state_size + source.n_fed_back)"
    " | of(source.dtype, source.state_size + source.n_fed_back)",
}

#: Fields of each class, by the name of the class.
FIELDS = {
    # ------------------------------------------------------------ parameters of estimators
    "ReservoirParameters": """
        n_units: int; topology, input_weights: weights_given; in_degree, bias_scaling: number
        weights: str; spectral_radius: None | number; leak_rate, input_scaling: numbers
        activation: str | Activation; bias: str | numbers
    """,
    "CommonParameters": """
        initial_state: start; sequence_column, time_column: column; dtype: str | dtype
        time_step: time_unit; random_state: seed; include_input: bool; verbose: switch
        class_weight: None | 'balanced' | dict[any, number]; missing_targets: skipping
    """,
    "DrivenParameters": """
        augment: None | 'square' | 'even_square'; feedback, bidirectional: bool
        feedback_scaling: numbers; noise: number
    """,
    "ReadoutParameters": """
        alpha: 'auto' | numbers; solver: 'auto' | 'cholesky' | 'qr'; alpha_selection: str
        alpha_per_target, fit_intercept: bool; forgetting: number; readout: readout
        washout: 'auto' | 'measured' | int; n_jobs: None | int
    """,
    "FeatureParameters": """
        scaling: None | 'standard'; differences: bool | tuple[int, ...] | list[int]
        pool: str | tuple[str, ...] | list[str]; n_quantiles: int
        bidirectional, add_indicator: bool; missing_values: missing; sequence_column: column
        time_column: column; time_step: time_unit; dtype: str | dtype; n_jobs: None | int
        random_state: seed
    """,
    "ReadoutOfSequences": "alpha: numbers; relevance_weights: bool; readout: readout",
    "NetworkParameters": """
        n_units, max_iter, n_iter_no_change, online_window: int; cell: str | Cell | Recipe
        activation: str; loss: 'auto' | loss; target: 'step' | 'last'; missing_targets: skipping
        online: 'bptt' | 'rtrl' | 'least_squares'; leak_rate: numbers
        n_symbols: None | int; init: str | BaseEstimator; solver: str | HessianFree | Optimizer
        learning_rate_init, alpha, l1, validation_fraction, tol: number; batch_size: 'auto' | int
        truncation: None | 'auto' | int; clip_norm: None | number
        gradient_control: number | Control
        early_stopping, warm_start: bool; washout: 'auto' | int; learning_rate: str
        clip_value?: None | number; curriculum?: None | Curriculum
    """,
    # ------------------------------------------------------------ fitted estimators
    "BaseEstimator": """
        n_features_in_: natural; feature_names_in_?: labels(n_features_in_)
        _sklearn_output_config?: dict[str, any]
    """,
    "SourceEstimator": """
        _reader: DataReader; _reader.targets: TargetCoding(per_sequence=False)
        _model: ReadoutModel(n_outputs=n_outputs_); _model.source.n_features: n_of_reader
        n_outputs_: count; state_: of(_model.state.dtype, len(_model.state)); washout_: int64(_)
        time_step_?: equal(None if _reader.clock == None else _reader.clock.step)
        certificate_?: same(_model.certificate); alpha_?intercept_: number | float64(n_outputs_)
        coef_?intercept_: coef_of_some_rows if _model.readout.inputs else coef_of_all_rows
        n_lags_?: count; input_alpha_?: number | float64(n_outputs_)
        intercept_?: scalar(_reader.dtype) if _reader.targets.one_dimensional
            else of(_reader.dtype, n_outputs_)
        training_error_?: float64(n_outputs_); alphas_?: float64(n_alphas)
        alpha_scores_?: float64(n_alphas, n_outputs_, any) | float64(n_alphas, 1, any)
        alpha_selection_?: str; temperature_?: positive; readout_?: BaseEstimator; seam_?: number
    """,
    "ESNRegressor": """
        n_lags: 'auto' | int; input_alpha?: None | 'auto' | number; skip: int
        _reader.targets: Numbers | TargetCoding
        reservoir_: same(_model.source.reservoir); _model.activity: record_of_units
    """,
    "ESNClassifier": """
        reservoir_: same(_model.source.reservoir); _model.activity: record_of_units
        _reader.targets: Labels; classes_: equal(_reader.targets.classes)
        n_outputs_: equal(1 if _reader.targets.single and len(classes_) == 2 else len(classes_))
        transition: 'auto' | None; _model.label_filter.frequencies: float64(len(classes_))
        transition_?: None if temperature_ == None else equal(_model.label_filter.transition)
        _model.label_filter: None if transition_power_ == None else LabelFilter
        transition_power_?: equal(_model.label_filter.power)
    """,
    "NVARRegressor": """
        n_lags, skip, degree: int; basis: 'monomial' | 'chebyshev'; increments: bool
        _model.source: LaggedPolynomials
        input_range_?: of(_reader.dtype, 2, _model.source.n_features)
    """,
    "ReservoirTransformer": """
        _reader: DataReader; _source: FeatureSource; reservoir_: same(_source.reservoir)
        _source.n_features: n_of_reader; state_: of(_source.state_dtype, _source.state_size)
            | of(_source.dtype, _source.state_size); _n_trained: natural; _progress: Progress
        _activity?: record_of_units
        _progress.input_range: float64(2, _source.n_features)
        certificate_?: Certificate; certificate_.reservoir: None | same(reservoir_)
        _n_features_out: equal(reservoir_.n_units)
        time_step_?: equal(None if _reader.clock == None else _reader.clock.step)
    """,
    "NetworkEstimator": """
        _reader: DataReader; _model: NetworkModel(n_outputs=n_outputs_); n_outputs_: count
        _model.network.n_columns: n_of_reader; network_: same(_model.network)
        params_: weights(network_); state_: of(_model.state.dtype, len(_model.state))
        n_iter_: natural
        loss_curve_: list[float]; validation_loss_curve_?: list[float]; best_loss_?: float
        best_epoch_?: natural; init_: None | str; washout_?: int64(_)
        start_results_?: None | dict[str, any]; solver_?: None | str
        time_step_?: equal(None if _reader.clock == None else _reader.clock.step)
    """,
    "RNNRegressor": "output: output; loss: 'auto' | loss; refit_readout: bool",
    "RNNClassifier": """
        loss: 'auto' | 'cross_entropy' | 'hinge'; _reader.targets: Labels
        classes_: equal(_reader.targets.classes)
    """,
    "SequenceReadout": """
        _sequence_column, _time_column: column; _targets: TargetCoding; _per_row: bool
        features_: ReservoirFeatures(n_features_in_=n_features_in_); intercept_?: any
        input_scaling_: numbers; input_scaling_scores_?: numeric(...); readout_?: BaseEstimator
        _mean?, _scale?: float64(_); n_outputs_?: count; coef_?intercept_: real(...)
        alpha_?intercept_: number | float64(_); alpha_scores_?intercept_: float64(_, _, any)
        verbose?: switch
    """,
    "ESNSequenceClassifier": """
        classes_: equal(_targets.classes); temperature_?intercept_: positive
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
        _columns?: tuple[column, column]; verbose?: switch
    """,
    "LiquidStateMachine": """
        n_units: int; inhibitory, connection_length, recurrent_scaling, input_scaling: number
        input_density: number; membrane_time, synapse_time, filter_time: positive
        refractory_time: tuple[int, int] | list[int]; pool: str | tuple[str, ...] | list[str]
        sequence_column: column; dtype: str | dtype; random_state: seed
        _sequence_column?: column; _fixed?: tuple[column, str, positive]
        _container: str; n_channels_: count
        network_: SpikingNetwork; network_.W_in: csr(_, n_channels_); _pooling: Pooling
    """,
    "ESNForecaster": """
        search: 'auto' | 'dynamics' | 'series' | list[any] | tuple[any, ...]; season: None | numbers
        panel: None | 'each' | 'shared'; sequence_column: column; n_networks: int
        time_column?: column; target_column?: column | list[column] | tuple[column, ...]
        clip: 'auto' | number; horizon: 'auto' | int; missing_values: missing
        outliers?: 'warn' | 'missing' | 'keep'; n_jobs: None | int; verbose: switch
        random_state: seed
        _panel: Panel; kind_: 'series' | 'dynamics'
        seasons_: tuple[positive, ...] | dict[label, tuple[positive, ...]]
        _fits: list[StatisticalFit] | list[DynamicalFit]
        search_results_, best_params_: any; best_score_: float; _seed: natural
        _scores?: tuple[number, ...]; _fixed?: dict[str, any]; errors?: 'raise' | 'warn'
        _failures?: None | Failures; _long?: LongTable
    """,
    "SeasonalNaive": """
        season: None | numbers; panel: None | 'each'; sequence_column: column
        time_column?: column; target_column?: column | list[column] | tuple[column, ...]
        _panel: Panel; seasons_: tuple[positive, ...] | dict[label, tuple[positive, ...]]
        _fits: list[StatisticalFit]; _long?: LongTable
    """,
    "LocalForecaster": """
        estimator: BaseEstimator; block, halo: int; periodic: switch
        neighbourhood: None | numeric(_, _) | list[any]; alphas: None | numbers
        estimator_: SourceRegressor; neighbourhood_: int64(_, _); alpha_: number
        alphas_?: float64(n_alphas); alpha_scores_?alphas_: float64(n_alphas, any)
        _state: None | of(estimator_.dtype, len(neighbourhood_), _); _last: real(n_features_in_)
        _ended: None | Ending
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
    # ------------------------------------------------------------ state of estimators
    "DataReader": """
        dtype: 'float64' | 'float32'; sequence_column, time_column: column
        clock: None if time_column == None else Clock; targets: None | TargetCoding
        target_names: None | list[any]; n_symbols?: None | count
        fixed?: None | dict[str, any]
    """,
    "NetworkModel": """
        network: Network; params: weights(network); dtype: 'float64' | 'float32'
        control: None | Control; clock: None | Clock; engine: str; losses: list[float]
        n_iter: natural; online: None | OnlineLearner(network=network); progress: Progress
        online_fixed?: None | dict[str, any]
        progress.pairing.inputs: float64(_, network.n_columns) | float64(0, 0)
        progress.input_range: float64(2, network.n_columns)
        state: of(params['coef'].dtype, network.cell.state_size) if clock == None
            else real(network.cell.state_size)
        recent: None | tuple[real(n, network.n_columns), real(n, network.n_outputs, any),
            real(network.cell.state_size), natural]
    """,
    "ReadoutModel": """
        source: FeatureSource; n_outputs: count; increments: bool; certificate: None | Certificate
        certificate.reservoir: None | same(source.reservoir); activity: record
        label_filter?: None | LabelFilter; state: state if label_filter == None
            else of(source.state_dtype, source.state_size + len(label_filter.frequencies))
        readout: Readout(width=source.width, n_outputs=n_outputs); progress: Progress
        noise_seed: None | natural; n_noisy, n_trained: natural; noise_generator: None | generator
        progress.last_output: float64(n_outputs, any)
        progress.target_range: float64(2, n_outputs, any)
        progress.input_range: float64(2, source.n_features)
        progress.pairing.inputs: float64(_, source.n_features) | float64(0, 0)
    """,
    "Progress": """
        washout, n_steps: natural; continues, last_is_target: bool
        last_output: float64(n, any); target_range: float64(2, n, any)
        input_range?: None | float64(2, _); pairing: NextInputCheck
        ids: set[label]; last_id: label; ended: tuple[None | Ending, None | Ending]
    """,
    "NextInputCheck": """
        n_outputs: natural; coded, feedback: bool; problem: None | str
        targets: float64(n_pairs, n_outputs); inputs: float64(n_pairs, _)
    """,
    "Ending": """
        kind, shown, unit, zone: str; last: number; following, widest: None | number; plain: bool
        recent: tuple[number, ...]; frequency: None | str; ids, names: tuple[label, ...]
    """,
    "Clock": "place: int; origin: number; step: positive",
    "Activity": """
        n_rows: natural; n_looked: natural(n_rows); low, high: counts(n_looked, n_units)
        inputs, received: amount | amounts(_)
    """,
    "Growth": "n_rows: natural; first_size, first_drive, size, drive: amount",
    "TargetCoding": "per_sequence: bool; one_dimensional?: bool",
    "Numbers": "one_dimensional: bool",
    "Labels": "low: number; single: bool; classes: labels(n_classes)",
    "Session": """
        _estimator: BaseEstimator; _initial_state: start; _id: label
        state: None | of(_estimator.state_.dtype, len(_estimator.state_))
            | of(_estimator.dtype, len(_estimator.state_))
        _ended: tuple[None | Ending, None | Ending]; _beyond?: bool
    """,
    "StateStream": "_estimator: ReservoirTransformer",
    "Stream": """
        callback: None; n_learned_: natural
        last_errors_: float64(_) | float64(_, _estimator.n_outputs_)
        _score: RunningScore; _own: None | BaseEstimator; _learner: None | SessionLearner
        _n_run, _first, _steps_before: natural; _learned_to: int; _anew: bool
        _ended_before: tuple[None | Ending, None | Ending]; _waiting: PendingRows
        _waiting.end: None | equal(_n_run)
        _waiting.chunks: deque[Chunk(
            rows=real(_, _estimator.n_features_in_ - 1
                + int(_estimator._reader.sequence_column == None)),
            state=of(_estimator.state_.dtype, len(_estimator.state_)),
            outputs=real(_, _estimator.n_outputs_))]
    """,
    "Chunk": """
        first: natural; rows: real(n_rows, _); state: real(_)
        outputs: real(n_rows, ...) | real(n_rows)
    """,
    "PendingRows": "most: count; chunks: list[Chunk]",
    "RunningScore": "forgetting: fraction; n_rows: natural; total: number",
    "RunningR2": "spread, squares, mean: number | float64(n)",
    "RunningAccuracy": "right: number",
    "FeatureLearner": "readout: RowLearner; noise: None | generator; new: bool; activity: record",
    "NetworkLearner": "online: OnlineLearner",
    **PARTS,
}
