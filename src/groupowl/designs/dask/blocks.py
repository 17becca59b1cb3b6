"""Collections of Dask as users give them, sample-space arrays in blocks of rows, and task graphs that sum over them.

One task does for a block all that a journey asks of it: arrays that nothing keeps live only inside that task. A graph
of ``dask.delayed`` functions, one task for each, takes more than twice as long.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import getitem
from typing import Any
from uuid import uuid4

import numpy as np

from ..._checks import rectangular_array, refuse_mask
from ..._progress import current_line
from ..._typing import FloatArray
from ..base import Sum, is_dask

# Partial sums are added up on the workers, so many at a time: the client receives one.
_FAN_IN = 8
# How long a cluster may be without workers, and where Dask's configuration says otherwise.
_PATIENCE = "300 s"
_PATIENCE_KEY = "groupowl.worker-timeout"
# Seconds between two looks at the workers of a cluster that computes.
_LOOK_EVERY = 1.0
# Seconds for the way of a result to this process; its worker may be lost meanwhile.
_FETCH_WITHIN = 600.0
# States of tasks that are not done.
_NOT_DONE = ("waiting", "queued", "no-worker", "processing")
# Errors that Dask raises when it has lost a cluster, or gives up on one.
_LOST = ("CommClosedError", "CancelledError", "FutureCancelledError", "KilledWorker", "ClosedClientError")


def row_chunks(name: str, values: Any, convert: Any = rectangular_array) -> tuple[Any, list[str] | None]:
    """A Dask array of one or two dimensions and known shape in chunks of rows, and the names of its columns, if any.

    Local data are converted to an array first, of numbers or text.
    """
    import dask.array as da

    is_frame = hasattr(type(values), "to_dask_array")
    if is_dask(values) and not is_frame and not isinstance(values, da.Array):
        kind = f"{type(values).__module__.partition('.')[0]} {type(values).__name__}"
        raise TypeError(f"{name} must be a Dask array or data frame, got a {kind}. Convert it first.")
    columns = list(getattr(values, "columns", []))
    names = columns if columns and all(isinstance(column, str) for column in columns) else None
    if not is_dask(values):
        values = da.from_array(convert(name, values), chunks=-1)
    elif is_frame:
        await_workers()
        values = values.to_dask_array(lengths=True)
    refuse_mask(name, values._meta)
    if convert is rectangular_array and values.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, got an array of shape {values.shape}.")
    if any(np.isnan(length) for length in values.shape):
        await_workers()
        values = values.compute_chunk_sizes()
    if any(len(chunks) > 1 for chunks in values.chunks[1:]):
        what = f"{name} has {len(values.chunks[1])} chunks along its columns. They are joined"
        cost = f"which moves its {values.nbytes / 1e6:.3g} MB between workers in every pass"
        remedy = f"rechunk it once, with {name} = {name}.rechunk({{0: 'auto', 1: -1}}).persist()."
        warnings.warn(f"{what}, {cost}: {remedy}", UserWarning, stacklevel=2)
        values = values.rechunk(dict.fromkeys(range(1, values.ndim), -1))
    return values, names


@dataclass(eq=False)
class Blocks:
    """A sample-space array in blocks of rows: on the workers, or a function of others until a sum over it keeps it.

    Attributes
    ----------
    parts : list or None
        One for each block: a key of ``graph``, the block itself, or a recipe, a ``partial`` that makes it in the task
        that uses it: such a block neither waits in memory nor moves to another worker. None while there is a function
        instead.
    graph : mapping
        The task graph of the keys.
    function : callable or None
        Computes a block from the blocks of other arrays.
    samples : tuple of Blocks
        Those arrays.
    is_fleeting : bool
        Dask computes the blocks at every use, and nothing keeps them: X, unless it was persisted.
    reads_X : bool
        Costs a pass over X: kept rather than computed twice.
    local : ndarray or None
        All of it in this process, where it was asked for.
    """

    parts: list[Any] | None = None
    graph: Mapping[Any, Any] = field(default_factory=dict)
    function: Callable[..., Any] | None = None
    samples: tuple[Blocks, ...] = ()
    is_fleeting: bool = False
    reads_X: bool = False
    local: FloatArray | None = None

    def chosen(self, blocks: Sequence[int]) -> Blocks:
        """Some of the blocks of an array that is not a function of others."""
        assert self.parts is not None
        return Blocks([self.parts[i] for i in blocks], self.graph, is_fleeting=self.is_fleeting)


def blocks_of(array: Any) -> Blocks:
    """A Dask array in chunks of rows; where every block is made from nothing but a few tasks of its own, as recipes."""
    import dask
    from dask.core import istask
    from dask.optimization import cull

    graph = dict(array.__dask_graph__())
    keys = [block.key for block in array.to_delayed(optimize_graph=False).ravel()]
    is_fleeting = any(map(istask, graph.values()))
    if all(map(istask, graph.values())):  # no data to carry along, and no arrays that are on the workers
        (array,) = dask.optimize(array)
        graph = dict(array.__dask_graph__())
        recipes = [cull(graph, [key])[0] for key in keys]
        if sum(map(len, recipes)) <= len(graph):  # no task of several blocks
            made = [partial(dask.get, recipe, key) for recipe, key in zip(recipes, keys, strict=True)]
            return Blocks(list(made), is_fleeting=is_fleeting)
    return Blocks(keys, graph, is_fleeting=is_fleeting)


def summed(*sums: Sum) -> list[Any]:
    """Sums over samples in one task graph, which also keeps the arrays that they are over.

    Functions return what ``+`` adds up, block after block, or tuples of that; None adds nothing.
    """
    return _run(sums, [handle for _, *samples in sums for handle in samples])


def fetched(handle: Blocks) -> list[Any]:
    """The blocks of an array in this process."""
    blocks: list[Any] = _run([(_in_list, handle)], [])[0]
    return blocks


def exported(handle: Blocks, chunks: Any) -> Any:
    """The Dask array of a function of others with numbers in double precision, computed when it is asked for."""
    import dask.array as da

    graph, kept, _ = _task_graph((), [handle])
    return da.Array(graph, kept[handle][0][0], chunks, dtype=np.float64)


def _run(sums: Sequence[Sum], handles: Sequence[Blocks]) -> list[Any]:
    """Values of the sums; the workers keep the arrays."""
    graph, kept, key = _task_graph(sums, handles)
    graphs, values = _computed(graph, list(kept.values()), key)
    for (handle, parts), own in zip(kept.items(), graphs, strict=True):
        handle.parts, handle.graph = parts, own
        handle.function, handle.samples = None, ()  # let go of what it was made of
    return values


def _task_graph(sums: Sequence[Sum], handles: Sequence[Blocks]) -> tuple[dict[Any, Any], dict[Blocks, list[Any]], Any]:
    """Tasks that visit every block once; the keys of the arrays that are kept, and of the list of all sums.

    Kept are the given arrays and those that read X on the way, as far as they are functions and not fleeting.
    """
    position: dict[Blocks, int] = {}
    for handle in [*handles, *(handle for _, *samples in sums for handle in samples)]:
        _number(handle, position)
    leaves = [handle for handle in position if handle.parts is not None]
    kept = [handle for handle in position if handle.parts is None and not handle.is_fleeting]
    kept = [handle for handle in kept if handle in handles or handle.reads_X]
    program = _Program(
        [handle.function and (handle.function, [position[other] for other in handle.samples]) for handle in position],
        [position[handle] for handle in kept],
        [(function, [position[handle] for handle in samples]) for function, *samples in sums],
    )
    graph = {key: task for leaf in leaves for key, task in leaf.graph.items()}

    def tasks(name: str, tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Their keys are those of a Dask array of one column."""
        named = {(f"{name}-{token}", i, 0): task for i, task in enumerate(tasks)}
        graph.update(named)
        return list(named)

    token = uuid4().hex
    # Functions and their arguments are a task of their own: they travel once to each worker, not with each block.
    (program_key,) = tasks("share", [(_same, program)])
    blocks = zip(*(leaf.parts or () for leaf in leaves), strict=True)
    visits = tasks("visit", ((_visited, program_key, *block) for block in blocks))
    keys = {handle: tasks(f"keep-{k}", ((getitem, visit, k) for visit in visits)) for k, handle in enumerate(kept)}
    # Sums are taken out of the results as well: what is kept must not travel with them.
    parts = tasks("sum", ((getitem, visit, len(kept)) for visit in visits))
    while len(parts) > 1:
        groups = (parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN))
        parts = tasks(f"add-{len(parts)}", ((_added_up, group) for group in groups))
    return graph, keys, parts[0]


