"""Groups of columns, their scales, and factors of the penalty: against definitions, a conic solver, and each other."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import chdtri
from sklearn.exceptions import ConvergenceWarning

import groupowl as go
from groupowl.inputs import penalty_options
from groupowl.model import build_model
from groupowl.model_selection.freedom import degrees_of_freedom
from groupowl.problem import build_problem
from groupowl.screening import RULES, safe_rows
from support import ENTRIES

LOSSES = ["squared", "multinomial", "logistic", "poisson", "huber"]


@dataclass(frozen=True)
class Grouped:
    """A random problem with groups and factors, and the definition of its penalty."""

    X: np.ndarray
    Y: np.ndarray
    lam: np.ndarray
    groups: np.ndarray
    factor: np.ndarray
    options: dict
    loss: str
    fit_intercept: bool
    sample_weight: np.ndarray | None
    as_given: object

    def arguments(self):
        data = {"loss": self.loss, "fit_intercept": self.fit_intercept, "sample_weight": self.sample_weight}
        return {"X": self.as_given, "Y": self.Y, "lam": self.lam} | data | self.options

    def problem(self):
        arguments = self.arguments()
        asked = {name: arguments.pop(name) for name in self.options}
        return build_problem(**arguments, options=penalty_options(self.X.shape[1], None, **asked))

    @property
    def w(self):
        return np.ones(len(self.X)) if self.sample_weight is None else self.sample_weight

    @property
    def scale(self):
        """What the penalty multiplies coefficients of X with; columns are divided by it."""
        scale, sizes = self.factor.copy(), np.bincount(self.groups)[self.groups]
        kind = self.options["group_scale"]
        if kind == "size":
            scale *= np.sqrt(sizes)
        elif kind == "frobenius":
            variance = self.w @ (self.X - self.w @ self.X / self.w.sum()) ** 2 / self.w.sum()
            whole = np.sqrt(np.bincount(self.groups, variance)[self.groups])
            scale *= np.where(sizes > 1, whole, 1.0)
        return scale

    @property
    def units(self):
        """Columns of each unit that is penalized."""
        labels = self.groups[self.factor > 0]
        return [np.flatnonzero((self.groups == k) & (self.factor > 0)) for k in np.unique(labels)]

    @property
    def metrics(self):
        """Matrices whose products with the rows of each unit have the norms that the penalty sees."""
        scale = np.where(np.isfinite(self.scale), self.scale, 0.0)  # what is left out is zero
        if self.options["group_scale"] != "orthonormal":
            return [np.diag(scale[rows]) for rows in self.units]
        root = np.sqrt(self.w / self.w.sum())[:, None]
        free = [np.ones((len(self.X), 1))] if self.fit_intercept else []
        free = root * np.hstack([*free, self.X[:, self.factor == 0]])
        X = root * self.X
        X = X - free @ np.linalg.lstsq(free, X, rcond=None)[0] if free.shape[1] else X
        return [
            scale[rows[0]] * np.linalg.qr(X[:, rows], mode="r") if len(rows) > 1 else np.diag(scale[rows])
            for rows in self.units
        ]

    def unit_norms(self, B):
        return np.array([np.linalg.norm(M @ B[r]) for M, r in zip(self.metrics, self.units, strict=True)])

    def objective(self, B, intercept):
        Z = self.X @ B + intercept
        if self.loss in ENTRIES:
            loss = self.w @ ENTRIES[self.loss](self.Y, Z).sum(axis=1)
        else:
            top = Z.max(axis=1, keepdims=True)
            loss = self.w @ (np.log(np.exp(Z - top).sum(axis=1)) + top[:, 0] - np.sum(self.Y * Z, axis=1))
        norms = self.unit_norms(B)
        return float(loss + np.sort(norms)[::-1] @ self.lam + 0.5 * self.options["ridge"] * norms @ norms)

    def conic_minimum(self, accuracy=1e-9):
        (n, d), q = self.X.shape, self.Y.shape[1]
        B, b0 = cp.Variable((d, q)), cp.Variable((1, q))
        Z = self.X @ B + (np.ones((n, 1)) @ b0 if self.fit_intercept else 0.0)
        w = self.w[:, None] * np.ones((1, q))
        if self.loss == "squared":
            loss = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(w), self.Y - Z))
        elif self.loss in ENTRIES:
            entries = {"logistic": cp.logistic, "poisson": cp.exp, "huber": lambda Z: 0.5 * cp.huber(self.Y - Z, 1.345)}
            linear = 0.0 if self.loss == "huber" else cp.multiply(self.Y, Z)
            loss = cp.sum(cp.multiply(w, entries[self.loss](Z) - linear))
        else:
            loss = cp.sum(cp.multiply(self.w, cp.log_sum_exp(Z, axis=1) - cp.sum(cp.multiply(self.Y, Z), axis=1)))
        out = np.flatnonzero(np.isinf(self.scale))
        pairs = zip(self.metrics, self.units, strict=True)
        norms = cp.hstack([cp.norm(cp.vec(M @ B[rows], "F")) for M, rows in pairs])
        drops = self.lam - np.append(self.lam[1:], 0.0)
        penalty = sum(drops[k] * cp.sum_largest(norms, k + 1) for k in range(len(self.lam)) if drops[k] > 0)
        ridge = 0.5 * self.options["ridge"] * cp.sum_squares(norms)
        limits = [B[out] == 0.0] if len(out) else []
        limits += [B >= 0.0] if self.options["positive"] else []
        program = cp.Problem(cp.Minimize(loss + penalty + ridge), limits)
        with warnings.catch_warnings():  # what is not quite as accurate as asked for is judged by the objective
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            program.solve(solver=cp.CLARABEL, tol_gap_abs=accuracy, tol_gap_rel=accuracy, tol_feas=accuracy)
        at = np.maximum(B.value, 0.0) if self.options["positive"] else B.value.copy()
        at[out] = 0.0
        return self.objective(at, b0.value if self.fit_intercept else 0.0)


def draw(seed, loss=None, n=30):
    """Groups of one to four columns anywhere, factors of which some are zero or infinite, at random."""
    rng = np.random.default_rng([7, seed])
    loss = loss or str(rng.choice(LOSSES))
    d, q = int(rng.integers(6, 16)), int(rng.integers(2 if loss == "multinomial" else 1, 4))
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * rng.standard_normal((d, d)) / np.sqrt(d))
    X = (X + 0.5 * rng.standard_normal(d)) * 10 ** rng.uniform(-0.5, 0.5, d)
    groups = rng.integers(0, max(d // 2, 2), d)
    factor = np.ones(d)
    if rng.random() < 0.6:
        factor = rng.uniform(0.5, 2.0, d)
        if rng.random() < 0.3 and loss != "multinomial":
            factor[groups == groups[0]] = 0.0
        if rng.random() < 0.4:
            factor[np.flatnonzero(groups != groups[0])[:1]] = np.inf
    scale = str(rng.choice(["size", "none", "frobenius", "orthonormal"]))
    if scale == "orthonormal":  # one factor for each group
        factor = factor[np.array([np.flatnonzero(groups == k)[-1] for k in groups])]
    if not np.any((factor > 0) & np.isfinite(factor)):
        factor = np.ones(d)
    if sparse := bool(rng.random() < 0.3):
        X *= rng.random((n, d)) < 0.5
    Z = X[:, rng.permutation(d)[:4]] @ rng.standard_normal((4, q))
    Z /= max(np.std(Z), 1e-3)
    Y = {
        "squared": lambda: Z + rng.standard_normal((n, q)) + 1.0,
        "huber": lambda: Z + rng.standard_t(2, (n, q)),
        "logistic": lambda: (Z + 2.0 * rng.logistic(size=(n, q)) > 0).astype(float),
        "poisson": lambda: rng.poisson(np.exp(np.clip(0.5 * Z, -3, 2))).astype(float) + (np.arange(n) == 0)[:, None],
        "multinomial": lambda: np.eye(q)[np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)],
    }[loss]()
    if loss in ("logistic", "multinomial"):  # no label is constant
        Y[:q] = np.eye(q)
        Y[q : 2 * q] = np.eye(q)[::-1]
    options = {
        "feature_groups": groups.tolist(),
        "group_scale": scale,
        "penalty_factor": None if np.all(factor == 1.0) else factor,
        "ridge": float(rng.uniform(0.1, 5.0)) if rng.random() < 0.3 else 0.0,
        "positive": bool(
            scale != "orthonormal" and loss != "multinomial" and rng.random() < 0.3 and np.all(factor > 0)
        ),
    }
    data = {
        "loss": loss,
        "fit_intercept": bool(rng.random() < 0.5),
        "sample_weight": rng.uniform(0.3, 3.0, n) if rng.random() < 0.4 else None,
    }
    given = sp.csr_array(X) if sparse else X
    n_units = len(np.unique(groups[factor > 0]))
    weights = getattr(go.weights, rng.choice(["oscar", "linear", "constant"]))(n_units)
    lam = rng.uniform(0.1, 0.9) * go.lam_max(given, Y, weights, **data, **options) * weights
    return Grouped(X, Y, lam, groups, factor, options, as_given=given, **data)


@pytest.mark.parametrize("seed", range(60))
def test_solutions_are_those_of_a_conic_solver(seed):
    case = draw(seed)
    result = go.solve(**case.arguments(), tol=1e-10)
    assert result.converged
    own = case.objective(result.B, result.intercept)
    assert own == pytest.approx(result.primal, rel=1e-9, abs=1e-9)
    minimum = case.conic_minimum()
    scale = max(abs(minimum), 1.0)
    assert own - result.gap - 1e-8 * scale <= minimum
    assert own <= minimum + result.gap + 1e-8 * scale
    selected = result.B.any(axis=1)
    for rows in () if case.options["positive"] else case.units:  # in or out together, but for what is left out
        inside = rows[np.isfinite(case.scale[rows])]
        assert len(set(selected[inside])) <= 1
    assert not result.B[np.isinf(case.factor)].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_is_selected_from_lam_max_up(loss):
    for seed in range(4):
        case = draw(seed, loss)
        arguments = case.arguments()
        weights = case.lam / case.lam[0]
        data = {name: value for name, value in arguments.items() if name != "lam"}
        largest = go.lam_max(**data, weights=weights)
        penalized = case.factor > 0
        arguments["lam"] = largest * weights
        assert not go.solve(**arguments).B[penalized].any()
        arguments["lam"] = 0.97 * largest * weights
        assert go.solve(**arguments, tol=1e-9).B[penalized].any()


# Safety ---------------------------------------------------------------------------------------------------


def iterates(B, intercept, rng):
    """From zero to optimal, some with an error in one group alone."""
    yield np.zeros_like(B), intercept
    for size in 10 ** rng.uniform(-5, 0.3, 3):
        yield B + size * rng.standard_normal(B.shape) * np.abs(B).max(initial=1e-2), intercept
    yield rng.uniform(0.5, 1.5) * B, intercept
    yield B, intercept + 0.1 * rng.standard_normal(len(intercept))
    yield np.maximum(B, 0.0), intercept
    yield B, intercept


def reference(case):
    """The solution as exact as it can be proved, without screening."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # at the limit of the arithmetic
        result = go.solve(**case.arguments(), tol=1e-12, screening="none", max_iter=100_000)
    assert result.status in ("converged", "precision")
    return result


