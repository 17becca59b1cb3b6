"""What fits cost as data grow: time, passes over X, bytes that move, and what that means for a billion samples.

    python benchmarks/scaling.py [--quick] [--out DIR] [--parts ndqwb] [--workers 2]

Parts: (n) time and passes against the number of samples, 100 columns in single precision, in memory, on disk and on a
Dask cluster; (d) against the number of columns, sparse data with 50 entries per row; (q) against the number of tasks;
(w) against the number of workers; (b) bytes that two workers send for 2,000,000 x 200. From constants that it measures
the script also computes what 1e9 rows x 1e5 sparse columns would take on 100 workers.

All data are made block by block from a seed, where they are used. Every fit runs once, from zero, to a relative gap of
1e-6 at a tenth of the alpha that selects nothing, with an intercept; the time is that of ``solve``, after one small
fit that is not counted. Cluster workers are processes of one thread on this machine.

Writes scaling.md, scaling/results.json and plots into DIR (default: docs/measured). A full run takes at most 20 minutes
on two cores and 5 GB of disk and memory each; ``--quick`` two minutes.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import groupowl as go
from groupowl.designs import DaskDesign, DenseDesign, SparseDesign, as_design
from groupowl.designs.dask import blocks, dask_design
from groupowl.losses import resolve_loss

OUT = Path("docs/measured")
FRACTION = 0.1
TOL = 1e-6
ENTRIES_PER_ROW = 50
COMMON = 20  # columns that many samples have, in sparse data
PLANTED = 6
SEED = 0
# Functions of a block that are products with X, or read it as a whole.
PRODUCTS = ("block_product", "block_correlations", "block_gram", "checked_moments", "block_columns")
LOSSES = ("squared", "multinomial")
# What the calculation for a large cluster assumes and cannot measure here.
PAPER = {"n": 1e9, "d": 1e5, "q": 5, "workers": 100, "rows_per_block": 1e6, "bandwidth": 1e9}


@dataclass(frozen=True)
class Sizes:
    """How large the parts of the study are."""

    n: tuple[int, ...]
    largest_in_memory: int
    d: tuple[int, ...]
    n_of_d: int
    q: tuple[int, ...]
    n_of_q: int
    n_of_workers: int
    n_of_bytes: int
    rows_per_block: int


FULL = Sizes(
    n=(10_000, 100_000, 1_000_000, 10_000_000),
    largest_in_memory=1_000_000,
    d=(1_000, 10_000, 100_000, 1_000_000),
    n_of_d=50_000,
    q=(1, 2, 5, 10, 20, 50),
    n_of_q=50_000,
    n_of_workers=2_000_000,
    n_of_bytes=2_000_000,
    rows_per_block=250_000,
)
QUICK = Sizes(
    n=(10_000, 100_000),
    largest_in_memory=100_000,
    d=(1_000, 10_000),
    n_of_d=5_000,
    q=(1, 2, 5),
    n_of_q=5_000,
    n_of_workers=100_000,
    n_of_bytes=100_000,
    rows_per_block=20_000,
)


@dataclass
class Fit:
    """One fit and what it cost."""

    part: str
    where: str
    loss: str
    n: int
    d: int
    q: int
    workers: int
    seconds: float
    rounds: int
    products: int  # X^T T with all of X
    passes: float
    steps: int
    support: int
    converged: bool
    share: float  # of the time, or of the workers' time, that is products with X
    to_client: int = 0  # bytes
    between: int = 0
    x_bytes: int = 0


@dataclass
class Study:
    """Everything that was measured."""

    quick: bool
    cores: int
    versions: dict[str, str]
    fits: list[Fit] = field(default_factory=list)
    constants: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, fit: Fit) -> None:
        """Keep a fit and print it."""
        self.fits.append(fit)
        print(
            f"  {fit.where:<12} {fit.loss:<12} {fit.n:>10,} x {fit.d:<9,} q={fit.q:<3} {fit.seconds:8.2f} s, "
            f"{fit.products} products, {fit.steps} steps, {fit.support} selected",
            flush=True,
        )

    def of(self, part: str, loss: str | None = None) -> list[Fit]:
        """Fits of one part of the study."""
        return [fit for fit in self.fits if fit.part == part and loss in (None, fit.loss)]


# Data, block by block ---------------------------------------------------------------------------------------


def dense_block(number: int, shape: tuple[int, int]) -> Any:
    """Uniform numbers in single precision with mean zero."""
    rng = np.random.default_rng([SEED, number])
    return rng.random(shape, dtype=np.float32) - np.float32(0.5)


def sparse_block(number: int, shape: tuple[int, int]) -> Any:
    """So many entries per row: a few in columns that are common, the others anywhere."""
    n, d = shape
    rng = np.random.default_rng([SEED, number])
    common = rng.random((n, COMMON)) < 0.2
    rows, columns = np.nonzero(common)
    count = ENTRIES_PER_ROW - COMMON // 5
    rows = np.concatenate([rows, np.repeat(np.arange(n), count)])
    columns = np.concatenate([columns, rng.integers(COMMON, d, n * count)])
    values = rng.random(len(rows), dtype=np.float32) + np.float32(0.5)
    return sp.csr_array((values, (rows, columns)), shape=shape)


def target_block(block: Any, number: int, B: Any, loss: str) -> Any:
    """Targets of a linear model with noise."""
    rng = np.random.default_rng([SEED + 1, number])
    Z = np.asarray(block @ B)
    if loss == "squared":
        return Z + rng.standard_normal(Z.shape)
    return np.eye(B.shape[1])[np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)]


def planted(d: int, q: int) -> Any:
    """Coefficients of which a few rows are not zero, in columns that are common in sparse data."""
    rng = np.random.default_rng(SEED + 2)
    B = np.zeros((d, q))
    count = min(d, PLANTED)
    rows = rng.choice(min(d, COMMON), count, replace=False)
    B[rows] = 3.0 * rng.choice([-1.0, 1.0], (count, q)) * rng.uniform(0.5, 1.0, (count, q))
    return B


def chunk_sizes(n: int, rows: int) -> list[int]:
    count = max(2, -(-n // rows))
    return [n // count + (i < n % count) for i in range(count)]


@dataclass(frozen=True)
class Source:
    """Data of one size, made where they are wanted."""

    n: int
    d: int
    q: int
    loss: str
    rows_per_block: int
    make: Callable[[int, tuple[int, int]], Any] = dense_block

    @property
    def sizes(self) -> list[int]:
        """Rows of each block."""
        return chunk_sizes(self.n, self.rows_per_block)

    def local_blocks(self) -> Iterator[tuple[Any, Any]]:
        """Blocks of X and their targets in this process, one at a time."""
        B = planted(self.d, self.q)
        for number, size in enumerate(self.sizes):
            X = self.make(number, (size, self.d))
            yield X, target_block(X, number, B, self.loss)

    def in_memory(self) -> tuple[Any, Any]:
        """X and its targets in this process."""
        X, Y = zip(*self.local_blocks(), strict=True)
        return (sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.concatenate(X)), np.concatenate(Y)

    def on_disk(self, path: Path) -> Any:
        """Writes X to one file and returns the targets."""
        X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(self.n, self.d))
        targets, start = [], 0
        for block, Y in self.local_blocks():
            X[start : start + len(block)] = block
            start += len(block)
            targets.append(Y)
        X.flush()
        return np.concatenate(targets)

    def on_dask(self) -> tuple[Any, Any]:
        """X and its targets as Dask arrays whose blocks the workers make and keep."""
        import dask.array as da

        is_sparse = self.make is sparse_block
        meta = sp.csr_array((0, 0), dtype=np.float32) if is_sparse else np.empty((0, 0), dtype=np.float32)
        chunks = tuple(self.sizes)
        X = da.map_blocks(
            partial(_block, make=self.make), chunks=(chunks, (self.d,)), dtype=np.float32, meta=meta
        ).persist()
        targets = partial(_targets, B=planted(self.d, self.q), loss=self.loss)
        Y = da.map_blocks(targets, X, chunks=(chunks, (self.q,)), dtype=float, meta=np.empty((0, 0))).persist()
        return X, Y


def _block(make: Callable[[int, tuple[int, int]], Any], block_info: Any = None) -> Any:
    place = block_info[None]
    return make(place["chunk-location"][0], place["chunk-shape"])


def _targets(block: Any, B: Any, loss: str, block_info: Any = None) -> Any:
    return target_block(block, block_info[None]["chunk-location"][0], B, loss)


# Measuring --------------------------------------------------------------------------------------------------


class Stopwatch:
    """Seconds inside wrapped functions, those that they call among themselves counted once."""

    def __init__(self) -> None:
        self.seconds, self._depth = 0.0, 0

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self.seconds += time.perf_counter() - started

        return call


@contextmanager
def timed_products() -> Iterator[Stopwatch]:
    """Products with X of designs in this process while the block runs."""
    from groupowl.designs import DenseColumns
    from groupowl.designs.sparse import SparseColumns

    watch, undo = Stopwatch(), []
    methods = ("matmul", "rmatmul", "gram", "column_norms", "compute_moments", "predict", "correlate", "columns")
    for kind in (DenseDesign, SparseDesign, getattr(go, "MemmapDesign", DenseDesign), DenseColumns, SparseColumns):
        for name in methods:
            if name in vars(kind):
                undo.append((kind, name, vars(kind)[name]))
                setattr(kind, name, watch.wrapped(vars(kind)[name]))
    try:
        yield watch
    finally:
        for kind, name, method in reversed(undo):
            setattr(kind, name, method)


@contextmanager
def counted_products(d: int) -> Iterator[list[int]]:
    """Products ``X^T T`` with all columns while the block runs."""
    found: list[int] = []
    kinds = {DaskDesign: "evaluate", DenseDesign: "rmatmul", SparseDesign: "rmatmul"}
    if hasattr(go, "MemmapDesign"):
        kinds[go.MemmapDesign] = "rmatmul"
    methods = {kind: vars(kind)[name] for kind, name in kinds.items()}

    def counting(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any) -> Any:
            if self.n_features == d and self.unit > 0.0:  # designs of single blocks have no unit
                found.append(1)
            return method(self, *args)

        return call

    for kind, name in kinds.items():
        setattr(kind, name, counting(methods[kind]))
    try:
        yield found
    finally:
        for kind, name in kinds.items():
            setattr(kind, name, methods[kind])


def fit(part: str, where: str, source: Source, X: Any, Y: Any, client: Any = None) -> Fit:
    """Solve once and count."""
    weights = go.weights.oscar(source.d)
    settings = {"loss": source.loss, "fit_intercept": True}
    lam = FRACTION * go.lam_max(X, Y, weights, **settings) * weights
    before = traffic(client)
    with counted_products(source.d) as products, nullcontext() if client else timed_products() as watch:
        started = time.perf_counter()
        result = go.solve(X, Y, lam, tol=TOL, **settings)
        seconds = time.perf_counter() - started  # with the first pass, which checks and summarizes the data
    between, to_client, busy = (after - start for after, start in zip(traffic(client), before, strict=True))
    workers = len(client.scheduler_info(n_workers=-1)["workers"]) if client else 1
    return Fit(
        part,
        where,
        source.loss,
        source.n,
        source.d,
        source.q,
        workers,
        seconds,
        len(result.history),
        len(products),
        result.n_passes,
        result.n_iter,
        len(result.support),
        bool(result.converged),
        (busy / workers if client else watch.seconds) / seconds,
        int(to_client),
        int(between),
        int(getattr(X, "nbytes", 0)),
    )


# The cluster ------------------------------------------------------------------------------------------------


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """The client of so many worker processes of one thread, whose products are timed."""
    import dask

    import distributed

    every_transfer = {"distributed.admin.low-level-log-length": None}  # logs of workers forget by default
    with dask.config.set(every_transfer), tempfile.TemporaryDirectory(prefix="groupowl-scaling-") as folder:
        settings = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL, "local_directory": folder}
        with (
            distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **settings) as group,
            distributed.Client(group) as client,
        ):
            client.run(install_stopwatch)
            yield client


def install_stopwatch() -> None:
    """On a worker: count the seconds of functions of blocks that are products."""
    watch = Stopwatch()
    dask_design.stopwatch = watch
    for name in PRODUCTS:
        setattr(dask_design, name, watch.wrapped(getattr(dask_design, name)))


def traffic(client: Any) -> tuple[int, int, float]:
    """Bytes that workers have sent to each other and elsewhere, and their seconds in products."""
    if client is None:
        return 0, 0, 0.0
    logs = client.run(sent_and_busy)
    to_workers = sum(size for log, _ in logs.values() for who, size in log if who in logs)
    everything = sum(size for log, _ in logs.values() for _, size in log)
    return to_workers, everything - to_workers, sum(seconds for _, seconds in logs.values())


def sent_and_busy(dask_worker: Any) -> tuple[list[tuple[str, int]], float]:
    log = [(entry["who"], entry["total"]) for entry in dask_worker.transfer_outgoing_log]
    return log, dask_design.stopwatch.seconds


def ready(client: Any, *collections: Any) -> None:
    """Wait until data are on the workers."""
    import distributed

    distributed.wait(collections)


# The parts --------------------------------------------------------------------------------------------------


def against_samples(study: Study, sizes: Sizes, client: Any, folder: Path) -> None:
    print("(n) samples, 100 columns, 3 tasks")
    for loss in LOSSES:
        for n in sizes.n:
            source = Source(n, 100, 3, loss, sizes.rows_per_block)
            if n <= sizes.largest_in_memory:
                X, Y = source.in_memory()
                study.add(fit("n", "memory", source, X, Y))
                del X, Y
            if hasattr(go, "MemmapDesign"):
                path = folder / "X.npy"
                Y = source.on_disk(path)
                study.add(fit("n", "disk", source, go.MemmapDesign(path), Y))
                path.unlink()
                del Y
            else:
                study.notes.append("This version of groupowl has no MemmapDesign: nothing was read from disk.")
            far(study, "n", source, client)


def near_and_far(study: Study, part: str, source: Source, client: Any) -> None:
    """One fit in memory, and one on the cluster."""
    X, Y = source.in_memory()
    study.add(fit(part, "memory", source, X, Y))
    del X, Y
    far(study, part, source, client)


def far(study: Study, part: str, source: Source, client: Any) -> None:
    """One fit on the cluster."""
    X, Y = source.on_dask()
    ready(client, X, Y)
    study.add(fit(part, "Dask", source, X, Y, client))
    del X, Y
    gc.collect()


def against_columns(study: Study, sizes: Sizes, client: Any) -> None:
    print(f"(d) columns, {ENTRIES_PER_ROW} entries per row, 3 tasks")
    for loss in LOSSES:
        for d in sizes.d:
            near_and_far(study, "d", Source(sizes.n_of_d, d, 3, loss, sizes.n_of_d // 4, sparse_block), client)


def against_tasks(study: Study, sizes: Sizes, client: Any) -> None:
    print("(q) tasks, 500 columns")
    for loss in LOSSES:
        for q in sizes.q:
            if loss == "multinomial" and q == 1:
                continue  # needs two classes
            near_and_far(study, "q", Source(sizes.n_of_q, 500, q, loss, sizes.n_of_q // 4), client)


def against_workers(study: Study, sizes: Sizes, most: int) -> None:
    print("(w) workers, 100 columns, 3 tasks")
    for workers in range(1, most + 1):
        with cluster(workers) as client:
            warm_up()
            for loss in LOSSES:
                far(study, "w", Source(sizes.n_of_workers, 100, 3, loss, sizes.rows_per_block), client)


def bytes_moved(study: Study, sizes: Sizes, client: Any) -> None:
    print("(b) bytes that move, 200 columns, 3 tasks")
    for loss in LOSSES:
        far(study, "b", Source(sizes.n_of_bytes, 200, 3, loss, sizes.rows_per_block), client)


def warm_up() -> None:
    """The first call of everything is apart."""
    for loss in LOSSES:
        source = Source(2_000, 20, 3, loss, 1_000)
        for X, Y in (source.in_memory(), source.on_dask()):
            go.solve(X, Y, 10.0 * go.weights.oscar(20), loss=loss, fit_intercept=True)


# Constants, and a billion samples -----------------------------------------------------------------------------


def best_of(repeats: int, function: Callable[[], Any]) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def measure_constants(study: Study, client: Any) -> None:
    """Seconds of an entry of X, of a sample, and of a task."""
    n, d, q = (5_000, 10_000, 5) if study.quick else (50_000, 100_000, 5)
    X = sparse_block(0, (n, d))
    design = as_design(X)
    B, T = np.random.default_rng(0).standard_normal((d, q)), np.ones((n, q))
    products = best_of(3, lambda: design.matmul(B)) + best_of(3, lambda: design.rmatmul(T))
    study.constants["seconds per entry and task"] = products / (X.nnz * q)
    loss = resolve_loss("multinomial")
    w, Y = np.ones((n, 1)), np.eye(q)[np.arange(n) % q]

    def sample_space() -> None:
        theta = loss.dual_point(T, Y, w)
        theta = loss.balance(theta, Y, w, loss.balance_totals(theta, Y, w))
        loss.value(T, Y, w), loss.dual_value(theta, Y, w), loss.cancelling_size(T, w)

    study.constants["seconds per sample and task"] = best_of(3, sample_space) / (n * q)
    study.constants["seconds per task of a graph"], study.constants["tasks per block"] = task_overhead(study.quick)


def task_overhead(quick: bool) -> tuple[float, float]:
    """Seconds of one more task, from a certificate over many tiny blocks and over few; and tasks of a block."""
    seconds, tasks = [], []
    for count in (20, 100 if quick else 400):
        source = Source(10 * count, 5, 2, "multinomial", 10)
        X, Y = source.on_dask()
        problem = go.problem.build_problem(X, Y, np.ones(5), loss="multinomial", fit_intercept=True)
        B = np.pad(0.1 * np.ones((5, 2)), ((0, problem.unpenalized.n_rows), (0, 0)))
        graphs: list[int] = []
        computed = blocks._computed
        blocks._computed = lambda graph, *rest, c=computed, g=graphs: g.append(len(graph)) or c(graph, *rest)
        try:
            problem.certify(B)
        finally:
            blocks._computed = computed
        seconds.append(best_of(3, partial(problem.certify, B)))
        tasks.append(sum(graphs))
    more = tasks[1] - tasks[0]
    return (seconds[1] - seconds[0]) / more, more / ((100 if quick else 400) - 20)


def on_paper(study: Study) -> dict[str, float]:
    """What a fit of a billion samples would take, from the constants and the rounds of the largest sparse fit."""
    constants, (n, d, q, workers) = study.constants, (PAPER[name] for name in ("n", "d", "q", "workers"))
    largest = max(study.of("d", "multinomial") or study.fits, key=lambda fit: (fit.d, fit.where == "Dask"))
    entries, n_blocks = n * ENTRIES_PER_ROW, n / PAPER["rows_per_block"]
    tree = np.ceil(np.log(n_blocks) / np.log(8)) + 1
    graph = n_blocks * constants["tasks per block"] * constants["seconds per task of a graph"]
    values = {
        "entries of X": entries,
        "bytes of X on a worker": entries * 8 / workers,
        "bytes of an array of samples and tasks on a worker": 8 * n * q / workers,
        "seconds of products in a round": entries * q * constants["seconds per entry and task"] / workers,
        "seconds of the loss in a round": n * q * constants["seconds per sample and task"] / workers,
        "seconds of the task graph in a round": graph,
        "seconds of the gradient's way in a round": 8 * d * q * tree / PAPER["bandwidth"],
        "bytes to the client in a round": 8 * d * q,
        "bytes between workers in a round, at most": 8 * d * q * n_blocks * 8 / 7,
        "rounds": largest.rounds,
        "steps": largest.steps,
    }
    in_round = [value for name, value in values.items() if name.startswith("seconds of")]
    values["seconds of a round"] = sum(in_round)
    values["seconds of a step on the workers"] = values["seconds of the loss in a round"] + graph
    values["seconds of a fit"] = (
        values["rounds"] * values["seconds of a round"] + values["steps"] * values["seconds of a step on the workers"]
    )
    return values


# The page ---------------------------------------------------------------------------------------------------


def short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def size_of(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.3g} {unit}"
        count /= 1000
    return ""


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def fit_table(fits: list[Fit], *, moved: bool = False) -> str:
    header = ["loss", "data", "samples", "columns", "tasks", "workers", "seconds", "products", "passes", "steps"]
    header += ["selected", "share of X"] + (["to the client", "in a round", "between workers"] if moved else [])
    rows = []
    for item in fits:
        row = [item.loss, item.where, f"{item.n:,}", f"{item.d:,}", str(item.q), str(item.workers)]
        row += [f"{item.seconds:.3g}", str(item.products), f"{item.passes:.1f}", str(item.steps), str(item.support)]
        row.append(f"{100 * item.share:.0f} %" if item.products else "-")  # statistics are not timed as products
        if moved:
            row += [size_of(item.to_client), size_of(item.to_client / item.rounds), size_of(item.between)]
        rows.append(row if item.converged else [*row[:-1], row[-1] + " (not converged)"])
    return markdown_table(header, rows)


def page(study: Study) -> str:
    command = "python benchmarks/scaling.py" + (" --quick" if study.quick else "")
    kind = (
        "These are the figures of a quick run with small data. They show that the study works, and how times grow "
        "only roughly."
        if study.quick
        else "These are the figures of a full run."
    )
    versions = ", ".join(f"{name} {version}" for name, version in study.versions.items())
    parts = [
        "# Times of fits as the data grow",
        f"    {command}",
        f"{kind} Machine: {study.cores} cores; {versions}. Every fit ran once, with an intercept, to a relative "
        f"duality gap of {TOL:g} at a tenth of the smallest alpha that selects no feature. *Seconds* is the time of "
        "the whole call of `solve`. *Products* counts products `X^T T` with all of X; it is 0 if one pass computed "
        "sufficient statistics. *Passes* also counts `X B` and products with working sets, in units of all columns. "
        "*Steps* counts the steps of inner solves. *Share of X* is the part of the time that products with X take (on "
        "a cluster, the part of the time of its workers); it is not measured if statistics are computed. Data on disk "
        "are one file that `MemmapDesign` reads in pieces. Dask blocks were in the memory of worker processes of one "
        "thread.",
        *(f"Note: {note}" for note in dict.fromkeys(study.notes)),
        "## Against the number of samples",
        "100 columns in single precision. ![time against samples](scaling/samples.png)",
        fit_table(study.of("n")),
        growth(study, "n", "n", "samples"),
        "## Against the number of columns",
        f"Sparse data with {ENTRIES_PER_ROW} entries per row. ![time against columns](scaling/columns.png)",
        fit_table(study.of("d")),
        growth(study, "d", "d", "columns"),
        "## Against the number of tasks",
        "500 columns in single precision. ![time against tasks](scaling/tasks.png)",
        fit_table(study.of("q")),
        "## Against the number of workers",
        fit_table(study.of("w")),
        speedup(study),
        "## Bytes that move",
        "The table has the bytes that worker processes send to the client and to each other during one `solve`, "
        "according to the logs of Dask's workers.",
        fit_table(study.of("b"), moved=True),
        moved_share(study),
        paper_section(study),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def growth(study: Study, part: str, name: str, noun: str) -> str:
    """Seconds of the largest fit over those of the smallest, beside the ratio of sizes."""
    lines = []
    for loss in LOSSES:
        for where in ("memory", "disk", "Dask"):
            fits = [item for item in study.of(part, loss) if item.where == where]
            if len(fits) > 1:
                first, last = fits[0], fits[-1]
                ratio = getattr(last, name) / getattr(first, name)
                products = f"{first.products} products with X, then {last.products}"
                lines.append(
                    f"- {loss}, {where}: {short(ratio)} times the {noun} take "
                    f"{last.seconds / first.seconds:.3g} times the time; {products}."
                )
    return "\n".join(lines)


def speedup(study: Study) -> str:
    lines = []
    for loss in LOSSES:
        fits = study.of("w", loss)
        if len(fits) > 1:
            ratio = fits[0].seconds / fits[-1].seconds
            lines.append(f"- {loss}: {fits[-1].workers} workers are {ratio:.2f} times as fast as one.")
    return "\n".join(lines)


def moved_share(study: Study) -> str:
    return "\n".join(
        f"- {item.loss}: {100 * item.to_client / item.x_bytes:.3g} % of the {size_of(item.x_bytes)} of X came to the "
        f"client, {100 * item.between / item.x_bytes:.3g} % went from worker to worker."
        for item in study.of("b")
    )


def paper_section(study: Study) -> str:
    if not study.constants:
        return ""
    values, constants = on_paper(study), study.constants
    assumed = markdown_table(["assumed", ""], [[name, short(value)] for name, value in PAPER.items()])
    measured = markdown_table(["measured", ""], [[name, f"{value:.3g}"] for name, value in constants.items()])
    rows = [[name, size_of(value) if name.startswith("bytes") else short(value)] for name, value in values.items()]
    return "\n\n".join(
        [
            "## A billion samples, on paper",
            f"1e9 samples x 1e5 columns with {ENTRIES_PER_ROW} entries per row, {PAPER['q']:.0f} classes, 100 workers "
            "of one thread. With n samples, m entries, d columns, q tasks, P workers, K blocks of r rows, bandwidth b, "
            "and the constants c_x (seconds per entry and task of X B and X^T T together), c_s (per sample and task "
            "of the loss and its dual), c_t (per task of a graph), k (tasks per block):",
            "    round = m q c_x / P  +  n q c_s / P  +  K k c_t  +  8 d q (1 + log_8 K) / b\n"
            "    step  = n q c_s / P  +  K k c_t        (products with a working set are small beside the loss)\n"
            "    fit   = rounds * round + steps * step\n"
            "    bytes to the client in a round = 8 d q, between workers at most 8 d q K 8/7",
            assumed,
            measured,
            markdown_table(["computed", ""], rows),
            f"A fit would take about {short(values['seconds of a fit'] / 60)} minutes; X takes "
            f"{size_of(values['bytes of X on a worker'])} on each worker, and "
            f"{size_of(values['bytes to the client in a round'])} come to the client in a round. The number of rounds "
            "and steps is that of the largest sparse fit above; more rows hardly change it, other data do.",
        ]
    )


# Output -----------------------------------------------------------------------------------------------------


def plot(study: Study, folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for part, name, noun in (("n", "n", "samples"), ("d", "d", "columns"), ("q", "q", "tasks")):
        if not study.of(part):
            continue
        figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        for loss, style in zip(LOSSES, ("-", "--"), strict=True):
            for where, color in (("memory", "C0"), ("disk", "C1"), ("Dask", "C2")):
                fits = [item for item in study.of(part, loss) if item.where == where]
                if fits:
                    sizes, label = [getattr(item, name) for item in fits], f"{loss}, {where}"
                    line = {"color": color, "linestyle": style, "marker": "o", "markersize": 4}
                    axes[0].loglog(sizes, [item.seconds for item in fits], label=label, **line)
                    axes[1].semilogx(sizes, [item.products for item in fits], label=label, **line)
        axes[0].set(xlabel=noun, ylabel="seconds")
        axes[1].set(xlabel=noun, ylabel="products $X^T \\Theta$ with all of X", ylim=(0, None))
        axes[0].legend(fontsize=7, handlelength=4)
        figure.savefig(folder / f"{noun}.png", dpi=130)
        plt.close(figure)


def show(study: Study) -> None:
    """The table on screen, with rich where it is installed."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ModuleNotFoundError:
        print(fit_table(study.fits, moved=True))
        return
    header, _, *lines = fit_table(study.fits, moved=True).splitlines()
    table = Table(*(name.strip() for name in header.strip("|").split("|")), title="What fits cost")
    for line in lines:
        table.add_row(*(cell.strip() for cell in line.strip("|").split("|")))
    Console(width=170).print(table)


