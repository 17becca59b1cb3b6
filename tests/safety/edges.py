"""The campaign at the edges: fits through the public API, judged from the public numbers alone.

For each seed a fit is drawn (:mod:`edge_cases`), made, and handed to a judge in extended precision that shares no code
with the package (:mod:`judge`). A finding is

- *gap*: an explicit point is better than the public coefficients by more than the gap that the fit claims;
- *zero*: without the features that are proved zero the minimum rises;
- *nan*: a coefficient or gap that is not a number;
- *verify*: a converged fit that its own ``verify`` calls false;
- *warning*, *crash*: a warning that is not documented or that is wrong, an error that is no refusal of the data.

Refusals (a ValueError raised by the package's own checks) are counted, and the report says how many fits had each edge,
how many of them were judged, and how many had a nonzero solution. Run it as a script for the long form.
"""

from __future__ import annotations

import argparse
import json
import operator
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import twin_support
from edge_cases import Case, draw
from judge import Claim, Verdict, is_separated, judge, may_be_left_out
from judge_exact import Long, short
from judge_problem import Question
from sklearn.exceptions import ConvergenceWarning

import groupowl as go

# Files whose ValueErrors are refusals: ours, and scikit-learn's checks of what comes in.
_CHECKS = ("/groupowl/", "/sklearn/utils/", "/sklearn/model_selection/_split.py")
# A campaign with larger shares than these has seen too little.
MOST_REFUSED, MOST_UNDECIDED = 0.2, 0.01
# States of features that are zero without a proof, by decision of the fit.
LEFT_OUT = ("treated as constant", "explained by unpenalized")


@dataclass
class Counts:
    """What was fitted, what was judged, and what was found."""

    fits: int = 0
    judged: int = 0
    refused: int = 0
    undecided: int = 0
    nonzero: int = 0
    zeros_proved: int = 0
    verified: int = 0
    traits: dict[str, dict[str, int]] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        for name in ("fits", "judged", "refused", "undecided", "nonzero", "zeros_proved", "verified"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for trait, counts in other.traits.items():
            self.traits[trait] = dict(Counter(self.traits.get(trait, {})) + Counter(counts))
        self.refusals = dict(Counter(self.refusals) + Counter(other.refusals))
        self.findings += other.findings

    def kinds(self) -> dict[str, int]:
        return dict(Counter(finding["kind"] for finding in self.findings))


@dataclass(frozen=True)
class Fit:
    """What a user sees of a fit, in the shapes of the judge."""

    question: Question
    claim: Claim
    converged: bool
    verified: bool | None = None  # None where there is nothing to ask
    complaints: tuple[str, ...] = ()  # of verify


class Refusal(Exception):
    """The package refused the data."""


class Crash(Exception):
    """An error that is no refusal."""


# Fitting through the public API --------------------------------------------------------------------------


def fit(case: Case) -> Fit:
    """Make the fit of a case."""
    options = {name: value for name, value in case.options.items() if name not in ("lam", "alpha")}
    data: tuple = (case.X, case.y)
    weight = {} if case.sample_weight is None else {"sample_weight": case.sample_weight}
    if case.parts:
        data, weight = (_statistics(case), None), {}
    if case.way.startswith("solve"):
        return _solved(case, data, weight | options)
    if case.way.startswith("group_owl_path"):
        return _point_of_path(case, data, weight | options)
    make = go.GroupOWLRegressor if case.parts else getattr(go, case.way)
    arguments = (case.options["alpha"],) if "alpha" in case.options else ()
    model = make(*arguments, **options).fit(*data, **weight)
    return _fitted(case, model, data, weight)


def _statistics(case: Case) -> go.SufficientStatistics:
    from_arrays = go.SufficientStatistics.from_arrays
    if case.removed is None or case.pick < 0.5:
        sets = [from_arrays(*part) for part in case.parts]
        if case.removed is not None:
            sets.append(from_arrays(*case.removed))
        total = reduce(operator.add, sets)
        return total if case.removed is None else total - sets[-1]
    return from_arrays(*_stacked([*case.parts, case.removed])) - from_arrays(*case.removed)


def _stacked(parts: list) -> tuple:
    """Samples of all parts in one block."""
    Xs, ys, weights = zip(*parts, strict=True)
    X = sp.vstack(Xs).tocsr() if sp.issparse(Xs[0]) else np.vstack(Xs)
    weight = None if weights[0] is None else np.concatenate(weights)
    return X, np.concatenate(ys), weight


def _fitted(case: Case, model: Any, data: tuple, weight: dict[str, Any]) -> Fit:
    states = np.asarray(model.certificate().states)
    if case.is_classification:
        B, intercept = _all_classes(model.coef_, model.intercept_)
    else:
        B, intercept = np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)
    claim = Claim(
        B,
        intercept,
        float(model.dual_gap_),
        zero=tuple(np.flatnonzero(states == "proved zero").tolist()),
        left_out=tuple(np.flatnonzero(np.isin(states.astype(str), LEFT_OUT)).tolist()),
    )
    question = _question(case, Long(model.alpha_) * model.weights_.astype(Long), getattr(model, "classes_", None))
    if not model.solve_result_.converged:
        return Fit(question, claim, converged=False)
    verification = model.verify(*data, **weight)
    complaints = tuple(finding.text for finding in verification.findings if not finding.holds)
    return Fit(question, claim, True, bool(verification), complaints)


