"""Correlated columns, few of them with coefficients, which tasks share."""

import numpy as np
from benchopt import BaseDataset
from benchopt.datasets.simulated import make_correlated_data


class Dataset(BaseDataset):
    """Regression with one or several tasks, or classes."""

    name = "simulated"
    requirements = ["numpy"]
    parameters = {
        "n_samples, n_features, n_tasks": [(100, 1000, 1), (100, 1000, 5), (300, 7500, 20)],
        "loss": ["squared"],
        "rho": [0.5],
    }
    test_parameters = {
        "n_samples, n_features, n_tasks": [(30, 50, 3), (30, 50, 1)],
        "loss": ["squared"],
    }

    def get_data(self):
        X, Y, _ = make_correlated_data(
            self.n_samples,
            self.n_features,
            n_tasks=self.n_tasks,
            rho=self.rho,
            snr=3,
            density=min(1.0, 20 / self.n_features),
            random_state=self.get_seed(),
        )
        Y = Y.reshape(self.n_samples, self.n_tasks)
        if self.loss == "multinomial":
            Y = np.eye(self.n_tasks)[np.argmax(Y, axis=1)]
        return {"X": X, "Y": Y, "loss": self.loss}
