"""Small real data that scikit-learn brings along: nothing is downloaded."""

import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import load_diabetes, load_digits, load_linnerud
from sklearn.preprocessing import PolynomialFeatures, StandardScaler


class Dataset(BaseDataset):
    """One task (diabetes, with products of columns), three tasks (linnerud, likewise) or ten classes (digits)."""

    name = "scikit-learn"
    requirements = ["scikit-learn"]
    parameters = {"data": ["diabetes", "linnerud", "digits"]}

    def get_data(self):
        if self.data == "digits":
            digits = load_digits()
            return {"X": digits.data / 16.0, "Y": np.eye(10)[digits.target], "loss": "multinomial"}
        bunch = load_diabetes() if self.data == "diabetes" else load_linnerud()
        X = PolynomialFeatures(degree=2, include_bias=False).fit_transform(bunch.data)
        Y = bunch.target.reshape(len(X), -1)
        return {"X": StandardScaler().fit_transform(X), "Y": StandardScaler().fit_transform(Y), "loss": "squared"}
