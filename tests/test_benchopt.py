"""The benchopt benchmark: its judge is right, its solvers solve its problem, and skip what they cannot do.

benchopt itself is not needed here: a stand-in has the few names that the files import. ``make benchopt`` runs the rest.
"""

import importlib.util
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import yaml

import groupowl as go
from groupowl_harness import judge

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks" / "benchopt"
SOLVERS = sorted(path.stem for path in (FOLDER / "solvers").glob("*.py"))
DATASETS = sorted(path.stem for path in (FOLDER / "datasets").glob("*.py"))
PACKAGES = {"celer": "celer", "skglm": "skglm", "sortedl1": "sortedl1"}  # of solvers that need more than groupowl


class Component:
    """What benchopt's base classes do with parameters: the first value of each is an attribute."""

    parameters = types.MappingProxyType({})
    sampling_strategy = None

    def __init__(self, **values):
        for names, choices in self.parameters.items():
            choice = choices[0]
            pairs = zip(names.split(", "), choice, strict=True) if ", " in names else [(names, choice)]
            for name, value in pairs:
                setattr(self, name, values.get(name, value))

    def skip(self, **objective):
        return False, None


class StoppingCriterion:
    def __init__(self, **options):
        self.strategy = options.get("strategy")
        self.key_to_monitor_ = f"objective_{options['key_to_monitor']}"

    def get_next_stop_val(self, stop_val):
        return stop_val + 1


def fake_module(name, **contents):
    module = types.ModuleType(name)
    vars(module).update(contents)
    return module


