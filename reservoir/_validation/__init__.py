"""Validation of user input: arguments are rejected only here.

Every message states the value, its bound, and the remedy.
"""

from reservoir._validation.columns import column_number
from reservoir._validation.continued import continued, ending_of, steps_between
from reservoir._validation.dates import check_no_dates
from reservoir._validation.index import Ending, Stamps, index_of
from reservoir._validation.memory import (
    NotEnoughMemory,
    advising,
    check_fits,
    dense,
    raise_naming,
    room_for,
)
from reservoir._validation.plain import as_plain, check_real, check_unmasked
from reservoir._validation.scalars import (
    SumError,
    as_generator,
    caller_level,
    check_choice,
    check_count,
    check_instance,
    check_n_jobs,
    check_number,
    check_numbers,
    check_penalties,
    check_scaling,
    check_switch,
)
from reservoir._validation.sequences import (
    Sequences,
    check_enough_rows,
    plain_table,
)
from reservoir._validation.targets import (
    is_per_row,
    plain_rows,
    read_labels,
    read_last_labels,
    read_last_targets,
    read_last_weights,
    read_some_labels,
    read_targets,
    read_weights,
    with_targets,
)
from reservoir._validation.time_stamps import Clock, check_leak_below_one, step_of, with_gaps
from reservoir._validation.times import Times
from reservoir._validation.unchanged import check_fixed, check_unchanged, fixed_parameters, is_same
from reservoir._validation.washout import resolve_washout

__all__ = [
    "Clock",
    "Ending",
    "NotEnoughMemory",
    "Sequences",
    "Stamps",
    "Times",
    "SumError",
    "advising",
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
    "column_number",
    "continued",
    "dense",
    "ending_of",
    "fixed_parameters",
    "index_of",
    "is_per_row",
    "is_same",
    "plain_rows",
    "plain_table",
    "raise_naming",
    "read_labels",
    "read_some_labels",
    "read_last_labels",
    "read_last_targets",
    "read_last_weights",
    "read_targets",
    "read_weights",
    "check_no_dates",
    "check_leak_below_one",
    "check_enough_rows",
    "resolve_washout",
    "room_for",
    "step_of",
    "steps_between",
    "with_gaps",
    "with_targets",
]
