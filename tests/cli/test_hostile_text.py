"""Names and cells that would steer a terminal, style a page or start a formula are shown and written as text."""

import csv
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import groupowl as go
from cli_support import make_data, write_csv
from groupowl._text import printable
from groupowl.cli.terminal import PlainConsole, Stages, progress_bar

# Colors, a title of the window, a cleared screen, a bell, C1 controls, the other direction, half a character.
CONTROLS = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \x9b2J \x7f \x08 \u202eturned\u202c \u2066\u2069"
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
MARKUP = "[red]x[/red]"


def assert_plain(ran):
    assert UNSEEN.search(ran.out) is None, ran.out
    assert UNSEEN.search(ran.err) is None, ran.err


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A file whose name, columns, ids and classes hold control characters and markup; the features decide the class."""
    monkeypatch.chdir(tmp_path)
    data = make_data()
    columns = {f"id{CONTROLS.strip()}": [f"{CONTROLS}{i}" for i in range(40)]}
    columns |= {f"{MARKUP}{CONTROLS}{j}": data.X[:, j] for j in range(6)}
    strong = data.X[:, 0] + data.X[:, 1]
    columns["y\x1b[1m"] = strong + 0.01 * data.Y[:, 0]
    columns["c\x1b[2J"] = np.where(strong > 0.0, "up\x1b[31m", "down\u202e")
    path = Path("t\x1b[31m.csv")
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def test_escapes_are_those_of_python():
    assert printable("a\x1b[0m\n") == r"a\x1b[0m\n"
    assert printable("a\nb", keep="\n") == "a\nb"
    assert printable("Größe \u202e \ud83e 漢字") == r"Größe \u202e \ud83e 漢字"
    assert printable("\u0645\u06cc\u200c\u062e\n") == "\u0645\u06cc\u200c\u062e\\n"  # a joiner within a word stays
    assert printable(12) == "12"


@pytest.mark.parametrize("target", ["y*", "c*"])
@pytest.mark.parametrize("command", ["fit", "cv", "path"])
def test_no_control_character_reaches_the_terminal(run, hostile, command, target):
    other = "c*" if target == "y*" else "y*"
    data = ["--targets", target, "--id-column", "1", "--drop", other]
    ran = run(command, hostile, *data, *([] if command == "fit" else ["--alphas", "5"]), "--out", "m\x1b[31m")
    assert ran.code == 0, ran
    assert_plain(ran)
    assert r"\x1b[31mred" in ran.out
    assert MARKUP in ran.out
    for arguments in (["predict"], ["predict", "--json"], ["verify"], ["verify", "--json"]):
        ran = run(arguments[0], "m\x1b[31m", hostile, *arguments[1:])
        assert ran.code == 0, ran
        assert_plain(ran)
    ran = run("predict", "m\x1b[31m", hostile, "--out", "p\x1b[31m.csv")
    assert_plain(ran)
    page = Path("m\x1b[31m", "report.html").read_text(encoding="utf-8")
    assert UNSEEN.search(page.replace("\t", " ")) is None


def test_json_keeps_what_it_escapes(run, hostile):
    ran = run("fit", hostile, "-t", "y*", "--id-column", "1", "--drop", "c*", "--json")
    assert_plain(ran)
    assert json.loads(ran.out)["selected"][0]["feature"].startswith("[red]x[/red]\x1b[31mred")


@pytest.mark.parametrize("more", [[], ["--debug"]])
def test_errors_are_plain_too(run, hostile, more):
    for arguments in (
        ["fit", hostile, "-t", "nothing\x1b[2J"],
        ["fit", hostile, "-t", "y*"],
        ["fit", "no\x1b[2J.csv", "-t", "y"],
        ["fit", hostile, "-t", "y*", "--weights", "\x1b[2J"],
        ["fit", hostile, "-t", "y*", "--\x1b[2J"],
        ["fi\x1b[2J"],
        ["predict", "no\x1b[2J", hostile],
    ):
        ran = run(*arguments, *more)
        assert ran.code in (1, 2)
        assert_plain(ran)
        assert ran.err


def test_progress_is_plain(capsys):
    stream = io.StringIO()
    with Stages(False, stream, patience=0.0).stage("Reading \x1b[2J[red]t.csv[/red]"):
        print("\x1b[31m half", file=sys.stderr)
        while "half" not in stream.getvalue():
            pass
    assert r"Reading \x1b[2J[red]t.csv[/red]" in stream.getvalue()
    assert UNSEEN.search(stream.getvalue()) is None
    with progress_bar(quiet=False) as show:
        show(1, 2, "[red]abalone[/red] \x1b[2J")
    assert "\x1b[2J" not in capsys.readouterr().err


def test_who_prints():
    """Nobody but the module of messages, and who says the same sentence always."""
    prints = re.compile(r"(?<![\w.])print\(|Console\(|sys\.std(out|err)\.write|typer\.echo")
    folder = Path(go.__file__).parent / "cli"
    found = {path.name for path in folder.glob("*.py") if prints.search(path.read_text(encoding="utf-8"))}
    allowed = {"messages.py", "__init__.py"}
    makers = {"demo.py", "terminal.py"}  # of consoles of messages.py
    assert found - makers == allowed
    for name in makers:
        assert re.search(r"(?<!Plain)Console\(|(?<![\w.])print\(", (folder / name).read_text(encoding="utf-8")) is None


def test_styles_of_tables_stay():
    """What Rich itself writes for a terminal is no text."""
    stream = io.StringIO()
    console = PlainConsole(file=stream, force_terminal=True, color_system="standard", width=60)
    console.print("[bold]title[/bold]", end="")
    assert stream.getvalue() == "\x1b[1mtitle\x1b[0m"


def test_summaries_and_certificates_are_plain(capsys):
    data = make_data()
    X = pd.DataFrame(data.X[:, :3], columns=[f"{CONTROLS}\n{j}" for j in range(3)])
    model = go.GroupOWLRegressor(0.01).fit(X, data.Y)
    model.summary()
    shown = capsys.readouterr().out + str(model.certificate())
    assert UNSEEN.search(shown) is None
    assert r"\x1b[31mred" in shown
    model.coef_ = model.coef_ + 1.0
    assert UNSEEN.search(str(model.verify(X, data.Y))) is None


# Spreadsheets --------------------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "=HYPERLINK(1)", "\uff1d1+1"]
IDS = [*FORMULAS, "-3.5", "+2", "-1e-3", "plain", "a=b", "'quoted", "x-1", *(f"s{i}" for i in range(27))]


def cells_of(text):
    return list(csv.reader(io.StringIO(text)))


@pytest.fixture
def formulas(tmp_path, monkeypatch):
    """A file whose columns, ids and classes look like formulas."""
    monkeypatch.chdir(tmp_path)
    data = make_data()
    strong = data.X[:, 0] + data.X[:, 1]
    columns = {"@id": IDS, **{name: data.X[:, j] for j, name in enumerate(FORMULAS)}}
    columns |= {"-y": strong, "@z": strong + data.Y[:, 0], "+class": np.where(strong > 0.0, "=up", "-1.5x")}
    return write_csv(tmp_path / "t.csv", columns)


def test_spreadsheets_run_no_cell(run, formulas):
    data = ["--targets=-y,@z", "--id-column", "@id", "--drop", "+class"]
    ran = run("fit", formulas, *data, "--alpha", "0.01", "--out", "m")
    assert ran.code == 0, ran
    head, _, *rows = cells_of(Path("m/coefficients.csv").read_text(encoding="utf-8"))
    assert head[-2:] == ["coef_-y", "coef_@z"]
    assert {row[0] for row in rows} == {f"'{name}" for name in FORMULAS}
    assert run("predict", "m", formulas, "--out", "p.csv").code == 0
    for text in (run("predict", "m", formulas).out, Path("p.csv").read_text(encoding="utf-8")):
        head, *rows = cells_of(text)
        assert head == ["'@id", "predicted_-y", "predicted_@z"]
        assert [row[0] for row in rows] == [f"'{name}" for name in FORMULAS] + IDS[len(FORMULAS) :]
        assert (np.array([row[1:] for row in rows], dtype=float) < 0.0).any()
    assert run("verify", "m", formulas).code == 0


def test_classes_that_look_like_formulas(run, formulas):
    ran = run("fit", formulas, "-t", "+class", "--id-column", "@id", "--drop=-y,@z", "--out", "m")
    assert ran.code == 0, ran
    head, *rows = cells_of(run("predict", "m", formulas).out)
    assert head == ["'@id", "predicted_+class", "p(-1.5x)", "p(=up)"]
    assert {row[1] for row in rows} == {"'=up", "'-1.5x"}


def test_ids_that_were_not_matched(run, formulas):
    pd.read_csv(formulas, dtype=str)[["@id", "-y"]].iloc[2:].to_csv("targets.csv", index=False)
    options = ["--targets-from", "targets.csv", "--id-column", "@id", "--targets=-y", "--drop=-y,@z,+class"]
    ran = run("fit", formulas, *options, "--out", "m")
    assert ran.code == 0, ran
    unmatched = cells_of(Path("m/unmatched_ids.csv").read_text(encoding="utf-8"))[1:]
    assert unmatched == [[str(formulas), "'=1+1"], [str(formulas), "'+1+1"]]
