"""The pages for contributors: their examples work and agree with what is built in; their picture is the real table."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import approx_fprime, minimize

import groupowl as go
from groupowl import kernel
from groupowl.designs import DenseDesign, Design
from groupowl.losses import Loss
from pages_support import names_on, resolve
from support import make_case
from test_imports import LAYERS

FOLDER = Path(__file__).parents[1] / "docs" / "contributing"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted(FOLDER.glob("*.rst"))}


def load(path):
    name = f"contributing_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look for their module there
    spec.loader.exec_module(module)
    return module


MultiLabelLoss = load(FOLDER / "examples" / "loss.py").MultiLabelLoss
ByteDesign = load(FOLDER / "examples" / "design.py").ByteDesign
ISTA = load(FOLDER / "examples" / "solver.py").ISTA


# The pages --------------------------------------------------------------------------------------------------


def test_every_example_is_on_a_page():
    shown = re.findall(r"literalinclude:: examples/(\w+\.py)", PAGES["extending"])
    assert sorted(shown) == sorted(path.name for path in (FOLDER / "examples").glob("*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_names_of_the_code_exist(page):
    for name in names_on(PAGES[page]):
        resolve(name)


def layers_of_the_page():
    """Modules of each row of the table of layers, by its name."""
    table = PAGES["architecture"].partition("what it owns")[2].partition("Outside the package")[0]
    rows = re.findall(r"^   \* - ([a-z ]+)\n     - (.*(?:\n       .*)*)\n", table, flags=re.MULTILINE)
    return {name: re.findall(r"``(\w+)``", modules) for name, modules in rows}


def test_the_table_of_the_page_is_that_of_the_imports():
    assert layers_of_the_page() == LAYERS
    assert len(LAYERS) <= 10


def test_the_picture_is_that_of_the_imports():
    drawing = load(FOLDER / "draw_layers.py")
    assert drawing.read_layers() == LAYERS
    picture = (FOLDER / "layers.svg").read_text(encoding="utf-8")
    assert picture == drawing.draw(LAYERS), "run python docs/contributing/draw_layers.py"
    heights = {
        module: int(y) for y, module in re.findall(r'class="module"[^>]* y="(\d+)"[^>]*>([^<]+)</text>', picture)
    }
    assert sorted(heights) == sorted(module for modules in LAYERS.values() for module in modules)
    for lower, upper in pairwise(LAYERS.values()):
        assert max(heights[name] for name in upper) < min(heights[name] for name in lower)  # y grows downwards


def test_a_picture_of_other_layers_would_be_another():
    drawing = load(FOLDER / "draw_layers.py")
    assert drawing.draw(LAYERS | {"novelty": ["novelty"]}) != drawing.draw(LAYERS)


def followed(function):
    """Functions of the package in the order of their first calls, each with those that were running."""
    source = str(Path(go.__file__).parent)
    running, first = [], {}

    def notice(frame, event, _):
        code = frame.f_code
        if not code.co_filename.startswith(source) or event not in ("call", "return"):
            return
        module = ".".join(Path(code.co_filename).relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        name = f"{module}.{code.co_qualname}"
        if event == "return":
            running.pop()
            return
        first.setdefault(name, tuple(running))
        running.append(name)

    sys.setprofile(notice)
    try:
        function()
    finally:
        sys.setprofile(None)
    return first


def test_the_picture_of_a_call_is_true(monkeypatch):
    """Each function of the picture is called by the one it stands below, and in this order.

    The loop makes no steps where the kernel's proposal is good enough, so that one fit is made without it.
    """
    drawing = load(FOLDER / "draw_call.py")
    assert (FOLDER / "call.svg").read_text(encoding="utf-8") == drawing.draw(drawing.CALL), (
        "run python docs/contributing/draw_call.py"
    )
    data = go.datasets.make_correlated_groups(60, 200, 3, random_state=0)
    if kernel.is_available():
        calls = followed(lambda: go.GroupOWLRegressor(alpha=0.3).fit(data.X, data.Y))
        assert "solvers.lean.lean_solve" in calls["kernel.whole_fit"]  # the shortcut
        calls = followed(lambda: go.GroupOWLRegressor().fit(data.X, data.Y, np.ones(60)))
        assert "solvers.continuation.Continuation.solve" in calls["kernel.solve"]
    monkeypatch.setattr(kernel, "is_available", lambda: False)
    calls = followed(lambda: go.GroupOWLRegressor(alpha=0.3).fit(data.X, data.Y))
    order = {name: position for position, name in enumerate(calls)}
    path, steps = [], [step for step in drawing.CALL if step[1] != "kernel.solve"]
    for depth, name, _ in steps:
        assert name in calls, f"{name} is not called"
        path = [*path[:depth], name]
        assert set(path[:-1]) <= set(calls[name]), f"{name} is not called by {path[-2]}"
    named = [order[name] for _, name, _ in steps]
    assert named[:-1] == sorted(named[:-1])


def test_commands_of_the_pages_are_in_the_makefile():
    makefile = (FOLDER.parents[1] / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"``make ([\w-]+)", " ".join(PAGES.values()))):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


# The loss ---------------------------------------------------------------------------------------------------


def label_data(seed, n=40, d=60, q=3):
    rng = np.random.default_rng(seed)
    X, B = rng.standard_normal((n, d)) + 0.3, np.zeros((d, q))
    B[:4] = 2.0 * rng.standard_normal((4, q))
    return X, (X @ B + rng.logistic(size=(n, q)) > 0).astype(float), rng.uniform(0.3, 2.0, n)


def loss_arguments(seed):
    rng = np.random.default_rng(seed)
    Y, Z = (rng.random((9, 2)) < 0.5).astype(float), 2.0 * rng.standard_normal((9, 2))
    if seed % 2:
        Y = rng.random((9, 2))
    return Z, Y, rng.uniform(0.2, 3.0, (9, 1)), rng


def test_the_loss_has_the_protocol():
    assert isinstance(MultiLabelLoss(), Loss)
    with pytest.raises(ValueError, match="between 0 and 1, but has entries from -1 to 1"):
        go.solve(np.eye(2), [-1.0, 1.0], [1.0, 1.0], loss=MultiLabelLoss())


@pytest.mark.parametrize("seed", range(6))
def test_the_loss_and_its_conjugate(seed):
    """Gradient, Fenchel-Young with equality at the dual point, strong convexity of the conjugate."""
    loss, (Z, Y, w, rng) = MultiLabelLoss(), loss_arguments(seed)
    theta = loss.dual_point(Z, Y, w)
    slope = approx_fprime(Z.ravel(), lambda z: loss.value(z.reshape(Z.shape), Y, w), 1e-7)
    np.testing.assert_allclose(-theta.ravel(), slope, atol=1e-5)
    assert loss.value(Z, Y, w) - loss.dual_value(theta, Y, w) == pytest.approx(-np.sum(theta * Z), abs=1e-12)
    other = loss.dual_point(Z + rng.standard_normal(Z.shape), Y, w)
    excess = loss.value(Z, Y, w) - loss.dual_value(other, Y, w) + np.sum(other * Z)
    assert excess >= np.sum((other - theta) ** 2 / w) / (2 * loss.curvature)
    value, point = loss.value_and_dual_point(Z.copy(), Y, w)
    assert (value, point.tolist()) == (loss.value(Z, Y, w), theta.tolist())
    assert loss.dual_value(theta - 10.0, Y, w) == -np.inf


@pytest.mark.parametrize("seed", range(6))
def test_balance_of_the_loss(seed):
    loss, (Z, Y, w, _) = MultiLabelLoss(), loss_arguments(seed)
    theta = loss.dual_point(Z, Y, w)
    balanced = loss.balance(theta, Y, w, loss.balance_totals(theta, Y, w))
    np.testing.assert_allclose(balanced.sum(axis=0), 0.0, atol=1e-13)
    assert np.isfinite(loss.dual_value(balanced, Y, w))
    again = loss.balance(balanced, Y, w, loss.balance_totals(balanced, Y, w))
    np.testing.assert_allclose(again, balanced, atol=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_second_derivatives_of_the_loss(seed):
    loss, (Z, Y, w, rng) = MultiLabelLoss(), loss_arguments(seed)
    theta, move, E = loss.dual_point(Z, Y, w), rng.standard_normal(Z.shape), rng.standard_normal((9, 3))
    change = loss.value(Z + move, Y, w) - loss.value(Z, Y, w)
    assert loss.change(Z, Y, w, move) == pytest.approx(change, abs=1e-11)
    tiny = 1e-6
    slope = (theta - loss.dual_point(Z + tiny * move, Y, w)) / tiny
    np.testing.assert_allclose(loss.curved(Z, Y, w, move), slope, atol=1e-4)
    step = rng.standard_normal((3, 2))
    bend = np.sum(E @ step * loss.curved(Z, Y, w, E @ step))
    assert step.ravel() @ loss.curvature_along(Z, Y, w, E) @ step.ravel() == pytest.approx(bend)
    spread = [loss.curved(Z, Y, w, np.eye(2)[[k] * 9])[:, k] for k in range(2)]
    np.testing.assert_allclose(loss.curvatures(theta, Y, w)[:, 0], np.mean(spread, axis=0))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_null_model_of_the_loss(fit_intercept):
    """Nothing is selected from lam_max up, with a gap of zero, and something just below."""
    X, Y, weight = label_data(0)
    options = {"loss": MultiLabelLoss(), "fit_intercept": fit_intercept, "sample_weight": weight}
    weights = go.weights.oscar(X.shape[1])
    top = go.lam_max(X, Y, weights, **options)
    null = go.solve(X, Y, top * weights, **options)
    assert (len(null.support), null.gap) == (0, 0.0)
    assert len(go.solve(X, Y, 0.999 * top * weights, **options).support) > 0


@pytest.mark.parametrize("solver", ["auto", "apgd", "spgd"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_loss_in_every_solver_with_screening(solver, fit_intercept):
    """The same minimum with and without screening, rows screened are zero, and screening has run."""
    X, Y, weight = label_data(1)
    options = {"loss": MultiLabelLoss(), "fit_intercept": fit_intercept, "sample_weight": weight}
    lam = 0.6 * go.lam_max(X, Y, "oscar", **options) * go.weights.oscar(X.shape[1])
    reference = go.solve(X, Y, lam, **options, screening="none", tol=1e-10)
    result = go.solve(X, Y, lam, **options, solver=solver, tol=1e-6, random_state=0)
    assert result.converged
    assert -reference.gap <= result.primal - reference.primal <= result.gap
    assert set(reference.support) <= set(result.active)
    assert len(result.active) < X.shape[1]


def test_the_loss_is_the_built_in_one():
    X, Y, weight = label_data(3)
    options = {"sample_weight": weight, "fit_intercept": True, "tol": 1e-10}
    lam = 0.2 * go.lam_max(X, Y, "oscar", loss="logistic") * go.weights.oscar(X.shape[1])
    ours, built_in = (go.solve(X, Y, lam, loss=loss, **options) for loss in (MultiLabelLoss(), "logistic"))
    assert abs(ours.primal - built_in.primal) <= ours.gap + built_in.gap
    np.testing.assert_allclose(ours.B, built_in.B, atol=1e-6)


def test_one_label_is_the_multinomial_loss_of_two_classes():
    """At weights larger by sqrt(2): see the page on the model."""
    X, Y, weight = label_data(2, q=1)
    lam = 0.3 * go.lam_max(X, Y, "oscar", loss=MultiLabelLoss()) * go.weights.oscar(X.shape[1])
    options = {"fit_intercept": True, "sample_weight": weight, "tol": 1e-9}
    ours = go.solve(X, Y, lam, loss=MultiLabelLoss(), **options)
    built_in = go.solve(X, np.hstack([1 - Y, Y]), np.sqrt(2) * lam, loss="multinomial", **options)
    assert abs(ours.primal - built_in.primal) <= ours.gap + built_in.gap
    np.testing.assert_allclose(ours.B[:, 0], built_in.B[:, 1] - built_in.B[:, 0], atol=1e-3)


def test_minimum_of_the_loss_by_another_program():
    """A smooth problem in disguise: one task, constant weights, signs by splitting, solved by SciPy."""
    X, Y, _ = label_data(3, n=30, d=8, q=1)
    lam = 0.2 * go.lam_max(X, Y, "constant", loss=MultiLabelLoss()) * np.ones(8)
    result = go.solve(X, Y, lam, loss=MultiLabelLoss(), tol=1e-10)

    def objective(parts):
        z = X @ (parts[:8] - parts[8:])
        slope = X.T @ (1 / (1 + np.exp(-z)) - Y[:, 0])
        return np.sum(np.logaddexp(0, z) - Y[:, 0] * z) + lam[0] * parts.sum(), np.r_[slope + lam[0], lam[0] - slope]

    bounds = [(0, None)] * 16
    found = minimize(objective, np.zeros(16), jac=True, bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10})
    assert abs(found.fun - result.primal) <= 1e-8


def test_the_loss_on_paths_and_with_unpenalized_columns():
    X, Y, _ = label_data(4, n=80, d=20)
    path = go.group_owl_path(X, Y, loss=MultiLabelLoss(), alphas=5, eps=0.1, unpenalized=[0])
    assert len(path.alphas) == 5
    assert path.n_selected[-1] > 0


# The design -------------------------------------------------------------------------------------------------


def byte_matrix(seed, n=50, d=70):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, d)).astype(np.int8)
    X[:, 3] = 2  # constant
    Y = X[:, :4] @ rng.standard_normal((4, 2)) + rng.standard_normal((n, 2))
    return X, Y, rng.uniform(0.2, 2.0, n)


def test_the_design_is_one():
    design = ByteDesign(np.ones((3, 2), dtype=np.uint8))
    assert isinstance(design, Design)
    with pytest.raises(TypeError, match="int8 or uint8, got float64"):
        ByteDesign(np.ones((3, 2)))


@pytest.mark.parametrize("n", [1, 50, 2500])  # the last takes three blocks
def test_the_design_against_the_dense_one(n):
    X, _, weight = byte_matrix(0, n=max(n, 2), d=6)
    X, w = X[:n], np.resize(weight, n)[:, None]
    rng = np.random.default_rng(1)
    ours, dense = ByteDesign(X), DenseDesign(X.astype(float))
    B, T = rng.standard_normal((6, 2)), rng.standard_normal((n, 2))
    B[2:4] = 0.0
    rows, left, right = np.arange(0, n, 2), np.array([4, 0]), np.array([1, 2, 5])
    same = np.testing.assert_allclose
    same(ours.matmul(B, np.array([1.0, 2.0])), dense.matmul(B, np.array([1.0, 2.0])), atol=1e-12)
    same(ours.rmatmul(T), dense.rmatmul(T), atol=1e-11)
    assert np.sum(ours.matmul(B) * T) == pytest.approx(np.sum(B * ours.rmatmul(T)), abs=1e-10)  # adjoint
    for name in ("mean", "rest", "squares"):
        same(getattr(ours.moments(w), name), getattr(dense.moments(w), name), rtol=1e-12, atol=1e-12)
    same(ours.column_norms(w), dense.column_norms(w))
    same(ours.gram(left, right, w), dense.gram(left, right, w), atol=1e-11)
    same(ours.restrict(left).rmatmul(T), dense.restrict(left).rmatmul(T), atol=1e-11)
    same(ours.rows(rows).matmul(B), dense.rows(rows).matmul(B), atol=1e-12)
    assert ours.restrict(left).X.dtype == np.int8  # and not converted as a whole


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("solver", ["auto", "apgd", "spgd"])
@pytest.mark.parametrize("n", [50, 200])  # fewer and more samples than features
def test_solves_on_the_design_are_those_on_an_array(loss, solver, n):
    X, Y, weight = byte_matrix(2, n=n)
    if loss == "multinomial":
        Y = np.eye(2)[np.argmax(Y, axis=1)]
    options = {"loss": loss, "fit_intercept": True, "sample_weight": weight}
    lam = 0.4 * go.lam_max(ByteDesign(X), Y, "oscar", **options) * go.weights.oscar(X.shape[1])
    ours = go.solve(ByteDesign(X), Y, lam, **options, solver=solver, random_state=0)
    array = go.solve(X.astype(float), Y, lam, **options, tol=1e-9)
    assert ours.converged
    assert -array.gap <= ours.primal - array.primal <= ours.gap
    assert set(array.support) <= set(ours.active)
    assert len(ours.active) < X.shape[1]
    assert ours.n_passes > 0


def test_estimators_on_the_design():
    X, Y, _ = byte_matrix(3, n=120)
    settings = {"standardize": True, "unpenalized": [0], "tol": 1e-9}
    ours = go.GroupOWLRegressor(**settings).fit(ByteDesign(X), Y)
    array = go.GroupOWLRegressor(**settings).fit(X.astype(float), Y)
    assert ours.alpha_ == pytest.approx(array.alpha_)
    assert ours.coef_.dtype == np.float64
    assert len(ours.selected_features_) > 0
    np.testing.assert_allclose(ours.coef_, array.coef_, atol=1e-3)


def test_a_design_that_tells_how_it_stores_does_not_truncate_coefficients():
    X, Y, _ = byte_matrix(3, n=120)
    design = ByteDesign(X)
    design.dtype = X.dtype
    model = go.GroupOWLRegressor(tol=1e-9).fit(design, Y)
    assert model.coef_.dtype == np.float64
    np.testing.assert_array_equal(model.coef_, go.GroupOWLRegressor(tol=1e-9).fit(ByteDesign(X), Y).coef_)


# The solver -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_solver_reaches_the_minimum_with_screening(loss, fit_intercept, sparse):
    case = make_case(3, d=30, loss=loss, fit_intercept=fit_intercept, weighted=True, sparse=sparse, fraction=0.5)
    reference = go.solve(**case.arguments(), screening="none", tol=1e-10)
    ours = go.solve(**case.arguments(), solver=ISTA(), tol=1e-6, max_iter=50_000)
    assert ours.converged
    assert -reference.gap <= ours.primal - reference.primal <= ours.gap
    assert set(reference.support) <= set(ours.active)
    assert len(ours.active) < 30
    assert np.all(np.diff(ours.history.primal) <= 1e-12 * ours.history.primal[0])  # and monotone, as ISTA is


def test_the_solver_gets_fewer_rows_and_fewer_steps_where_it_is_told(monkeypatch):
    case = make_case(5, d=30, fraction=0.6)
    widths, step_once = [], ISTA.step_once

    def spy(self, problem, state, certificate):
        widths.append(len(state.B))
        return step_once(self, problem, state, certificate)

    monkeypatch.setattr(ISTA, "step_once", spy)
    result = go.solve(**case.arguments(), solver=ISTA(steps_between_certificates=3), max_iter=50_000)
    assert result.converged
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0] == 30
    assert result.history.iteration[1] == 3


def test_all_three_together():
    X, _, weight = byte_matrix(6, n=60)
    Y = (X[:, :3] > 0).astype(float)
    options = {"loss": MultiLabelLoss(), "sample_weight": weight, "fit_intercept": True}
    lam = 0.5 * go.lam_max(ByteDesign(X), Y, "oscar", **options) * go.weights.oscar(X.shape[1])
    ours = go.solve(ByteDesign(X), Y, lam, **options, solver=ISTA(), max_iter=50_000)
    built_in = go.solve(sp.csr_array(X.astype(float)), Y, lam, **options, tol=1e-9)
    assert ours.converged
    assert abs(ours.primal - built_in.primal) <= ours.gap + built_in.gap


# A loss joins by one file and one line ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def package_without_poisson(tmp_path_factory):
    """A copy of the package that has never heard of one of its losses."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(Path(go.__file__).parent, root / "groupowl", ignore=shutil.ignore_patterns("__pycache__"))
    losses = root / "groupowl" / "losses"
    (losses / "poisson.py").unlink()
    table = (losses / "__init__.py").read_text(encoding="utf-8")
    (losses / "__init__.py").write_text(table.replace('    "poisson",\n', ""), encoding="utf-8")
    return root


