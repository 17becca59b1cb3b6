"""Offsets, ridges and signs of coefficients, together and alone: minima, certificates and screening."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl.losses import LOSSES, WithOffset
from groupowl.problem import build_problem, options_of
from support import Case, cox_terms, make_case

NAMES = list(LOSSES)
every_loss = pytest.mark.parametrize("loss", NAMES)


@dataclass(frozen=True)
class Optioned(Case):
    """A case with all that this file is about, and unpenalized columns."""

    offset: np.ndarray | float | None = None
    ridge: float = 0.0
    positive: np.ndarray | bool = False
    unpenalized: tuple[int, ...] = ()

    @property
    def options(self):
        factor = np.ones(self.X.shape[1])
        factor[list(self.unpenalized)] = 0.0
        return {"offset": self.offset, "ridge": self.ridge, "positive": self.positive, "penalty_factor": factor}

    def arguments(self):
        return super().arguments() | {"lam": self.lam[: self.X.shape[1] - len(self.unpenalized)]} | self.options

    def problem(self):
        given = self.arguments()
        asked = {name: given.pop(name) for name in ("ridge", "positive", "penalty_factor")}
        X, options = options_of(given.pop("X"), feature_groups=None, group_scale="size", **asked)
        return build_problem(X, **given, options=options)

    @property
    def signs(self):
        d = self.X.shape[1]
        signs = np.zeros(d) if self.positive is False else np.ones(d) * self.positive
        signs[list(self.unpenalized)] = 0.0
        return signs

    @property
    def penalized(self):
        return np.setdiff1d(np.arange(self.X.shape[1]), self.unpenalized)

    def at_optimum(self, B, Z):
        """The documented objective for coefficients and a predictor without its offset."""
        offset = 0.0 if self.offset is None else np.reshape(self.offset, (len(Z), -1))
        only_loss = replace(self, X=np.eye(len(Z)), lam=np.zeros(len(Z)))
        loss = Case.objective(only_loss, Z + offset)
        norms = np.sort(np.linalg.norm(B[self.penalized], axis=1))[::-1]
        assert np.all(self.signs[:, None] * B >= 0.0)
        return loss + norms @ self.lam[: len(norms)] + 0.5 * self.ridge * np.sum(B[self.penalized] ** 2)


def make(seed, *, loss, sparse=False, weighted=None, n=25, d=12, fraction=0.3, **fixed):
    """A random problem with random options; those that are given are as they are."""
    rng = np.random.default_rng([seed, 23])
    q = 1 if loss == "cox" else int(rng.choice([2, 3]))
    fit_intercept = loss != "cox" and bool(rng.integers(2))
    weighted = bool(rng.integers(2)) if weighted is None else weighted
    case = make_case(
        seed, n=n, d=d, q=q, loss=loss, fit_intercept=fit_intercept, weighted=weighted, sparse=sparse,
        fraction=fraction, shape=str(rng.choice(["oscar", "constant", "linear"])),
    )  # fmt: skip
    signs = False
    if loss != "multinomial":
        signs = [False, True, rng.choice([-1.0, 0.0, 1.0], size=d)][rng.integers(3)]
    offset = [None, rng.standard_normal((n, q)), 3.0 * rng.standard_normal(n)][rng.integers(3)]
    options = {
        "offset": offset if np.ndim(offset) == 2 or loss != "multinomial" else None,
        "ridge": float(rng.choice([0.0, 1e-3, 0.3, 10.0])),
        "positive": signs,
        "unpenalized": tuple(rng.choice(d, 2, replace=False).tolist()) if rng.integers(2) else (),
    } | fixed
    if np.ndim(options["positive"]):
        options["positive"] = options["positive"].copy()
        options["positive"][list(options["unpenalized"])] = 0.0
    case = Optioned(**vars(case), **options)
    given = case.arguments()
    lam = given.pop("lam")
    top = go.lam_max(weights=lam / lam[0], **given)
    return replace(case, lam=fraction * (top or 1.0) * case.lam / case.lam[0])


def conic_minimum(case):
    """The minimum by Clarabel, which knows nothing of us, as the objective at its point; and its value."""
    X = case.X.toarray() if sp.issparse(case.X) else case.X
    (n, d), q = X.shape, case.Y.shape[1]
    w = np.ones(n) if case.sample_weight is None else case.sample_weight
    B, b0 = cp.Variable((d, q)), cp.Variable((1, q))
    Z = X @ B + (np.ones((n, 1)) @ b0 if case.fit_intercept else 0.0)
    offset = np.zeros((n, q)) if case.offset is None else np.reshape(case.offset, (n, -1)) * np.ones((1, q))
    S = Z + offset
    if case.loss == "cox":
        loss = 0.0
        for mass, row, share, _ in cox_terms(case.Y[:, 0], w):
            chosen = np.flatnonzero(row)
            loss += mass * (cp.log_sum_exp(S[chosen, 0] + np.log(row[chosen])) - share @ S[:, 0])
    elif case.loss == "multinomial":
        loss = cp.sum(cp.multiply(w, cp.log_sum_exp(S, axis=1) - cp.sum(cp.multiply(case.Y, S), axis=1)))
    else:
        huber = 0.5 * cp.huber(case.Y - S, 1.345)
        entries = {
            "squared": 0.5 * cp.square(case.Y - S),
            "logistic": cp.logistic(S) - cp.multiply(case.Y, S),
            "poisson": cp.exp(S) - cp.multiply(case.Y, S),
            "huber": huber,
        }
        loss = cp.sum(cp.multiply(w[:, None] * np.ones((1, q)), entries[case.loss]))
    norms = cp.norm(B[case.penalized], 2, axis=1)
    lam = case.lam[: len(case.penalized)]
    drops = lam - np.append(lam[1:], 0.0)
    penalty = sum(drops[k] * cp.sum_largest(norms, k + 1) for k in range(len(lam)) if drops[k] > 0)
    penalty += 0.5 * case.ridge * cp.sum_squares(B[case.penalized])
    limits = [case.signs[j] * B[j] >= 0 for j in range(d) if case.signs[j]]
    program = cp.Problem(cp.Minimize(loss + penalty), limits)
    for accuracy in (1e-9, 1e-8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it fell short, which the status says, too
            program.solve(solver=cp.CLARABEL, tol_gap_abs=accuracy, tol_gap_rel=accuracy, tol_feas=accuracy)
        if program.status == "optimal":
            break
    found = np.where(case.signs[:, None] * B.value < 0.0, 0.0, B.value)
    return case.at_optimum(found, X @ found + (b0.value if case.fit_intercept else 0.0))


@every_loss
@pytest.mark.parametrize("seed", range(8))
def test_a_conic_solver_finds_the_same_minimum(loss, seed):
    case = make(seed, loss=loss)
    result = go.solve(**case.arguments(), tol=1e-11)
    assert result.status in ("converged", "precision")
    objective = case.at_optimum(result.B, case.X @ result.B + result.intercept)
    assert objective == pytest.approx(result.primal, rel=1e-10, abs=1e-10)
    reference = conic_minimum(case)
    assert abs(result.primal - reference) <= 1e-8 * max(1.0, abs(reference))
    assert result.primal - result.gap <= reference + 1e-12 * max(1.0, abs(reference))


@every_loss
@pytest.mark.parametrize("seed", range(3))
def test_solvers_rules_and_designs_agree(loss, seed):
    """The minimum of a solve without screening, nothing removed that it needs, and something removed."""
    case = make(100 + seed, loss=loss, n=40, d=60, sparse=True, fraction=0.7, ridge=0.3)
    reference = go.solve(**case.arguments(), screening="none", tol=1e-11)
    dense = replace(case, X=case.X.toarray())
    removed = 0
    for solver in ("auto", "apgd", "spgd"):
        if solver == "spgd" and not np.isfinite(LOSSES[loss].curvature):
            continue
        result = go.solve(**dense.arguments(), solver=solver, tol=1e-5, random_state=0, max_iter=50_000)
        assert result.converged
        assert -reference.gap <= result.primal - reference.primal <= result.gap
        assert not reference.B[result.screened_at >= 0].any()
        removed += 60 - len(result.active)
    assert removed > 0


@every_loss
def test_no_certificate_is_above_the_minimum_and_bounds_hold(loss):
    """Weak duality and bounds from random coefficients, far and near, on many random problems."""
    rng = np.random.default_rng(5)
    n_proved = 0
    for seed in range(40):
        case = make(1000 + seed, loss=loss, n=15, d=10, fraction=float(rng.choice([0.1, 0.4, 0.8])))
        problem = case.problem()
        best = go.solve(**case.arguments(), screening="none", tol=1e-10)
        start = problem.from_input(best.B, best.intercept if case.fit_intercept else None)
        optimum = problem.certify(start)
        error = np.sqrt(2.0 * optimum.gap) * problem.norms  # for curvature 1, and what is near it
        for size in (1e-6, 1e-3, 1e-1, 1.0):
            move = size * rng.standard_normal(start.shape)
            trial = start + move
            trial[: problem.n_rows] = problem.penalty.projected(trial[: problem.n_rows])
            certificate = problem.certify(trial)
            assert certificate.primal - certificate.gap <= best.primal * (1 + 1e-12) + 1e-12
            upper = problem.upper_bounds(certificate)
            assert np.all(upper >= optimum.residual.correlations * (1 - 1e-6) - 3 * error - 1e-7)
            kept = problem.penalty.candidates(upper)
            proved = np.intersect1d(np.setdiff1d(np.arange(10), kept), case.penalized)
            assert not best.B[proved].any()
            n_proved += len(proved)
    assert n_proved > 20


@every_loss
@pytest.mark.parametrize("positive", [False, True])
def test_lam_max_is_tight(loss, positive):
    if loss == "multinomial" and positive:
        pytest.skip("the loss refuses signs")
    for seed in range(4):
        case = make(seed, loss=loss, positive=positive, fraction=1.0)
        null = go.solve(**case.arguments(), tol=1e-9)
        assert not null.B[case.penalized].any()
        assert null.converged
        given = case.arguments()
        if go.lam_max(weights=given.pop("lam"), **given) > 0.0:  # else no column has a correlation of its sign
            below = replace(case, lam=0.98 * case.lam)
            assert go.solve(**below.arguments(), tol=1e-9).B[case.penalized].any()


@every_loss
def test_what_is_switched_off_takes_the_same_way(loss):
    """A zero offset, a ridge of zero and no signs: the same answer bit for bit."""
    for seed, lean in ((0, False), (1, True)):
        case = make_case(seed, q=3, loss=loss, fit_intercept=loss != "cox", weighted=not lean)
        plain = go.solve(**case.arguments())
        off = go.solve(**case.arguments(), offset=np.zeros(25), ridge=0.0, positive=np.zeros(12))
        np.testing.assert_array_equal(plain.B, off.B)
        assert (plain.gap, plain.primal, plain.n_iter) == (off.gap, off.primal, off.n_iter)


@every_loss
def test_offsets_of_one_number_per_sample_are_those_of_every_task(loss):
    if loss in ("multinomial", "cox"):
        pytest.skip("one number for all classes means nothing, and one task has no others")
    case = make(3, loss=loss, offset=np.linspace(-1.0, 1.0, 25))
    whole = replace(case, offset=np.repeat(case.offset[:, None], case.Y.shape[1], axis=1))
    np.testing.assert_array_equal(go.solve(**case.arguments()).B, go.solve(**whole.arguments()).B)


@every_loss
def test_signs_that_hold_anyway_change_nothing(loss):
    """Where the free optimum has no negative entry, asking for that gives the same to the certified gap."""
    if loss == "multinomial":
        pytest.skip("the loss refuses signs")
    free = make(4, loss=loss, positive=False, unpenalized=(), ridge=0.1)
    B = go.solve(**free.arguments(), tol=1e-10).B
    signs = np.sign(np.where(np.ptp(np.sign(B), axis=1) < 2, B.sum(axis=1), 0.0))
    best, held = (go.solve(**replace(free, positive=s).arguments(), tol=1e-10) for s in (False, signs))
    assert abs(best.primal - held.primal) <= best.gap + held.gap


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson", "huber", "multinomial"])
def test_the_dual_of_a_ridge_is_above_that_of_augmented_data(loss):
    """At the same point and the same scale; near the optimum by far, at the scale of one."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        case = make(seed, loss=loss, positive=False, unpenalized=(), offset=None, ridge=float(rng.choice([1e-3, 1.0])))
        case = replace(case, fit_intercept=False)
        problem = case.problem()
        best = problem.from_input(go.solve(**case.arguments(), tol=1e-9).B, None)
        for size in (0.0, 1e-3, 1e-1, 1.0):
            B = best + size * rng.standard_normal(best.shape)
            certificate = problem.certify(B)
            residual = certificate.residual
            gauge = problem.penalty.dual_norm(residual.products - case.ridge * B)
            scale = min(1.0, 1.0 / gauge)
            dual = problem.loss.dual_value(scale * residual.theta, *problem.samples.handles)
            augmented = dual - 0.5 * scale**2 * case.ridge * np.sum(B**2)
            exact = dual - problem.penalty.conjugate(scale * residual.products)[0]
            assert exact >= augmented - 1e-12 * abs(augmented)
            if loss != "squared":  # whose scale is the best one for the loss alone
                assert certificate.dual >= exact - 1e-12 * abs(exact)


