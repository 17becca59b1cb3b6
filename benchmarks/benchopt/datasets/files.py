"""Real data sets in a folder of .npz files.

The design is ``X``, or ``data``, ``indices``, ``indptr`` and ``shape`` of a CSR matrix; targets are ``Y`` (n_samples,
n_tasks), or labels ``y`` from 0. benchopt's setting ``data_paths: group_owl: FOLDER`` says where the folder is; without
it, it is ``data/group_owl`` beside the objective.
"""

import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset
from benchopt.config import get_data_path


class Dataset(BaseDataset):
    """Data sets of the paper, by the names of their files."""

    name = "files"
    requirements = ["numpy", "scipy"]
    parameters = {"file": ["plantgo", "cmufaces", "bibtex"]}

    def get_data(self):
        path = get_data_path("group_owl") / f"{self.file}.npz"
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist: name the folder in data_paths: group_owl of config.yml.")
        with np.load(path, allow_pickle=False) as arrays:
            X = self.load_design(arrays)
            if "Y" in arrays:
                return {"X": X, "Y": arrays["Y"].astype(float), "loss": "squared"}
            return {"X": X, "Y": np.eye(arrays["y"].max() + 1)[arrays["y"]], "loss": "multinomial"}

    def load_design(self, arrays):
        """The design, dense or sparse as in the file."""
        if "X" in arrays:
            return arrays["X"].astype(float)
        pieces = (arrays["data"].astype(float), arrays["indices"].astype(np.int32), arrays["indptr"])
        return sp.csc_array(sp.csr_array(pieces, shape=tuple(arrays["shape"])))