def run_in(root, *arguments):
    environment = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


def test_a_new_loss_fulfills_the_contract(package_without_poisson):
    """One file and one line: the contract tests of losses run over it, and pass."""
    root = package_without_poisson
    losses, source = root / "groupowl" / "losses", Path(go.__file__).parent / "losses"
    known = run_in(root, "-c", "import groupowl; print(groupowl.__file__, *groupowl.losses.LOSSES)").stdout.split()
    assert known == [str(root / "groupowl" / "__init__.py"), "squared", "multinomial", "logistic", "huber", "cox"]
    shutil.copy(source / "poisson.py", losses)
    table = (losses / "__init__.py").read_text(encoding="utf-8")
    table = table.replace('    "huber",\n', '    "poisson",\n    "huber",\n')
    (losses / "__init__.py").write_text(table, encoding="utf-8")
    assert (losses / "__init__.py").read_text(encoding="utf-8") == (source / "__init__.py").read_text(encoding="utf-8")
    tests = Path(__file__).parent / "losses" / "test_losses.py"
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-k", "poisson", "--no-header", "--rootdir"]
    result = run_in(root, "-m", "pytest", *options, str(tests.parents[2]), str(tests))
    assert result.returncode == 0, result.stdout
    assert int(re.search(r"(\d+) passed", result.stdout)[1]) > 30
