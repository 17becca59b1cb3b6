"""Files and folders are whole whenever they are there, whatever happens while they are written."""

import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from groupowl import _files, storage
from groupowl._files import beside, fresh_file, fresh_folder, write_file

needs_posix = pytest.mark.skipif(os.name != "posix", reason="there are no such files and signals")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def save(folder, number):
    """A model of this number, in the tree and in the arrays."""
    return storage.write_folder(folder, number, {"a": np.full(3, number)})


def load(folder):
    """The number, if tree and arrays are of one save."""
    number, arrays = storage.read_settled(folder, storage.read_folder)
    assert arrays["a"].tolist() == [number] * 3
    return number


@pytest.fixture(params=["exchange", "two steps"])
def way(request, monkeypatch):
    """How an earlier folder is replaced: as the system allows, and as any system does."""
    if request.param == "two steps":
        monkeypatch.setattr(_files, "_exchange", lambda one, other: False)
    return request.param


# Files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch, call):
    path = tmp_path / "file.json"
    write_file(path, "first")

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"os.{call}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_file(path, "second")
    assert path.read_text() == "first"
    write_file(path, b"second")
    assert path.read_text() == "second"
    assert names(tmp_path) == ["file.json"]


@needs_posix
def test_links_stay_and_their_files_are_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    link, file = tmp_path / "link", tmp_path / "there" / "file"
    link.symlink_to(file)
    for content in ("first", "second"):  # the link points to nothing at first
        write_file(link, content)
        assert link.is_symlink()
        assert file.read_text() == content
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic link"):
        write_file(tmp_path / "a", "nowhere")
    assert names(tmp_path) == ["a", "b", "link", "there"]
    assert names(tmp_path / "there") == ["file"]


@needs_posix
def test_pipes_and_devices_are_written_to(tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()), daemon=True)
    reader.start()
    write_file(pipe, "through")
    reader.join(timeout=60)
    assert found == ["through"]
    assert pipe.is_fifo()
    before = os.stat("/dev/null")
    (tmp_path / "nothing").symlink_to("/dev/null")
    write_file(tmp_path / "nothing", "gone")
    assert os.path.samestat(os.stat("/dev/null"), before)
    assert names(tmp_path) == ["nothing", "pipe"]


def test_permissions_are_those_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    with fresh_file(tmp_path / "file") as file:
        file.write(b"content")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


# Folders ------------------------------------------------------------------------------------------------