@pytest.mark.parametrize("block", range(10))
def test_no_unit_is_removed_wrongly_and_bounds_hold(block):
    """300 small problems: bounds at the dual optimum, rows that rules remove, gaps, from any coefficients."""
    n_removed = 0
    for seed in range(1000 + 30 * block, 1000 + 30 * (block + 1)):
        case = draw(seed, n=18)
        problem, rng = case.problem(), np.random.default_rng(seed)
        exact = reference(case)
        near = np.sqrt(2.0 * problem.curvature_at() * exact.gap) * problem.unit_norms
        with np.errstate(all="ignore"):
            optimal = problem.certify(problem.from_input(exact.B, exact.intercept if case.fit_intercept else None))
            best = None
            for B, intercept in iterates(exact.B, exact.intercept, rng):
                coefficients = problem.from_input(B, intercept if case.fit_intercept else None)
                own, best = problem.certify(coefficients), problem.certify(coefficients, best=best)
                for certificate in (own, best):
                    if not np.isfinite(certificate.primal):  # of a wrong sign
                        continue
                    assert certificate.primal - certificate.gap <= exact.primal + 1e-12 * abs(exact.primal), seed
                    for upper in (problem.upper_bounds(certificate), problem.local_bounds(certificate)):
                        assert np.all(upper >= optimal.correlations * (1 - 1e-12) - near), seed
        sizes = np.linalg.norm(exact.B, axis=1)
        is_zero = sizes <= 1e-5 * sizes.max(initial=0.0)
        for rule in ("safe", "paper"):
            loose = go.solve(**case.arguments(), tol=10 ** rng.uniform(-6, -1), screening=rule)
            proved = loose.screened_at >= 0
            assert np.all(is_zero[proved]), seed
            n_removed += int(proved.sum())
            screener = go.SafeScreener(**case.arguments(), rule=rule)
            for B, intercept in iterates(exact.B, exact.intercept, rng):
                report = screener.update(B, intercept if case.fit_intercept else None)
                if not np.isfinite(report.primal):
                    continue
                assert report.primal - report.gap <= exact.primal + 1e-12 * abs(exact.primal), seed
            removed = np.setdiff1d(np.arange(len(sizes)), screener.active)
            assert np.all(is_zero[removed]), seed
            assert len(screener.lam) == sum(np.isin(rows, screener.active).any() for rows in case.units)
    assert n_removed > 100