def _all_classes(coef: Any, intercept: Any) -> tuple[Any, Any]:
    """Columns for all classes: the public numbers of two classes are their difference."""
    coef, intercept = np.atleast_2d(coef).astype(Long), np.atleast_1d(intercept).astype(Long)
    if len(coef) == 1:
        coef, intercept = np.vstack([-coef, coef]) / 2, np.concatenate([-intercept, intercept]) / 2
    return coef.T, intercept


def _point_of_path(case: Case, data: tuple, options: dict[str, Any]) -> Fit:
    path = go.group_owl_path(*data, **options)
    point = path[int(case.pick * len(path))]
    claim = Claim(point.coef(path.n_features), point.intercept, float(point.gap))
    question = _question(case, Long(point.alpha) * path.weights.astype(Long), path.classes)
    return Fit(question, _without_columns_left_out(question, claim), point.status == "converged")


def _solved(case: Case, data: tuple, options: dict[str, Any]) -> Fit:
    X, Y = data
    if case.is_classification:
        Y = _one_hot(case.y, np.unique(case.y))
    lam = case.options["lam"]
    result = go.solve(X, Y, lam, **options)
    claim = Claim(
        result.B,
        result.intercept,
        float(result.gap),
        zero=tuple(np.flatnonzero(result.screened_at >= 0).tolist()),
        left_out=tuple(np.flatnonzero(result.screened_at < -1).tolist()),
    )
    question = _question(case, lam.astype(Long), np.unique(case.y))
    return Fit(question, claim, result.converged)


def _without_columns_left_out(question: Question, claim: Claim) -> Claim:
    """A point of a path does not say which columns are left out: those that may be, and are zero."""
    if not (question.fit_intercept or question.standardize or question.unpenalized):
        return claim
    left_out = np.flatnonzero(may_be_left_out(question) & ~np.any(claim.B, axis=1))
    return replace(claim, left_out=tuple(left_out.tolist()))


def _question(case: Case, lam: Any, classes: Any) -> Question:
    X = case.X.toarray() if sp.issparse(case.X) else np.asarray(case.X)
    options = case.options
    Y = _one_hot(case.y, classes) if case.is_classification else np.asarray(case.y).reshape(len(X), -1)
    weight = np.ones(len(X)) if case.sample_weight is None else np.asarray(case.sample_weight)
    if "class_weight" in options:
        weight = weight * [options["class_weight"][label] for label in np.asarray(case.y).tolist()]
    return Question(
        X.astype(np.float64),
        Y.astype(np.float64),
        weight,
        lam,
        "multinomial" if case.is_classification else "squared",
        options.get("fit_intercept", not case.way.startswith("solve")),
        options.get("standardize", False),
        tuple(options.get("unpenalized", ())),
        mean=not case.way.startswith("solve"),
    )


