"""The data of the study: real sets from packages and from a folder, and simulated ones whose groups are known."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets as sk
from sklearn.model_selection import train_test_split

import groupowl as go

#: Features whose correlations are at least this large in size, all pairs of them, are a group of real data.
SAME = 0.8
# Of large sets this many samples are drawn, once; fewer of those with classes or labels, which take longest.
_MOST_SAMPLES, _MOST_CLASSIFIED, _MOST_GENES = 500, 300, 1000
#: Share of the samples that a split of real data tests on, and samples of simulated training and test sets.
TEST_SHARE, N_TRAIN, N_TEST = 1 / 3, 100, 1000


class Absent(Exception):
    """Data that are not on this machine; the message says what would bring them."""


@dataclass(frozen=True, eq=False)
class Data:
    """A data set as the study sees it.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray
        Numbers, of shape (n_samples,) or (n_samples, n_tasks); classes; or labels of 0 and 1, (n_samples, n_labels).
    is_classified : bool
        Whether y has classes or labels.
    groups : ndarray of int of shape (n_features,)
        Features of one group share a number.
    effects : ndarray of bool of shape (n_features,) or None
        Features that have an effect, where that is known: then training sets are drawn anew, not by splitting.
    """

    X: Any
    y: Any
    is_classified: bool
    groups: Any
    effects: Any = None

    def split(self, number: int) -> tuple[Any, Any]:
        """Training and test samples: random ones, or those of a fresh training set where data are simulated."""
        n = len(self.X)
        if self.effects is not None:
            return np.arange(N_TRAIN * number, N_TRAIN * (number + 1)), np.arange(n - N_TEST, n)
        classes = self.y if self.is_classified and self.y.ndim == 1 else None
        rows = train_test_split(np.arange(n), test_size=TEST_SHARE, random_state=number, stratify=classes)
        return rows[0], rows[1]


@dataclass(frozen=True)
class Source:
    """Where a data set comes from: real data, or known groups; ``load`` raises Absent where there are none."""

    name: str
    block: str
    load: Callable[[], Data]


# Real data ------------------------------------------------------------------------------------------------


def correlated_groups(X: Any, least: float = SAME) -> Any:
    """Groups of features by complete linkage: all pairs of a group have correlations of at least ``least`` in size."""
    from scipy.cluster.hierarchy import fcluster, linkage

    deviations = X - X.mean(axis=0)
    norms = np.linalg.norm(deviations, axis=0)
    varies = norms > 1e-12 * max(float(norms.max()), 1e-300)
    groups = np.arange(X.shape[1]) + X.shape[1]  # columns without variation are alone
    if varies.sum() > 1:
        columns = deviations[:, varies] / norms[varies]
        distances = 1.0 - np.abs(columns.T @ columns)
        upper = np.triu_indices(len(distances), 1)
        tree = linkage(np.clip(distances[upper], 0.0, None), "complete")
        groups[varies] = fcluster(tree, 1.0 - least, "distance")
    return groups


def prepared(X: Any, y: Any, *, is_classified: bool) -> Data:
    """A sample of the rows, where there are many, and columns that vary in it; numbers to predict have deviation 1."""
    X, y = _drawn(np.asarray(X, dtype=float), np.asarray(y), _MOST_CLASSIFIED if is_classified else _MOST_SAMPLES)
    X = X[:, X.std(axis=0) > 1e-12]
    if not is_classified:
        y = (y - y.mean(axis=0)) / y.std(axis=0)
    return Data(X, y, is_classified, correlated_groups(X))


def _of_sklearn(load: Callable[..., Any], is_classified: bool) -> Data:
    return prepared(*load(return_X_y=True), is_classified=is_classified)


def _interactions() -> Data:
    """Diabetes with squares and products of all pairs: 64 columns."""
    from sklearn.preprocessing import PolynomialFeatures

    X, y = sk.load_diabetes(return_X_y=True)
    return prepared(PolynomialFeatures(2, include_bias=False).fit_transform(X), y, is_classified=False)


def _package_file(package: str, *path: str) -> Path:
    """A file that a package carries; the package itself, and all that it needs, is not imported."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise Absent(f"{package} is not installed (pip install --no-deps {package})")
    file = Path(found.submodule_search_locations[0]).joinpath(*path)
    if not file.exists():
        raise Absent(f"this version of {package} has no file {'/'.join(path)}")
    return file


def _table(file: Path, **options: Any) -> Any:
    import pandas as pd

    return pd.read_csv(file, **options)


