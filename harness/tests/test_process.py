"""Worker processes: requests and replies, time limits, errors, and ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import groupowl_harness
from groupowl_harness.process import WorkerError, WorkerProcess, environment
from groupowl_harness.serving import serve

SEARCH = os.pathsep.join([str(Path(__file__).parent), str(Path(groupowl_harness.__file__).parents[1])])


@pytest.fixture
def worker(tmp_path):
    made = WorkerProcess("echo_worker", "one", "two", environment=environment(3, PYTHONPATH=SEARCH), folder=tmp_path)
    yield made
    made.stop()
    made.stop()  # twice does no harm


def test_a_worker_answers_where_and_how_it_was_started(worker, tmp_path):
    assert not worker.is_running
    reply = worker.ask({"do": "echo", "text": "größer"}, 60.0)
    assert worker.is_running
    expected = {"arguments": ["one", "two"], "threads": "3", "folder": os.path.realpath(tmp_path)}
    assert reply == {**expected, "do": "echo", "text": "größer"}


def test_an_error_is_a_reply_and_the_worker_goes_on(worker):
    reply = worker.ask({"do": "fail"}, 60.0)
    assert reply["error"] == "ValueError: no such thing"
    assert reply["where"].startswith("echo_worker.py:")
    assert worker.ask({"do": "echo"}, 60.0)["do"] == "echo"


def test_who_is_late_is_ended_and_starts_anew(worker):
    worker.ask({"do": "echo"}, 60.0)
    with pytest.raises(WorkerError, match=r"^no answer within 0 s$") as caught:
        worker.ask({"do": "wait", "seconds": 60.0}, 0.2)
    assert caught.value.late
    assert not worker.is_running
    assert worker.ask({"do": "echo"}, 60.0)["do"] == "echo"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the CPU time of others is read from /proc")
def test_a_limit_of_cpu_time(worker):
    """Waiting does not count, up to the patience; work does, and is known when it is stopped."""
    worker.ask({"do": "echo"}, 60.0)
    assert worker.ask({"do": "wait", "seconds": 1.0}, 0.5, patience=100.0)["do"] == "wait"
    with pytest.raises(WorkerError) as caught:
        worker.ask({"do": "work", "seconds": 60.0}, 0.5, patience=100.0)
    assert caught.value.late
    assert 0.4 <= caught.value.cpu < 30.0
    worker.ask({"do": "echo"}, 60.0)
    with pytest.raises(WorkerError) as caught:
        worker.ask({"do": "wait", "seconds": 60.0}, 0.5, patience=2.0)
    assert caught.value.cpu < 0.4


def test_a_dead_worker_says_why(worker):
    """The last line of stderr."""
    with pytest.raises(WorkerError, match=r"^the worker process ended with code 3: MemoryError: no room$") as caught:
        worker.ask({"do": "die"}, 60.0)
    assert not caught.value.late
    assert worker.ask({"do": "echo"}, 60.0)["do"] == "echo"


def test_every_thread_pool_has_the_same_size(monkeypatch):
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
                 "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")  # fmt: skip
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("OTHER", "kept")
    made = environment(1, MORE="added")
    assert {name: made[name] for name in variables} == dict.fromkeys(variables, "1")
    assert (made["OTHER"], made["MORE"]) == ("kept", "added")


def test_requests_are_served_in_turn():
    replies = io.StringIO()
    serve(lambda request: {"twice": 2 * request["number"]}, ['{"number": 2}\n', "{}\n", '{"number": 3}\n'], replies)
    first, second, third = map(json.loads, replies.getvalue().splitlines())
    assert (first, third) == ({"twice": 4}, {"twice": 6})
    assert second["error"] == "KeyError: 'number'"


@pytest.mark.skipif(os.name != "posix", reason="parents of processes are watched on POSIX only")
def test_worker_ends_with_its_parent():
    """Its parent is killed while its input stays open in another process: it must not wait for more."""
    code = (
        "import subprocess, sys, os, time\n"
        "worker = subprocess.Popen([sys.executable, '-m', 'echo_worker', str(os.getpid())],"
        " stdin=0, stdout=subprocess.DEVNULL)\n"
        "print(worker.pid, flush=True)\n"
        "time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(1, PYTHONPATH=SEARCH),
    )
    orphan = int(parent.stdout.readline())
    time.sleep(0.2)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 30.0
    while is_alive(orphan) and time.monotonic() < deadline:
        time.sleep(0.1)
    alive = is_alive(orphan)
    parent.stdin.close()
    parent.stdout.close()
    assert not alive


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return Path("/proc").is_dir() is False
