"""All that must hold before a change lands: `nox -s lint tests` runs two of the sessions.

`.ci/run` runs them one after the other, `.github/workflows/ci.yml` side by side. What follows `--`
goes to the tool that a session runs: `nox -s tests -- tests/readouts -k gcv`.
"""

import os
import re
import shlex
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"  # an environment as the README's readers make theirs
nox.options.sessions = ["lint", "tests"]
# without bytecode, each process of pytest would compile the package and all tests again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.update(
    MPLBACKEND="Agg", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_PROGRESS_BAR="off"
)

# Figures on the pages that are quick to measure.
QUICK_FIGURES = ("co2", "protocols_memory", "protocols_narma10", "sunspots")
# The oldest releases that pyproject.toml allows have wheels for Python 3.10 and 3.11 only: nox
# takes its own where it is 3.11, else the 3.10 of this machine; without one it skips the session.
OLD_PYTHON = "3.11" if sys.version_info[:2] == (3, 11) else "3.10"
nox.options.error_on_missing_interpreters = False  # which it would be where the variable CI is set
# What takes a minute with them and meets most of what they do otherwise.
WITH_OLDEST = (
    *("contracts", "dynamics", "kernels", "modules", "plotting"),
    *("readouts", "saving", "scaling", "topologies", "validation"),
)
# Where numbers are computed, which processors round differently.
WITH_NUMBERS = (
    *(
        "activations",
        "datasets",
        "dynamics",
        "estimators",
        "kernels",
        "loops",
        "metrics",
        "modules",
    ),
    *("readouts", "scaling", "series_models", "stability", "topologies", "training"),
)
# What meets pandas, matplotlib or numba, or reads what a user gives: elsewhere the fast tests,
# small as they are, never ask for one, with or without it.
WITHOUT_EXTRAS = (
    *("contracts", "datasets", "dynamics", "estimators", "interop", "kernels", "loops"),
    *("model_selection", "modules", "plotting", "saving", "tables", "validation"),
)
# Libraries that work with ours, though no extra installs them, by the environments they agree in.
PARTNERS = {
    "common": ("torch", "statsmodels", "polars", "river", "optuna", "ray"),
    "panels": ("aeon", "sktime"),
}


