"""What all tests share: no windows, no chance in CI, fast cases, costs, partners, short starts."""

import functools
import gc
import importlib.util
import os
import random
import re
import sys
from collections import Counter

# Processes that share the cores are best with one thread each. Read when numpy is first imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import joblib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.register_assert_rewrite("helpers")
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_configure(config):
    """Count who asks for an engine; put every job on kernels if the environment says so."""
    config.pluginmanager.register(EngineMarks(config))
    config.pluginmanager.register(Costs(config))
    config.pluginmanager.register(ClosedFigures())
    if os.environ.get("RESERVOIR_TEST_KERNELS"):
        from reservoir.dynamics import engines
        from reservoir.training import loop_engines as of_training

        engines._WORTH_LOADING = of_training._WORTH_LOADING = 0.0


class ClosedFigures:
    """Close the figures of each test and doctest: matplotlib warns when too many are open."""

    def pytest_runtest_teardown(self):
        """Close what pyplot has opened, if anything has imported it."""
        if pyplot := sys.modules.get("matplotlib.pyplot"):
            pyplot.close("all")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return what ``-n auto`` means: one process per core, but no more than memory bears."""
    return min(4, joblib.cpu_count())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep the tests of a file in one process: what they share is fitted and compiled once."""
    if config.getvalue("dist") != "load":  # another way is asked for
        return None
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


@pytest.hookimpl(tryfirst=True)  # before -m and -k look at the marks
def pytest_collection_modifyitems(items):
    """Skip doctests whose libraries are missing; mark tests for partners, and slow cases."""
    from helpers.fast_cases import add_nothing, choose  # after `helpers` was registered above

    without_plots = importlib.util.find_spec("matplotlib") is None
    without_frames = importlib.util.find_spec("pandas") is None
    for item in items:
        # in a checkout or where the wheel lies; modules of tests skip by themselves
        doctest = not isinstance(item, pytest.Function)
        if without_plots and doctest and item.path.parent.name == "plotting":
            item.add_marker(pytest.mark.skip(reason="needs matplotlib"))
        if without_frames and item.path.name in _WITH_FRAMES:
            item.add_marker(pytest.mark.skip(reason="needs pandas"))
        for name in set(PARTNERS) & set(getattr(item, "fixturenames", ())):
            item.add_marker(name)
    cases = {}
    for item in items:
        if item.get_closest_marker("sweep") or item.get_closest_marker("slow_cases"):
            item.add_marker("slow")
        if hasattr(item, "callspec") and (
            item.get_closest_marker("slow_cases") or not item.get_closest_marker("slow")
        ):
            seed = item.callspec.params.get("global_random_seed")  # each seed is tried alike
            cases.setdefault((item.nodeid.partition("[")[0], seed), []).append(item)
    for of_one_test in cases.values():
        chosen = set(choose(of_one_test))
        for item in of_one_test:
            if item not in chosen:
                item.add_marker("slow")
        slow = of_one_test[0].get_closest_marker("slow_cases")
        for item in set(of_one_test) - chosen if slow else add_nothing(of_one_test, chosen):
            item.add_marker("sweep")


gc.disable()  # until all tests are collected, of which each full collection would look at all


def pytest_collection_finish():
    """Spare the garbage collector what lives until the end: all modules and thousands of tests.

    A full collection, one in a hundred tests, would look at each of them: a tenth of all the time.
    """
    # With its first example Hypothesis registers its generator, and warns if it sees nobody who
    # refers to it. Who is spared is not seen.
    given(st.none())(lambda _: None)()
    gc.collect()
    gc.freeze()
    gc.enable()


