"""``groupowl select``: what is promised and assumed, a table, a picture and a report."""

import csv
import json

import numpy as np
import pytest

import groupowl as go
from cli_support import write_csv
from groupowl.inference import KnockoffSelector, StabilitySelector

N_TRUE = 14
CON = ["--method", "knockoffs", "--fdr", "0.2"]


@pytest.fixture(scope="module")
def genes(tmp_path_factory):
    """A file with 40 features, of which 14 have an effect on two targets, and a target of classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 40))
    Y = X[:, :N_TRUE] @ (0.8 * rng.normal(size=(N_TRUE, 2))) + rng.normal(size=(200, 2))
    columns = {f"gene {j}": X[:, j] for j in range(40)}
    columns |= {"u": Y[:, 0], "v": Y[:, 1], "kind": np.where(Y[:, 0] > 0, "high", "low")}
    columns["weight"] = rng.uniform(0.5, 2.0, 200)
    return write_csv(tmp_path_factory.mktemp("select") / "genes.csv", columns)


def table_of(folder):
    with (folder / "selection.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def selected_in(folder):
    return {row["feature"] for row in table_of(folder) if row["selected"] == "True"}


def test_knockoffs(run, genes, tmp_path):
    """The table is that of the selector in Python; report and screen say what is promised and assumed."""
    out = tmp_path / "out"
    ran = run("select", genes, "--targets", "u,v", "--drop", "kind,weight", *CON, "--out", out)
    assert ran.code == 0, ran.err
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "run.json", "selection.csv", "selection.svg"]
    data = np.loadtxt(genes, delimiter=",", skiprows=1, usecols=range(42))
    selector = KnockoffSelector(0.2, random_state=0).fit(data[:, :40], data[:, 40:42])
    rows = table_of(out)
    assert [float(row["W"]) for row in rows] == sorted((float(row["W"]) for row in rows), reverse=True)
    found = {row["feature"]: float(row["W"]) for row in rows}
    np.testing.assert_allclose([found[f"gene {j}"] for j in range(40)], selector.scores_, rtol=1e-6)
    assert selected_in(out) == {f"gene {j}" for j in np.flatnonzero(selector.support_)}
    page = (out / "report.html").read_text(encoding="utf-8")
    for sentence in selector._promise():
        assert sentence in page
        assert " ".join(sentence.split()[:6]) in " ".join(ran.out.split())
    assert "<script" not in page
    assert "data:image/svg+xml;base64," in page
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert record["kind"] == "groupowl selection"
    assert "GroupOWLRegressor, squared loss" in page
    assert "GroupOWLRegressor, squared loss" in ran.out
    assert record["promise"] == selector._promise()[0]


def test_runs_are_reproduced(run, genes, tmp_path):
    pictures = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        arguments = ("--targets", "u,v", "--drop", "kind,weight", *CON, "--draws", "4", "--jobs", jobs, "--out", out)
        assert run("select", genes, *arguments, "--quiet").code == 0
        pictures.append(((out / "selection.csv").read_bytes(), (out / "selection.svg").read_bytes()))
    assert pictures[0] == pictures[1]


def test_stability(run, genes, tmp_path):
    out = tmp_path / "out"
    arguments = ("--method", "stability", "--max-false", "2", "--pairs", "10", "--out", out)
    ran = run("select", genes, "--targets", "u,v", "--drop", "kind,weight", *arguments)
    assert ran.code == 0, ran.err
    data = np.loadtxt(genes, delimiter=",", skiprows=1, usecols=range(42))
    selector = StabilitySelector(2.0, n_pairs=10, random_state=0).fit(data[:, :40], data[:, 40:42])
    assert selected_in(out) == {f"gene {j}" for j in np.flatnonzero(selector.support_)}
    assert selector._promise()[0] in (out / "report.html").read_text(encoding="utf-8")


def test_messages_have_options_as_they_are_typed(run, genes):
    given = ("select", genes, "--targets", "u,v", "--drop", "kind,weight")
    ran = run(*given, "--draws", 2)
    assert "knockoffs (--fdr 0.1, --sampler gaussian, --draws 2)" in ran.out
    message = run(*given, "--method", "stability", "--pairs", 2, "--max-false", 0.001).message
    assert "--max-false 0.001 cannot be promised: with 1 of 40 features" in message
    assert "Allow more false selections, or raise --pairs." in message


def test_categories(run, genes, tmp_path):
    """Stability selection judges them as a whole; knockoffs, which need a law of numbers, refuse them."""
    out = tmp_path / "out"
    chosen = ("--targets", "v", "--drop", "u,weight", "--categories", "kind")
    ran = run("select", genes, *chosen, "--method", "stability", "--pairs", "5", "--max-false", "2", "--out", out)
    assert ran.code == 0, ran.err
    assert {row["feature"] for row in table_of(out)} == {"kind", *(f"gene {j}" for j in range(40))}
    assert (
        "a column of categories, 'kind', and knockoffs are for numbers" in run("select", genes, *chosen, *CON).message
    )


def test_classes_as_json(run, genes):
    """Of a target that is text; nothing is written without --out."""
    ran = run("select", genes, "--targets", "kind", "--drop", "u,v", "--sample-weight", "weight", *CON, "--json")
    found = json.loads(ran.out)
    assert found["task"] == "classification"
    assert found["model"] == "GroupOWLClassifier, logistic loss, 2 classes"
    assert found["written"] == []
    assert found["n_selected"] == len(found["selected"])
    assert {"promise", "assumption", "threshold", "notes"} <= found.keys()


def test_groups_and_unpenalized_features(run, genes, tmp_path):
    out = tmp_path / "out"
    groups = [f"--feature-groups=g{k}=gene {2 * k},gene {2 * k + 1}" for k in range(1, 20)]
    arguments = ("--targets", "u,v", "--drop", "kind,weight", "--unpenalized", "gene 0,gene 1", *groups, "--fdr", "0.3")
    assert run("select", genes, *arguments, "--out", out).code == 0
    rows = {row["feature"]: row for row in table_of(out)}
    assert rows["gene 0"]["selected"] == "False"
    assert rows["gene 0"]["W"] in ("", "nan")
    for k in range(1, 20):
        assert rows[f"gene {2 * k}"]["W"] == rows[f"gene {2 * k + 1}"]["W"]


def test_nothing_selected_is_said(run, genes, tmp_path):
    out = tmp_path / "out"
    ran = run("select", genes, "--targets", "u", "--drop", "v,kind,weight", "--fdr", "0.01", "--out", out)
    assert ran.code == 0
    assert "No feature is selected." in ran.out
    assert "Nothing is selected: at --fdr 0.01" in " ".join(ran.out.split())
    reason = "knockoffs select at least 100 features (1/fdr) or none"
    assert reason in " ".join(ran.out.split())
    assert reason in (out / "report.html").read_text(encoding="utf-8")
    assert "No feature of 40" in " ".join((out / "report.html").read_text(encoding="utf-8").split())


def test_names_are_shown_as_they_are(run, tmp_path):
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=50) for name in ("<script>alert(1)</script>", "=1+1", "a$b_{2}", "\x1b[31m")}
    file = write_csv(tmp_path / "hostile.csv", columns | {"y": rng.normal(size=50)})
    ran = run("select", file, "--targets", "y", "--fdr", "0.5", "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "\x1b" not in page + ran.out
    assert "'=1+1" in (tmp_path / "out" / "selection.csv").read_text(encoding="utf-8")


def test_folders_of_selections(run, genes, tmp_path):
    """They are replaced only if that is asked for, and are no models."""
    out = tmp_path / "out"
    arguments = ("select", genes, "--targets", "u", "--drop", "v,kind,weight", "--fdr", "0.5", "--out", out, "--quiet")
    assert run(*arguments).code == 0
    assert "exists. Use --force" in run(*arguments).message
    assert run(*arguments, "--force").code == 0
    assert "holds a selection of features, and no model" in run("predict", out, genes).message


def test_help_has_what_can_be_used(run):
    """What select refuses is not listed."""
    listed = run("select", "--help").out
    assert "--sample-weight" in listed
    assert "--exposure " in listed
    assert "--groups " not in listed
    assert "--groups " in run("cv", "--help").out


@pytest.mark.parametrize("method", ["knockoffs", "stability"])
@pytest.mark.parametrize("option", ["offset", "exposure"])
def test_offsets_and_exposures(run, tmp_path, method, option):
    """Counts per exposure, as in Python; the column is no feature, and report and record name it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12))
    hours = rng.uniform(0.2, 5.0, 150)
    counts = rng.poisson(hours * np.exp(0.5 * X[:, :6].sum(axis=1)))
    beside = np.log(hours) if option == "offset" else hours
    file = write_csv(tmp_path / "counts.csv", {f"x{j}": X[:, j] for j in range(12)} | {"u": counts, "time": beside})
    how = ("--fdr", "0.4") if method == "knockoffs" else ("--max-false", "2", "--pairs", "8")
    out = tmp_path / "out"
    ran = run(
        "select", file, "-t", "u", "--loss", "poisson", f"--{option}", "time", "--method", method, *how, "-o", out
    )
    assert ran.code == 0, ran.err
    kinds = {"knockoffs": KnockoffSelector(0.4), "stability": StabilitySelector(2, n_pairs=8)}
    estimator = go.GroupOWLRegressor(loss="poisson", weights="constant", standardize=True)
    selector = kinds[method].set_params(estimator=estimator, random_state=0)
    selector.fit(X, counts, offset=np.log(hours))
    column = "W" if method == "knockoffs" else "score"
    found = {row["feature"]: float(row[column]) for row in table_of(out)}
    np.testing.assert_allclose([found[f"x{j}"] for j in range(12)], selector.scores_, rtol=1e-3, atol=1e-6)
    facts = json.loads((out / "run.json").read_text(encoding="utf-8"))["facts"]
    assert facts[option.capitalize()] == "time"
    assert facts["Model"] == "GroupOWLRegressor, poisson loss, with an offset"
    assert facts["Model"] in (out / "report.html").read_text(encoding="utf-8")