def test_spectral_norms_are_those_of_the_scaled_columns():
    for seed in range(30):
        case = draw(seed, "squared")
        problem = case.problem()
        if problem.unpenalized.rank or case.options["group_scale"] == "orthonormal":  # whose columns are others
            continue
        X = case.X - (case.w @ case.X / case.w.sum() if case.fit_intercept else 0.0)
        X = np.sqrt(case.w)[:, None] * X / case.scale
        for bound, rows in zip(problem.unit_norms, sorted(case.units, key=min), strict=True):
            exact = np.linalg.norm(X[:, rows], 2)
            assert exact * (1 - 1e-14) <= bound <= exact * (1 + 1e-9)


@pytest.mark.parametrize("name", ["safe", "paper"])
def test_norms_that_are_found_where_they_decide_decide_the_same(name):
    """Constant weights and falling ones, few and many units proved zero; Frobenius norms alone keep no fewer."""
    rule, n_found, n_kept, n_more = RULES[name], 0, 0, 0
    for seed in range(60):
        rng = np.random.default_rng([3, seed])
        X, Y = rng.standard_normal((30, 60)) + rng.standard_normal((30, 1)), rng.standard_normal((30, 2))
        groups, sequence = rng.permutation(np.repeat(np.arange(20), 3)), np.linspace(2.0, rng.choice([0.5, 2.0]), 20)
        options = {"feature_groups": groups, "group_scale": "none"}
        lam = rng.uniform(0.5, 1.0) * go.lam_max(X, Y, sequence, **options) * sequence
        near = go.solve(X, Y, lam, tol=10 ** rng.uniform(-7, -1), **options)
        one, other, third = (build_problem(X, Y, lam, options=penalty_options(60, None, **options)) for _ in range(3))
        candidates = np.sort(rng.permutation(20)[:15])
        certificate = one.certify(one.from_input(near.B, None))
        found = safe_rows(one, certificate, candidates, rule)
        assert other.unit_norms is not None  # all of them
        exact = rule.kept(other.upper_bounds(certificate, two_sided=rule.two_sided)[candidates], lam[:15])
        np.testing.assert_array_equal(found, candidates[exact], err_msg=str(seed))
        more = safe_rows(third, certificate, candidates, rule, refine=False)
        assert set(found) <= set(more)
        assert third.unit_bounds.is_open.all()
        n_found += np.count_nonzero(~one.unit_bounds.is_open)
        n_kept, n_more = n_kept + len(found), n_more + len(more)
    assert 0 < n_found < 0.5 * 60 * 20
    assert 0 < n_kept < n_more