def test_the_prox_is_optimal():
    """``V - P`` is a subgradient of the step times the penalty at ``P``, in K: no other point is better."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        d, q = 6, int(rng.integers(1, 4))
        signs = rng.choice([-1.0, 0.0, 1.0], size=d)
        units = rng.permutation([0, 0, 1, 2, 3, 3])
        lam = np.sort(rng.random(4))[::-1]
        penalty = go.GroupOWL(lam, units=units, ridge=float(rng.choice([0.0, 0.7])), signs=signs)
        V, step = rng.standard_normal((d, q)), float(rng.uniform(0.2, 3.0))
        P = penalty.prox(V, step)
        shrunken = V.copy()
        value = penalty.shrink(shrunken, step)
        np.testing.assert_allclose(shrunken, P, atol=1e-12)
        assert value == pytest.approx(penalty.value(P))

        def objective(B, V=V, step=step, penalty=penalty):
            return 0.5 * np.sum((B - V) ** 2) + step * penalty.value(B)

        for size in (1e-4, 1e-1, 1.0):
            other = penalty.projected(P + size * rng.standard_normal((d, q)))
            assert objective(other) >= objective(P) - 1e-12


def test_the_conjugate_is_the_largest_difference():
    rng = np.random.default_rng(1)
    penalty = go.GroupOWL([2.0, 1.0, 0.5], ridge=0.4, signs=[1.0, 0.0, -1.0])
    for _ in range(50):
        C = 3.0 * rng.standard_normal((3, 2))
        value, at = penalty.conjugate(C)
        assert value == pytest.approx(np.sum(C * at) - penalty.value(at))
        for size in (1e-3, 1.0):
            B = penalty.projected(at + size * rng.standard_normal((3, 2)))
            assert np.sum(C * B) - penalty.value(B) <= value + 1e-12


@pytest.mark.parametrize("loss", ["logistic", "poisson", "multinomial", "cox"])
def test_fenchel_young_with_an_offset(loss):
    """Equality at the dual point of a predictor, inequality elsewhere, and gradients by differences."""
    rng = np.random.default_rng(2)
    case = make_case(0, loss=loss, q=3, weighted=True)
    offset = rng.standard_normal(case.Y.shape)
    shifted, Y, w = WithOffset(LOSSES[loss]), np.hstack([case.Y, offset]), case.sample_weight[:, None]
    Z, move = rng.standard_normal(case.Y.shape), rng.standard_normal(case.Y.shape)
    theta = shifted.dual_point(Z, Y, w)
    dual = shifted.ray_value(theta, Y, w, 1.0, shifted.ray_totals(theta, Y, w, Z))
    assert shifted.value(Z, Y, w) - dual == pytest.approx(-np.sum(Z * theta), abs=1e-10)
    assert shifted.value(Z + move, Y, w) - dual > -np.sum((Z + move) * theta)
    slope = (shifted.value(Z + 1e-6 * move, Y, w) - shifted.value(Z - 1e-6 * move, Y, w)) / 2e-6
    assert slope == pytest.approx(-np.sum(theta * move), rel=1e-6, abs=1e-6)
    assert shifted.value(Z, Y, w) == pytest.approx(LOSSES[loss].value(Z + offset, case.Y, w))


def test_a_large_offset_leaves_its_rounding_in_the_gap():
    """Targets less an offset keep the rounding of both: the gap must not be smaller than that."""
    case = make(5, loss="squared", offset=None, ridge=0.0, positive=False, unpenalized=(), weighted=False)
    large = replace(case, Y=case.Y + 1e10, offset=np.full(25, 1e10))
    result = go.solve(**large.arguments(), tol=1e-3)
    exact = go.solve(**case.arguments(), tol=1e-12)
    assert case.at_optimum(result.B, case.X @ result.B + result.intercept) - result.gap <= exact.primal


def test_no_correlation_of_the_right_sign_selects_nothing_at_any_alpha():
    """Rounding is no reason to select: lam_max is zero, and so paths and "auto" stay away from the last digits."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4)) + 1.0
    y = 5.0 - X @ np.ones(4)
    X += 0.5 * np.abs(X).mean()
    assert go.lam_max(X, y, "oscar", fit_intercept=True, positive=True) == 0.0
    fit = go.GroupOWLRegressor(positive=True).fit(X, y)
    assert not fit.coef_.any()
    assert fit.dual_gap_ == 0.0
    path = go.group_owl_path(X, y, positive=True)
    assert not path.coefs.any()
    assert np.all(path.dual_gaps == 0.0)