def test_a_selection_of_nothing_is_told_once(run, tmp_path):
    """Whether or not Python warns, too."""
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=60) for j in range(5)} | {"u": rng.normal(size=60)}
    ran = run("select", write_csv(tmp_path / "noise.csv", columns), "--targets", "u", "--json")
    assert ran.code == 0, ran.err
    (note,) = json.loads(ran.out)["notes"]
    assert note.startswith("Nothing is selected: at --fdr 0.1 knockoffs select at least 10 features")
    assert "depend on --seed. Try a larger fdr, or stability selection (--method stability)" in note


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "stability", "--fdr", "0.1"), "--fdr is for --method knockoffs, and the method is stability"),
        (("--max-false", "1"), "--max-false is for --method stability"),
        (("--groups", "gene 1"), "select knows no groups. Use --drop 'gene 1' in its place"),
        (("--sampler", "fixed", "--loss", "poisson"), "sampler='fixed' is for the squared loss"),
    ],
)
def test_what_does_not_go_together(run, genes, tmp_path, arguments, message):
    file = genes
    if "poisson" in arguments:
        rng = np.random.default_rng(0)
        file = write_csv(tmp_path / "counts.csv", {"x": rng.normal(size=30), "u": rng.poisson(2.0, 30)})
    dropped = () if "poisson" in arguments else ("--drop", "v,kind")
    assert message in run("select", file, "--targets", "u", *dropped, *arguments).message
