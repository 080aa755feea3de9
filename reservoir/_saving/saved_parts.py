"""Fields of the parts of estimators: sources, readouts, networks, proofs, models of series.

They are written in the notation of `saved_fields`, whose table includes them.
"""

#: Fields of each class, by the name of the class.
PARTS = {
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
    "BothDirections": "source: DrivenReservoir",
    "PastInputs": """
        source: DrivenReservoir(include_input=True); n_lags, skip: count; n_used: None | count
    """,
    "LaggedPolynomials": """
        n_features, n_lags, skip, degree: count; basis: 'monomial' | 'chebyshev'
        centre: real(n_features); width_of_input: of(centre.dtype, n_features)
    """,
    "LagSource": "n_lags, n_outputs: count; n_known: natural",
    "Analogue": "rows: float64(n_rows, _); followed: bool_(n_rows); n_lags: count",
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
        estimator: readout; solver, selection: str; alpha: 'auto' | numbers; halves?: bool
        alpha_per_target, fit_intercept, skip_missing, one_dimensional, partial: bool; rule?: None
        forgetting: fraction; dtype: str | dtype; decode: None; classes: None | labels(_)
        input_alpha?: None | 'auto' | positive; next_inputs?: bool
    """,
    "RidgeReadout": """
        solver: None | 'cholesky' | 'qr'; kept: None | RowSample; runs?: None | Runs
        neighbours?: None | NeighbourSums
        inputs?: None | InputRows; neighbours.differences: sums_of_rows
        parts: dict[natural, sums_of_rows]; rows?: None | list[tuple[natural, int64(n),
            real(n, width), float64(n, n_outputs), float64(n)]]
        kept._parts: list[tuple[int64(n), real(n, width), float64(n, n_outputs), float64(n)]]
    """,
    "InputRows": "start: natural; n_columns, n_rows: count; chosen: bool",
    "GramBesideOlderRows": """
        older: GramAccumulator; older.n_outputs: equal(n_outputs + n_features)
    """,
    "NeighbourSums": """
        differences: RowSums; starts: int64(_); log_dets: float64(7); ends: dict[natural,
            RunEnd(h=float64(differences.n_columns), y=float64(differences.n_outputs))]
    """,
    "RunEnd": "number: natural; weight: positive; age: float; h, y: float64(_); pivots: float64(7)",
    "Runs": "n_rows, filled, within: natural; half: natural(1); least: count",
    "LabelFilter": """
        frequencies: float64(n_classes); transition: float64(n_classes, n_classes); power: positive
    """,
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
        which: indices(kept.n_outputs); scales?: tuple[float64(_), ...]
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
    "GRUCell": "reset_after?: bool",
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
        clip_value?: None | positive
    """,
    "GradientControl": "weight, low, high, target: number; kind: str; n_samples: None | count",
    "Omega": "weight: number; exact: bool",
    "SimplexDirection": "threshold: number",
    "HessianFree": """
        structural_damping, damping: number; gradient_size, curvature_size: None | count
        max_cg: count
    """,
    "EasyFirst": "n_epochs: count; first: fraction; difficulty: None",
    "GrowingLength": "n_epochs, first: count",
    "OnlineLearner": """
        network: Network; method: str; running: bool; usual_loss?: float; params: weights(network)
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
        objective: Objective; solver: str | Optimizer; learning_rate: number
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
        kind: 'one' | 'columns' | 'list' | 'objects' | 'stack' | 'levels' | 'long'
        ids, levels: tuple[label, ...]; containers: several(SeriesContainer, len(ids))
        calendars: several(Calendar, len(ids)); whole: SeriesContainer
        id_name: label; id_place: natural
        exog?: None | SeriesContainer; categories?: tuple[None | tuple[label, ...], ...]
    """,
    "Failures": "panel: Panel; messages: dict[label, str]",
    "Calendar": """
        kind: 'rows' | 'number' | 'datetime' | 'datetime with a zone' | periods
        n_rows: natural; first, last: number; plain: bool; name: label
        step: frequency if kind == 'datetime' else frequency if kind == 'datetime with a zone'
            else number
        zone: zone if kind == 'datetime with a zone' else None
        dtype: dates if kind == 'datetime' else dates if kind == 'datetime with a zone'
            else numbers_of_rows | equal(kind)
    """,
    "SeriesContainer": """
        kind: 'array' | 'pandas' | 'polars'; flat, spelled: bool; dtype: 'float32' | 'float64'
        n_outputs: equal(1) if flat else count
        levels: several(label, least(1)) if kind == 'pandas' and flat == False
            else several(label, 0)
        names: several(label, 0) if kind == 'array' else several(label, n_outputs)
    """,
    "LongTable": """
        kind: 'array' | 'pandas' | 'polars'; labels: tuple[label, ...]
        targets, known: tuple[label, ...] if labels else equal(labels)
        ids: label if ids in labels else None; time: label if time in labels else None
        chosen: bool if labels else equal(False); id_type: None | ColumnType
        time_type: None if time == None else None | ColumnType; level_types: tuple[ColumnType, ...]
    """,
    "ColumnType": """
        kind: 'pandas' | 'polars'; label: label; name: str
        categories: None | tuple[label, ...]; ordered: bool
    """,
    "Scale": "mean, spread: float64(n)",
    "StatisticalFit": """
        ensemble: Ensemble; data: SeriesData; scale_of_exog: None | Scale; bands: Bands
        data.values: float64(_, n_outputs); ensemble.bounds.low: float64(n_outputs)
        bands.growths: float64(n_outputs); ending?: LastRows
        reach?: None | Bounds; reach.low: float64(n_outputs)
    """,
    "DynamicalFit": """
        members: list[Member]; scale: Scale; scale_of_exog: None | Scale
        limits: float64(2, n_outputs); washout: natural; levels: float64(n_rows, n_outputs)
        known: float64(n_rows, _); earlier: list[tuple[float64(_, n_outputs), float64(_, _)]]
        possible?: None | float64(2, n_outputs, any); ending?: LastRows
        floor?: None | float64(n_outputs, any)
    """,
    "LastRows": "rows: float64(_, _, any); end: natural; odd: None | OddValues",
    "OddValues": """
        rows, columns: int64(n); values, expected, sizes: float64(n, any); shift: float64(_, any)
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
        positive: bool_(n_outputs); first: int; possible?: None | float64(2, n_outputs, any)
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
    "FittedIntermittent": "smoothings: float64(n_outputs)",
    "FittedARI": """
        profiles: float64(_, n_outputs); scale: Differences; coef: float64(n_outputs, n_models, _)
        intercept, shares: float64(n_outputs, n_models); scale.lag: natural(0)
    """,
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
        across: float64(n_outputs, n_outputs); rounding?: None | float64(n_outputs)
        common?: None | number; phases?: None | tuple[float64(least(1)), ...]
    """,
}