def test_numbers_and_other_labels_are_the_same_groups():
    for labels in ([4, 4, 2, 4, 7], [0, 0, 1, 1, 2], [3, 2, 1, 2, 3], [5] * 5):
        ways = [np.array(labels), labels, [str(label) for label in labels], np.array(labels, dtype=np.uint8)]
        one, *others = (penalty_options(5, None, feature_groups=way) for way in ways)
        assert one.group_names == tuple(dict.fromkeys(map(str, labels)))
        assert [one.group_names[k] for k in one.feature_groups] == [str(label) for label in labels]
        for other in others:
            np.testing.assert_array_equal(other.feature_groups, one.feature_groups)
            assert other.group_names == one.group_names
    alone = penalty_options(5, None, feature_groups=["a", None, "b", float("nan"), "a"])
    assert alone.group_names == ("a", "column 1", "b", "column 3")
    np.testing.assert_array_equal(alone.feature_groups, [0, 1, 2, 3, 0])


# The same as something else ------------------------------------------------------------------------------


def data(n=60, d=10, q=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.2
    return X, X[:, :3] @ rng.standard_normal((3, q)) + rng.standard_normal((n, q))


def test_groups_of_one_and_factors_of_one_change_no_bit():
    X, Y = data()
    lam = 0.3 * go.lam_max(X, Y, "oscar") * go.weights.oscar(10)
    plain = go.solve(X, Y, lam)
    for options in (
        {"feature_groups": list("abcdefghij")},
        {"feature_groups": [[3], [1]]},
        {"penalty_factor": np.ones(10)},
        {"feature_groups": [None] * 10, "penalty_factor": {2: 1.0}, "group_scale": "frobenius"},
    ):
        same = go.solve(X, Y, lam, **options)
        np.testing.assert_array_equal(same.B, plain.B)
        assert same.gap == plain.gap
        fit = go.GroupOWLRegressor(alpha=0.1, **options).fit(X, Y)
        np.testing.assert_array_equal(fit.coef_, go.GroupOWLRegressor(alpha=0.1).fit(X, Y).coef_)
        assert not hasattr(fit, "feature_groups_")


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_groups_of_neighbors_and_scattered_groups_agree(loss):
    """The order of columns does not matter; neighbors are what the compiled kernel serves."""
    X, Y = data(q=3)
    Y = Y if loss == "squared" else np.eye(3)[Y.argmax(axis=1)]
    groups, order = np.repeat(np.arange(5), 2), np.random.default_rng(1).permutation(10)
    weights = go.weights.oscar(5)
    lam = 0.3 * go.lam_max(X, Y, weights, loss=loss, feature_groups=groups) * weights
    one = go.solve(X, Y, lam, loss=loss, feature_groups=groups, tol=1e-11)
    other = go.solve(X[:, order], Y, lam, loss=loss, feature_groups=groups[order], tol=1e-11)
    np.testing.assert_allclose(other.B, one.B[order], atol=1e-4)
    assert abs(one.primal - other.primal) <= one.gap + other.gap
    np.testing.assert_array_equal(other.clusters, one.clusters[order])


def test_factors_are_a_change_of_columns():
    X, Y = data()
    factor = np.random.default_rng(2).uniform(0.3, 3.0, 10)
    lam = 0.3 * go.lam_max(X / factor, Y, "oscar") * go.weights.oscar(10)
    assert go.lam_max(X, Y, "oscar", penalty_factor=factor) == pytest.approx(
        go.lam_max(X / factor, Y, "oscar"), rel=1e-12
    )
    scaled = go.solve(X / factor, Y, lam, tol=1e-12)
    result = go.solve(X, Y, lam, penalty_factor=factor, tol=1e-12)
    np.testing.assert_allclose(result.B, scaled.B / factor[:, None], atol=1e-5)
    assert result.primal == pytest.approx(scaled.primal, rel=1e-10)


def test_a_factor_of_zero_is_an_unpenalized_column():
    X, Y = data()
    by_factor = go.GroupOWLRegressor(alpha=0.2, penalty_factor={1: 0.0, 4: 0.0}).fit(X, Y)
    by_name = go.GroupOWLRegressor(alpha=0.2, unpenalized=[1, 4]).fit(X, Y)
    np.testing.assert_allclose(by_factor.coef_, by_name.coef_, atol=1e-12)
    np.testing.assert_array_equal(by_factor.unpenalized_, [1, 4])
    assert len(by_factor.weights_) == 8


def test_an_infinite_factor_is_a_column_of_zeros():
    X, Y = data()
    zeroed = X.copy()
    zeroed[:, [0, 2]] = 0.0
    lam = 0.2 * go.lam_max(zeroed, Y, "oscar") * go.weights.oscar(10)
    out = go.solve(X, Y, lam, penalty_factor={0: np.inf, 2: np.inf}, tol=1e-12)
    assert not out.B[[0, 2]].any()
    np.testing.assert_allclose(out.B, go.solve(zeroed, Y, lam, tol=1e-12).B, atol=1e-5)


def test_orthonormal_groups_do_not_depend_on_their_coding():
    """Any basis of the span of a group gives the same predictions; columns too many change nothing."""
    X, Y = data()
    groups, rng = [0, 0, 0, 1, 1, 2, 3, 3, 4, 5], np.random.default_rng(4)
    coded = X.copy()
    coded[:, :3] = X[:, :3] @ rng.standard_normal((3, 3))
    coded[:, 3:5] = X[:, 3:5] @ rng.standard_normal((2, 2))
    settings = {"alpha": 0.2, "group_scale": "orthonormal", "tol": 1e-10}
    one = go.GroupOWLRegressor(feature_groups=groups, **settings).fit(X, Y)
    other = go.GroupOWLRegressor(feature_groups=groups, **settings).fit(coded, Y)
    np.testing.assert_allclose(other.predict(coded), one.predict(X), atol=1e-4)
    assert bool(one.verify(X, Y))
    more = np.column_stack([X, X[:, 0] - X[:, 2]])
    more = go.GroupOWLRegressor(feature_groups=[*groups, 0], **settings).fit(more, Y)
    assert more.solve_result_.primal == pytest.approx(one.solve_result_.primal, rel=1e-8)
    problem = build_model(
        X, Y, weights="oscar", options=penalty_options(10, None, feature_groups=groups, group_scale="orthonormal")
    ).problem
    for rows in ([0, 1, 2], [3, 4], [6, 7]):
        np.testing.assert_allclose(
            problem.design.gram(np.array(rows), np.array(rows), problem.samples.w), np.eye(len(rows)), atol=1e-12
        )


def test_orthonormal_groups_need_the_samples(tmp_path):
    X, Y = data()
    settings = {"feature_groups": [[0, 1]], "group_scale": "orthonormal"}
    with pytest.raises(ValueError, match="needs the samples themselves"):
        go.GroupOWLRegressor(**settings).fit(go.SufficientStatistics.from_arrays(X, Y))
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="needs X in memory"):
        go.GroupOWLRegressor(**settings).fit(go.MemmapDesign(tmp_path / "X.npy"), Y)
    with pytest.raises(ValueError, match="the same for all columns of the group 'group 1'"):
        go.GroupOWLRegressor(**settings, penalty_factor={0: 2.0}).fit(X, Y)
    wide = np.hstack([X, X, X])
    wide = sp.csr_array(wide * (wide > 1.8))
    with pytest.raises(ValueError, match="a group of sparse X has 25 of them"):
        go.GroupOWLRegressor(feature_groups=[range(25)], group_scale="orthonormal").fit(wide, Y)
    model = go.GroupOWLRegressorCV(alphas=6, cv=3, **settings).fit(X, Y)
    assert bool(model.verify(X, Y))


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("scale", ["size", "none", "frobenius"])
def test_statistics_and_data_have_the_same_groups(standardize, scale):
    X, Y = data(n=200)
    groups = [0, 1, 0, 1, 2, 2, 2, None, None, 1]
    settings = {"alpha": 0.1, "standardize": standardize, "feature_groups": groups, "group_scale": scale}
    settings["penalty_factor"] = np.linspace(0.5, 2.0, 10)
    whole = go.GroupOWLRegressor(**settings, tol=1e-9).fit(X, Y)
    statistics = go.SufficientStatistics.from_arrays(X, Y)
    summarized = go.GroupOWLRegressor(**settings, tol=1e-9).fit(statistics)
    np.testing.assert_allclose(summarized.coef_, whole.coef_, atol=1e-4)
    np.testing.assert_array_equal(summarized.clusters_, whole.clusters_)
    assert bool(whole.verify(X, Y))
    assert bool(summarized.verify(statistics))


