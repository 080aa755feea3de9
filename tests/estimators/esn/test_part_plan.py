"""Parts of one fit, learned apart and merged: the model of one fit, however rows are cut."""

import functools
import itertools
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge

from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    NVARRegressor,
    RNNRegressor,
    load,
    save,
)
from reservoir.interop import plan_parts

pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.one_engine
rng = np.random.default_rng(0)
N = 1600
X = rng.normal(size=(N, 2))
Y = np.convolve(X[:, 0], 0.7 ** np.arange(8))[:N] + 0.3 * rng.normal(size=N)
LABELS = np.array(["low", "mid", "high"])[np.digitize(Y, [-0.5, 0.5])]
TWO = np.column_stack([Y, np.roll(X[:, 1], 3) + 0.1 * rng.normal(size=N)])
NEW = rng.normal(size=(200, 2))
ENDS = [0, 500, 590, 591, 1200, N]


def esn(kind=ESNRegressor, **params):
    return kind(15, **{"random_state": 0, "spectral_radius": 0.5, "leak_rate": 1.0, **params})


def learned(plan, X, y, ends, weights=None):
    """Learn the rows between the ends, each part from a pickled plan, and return pickled parts."""
    parts = []
    for i, (low, high) in enumerate(itertools.pairwise(ends)):
        n = plan.n_before[i]
        before = (X[low - n : low], y[low - n : low]) if n else None
        w = None if weights is None else weights[low:high]
        elsewhere = pickle.loads(pickle.dumps(plan))
        part = elsewhere.learn(i, X[low:high], y[low:high], sample_weight=w, before=before)
        parts.append(pickle.loads(pickle.dumps(part)))
    return parts


def by_parts(make, X, y, ends, *, weights=None, **options):
    plan = plan_parts(make(), X[:400], y[:400], np.diff(ends).tolist(), **options)
    return plan.finish(plan.merge(learned(plan, X, y, ends, weights)))


def outputs(model, rows=NEW):
    found = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    return found(rows, initial_state="zeros")


def close(one, other, tol=1e-9):
    np.testing.assert_allclose(one, other, rtol=0, atol=tol * np.abs(other).max(initial=0))


# --- one fit ------------------------------------------------------------------------------------

SAME = {
    "as it comes": (esn, Y),
    "alpha": (lambda: esn(alpha=1e-2), Y),
    "gcv": (lambda: esn(alpha_selection="gcv"), Y),
    "reml": (lambda: esn(alpha_selection="reml"), Y),
    "alpha per target": (lambda: esn(alpha_per_target=True), TWO),
    "feedback": (lambda: esn(feedback=True, feedback_scaling=0.3), Y),
    "next inputs": (esn, np.roll(X, -1, axis=0)),
    "n_lags": (lambda: esn(n_lags=5), Y),
    "steady": (lambda: esn(alpha=1.0, initial_state="steady", washout=0), Y),
    "qr": (lambda: esn(alpha=1e-6, solver="qr"), Y),
    "unbounded units": (lambda: esn(alpha=1.0, activation="identity"), Y),
    "missing targets": (lambda: esn(missing_targets="skip"), np.where(X[:, 1] > 1, np.nan, Y)),
    "NVAR": (lambda: NVARRegressor(3), Y),
    "NVAR of one row": (lambda: NVARRegressor(1, alpha=1.0, increments=True), X),
    "classifier": (lambda: esn(ESNClassifier), LABELS),
}


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("kind", SAME)
def test_parts_merged_are_one_fit(kind):
    """Halves, penalties, states and probabilities are those of one fit, cuts within halves too."""
    make, y = SAME[kind]
    one, model = make().fit(X, y), by_parts(make, X, y, ENDS)
    close(outputs(model), outputs(one))
    close(model.state_, one.state_)
    close(model.training_error_, one.training_error_)
    np.testing.assert_array_equal(model.alpha_, one.alpha_)
    np.testing.assert_array_equal(model.washout_, one.washout_)
    assert model.seam_ <= 1e-8
    assert model.training_.predicts_next_input == one.training_.predicts_next_input
    close(outputs(model.partial_fit(X[:90], y[:90])), outputs(one.partial_fit(X[:90], y[:90])))


def test_float32_is_one_fit_to_its_rounding():
    make = lambda: esn(dtype="float32", alpha=1.0)  # noqa: E731
    close(outputs(by_parts(make, X, Y, ENDS)), outputs(make().fit(X, Y)), 1e-5)


