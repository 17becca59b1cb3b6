"""Every script in examples/ runs, smaller, and what it claims is true."""

import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SCALE = 0.2


@pytest.fixture
def load_example(monkeypatch):
    """Import a script by its path, for the time of a test."""

    def load(path):
        name = f"example_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)  # dataclasses look for their module there
        spec.loader.exec_module(module)
        return module

    return load


def test_there_are_examples():
    assert "any_solver" in [path.stem for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_says_what_it_shows_and_runs(path, load_example, capsys):
    """A docstring with the command, nothing done on import, and a main that prints and takes a scale."""
    module = load_example(path)
    assert f"python examples/{path.name}" in module.__doc__
    assert capsys.readouterr().out == ""
    assert inspect.signature(module.main).parameters["scale"].default == 1.0
    module.main(scale=SCALE)
    assert capsys.readouterr().out.strip()


@pytest.fixture
def any_solver(load_example):
    return load_example(Path(__file__).parents[1] / "examples" / "any_solver.py")


def test_any_solver_reaches_the_same_objective_with_fewer_rows(any_solver, capsys):
    outcomes = any_solver.main(scale=SCALE)
    assert set(outcomes) == {"squared", "multinomial"}
    for runs in outcomes.values():
        without, screened = runs["without"], runs["screened"]
        assert screened.rows_alive < without.rows_alive
        assert abs(screened.objective - without.objective) <= screened.gap + without.gap
        assert max(screened.relative_gap, without.relative_gap) <= any_solver.TOL
    printed = capsys.readouterr().out
    assert printed.count("agree within the gaps") == 2
    assert "DISAGREE" not in printed


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_any_solver_finds_the_minimum_of_our_solvers(any_solver, loss):
    """The objective that PyProximal reports is the one of `go.solve`."""
    problem = any_solver.make_problem(loss, 25, 80, 3, 0.4)
    ours = any_solver.go.solve(problem.X, problem.Y, problem.lam, loss=loss, tol=1e-9)
    theirs = any_solver.solve(problem, shrink=True)
    assert abs(theirs.objective - ours.primal) <= theirs.gap + ours.gap
    assert theirs.rows_alive < 80


def test_any_solver_shrinks_what_the_solver_sees(any_solver, monkeypatch):
    """The columns handed to PyProximal only ever get fewer, and stay whole without screening."""
    problem = any_solver.make_problem("squared", 25, 80, 3, 0.4)
    iterate, widths = any_solver.iterate, []

    def spy(problem, X, lam, B, step):
        assert X.shape[1] == len(lam) == len(B)
        widths.append(len(lam))
        return iterate(problem, X, lam, B, step)

    monkeypatch.setattr(any_solver, "iterate", spy)
    any_solver.solve(problem, shrink=True)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 80
    widths.clear()
    any_solver.solve(problem, shrink=False)
    assert set(widths) == {80}