def test_frobenius_groups_have_total_variance_one():
    """Members are not standardized one by one, whatever ``standardize`` says; groups of one are."""
    X, Y = data()
    X *= np.linspace(0.1, 5.0, 10)
    groups = penalty_options(10, None, feature_groups=[[0, 5, 9], [1, 2]], group_scale="frobenius")
    for standardize in (False, True):
        problem = build_model(X, Y, weights="oscar", standardize=standardize, options=groups).problem
        total = problem.penalty.sums(problem.norms**2)
        labels = groups.feature_groups
        np.testing.assert_allclose(total[np.unique(labels[[0, 1]])], 1.0, rtol=1e-12)
        expected = 1.0 if standardize else X.var(axis=0)[3]
        assert total[labels[3]] == pytest.approx(expected, rel=1e-12)
        ratio = problem.norms[[0, 5, 9]] / X.std(axis=0)[[0, 5, 9]]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)


# Degrees of freedom -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [1, 3])
def test_degrees_of_freedom_are_those_of_finite_differences(q):
    """``df = sum_ik d fit_ik / d y_ik`` for squared loss."""
    X, Y = data(n=25, d=8, q=q, seed=3)
    options = penalty_options(8, None, feature_groups=[0, 0, 1, 2, 1, 3, 3, 3])
    lam = 0.25 * go.lam_max(X, Y, go.weights.oscar(4), feature_groups=options.feature_groups) * go.weights.oscar(4)

    def solution(Y):
        return go.solve(X, Y, lam, feature_groups=options.feature_groups, tol=1e-13, max_iter=100_000)

    problem = build_problem(X, Y, lam, options=options)
    B = problem.from_input(solution(Y).B, None)
    step, total = 1e-4, 0.0
    for i in range(len(Y)):
        for k in range(q):
            moved = Y.copy()
            moved[i, k] += step
            up = (X @ solution(moved).B)[i, k]
            moved[i, k] -= 2 * step
            total += (up - (X @ solution(moved).B)[i, k]) / (2 * step)
    assert degrees_of_freedom(problem, B) == pytest.approx(total, abs=2e-2)


