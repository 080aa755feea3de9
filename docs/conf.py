"""Sphinx configuration: python -m sphinx -W -b html docs docs/_build/html"""

import importlib.util
import os
import re
import shutil
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
os.environ.setdefault("MPLBACKEND", "Agg")
sys.path[:0] = [str(HERE.parent), str(HERE)]  # document the checkout, by the modules beside

import api_pages
import inventories

import reservoir

project = "reservoir"
author = "The reservoir developers"
copyright = f"2026, {author}"
release = reservoir.__version__

extensions = [
    "api_pages",
    "myst_parser",
    "name_links",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
    "pictures",
    "reference_lists",
    "sphinx_copybutton",
    "sphinx_design",
    "tables",
]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"reservoir {release}"
html_css_files = ["site.css"]
html_js_files = ["keyboard.js"]
html_search_scorer = str(HERE / "_static" / "search_scorer.js")
pygments_style = "a11y-high-contrast-light"  # every colour at 7:1 on its background
pygments_dark_style = "a11y-dark"

# MathJax comes from a package: no page asks another server for anything. Of the package's 24 MB
# a page needs no other input or output than TeX and HTML, and speech in English.
MATHJAX = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static"
html_static_path = ["_static", str(MATHJAX)]
mathjax_path = "mathjax/tex-chtml.js"
exclude_patterns = ["_build"]
exclude_patterns += [f"mathjax/{name}" for name in ("*-full*", "*mml*", "*svg*", "node-main.js")]
exclude_patterns += [f"mathjax/{name}" for name in ("adaptors", "input/mml*", "output/svg*")]
exclude_patterns += ["mathjax/sre/mathmaps/[!be]*"]
default_role = "literal"
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(numpy|scipy|sklearn|pandas|matplotlib)\..*")]

intersphinx_mapping = inventories.write_all(HERE / "_build" / "inventories")
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it, with shapes
numpydoc_show_class_members = False  # the class template lists them
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Examples run where they lie, and may write pictures: they lie in a copy. Tutorials are a gallery
# of their own.
SCRIPTS = HERE / "_build" / "scripts"
shutil.rmtree(SCRIPTS, ignore_errors=True)
shutil.copytree(
    HERE.parent / "examples",
    SCRIPTS / "gallery",
    ignore=shutil.ignore_patterns("benchmarks", "tutorials", "__pycache__"),
)
shutil.copytree(HERE.parent / "examples" / "tutorials", SCRIPTS / "tutorials")

sphinx_gallery_conf = {
    "examples_dirs": ["_build/scripts/tutorials", "_build/scripts/gallery"],
    "gallery_dirs": ["tutorials", "gallery"],
    "filename_pattern": r"[/\\]plot_",
    "subsection_order": "gallery_order.section_rank",
    "within_subsection_order": "gallery_order.PageOrder",
    "image_scrapers": ("matplotlib", "pictures.animation"),
    "abort_on_example_error": True,
    # what drawing returns is not shown under a cell; estimators and frames are
    "ignore_repr_types": r"<class '(list|tuple|matplotlib\.|sklearn\.metrics\._plot\.)",
    "parallel": 2,  # pages at the same time, each in a process
    "thumbnail_size": (640, 448),
    "write_computation_times": False,
    "backreferences_dir": "_build/backreferences",  # which pages use a name: minigalleries
    "doc_module": ("reservoir",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
}
# Examples run without a display; that they cannot pop up a window is no defect of theirs.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def skip_foreign(app, what, name, member, skip, options):
    """Leave out what a class has from elsewhere: scikit-learn documents its own methods."""
    return skip or not api_pages.is_own(member)


def quote_attributes(app, what, name, obj, options, lines):
    """Keep a shape such as (n_features_in_,) from being read as a reference."""
    for i, line in enumerate(lines):
        if ">>>" not in line:
            lines[i] = re.sub(r"(?<=\()(\w+_)(?=[,)])", r"``\1``", line)


def setup(app):
    app.connect("autodoc-process-docstring", quote_attributes)
    app.connect("autodoc-skip-member", skip_foreign)
