"""Random and hostile problems through a build of the kernel with sanitizers: python tests/kernel/fuzz.py --minutes 10.

The library is compiled with the address and undefined-behavior sanitizers into a temporary folder. The program starts
itself again with the sanitizer's runtime loaded first, feeds the kernel problems of every kind, and compares what it
proposes with what a solve must satisfy: finite numbers, statuses that are known, and, where it says that it converged,
the gap by the problem's own certificate. What the sanitizers find ends the process with their report. With --tests the
same library goes through the tests in this folder instead.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = "GROUPOWL_KERNEL_LIBRARY"
FLAGS = ["-O1", "-g", "-std=c99", "-fPIC", "-shared", "-DGO_PLAIN", "-fsanitize=address,undefined"]
FLAGS += ["-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]


def compiled(folder: Path) -> Path:
    """The library with sanitizers."""
    sys.path.insert(0, str(ROOT))
    from hatch_build import SOURCES, source_stamp

    target = folder / "_kernel.native.so"
    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    command = [os.environ.get("CC", "cc"), *FLAGS, f'-DGO_STAMP="{source_stamp()}"', "-o", str(target), *sources, "-lm"]
    subprocess.run(command, check=True)
    return target


def run_sanitized(*arguments: str) -> int:
    """Run Python with the sanitizers' library, whose runtime must come first."""
    compiler = os.environ.get("CC", "cc")
    runtime = subprocess.run([compiler, "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(
            os.environ,
            LD_PRELOAD=runtime.stdout.strip(),
            ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1",
            UBSAN_OPTIONS="print_stacktrace=1",
            OMP_NUM_THREADS="1",
            OPENBLAS_NUM_THREADS="1",
            GROUPOWL_REQUIRE_KERNEL="1",  # a library that cannot be loaded must not skip the tests
        )
        environment[LIBRARY] = str(compiled(Path(folder)))
        return subprocess.run([sys.executable, *arguments], env=environment, check=False).returncode


def random_problem(rng):
    """Data, weights and options of one problem, friendly or not."""
    import numpy as np
    import scipy.sparse as sp

    n, d = (int(rng.integers(1, limit)) for limit in (40, 120))
    loss = str(rng.choice(["squared", "squared", "multinomial", "logistic", "poisson"]))
    q = int(rng.integers(2, 5)) if loss == "multinomial" else int(rng.choice([1, 1, 2, 3, 6]))
    X = rng.standard_normal((n, d))
    if rng.random() < 0.3:
        X = np.cumsum(X, axis=1) / np.sqrt(d)
    if rng.random() < 0.3:
        X *= 10.0 ** rng.uniform(-3, 3, d)
    for _ in range(int(rng.integers(0, 4))):  # zero columns, copies, constants
        j, other = rng.integers(0, d, 2)
        X[:, j] = rng.choice([0.0, 1.0, -1.0]) * X[:, other]
    if rng.random() < 0.2:  # so few entries that columns of working sets are never made
        X[rng.random((n, d)) > 0.1] = 0.0
    if rng.random() < 0.1:
        X[:, 0] = 1.0
    B = np.zeros((d, q))
    B[rng.integers(0, d, 4)] = rng.standard_normal((4, q))
    Z = X @ B + rng.standard_normal((n, q))
    if loss == "poisson":
        counts = np.clip(rng.choice([0.1, 1.0, 3.0]) * Z, -30.0, 8.0)
        Y = 1.0 * rng.poisson(np.exp(counts)) if rng.random() < 0.8 else np.exp(counts)
    elif loss == "logistic":
        Y = 1.0 * (rng.choice([-3.0, 0.0, 1.0]) < Z) if rng.random() < 0.8 else rng.random(Z.shape)
    else:
        Y = Z if loss == "squared" else np.eye(q)[Z.argmax(axis=1)]
    if loss == "squared" and rng.random() < 0.2:
        Y = Y * 10.0 ** rng.uniform(-20, 20)
    sizes = None
    if rng.random() < 0.4:
        most = int(rng.choice([5, 40]))
        sizes = [int(rng.integers(1, most))]
        while sum(sizes) < d:
            sizes.append(min(int(rng.integers(1, most)), d - sum(sizes)))
        sizes[-1] -= sum(sizes) - d
        sizes = [size for size in sizes if size > 0]
    units = d if sizes is None else len(sizes)
    shapes = [
        np.ones(units), np.linspace(1.0, 0.4, units), np.linspace(1.0, 0.0, units) if units > 1 else np.ones(1),
        -np.sort(-rng.exponential(size=units)), -np.sort(-rng.integers(1, 4, units).astype(float)),
        np.concatenate([np.ones(1), np.zeros(units - 1)]),
    ]  # fmt: skip
    weights = shapes[int(rng.integers(len(shapes)))]
    w = rng.uniform(0.1, 3.0, n) if rng.random() < 0.3 else None
    kind = str(rng.choice(["C", "F", "float32", "csc", "csc float32"]))
    given = X.astype(np.float32) if "float32" in kind else X
    given = sp.csc_matrix(given) if "csc" in kind else np.asfortranarray(given) if rng.random() < 0.5 else given
    dense = (given.toarray() if sp.issparse(given) else given).astype(np.float64)
    return given, dense, Y, loss, weights / weights[0], sizes, w, bool(rng.random() < 0.4)


def compiled_gap(problem, given, loss, mean, w, starts, lam, B):
    """The gap by the compiled certificate, where there is one for this problem: not in single precision."""
    import kernel_support

    from groupowl import kernel

    if given.dtype != "float64" or (loss != "squared" and not B[: problem.n_rows].any()):
        return None
    data = kernel.KernelData(
        given, problem.samples.Y, loss, mean=mean, sample_weight=w, fit_intercept=mean is not None, unit_starts=starts
    )
    certifier = kernel_support.Certifier(data, problem.norms, problem.rounding_norms, problem.samples.norm)
    block, n_rows = problem.unpenalized, problem.n_rows
    constant = block.intercept(B[n_rows:]) if block.n_rows else None
    return certifier.certify(lam, B[:n_rows], constant).gap


def checked(rng) -> str:
    """Put one problem through the kernel: what was found wrong, or nothing."""
    from dataclasses import replace

    import numpy as np

    from groupowl import kernel
    from groupowl.norm.penalty import GroupOWL
    from groupowl.problem import build_problem

    given, dense, Y, loss, weights, sizes, w, fit_intercept = random_problem(rng)
    options = {"loss": loss, "sample_weight": w, "fit_intercept": fit_intercept}
    try:
        problem = build_problem(dense, Y, np.ones(dense.shape[1]), **options)
    except ValueError:  # out of range
        return ""
    penalty = GroupOWL(weights, None if sizes is None else np.repeat(np.arange(len(sizes)), sizes))
    problem = replace(problem, penalty=penalty)
    top = problem.lam_max(weights)
    if not 0.0 < top < np.inf:
        return ""
    mean = np.average(dense, axis=0, weights=w) if fit_intercept else None
    starts = None if sizes is None else np.concatenate([[0], np.cumsum(sizes)])
    data = kernel.KernelData(
        given, Y, loss, mean=mean, sample_weight=w, fit_intercept=fit_intercept, unit_starts=starts
    )
    alphas = top * np.geomspace(1.01, 10.0 ** rng.uniform(-3, 0), int(rng.integers(1, 12)))
    goal = problem.goal(10.0 ** rng.uniform(-8, -3))
    start = None if rng.random() < 0.7 else rng.standard_normal((dense.shape[1], Y.shape[1]))
    max_steps = int(rng.integers(1, 2000))
    unchecked = bool(rng.random() < 0.2)  # then nothing is said about the whole problem
    products = None
    if loss == "squared" and start is not None and rng.random() < 0.5:
        products = problem.residual(start).descent
    proposal = kernel.solve(
        data, weights, 0.9 * goal, alphas=alphas, B_init=start, products_init=products, max_steps=max_steps,
        unchecked=unchecked, capacity=int(rng.integers(1, 100)) if rng.random() < 0.1 else None,
    )  # fmt: skip
    for k in range(proposal.n_run):
        B = proposal.stack()[k]
        if not np.isfinite(B).all():
            return f"coefficients are not finite, status {proposal.status[k]}"
        if kernel.STATUSES[proposal.status[k]] != "converged":
            continue
        block = problem.unpenalized
        if block.n_rows:
            null = problem.null_coefficients()[problem.n_rows :]
            B = np.concatenate([B, block.with_intercept(null, proposal.intercept[k])])
        certificate = problem.with_lam(alphas[k] * weights).certify(B)
        found = compiled_gap(problem, given, loss, mean, w, starts, alphas[k] * weights, B)
        room = 1e-9 * certificate.gap + 1e-13 * abs(problem.null_loss)
        if loss != "squared":  # in them more cancels, and dual points are balanced, which moves their rounding
            room += 0.5 * certificate.rounding
        if found is not None and abs(found - certificate.gap) > room:
            return f"certificates differ: {found:.17e} compiled, {certificate.gap:.17e} by definition"
        if not unchecked and certificate.gap - certificate.rounding > 1.001 * goal + 1e-9 * abs(certificate.primal):
            return f"gap {certificate.gap:.3e} where {goal:.3e} was reported, {loss}, {dense.shape}, alpha {k}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", action="store_true", help="run the tests of the kernel, no random problems")
    arguments = parser.parse_args()
    if arguments.tests:
        return run_sanitized("-m", "pytest", "--capture=sys", "-p", "no:cacheprovider", str(Path(__file__).parent))
    if LIBRARY not in os.environ:
        return run_sanitized(__file__, *sys.argv[1:])
    import numpy as np

    from groupowl import kernel

    assert kernel.is_available(), kernel.kernel_info()
    np.seterr(all="ignore")
    end, count, findings = time.monotonic() + 60.0 * arguments.minutes, 0, 0
    while time.monotonic() < end:
        seed = arguments.seed + count
        found = checked(np.random.default_rng(seed))
        if found:
            print(f"seed {seed}: {found}", flush=True)
            findings += 1
        count += 1
    print(f"{count} problems through {kernel.kernel_info().path}: {findings} findings")
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())
