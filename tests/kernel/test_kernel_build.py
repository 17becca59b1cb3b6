"""Finding the kernel and building it: what is missing or wrong is said, never guessed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from groupowl import kernel

ROOT = Path(__file__).parents[2]
needs_sources = pytest.mark.skipif(not (ROOT / "native").is_dir(), reason="the sources of the kernel are not here")


@pytest.fixture
def looked_up_again(monkeypatch):
    monkeypatch.delenv("GROUPOWL_KERNEL", raising=False)
    kernel._found.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    kernel._found.cache_clear()


def look_in(folder, monkeypatch):
    monkeypatch.setattr(kernel, "_FOLDER", folder)
    monkeypatch.delenv("GROUPOWL_KERNEL_LIBRARY", raising=False)


def hatch_build():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_switched_off(looked_up_again):
    looked_up_again.setenv("GROUPOWL_KERNEL", "numpy")
    info = kernel.kernel_info()
    assert info.name == "numpy"
    assert "GROUPOWL_KERNEL=numpy" in info.reason
    assert not kernel.is_available()
    with pytest.raises(RuntimeError, match="no compiled kernel: GROUPOWL_KERNEL=numpy"):
        kernel.KernelData(np.ones((2, 1)), np.ones((2, 1)))


def test_missing(looked_up_again, tmp_path):
    look_in(tmp_path, looked_up_again)
    assert "without a C compiler" in kernel.kernel_info().reason


def test_damaged(looked_up_again, tmp_path):
    (tmp_path / "_kernel.native.so").write_text("nothing")
    look_in(tmp_path, looked_up_again)
    info = kernel.kernel_info()
    assert info.name == "numpy"
    assert "cannot be loaded" in info.reason


@needs_sources
@pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))
def test_compiled_from_other_sources(looked_up_again):
    looked_up_again.setattr(kernel, "source_stamp", lambda folder: "other")
    info = kernel.kernel_info()
    assert info.name == "numpy"
    assert "other sources" in info.reason


@pytest.mark.skipif(os.environ.get("GROUPOWL_REQUIRE_KERNEL") != "1", reason="the kernel is not required here")
def test_a_kernel_that_is_required_is_there(looked_up_again):
    """Otherwise the tests of this folder would be skipped where they must not."""
    assert kernel.is_available(), kernel.kernel_info()


@needs_sources
def test_builder_and_loader_agree_on_the_stamp():
    assert hatch_build().source_stamp() == kernel.source_stamp(ROOT / "native")


@needs_sources
@pytest.mark.parametrize("compiler", ["false", "no-such-compiler"])
def test_a_failed_compile_leaves_nothing_behind(compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", compiler)
    target = tmp_path / "library.so"
    with pytest.raises((OSError, subprocess.CalledProcessError)):
        hatch_build().compile_kernel(target)
    assert not target.exists()


@needs_sources
def test_a_compile_without_warnings(tmp_path):
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only"]
    if shutil.which(compiler[0]) is None or subprocess.run([*compiler, "--version"], capture_output=True).returncode:
        pytest.skip("there is no C compiler")
    sources = sorted((ROOT / "native").glob("*.c"))
    found = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_importing_the_package_does_not_load_the_kernel():
    code = "import groupowl, groupowl.kernel as k; assert k._found.cache_info().currsize == 0"
    subprocess.run([sys.executable, "-c", code], check=True)