def write(study: Study, out: Path) -> None:
    folder = out / "scaling"
    folder.mkdir(parents=True, exist_ok=True)
    content = asdict(study) | {"on paper": on_paper(study) if study.constants else {}}
    (folder / "results.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (out / "scaling.md").write_text(page(study), encoding="utf-8")
    plot(study, folder)
    print(f"{out / 'scaling.md'}")


def keep_other_parts(study: Study, out: Path, parts: str) -> None:
    """Take what was not measured now from the last results."""
    path = out / "scaling" / "results.json"
    last = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if last.get("quick") == study.quick:
        study.fits += [Fit(**item) for item in last["fits"] if item["part"] not in parts]
        study.notes += [note for note in last["notes"] if note not in study.notes]


def versions() -> dict[str, str]:
    import dask
    import scipy

    found = {"Python": platform.python_version(), "groupowl": go.__version__, "NumPy": np.__version__}
    return found | {"SciPy": scipy.__version__, "Dask": dask.__version__}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data, for two minutes")
    parser.add_argument(
        "--out", type=Path, default=Path("docs/measured"), metavar="DIR", help="where to write (default: docs/measured)"
    )
    parser.add_argument(
        "--parts", default="ndqwb", metavar="LETTERS", help="parts to measure (default: all); others as before"
    )
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="worker processes (default: 2)")
    arguments = parser.parse_args()
    if not set(arguments.parts) <= set("ndqwb"):
        parser.error("--parts takes letters out of ndqwb")
    if arguments.workers < 1:
        parser.error("--workers must be at least 1")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    sizes = QUICK if arguments.quick else FULL
    study = Study(arguments.quick, len(os.sched_getaffinity(0)), versions())
    folder = Path(tempfile.mkdtemp(prefix="groupowl-scaling-"))
    started = time.perf_counter()
    try:
        if set(arguments.parts) & set("ndqb"):
            with cluster(arguments.workers) as client:
                warm_up()
                if "n" in arguments.parts:
                    against_samples(study, sizes, client, folder)
                if "d" in arguments.parts:
                    against_columns(study, sizes, client)
                if "q" in arguments.parts:
                    against_tasks(study, sizes, client)
                if "b" in arguments.parts:
                    bytes_moved(study, sizes, client)
                measure_constants(study, client)
        if "w" in arguments.parts:
            against_workers(study, sizes, arguments.workers)
    finally:
        shutil.rmtree(folder)
    minutes = (time.perf_counter() - started) / 60
    study.notes.append(f"Parts {arguments.parts} took {minutes:.1f} minutes.")
    keep_other_parts(study, arguments.out, arguments.parts)
    show(study)
    write(study, arguments.out)


if __name__ == "__main__":
    main()
