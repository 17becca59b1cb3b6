"""Fits to halves of the samples: what a base selector returns from each, with proofs; kept in a folder if asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from .._progress import CountedLine
from .._resume import ABOUT_PAIRS, Facts, ResumeFolder
from .._threads import Stop
from .._typing import BoolArray, FloatArray, IndexArray
from ..designs import Design, SufficientStatistics
from ..losses import resolve_loss
from ..model import Model
from ..model_selection import Fitting
from ..model_selection.folds import with_statistics
from ..solvers import SolveResult
from ..solvers.continuation import compiled_data, may_ask_kernel

# Alphas that the compiled kernel is asked for at a time: most paths end long before the last one.
_AT_ONCE = 6


def draw_pair(n_samples: int, labels: IndexArray | None, seed: tuple[int, int]) -> tuple[IndexArray, IndexArray]:
    """Two disjoint random halves of the samples, ascending; of an odd number one sample is left out.

    With labels, both halves have as many samples of each class, as far as that is possible.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_samples)
    if labels is not None:
        # Samples of a class stand together, and every other one goes to the same half.
        order = order[np.argsort(labels[order], kind="stable")]
    size = n_samples // 2
    first, second = order[0 : 2 * size : 2], order[1 : 2 * size : 2]
    if labels is not None and rng.integers(2):  # neither half is the one with more of a class
        first, second = second, first
    return np.sort(first), np.sort(second)


class Entries(NamedTuple):
    """Where units enter the path of one half; only units that are not proved zero at some alpha that counts.

    Attributes
    ----------
    features : ndarray of int
        Their features, ascending.
    candidate_at, selected_at : ndarray of int
        First alpha at which they are not proved zero, and at which their coefficients are not zero. The number of
        alphas stands for never.
    n_used : int
        Alphas that count: the next one has too many candidates, or there is none.
    n_short : int
        Solves that fell short of the tolerance.
    """

    features: IndexArray
    candidate_at: IndexArray
    selected_at: IndexArray
    n_used: int
    n_short: int


@dataclass(frozen=True, eq=False)
class HalfFits:
    """The base selector: a path on some samples that ends before it has more than ``most`` candidates.

    Attributes
    ----------
    design : Design
        All samples.
    Y, sample_weight : ndarray
        Their targets and weights.
    fitting : Fitting
        How to fit.
    weights : ndarray
        Weight sequence.
    alphas : ndarray
        Falling; fractions of the smallest alpha that selects nothing from the half where ``are_fractions``.
    most : int
        Units that may be candidates, at one alpha or another.
    total : SufficientStatistics or None
        Of all samples, where pairs are best made from statistics.
    """

    design: Design
    Y: FloatArray
    sample_weight: FloatArray | None
    fitting: Fitting
    weights: FloatArray
    alphas: FloatArray
    are_fractions: bool
    most: int
    total: SufficientStatistics | None = None

    def run(self, pair: tuple[IndexArray, IndexArray], seed: Any) -> tuple[Entries, Entries]:
        """What both halves return."""
        first, second = self._statistics(pair)
        rngs = np.random.default_rng(seed).spawn(2)
        return self._entries(pair[0], first, rngs[0]), self._entries(pair[1], second, rngs[1])

    def _statistics(self, pair: tuple[IndexArray, IndexArray]) -> tuple[Any, Any]:
        """Those of both halves from one pass over the first: the second is what it leaves of all samples."""
        if self.total is None:
            return None, None
        n_samples = len(self.Y)
        labels = np.full(n_samples, -1, dtype=np.intp)  # which is no part
        labels[pair[0]] = 0
        is_odd = 2 * len(pair[0]) < n_samples
        if is_odd:  # and one sample is in neither
            labels[pair[1]] = 1
        weight = np.ones(n_samples) if self.sample_weight is None else self.sample_weight
        parts = self.design.statistics_of_parts(self.Y, weight[:, None], labels, 1 + is_odd)
        first, second = parts if is_odd else (parts[0], self.total - parts[0])
        return (first, second) if first.is_reliable() and second.is_reliable() else (None, None)

    def _entries(self, rows: IndexArray, statistics: Any, rng: Any) -> Entries:
        """Follow the path of one half until it has too many candidates."""
        model, n_alphas = self._model(rows), len(self.alphas)
        never = np.full(self.design.n_features, n_alphas)
        candidate_at, selected_at = never.copy(), never.copy()
        n_used = n_short = 0
        for result in self._solves(model, statistics, rng):
            candidates = candidate_at < n_alphas
            candidates[result.active] = True
            candidates[self.fitting.unpenalized] = False
            if self._count(model, candidates) > self.most:
                break
            n_short += not result.converged
            candidate_at[candidates] = np.minimum(candidate_at[candidates], n_used)
            support = result.support[candidates[result.support]]
            selected_at[support] = np.minimum(selected_at[support], n_used)
            n_used += 1
        features = np.flatnonzero(candidate_at < n_alphas)
        return Entries(features, candidate_at[features], selected_at[features], n_used, n_short)

    def _solves(self, model: Model | None, statistics: Any, rng: Any) -> Iterator[SolveResult]:
        """Results for falling alphas; none where there is nothing to explain, and so nothing to select."""
        if model is None or model.alpha_max == 0.0:
            return
        if statistics is not None:
            model = with_statistics(model, statistics, self.fitting.standardize)
        alphas = self.alphas * model.alpha_max if self.are_fractions else self.alphas
        solves = model.continuation(replace(self.fitting.settings, rng=rng), n_solves=len(alphas))
        for start in range(0, len(alphas), _AT_ONCE):
            yield from solves.solve_all(model.sequence_weights, alphas[start : start + _AT_ONCE].tolist())

    @staticmethod
    def _count(model: Any, candidates: BoolArray) -> int:
        """Units, features or groups of them, that a mask of features has."""
        units = model.problem.penalty.units
        return int(np.count_nonzero(candidates)) if units is None else len(np.unique(units[candidates]))

    def asks_kernel(self) -> bool:
        """Whether the compiled kernel does the work, and threads can share it."""
        model = self.fitting.model(self.design, self.Y, self.weights, self.sample_weight)
        return may_ask_kernel(self.fitting.settings) and compiled_data(model.problem) is not None

    def _model(self, rows: IndexArray) -> Model | None:
        """The model of some samples, of the tasks that these leave something to fit for; None where there is none."""
        loss = resolve_loss(self.fitting.loss)
        Y = self.Y[rows]
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        numbers = loss.targets(Y)
        is_observed = ~np.isnan(numbers)
        n_observed = is_observed.sum(axis=0)
        means = np.where(is_observed, numbers, 0.0).sum(axis=0) / np.maximum(n_observed, 1)
        is_open = np.isnan(loss.determined(means)) & (n_observed > 0)
        Y = loss.of_tasks(Y, is_open)
        if Y.shape[1] == 0:
            return None
        if weight is not None and weight.ndim == 2:
            weight = weight[:, is_open]
        return self.fitting.model(self.design.rows(rows), Y, self.weights, weight)