def _islp(name: str, target: str, is_classified: bool, transform: Callable[[Any], Any]) -> Data:
    """A table of ISLP: rows with missing values are left out, categories become columns of 0 and 1."""
    import pandas as pd

    table = _table(_package_file("ISLP", "data", f"{name}.csv")).dropna()
    table = table.drop(columns=[column for column in ("name", "ID") if column in table])
    X = pd.get_dummies(table.drop(columns=target), drop_first=True)
    return prepared(X.to_numpy(dtype=float), transform(table[target].to_numpy()), is_classified=is_classified)


def _same(y: Any) -> Any:
    return y


def _khan() -> Data:
    parts = [_table(_package_file("ISLP", "data", f"Khan_{name}.csv")) for name in ("xtrain", "xtest")]
    classes = [_table(_package_file("ISLP", "data", f"Khan_{name}.csv")) for name in ("ytrain", "ytest")]
    y = np.concatenate([table.to_numpy().ravel() for table in classes])
    return prepared(np.vstack([table.to_numpy() for table in parts]), y, is_classified=True)


def _nci60() -> Data:
    """Tumors of the eight kinds of which there are five or more, by the genes of largest variance."""
    X = np.load(_package_file("ISLP", "data", "NCI60data.npy"))
    y = _table(_package_file("ISLP", "data", "NCI60labs.csv")).to_numpy().ravel().astype(str)
    kinds, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, kinds[counts >= 5])
    genes = np.sort(np.argsort(-X.var(axis=0), kind="stable")[:_MOST_GENES])
    return prepared(X[kept][:, genes], y[kept], is_classified=True)


def _star98() -> Data:
    """Share of pupils above the median in mathematics, from 20 columns, many of them products of others."""
    table = _table(_package_file("statsmodels", "datasets", "star98", "star98.csv"))
    return prepared(table.iloc[:, 2:], (table["PR50M"] / table["MATHTOT"]).to_numpy(), is_classified=False)


def _elnino() -> Data:
    """Temperatures of the sea: the first six months of a year from all twelve of the year before."""
    months = _table(_package_file("statsmodels", "datasets", "elnino", "elnino.csv")).iloc[:, 1:].to_numpy(dtype=float)
    return prepared(months[:-1], months[1:, :6], is_classified=False)


def _anes96() -> Data:
    """Party identification, seven classes, from eight answers and figures."""
    file = _package_file("statsmodels", "datasets", "anes96", "anes96.csv")
    table = _table(file, sep="\t", quotechar="'")
    X = table.drop(columns=["PID", "vote"]).assign(popul=np.log(table["popul"] + 0.1))
    return prepared(X, table["PID"].to_numpy(), is_classified=True)


def _stored(folder: Path | None, name: str, prepare: Callable[[Any, Any], Data]) -> Data:
    """A file of the folder of data that ``--data`` names."""
    if folder is None or not (folder / f"{name}.npz").exists():
        raise Absent(f"there is no {name}.npz in the folder of data (--data DIR)")
    import scipy.sparse as sp

    with np.load(folder / f"{name}.npz") as file:
        if "data" in file:
            parts = file["data"].astype(float), file["indices"].astype(np.int32), file["indptr"]
            X = sp.csr_array(parts, shape=tuple(file["shape"]))
        else:
            X = file["X"].astype(float)
        return prepare(X, file["Y"].astype(float) if "Y" in file else file["y"])


def _drawn(X: Any, y: Any, most: int) -> tuple[Any, Any]:
    """At most so many rows of a matrix, dense."""
    if len(y) <= most and not hasattr(X, "toarray"):
        return X, y
    rows = np.sort(np.random.default_rng(0).choice(len(y), min(most, len(y)), replace=False))
    X = X[rows]
    return (X.toarray() if hasattr(X, "toarray") else X), y[rows]


def _labels(X: Any, Y: Any, *, n_labels: int, least: int = 10) -> Data:
    """The most frequent labels, and terms that occur in at least ``least`` of the samples drawn."""
    X, Y = _drawn(X, Y, _MOST_CLASSIFIED)
    Y = Y[:, np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:n_labels])]
    return prepared(X[:, (X != 0).sum(axis=0) >= least], Y, is_classified=True)


def _classes(X: Any, y: Any, *, least: int = 0, n_classes: int | None = None) -> Data:
    kept = np.ones(len(y), dtype=bool) if n_classes is None else y < n_classes
    X, y = _drawn(X[kept], y[kept], _MOST_CLASSIFIED)
    return prepared(X[:, (X != 0).sum(axis=0) >= least], y, is_classified=True)


