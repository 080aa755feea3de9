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
from reservoir._tables.targets import (
    is_per_row,
    plain_rows,
    read_labels,
    read_targets,
    read_weights,
    with_targets,
)
from reservoir._tables.time_column import in_steps, step_of, with_gaps

__all__ = [
    "Sequences",
    "check_enough_rows",
    "container_of",
    "in_steps",
    "is_per_row",
    "plain_rows",
    "read_labels",
    "read_one",
    "read_targets",
    "read_weights",
    "step_of",
    "with_gaps",
    "with_targets",
    "plain_table",
    "read",
    "read_series",
    "read_whole_series",
    "sequence_lengths",
]
