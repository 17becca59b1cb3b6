"""Sample-space arrays in blocks of rows on a Dask cluster, and the task graphs that sum over them.

One task does for a block all that a journey asks of it: arrays that nothing keeps live only inside that task.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any
from uuid import uuid4

import numpy as np

from ..._dask import computed
from ..._typing import FloatArray
from ..base import Sum

# Partial sums are added up on the workers, so many at a time: the client receives one.
_FAN_IN = 8


@dataclass(eq=False)
class Blocks:
    """A sample-space array in blocks of rows: on the workers, or a function of others until a sum over it keeps it.

    Attributes
    ----------
    parts : list or None
        One for each block: a key of ``graph``, the block itself, or a :class:`Recipe` for it. None while there is a
        function instead.
    graph : mapping
        The task graph of the keys.
    function : callable or None
        Computes a block from the blocks of other arrays.
    samples : tuple of Blocks
        Those arrays.
    constants : dict
        Further arguments of the function; a :class:`Total` stands for its value.
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
    constants: dict[str, Any] = field(default_factory=dict)
    is_fleeting: bool = False
    reads_X: bool = False
    local: FloatArray | None = None

    def keep(self, graph: Mapping[Any, Any], parts: list[Any]) -> None:
        """Take what the workers have, and let go of what it was made of."""
        self.parts, self.graph = parts, {key: graph[key] for key in parts}
        self.function, self.samples, self.constants = None, (), {}

    def chosen(self, blocks: Sequence[int]) -> Blocks:
        """Some of the blocks of an array that is not a function of others."""
        assert self.parts is not None
        return Blocks([self.parts[i] for i in blocks], self.graph, is_fleeting=self.is_fleeting)


@dataclass(frozen=True)
class Recipe:
    """A block that is made in the task that uses it: it neither waits in memory nor moves to another worker."""

    graph: Mapping[Any, Any]
    key: Any

    def make(self) -> Any:
        """Compute the block."""
        import dask

        return dask.get(self.graph, self.key)


@dataclass(frozen=True, eq=False)
class Total:
    """A sum over samples that stays on the workers, for functions of each block."""

    function: Callable[..., Any]
    samples: tuple[Blocks, ...]


def summed(*sums: Sum) -> list[Any]:
    """Sums over samples in one task graph, which also keeps the arrays that they are over.

    Functions return what ``+`` adds up, block after block, or tuples of that. Where a sum needs a :class:`Total`, all
    blocks are visited once for it and once more after it. Those that Dask computes at every use would wait in memory,
    all of them, from the first visit to the second: instead each visit has a graph of its own.
    """
    journey = _Journey()
    handles = [handle for _, *samples in sums for handle in samples]
    for total in _totals(handles):
        journey.add_total(total)
        if journey.reads_fleeting:
            journey.run_totals()
    return journey.run(journey.add(sums, handles))


def fetched(handle: Blocks) -> list[Any]:
    """The blocks of an array in this process."""
    graph, parts = graph_of(handle)
    return _computed(graph, [], parts)[1]


def graph_of(handle: Blocks) -> tuple[Mapping[Any, Any], list[Any]]:
    """The task graph of an array, and the keys of its blocks, which are those of a Dask array of one column."""
    copy = Blocks(function=_same, samples=(handle,))
    journey = _Journey()
    journey.add((), [copy])
    return journey.graph, journey.parts[copy]


def persisted(handle: Blocks) -> Blocks:
    """The same blocks, on the workers from now on."""
    assert handle.parts is not None
    kept = Blocks()
    kept.keep(_computed(handle.graph, handle.parts, [])[0], handle.parts)
    return kept