def test_starts_outside_of_the_cones_are_no_harm():
    case = make(0, loss="squared", positive=True, unpenalized=())
    start = go.solve(**case.arguments(), B_init=-np.ones((12, case.Y.shape[1])), tol=1e-9)
    best = go.solve(**case.arguments(), tol=1e-9)
    assert abs(start.primal - best.primal) <= start.gap + best.gap
    report = go.SafeScreener(**case.arguments()).update(-np.ones((12, case.Y.shape[1])))
    assert report.gap == np.inf
    assert len(report.active) == 12


@every_loss
def test_the_screener_for_other_solvers(loss):
    case = make(8, loss=loss, n=40, d=30, fraction=0.5)
    best = go.solve(**case.arguments(), tol=1e-10, screening="none")
    intercept = best.intercept if case.fit_intercept else None
    report = go.SafeScreener(**case.arguments()).update(best.B, intercept)
    assert report.primal == pytest.approx(best.primal)
    assert set(best.support) <= set(report.active)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"offset": np.ones((25, 2))}, r"offset must have shape \(25,\) or \(25, 3\)"),
        ({"offset": np.zeros(24)}, "X has 25 rows, offset has 24"),
        ({"offset": np.full(25, np.nan)}, "offset has 25 NaN or infinite entries"),
        ({"ridge": -1.0}, "ridge must be a finite number of at least 0"),
        ({"ridge": np.inf}, "ridge must be a finite number"),
        ({"ridge": [0.0, 1.0]}, "which needs an estimator with CV at the end of its name"),
        ({"positive": "age"}, "positive has the name 'age', but X has no column names"),
        ({"positive": [1, 0, 1]}, "positive must be True, names or indices of columns, or a sign for each of the 12"),
        ({"positive": [3, 12]}, "positive has the index 12, but X has 12 columns"),
        ({"positive": np.full(12, 2.0)}, "positive must be True, names"),
    ],
)
def test_refusals(asked, message):
    case = make_case(0)
    with pytest.raises(ValueError, match=message):
        go.solve(**case.arguments(), **asked)


