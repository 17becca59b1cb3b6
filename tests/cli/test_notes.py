"""Notes on data and on the choice of alpha: said where the option they name helps, and nowhere else."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from cli_support import write_csv
from groupowl.cli import outcome
from groupowl.cli.outcome import edge_note, named_design
from groupowl.tables import Table

N = 30


def table_of(**columns):
    X = np.column_stack(list(columns.values())).astype(float)
    y = np.random.default_rng(0).standard_normal((len(X), 1))
    return Table("t.csv", X, tuple(columns), y, ("y",), "regression")


def changed(table, **fields):
    return Table(**{**vars(table), **fields})


def data_notes(table, *, standardized):
    return outcome.data_notes(table, named_design(table.X, table.feature_names), standardized=standardized)


@pytest.fixture
def numbers():
    return np.random.default_rng(1).standard_normal(N)


@pytest.fixture
def counts():
    return np.random.default_rng(2).permutation(N) + 17


# Sizes of columns ---------------------------------------------------------------------------------------


def test_columns_of_very_different_sizes(numbers):
    table = table_of(rate=numbers, income=3e4 * numbers[::-1], constant=np.full(N, 7.0))
    (note,) = data_notes(table, standardized=False)
    assert note == (
        "Standard deviations of columns differ by a factor of 3e+04 ('income' has the largest, 'rate' the smallest): "
        "--standardize makes the penalty treat them alike."
    )
    assert data_notes(changed(table, X=sp.csr_array(table.X)), standardized=False) == [note]


def test_sizes_that_do_not_matter(numbers):
    """Standardized, not penalized, nearly alike, constant, or on disk."""
    table = table_of(rate=numbers, income=3e4 * numbers[::-1])
    assert data_notes(table, standardized=True) == []
    assert data_notes(changed(table, unpenalized=("income",)), standardized=False) == []
    assert data_notes(table_of(a=numbers, b=9.9 * numbers), standardized=False) == []
    assert len(data_notes(table_of(a=numbers, b=10.1 * numbers), standardized=False)) == 1
    assert data_notes(table_of(a=np.full(N, 1e9), b=np.full(N, 0.1)), standardized=False) == []
    assert data_notes(changed(table, X=go.designs.as_design(table.X)), standardized=False) == []


def test_sizes_count_only_samples_with_weight(numbers):
    odd = np.append(numbers[:-1], 1e9)
    weight = np.append(np.ones(N - 1), 0.0)
    assert data_notes(table_of(a=numbers, b=odd), standardized=False)
    assert data_notes(changed(table_of(a=numbers, b=odd), sample_weight=weight), standardized=False) == []


# Columns that count -------------------------------------------------------------------------------------


def test_a_column_that_counts_the_samples(numbers, counts):
    table = table_of(patient=counts, a=numbers)
    (note,) = data_notes(table, standardized=True)
    assert note == "Samples are counted by 'patient'; if that names them, use --id-column patient."
    (named,) = data_notes(changed(table, ids=tuple(map(str, counts))), standardized=True)
    assert named.endswith("if that names them, use --drop patient.")
    (quoted,) = data_notes(table_of(**{"patient no": counts}, a=numbers), standardized=True)
    assert quoted.endswith("--id-column 'patient no'.")
    (several,) = data_notes(table_of(patient=counts, row=np.arange(N)), standardized=True)
    assert several.startswith("Samples are counted by 'patient', 'row'; if that names them, use --id-column patient,")
    assert several.endswith("and --drop for 'row'.")


def test_columns_that_do_not_count(numbers, counts):
    twice = np.where(counts == 20, 21, counts)
    gap = np.where(counts == counts.max(), counts + 1, counts)
    assert data_notes(table_of(a=twice, b=gap, c=counts + 0.5 * (counts == 25)), standardized=True) == []
    assert data_notes(table_of(few=np.arange(5)), standardized=True) == []
    assert data_notes(changed(table_of(time=counts, a=numbers), unpenalized=("time",)), standardized=True) == []


# The edge of the grid -----------------------------------------------------------------------------------


def chosen_at(index, **settings):
    data = go.datasets.make_correlated_groups(30, 6, 2, n_informative=3, random_state=0)
    model = go.GroupOWLRegressorCV(**{"alphas": 5, "eps": 0.5, "cv": 3, **settings}).fit(data.X, data.Y)
    model.best_index_ = index % len(model.alphas_)
    return model


def test_the_smallest_alpha_is_the_best():
    (note,) = edge_note(chosen_at(-1))
    assert note == "The best alpha is the smallest one tried; --eps with a value below 0.5 looks further."
    assert edge_note(chosen_at(-2)) == []
    assert edge_note(chosen_at(-1, alphas=[1.0, 0.5])) == []
    assert edge_note(chosen_at(-1, alphas=1)) == []
    assert edge_note(go.GroupOWLRegressor().fit(np.eye(4), np.arange(4.0))) == []


def test_a_path_that_ended_early_has_no_edge():
    X = np.random.default_rng(0).standard_normal((20, 3))
    model = go.GroupOWLRegressorCV(alphas=50, eps=1e-6, cv=3).fit(X, X @ np.ones((3, 1)))
    assert model.path_.stopped_because == "deviance"
    model.best_index_ = len(model.alphas_) - 1
    assert edge_note(model) == []


def test_cross_validation_finds_nothing(run, tmp_path):
    columns = np.random.default_rng(0).standard_normal((4, 40))
    path = write_csv(tmp_path / "t.csv", dict(zip("abcy", columns, strict=True)))
    said = " ".join(run("cv", path, "--targets", "y", "--folds", 3).out.split())
    assert "No feature is selected. Cross-validation finds nothing better than the null model." in said
    assert "A smaller alpha selects some" not in said


# Counts -------------------------------------------------------------------------------------------------


def test_targets_that_look_like_counts(numbers):
    """Each condition matters: whole, not negative, small, skewed, more than two values, squared loss."""
    table, counts = table_of(a=numbers), np.repeat([0.0, 1.0, 2.0, 5.0], [12, 9, 6, 3])[:, None]
    (note,) = outcome.count_note(changed(table, y=counts), "squared")
    assert note.startswith("Target 'y' has whole numbers")
    assert "use --loss poisson" in note
    missing = np.where(np.arange(N)[:, None] == 3, np.nan, counts)
    assert outcome.count_note(changed(table, y=missing), "squared") == [note]
    assert outcome.count_note(changed(table, y=counts), "poisson") == []
    others = [counts + 0.5, counts - 1.0, counts + 20.0, 5.0 - counts, (counts > 1.0).astype(float), numbers[:, None]]
    for y in [*others, np.hstack([counts, numbers[:, None]])]:
        names = tuple(f"y{k}" for k in range(y.shape[1]))
        assert outcome.count_note(changed(table, y=y, target_names=names), "squared") == []


# On the command line ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "path", "cv"])
def test_commands_have_the_notes(run, tmp_path, numbers, command):
    columns = {"row": range(N), "a": numbers, "b": 1000 * numbers[::-1], "y": numbers[::-1] + 0.1 * numbers}
    path = write_csv(tmp_path / "t.csv", columns)
    more = [] if command == "fit" else ["--alphas", 5, "--eps", 0.5, "--selection", "aic"]
    notes = json.loads(run(command, path, "--targets", "y", "--test-size", 0.2, *more, "--json").out)["notes"]
    expected = ["Samples are counted by 'row'", "Standard deviations of columns differ"]
    assert [note[: len(start)] for note, start in zip(notes, expected, strict=False)] == expected
    assert any(note.startswith("The best alpha is the smallest one tried") for note in notes) is (command != "fit")


def test_the_note_on_counts_is_said_once(run, tmp_path, numbers):
    path = write_csv(tmp_path / "t.csv", {"a": numbers, "y": np.repeat([0, 1, 2, 3, 4, 9], [9, 8, 6, 4, 2, 1])})
    notes = json.loads(run("fit", path, "--targets", "y", "--json").out)["notes"]
    assert sum("--loss poisson" in note for note in notes) == 1
    notes = json.loads(run("fit", path, "--targets", "y", "--loss", "poisson", "--json").out)["notes"]
    assert not any("--loss poisson" in note for note in notes)