def _number(handle: Blocks, position: dict[Blocks, int]) -> None:
    """Give an array the next number, after all that it is made of."""
    if handle not in position:
        for other in handle.samples:
            _number(other, position)
        position[handle] = len(position)


# What runs on the workers -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Program:
    """What a task does with a block, in a form that Dask does not look into: its functions and tuples are no tasks."""

    steps: list[Any]  # function and positions of its arguments for each array, None for one that is given
    kept: list[int]
    sums: list[Any]


@np.errstate(all="ignore")  # non-finite values are looked for, not warned about
def _visited(program: _Program, *given: Any) -> tuple[Any, ...]:
    """Compute the arrays of a block one after the other, and return some of them, and sums."""
    blocks = iter(given)
    values: list[Any] = []
    for step in program.steps:
        if step is None:
            block = next(blocks)
            values.append(block() if isinstance(block, partial) else block)
        else:
            function, inputs = step
            values.append(function(*(values[i] for i in inputs)))
    sums = [function(*(values[i] for i in inputs)) for function, inputs in program.sums]
    return (*(values[i] for i in program.kept), sums)


def _same(value: Any) -> Any:
    return value


def _in_list(value: Any) -> list[Any]:
    return [value]


@np.errstate(all="ignore")
def _added_up(parts: list[list[Any]]) -> list[Any]:
    return [reduce(_plus, values) for values in zip(*parts, strict=True)]