class Costs:
    """Tell at the end what tests cost: processor seconds of all processes, the slowest tests."""

    def __init__(self, config):
        self.config = config
        self.of_workers = []
        self.seconds = Counter()

    def pytest_sessionfinish(self):
        """Hand the seconds of a worker of xdist to the process that leads."""
        if hasattr(self.config, "workerinput"):
            self.config.workeroutput["processor_seconds"] = sum(os.times()[:4])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """Take the seconds of a worker; one that crashed has sent none."""
        self.of_workers.append(getattr(node, "workeroutput", {}).get("processor_seconds", 0.0))

    def pytest_runtest_logreport(self, report):
        """Add up set-up, call and tear-down of each fast test."""
        if "slow" not in report.keywords:
            self.seconds[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter):
        """Print both. Children that have ended are counted, save on Windows."""
        own = sum(os.times()[: 2 if self.of_workers else 4])  # workers are children that have ended
        terminalreporter.write_line(f"Processor time: {own + sum(self.of_workers):.0f} s")
        slowest = [(test, s) for test, s in self.seconds.most_common(10) if s >= 1]
        if slowest:
            terminalreporter.section("slowest fast tests, seconds")
        for test, seconds in slowest:
            terminalreporter.write_line(f"{seconds:5.1f} {test}")


# --- seeds -------------------------------------------------------------------------------------

SEED = "RESERVOIR_TEST_SEED"


def seeds_from(environ):
    """Return the seeds to test with: 0, or those that the environment names.

    Workers of xdist must collect the same tests. They inherit the environment of the process that
    starts them, so the seed that it draws for "any" is written there.
    """
    if environ.get(SEED) == "any":
        environ[SEED] = str(random.randrange(100))
    text = environ.get(SEED) or "0"
    found = re.fullmatch(r"(\d\d?)(?:-(\d\d?))?", "0-99" if text == "all" else text)
    seeds = range(int(found[1]), int(found[2] or found[1]) + 1) if found else ()
    if not seeds:
        raise ValueError(f'{SEED}={text} is neither a seed from 0 to 99 nor "3-7", "all" or "any".')
    return seeds


SEEDS = seeds_from(os.environ)


def pytest_report_header():
    """Return the setting by which a failure can be repeated."""
    return f"global_random_seed: {SEED}={os.environ.get(SEED) or SEEDS[0]}"


@pytest.fixture(params=SEEDS, ids="seed{}".format)
def global_random_seed(request):
    """Return a seed; what a test asserts must hold for each one from 0 to 99."""
    return request.param


# --- partners ----------------------------------------------------------------------------------

# Libraries that no extra of ours installs. A test that needs one takes the fixture of its name,
# which skips where it is missing, and marks the test: `nox -s partners` selects by these marks.
# modules whose examples need pandas
_WITH_FRAMES = ("_backtest.py", "_horizon_errors.py", "time_series_estimator.py")
PARTNERS = ("aeon", "optuna", "polars", "ray", "river", "sktime", "statsmodels", "torch")


def partner(name):
    """Return the fixture that is a library, or skips."""
    return pytest.fixture(name=name, scope="session")(lambda: pytest.importorskip(name))


