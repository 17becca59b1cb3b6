"""What users write, for the type checkers alone: every public name once, with the types that they rely on.

mypy reads it in ``make types`` and pyright in ``make test-long``, both in their strictest mode.
``tests/test_typing.py`` looks whether a name is missing. ``assert_type`` fails where a type has become ``Any``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import groupowl as go
from groupowl import datasets, inference, plotting, weights

FloatArray = npt.NDArray[np.float64]


def data() -> tuple[FloatArray, FloatArray]:
    made = datasets.make_correlated_groups(40, 30, 2, random_state=0)
    assert_type(made, datasets.CorrelatedGroups)
    assert_type(made.Y, FloatArray)
    return np.asarray(made.X, dtype=np.float64), made.Y


def sequences() -> list[FloatArray]:
    found = [
        weights.bh(30),
        weights.chi(30, 2),
        weights.chi_gauss(30, 2, 40),
        weights.constant(30),
        weights.gaussian(30, 40),
        weights.levels(30, [3], [0.5]),
        weights.linear(30),
        weights.oscar(30),
        go.weights.oscar(30, ratio=0.5),
        go.oscar_lam(30, 1.0, 0.1),
    ]
    assert_type(found, list[FloatArray])
    assert_type(weights.chi_factors([1, 2], 2), FloatArray)
    return found


def norms(B: FloatArray, lam: FloatArray) -> None:
    value: float = go.owl_norm(B, lam)
    dual: float = go.owl_dual_norm(B, lam)
    P: FloatArray = go.owl_prox(B, lam, step=0.5)
    penalty = go.GroupOWL(lam)
    print(value, dual, P.shape, penalty)


def one_solve(X: FloatArray, Y: FloatArray) -> go.SolveResult:
    lam = 0.1 * go.lam_max(X, Y, "oscar") * go.weights.oscar(X.shape[1])
    assert_type(go.lam_max(X, Y, "oscar"), float)

    def stop(progress: go.Progress) -> bool:
        return progress.gap < 1e-3

    for solver in (go.WorkingSet(), go.APGD(), go.SPGD()):
        go.solve(X, Y, lam, solver=solver)
    result = go.solve(X, Y, lam, callback=stop, tol=1e-8)
    assert_type(result, go.SolveResult)
    assert_type(result.B, FloatArray)
    assert_type(result.intercept, FloatArray)
    assert_type(result.gap, float)
    assert_type(result.converged, bool)
    assert_type(result.history, go.History)
    many = go.solve_many(X, [Y, 2.0 * Y], lam)
    print(len(many), many[0].gap)
    return result


def screening(X: FloatArray, Y: FloatArray, lam: FloatArray) -> None:
    screener = go.SafeScreener(X, Y, lam)
    report = screener.update(np.zeros((X.shape[1], Y.shape[1])))
    assert_type(report, go.ScreenReport)
    assert_type(report.gap, float)
    print(screener.active, screener.lam, report.newly_screened)


def paths(X: FloatArray, Y: FloatArray) -> None:
    path = go.group_owl_path(X, Y, alphas=5)
    assert_type(path, go.PathResult)
    assert_type(path.alphas, npt.NDArray[Any])
    assert_type(path.coefs, FloatArray)
    for point in path:
        assert_type(point, go.PathPoint)


def estimators(X: FloatArray, Y: FloatArray, labels: npt.NDArray[np.intp]) -> None:
    regressor = go.GroupOWLRegressor(alpha=0.1).fit(X, Y)
    assert_type(regressor, go.GroupOWLRegressor)
    assert_type(go.GroupOWLRegressorCV(alphas=5).fit(X, Y), go.GroupOWLRegressorCV)
    classifier = go.GroupOWLClassifier().fit(X, labels)
    assert_type(classifier, go.GroupOWLClassifier)
    assert_type(go.GroupOWLClassifierCV(alphas=5).fit(X, labels), go.GroupOWLClassifierCV)
    times = go.survival_targets(np.arange(1.0, 41.0), labels > 0)
    assert_type(go.GroupOWLCox().fit(X, times), go.GroupOWLCox)
    assert_type(go.GroupOWLCoxCV(alphas=5).fit(X, times), go.GroupOWLCoxCV)
    predicted: npt.NDArray[np.floating] = regressor.predict(X)
    probabilities: npt.NDArray[np.floating] = classifier.predict_proba(X)
    score: float = regressor.score(X, Y)
    check = regressor.verify(X, Y)
    assert_type(check, go.Verification)
    assert_type(regressor.certificate(), go.FitCertificate)
    assert_type(regressor.summary_, go.FitSummary)
    assert_type(regressor.coef_, FloatArray)
    assert_type(regressor.dual_gap_, float)
    assert_type(regressor.solve_result_, go.SolveResult)
    assert_type(classifier.classes_, npt.NDArray[Any])
    assert_type(go.GroupOWLRegressorCV().alphas_, FloatArray)
    assert_type(go.GroupOWLRegressorCV().path_, go.PathResult)
    status = go.FeatureStatus
    print(predicted, probabilities, score, status)


def storage(model: go.GroupOWLRegressor, folder: Path) -> None:
    go.save(model, folder)
    loaded = go.load(folder)
    print(loaded)


def designs(X: FloatArray, Y: FloatArray, file: Path) -> None:
    stacked_X, stacked_Y = go.stack_tasks([X, X], [Y[:, 0], Y[:, 1]])
    print(stacked_X, stacked_Y, go.MemmapDesign, go.DaskDesign, go.SufficientStatistics, file)


def selectors(X: FloatArray, Y: FloatArray) -> None:
    y = Y[:, 0]
    knockoffs = inference.KnockoffSelector().fit(X, Y)
    assert_type(knockoffs, inference.KnockoffSelector)
    assert_type(inference.StabilitySelector().fit(X, Y), inference.StabilitySelector)
    assert_type(inference.SlopeSelector().fit(X, y), inference.SlopeSelector)
    tests = inference.desparsified(X, y)
    assert_type(tests, inference.FeatureTests)
    assert_type(inference.hotelling_tests(X, Y), inference.FeatureTests)
    threshold: float = inference.knockoff_threshold(np.array([1.0, -1.0]), fdr=0.2)
    assert_type(knockoffs.support_, npt.NDArray[np.bool_])
    print(threshold, inference.GaussianKnockoffs, inference.fixed_knockoffs(X), knockoffs.get_support())


def drawings(path: go.PathResult, result: go.SolveResult) -> None:
    for display in (
        plotting.CoefficientPathDisplay,
        plotting.CrossValidationDisplay,
        plotting.ClusterDisplay,
        plotting.CoefficientHeatmapDisplay,
        plotting.ConvergenceDisplay,
        plotting.KnockoffDisplay,
        plotting.StabilityDisplay,
        plotting.SurvivalDisplay,
    ):
        print(display.__name__)
    print(plotting.plot_gap, plotting.plot_rows_kept, plotting.label_log_axis, path, result)


def about() -> None:
    info = go.kernel_info()
    assert_type(info, go.KernelInfo)
    assert_type(info.name, str)
    assert_type(go.show_versions(), None)
    print(go.datasets, go.inference)