def _plus(first: Any, second: Any) -> Any:
    if isinstance(first, tuple):
        return tuple(map(_plus, first, second))
    if first is None or second is None:
        return second if first is None else first
    return first + second


# Where Dask computes ------------------------------------------------------------------------------------


def _computed(graph: dict[Any, Any], keep: list[list[Any]], wanted: Any) -> tuple[list[Any], Any]:
    """What Dask computes in one task graph: arrays that stay on the workers, as graphs of their own, and a value."""
    import dask
    import dask.array as da
    from dask.delayed import Delayed

    progress = PassProgress(graph)
    arrays = [da.Array(graph, keys[0][0], ((np.nan,) * len(keys), (np.nan,)), dtype=np.float64) for keys in keep]
    value = Delayed(wanted, graph)
    try:
        with warnings.catch_warnings(), progress:
            warnings.filterwarnings("ignore", message="Sending large graph")  # targets as users gave them
            if arrays:
                *arrays, value = dask.persist(*arrays, value, optimize_graph=False)
            return [dict(array.dask) for array in arrays], computed(value, progress.look)
    except Exception as error:  # those of a lost cluster have no common class; all others go on as they are
        kind = type(error)
        futures = [node for node in graph.values() if hasattr(node, "client") and hasattr(node, "status")]
        if any(future.client.status != "running" for future in futures):
            reason = "this process is no longer connected to it"
        elif kind.__name__ in _LOST and kind.__module__.startswith(("distributed", "concurrent", "asyncio")):
            reason = f"{kind.__name__}: {error}"
        else:
            raise
        what = f"the Dask cluster was lost in the middle of the computation ({reason})"
        how = "a callback gets them by progress.coefficients(), solve(..., B_init=) takes them"
        raise ConnectionError(f"{what}. Start another one and continue from the last coefficients: {how}.") from error