aeon, optuna, polars, ray, river, sktime, statsmodels, torch = map(partner, PARTNERS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Let no test be skipped where the environment says that all it needs is there."""
    report = yield
    if os.environ.get("RESERVOIR_TEST_ALL") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
    return report


# --- starts and searches -------------------------------------------------------------------------

# Folders whose tests train networks from a start, but seldom ask how good it is.
_TRAINING = {"contracts", "estimators", "interop", "model_selection", "rnn", "saving", "training"}


@pytest.fixture(autouse=True)
def short_starts(request):
    """Let starts by least squares take 4 iterations, not 20, unless a test wants them full."""
    if request.path.parent.name not in _TRAINING or request.node.get_closest_marker("full_starts"):
        yield
        return
    from reservoir.training.starts import start

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(start.__kwdefaults__, "n_iter", 4)
        yield


@pytest.fixture(scope="module")
def short_searches():
    """Let searches for a bias take 8 steps, not 60, where any that is certified will do."""
    from reservoir.stability import _certified_values

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_certified_values, "_STEPS", 8)
        yield


# Folders whose tests fit forecasters of series, but do not ask how well models are weighted.
_OF_SERIES = {"contracts", "model_selection", "plotting", "saving", "series", "validation"}


@pytest.fixture(scope="module", autouse=True)  # not by test: the fits of a module must be alike
def few_comparisons(request):
    """Let models of a series be compared by 3 fits, not 8."""
    from reservoir.series_models import series_data

    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name in _OF_SERIES:
            patch.setattr(series_data, "_N_FITS", 3)
        yield


# --- engines -----------------------------------------------------------------------------------

ONE, BOTH = "one_engine", "both_engines"


class EngineMarks:
    """Hold the marks `one_engine` and `both_engines` against what the tests do.

    CI runs the tests marked `both_engines` a second time, with every job on compiled kernels. So
    a test whose reservoirs or networks choose their engine must say whether it is one of them;
    and of a file with marks at least one marked test must leave the choice to the engines.
    """

    def __init__(self, config):
        self.config = config
        self.n_choices = 0
        self.n_before = 0
        self.marked = {}  # by file: how often its marked tests let an engine be chosen
        self.not_judged = set()  # files of which not every test ran to its end

    def pytest_sessionstart(self):
        """Count the calls that leave the engine open, wherever the functions were imported."""
        import reservoir  # noqa: F401 (all that chooses is loaded with it)
        from reservoir.dynamics import engines
        from reservoir.training import loop_engines

        originals = {"uses_kernels": engines.uses_kernels, "choose": loop_engines.choose}
        for name, module in list(sys.modules.items()):
            for choice, original in originals.items():
                if name.startswith("reservoir.") and vars(module).get(choice) is original:
                    setattr(module, choice, self._counted(original))

    def _counted(self, choice):
        @functools.wraps(choice)
        def counted(*args, **kwargs):
            given = (*args, *kwargs.values())
            self.n_choices += any(isinstance(arg, str) and arg == "auto" for arg in given)
            return choice(*args, **kwargs)

        return counted

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self):
        """Begin to count: fixtures belong to the first test that needs them."""
        self.n_before = self.n_choices

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Fail a test without a mark that lets an engine be chosen."""
        result = yield
        n_choices = self.n_choices - self.n_before
        item.user_properties.append(("engine_choices", n_choices))
        marks = [name for name in (ONE, BOTH) if item.get_closest_marker(name)]
        if n_choices and not marks and isinstance(item, pytest.Function):
            pytest.fail(
                "This test lets reservoirs or networks choose their engine. Mark it, or its file: "
                f"pytest.mark.{BOTH} if CI is to run it on compiled kernels, too; "
                f"pytest.mark.{ONE} if what it checks is the same on every engine."
            )
        return result

    def pytest_runtest_logreport(self, report):
        """Add up the choices of each file; under xdist, in the process that leads."""
        file = report.nodeid.partition("::")[0]
        if not report.passed:
            self.not_judged.add(file)
        elif report.when == "call" and {ONE, BOTH} & set(report.keywords):
            n_choices = dict(report.user_properties).get("engine_choices", 0)
            self.marked[file] = self.marked.get(file, 0) + n_choices

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        """Fail the session if a whole file was run whose marks are idle."""
        options = self.config.option
        in_part = options.keyword or any("::" in arg for arg in self.config.args)
        in_part = in_part or options.markexpr not in ("", "not slow")
        if in_part or hasattr(self.config, "workerinput"):
            self.marked.clear()
        self.idle = sorted(f for f, n in self.marked.items() if not n and f not in self.not_judged)
        if self.idle and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        """Name the files whose marks are idle."""
        for file in self.idle:
            terminalreporter.write_line(
                f"FAILED {file}: no test marked {ONE} or {BOTH} lets an engine be chosen. "
                "Drop the mark."
            )