class _Journey:
    """One task graph, made stage by stage; a stage visits every block once."""

    def __init__(self) -> None:
        self.graph: dict[Any, Any] = {}
        self.parts: dict[Blocks, list[Any]] = {}  # keys of the arrays that this journey will have kept
        self.totals: dict[Total, Any] = {}  # their keys, or their values where they are known
        self.reads_fleeting = False

    def add_total(self, total: Total) -> None:
        """A stage for a total, which keeps what it reads of X on the way for the stages to come."""
        made_of_X = [handle for handle in self._order(total.samples) if handle.reads_X]
        self.totals[total] = self.add([(total.function, *total.samples)], made_of_X)

    def add(self, sums: Sequence[Sum], handles: Iterable[Blocks]) -> Any:
        """A stage that keeps arrays and computes sums; the key of the sums, which are one list."""
        keep = [handle for handle in dict.fromkeys(handles) if self._is_lazy(handle) and not handle.is_fleeting]
        order = self._order([*keep, *(handle for _, *samples in sums for handle in samples)])
        lazy = [self._is_lazy(handle) for handle in order]
        self.reads_fleeting |= any(handle.is_fleeting for handle in order)
        # Functions and their arguments are a task of their own: they travel once to each worker, not with each block.
        program, totals = _new_key("share"), list(self.totals.values())
        self.graph[program] = (_same, _Program(order, lazy, keep, sums, list(self.totals)))
        leaves = [self._parts_of(handle) for handle, is_lazy in zip(order, lazy, strict=True) if not is_lazy]
        visits = self._tasks("visit", ((_visited, program, totals, *block) for block in zip(*leaves, strict=True)))
        for k, handle in enumerate(keep):
            self.parts[handle] = self._tasks("keep", ((_taken, visit, k) for visit in visits))
        # Sums are taken out of the results as well: what is kept must not travel with them.
        parts = self._tasks("sum", ((_taken, visit, len(keep)) for visit in visits))
        while len(parts) > 1:
            groups = (parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN))
            parts = self._tasks("add", ((_added_up, group) for group in groups))
        return parts[0]

    def _tasks(self, name: str, tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
        """One task for each block, or for several of them; their keys are those of a Dask array of one column."""
        name, keys = _new_key(name), []
        for i, task in enumerate(tasks):
            keys.append((name, i, 0))
            self.graph[keys[-1]] = task
        return keys

    def run_totals(self) -> None:
        """Compute all so far, and go on from the values."""
        values = self._run(list(self.totals.values()))
        self.totals = {total: _Known(value) for total, value in zip(self.totals, values, strict=True)}
        self.graph, self.reads_fleeting = {}, False

    def run(self, wanted: Any) -> Any:
        """Compute all, for one value."""
        return self._run([wanted])[0]

    def _run(self, wanted: list[Any]) -> list[Any]:
        """Values of these keys; arrays that are kept go to their handles."""
        kept, values = _computed(self.graph, [key for parts in self.parts.values() for key in parts], wanted)
        for handle, parts in self.parts.items():
            handle.keep(kept, parts)
        self.parts = {}
        return values

    def _parts_of(self, handle: Blocks) -> list[Any]:
        if handle in self.parts:
            return self.parts[handle]
        assert handle.parts is not None
        self.graph.update(handle.graph)
        return handle.parts

    def _is_lazy(self, handle: Blocks) -> bool:
        return handle.parts is None and handle not in self.parts

    def _order(self, handles: Iterable[Blocks]) -> list[Blocks]:
        """These arrays and all that they are made of as far as the workers do not have it, in order of computation."""
        found: dict[Blocks, None] = {}

        def visit(handle: Blocks) -> None:
            if handle not in found:
                for other in handle.samples if self._is_lazy(handle) else ():
                    visit(other)
                found[handle] = None

        for handle in handles:
            visit(handle)
        return list(found)


def _new_key(name: str) -> str:
    return f"{name}-{uuid4().hex}"


def _totals(handles: Iterable[Blocks]) -> list[Total]:
    """All totals that these arrays need, each after those that it needs itself."""
    found: dict[Total, None] = {}
    seen: set[Blocks] = set()

    def visit(handle: Blocks) -> None:
        if handle in seen:
            return
        seen.add(handle)
        needed = [value for value in handle.constants.values() if isinstance(value, Total)]
        for other in (*handle.samples, *(other for total in needed for other in total.samples)):
            visit(other)
        found.update(dict.fromkeys(needed))

    for handle in handles:
        visit(handle)
    return list(found)


# What runs on the workers -------------------------------------------------------------------------------


class _Program:
    """What a task does with a block: compute arrays one after the other, return some of them, and sums."""

    def __init__(
        self, order: list[Blocks], lazy: list[bool], keep: list[Blocks], sums: Sequence[Sum], totals: list[Total]
    ) -> None:
        position = {handle: i for i, handle in enumerate(order)}
        number = {total: i for i, total in enumerate(totals)}
        self.steps = [
            _Step(handle, [position[other] for other in handle.samples], number) if is_lazy else None
            for handle, is_lazy in zip(order, lazy, strict=True)
        ]
        self.kept = [position[handle] for handle in keep]
        self.sums = [(function, [position[handle] for handle in samples]) for function, *samples in sums]

    def run(self, totals: list[Any], given: Iterator[Any]) -> tuple[Any, ...]:
        """Arrays that are kept, and the sums."""
        values: list[Any] = []
        for step in self.steps:
            values.append(next(given) if step is None else step.run(totals, values))
        sums = [function(*(values[i] for i in inputs)) for function, inputs in self.sums]
        return (*(values[i] for i in self.kept), sums)


class _Step:
    """One array of a program."""

    def __init__(self, handle: Blocks, inputs: list[int], number: dict[Total, int]) -> None:
        assert handle.function is not None
        self.function, self.inputs = handle.function, inputs
        self.constants = {name: value for name, value in handle.constants.items() if not isinstance(value, Total)}
        self.totals = {name: number[value] for name, value in handle.constants.items() if isinstance(value, Total)}

    def run(self, totals: list[Any], values: list[Any]) -> Any:
        found = {name: totals[i] for name, i in self.totals.items()}
        return self.function(*(values[i] for i in self.inputs), **self.constants, **found)


class _Known:
    """The value of a total in a task graph, which Dask must not take for anything else."""

    def __init__(self, value: list[Any]) -> None:
        self.value = value


def _same(value: Any) -> Any:
    return value


def _visited(program: _Program, totals: list[Any], *given: Any) -> tuple[Any, ...]:
    """Totals are sums, each the only one of a list."""
    values = [(total.value if isinstance(total, _Known) else total)[0] for total in totals]
    made = (block.make() if isinstance(block, Recipe) else block for block in given)
    with np.errstate(all="ignore"):  # non-finite values are looked for, not warned about
        return program.run(values, made)


def _taken(result: tuple[Any, ...], k: int) -> Any:
    return result[k]


def _added_up(parts: list[list[Any]]) -> list[Any]:
    with np.errstate(all="ignore"):
        return [reduce(_plus, values) for values in zip(*parts, strict=True)]


def _plus(first: Any, second: Any) -> Any:
    if isinstance(first, tuple):
        return tuple(a + b for a, b in zip(first, second, strict=True))
    return first + second


# Where Dask computes ------------------------------------------------------------------------------------

# Errors that Dask raises when it has lost a cluster, or gives up on one.
_LOST = ("CommClosedError", "CancelledError", "FutureCancelledError", "KilledWorker", "ClosedClientError")


class _Collection:
    """Some keys of a task graph, as Dask asks of a collection."""

    def __init__(self, graph: Mapping[Any, Any], keys: list[Any]) -> None:
        self.graph, self.keys = graph, keys

    def __dask_graph__(self) -> Mapping[Any, Any]:
        return self.graph

    def __dask_keys__(self) -> list[Any]:
        return self.keys

    def __dask_tokenize__(self) -> str:
        """Another one each time: Dask would read all that is in the graph to find one that says what it is."""
        return uuid4().hex

    def __dask_postcompute__(self) -> tuple[Any, tuple[()]]:
        return list, ()

    def __dask_postpersist__(self) -> tuple[Any, tuple[()]]:
        return self._rebuilt, ()

    def _rebuilt(self, graph: Mapping[Any, Any], *, rename: Any = None) -> _Collection:
        return _Collection(graph, self.keys)

    @staticmethod
    def __dask_optimize__(graph: Any, keys: Any, **settings: Any) -> Any:
        return graph

    @staticmethod
    def __dask_scheduler__(*args: Any, **settings: Any) -> Any:
        """Threads, where neither a cluster nor the settings of Dask say otherwise."""
        from dask.threaded import get

        return get(*args, **settings)


def _computed(graph: Mapping[Any, Any], keep: list[Any], wanted: list[Any]) -> tuple[Mapping[Any, Any], list[Any]]:
    """What Dask computes in one task graph: keys that stay on the workers, with what it knows of them; values."""
    import dask

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")  # targets as users gave them
            if not keep:
                return {}, computed(_Collection(graph, wanted))
            kept = dask.persist(_Collection(graph, [*keep, *wanted]))[0].graph
            values = computed(_Collection({key: kept[key] for key in wanted}, wanted)) if wanted else []
            return kept, values
    except Exception as error:
        if _needs_lost_cluster(graph):
            reason = "this process is no longer connected to it"
        elif _is_loss_of_cluster(error):
            reason = f"{type(error).__name__}: {error}"
        else:
            raise
        raise ConnectionError(
            f"the Dask cluster was lost in the middle of the computation ({reason}). Start another one and continue "
            "from the last coefficients: a callback gets them by progress.coefficients(), solve(..., B_init=) takes "
            "them."
        ) from error


def _is_loss_of_cluster(error: Exception) -> bool:
    kind = type(error)
    return kind.__name__ in _LOST and kind.__module__.startswith(("distributed", "concurrent", "asyncio"))


def _needs_lost_cluster(graph: Mapping[Any, Any]) -> bool:
    """Whether some of it is on workers that this process is no longer connected to."""
    clients = (getattr(node, "client", None) for node in graph.values())  # of futures
    return any(client is not None and client.status != "running" for client in clients)
