"""Make every code span that is a public name, or a call of one, a link to where it is documented.

Pages write plain `ESNRegressor`, `plotting.forecast` or `np.logspace(...)`, and stay readable where
nothing is built. A span that looks like one of our names and has no target is a warning, hence an
error of the build.
"""

import re

import inventories
from api_pages import parameters_of
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
SPAN = re.compile(rf"(?P<keyword>\w+ ?= ?)?(?P<name>{NAME})(?P<call>\(.*)?", re.DOTALL)
# What examples call modules and objects: `esn.to_rnn()` is a method of ESNRegressor.
STANDS_FOR = {
    "np": "numpy",
    "pd": "pandas",
    "plt": "matplotlib.pyplot",
    "esn": "ESNRegressor",
    "rnn": "RNNRegressor",
    "session": "estimators.Stream",
    "forecaster": "ESNForecaster",
    "certificate_": "stability.Certificate",
}
# Methods that several classes have and that mean the same in all of them: the one to read. A
# function that shares its name with the plot of its result is the function.
HOMES = {
    "backtest": "model_selection.backtest",
    "stream": "ESNRegressor.stream",
    "to_rnn": "ESNRegressor.to_rnn",
    "model.stream": "ESNRegressor.stream",
    "partial_fit": "ESNRegressor.partial_fit",
}
MEMBERS = {"method", "attribute", "property", "classmethod", "staticmethod"}


class Names:
    """What is documented, by every name that a page may use for it."""

    def __init__(self, own, foreign=(), parameters=()):
        self.own, self.foreign, self.parameters = own, dict(foreign), set(parameters)
        self.by_suffix: dict[str, list[str]] = {}
        for name in [*own, *self.foreign]:
            parts = name.split(".")
            for i in range(len(parts)):
                self.by_suffix.setdefault(".".join(parts[i:]), []).append(name)

    def resolve(self, text, scope=""):
        """Return the full name of what a span means, or None.

        `scope` is the full name of the object whose docstring holds the span: what stands beside
        it comes first. Elsewhere a word that is also a parameter must be called to be a name, and
        one that is also a method needs a module or a class before it.
        """
        if not (span := SPAN.fullmatch(text)):
            return None
        name, called = span["name"], bool(span["call"])
        if span["keyword"] and not called and "." not in name and name.islower():
            return None  # `solver=auto` is a value
        if name in self.parameters and not called:
            return None
        while "." in scope:  # not as far up as the package itself
            if f"{scope}.{name}" in self.own:
                return f"{scope}.{name}"
            scope = scope.rpartition(".")[0]
        first, dot, rest = name.partition(".")
        if dot:
            name = f"{STANDS_FOR.get(first, first)}.{rest}"
        owner = self._choose(name.rpartition(".")[0])
        of_class = owner and owner.rpartition(".")[2][0].isupper()
        # parameters and attributes are documented with their class
        return self._choose(HOMES.get(name, name)) or (owner if of_class else None)

    def _choose(self, name):
        found = self.by_suffix.get(name, [])
        own = [full for full in found if full in self.own]
        if not own:
            plain = name.islower() and "." not in name and "_" not in name
            foreign = [full for full in found if not plain or full.startswith("sklearn.")]
            return foreign[0] if len(foreign) == 1 else None
        if name in own:
            return name
        # one object in all: a function beside methods of the same name could be any of them
        return own[0] if len(own) == 1 else None

    def looks_public(self, text):
        """Tell whether a span that leads nowhere looks as if it should lead to one of our names."""
        span = SPAN.fullmatch(text)
        if not span or span["keyword"] or text.endswith(".py"):
            return False
        name, called = span["name"], bool(span["call"])
        if "." in name:
            modules = {full for full, (*_, kind) in self.own.items() if kind == "module"}
            return name.partition(".")[0] in {full.rpartition(".")[2] for full in modules}
        kinds = {self.own[full][2] for full in self.by_suffix.get(name, []) if full in self.own}
        if kinds & MEMBERS or (name in self.parameters and not called):
            return False  # a method that several classes have, or a parameter
        return bool(kinds)


def collect(app, env):
    """Gather the names once all pages are read."""
    objects = env.domains["py"].objects
    own = {
        name: (entry.docname, entry.node_id, entry.objtype)
        for name, entry in objects.items()
        if not entry.aliased  # where it is defined: another name of the same
    }
    foreign = {}
    for path in sorted(inventories.LISTS.glob("*.txt")):
        address, names = inventories.read(path)
        foreign.update({name: f"{address}{page}#{name}" for name, (_, page) in names.items()})
    app.documented_names = Names(own, foreign, parameters_of(own))


def place_of(node):
    """Return whether a span is a link or a heading already, and whose docstring it stands in."""
    scope, taken = "", False
    while node := node.parent:
        taken |= isinstance(node, (nodes.reference, addnodes.pending_xref, nodes.title))
        if isinstance(node, addnodes.desc) and not scope and node[0].get("ids"):
            scope = node[0]["ids"][0]
    return taken, scope


class LinkNames(SphinxPostTransform):
    """Put a reference around each code span that is a name."""

    default_priority = 8  # before the references that pages write themselves are resolved

    def run(self, **kwargs):
        """Link what is neither a link nor part of a heading."""
        names = self.app.documented_names
        for literal in list(self.document.findall(nodes.literal)):
            taken, scope = place_of(literal)
            if taken:
                continue
            text = literal.astext()
            if target := names.resolve(text, scope):
                literal.replace_self(self._reference(names, target, literal.deepcopy()))
            elif names.looks_public(text):
                logging.getLogger(__name__).warning(
                    "%r looks like a public name and leads nowhere", text, location=literal
                )

    def _reference(self, names, target, child):
        if target in names.foreign:
            return nodes.reference("", "", child, internal=False, refuri=names.foreign[target])
        page, anchor, _ = names.own[target]
        return make_refnode(self.app.builder, self.env.docname, page, anchor, child, target)


def setup(app):
    """Collect the names when all pages are read; link them when pages are written."""
    app.connect("env-updated", collect)
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
