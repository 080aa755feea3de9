"""Data from users, read once: `read` returns the `Sequences` in any container.

They hold the rows of all sequences, their ids, and the form of the container.
"""

from reservoir._tables.inputs import (
    check_enough_rows,
    plain_table,
    read_one,
    read_series,
    read_whole_series,
)
from reservoir._tables.reading import container_of, read, sequence_lengths
from reservoir._tables.sequences import Sequences

__all__ = [
    "Sequences",
    "check_enough_rows",
    "container_of",
    "read_one",
    "plain_table",
    "read",
    "read_series",
    "read_whole_series",
    "sequence_lengths",
]
