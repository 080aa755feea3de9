"""Facts of the public names: the methods of a class, the version of a name, parameters."""

import importlib
import inspect
from dataclasses import dataclass

# The version that the names of a module came with; of packages, those of all their modules. A name
# that comes later says so itself: `.. versionadded:: 0.2.0` at the end of its docstring.
VERSIONS = {"reservoir": "0.1.0"}


def find(fullname):
    """Return the object of a public name, such as reservoir.metrics.nrmse."""
    module, _, name = fullname.rpartition(".")
    return getattr(importlib.import_module(module), name)


def is_own(member):
    """Tell whether what a class has is this package's, not scikit-learn's or Python's."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    return (getattr(function, "__module__", None) or "").startswith("reservoir")


def methods_of(fullname):
    """Return the names of the public methods that the page of a class documents."""
    return [
        name
        for name, member in inspect.getmembers(find(fullname), inspect.isroutine)
        if not name.startswith("_") and is_own(member) and inspect.getdoc(member)
    ]


def parameters_of(objects):
    """Return the parameters of all documented callables, from `full name: (..., kind)`."""
    names = set()
    for fullname, (*_, kind) in objects.items():
        owner, _, name = fullname.rpartition(".")
        if kind in {"class", "function"}:
            names.update(inspect.signature(find(fullname)).parameters)
        elif kind in {"method", "classmethod", "staticmethod"}:
            names.update(inspect.signature(getattr(find(owner), name)).parameters)
    return names - {"self"}


def version_note(fullname):
    """Return a directive that says since when a name exists, unless its docstring does."""
    if ".. versionadded::" in (inspect.getdoc(find(fullname)) or ""):
        return ""
    module = fullname
    while module not in VERSIONS:
        module = module.rpartition(".")[0]  # the nearest entry decides
    return f".. versionadded:: {VERSIONS[module]}"


def note_data(app, what, name, obj, options, lines):
    """Say it of data, too: tables and constants stand on the group's page, without a template."""
    if what == "data" and ".. versionadded::" not in "\n".join(lines):
        lines.extend(["", version_note(name)])


@dataclass(frozen=True)
class Pages:
    """What templates may ask; an object without state, so that Sphinx can compare and keep it."""

    methods_of = staticmethod(methods_of)
    version_note = staticmethod(version_note)


def setup(app):
    """Give the templates what they ask."""
    app.setup_extension("sphinx.ext.autodoc")
    app.config.autosummary_context = {"pages": Pages()}
    app.connect("autodoc-process-docstring", note_data, priority=900)  # after numpydoc
    return {"parallel_read_safe": True}
