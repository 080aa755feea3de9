"""Write the code in messages: Python that users can paste, with the names of their variables."""

from __future__ import annotations

import re
from typing import Any

_ONE_OF_SEVERAL = re.compile(r"(?:.* )?(?:sequence|trajectory|table) (\d+) of (\w+)", re.IGNORECASE)


def code(text: str) -> str:
    """Return Python that a user can paste, quoted in backticks for a message.

    `tests/contracts/test_code_in_messages.py` runs the code of each call of this function.
    """
    return f"`{text}`"


def variable_of(name: str) -> str:
    """Return the Python variable for a name in messages, such as "X[3]" for "sequence 3 of X".

    If `name` has an attribute `holder`, that is the variable.
    """
    if hasattr(name, "holder"):
        return str(name.holder)
    found = _ONE_OF_SEVERAL.fullmatch(name)
    return f"{found[2]}[{found[1]}]" if found else name.split()[-1]


def put(word: str, by: str, text: str) -> str:
    """Return Python code in which the name `word` is replaced by the expression `by`."""
    return re.sub(rf"\b{word}\b", by, text)


def replaced(name: str, made: str) -> str:
    """Return the statement that replaces a table, or each table of a list, by an expression.

    Parameters
    ----------
    name : str
        Name of the table in messages. If it is a table in a list, all tables of the list are
        replaced.
    made : str
        The Python expression for the new table, in which `rows` is the old table.
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
        The Python expression for the positions of the rows, or for a mask, in which `rows` is the
        table.
    partner : (name, value), or None
        Name and value of the variable that has the same rows; None, or a value of None, if there
        is no such variable.

    Returns
    -------
    str or None
        None if the table is one of several in a list, and there is a partner.
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
        The Python expression for the new index, in which `index` is the old index.
    in_levels : bool, default=False
        Whether the index is the last level of a MultiIndex.
    others : tuple of str, default=()
        Names of the variables that are tables with the same index, or lists of such tables.
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