def _one_hot(y: Any, classes: Any) -> Any:
    return (np.asarray(y)[:, None] == np.asarray(classes)).astype(np.float64)


# Examining ----------------------------------------------------------------------------------------------


def examine(case: Case, name: Any) -> Counts:
    """Fit and judge one case; ``name`` is its seed, or what it is called."""
    counts = Counts(fits=1)
    found: list[tuple[str, str]] = []
    judged = False
    nonzero = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = _guarded(case)
        except Refusal as refusal:
            counts.refused = 1
            counts.refusals[re.sub(r"[-+]?\d[\d.e+-]*", "#", str(refusal))[:90]] = 1
        except Crash as crash:
            found.append(("crash", str(crash)))
        else:
            judged = True
            verdict = judge(made.question, made.claim)
            found += _findings(made, verdict, case.traits)
            counts.undecided = int("undecided" in (verdict.gap, verdict.zeros))
            counts.zeros_proved = len(made.claim.zero)
            counts.verified = int(made.verified is not None)
            nonzero = verdict.nonzero
            found += _wrong_warnings(made.question, caught)
    found += [("warning", text) for text in sorted({*map(_undocumented, caught)} - {""})]
    counts.judged, counts.nonzero = int(judged), int(nonzero)
    for trait in case.traits:
        numbers = {
            "fits": 1,
            "judged": judged,
            "refused": counts.refused,
            "nonzero": nonzero,
            "findings": len(found) > 0,
        }
        counts.traits[trait] = {key: int(value) for key, value in numbers.items()}
    for kind, text in found:
        counts.findings.append({"case": name, "kind": kind, "way": case.way, "text": text, "traits": list(case.traits)})
    return counts


def _guarded(case: Case) -> Fit:
    """The fit; errors are told apart into refusals and crashes."""
    try:
        return fit(case)
    except Exception as error:  # whatever a fit raises is what the campaign wants to know
        frame = traceback.extract_tb(error.__traceback__)[-1]
        is_check = any(part in frame.filename for part in _CHECKS)
        is_raised = (frame.line or "").startswith("raise")  # arrays of wrong shapes are ValueErrors of NumPy's
        if type(error) is ValueError and is_check and is_raised:
            raise Refusal(str(error)) from error
        raise Crash(
            f"{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}: {str(error)[:120]}"
        ) from error


def _findings(made: Fit, verdict: Verdict, traits: tuple[str, ...]) -> list[tuple[str, str]]:
    """What is wrong. At extreme scales, where a refusal is as good, verify may find nothing proved."""
    said = {None: "", True: "; verify says True", False: "; verify says False"}[made.verified]
    said = ("; converged" if made.converged else "; not converged") + said
    found = []
    if verdict.note == "not a number":
        found.append(("nan", f"gap {short(verdict.claimed)}" + said))
    elif verdict.gap == "refuted":
        text = f"excess {short(verdict.excess)} above claimed {short(verdict.claimed)}"
        attainable = f"objective {short(verdict.objective)}, attainable {short(verdict.best)}"
        found.append(("gap", f"{text}, {attainable}{said}"))
    if verdict.zeros == "refuted":
        found.append(("zero", verdict.note + said))
    if made.verified is False and not {"extreme scale of X", "extreme scale of y"} & set(traits):
        text = f"gap {verdict.gap}, claimed {short(verdict.claimed)}, true excess {short(verdict.excess)}"
        complaint = "; ".join(made.complaints)[:120]
        found.append(("verify", f"{complaint} ({text}, objective {short(verdict.objective)})"))
    return found


