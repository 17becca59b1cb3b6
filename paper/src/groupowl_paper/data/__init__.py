"""The data sets of the paper's experiments, from a folder of files that people download.

:data:`DATASETS` is the table of the sets by name, :func:`find_datasets` says which of them a folder holds, and
:func:`load_dataset` reads one. Stand-ins for sets that are hard to get have names of their own and never appear
under the name of the paper's set.

What counts of a file is the paper's choice: the training part, and the first ``n_tasks`` labels or classes, where
the file holds more. How the values are prepared is ours, since the paper does not say. :func:`prepare` does
all of it, and ``preprocessing`` of an entry says it in words:

- Each column is divided by its largest absolute value; a column of zeros stays one. This leaves 0/1 features as
  they are, and puts term counts between 0 and 1.
- Grey levels and signal strengths have one unit in all columns, so they are divided by one number, the largest of
  all (255 for Mnist): a pixel that is always dark does not become as large as the others.
- Signals of IndoorLoc are counted from -105 dBm, just below the weakest, so that 0 means "not heard".
- Targets of a regression are centered; classes become one-hot rows.
- Features are not centered, and sparse sets stay sparse.
"""

from .loading import (
    Dataset,
    FoundDataset,
    MissingDataset,
    dataset_files,
    find_datasets,
    load_dataset,
    prepare,
    read_dataset,
)
from .table import DATASETS, DatasetEntry

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetEntry",
    "FoundDataset",
    "MissingDataset",
    "dataset_files",
    "find_datasets",
    "load_dataset",
    "prepare",
    "read_dataset",
]
