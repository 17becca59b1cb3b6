"""What verbose prints: readable, not too often, and complete when the work ends."""

import io
from contextlib import redirect_stderr

import pytest

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
