"""A release: version and date agree, and the README holds on the package index."""

import ast
import builtins
import importlib.util
import re

import pytest

import reservoir
from helpers import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="needs the checkout")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def setup():
    pytest.importorskip("setuptools")
    spec = importlib.util.spec_from_file_location("readme_for_index", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_version_and_date_are_the_same_everywhere():
    heading = re.search(r"^## (\S+) - (\d{4}-\d\d-\d\d)$", text_of("CHANGELOG.md"), re.MULTILINE)
    cited = dict(
        re.findall(r"^(version|date-released): (.+)$", text_of("CITATION.cff"), re.MULTILINE)
    )
    assert cited == {"version": heading[1], "date-released": heading[2]}
    assert reservoir.__version__ == heading[1]


def test_without_an_address_no_link_is_left_that_leads_nowhere(setup):
    readme = text_of("README.md")
    assert setup.relative_links(readme)
    shown = setup.for_index(readme)
    assert setup.relative_links(shown) == []
    assert "<img" not in shown
    assert "*Left" not in shown  # the caption of the pictures
    assert "[tutorial]" not in shown
    assert shown.count("```") == readme.count("```")


def test_with_an_address_each_link_is_absolute(setup):
    readme, source = text_of("README.md"), "https://example.org/us/it"
    shown = setup.for_index(readme, source, "1.2")
    assert setup.relative_links(shown) == []
    for target in setup.relative_links(readme):
        kind = "raw" if target.endswith(".png") else "blob"
        assert f"{source}/{kind}/v1.2/{target}" in shown
        assert (ROOT / target.partition("#")[0]).exists()


def test_links_of_all_forms_are_found(setup):
    text = '[a](b.md#c) ![p](p.png) <a href="x.py"><img src="y.png"></a> [n](#n) [w](https://w.org)'
    assert setup.relative_links(text) == ["b.md#c", "p.png", "x.py", "y.png"]
    assert setup.for_index("[a](b.md), [w](https://w.org)") == "a, [w](https://w.org)"


def test_the_readme_is_short_and_begins_with_the_checkout():
    readme = text_of("README.md")
    assert len(readme.split()) <= 900
    before = readme.partition("```bash")[0]
    assert "not yet on PyPI" in before  # as docs/install.md says
    assert "not yet on PyPI" in text_of("docs/install.md")


def test_each_block_of_the_readme_stands_alone():
    for text in re.findall(r"```python\n(.*?)```", text_of("README.md"), re.DOTALL):
        nodes = list(ast.walk(ast.parse(text)))
        imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        known = {alias.asname or alias.name for node in imports for alias in node.names}
        names = [node for node in nodes if isinstance(node, ast.Name)]
        known |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
        assert {node.id for node in names} <= known | set(dir(builtins))
        assert ("plotting." in text) == ("plt.show()" in text)  # a script opens a window


def test_what_a_reader_pastes_installs_compiled_kernels():
    for name in ("README.md", "docs/index.md", "docs/install.md"):
        shell = "\n".join(re.findall(r"```bash\n(.*?)```", text_of(name), re.DOTALL))
        commands = re.findall("pip install .*", shell)
        assert commands
        assert all("fast" in command for command in commands), name


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ({}, True),
        ({"python_version": "3.10"}, True),
        ({"python_version": "3.15"}, True),
        ({"python_version": "3.16"}, False),  # no wheel of numba so far
        ({"platform_python_implementation": "PyPy"}, False),
        ({"sys_platform": "darwin", "platform_machine": "arm64"}, True),
        ({"sys_platform": "darwin", "platform_machine": "x86_64"}, False),  # no longer
        ({"sys_platform": "win32", "platform_machine": "AMD64"}, True),
    ],
)
def test_numba_is_installed_where_it_has_a_wheel(where, wanted):
    requirements = pytest.importorskip("packaging.requirements")
    linux = {"sys_platform": "linux", "platform_machine": "x86_64", "python_version": "3.12"}
    linux["platform_python_implementation"] = "CPython"
    needed = re.findall(r'"(numba>[^"]*)"', text_of("pyproject.toml"))
    assert len(needed) == 2
    for each in needed:
        assert requirements.Requirement(each).marker.evaluate(linux | where) == wanted