def _wrong_warnings(question: Question, caught: list) -> list[tuple[str, str]]:
    """The warning that there is no finite optimum, or one that rounding hides, must be true.

    Rounding may hide one where weights differ a lot, or columns without an intercept are far from zero.
    """
    said = any("no finite optimum" in str(warning.message) for warning in caught)
    present = question.w[question.w > 0.0]
    is_plain = question.fit_intercept and present.max() < 1e8 * present.min()
    if said and is_plain and is_separated(question) is False:
        return [("warning", "there is a finite optimum, but a warning says that there is none")]
    return []


def _undocumented(warning: Any) -> str:
    """The text of a warning that no page announces; scikit-learn's hint at many classes is true and its own."""
    is_known = issubclass(warning.category, ConvergenceWarning) or "number of unique classes" in str(warning.message)
    return "" if is_known else f"{warning.category.__name__}: {str(warning.message)[:100]}"


def examine_range(start: int, stop: int) -> Counts:
    """Examine the fits of a range of seeds."""
    twin_support.compare_all()
    counts = Counts()
    for seed in range(start, stop):
        counts.add(examine(draw(seed), seed))
    return counts


# The long form ------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=20_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--chunk", type=int, default=100, help="fits between two saved states")
    parser.add_argument("--out", type=Path, default=Path("results/edges.json"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    saved = json.loads(options.out.read_text()) if options.out.exists() else {"version": go.__version__, "chunks": {}}
    if saved["version"] != go.__version__:
        parser.error(f"{options.out} is of another version; remove it or choose another --out.")
    done = saved["chunks"]
    print(f"{options.fits} fits from seed {options.first_seed}; {len(done)} chunks are done already.")
    stop = options.first_seed + options.fits
    chunks = {f"{a}-{min(a + options.chunk, stop)}": a for a in range(options.first_seed, stop, options.chunk)}
    todo = {name: start for name, start in chunks.items() if name not in done}
    began = time.perf_counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = {
            name: pool.submit(examine_range, start, min(start + options.chunk, stop)) for name, start in todo.items()
        }
        for number, (name, future) in enumerate(futures.items(), start=1):
            done[name] = asdict(future.result())
            total = _total(done, chunks)
            _save(options.out, done, total)
            left = (time.perf_counter() - began) / number * (len(todo) - number)
            print(f"seeds {name} done, {len(total.findings)} findings so far, {left / 60:.1f} min left", flush=True)
            for finding in done[name]["findings"]:
                print("  ", finding["case"], finding["kind"], finding["way"], finding["text"], flush=True)
    total = _total(done, chunks)
    _save(options.out, done, total)
    print(report(total))
    is_blind = total.refused > MOST_REFUSED * total.fits or total.undecided > MOST_UNDECIDED * total.fits
    return 1 if total.findings or is_blind else 0


def _total(done: dict[str, Any], chunks: dict[str, int]) -> Counts:
    total = Counts()
    for name in chunks:
        if name in done:
            total.add(Counts(**done[name]))
    return total


def _save(path: Path, done: dict[str, Any], total: Counts) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({"version": go.__version__, "total": asdict(total), "chunks": done}))
    temporary.replace(path)


def report(total: Counts) -> str:
    """The counts as text."""
    lines = [
        f"{total.fits} fits: {total.judged} judged, {total.refused} refused, {total.undecided} undecided, "
        f"{total.nonzero} with a nonzero solution, {total.zeros_proved} zeros proved, {total.verified} verified",
        f"findings: {total.kinds() or 'none'}",
        f"{'edge':34s} {'fits':>6s} {'judged':>7s} {'refused':>8s} {'nonzero':>8s} {'findings':>9s}",
    ]
    for trait, counts in sorted(total.traits.items()):
        numbers = [counts.get(name, 0) for name in ("fits", "judged", "refused", "nonzero", "findings")]
        lines.append(f"{trait:34s} {numbers[0]:6d} {numbers[1]:7d} {numbers[2]:8d} {numbers[3]:8d} {numbers[4]:9d}")
    lines += [f"refused {count:5d}: {message}" for message, count in sorted(total.refusals.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
