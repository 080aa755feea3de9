"""Data from users, read once: `read` makes a `Table` of any container.

It holds the values of all sequences, their bounds and ids, and the form of the container.
"""

from reservoir._tables.inputs import read_series, read_whole_series
from reservoir._tables.reading import container_of, read, sequence_lengths
from reservoir._tables.table import Form, Table

__all__ = [
    "Form",
    "Table",
    "container_of",
    "read",
    "read_series",
    "read_whole_series",
    "sequence_lengths",
]
