"""Sample-space arrays in blocks of rows on a Dask cluster, and the task graphs that sum over them.

One task does for a block all that a journey asks of it: arrays that nothing keeps live only inside that task.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from .._typing import FloatArray
from .base import Sum

# Partial sums are added up on the workers, so many at a time: the client receives one.
_FAN_IN = 8


@dataclass(eq=False)
class Blocks:
    """A sample-space array in blocks of rows: on the workers, or a function of others until a sum over it keeps it.

    Attributes
    ----------
    parts : list or None
        What Dask knows of it, one for each block; None while there is a function instead.
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
    """

    parts: list[Any] | None = None
    function: Callable[..., Any] | None = None
    samples: tuple[Blocks, ...] = ()
    constants: dict[str, Any] = field(default_factory=dict)
    is_fleeting: bool = False
    reads_X: bool = False
    local: FloatArray | None = None  # all of it in this process, where it was asked for

    def keep(self, parts: list[Any]) -> None:
        """Take what the workers have, and let go of what it was made of."""
        self.parts, self.function, self.samples, self.constants = parts, None, (), {}

    def chosen(self, blocks: Sequence[int]) -> Blocks:
        """Some of the blocks of an array that is not a function of others."""
        assert self.parts is not None
        return Blocks([self.parts[i] for i in blocks], is_fleeting=self.is_fleeting)


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
    graph = _Graph()
    handles = [handle for _, *samples in sums for handle in samples]
    for total in _totals(handles):
        graph.add_total(total)
        if graph.reads_fleeting:
            graph.run_totals()
    return graph.run(graph.add(sums, handles))


def fetched(handle: Blocks) -> list[Any]:
    """The blocks of an array in this process."""
    if handle.parts is not None:
        return _computed([], handle.parts)[1]
    graph = _Graph()
    graph.add((), [handle])
    return _computed([], graph.parts[handle])[1]


def delayed_parts(handle: Blocks) -> list[Any]:
    """The blocks of an array as objects that Dask computes when it is asked to."""
    from dask import delayed

    if handle.parts is None:
        graph = _Graph()
        graph.add((), [handle])
        return graph.parts[handle]
    # Local arrays are among the parts of what users gave.
    return [part if hasattr(part, "__dask_graph__") else delayed(part) for part in handle.parts]


def persisted(parts: list[Any]) -> list[Any]:
    """Parts that stay on the workers from now on."""
    return _computed(parts, [])[0]


class _Graph:
    """The task graph of one journey, made stage by stage; a stage visits every block once."""

    def __init__(self) -> None:
        self.parts: dict[Blocks, list[Any]] = {}  # of the arrays that this journey will have kept
        self.totals: dict[Total, Any] = {}
        self.reads_fleeting = False

    def add_total(self, total: Total) -> None:
        """A stage for a total, which keeps what it reads of X on the way for the stages to come."""
        made_of_X = [handle for handle in self._order(total.samples) if handle.reads_X]
        self.totals[total] = self.add([(total.function, *total.samples)], made_of_X)

    def add(self, sums: Sequence[Sum], handles: Iterable[Blocks]) -> Any:
        """A stage that keeps arrays and computes sums, which are one object for Dask."""
        from dask import delayed

        keep = [handle for handle in dict.fromkeys(handles) if self._is_lazy(handle) and not handle.is_fleeting]
        order = self._order([*keep, *(handle for _, *samples in sums for handle in samples)])
        self.reads_fleeting |= any(handle.is_fleeting for handle in order)
        program = _Program(order, [self._is_lazy(handle) for handle in order], keep, sums, list(self.totals))
        # Functions and their arguments are a task of their own: they travel once to each worker, not with each block.
        shared, totals = delayed(_same, pure=False)(program), list(self.totals.values())
        visit, take = delayed(_visited, pure=False), delayed(_taken, pure=False)
        leaves = [self._parts_of(handle) for handle in order if not self._is_lazy(handle)]
        results = [visit(shared, totals, *block) for block in zip(*leaves, strict=True)]
        for k, handle in enumerate(keep):
            self.parts[handle] = [take(result, k) for result in results]
        # Sums are taken out of the results as well: what is kept must not travel with them.
        return _tree([take(result, len(keep)) for result in results]) if sums else None

    def run_totals(self) -> None:
        """Compute all so far, and go on from the values."""
        values = self._run(list(self.totals.values()))
        self.totals = dict(zip(self.totals, values, strict=True))
        self.reads_fleeting = False

    def run(self, wanted: Any) -> Any:
        """Compute all, for the value of one object."""
        return self._run([wanted])[0]

    def _run(self, wanted: list[Any]) -> list[Any]:
        """Values of these objects; arrays that are kept go to their handles."""
        kept, values = _computed([part for parts in self.parts.values() for part in parts], wanted)
        remaining = iter(kept)
        for handle, parts in self.parts.items():
            handle.keep([next(remaining) for _ in parts])
        self.parts = {}
        return values

    def _parts_of(self, handle: Blocks) -> list[Any]:
        parts = self.parts.get(handle, handle.parts)
        assert parts is not None
        return parts

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
        found = {name: totals[i][0] for name, i in self.totals.items()}
        return self.function(*(values[i] for i in self.inputs), **self.constants, **found)


def _same(program: _Program) -> _Program:
    return program


def _visited(program: _Program, totals: list[Any], *given: Any) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):  # non-finite values are looked for, not warned about
        return program.run(totals, iter(given))


def _taken(result: tuple[Any, ...], k: int) -> Any:
    return result[k]


def _tree(parts: list[Any]) -> Any:
    """Lists of sums added up, a few at a time, so that no worker and not the client sees all of them."""
    from dask import delayed

    call = delayed(_added_up, pure=False)
    while len(parts) > 1:
        parts = [call(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    return parts[0]


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


def _computed(parts: list[Any], wanted: list[Any]) -> tuple[list[Any], list[Any]]:
    """What Dask computes in one task graph: parts that stay on the workers, values of the others here."""
    import dask

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")  # targets as users gave them
            if not parts:
                return [], list(dask.compute(*wanted))
            started = dask.persist(*parts, *wanted)
            return list(started[: len(parts)]), list(dask.compute(*started[len(parts) :]))
    except Exception as error:
        if any(map(_needs_lost_cluster, (*wanted, *parts))):
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


def _needs_lost_cluster(collection: Any) -> bool:
    """Whether some of its blocks are on workers that this process is no longer connected to."""
    for node in dict(collection.__dask_graph__()).values():
        client = getattr(getattr(node, "value", node), "client", None)  # a future, as it is or as a node
        if client is not None and getattr(client, "status", "running") != "running":
            return True
    return False