def test_signs_of_unpenalized_columns_are_refused_by_number():
    case = make(0, loss="squared", unpenalized=(3,), positive=np.eye(12)[3])
    with pytest.raises(ValueError, match="positive asks for a sign of column 3, which is not penalized"):
        go.solve(**replace(case, positive=np.eye(12)[3]).arguments())


def test_classes_refuse_signs_and_offsets_that_mean_nothing():
    case = make_case(0, loss="multinomial")
    with pytest.raises(ValueError, match="positive: loss='multinomial' has a coefficient for each class"):
        go.solve(**case.arguments(), positive=True)
    with pytest.raises(ValueError, match="adds the same to all classes"):
        go.solve(**case.arguments(), offset=np.ones(25))


def test_indices_are_columns_and_numbers_for_all_columns_are_signs():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 4)), rng.standard_normal((40, 2))
    lam = 2.0 * go.weights.oscar(4)
    for indices, signs in (([2, 0], [1, 0, 1, 0]), (np.array([3]), {3: 1}), ((1, 0), [1, 1, 0, 0])):
        by_index, by_sign = (go.solve(X, Y, lam, positive=given).B for given in (indices, signs))
        np.testing.assert_array_equal(by_index, by_sign)
    free = go.solve(X, Y, lam).B
    assert (free < 0.0).any()
    np.testing.assert_array_equal(go.solve(X, Y, lam, positive=[0, 0, 0, 0]).B, free)
    with pytest.raises(ValueError, match="names or indices"):
        go.solve(X, Y, lam, positive=[0, 0, 1])  # signs, but not of all columns


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_offsets_of_missing_targets_may_be_missing(loss):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 4)), rng.poisson(2.0, (40, 3)).astype(float)
    Y[rng.random(Y.shape) < 0.2] = np.nan
    Y[5] = np.nan
    offset = rng.uniform(0.1, 1.0, Y.shape)
    given = {"loss": loss, "fit_intercept": True, "tol": 1e-9}
    whole = go.solve(X, Y, go.weights.oscar(4), offset=offset, **given).B
    gaps = np.where(np.isnan(Y), np.nan, offset)
    np.testing.assert_allclose(go.solve(X, Y, go.weights.oscar(4), offset=gaps, **given).B, whole, atol=1e-8)
    model = go.GroupOWLRegressor(0.05, loss=loss).fit(X, Y, offset=gaps)
    assert model.verify(X, Y, offset=gaps)
    of_samples = offset[:, 0].copy()
    of_samples[5] = np.nan
    go.solve(X, Y, go.weights.oscar(4), offset=of_samples, **given)
    of_samples[6] = np.nan
    with pytest.raises(ValueError, match="Every offset of an observed target"):
        go.solve(X, Y, go.weights.oscar(4), offset=of_samples, **given)