def _faces(X: Any, y: Any) -> Data:
    """Every third pixel in both directions of faces that look left, right or straight ahead."""
    small = X[y < 3].reshape(-1, 60, 64)[:, ::3, ::3].reshape(-1, 440)
    return prepared(small, y[y < 3], is_classified=True)


def _places(X: Any, Y: Any) -> Data:
    """Latitude and longitude from signals; those not heard are set to the weakest."""
    X, Y = _drawn(np.where(X == 100.0, -105.0, X), Y, _MOST_SAMPLES)
    return prepared(X, Y, is_classified=False)


def real_sources(folder: Path | None) -> list[Source]:
    """Real data sets, whether or not they are on this machine."""
    loads: dict[str, Callable[[], Data]] = {
        "diabetes": partial(_of_sklearn, sk.load_diabetes, False),
        "diabetes, products": _interactions,
        "linnerud": partial(_of_sklearn, sk.load_linnerud, False),
        "breast cancer": partial(_of_sklearn, sk.load_breast_cancer, True),
        "wine": partial(_of_sklearn, sk.load_wine, True),
        "iris": partial(_of_sklearn, sk.load_iris, True),
        "digits": partial(_of_sklearn, sk.load_digits, True),
        "Boston": partial(_islp, "Boston", "medv", False, _same),
        "Hitters": partial(_islp, "Hitters", "Salary", False, np.log),
        "College": partial(_islp, "College", "Outstate", False, _same),
        "Auto": partial(_islp, "Auto", "mpg", False, _same),
        "Carseats": partial(_islp, "Carseats", "Sales", False, _same),
        "Khan": _khan,
        "NCI60": _nci60,
        "star98": _star98,
        "El Nino": _elnino,
        "anes96": _anes96,
        "PlantGO": partial(_stored, folder, "plantgo", partial(_labels, n_labels=4)),
        "bibtex": partial(_stored, folder, "bibtex", partial(_labels, n_labels=4)),
        "tmc2007": partial(_stored, folder, "tmc2007_500", partial(_labels, n_labels=4)),
        "Reuters": partial(_stored, folder, "reuters21578", partial(_classes, least=12, n_classes=5)),
        "UJIIndoorLoc": partial(_stored, folder, "indoorloc", _places),
        "CMU faces": partial(_stored, folder, "cmufaces", _faces),
        "protein": partial(_stored, folder, "protein_val", _classes),
    }
    return [Source(name, "real", load) for name, load in loads.items()]


# Known groups ---------------------------------------------------------------------------------------------

#: Features in a group, and groups with an effect.
GROUP_SIZE, N_ACTIVE = 5, 4
#: Training sets that can be drawn.
MOST_SPLITS = 50


def simulated(d: int, q: int, correlation: float, is_partial: bool) -> Data:
    """Groups of five; in four of them all have equal effects, or three of five unequal ones; signal as large as noise.

    The variants are those of the study of groups in the reproduction of the paper.
    """
    n = N_TRAIN * MOST_SPLITS + N_TEST
    drawn = go.datasets.make_correlated_groups(
        n,
        d,
        q,
        n_informative=GROUP_SIZE * N_ACTIVE,
        group_size=GROUP_SIZE,
        correlation=correlation,
        structure="block",
        random_state=0,
    )
    sizes = (1.5, 1.0, 0.5, 0.0, 0.0) if is_partial else (1.0,) * GROUP_SIZE
    B = drawn.B * np.tile(sizes, d // GROUP_SIZE)[:, None]
    Z = drawn.X @ B
    Y = Z / Z.std() + np.random.default_rng([d, q]).standard_normal(Z.shape)
    return Data(drawn.X, Y[:, 0] if q == 1 else Y, False, np.arange(d) // GROUP_SIZE, B.any(axis=1))


def known_sources() -> list[Source]:
    """Simulated settings: a task or five, 150 or 500 features, whole and partial groups."""
    settings = [
        (150, 1, 0.7, False),
        (150, 1, 0.95, False),
        (150, 5, 0.7, False),
        (150, 5, 0.95, False),
        (150, 5, 0.95, True),
        (150, 1, 0.9, True),
        (500, 1, 0.9, False),
        (500, 5, 0.9, False),
        (500, 5, 0.9, True),
    ]
    sources = []
    for d, q, correlation, is_partial in settings:
        name = f"d={d}, q={q}, correlation {correlation:g}, {'partial' if is_partial else 'whole'} groups"
        sources.append(Source(name, "known groups", partial(simulated, d, q, correlation, is_partial)))
    return sources
