"""Cells in quotation marks, as R writes them: what is missing is missing in every command."""

from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture
def files(tmp_path):
    """The same table twice, with missing cells in quotation marks and without."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4)).round(3)
    y = (X @ [1.0, -1.0, 0.5, 0.0] + 0.1 * rng.standard_normal(40)).round(3)
    cells = np.column_stack([y, X]).astype(str)
    cells[3, 1] = cells[7, 2] = "-999"
    cells[9, 3], cells[11, 0] = "NA", ""
    for name, mark in (("plain", ""), ("quoted", '"')):
        rows = [",".join(mark + cell + mark for cell in row) for row in (["y", "a", "b", "c", "d"], *cells.tolist())]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


OPTIONS = ("-t", "y", "--na", "-999", "--missing", "mean", "-q")


@pytest.mark.parametrize("command", [("fit",), ("path", "--alphas", "5"), ("cv", "--folds", "3", "--alphas", "5")])
def test_models_are_those_of_the_file_without_marks(run, files, command):
    for name in ("plain", "quoted"):
        ran = run(command[0], files / f"{name}.csv", *command[1:], *OPTIONS, "-o", files / name)
        assert ran.code == 0, ran.err
    assert (files / "plain/coefficients.csv").read_text() == (files / "quoted/coefficients.csv").read_text()
    plain, quoted = (run("predict", files / "plain", files / f"{name}.csv").out for name in ("plain", "quoted"))
    assert plain == quoted != ""


def test_selections_and_folders_are_those_of_the_file_without_marks(run, files):
    for name in ("plain", "quoted"):
        path = files / f"{name}.csv"
        assert run("select", path, "--method", "stability", "--pairs", "5", *OPTIONS, "-o", files / name).code == 0
        assert run("convert", path, "-t", "y", "--na", "-999", "-q", "-o", files / f"{name}.disk").code == 0
    assert (files / "plain/selection.csv").read_text() == (files / "quoted/selection.csv").read_text()
    plain, quoted = (np.load(files / f"{name}.disk/X.npy") for name in ("plain", "quoted"))
    np.testing.assert_array_equal(plain, quoted)
    assert np.isnan(quoted).sum() == 3


def test_a_missing_code_in_quotation_marks_is_refused_without_a_remedy_that_was_given(run, tmp_path):
    (tmp_path / "t.csv").write_text('"y","a","b"\n1,2,"."\n2,3,"1"\n3,1,"NA"\n4,5,"4"\n')
    message = run("fit", tmp_path / "t.csv", "-t", "y", "--na", ".").message
    assert "has 2 missing values in 1 feature column: 'b' (2). Use --missing mean" in message


def test_an_empty_cell_in_quotation_marks_is_no_class_and_no_level(run, tmp_path):
    (tmp_path / "t.csv").write_text('"cl","a"\n"yes",2\n"no",3\n"",1\n"yes",5\n"no",9\n"",4\n')
    message = run("fit", tmp_path / "t.csv", "-t", "cl").message
    assert "target 'cl' has 2 missing values (row 3, 6). A sample without a class says nothing" in message
    message = run("fit", tmp_path / "t.csv", "-t", "a", "--categories", "cl").message
    assert "category 'cl' has 2 missing values (row 3, 6). Use --missing drop" in message


def test_a_word_in_quotation_marks_is_a_class_unless_it_is_said_to_be_missing(run, tmp_path):
    (tmp_path / "t.csv").write_text('"cl","a"\n' + '"yes",2\n"NA",3\n"NA",1\n"yes",5\n"NA",9\n"yes",4\n' * 2)
    ran = run("fit", tmp_path / "t.csv", "-t", "cl", "--json", "-o", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert "NA" in json.dumps(json.loads((tmp_path / "out/run.json").read_text()))
    assert "has 6 missing values" in run("fit", tmp_path / "t.csv", "-t", "cl", "--na", "NA").message
