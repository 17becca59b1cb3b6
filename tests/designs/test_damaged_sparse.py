"""Sparse matrices whose indices point outside are refused at every entrance, before compiled code follows them."""

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl.designs import as_design

RNG = np.random.default_rng(40)
DENSE = RNG.standard_normal((12, 6)) * (RNG.random((12, 6)) < 0.6)
Y = RNG.standard_normal((12, 2))
LAM = go.weights.oscar(6)


def compressed(change, kind=sp.csr_array):
    X = kind(DENSE)
    change(X)
    return X


def put(name, place, value):
    """Change an entry of one of the arrays that a matrix is made of."""

    def change(X):
        getattr(X, name)[place] = value

    return change


def cut(name):
    def change(X):
        setattr(X, name, getattr(X, name)[:-1])

    return change


def far_entry():
    X = sp.coo_array(DENSE)
    X.coords[1][3] = 10**6
    return X


def far_in_lists():
    X = sp.lil_array(DENSE)
    X.rows[2][0] = 10**6
    return X


def falls_without_entries():
    X = sp.csr_array((12, 6))
    X.indptr[1:-1] = 10**6
    return X


def fractions():
    X = sp.csr_array(DENSE)
    X.indices = X.indices + 0.5
    return X


KINDS = {"csr": sp.csr_array, "csc": sp.csc_array, "csr_matrix": sp.csr_matrix, "bsr": sp.bsr_array}
CHANGES = {
    "an index too large": put("indices", 2, 10**6),
    "a negative index": put("indices", 2, -1),
    "indptr falls": put("indptr", 1, 30),
    "indptr ends behind the data": put("indptr", -1, 10**6),
    "indptr starts late": put("indptr", 0, 1),
    "indptr is short": cut("indptr"),
    "data are short": cut("data"),
}
DAMAGED = {
    f"{name}: {what}": lambda kind=kind, change=change: compressed(change, kind)
    for name, kind in KINDS.items()
    for what, change in CHANGES.items()
} | {
    "coo": far_entry,
    "lil": far_in_lists,
    "indptr falls where nothing is stored": falls_without_entries,
    "indices are fractions": fractions,
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_refused(name):
    with pytest.raises(ValueError, match=r"X is a damaged sparse matrix of shape \(12, 6\)"):
        as_design(DAMAGED[name]())


FITTED = go.GroupOWLRegressor(0.1).fit(DENSE, Y)
CLASSIFIER = go.GroupOWLClassifier(0.1).fit(DENSE, Y[:, 0] > 0)
ENTRANCES = {
    "solve": lambda X: go.solve(X, Y, LAM),
    "lam_max": lambda X: go.lam_max(X, Y, LAM),
    "screener": lambda X: go.SafeScreener(X, Y, LAM),
    "path": lambda X: go.group_owl_path(X, Y, alphas=2),
    "statistics": lambda X: go.SufficientStatistics.from_arrays(X, Y),
    "fit": lambda X: go.GroupOWLRegressor(0.1).fit(X, Y),
    "search": lambda X: go.GroupOWLRegressorCV(alphas=2, cv=2).fit(X, Y),
    "predict": FITTED.predict,
    "score": lambda X: FITTED.score(X, Y),
    "verify": lambda X: FITTED.verify(X, Y),
    "predict_proba": CLASSIFIER.predict_proba,
}


@pytest.mark.parametrize("damage", ["csr: an index too large", "csc: indptr falls", "coo"])
@pytest.mark.parametrize("name", ENTRANCES)
def test_every_entrance_looks(name, damage):
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        ENTRANCES[name](DAMAGED[damage]())


def test_a_stored_matrix_is_checked_too(tmp_path):
    sp.save_npz(tmp_path / "X.npz", DAMAGED["csr: an index too large"]())
    with pytest.raises(RuntimeError, match=r"X\.npz cannot be read: X is a damaged sparse matrix"):
        as_design(tmp_path / "X.npz")


def test_unsorted_entries_and_duplicates_are_no_damage_and_stay_with_their_owner():
    X = sp.csr_array(DENSE)
    assert X.has_canonical_format  # which SciPy remembers
    X.indices = np.concatenate([X.indices[a:b][::-1] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)])
    X.data = np.concatenate([X.data[a:b][::-1] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)])
    before = X.indices.copy(), X.data.copy()
    design = as_design(X)
    np.testing.assert_array_equal(design.X.toarray(), DENSE)
    assert np.all(np.diff(design.X.indices[: design.X.indptr[1]]) > 0)
    np.testing.assert_array_equal(X.indices, before[0])
    np.testing.assert_array_equal(X.data, before[1])
