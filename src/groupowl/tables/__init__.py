"""Tables from files: features, targets, groups, weights and ids of samples, checked.

A reader makes a :class:`~groupowl.tables.sheet.Sheet` of a file, columns by name; :class:`Roles` say what they are
for; :func:`load_table` makes a :class:`Table`, or raises a :class:`TableError` that says where the file is wrong.
"""

from .loader import load_features, load_table
from .readers import FORMATS, check_dialect, find_files, read_sheet
from .streams import Converted, Kept, convert
from .table import TASKS, Dialect, Features, MissingTargetsError, Reading, Roles, Table, TableError

__all__ = [
    "FORMATS",
    "TASKS",
    "Converted",
    "Dialect",
    "Features",
    "Kept",
    "MissingTargetsError",
    "Reading",
    "Roles",
    "Table",
    "TableError",
    "check_dialect",
    "convert",
    "find_files",
    "load_features",
    "load_table",
    "read_sheet",
]
