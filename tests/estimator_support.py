"""What the tests of estimators share: small data of every kind and the documented objective in dense NumPy."""

import numpy as np
import scipy.sparse as sp

import groupowl as go


def regression_data(seed=0, *, n=40, d=30, q=3):
    """Correlated groups with columns of different scale and offset, and targets with an offset."""
    data = go.datasets.make_correlated_groups(n, d, q, random_state=seed)
    rng = np.random.default_rng(seed)
    return data.X * rng.uniform(0.5, 2.0, d) + rng.standard_normal(d), data.Y + 1.0


def labelled_data(seed=0, *, n=60, d=30, n_classes=3):
    """The same with noisy labels 0, 1, ..., all of them present."""
    X, Y = regression_data(seed, n=n, d=d, q=n_classes)
    noise = np.random.default_rng(seed + 1).gumbel(size=Y.shape)
    labels = np.argmax(Y / Y.std(axis=0) + noise, axis=1)
    labels[:n_classes] = np.arange(n_classes)
    return X, labels


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)


def objective(X, Y, B, intercept, alpha, weights, *, sample_weight=None, loss="squared"):
    """``1/W sum_i w_i f_i + alpha sum_j weights_j ||B_[j]||`` with ``B`` (n_features, n_targets), from scratch."""
    w = np.ones(len(Y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    Z = dense(X) @ B + intercept
    if loss == "squared":
        losses = 0.5 * np.sum((Y - Z) ** 2, axis=1)
    else:
        top = Z.max(axis=1)
        losses = np.log(np.exp(Z - top[:, None]).sum(axis=1)) + top - np.sum(Y * Z, axis=1)
    norms = np.sort(np.linalg.norm(B, axis=1))[::-1]
    return float(w @ losses / w.sum() + alpha * norms @ weights)


def fitted_state(estimator):
    """All attributes, with arrays copied, to see whether anything changes."""
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in vars(estimator).items()}


def same_state(before, after):
    return before.keys() == after.keys() and all(
        np.array_equal(before[name], after[name])
        if isinstance(before[name], np.ndarray)
        else before[name] is after[name]
        for name in before
    )