# Factors from a first fit -----------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"feature_groups": [[0, 4], [1, 5, 6]]}, {"unpenalized": [1]}], ids=str)
@pytest.mark.parametrize("search", [False, True])
def test_adaptive_factors_are_those_of_a_first_fit(settings, search, tmp_path):
    X, Y = data()
    kind = go.GroupOWLRegressorCV if search else go.GroupOWLRegressor
    more = {"alphas": 10, "cv": 3, "weights": ["oscar", "linear"]} if search else {}
    fit = kind(penalty_factor="adaptive", **settings, **more).fit(X, Y)
    first = go.GroupOWLRegressor(**settings).fit(X, Y)
    groups = getattr(first, "feature_groups_", np.arange(10))
    norms = np.array([np.linalg.norm(first.coef_[:, groups == name]) for name in groups])
    norms *= np.sqrt([np.sum(groups == name) for name in groups])  # in the scale of the penalty
    norms[first.unpenalized_] = 0.0
    expected = norms.max() / np.maximum(norms, norms.max() / 100.0)
    expected[first.unpenalized_] = 0.0
    np.testing.assert_allclose(fit.penalty_factor_, expected, rtol=1e-10)
    own = {"alpha": fit.alpha_, "weights": fit.weights_}
    same = go.GroupOWLRegressor(penalty_factor=fit.penalty_factor_, **own, **settings).fit(X, Y)
    np.testing.assert_allclose(same.coef_, fit.coef_, atol=1e-3)
    assert bool(fit.verify(X, Y))
    go.save(fit, tmp_path / "model")
    assert bool(go.load(tmp_path / "model").verify(X, Y))


# Tables, folds, files ---------------------------------------------------------------------------------------


