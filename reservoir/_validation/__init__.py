"""Validation of user input: arguments are rejected only here.

Every message states the value, its bound, and the remedy.
"""

from reservoir._validation.continued import continued, ending_of, steps_between
from reservoir._validation.index import Ending, Stamps, index_of
from reservoir._validation.kinds import check_no_dates
from reservoir._validation.memory import (
    NotEnoughMemory,
    advising,
    check_fits,
    dense,
    raise_naming,
    room_for,
)
from reservoir._validation.plain import as_array, as_plain, check_real, check_unmasked
from reservoir._validation.scalars import (
    SumError,
    as_generator,
    caller_level,
    check_choice,
    check_count,
    check_fixed,
    check_instance,
    check_n_jobs,
    check_number,
    check_numbers,
    check_penalties,
    check_scaling,
    check_switch,
    check_unchanged,
    fixed_parameters,
    is_same,
    resolve_washout,
)
from reservoir._validation.times import Times

__all__ = [
    "Ending",
    "NotEnoughMemory",
    "Stamps",
    "Times",
    "SumError",
    "advising",
    "as_array",
    "as_generator",
    "as_plain",
    "caller_level",
    "check_choice",
    "check_count",
    "check_fixed",
    "check_fits",
    "check_instance",
    "check_n_jobs",
    "check_number",
    "check_numbers",
    "check_penalties",
    "check_real",
    "check_scaling",
    "check_switch",
    "check_unchanged",
    "check_unmasked",
    "continued",
    "dense",
    "ending_of",
    "fixed_parameters",
    "index_of",
    "is_same",
    "raise_naming",
    "check_no_dates",
    "resolve_washout",
    "room_for",
    "steps_between",
]
