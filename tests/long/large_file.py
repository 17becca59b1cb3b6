"""Fit a file larger than the memory allowed, and report what it took: memory, passes, seconds.

The file is written piece by piece, fitted in a process of its own, and removed. By default 8 GB within 1 GB, which
``make test-long`` runs; the normal tests run 1 GB within 200 MB. Prints one line of JSON for each loss and fails if the
peak of the resident size, less the size after imports, is above ``--max-memory``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LOSSES = ["squared", "multinomial"]
N_FEATURES, N_TASKS, N_RELEVANT = 1000, 3, 10
PIECE = 10_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--max-memory", default="1GB")
    parser.add_argument("--loss", choices=LOSSES, nargs="+", default=LOSSES)
    parser.add_argument("--folder", type=Path, default=None, help="where the file is written")
    parser.add_argument("--order", choices=["C", "F"], default="C")
    parser.add_argument("--fit", type=Path, default=None, help=argparse.SUPPRESS)  # the inner process
    options = parser.parse_args()
    if options.fit is not None:
        print(json.dumps(fit(options.fit, options.loss[0], options.max_memory)), flush=True)
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        write(Path(folder), int(options.gigabytes * 1e9 / (4 * N_FEATURES)), options.order)
        command = [sys.executable, __file__, "--fit", folder, "--max-memory", options.max_memory, "--loss"]
        return max(subprocess.run([*command, loss]).returncode for loss in options.loss)


def write(folder: Path, n_samples: int, order: str) -> None:
    """Gaussian columns in single precision, and targets that a few of them explain."""
    rng = np.random.default_rng(0)
    B = np.zeros((N_FEATURES, N_TASKS))
    B[rng.choice(N_FEATURES, N_RELEVANT, replace=False)] = rng.standard_normal((N_RELEVANT, N_TASKS))
    path, shape = folder / "X.npy", (n_samples, N_FEATURES)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape, fortran_order=order == "F")
    Z = np.empty((n_samples, N_TASKS))
    for start in range(0, n_samples, PIECE):
        piece = rng.standard_normal((min(PIECE, n_samples - start), N_FEATURES), dtype=np.float32)
        X[start : start + PIECE] = piece
        Z[start : start + PIECE] = piece @ B
    X.flush()
    np.save(folder / "squared.npy", Z + rng.standard_normal(Z.shape))
    np.save(folder / "multinomial.npy", np.eye(N_TASKS)[np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)])


def fit(folder: Path, loss: str, max_memory: str) -> dict[str, float | str]:
    """One fit, measured from the end of the imports on; the targets count as well."""
    import groupowl as go
    from groupowl.designs.disk.memory import parse_memory

    _ = go.solve, go.lam_max, go.MemmapDesign, go.weights  # which are imported when they are first asked for
    before = resident_size("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
    started, computed = time.perf_counter(), time.process_time()
    Y = np.load(folder / f"{loss}.npy")
    design = go.MemmapDesign(folder / "X.npy", max_memory)
    settings = {"loss": loss, "fit_intercept": True}
    lam = 0.2 * go.lam_max(design, Y, "oscar", **settings) * go.weights.oscar(N_FEATURES)
    result = go.solve(design, Y, lam, **settings)
    peak = resident_size("VmHWM") - before
    if peak > parse_memory(max_memory):
        sys.exit(f"the peak of {peak / 1e6:.0f} MB is above {max_memory}")
    return {
        "loss": loss,
        "status": result.status,
        "selected": len(result.support),
        "bytes": design.X.nbytes,
        "peak": peak,
        "file_passes": design.file_passes,
        "n_passes": result.n_passes,
        "seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - computed,
    }


def resident_size(field: str) -> int:
    """Bytes, of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


if __name__ == "__main__":
    sys.exit(main())
