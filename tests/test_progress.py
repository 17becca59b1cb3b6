"""What verbose prints: readable, not too often, and complete when the work ends."""

import io
import re
import sys
import types
from contextlib import redirect_stderr
from typing import ClassVar

import numpy as np
import pytest

import groupowl as go
from groupowl import _progress as module
from groupowl.path.follower import Watch
from groupowl.solvers import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when a test says so."""
    now = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    return now


def watch_on(stream, callback=None, **about):
    with redirect_stderr(stream):
        return Watch(callback, **about)


def certificate(iteration=1, gap=1e-3, alpha_index=0):
    return Progress(iteration, 0.0, 1.0, 2.0, 1.0, gap, 30, 7, alpha_index, lambda: None)


@pytest.mark.parametrize("verbose", [0, False])
def test_silence(verbose):
    stream = io.StringIO()
    line = watch_on(stream, verbose=verbose, goal=1e-6)
    line(certificate(gap=1e-7))
    line.close()
    assert stream.getvalue() == ""


def test_a_line_says_what_where_and_how_far(clock):
    stream = io.StringIO()
    line = watch_on(stream, verbose=2, goal=1e-6, what="a fit", n_alphas=5)
    clock[0] = 2.5
    assert not line(certificate(alpha_index=2))
    assert stream.getvalue() == " 40 % a fit: alpha 3 of 5, 7 selected, gap 1.0e-03 (goal 1.0e-06), 2.5 s\n"


def test_lines_that_stay_are_rare_at_level_one_and_all_there_at_level_two(clock):
    for level, expected in [(1, 3), (2, 50)]:
        stream, clock[0] = io.StringIO(), 0.0
        line = watch_on(stream, verbose=level, goal=1e-6)
        for i in range(50):
            clock[0] += 0.05
            line(certificate(iteration=i))
        line.close()
        assert len(stream.getvalue().splitlines()) == expected  # at 1 s, at 2 s and the last one; or all
        assert stream.getvalue().endswith(" 2.5 s\n")


def test_the_last_certificate_is_always_printed(clock):
    stream = io.StringIO()
    line = watch_on(stream, verbose=1, goal=1e-6)
    line(certificate(iteration=0, gap=0.0))  # before the first step nothing has ended
    assert stream.getvalue() == ""
    line(certificate(gap=1e-7))
    line.close()
    assert stream.getvalue().count("\n") == 1


def test_a_terminal_has_one_line_rewritten_in_place(clock):
    stream = Terminal()
    line = watch_on(stream, verbose=1, goal=1e-6, what="a fit")
    for gap, seconds in ((1e-3, 1000.0), (1e-3, 2.0), (1e-7, 3.0)):  # a long line, then shorter ones
        clock[0] = seconds
        line.line._written = 0.0
        line(certificate(gap=gap))
    line.close()
    written = stream.getvalue()
    assert written.count("\r") == 3
    assert written.count("\n") == 1
    assert written.endswith("\n")
    first, second, third = written.rstrip("\n").split("\r")[1:]
    assert len(second) == len(first)  # no rest of the longer line stays behind
    assert len(third) == len(second.rstrip())


def test_a_path_ends_its_line_at_its_last_alpha(clock):
    stream = Terminal()
    line = watch_on(stream, verbose=1, goal=1e-6, n_alphas=2)
    for alpha_index in (0, 1):
        clock[0] += 1.0
        line(certificate(gap=1e-7, alpha_index=alpha_index))
    assert stream.getvalue().count("\n") == 1


def test_a_watch_prints_passes_on_and_remembers_a_wish_to_stop():
    seen, stream = [], io.StringIO()

    def noting(answer):
        return lambda progress: seen.append(answer) or answer

    for answer, stops in [(None, False), (False, False), (True, True)]:
        watch = watch_on(stream, noting(answer), verbose=2, goal=1e-6)
        assert watch(certificate()) is stops
        assert watch.wants_stop is stops
        watch.close()
    assert seen == [None, False, True]
    assert len(stream.getvalue().splitlines()) == 3
    assert Watch()(certificate()) is False


# Shares --------------------------------------------------------------------------------------------------


@pytest.fixture
def every_line(monkeypatch):
    """No line is too recent to be printed."""
    for name in ("_REWRITE_EVERY", "_WRITE_EVERY", "_WRITE_PASS_EVERY"):
        monkeypatch.setattr(module, name, 0.0)


def printed(work):
    stream = io.StringIO()
    with redirect_stderr(stream):
        work()
    return stream.getvalue().splitlines()


def shares(lines):
    return [int(found.group(1)) for line in lines if (found := re.match(r" *(\d+) % ", line))]


DATA = go.datasets.make_correlated_groups(60, 20, 2, random_state=0)


@pytest.mark.parametrize("options", [{}, {"n_jobs": 2}, {"weights": ["oscar", "lasso"]}, {"solver": "apgd"}])
def test_a_search_says_which_share_of_all_is_done(every_line, options):
    model = go.GroupOWLRegressorCV(alphas=6, eps=0.1, cv=3, verbose=1, **options)
    lines = printed(lambda: model.fit(DATA.X, DATA.Y))
    found = shares(lines)
    assert found == sorted(found)
    assert found[-1] == 100
    assert sum(": 6 alphas, " in line for line in lines) == 3 * len(np.atleast_1d(options.get("weights", "")))
    assert "final fit" in lines[-1]


def test_a_path_says_which_share_is_done(every_line):
    lines = printed(lambda: go.group_owl_path(DATA.X, DATA.Y, alphas=4, eps=0.1, verbose=1))
    assert set(shares(lines)) == {0, 25, 50, 75, 100}


@pytest.mark.parametrize("kind", ["disk", "dask"])
def test_passes_say_which_share_is_done(every_line, tmp_path, kind):
    if kind == "disk":
        for i in range(4):
            np.save(tmp_path / f"part{i}.npy", DATA.X[15 * i : 15 * i + 15])
        X, Y = go.MemmapDesign(tmp_path), DATA.Y
    else:
        da = pytest.importorskip("dask.array")
        X, Y = (da.from_array(values, chunks=(15, -1)) for values in (DATA.X, DATA.Y))
    lines = printed(lambda: go.GroupOWLRegressor(0.1, solver="apgd", verbose=1).fit(X, Y))
    assert lines[0].startswith("  0 % GroupOWLRegressor: reading the data, 25 % of a pass, ")
    of_passes = [int(found.group(1)) for line in lines if (found := re.search(r", (\d+) % of a pass", line))]
    assert set(of_passes) == {25, 50, 75, 100}
    assert any("selected" in line and "of a pass" in line for line in lines)
    assert printed(lambda: go.GroupOWLRegressor(0.1).fit(X, Y)) == []
    assert module.current_line() is None


@pytest.mark.parametrize("estimator", [go.GroupOWLRegressor(0.1, verbose=1), go.GroupOWLRegressorCV(cv=2, verbose=1)])
def test_sums_over_data_in_memory_have_a_percentage_before_the_first_alpha(every_line, monkeypatch, estimator):
    """With many more samples than features these sums are most of the time, and no alpha has been solved yet."""
    monkeypatch.setattr("groupowl.designs.statistics._DENSE_ROWS", 16)
    data = go.datasets.make_correlated_groups(400, 5, 2, group_size=1, random_state=0)
    estimator.set_params(solver=go.WorkingSet(compress=True))
    lines = printed(lambda: estimator.fit(data.X, data.Y))
    before = lines[: next(i for i, line in enumerate(lines) if "selected" in line)]
    percents = [int(found.group(1)) for line in before if (found := re.search(r"data, (\d+) % of a pass", line))]
    assert len(percents) >= 20
    assert percents == sorted(percents)
    assert percents[-1] == 100
    assert set(shares(before)) == {0}


def test_a_pass_over_a_piece_is_a_part_of_the_pass():
    seen = []
    with redirect_stderr(io.StringIO()), module.progress_line(1, "work") as line:
        line.show_pass = seen.append
        for _ in module.follow_pass(range(2), lambda piece: 0.5):
            for _ in module.follow_pass(range(4), lambda piece: 0.25):
                pass
    assert seen == [0.125, 0.25, 0.375, 0.5, 0.5, 0.625, 0.75, 0.875, 1.0, 1.0, None]


def test_a_single_fit_has_a_percentage_by_the_orders_of_magnitude_of_its_gap(clock):
    stream = io.StringIO()
    watch = watch_on(stream, verbose=2, goal=1e-6)
    for gap in (1e-2, 1e-4, 1e-3, 1e-6):
        watch(certificate(gap=gap))
    assert shares(stream.getvalue().splitlines()) == [0, 50, 50, 100]  # gaps may rise, shares do not


def test_verifying_a_search_counts_to_a_hundred_once(every_line):
    """The search made again, and then the path certified again, are parts of one whole."""
    model = go.GroupOWLRegressorCV(alphas=6, eps=0.1, cv=3).fit(DATA.X, DATA.Y)
    for scores in (True, False):
        stream = io.StringIO()
        with redirect_stderr(stream), module.progress_line(1, "verifying"):
            assert model.verify(DATA.X, DATA.Y, scores=scores)
        found = shares(stream.getvalue().splitlines())
        assert found == sorted(found)
        assert found[-1] == 100
        assert len(set(found)) >= 6


def test_a_search_ends_at_its_last_percent():
    """The final fit, which has a share of its own, is behind all that was counted."""
    line = module.ProgressLine(1, "work")
    line.stretch(1.0, 1.25)
    line.show("final fit", 0.5)
    assert line._share == 1.0


def test_lines_of_passes_that_stay_are_rare(clock):
    stream = io.StringIO()
    with redirect_stderr(stream), module.progress_line(1, "work") as line:
        for share in np.linspace(0.01, 1.0, 100):
            clock[0] += 0.25
            line.show_pass(share)
    assert len(stream.getvalue().splitlines()) == 2  # in 25 seconds


def test_a_line_is_closed_after_an_error():
    with pytest.raises(ZeroDivisionError), module.progress_line(1, "work"):
        raise ZeroDivisionError
    assert module.current_line() is None


# Notebooks ------------------------------------------------------------------------------------------------


class Bar:
    """Stands for a bar of tqdm."""

    made: ClassVar = []

    def __init__(self, **settings):
        self.n, self.texts, self.is_closed = 0, [], False
        self.made.append(self)

    def set_description_str(self, text, refresh):
        self.texts.append((self.n, text))

    def close(self):
        self.is_closed = True


def in_notebook(monkeypatch, **modules):
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(module, "find_spec", lambda name: modules.get(name))
    monkeypatch.setitem(sys.modules, "tqdm", modules.get("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.notebook", modules.get("tqdm"))


def test_notebooks_have_a_bar_where_they_can(every_line, monkeypatch):
    in_notebook(monkeypatch, ipywidgets=True, tqdm=types.SimpleNamespace(tqdm=Bar))
    lines = printed(lambda: go.group_owl_path(DATA.X, DATA.Y, alphas=4, eps=0.1, verbose=1))
    assert lines == []
    bar = Bar.made[-1]
    assert bar.is_closed
    assert bar.texts[-1][0] == 100
    assert bar.texts[0] == (0, "preparing the data")
    assert bar.texts[-1][1].startswith("alpha 4 of 4")  # of what, the cell above says


def test_notebooks_without_tqdm_have_a_bar_of_rich(monkeypatch):
    pytest.importorskip("rich")
    in_notebook(monkeypatch, ipywidgets=True)
    line = module.ProgressLine(1, "work")
    line.show("work", 0.5)
    line.bar.show("work", 0.5)
    assert line.bar.bar.tasks[0].percentage == 50
    line.close()


def test_notebooks_without_widgets_rewrite_a_line(every_line, monkeypatch):
    in_notebook(monkeypatch)
    stream = io.StringIO()
    with redirect_stderr(stream):
        go.group_owl_path(DATA.X, DATA.Y, alphas=4, eps=0.1, verbose=1)
    assert stream.getvalue().startswith("\r")
    assert stream.getvalue().count("\n") == 1


def test_passes_after_all_fits_are_not_said_to_be_all_of_the_work(clock):
    """What is read for scores and proofs at the end is counted by no fit: the share of the pass stands alone."""
    stream = io.StringIO()
    with redirect_stderr(stream):
        line = module.ProgressLine(2, "a search")
    for share in (0.5, 1.0):
        line.show("fold 5/5", share)
        clock[0] += 100.0
        line.show_pass(0.25)
    assert stream.getvalue().splitlines() == [
        " 50 % fold 5/5, 0.0 s",
        " 50 % fold 5/5, 25 % of a pass, 100.0 s",
        "100 % fold 5/5, 100.0 s",
        "fold 5/5, 25 % of a pass, 200.0 s",
    ]