def test_weights_and_a_forecast():
    """Weights go with their rows; the model ends in the series, and a forecast needs no context."""
    weights, following = rng.uniform(size=N), np.roll(X, -1, axis=0)
    make = lambda: esn(alpha=1e-2)  # noqa: E731
    model = by_parts(make, X, following, ENDS, weights=weights)
    one = make().fit(X, following, sample_weight=weights)
    close(model.forecast(5), one.forecast(5))
    close(model.predict(NEW), one.predict(NEW))


def test_what_follows_is_saved_and_learned(tmp_path):
    """A file, a session, partial_fit and another fit after a fit in parts."""
    one, model = esn().fit(X, Y), by_parts(esn, X, Y, ENDS)
    save(model, tmp_path / "model.npz")
    read = load(tmp_path / "model.npz")
    assert read.seam_ == model.seam_
    for each in (model, read):
        session, other = each.stream(), one.stream()
        for learner in (session, other):
            learner.learn(NEW[:50], NEW[:50, 0])
        close(session.predict(NEW[50:60]), other.predict(NEW[50:60]))
    assert not hasattr(model.fit(X[:200], Y[:200]), "seam_")


def test_the_default_overlap_is_twice_the_measured_transient_or_the_memory():
    """NVAR needs its lagged rows exactly; a network, what `transient_length` measures twice."""
    assert plan_parts(NVARRegressor(4, skip=2), X[:50], Y[:50], [50, 3, 50]).n_before == [0, 6, 6]
    plan = plan_parts(esn(), X[:400], Y[:400], [500, 500])
    assert 10 < plan.overlap < 200
    assert plan.n_before == [0, plan.overlap]
    with pytest.raises(ValueError, match=r"measured in the first 5 rows.*or give overlap"):
        plan_parts(esn(), X[:5], Y[:5], [500, 500])
    assert plan_parts(esn(), X[:5], Y[:5], [500, 500], overlap=7).n_before == [0, 7]


# --- sequences and cuts -------------------------------------------------------------------------

SEQUENCES = [0, 700, 1150, 1170, N]


def in_sequences(make, **options):
    pieces = [slice(a, b) for a, b in itertools.pairwise(SEQUENCES)]
    return make(**options).fit([X[p] for p in pieces], [Y[p] for p in pieces])


NAMES = np.repeat([7, 3, 9, 1], np.diff(SEQUENCES))
TABLE = np.column_stack([NAMES, X])


@functools.cache
def of_table():
    return esn(sequence_column=0, washout=10).fit(TABLE, Y)


@settings(max_examples=5)
@given(st.lists(st.integers(0, N), max_size=8))
def test_any_cut_is_one_fit(cuts):
    """Parts without rows, of one row, of several sequences and of parts of them, with ids."""
    ends = [0, *sorted(cuts), N]
    runs = [pd.Series(NAMES[a:b]) for a, b in itertools.pairwise(ends)]
    ids = [run.unique().tolist() for run in runs]
    lengths = [
        [int((run == name).sum()) for name in names] for run, names in zip(runs, ids, strict=True)
    ]
    plan = plan_parts(clone(of_table()), TABLE[:400], Y[:400], lengths, ids=ids)
    parts = learned(plan, TABLE, Y, ends)
    k = len(parts) // 2
    both = [plan.merge(some) for some in (parts[:k], parts[k:]) if some]
    model, one = plan.finish(plan.merge(both)), of_table()
    rows = np.column_stack([np.zeros(200), NEW])
    close(outputs(model, rows), outputs(one, rows))
    np.testing.assert_array_equal(model.washout_, one.washout_)
    assert set(model._model.progress.ids) == {7, 3, 9, 1}
    close(model.state_, one.state_)


def test_lists_of_sequences_and_noise_between_them():
    """Parts of whole sequences, some in lists; each sequence has the noise of one fit."""
    one = in_sequences(esn, noise=0.01, alpha=1.0)
    plan = plan_parts(
        esn(noise=0.01, alpha=1.0), X[:9], Y[:9], [700, [450, 20], 430], begins=[True] * 3
    )
    parts = [
        plan.learn(0, X[:700], Y[:700]),
        plan.learn(1, [X[700:1150], X[1150:1170]], [Y[700:1150], Y[1150:1170]]),
        plan.learn(2, X[1170:], Y[1170:]),
    ]
    model = plan.finish(plan.merge(parts))
    close(outputs(model), outputs(one))
    assert model._model.n_noisy == 4
    with pytest.raises(ValueError, match="context"):
        by_parts(esn, X[:-1], X[1:], [0, 700, N - 1], begins=[True, True]).forecast(2)


