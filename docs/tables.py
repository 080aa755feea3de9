"""Mark tables for narrow screens: prose becomes stacked blocks, numbers scroll sideways.

A Sphinx extension. It reads each table's text, gives it the class `table-stacks` or
`table-scrolls`, and each cell of a stacked table the heading of its column; `_static/site.css` does
the rest.
"""

from statistics import mean

from docutils import nodes
from docutils.transforms import Transform
from sphinx.writers.html5 import HTML5Translator

PROSE = 20  # a column of prose has as many letters in its mean cell
CONDITIONS = ("case", "data", "series", "you ", "your ")  # how a first heading that asks may begin
ANSWERS = ("use", "do", "measure")  # what the column that answers may be called
WANTED = "and want"  # a second heading that completes the case: such tables are read in order


def rows_of(table):
    """Return the text of the heading's cells, and the rows of cells below it."""
    (group,) = table.findall(nodes.tgroup)
    heads = [entry.astext().strip() for part in group.findall(nodes.thead) for entry in part[0]]
    (body,) = group.findall(nodes.tbody)
    return heads, [list(row) for row in body]


def prose_columns(rows):
    """Return the columns, the first aside, whose mean cell is text rather than a figure."""
    letters = [[sum(map(str.isalpha, entry.astext())) for entry in row] for row in rows]
    means = [mean(column) for column in zip(*letters, strict=False)]
    return [i for i, length in enumerate(means) if i and length >= PROSE]


def answer_column(heads, prose):
    """Return the column to show first: what to do in the case that the first column names.

    Where a case takes two columns, what you have and what you want, the case comes first.
    """
    if not heads or WANTED in heads or not heads[0].lower().startswith(CONDITIONS):
        return 0
    named = [i for i, head in enumerate(heads) if head.lower() in ANSWERS]
    return (named or prose[-1:])[0]


class NarrowTables(Transform):
    """Choose between blocks and scrolling for every table of a page."""

    default_priority = 900

    def apply(self):
        """Mark the tables."""
        for table in self.document.findall(nodes.table):
            heads, rows = rows_of(table)
            prose = prose_columns(rows)
            table["classes"].append("table-stacks" if prose else "table-scrolls")
            if prose:
                label(heads, rows, answer_column(heads, prose))


def label(heads, rows, first):
    """Give the cells of a stacked table their headings, and mark the one to show first."""
    for row in rows:
        row[first]["classes"].append("cell-first")
        for head, entry in zip(heads, row, strict=False):
            entry["data_label"] = head


def visit_entry(translator, node):
    """Write a cell, with its heading as `data-label`."""
    HTML5Translator.visit_entry(translator, node)
    if node.get("data_label"):
        quoted = translator.attval(node["data_label"])
        before, close, after = translator.body[-1].partition(">")
        translator.body[-1] = f'{before} data-label="{quoted}"{close}{after}'


def depart_entry(translator, node):
    """Close the cell."""
    HTML5Translator.depart_entry(translator, node)


def setup(app):
    """Register the transform and the cell's writer."""
    app.add_transform(NarrowTables)
    app.add_node(nodes.entry, override=True, html=(visit_entry, depart_entry))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
