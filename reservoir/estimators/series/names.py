"""Names of series in messages, and the Python that changes the rows of a series."""

from __future__ import annotations

from typing import Any

from reservoir._validation.wording import index_replaced, put, variable_of


class SeriesName(str):
    """Name of one series of a panel in messages: text, with the container that the series is in.

    Attributes
    ----------
    variable : str
        The variable that contains the panel.
    kind : str
        As `Panel.kind`.
    key : any
        The id of the series.
    id_name : any
        The name of the column of ids, if there is one.
    """

    variable: str
    kind: str
    key: Any
    id_name: Any

    @classmethod
    def of(
        cls, variable: str, kind: str, key: Any, id_name: Any = None, *, alone: bool = False
    ) -> SeriesName:
        """Return the name of the series with an id; the name of the panel if it is alone."""
        which = "column" if kind == "columns" else "series"
        made = cls(variable if alone else f"{which} {key!r} of {variable}")
        made.variable, made.kind, made.key, made.id_name = variable, kind, key, id_name
        return made

    @property
    def holder(self) -> str:
        """The Python expression of the table that contains the series: "y", or "y[2]" of a list."""
        in_list = self.kind in ("list", "objects", "stack")
        return f"{self.variable}[{self.key}]" if in_list else self.variable


def changed(name: str, made: str) -> str:
    """Return the statement that replaces the rows of a series.

    Parameters
    ----------
    name : str
        Name of the series in messages. Series that share a table are all changed, one by one.
    made : str
        An expression in which `rows` is the series.
    """
    if isinstance(name, SeriesName) and name.kind == "long":
        each = f"{made}.assign(**{{{name.id_name!r}: key}})"
        groups = f"{name.variable}.groupby({name.id_name!r}, sort=False)"
        return f"{name.variable} = pd.concat([{each} for key, rows in {groups}])"
    if isinstance(name, SeriesName) and name.kind == "levels":
        y = name.variable
        one = put("rows", f"{y}.xs(key)", made)
        return (
            f"{y} = pd.concat({{key: {one} for key in {y}.index.droplevel(-1).unique()}}, "
            f"names={y}.index.names)"
        )
    return f"{variable_of(name)} = {put('rows', variable_of(name), made)}"


def changed_index(name: str, made: str) -> str:
    """Return the statement that replaces the index; `made` is an expression of `index`."""
    in_levels = isinstance(name, SeriesName) and name.kind == "levels"
    return index_replaced(variable_of(name), made, in_levels=in_levels)


def numbered(name: str) -> str:
    """Return the statement that numbers the rows of a series from 0."""
    if isinstance(name, SeriesName) and name.kind == "levels":
        return changed(name, "rows.reset_index(drop=True)")
    return f"{variable_of(name)} = {variable_of(name)}.reset_index(drop=True)"


def without_index(name: str) -> str | None:
    """Return the statement that drops the index; None where ids would be lost with it."""
    if isinstance(name, SeriesName) and name.kind in ("levels", "long"):
        return None
    return f"{variable_of(name)} = {variable_of(name)}.to_numpy()"