def readme_command(number):
    """Return the n-th command of the README's bash blocks, from 1; `git clone` and `cd` aside."""
    text = Path("README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    commands = [line for line in lines if line and not re.match(r"#|git clone\b|cd\b", line)]
    return commands[number - 1]


def run_in_bash(session, command):
    """Run a line of shell commands as a reader of the README does, in the session's environment."""
    session.run("bash", "-euo", "pipefail", "-c", command, external=True)


def shared(session, *extras, fresh=False):
    """Enter the environment that most sessions share; return the function that runs its programs.

    Installing all that each of them needs into one of its own would take longer than some of them.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = session.cache_dir.absolute() / f"python{version}"
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    session.env.update(VIRTUAL_ENV=str(folder), PATH=path)

    def run(program, *args, **env):
        session.run(shutil.which(program, path=path) or program, *args, env=env)

    if fresh or not programs.exists():
        session.run(sys.executable, "-m", "venv", "--clear", str(folder))
    if extras:
        run("python", "-m", "pip", "install", "--quiet", f".[{','.join(extras)}]")
    return run


# --- tests ---------------------------------------------------------------------------------------


@nox.session
def readme(session):
    """Run the README's first command, its main job, in a fresh environment."""
    run_in_bash(session, readme_command(1))


@nox.session(venv_backend="none")
def tests(session):
    """Run the README's test command; without arguments in a fresh environment."""
    shared(session, fresh=not session.posargs)
    # a seed that pytest draws and prints, unless one is given to repeat a failure
    session.env["RESERVOIR_TEST_SEED"] = os.environ.get("RESERVOIR_TEST_SEED", "any")
    run_in_bash(session, f"{readme_command(2)} {shlex.join(session.posargs)}")


@nox.session(venv_backend="none")
def rounding(session):
    """Run the tests of numbers as a processor without AVX rounds, in BLAS and in kernels."""
    run = shared(session, "test")
    old = {"OPENBLAS_CORETYPE": "Prescott", "NUMBA_CPU_NAME": "generic"}
    what = session.posargs or [f"tests/{folder}" for folder in WITH_NUMBERS]
    run("python", "-m", "pytest", "-n", "auto", *what, **old)


@nox.session(python=OLD_PYTHON, reuse_venv=True)
def oldest(session):
    """Run some of the tests with the oldest releases of what we need that pyproject.toml allows."""
    project = nox.project.load_toml("pyproject.toml")["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    releases = sorted({bound.replace(">=", "==") for bound in needed})
    # what these releases do is out of date for later ones of what they need themselves
    session.install(*releases, "pyparsing<3.2", ".")
    what = session.posargs or [f"tests/{folder}" for folder in WITH_OLDEST]
    session.run("python", "-m", "pytest", "-n", "auto", *what)


@nox.session(venv_backend="none")
def slow(session):
    """Run the slow tests, but for the sweeps (half an hour)."""
    run = shared(session, "test")
    what = ("-m", "slow and not sweep", "--durations=60", *session.posargs)
    run("python", "-m", "pytest", "-n", "auto", *what)


@nox.session(venv_backend="none")
def kernels(session):
    """Run the tests of both engines with every job on compiled kernels, the smallest ones too."""
    run = shared(session, "test")
    what = ("-m", "both_engines and not slow", *session.posargs)
    run("python", "-m", "pytest", "-n", "auto", *what, RESERVOIR_TEST_KERNELS="1")


@nox.session(reuse_venv=True)
@nox.parametrize("group", [nox.param(group, id=group) for group in PARTNERS])
def partners(session, group):
    """Run the tests that need a partner, as PARTNERS lists them."""
    # The partners first: ours must work with the NumPy and the numba that they want.
    there = [partner for partner in PARTNERS[group] if fetch(session, partner)]
    session.install(".[fast,plot]", "hypothesis", "pandas", "pytest", "pytest-xdist")
    if lacking := sorted({*PARTNERS[group]} - {*there}):
        session.warn(f"Not tested, for want of a wheel that imports: {', '.join(lacking)}")
    if not there:
        session.skip("no partner is here")
    session.run("pip", "list")
    pytest = ("python", "-m", "pytest", "-q")
    no_skips = {"RESERVOIR_TEST_ALL": "1"}  # nothing else may be lacking
    what = session.posargs or ["tests"]
    # one file has nearly all tests of panels
    evenly = ("--dist", "worksteal") if group == "panels" else ()
    session.run(*pytest, "-n", "auto", *evenly, "-m", " or ".join(there), *what, env=no_skips)
    if group == "common" and not session.posargs:
        # scikit-learn skips its checks of array API input unless SciPy is told before its import.
        arrays = ("tests/contracts/test_common.py", "-m", "", "-k", "array_api")
        session.run(*pytest, *arrays, env={**no_skips, "SCIPY_ARRAY_API": "1"})


def fetch(session, partner):
    """Install a partner as a wheel; return whether it can be imported then."""
    ways = [("--only-binary", ":all:")]
    if partner == "torch":  # of the least size: one at hand, one for CPUs alone, or some gigabytes
        cpu = "https://download.pytorch.org/whl/cpu"
        ways = [("--no-index",), ("--retries", "0", "--timeout", "15", "--index-url", cpu), *ways]
    for way in ways:
        session.run("pip", "install", "--quiet", *way, partner, **IN_SILENCE)
        if imports(session, partner):
            return True
    return False


def imports(session, name):
    """Whether the session's environment has a library, and can import it."""
    code = f"import {name}; print('imported')"
    return "imported" in session.run("python", "-c", code, **IN_SILENCE)


IN_SILENCE = {"silent": True, "success_codes": range(256)}  # it may fail


# --- source and pages ----------------------------------------------------------------------------


@nox.session(venv_backend="none")
def lint(session):
    """Check style, types, layers and spelling; nothing is run."""
    run = shared(session, "test", "dev")
    run("ruff", "check", ".")
    run("ruff", "format", "--check", ".")
    # numpy's annotations differ by version; ours are checked against those of Python 3.11 and newer
    if sys.version_info >= (3, 11):
        run("mypy")
    run("lint-imports")
    run("python", "docs/check_spelling.py")


@nox.session(venv_backend="none")
def figures(session):
    """Measure figures on the pages again, by default the quick ones, and compare; pictures, too."""
    run = shared(session, "test")
    run("python", "docs/check_figures.py", *(session.posargs or QUICK_FIGURES))
    if not session.posargs:
        run("python", "docs/shipped_pictures.py", "--check")


@nox.session(venv_backend="none")
def docs(session):
    """Build the pages into docs/_build/html, warnings as errors; all examples run."""
    run = shared(session, "test", "docs")
    run("python", "-m", "pytest", "tests/pages/test_name_links.py")
    shutil.rmtree("docs/_build", ignore_errors=True)
    html = Path("docs", "_build", "html")
    options = ("-W", "--keep-going", "-q", "-b", "html")
    run("python", "-m", "sphinx", *options, "docs", str(html), OPENBLAS_NUM_THREADS="1")
    run("python", "docs/check_anchors.py", str(html))
    here = (str(Path.cwd()), str(session.cache_dir.resolve()))
    pages = [path for path in html.rglob("*") if path.suffix in (".html", ".txt", ".ipynb")]
    if told := [page for page in pages if any(f in page.read_text(encoding="utf-8") for f in here)]:
        session.error(f"These pages say where they were built: {', '.join(map(str, told))}")


# --- what is published ---------------------------------------------------------------------------


@nox.session
def wheel(session):
    """Build the wheel and the source distribution into dist/; check that all is in them."""
    session.install("build", "twine")
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build", silent=True)
    (built,), (sdist,) = Path("dist").glob("*.whl"), Path("dist").glob("*.tar.gz")
    inside = {name for name in zipfile.ZipFile(built).namelist() if ".dist-info/" not in name}
    kinds = ("*.py", "py.typed", "datasets/data/*.csv")
    package = {path.as_posix() for kind in kinds for path in Path("reservoir").rglob(kind)}
    if inside != package:
        lost, alien = sorted(package - inside), sorted(inside - package)
        session.error(f"{built} lacks {lost}, has too much: {alien}")
    with tarfile.open(sdist) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        "pyproject.toml",
        "setup.py",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "tests/conftest.py",
    }
    if lost := sorted((package | needed) - shipped):
        session.error(f"{sdist} lacks {lost}")
    # what the package index will show; twine does not see links that lead nowhere there
    session.run("twine", "check", "--strict", str(built), str(sdist))
    with zipfile.ZipFile(built) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        shown = archive.read(metadata).decode()
    if links := re.findall(r"""(?:\]\(|(?:href|src)=")(?![a-z]+:|#)([^)"]+)""", shown):
        session.error(f"{built}: these links hold only in a checkout: {', '.join(links)}")
    session.log(f"{built}: {len(inside)} files; {sdist}: {len(shipped)} entries")


@nox.session(requires=["wheel"])
def core(session):
    """Run the fast tests of what has to do with extras, and all doctests, without any."""
    (built,) = Path("dist").glob("*.whl")
    session.install(str(built), "pytest", "pytest-xdist", "hypothesis")
    for extra in ("matplotlib", "numba", "pandas"):
        if imports(session, extra):
            session.error(f"{extra} is here: this environment must have no extra")
    # `pytest`, unlike `python -m pytest`, leaves the checkout off the path: the wheel is tested
    folders = [f"tests/{folder}" for folder in WITHOUT_EXTRAS]
    session.run("pytest", "-n", "auto", *(session.posargs or [*folders, "--pyargs", "reservoir"]))