def test_tables_name_groups():
    pd = pytest.importorskip("pandas")
    X, Y = data()
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    groups = {"first": ["a", "c"], "second": ["j", "b", "d"]}
    model = go.GroupOWLRegressorCV(alphas=10, cv=3, feature_groups=groups).fit(frame, Y)
    names = ["first", "second", "first", "second", *"efghi", "second"]
    assert model.feature_groups_.tolist() == names
    assert model.coef_frame()["group"].tolist() == names
    path = model.path_.to_frame()
    assert set(path.loc[path["feature"] == "j", "group"]) == {"second"}
    members = model.get_support()[[9, 1, 3]]
    assert members.all() or not members.any()
    assert len(model.weights_) == 7


def test_other_estimators_have_groups():
    X, Y = data(n=90)
    groups = [0, 1, 0, 1, 2, 2, 2, None, None, 1]
    time = np.exp(-0.5 * X[:, 0]) * np.random.default_rng(0).exponential(size=90)
    fits = {
        "classes": (go.GroupOWLClassifierCV(alphas=8, cv=3, feature_groups=groups), np.argmax(Y, axis=1)),
        "three": (go.GroupOWLClassifier(feature_groups=groups), np.digitize(Y[:, 0], [-1, 1])),
        "counts": (go.GroupOWLRegressor(loss="poisson", feature_groups=groups), np.round(np.exp(0.3 * Y))),
        "times": (go.GroupOWLCox(feature_groups=groups), go.survival_targets(np.ones(90), time)),
        "criterion": (go.GroupOWLRegressorCV(alphas=8, selection="ebic", feature_groups=groups), Y),
        "relaxed": (go.GroupOWLRegressor(relaxed=True, feature_groups=groups), Y),
    }
    for name, (estimator, y) in fits.items():
        if name == "times":
            y = np.array(
                list(zip(np.ones(90, dtype=bool), time, strict=True)), dtype=[("event", bool), ("time", float)]
            )
        fit = estimator.fit(X, y)
        assert bool(fit.verify(X, y)), name
        support = fit.get_support()
        for group in range(3):
            members = support[np.array([label == group for label in groups])]
            assert members.all() or not members.any(), name


def test_data_on_disk_and_sparse_data_have_the_same_groups(tmp_path):
    X, Y = data(n=120)
    X[X < 0.3] = 0.0
    groups, weights = [0, 1, 0, 1, 2, 2, 2, None, None, 1], go.weights.oscar(5)
    np.save(tmp_path / "X.npy", X)
    options = {"feature_groups": groups, "penalty_factor": np.linspace(0.5, 2.0, 10), "fit_intercept": True}
    lam = 0.2 * go.lam_max(X, Y, weights, **options) * weights
    dense = go.solve(X, Y, lam, **options, tol=1e-10)
    for other in (sp.csr_array(X), go.MemmapDesign(tmp_path / "X.npy")):
        result = go.solve(other, Y, lam, **options, tol=1e-10)
        assert abs(result.primal - dense.primal) <= result.gap + dense.gap
        np.testing.assert_allclose(result.B, dense.B, atol=1e-4)


# What is refused --------------------------------------------------------------------------------------------

BAD = {
    "one label too few": ({"feature_groups": [0] * 9}, "a label for each of the 10 columns of X, got 9"),
    "text": ({"feature_groups": "abc"}, "must be a label per column, or lists of names or indices"),
    "a column twice": ({"feature_groups": [[0, 1], [1, 2]]}, "the column 1 in the group 'group 2' and in 'group 1'"),
    "a name": ({"feature_groups": [["a", "b"]]}, "X has no column names"),
    "an index": ({"feature_groups": [[0, 10]]}, "has the index 10, but X has 10 columns"),
    "a scale": ({"feature_groups": [[0, 1]], "group_scale": "large"}, "group_scale must be one of 'size', 'none'"),
    "half a group": (
        {"feature_groups": {"pair": [0, 1]}, "penalty_factor": {0: 0.0}},
        "only some columns of the group 'pair' are unpenalized",
    ),
    "factors too few": ({"penalty_factor": [1.0, 2.0]}, "one factor for each of the 10 columns of X, got 2"),
    "negative": ({"penalty_factor": {3: -1.0}}, "must not be negative or NaN, got -1 for column 3"),
    "not a number": ({"penalty_factor": {3: np.nan}}, "must not be negative or NaN, got nan for column 3"),
    "nothing left": ({"penalty_factor": [np.inf] * 9 + [0.0]}, "0 or infinite for all columns"),
    "a word": ({"penalty_factor": "large"}, "penalty_factor must be"),
}


@pytest.mark.parametrize("kind", BAD)
def test_options_that_mean_nothing_are_refused(kind):
    X, Y = data()
    options, message = BAD[kind]
    with pytest.raises((ValueError, TypeError), match=message):
        go.solve(X, Y, go.weights.oscar(10), **options)
    with pytest.raises((ValueError, TypeError), match=message):
        go.GroupOWLRegressor(**options).fit(X, Y)