def test_a_folder_takes_its_name_at_the_end(tmp_path, way):
    for number in (1, 2):
        save(tmp_path / "model", number)
        assert load(tmp_path / "model") == number
    (tmp_path / "empty").mkdir()
    assert load(save(tmp_path / "empty", 3)) == 3
    assert names(tmp_path) == ["empty", "model"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems may have no exchange of names")
def test_names_are_exchanged_in_one_step(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not _files._exchange(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this file system has no exchange of names")
    assert (names(tmp_path / "one"), names(tmp_path / "other")) == (["other"], ["one"])
    assert not _files._exchange(tmp_path / "one", tmp_path / "nowhere")


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("call", ["_flush", "_put_in_place", "_exchange"])
def test_an_error_leaves_the_earlier_folder(tmp_path, monkeypatch, call, error):
    save(tmp_path / "model", 1)

    def fail(*args):
        raise error

    monkeypatch.setattr(_files, call, fail)
    with pytest.raises(error):
        save(tmp_path / "model", 2)
    assert load(tmp_path / "model") == 1
    assert names(tmp_path) == ["model"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["before", "after"])
@pytest.mark.parametrize("number", [2, 3])
def test_an_error_between_two_steps_leaves_one_whole_folder(tmp_path, monkeypatch, error, step, number):
    """The first renaming is refused, as the name is taken; the second and third are the two steps."""
    save(tmp_path / "model", 1)
    original, calls = os.rename, []

    def fail(*args):
        calls.append(args)
        if len(calls) != number or step == "after":
            original(*args)
        if len(calls) == number:
            raise error

    monkeypatch.setattr(_files, "_exchange", lambda one, other: False)
    monkeypatch.setattr("os.rename", fail)
    with pytest.raises(error):
        save(tmp_path / "model", 2)
    assert load(tmp_path / "model") == (2 if (number, step) == (3, "after") else 1)
    assert "model" in names(tmp_path)


def test_what_is_read_comes_from_one_save(tmp_path, monkeypatch, way):
    """Though another one replaces the folder between its two files."""
    folder = save(tmp_path / "model", 1)
    original, calls = storage.read_archive, []

    def read_late(file):
        calls.append(file)
        if len(calls) < 3:
            save(folder, len(calls) + 1)
        return original(file)

    monkeypatch.setattr(storage, "read_archive", read_late)
    assert load(folder) == 3
    assert len(calls) == 3


# A process is killed before its first call of the operating system, the next one before its second, and so on.
KILLED = """
import json, os, sys
from pathlib import Path
from test_files import load, names, save
from groupowl import _files

def killed_save(folder, number, left):
    def count(frame, event, function):
        nonlocal left
        if event == "c_call" and function.__module__ == "posix":
            left -= 1
            if left < 0:
                os._exit(9)
    process = os.fork()
    if process == 0:
        sys.setprofile(count)
        save(folder, number)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

def story(folder):
    found = []
    save(folder, 0)
    while not found or found[-1][0]:
        code = killed_save(folder, len(found) + 1, len(found))
        found.append((code, load(folder), folder.exists()))
    save(folder, -1)
    return found, load(folder), names(folder.parent)

told = {"exchange": story(Path(sys.argv[1], "a", "model"))}
_files._exchange = lambda one, other: False
told["two steps"] = story(Path(sys.argv[1], "b", "model"))
print(json.dumps(told))
"""


@needs_posix
def test_a_process_that_is_killed_leaves_one_whole_model(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    for way, (found, last, left) in json.loads(ran.stdout).items():
        assert (last, left) == (-1, ["model"])  # the next save has cleared what the others have left
        assert len(found) > 20
        assert {code for code, *_ in found[:-1]} == {9}
        model = 0
        for number, (_, loaded, is_there) in enumerate(found, start=1):
            assert loaded in (model, number)  # the model before this save, or its own
            assert is_there or way == "two steps"
            model = loaded
        assert model == len(found)


# Leftovers ----------------------------------------------------------------------------------------------


@needs_posix
@pytest.mark.parametrize("is_folder", [True, False])
def test_leftovers_of_killed_processes_are_cleared_and_no_others(tmp_path, monkeypatch, is_folder):
    target = tmp_path / "model"
    here = beside(target).name.split(".")[2].split("-")[0]
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    gone, alive = int(ended.stdout), os.getppid()
    day_and_more = 90_000
    random = "0123456789ab"
    stay = {
        f".model.{here}-{alive}-{random}.part": 0,
        f".model.{here}-{os.getpid()}-{random}.part": 0,
        f".model.00000000-{gone}-{random}.part": 0,  # of another machine
        f".model.{random}.part": 0,  # of an earlier version
        ".model.notes.part": day_and_more,  # somebody else's
        f".other.{here}-{gone}-{random}.part": day_and_more,
        f"model.{here}-{gone}-{random}.part": day_and_more,
    }
    go = {
        f".model.{here}-{gone}-{random}.part": 0,
        f".model.{here}-{gone}-{random}.old": 0,
        f".model.{here}-{alive}-{random[::-1].replace('b', 'c')}.part": day_and_more,
        f".model.00000000-{alive}-{random[::-1].replace('b', 'c')}.part": day_and_more,
        f".model.{random[::-1].replace('b', 'c')}.part": day_and_more,
    }
    for name, age in (stay | go).items():
        path = tmp_path / name
        if is_folder:
            path.mkdir()
            (path / "file").touch()
        else:
            path.touch()
        os.utime(path, (time.time() - age,) * 2)
    if is_folder:
        with fresh_folder(target):
            pass
    else:
        write_file(target, "content")
    assert names(tmp_path) == sorted([*stay, "model"])