# All pairs, side by side and one after the other ----------------------------------------------------------

PairOfEntries = tuple[Entries, Entries]


def run_pairs(
    fits: HalfFits,
    labels: IndexArray | None,
    n_pairs: int,
    entropy: int,
    *,
    n_jobs: Any,
    folder: PairFolder,
    line: CountedLine,
) -> list[PairOfEntries]:
    """What the halves of all pairs return; those that the folder has are not fitted again.

    A pair depends on its number and the entropy alone: not on the number of jobs, and not on how many pairs there are.
    """
    known = {number: folder.read(number) for number in range(n_pairs)}
    missing = [number for number, pair in known.items() if pair is None]
    line.begin(n_pairs, n_pairs - len(missing))
    stop = Stop()
    fits = replace(fits, fitting=replace(fits.fitting, settings=replace(fits.fitting.settings, interrupted=stop)))
    work = []
    for number in missing:
        pair = draw_pair(len(fits.Y), labels, (entropy, number))
        work.append(delayed(fits.run)(pair, (entropy, number)))
    prefer = "threads" if fits.asks_kernel() else None
    found: Iterable[PairOfEntries] = Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator")(work)
    try:
        for number, entries in zip(missing, found, strict=True):
            folder.write(number, entries)
            known[number] = entries
            line.advance()
    except BaseException:
        stop.is_over = True  # for pairs that run in threads
        raise
    finally:
        line.close()
    return [pair for pair in known.values() if pair is not None]


# Pairs on disk --------------------------------------------------------------------------------------------


class PairFolder:
    """Finished pairs in a folder, a file for each; without a folder nothing is read and written.

    Parameters
    ----------
    folder : str, Path or None
        Made where it is not there.
    facts : dict
        What the fits depend on, as text by name: a folder with other facts is refused.
    """

    def __init__(self, folder: Any, facts: Facts) -> None:
        self.folder: ResumeFolder | None = None
        if folder is not None:
            self.folder = ResumeFolder(folder, facts, about=ABOUT_PAIRS, holds="pairs", remedy=_other_remedy)

    def read(self, number: int) -> PairOfEntries | None:
        """A pair that is there and whole, or None."""
        stored = None if self.folder is None else self.folder.read(f"pair_{number:05d}")
        try:
            return None if stored is None else (_stored_entries(stored, 0), _stored_entries(stored, 1))
        except KeyError:
            return None

    def write(self, number: int, pair: PairOfEntries) -> None:
        """Keep a pair; the file is whole or not there."""
        if self.folder is None:
            return
        arrays: dict[str, Any] = {}
        for half, entries in enumerate(pair):
            for name, value in entries._asdict().items():
                arrays[f"{name}_{half}"] = value
        self.folder.write(f"pair_{number:05d}", **arrays)


def _other_remedy(different: list[str], stored: Facts) -> str:
    """What else can be done where only the default of ``n_selected`` differs, which changes with ``n_pairs``."""
    return f", or give n_selected={stored['n_selected']}" if different == ["n_selected"] else ""


def _stored_entries(stored: Any, half: int) -> Entries:
    features, candidate_at, selected_at, n_used, n_short = (stored[f"{name}_{half}"] for name in Entries._fields)
    return Entries(features, candidate_at, selected_at, int(n_used), int(n_short))
