"""A release: version and date agree, and the README holds on the package index."""

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
    assert "On PyPI from 0.1.0: `pip install reservoir-esn`" in before
