"""Data from users, read once: `read` returns the `Sequences` in any container.

They hold the rows of all sequences, their ids, and the form of the container.
"""

from reservoir._tables.inputs import (
    check_enough_rows,
    plain_table,
    read_series,
    read_whole_series,
)
from reservoir._tables.reading import column_number, container_of, read, sequence_lengths
from reservoir._tables.sequences import Sequences
from reservoir._tables.time_column import Clock, check_leak_below_one

__all__ = [
    "Clock",
    "Sequences",
    "check_enough_rows",
    "check_leak_below_one",
    "column_number",
    "container_of",
    "plain_table",
    "read",
    "read_series",
    "read_whole_series",
    "sequence_lengths",
]