def test_sequences_have_a_weight_for_each_group():
    X, Y = data()
    with pytest.raises(
        ValueError, match="one weight per group of features: X has 9 groups of columns, lam has length 10"
    ):
        go.solve(X, Y, go.weights.oscar(10), feature_groups=[[0, 1]])
    with pytest.raises(ValueError, match="weights='chi' is for single features"):
        go.GroupOWLRegressor(weights="chi", feature_groups=[[0, 1]]).fit(X, Y)


# Chi weights of groups --------------------------------------------------------------------------------------


def test_chi_weights_of_groups():
    np.testing.assert_allclose(go.weights.chi(20, 2, group_sizes=np.full(20, 3)), go.weights.chi(20, 6), rtol=1e-14)
    sizes = np.repeat([1, 3, 10], 100)
    factors, weights = go.weights.chi_factors(sizes, 2), go.weights.chi(300, 2, group_sizes=sizes)
    assert factors[0] < factors[100] < factors[200]
    assert np.all(np.diff(weights) <= 0)
    with pytest.raises(ValueError, match="one size for each of 4 groups, got 3"):
        go.weights.chi(4, 2, group_sizes=[1, 2, 3])
    with pytest.raises(ValueError, match="positive whole numbers"):
        go.weights.chi_factors([1, 0.5], 2)


def test_chi_weights_control_the_false_discovery_rate_of_orthogonal_groups():
    """Groups of 1, 3 and 10 orthonormal columns, noise of deviation 1: the mean over runs is below the target."""
    rng, sizes, q, fdr = np.random.default_rng(0), np.tile([1, 3, 10], 20), 2, 0.2
    groups = np.repeat(np.arange(60), sizes)
    factors = go.weights.chi_factors(sizes, q, fdr=fdr)
    weights = go.weights.chi(60, q, fdr=fdr, group_sizes=sizes)
    first = np.max(np.sqrt(chdtri(np.unique(sizes) * q, fdr / 60)) / factors[:3])
    X = np.linalg.qr(rng.standard_normal((len(groups), len(groups))))[0]
    share, power = [], []
    for _ in range(40):
        B = np.zeros((len(groups), q))
        for g in range(9):
            rows = groups == g
            direction = rng.standard_normal((rows.sum(), q))
            B[rows] = 1.3 * factors[g] * first * direction / np.linalg.norm(direction)
        Y = X @ B + rng.standard_normal((len(groups), q))
        options = {"feature_groups": groups, "group_scale": "none", "penalty_factor": factors[groups]}
        found = np.unique(groups[go.solve(X, Y, first * weights, **options).support])
        share.append(np.mean(found >= 9) if len(found) else 0.0)
        power.append(np.mean(np.isin(np.arange(9), found)))
    assert np.mean(share) <= fdr + 2 * np.std(share) / np.sqrt(len(share))
    assert np.mean(power) > 0.7


def test_series_of_pandas_go_by_names():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((40, 4)), columns=list("abcd"))
    y = X.to_numpy() @ [1.0, 2.0, 0.0, -1.0] + rng.standard_normal(40)
    asked = {
        "feature_groups": (pd.Series({"d": "g", "a": "g", "b": "h"}), {"g": ["a", "d"]}),
        "penalty_factor": (pd.Series({"d": 2.0, "b": 3.0}), [1.0, 3.0, 1.0, 2.0]),
        "positive": (pd.Series({"d": 1, "c": 0, "b": -1, "a": 0}), [0, -1, 0, 1]),
    }
    for name, (series, plain) in asked.items():
        models = [go.GroupOWLRegressor(0.05, **{name: given}).fit(X, y) for given in (series, plain)]
        np.testing.assert_array_equal(models[0].coef_, models[1].coef_, err_msg=name)
        assert models[0].verify(X, y), name
    with pytest.raises(ValueError, match="feature_groups has the name 'e', which is no column"):
        go.GroupOWLRegressor(feature_groups=pd.Series({"e": "g", "a": "g"})).fit(X, y)


def test_weights_are_counted_by_group():
    X, y, groups = np.eye(4, 3), np.arange(4.0), [0, 0, 1]
    message = "one weight per group of features: X has 2 groups of columns, {} has length 3"
    with pytest.raises(ValueError, match=message.format("weights")):
        go.lam_max(X, y, np.ones(3), feature_groups=groups)
    with pytest.raises(ValueError, match=message.format("weights")):
        go.GroupOWLRegressor(weights=np.ones(3), feature_groups=groups).fit(X, y)
    with pytest.raises(ValueError, match=message.format("lam")):
        go.solve(X, y, np.ones(3), feature_groups=groups)
