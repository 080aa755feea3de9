"""Code in messages: Python that users paste, in terms of the variables that they have."""

from __future__ import annotations

import re

_ONE_OF_SEVERAL = re.compile(r"(?:.* )?(?:sequence|trajectory|table) (\d+) of (\w+)", re.IGNORECASE)


def code(text: str) -> str:
    """Return Python that a user can paste, as messages show it.

    `tests/contracts/test_code_in_messages.py` runs the code of each place that calls this.
    """
    return f"`{text}`"


def variable_of(name: str) -> str:
    """Return the variable that messages call `name`: "X[3]" for "sequence 3 of X", else "X"."""
    found = _ONE_OF_SEVERAL.fullmatch(name)
    return f"{found[2]}[{found[1]}]" if found else name.split()[-1]


def replaced(name: str, made: str) -> str:
    """Return the statement that replaces a table, or each of a list, by what is made of `rows`.

    Parameters
    ----------
    name : str
        What messages call the table; one of several stands for all.
    made : str
        An expression in which `rows` is the table.
    """
    given = variable_of(name)
    if "[" in given:
        given = given.partition("[")[0]
        return f"{given} = [{made} for rows in {given}]"
    return f"{given} = " + re.sub(r"\brows\b", given, made)