def test_merging_changes_no_part():
    """An engine may repeat a merge: the same parts give the same bits in any grouping of order."""
    plan = plan_parts(esn(), X[:400], Y[:400], np.diff(ENDS).tolist())
    parts = learned(plan, X, Y, ENDS)
    before = pickle.dumps(parts)
    first, second = (plan.finish(plan.merge(parts)) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert pickle.dumps(parts) == before
    tree = plan.merge([plan.merge(parts[:2]), plan.merge(parts[2:])])
    close(outputs(plan.finish(tree)), outputs(first))


@pytest.mark.slow
def test_workers_of_ray_learn_parts(ray):
    """Two processes of another engine, which moves plan and parts by pickling them."""
    plan = plan_parts(esn(), X[:400], Y[:400], np.diff(ENDS).tolist())
    learn = ray.remote(lambda plan, i, *rows, before: plan.learn(i, *rows, before=before))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        shared, jobs = ray.put(plan), []
        for i, (low, high) in enumerate(itertools.pairwise(ENDS)):
            n = plan.n_before[i]
            before = (X[low - n : low], Y[low - n : low]) if n else None
            jobs.append(learn.remote(shared, i, X[low:high], Y[low:high], before=before))
        model = plan.finish(plan.merge(ray.get(jobs)))
    finally:
        ray.shutdown()
    close(outputs(model), outputs(esn().fit(X, Y)))


# --- seams, warnings and errors -----------------------------------------------------------------


def test_a_seam_is_never_below_the_error_of_predictions():
    """States that remember longer than the overlap raise; the remedies of the message work."""
    slow = lambda: esn(alpha=1e-2, spectral_radius=0.9)  # noqa: E731
    one = slow().fit(X, Y)
    with pytest.raises(ValueError, match=r"overlap=10.*Raise overlap, or call partial_fit"):
        by_parts(slow, X, Y, ENDS, overlap=10)
    model = by_parts(slow, X, Y, ENDS, overlap=450)
    close(outputs(model), outputs(one))
    for low, high in itertools.pairwise(ENDS):
        model = (model if low else slow()).partial_fit(X[low:high], Y[low:high])
    plan = plan_parts(slow(), X[:400], Y[:400], np.diff(ENDS).tolist(), overlap=25)
    part = plan.merge(learned(plan, X, Y, ENDS))
    assert 1e-8 < part.seam < 1e-2
    chaotic = lambda: esn(alpha=1e-2, spectral_radius=3.0, input_scaling=0.1)  # noqa: E731
    with pytest.raises(ValueError, match="depend on rows before"):
        by_parts(chaotic, X, Y, ENDS, overlap=300)


def test_warnings_come_once_from_finish():
    """Workers are silent: the record of all units warns in the end."""
    make = lambda: esn(alpha=1.0, input_scaling=100.0, spectral_radius=0.1)  # noqa: E731
    plan = plan_parts(make(), X[:400], Y[:400], np.diff(ENDS).tolist(), overlap=50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        part = plan.merge(learned(plan, X, Y, ENDS))
    with pytest.warns(UserWarning, match="bounds of tanh") as found:
        plan.finish(part)
    assert len(found) == 1


REFUSED = {
    "washout='measured'": {"washout": "measured"},
    "bias='stable'": {"bias": "stable"},
    "bidirectional=True": {"bidirectional": True},
    "time_column=0": {"time_column": 0},
    "readout=Ridge": {"readout": Ridge()},
    "forgetting=0.9": {"forgetting": 0.9},
    "noise=0.1": {"noise": 0.1},
    **{
        f"alpha_selection='{rule}'": {"alpha_selection": rule}
        for rule in ("blocked", "holdout", "forecast", "reml_ar1")
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_parameters_that_need_all_rows_are_named(name):
    y = np.roll(X, -1, axis=0) if "forecast" in name else Y
    with pytest.raises(ValueError, match=name):
        plan_parts(esn(**REFUSED[name]), X[:400], y[:400], [500, 500])


@pytest.mark.parametrize("name", ["class_weight='balanced'", "transition='auto'"])
def test_parameters_of_classifiers_that_need_all_rows_are_named(name):
    key, value = name.split("=")
    with pytest.raises(ValueError, match=name):
        plan_parts(esn(ESNClassifier, **{key: value[1:-1]}), X[:400], LABELS[:400], [500, 500])


def test_rows_and_parts_that_are_not_those_of_the_plan_raise():
    """Another number of rows, no rows before, parts out of order, and missing parts."""
    plan = plan_parts(esn(), X[:400], Y[:400], [500, 500, 600])
    n = plan.n_before[1]
    before = X[500 - n : 500], Y[500 - n : 500]
    with pytest.raises(ValueError, match=r"part 1 has sequences of \[400\] rows.*\[500\]"):
        plan.learn(1, X[500:900], Y[500:900], before=before)
    with pytest.raises(ValueError, match=r"Part 1 continues.*before=\(X, y\)"):
        plan.learn(1, X[500:1000], Y[500:1000])
    with pytest.raises(ValueError, match="before of part 1"):
        plan.learn(1, X[500:1000], Y[500:1000], before=(X[:9], Y[:9]))
    first, second, third = learned(plan, X, Y, [0, 500, 1000, N])
    for wrong in ((first, third), (second, first), (first, first)):
        with pytest.raises(ValueError, match="cannot be merged after"):
            plan.merge(wrong)
    for wrong in ([], [3, None]):
        with pytest.raises(TypeError, match="merge needs parts"):
            plan.merge(wrong)
    with pytest.raises(ValueError, match="i=3 must be below 3"):
        plan.learn(3, X, Y)
    with pytest.raises(ValueError, match=r"parts 0 to 2.*contains parts 1 to 2"):
        plan.finish(plan.merge([second, third]))


@pytest.mark.parametrize(
    ("message", "lengths", "options"),
    [
        ("has no rows", [0, []], {}),
        (r"begins has 1 entries, and lengths has 2", [5, 5], {"begins": [True]}),
        (r"lengths\[1\]=-1", [5, -1], {}),
        (r"ids\[0\] has 1 ids", [[5, 5]], {"ids": [["a"]]}),
        ("id 'a' occurs again in part 2", [5, 5, 5], {"ids": ["a", "b", "a"]}),
        (r"begins\[1\]=True, but ids\[1\]", [5, 5], {"ids": "aa", "begins": [True, True]}),
    ],
)
def test_lengths_ids_and_begins_must_agree(message, lengths, options):
    with pytest.raises(ValueError, match=message):
        plan_parts(NVARRegressor(2), X[:40], Y[:40], lengths, **options)


@pytest.mark.parametrize("wrong", [ESNForecaster(), RNNRegressor(3), "esn"])
def test_only_estimators_with_sums_have_parts(wrong):
    with pytest.raises(TypeError, match="ESNRegressor, ESNClassifier or NVARRegressor"):
        plan_parts(wrong, X[:50], Y[:50], [N])


def test_lengths_are_a_list_and_classes_for_classifiers():
    with pytest.raises(TypeError, match="lengths=900 must be a list"):
        plan_parts(NVARRegressor(2), X[:50], Y[:50], 900)
    with pytest.raises(ValueError, match="are for classifiers"):
        plan_parts(NVARRegressor(2), X[:50], Y[:50], [900], classes=[1, 2])


def test_ids_and_classes_must_be_known():
    """Ids in X need those of the parts; labels that come later, `classes`."""
    table = np.column_stack([np.zeros(N), X])
    with pytest.raises(ValueError, match="X has ids"):
        plan_parts(esn(sequence_column=0), table[:400], Y[:400], [500])
    few = np.where(np.arange(N) < 800, "low", LABELS)
    few[0] = "mid"
    make = lambda: esn(ESNClassifier, alpha=1.0)  # noqa: E731
    model = by_parts(make, X, few, [0, 900, N], classes=np.unique(few), overlap=100)
    assert model.classes_.tolist() == ["high", "low", "mid"]
    plan = plan_parts(make(), X[:400], few[:400], [500], classes=np.unique(few))
    with pytest.raises(ValueError, match="'other', which is not among"):
        plan.learn(0, X[:500], np.full(500, "other"))
    plan = plan_parts(esn(sequence_column=0), table[:400], Y[:400], [500], ids=[4.0])
    with pytest.raises(ValueError, match=r"part 0 has the ids \[0.0\]"):
        plan.learn(0, table[:500], Y[:500])
