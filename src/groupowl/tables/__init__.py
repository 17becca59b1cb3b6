"""Tables from files: features, targets, groups, weights and ids of samples, checked.

A reader makes a :class:`~groupowl.tables.sheet.Sheet` of a file, columns by name; :class:`Roles` say what they are
for; :func:`load_table` makes a :class:`Table`, or raises a :class:`TableError` that says where the file is wrong.
"""

from .loader import load_features, load_table
from .readers import FORMATS, read_sheet
from .table import TASKS, Dialect, Features, MissingTargetsError, Reading, Roles, Table, TableError

__all__ = [
    "FORMATS",
    "TASKS",
    "Dialect",
    "Features",
    "MissingTargetsError",
    "Reading",
    "Roles",
    "Table",
    "TableError",
    "load_features",
    "load_table",
    "read_sheet",
]