def computed(collection: Any, look: Callable[[Any], None] | None = None) -> Any:
    """The value of a collection; a cluster that is left without workers ends in an error, not in waiting.

    While a cluster computes, ``look`` gets its client now and then.
    """
    import dask

    client = _client()
    if client is None:
        return dask.compute(collection)[0]
    from distributed import wait

    future = client.compute(collection)
    try:
        _watch(client, lambda seconds: wait(future, timeout=seconds), future.done, look)
        return future.result(timeout=_FETCH_WITHIN)
    finally:
        future.release()  # now, not when Python finds that nobody has it


def await_workers() -> None:
    """Wait for the first worker, where a cluster would compute."""
    client = _client()
    if client is not None:
        _watch(client, lambda seconds: client.wait_for_workers(1, timeout=seconds), lambda: _has_workers(client))


def _has_workers(client: Any) -> bool:
    return bool(client.scheduler_info()["workers"])


def _client() -> Any:
    """The client of the cluster on which Dask would compute now; None where it would compute in this process."""
    from dask.base import get_scheduler

    owner = getattr(get_scheduler(), "__self__", None)
    return owner if type(owner).__module__.startswith("distributed.") else None


def _watch(
    client: Any,
    wait: Callable[[float], Any],
    is_done: Callable[[], bool],
    look: Callable[[Any], None] | None = None,
) -> None:
    """Wait until something is done, for as long as there are workers and some time longer."""
    import dask
    from dask.utils import parse_timedelta

    setting = dask.config.get(_PATIENCE_KEY, _PATIENCE)
    try:
        patience = float(parse_timedelta(setting))
    except (TypeError, ValueError, KeyError):
        patience = -1.0
    if not patience >= 0.0:
        expected = "must be a time such as '300 s', not negative"
        raise ValueError(f"Dask's setting {_PATIENCE_KEY!r} {expected}, got {setting!r}.")
    last_seen = time.monotonic()
    while not is_done():
        try:
            wait(max(min(_LOOK_EVERY, patience), 1e-3))
        except TimeoutError:
            if look is not None:
                look(client)
            if _has_workers(client):
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen >= patience:
                what = f"the Dask cluster {client.scheduler.address} has 0 workers, and none came within {patience:g}"
                setting = f"dask.config.set({{{_PATIENCE_KEY!r}: '30 minutes'}})"
                raise TimeoutError(f"{what} seconds. Start workers; or wait longer for them: {setting}.") from None


# Progress -----------------------------------------------------------------------------------------------


class PassProgress:
    """Tells the line of progress, where there is one, how many blocks of a task graph have been visited.

    A context in which a scheduler of this process tells of every task; of those of a cluster, :meth:`look` asks.
    """

    def __init__(self, graph: Mapping[Any, Any]) -> None:
        self.line, self.visits, self.n_done = current_line(), [], 0
        if self.line is not None:
            self.visits = [key for key in graph if isinstance(key, tuple) and str(key[0]).startswith("visit-")]
        self._context: Any = nullcontext()
        if self.visits:
            from dask.callbacks import Callback

            self._context = Callback(posttask=self._count)

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)
        if self.line is not None:
            self.line.show_pass(None)

    def _count(self, key: Any, *_: Any) -> None:
        if isinstance(key, tuple) and key[0] == self.visits[0][0]:
            self._show(self.n_done + 1)

    def look(self, client: Any) -> None:
        """Ask the scheduler of a cluster."""
        if self.visits:
            with suppress(Exception):  # nobody should lose a fit because a scheduler does not answer this
                n_waiting = client.run_on_scheduler(_n_waiting, group=self.visits[0][0])
                if n_waiting is not None:
                    self._show(len(self.visits) - n_waiting)

    def _show(self, n_done: int) -> None:
        assert self.line is not None
        self.n_done = n_done
        self.line.show_pass(n_done / len(self.visits))


def _n_waiting(group: str, dask_scheduler: Any = None) -> int | None:
    """Tasks of a group that are not done, as the scheduler knows them; None where it does not know the group."""
    found = dask_scheduler.task_groups.get(group)
    return None if found is None else sum(found.states[state] for state in _NOT_DONE if state in found.states)