@pytest.fixture(scope="module", autouse=True)
def stand_in():
    """Modules under the names that the files of the benchmark import."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (
            fake_module("benchopt", BaseObjective=Component, BaseSolver=Component, BaseDataset=Component),
            fake_module("benchopt.stopping_criterion", StoppingCriterion=StoppingCriterion),
            fake_module("benchopt.config", get_data_path=lambda key: FOLDER / "data" / key),
            fake_module("benchopt.datasets"),
            fake_module("benchopt.datasets.simulated", make_correlated_data=make_correlated_data),
        ):
            patch.setitem(sys.modules, module.__name__, module)
        patch.syspath_prepend(str(FOLDER))
        yield
        for name in [name for name in sys.modules if name.partition(".")[0] == "benchmark_utils"]:
            del sys.modules[name]


def make_correlated_data(n_samples, n_features, *, n_tasks, rho, snr, density, random_state):
    data = go.datasets.make_correlated_groups(n_samples, n_features, n_tasks, random_state=random_state)
    return data.X, data.Y if n_tasks > 1 else data.Y[:, 0], data.B


def load(*parts):
    path = FOLDER.joinpath(*parts)
    spec = importlib.util.spec_from_file_location(f"benchopt_file_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_solver(name):
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name], reason=f"not installed: {PACKAGES[name]} (extra benchopt)")
    return load("solvers", f"{name}.py").Solver


def make_objective(n_tasks, loss="squared", weights="constant", sparse=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60))
    Y = X[:, :3] @ rng.standard_normal((3, n_tasks)) + 0.5 * rng.standard_normal((40, n_tasks))
    if loss == "multinomial":
        Y = np.eye(n_tasks)[np.argmax(Y, axis=1)]
    objective = load("objective.py").Objective(weights=weights, reg=0.1)
    objective.set_data(X=sp.csc_array(X) if sparse else X, Y=Y, loss=loss)
    return objective


def solve(solver, objective):
    """One run to high accuracy; a callback ends at the gap that the benchmark asks for, or far too late."""
    solver.set_objective(**objective.get_objective())
    if solver.sampling_strategy == "tolerance":
        solver.run(1e-12)
        return solver.get_result()
    rounds = iter(range(20_000))
    solver.run(lambda: next(rounds, None) is not None and not is_done(objective, solver))
    return solver.get_result()


def is_done(objective, solver):
    return objective.evaluate_result(**solver.get_result())["relative_gap"] <= 1e-9


CASES = {
    "one task": {"n_tasks": 1},
    "one task, oscar": {"n_tasks": 1, "weights": "oscar"},
    "three tasks": {"n_tasks": 3},
    "three tasks, bh": {"n_tasks": 3, "weights": "bh"},
    "sparse": {"n_tasks": 3, "sparse": True},
    "one task, sparse": {"n_tasks": 1, "sparse": True},
    "classes": {"n_tasks": 3, "loss": "multinomial"},
    "classes, oscar": {"n_tasks": 3, "loss": "multinomial", "weights": "oscar"},
}
ONE_TASK = {"one task", "one task, oscar", "one task, sparse"}
EQUAL = {"one task", "one task, sparse", "three tasks"}
TAKES_PART = {
    "celer": EQUAL,
    "groupowl": set(CASES),
    "proximal_gradient": set(CASES),
    "skglm": EQUAL,
    "sklearn": EQUAL,
    "sortedl1": ONE_TASK,
}


def test_every_solver_is_tested():
    assert sorted(TAKES_PART) == SOLVERS


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_reach_the_minimum_or_skip(name, case):
    solver, objective = load_solver(name)(), make_objective(**CASES[case])
    skipped, reason = solver.skip(**objective.get_objective())
    assert skipped == (case not in TAKES_PART[name]), reason
    if skipped:
        assert isinstance(reason, str)
        return
    found = objective.evaluate_result(**solve(solver, objective))
    assert -1e-12 <= found["relative_gap"] <= 1e-8
    assert found["n_selected"] > 0


@pytest.mark.parametrize("choice", ["auto", "apgd"])
def test_the_parameter_of_groupowl_is_used(choice, monkeypatch):
    solver, objective = load_solver("groupowl")(solver=choice), make_objective(2)
    seen = []
    monkeypatch.setattr(go, "solve", lambda *data, **options: seen.append(options["solver"]) or SOLVE(*data, **options))
    solve(solver, objective)
    assert seen == [choice]


SOLVE = go.solve


@pytest.mark.parametrize("weights", ["constant", "oscar", "bh"])
@pytest.mark.parametrize(("n_tasks", "loss"), [(1, "squared"), (3, "squared"), (3, "multinomial")])
def test_the_gap_is_that_of_the_harness(n_tasks, loss, weights):
    """Two implementations that share nothing agree, far from the minimum and near it."""
    objective = make_objective(n_tasks, loss, weights)
    strongest = judge.lam_max(objective.X, objective.Y, objective.lam / objective.lam[0], loss)
    assert objective.lam[0] == pytest.approx(0.1 * strongest, rel=1e-12)
    np.testing.assert_allclose(
        objective.lam / objective.lam[0], getattr(go.weights, weights)(objective.X.shape[1]), rtol=1e-12
    )
    rng = np.random.default_rng(1)
    near = go.solve(objective.X, objective.Y, objective.lam, loss=loss, tol=1e-6).B
    for B in (np.zeros(near.shape), near, near + 0.1 * rng.standard_normal(near.shape)):
        found = objective.evaluate_result(B)
        verdict = judge.judge(objective.X, objective.Y, objective.lam, loss, np.arange(len(B)), B)
        assert found["value"] == pytest.approx(verdict.objective, rel=1e-12)
        assert found["relative_gap"] >= verdict.gap - 1e-12  # the harness takes the best multiple of the residual
        assert found["relative_gap"] <= 20.0 * verdict.gap + 1e-12
        assert found["relative_gap"] == pytest.approx(found["duality_gap"] / verdict.null_loss, rel=1e-12)


def test_one_result_can_be_evaluated():
    objective = make_objective(2)
    found = objective.evaluate_result(**objective.get_one_result())
    assert found["value"] == pytest.approx(objective.null_loss)
    assert found["n_selected"] == 0


def test_other_losses_are_skipped():
    objective = make_objective(2)
    assert objective.skip(objective.X, objective.Y, "poisson")[0]
    assert not objective.skip(objective.X, objective.Y, "multinomial")[0]


def test_the_criterion_stops_at_the_gap():
    criterion = make_objective(1).stopping_criterion
    assert criterion.check_convergence([{"objective_relative_gap": 1e-8}]) == (True, 1.0)
    done, progress = criterion.check_convergence([{"objective_relative_gap": 1e-4}])
    assert not done
    assert progress == pytest.approx(0.5)
    criterion.strategy = "tolerance"
    assert criterion.get_next_stop_val(3e38) == 1.0
    assert criterion.get_next_stop_val(1e-4) == pytest.approx(1e-4 / np.sqrt(10.0))
    assert criterion.get_next_stop_val(1e-15) == 1e-15


@pytest.mark.parametrize("name", DATASETS)
def test_datasets_fit_the_objective(name, tmp_path, monkeypatch):
    module = load("datasets", f"{name}.py")
    if name == "files":
        X = sp.random_array((12, 7), density=0.4, rng=np.random.default_rng(0), format="csr")
        pieces = {part: getattr(X, part) for part in ("data", "indices", "indptr")}
        np.savez(tmp_path / "plantgo.npz", shape=X.shape, Y=np.ones((12, 2), dtype=np.uint8), **pieces)
        np.savez(tmp_path / "cmufaces.npz", X=X.toarray(), y=np.arange(12, dtype=np.uint8) % 4)
        monkeypatch.setattr(module, "get_data_path", lambda key: tmp_path)
    choices = {"files": ["plantgo", "cmufaces"], "scikit_learn": ["diabetes", "linnerud", "digits"]}.get(name, ["-"])
    monkeypatch.setattr(module.Dataset, "get_seed", lambda self: 0, raising=False)
    for choice in choices:
        data = module.Dataset(file=choice, data=choice).get_data()
        assert data["X"].shape[0] == len(data["Y"])
        assert data["Y"].ndim == 2
        objective = load("objective.py").Objective()
        assert objective.skip(**data) == (False, None)
        objective.set_data(**data)
        assert objective.lam[0] > 0.0


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match=r"plantgo\.npz does not exist: name the folder in data_paths"):
        load("datasets", "files.py").Dataset().get_data()


def test_the_small_run_names_what_there_is():
    config = yaml.safe_load((FOLDER / "small.yml").read_text(encoding="utf-8"))
    names = {kind: set() for kind in ("objective", "dataset", "solver")}
    for kind, found in names.items():
        for entry in config[kind]:
            found.update([entry] if isinstance(entry, str) else entry)
    assert names["objective"] == {load("objective.py").Objective.name}
    assert names["dataset"] < {load("datasets", f"{name}.py").Dataset.name for name in DATASETS}
    installed = {name for name in SOLVERS if name not in PACKAGES or importlib.util.find_spec(PACKAGES[name])}
    assert {load_solver(name).name for name in installed} <= names["solver"]
    assert len(names["solver"]) == len(SOLVERS)
