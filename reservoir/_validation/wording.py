"""Code in messages: Python that users can paste, with the names of their variables."""

from __future__ import annotations

import re
from typing import Any

_ONE_OF_SEVERAL = re.compile(r"(?:.* )?(?:sequence|trajectory|table) (\d+) of (\w+)", re.IGNORECASE)


def code(text: str) -> str:
    """Return Python that a user can paste, as messages show it.

    `tests/contracts/test_code_in_messages.py` runs the code of each call of this function.
    """
    return f"`{text}`"


def variable_of(name: str) -> str:
    """Return the variable of a name in messages: "X[3]" for "sequence 3 of X", else "X".

    A name may have it as its attribute `holder`.
    """
    if hasattr(name, "holder"):
        return str(name.holder)
    found = _ONE_OF_SEVERAL.fullmatch(name)
    return f"{found[2]}[{found[1]}]" if found else name.split()[-1]


def put(word: str, by: str, text: str) -> str:
    """Return Python with one name replaced by another expression."""
    return re.sub(rf"\b{word}\b", by, text)


def replaced(name: str, made: str) -> str:
    """Return the statement that replaces a table, or each table of a list, by an expression.

    Parameters
    ----------
    name : str
        Name of the table in messages; the name of one in a list replaces all.
    made : str
        An expression in which `rows` is the table.
    """
    given = variable_of(name)
    if "[" in given:
        given = given.partition("[")[0]
        return f"{given} = [{made} for rows in {given}]"
    return f"{given} = {put('rows', given, made)}"


def paired(name: str, which: str, partner: tuple[str, Any] | None) -> str | None:
    """Return the statement that selects rows of a table, and the same rows of its partner.

    Parameters
    ----------
    name : str
        Name of the pandas table in messages.
    which : str
        An expression of `rows`, the table, for the positions or a mask.
    partner : (name, value), or None
        The variable with the same rows; None, or a value of None, if there is none.

    Returns
    -------
    str or None
        None for one of several tables with partners.
    """
    given = variable_of(name)
    if partner is None or partner[1] is None:
        return replaced(name, f"rows.iloc[{which}]")
    if "[" in given:
        return None
    picked = put("rows", given, which)
    other, value = partner
    taken = f"{other}.iloc" if hasattr(value, "iloc") else f"np.asarray({other})"
    return f"{given}, {other} = {given}.iloc[{picked}], {taken}[{picked}]"


def index_replaced(
    name: str, made: str, *, in_levels: bool = False, others: tuple[str, ...] = ()
) -> str:
    """Return the statement that replaces the index of a table, or of all tables of a list.

    Parameters
    ----------
    name : str
        Name of the table in messages.
    made : str
        An expression in which `index` is the index.
    in_levels : bool, default=False
        Whether it is the last level of a MultiIndex.
    others : tuple of str, default=()
        Variables that are tables with the same index, or lists of as many.
    """
    index = f"{variable_of(name)}.index"
    if others and "[" in index:
        lists = ", ".join(f"*{each}" for each in (index.partition("[")[0], *others))
        return f"for rows in [{lists}]: rows.index = {put('index', 'rows.index', made)}"
    targets = " = ".join((index, *(f"{each}.index" for each in others)))
    if in_levels:
        return (
            f"{targets} = {index}.set_levels({put('index', f'{index}.levels[-1]', made)}, level=-1)"
        )
    return f"{targets} = {put('index', index, made)}"
