"""The certificate in words."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from ..estimators import FitCertificate
from ..estimators.fit_summary import AS_CONSTANT, AS_EXPLAINED, NOT_PROVED, PROVED_ZERO, SELECTED
from .markup import count, figure, listed, number, paragraph, section, table
from .subject import Subject

_MOST_GAPS = 8
_MOST_NAMES = 12
_MOST_ALPHAS = 5

_WHY_LEFT_OUT = {
    AS_CONSTANT: "These columns vary by no more than the rounding of their numbers; if that is real, take the offset "
    "off.",
    AS_EXPLAINED: "The unpenalized columns explain all of these columns but rounding.",
}


def proof(subject: Subject) -> str:
    """What is proved of the fit, of features that are zero, and of the path."""
    certificate = subject.certificate
    parts = [] if certificate is None else [_of_objective(subject, certificate), *_of_features(subject, certificate)]
    return section("What is proved", "proof", *parts, _of_path(subject))


def _of_objective(subject: Subject, certificate: FitCertificate) -> str:
    gap, objective = certificate.gap, certificate.objective
    goal = f"the tolerance of {figure(float(subject.estimator.tol), 3)} times the null model's loss"
    return paragraph(
        f"The fit has the objective {figure(objective, 8)}. No coefficients whatsoever have one that is smaller by "
        f"more than the duality gap, {_gap_in_words(gap, objective)}. This is proved from the data, whichever way the "
        f"fit was found. "
        + (
            f"The gap meets {goal}."
            if certificate.converged
            else f"The gap does not meet {goal}: raise the number of steps, or the tolerance."
        )
    )


def _gap_in_words(gap: float, objective: float) -> str:
    if gap == 0.0:
        return "which is 0: the fit is the best there is"
    relative = f", or {figure(gap / objective, 2)} of the objective" if objective > 0.0 else ""
    return f"which is {figure(gap, 3)}{relative}"


def _of_features(subject: Subject, certificate: FitCertificate) -> list[str]:
    """A paragraph for each state that features are in."""
    counts = certificate.counts
    parts = []
    if counts[PROVED_ZERO]:
        parts += _proved_zero(counts[PROVED_ZERO], certificate.gaps[np.isfinite(certificate.gaps)])
    if counts[NOT_PROVED]:
        parts.append(_not_proved(subject, certificate))
    parts += [_left_out(subject, certificate, state) for state in _WHY_LEFT_OUT if counts.get(state)]
    if counts[SELECTED]:
        parts.append(
            paragraph(
                f"<strong>{count(counts[SELECTED], 'feature')} selected.</strong> Not zero in this fit, which is "
                "within the gap of the best one. That a feature is selected here says little about other data; the "
                "scores and the folds do."
            )
        )
    return parts


def _proved_zero(n_proved: int, gaps: FloatArray) -> list[str]:
    reached = np.unique(gaps)[::-1]
    words = f"<strong>{count(n_proved, 'feature')} proved zero.</strong> No best fit at this alpha has them. "
    if len(reached) == 1:
        return [paragraph(f"{words}The proof was found at a gap of {figure(float(reached[0]), 3)}.")]
    return [paragraph(f"{words}The proofs came as the gap fell:"), _proofs_by_gap(gaps, reached)]


def _proofs_by_gap(gaps: FloatArray, reached: FloatArray) -> str:
    """How many features were proved zero by the time the gap had fallen so far, in a few rows."""
    shown = reached[np.unique(np.linspace(0, len(reached) - 1, _MOST_GAPS).round().astype(int))]
    rows = [(number(float(gap), 3), f"{int(np.count_nonzero(gaps >= gap)):,}") for gap in shown]
    return f'<div class="box">{table(("Duality gap", "Proved zero so far"), rows, "plain")}</div>'


def _not_proved(subject: Subject, certificate: FitCertificate) -> str:
    which = np.flatnonzero(certificate.states == NOT_PROVED)
    names = [subject.names[j] for j in which.tolist()]
    is_off = subject.estimator.screening == "none"
    remedy = "Screening, which finds proofs, was switched off." if is_off else "A smaller tolerance may prove more."
    return paragraph(
        f"<strong>{count(len(which), 'feature')} zero but not proved.</strong> Zero in this fit, which is within the "
        "gap of the best one; but the proof leaves room for a best fit with a small coefficient there. "
        f"{remedy} Not proved: {listed(names, _MOST_NAMES)}."
    )


def _left_out(subject: Subject, certificate: FitCertificate, state: str) -> str:
    which = np.flatnonzero(certificate.states == state)
    names = [subject.names[j] for j in which.tolist()]
    return paragraph(
        f"<strong>{count(len(which), 'feature')} {state}.</strong> {_WHY_LEFT_OUT[state]} The model was fitted, and "
        f"everything else proved, without {listed(names, _MOST_NAMES)}."
    )


def _of_path(subject: Subject) -> str:
    """The certificates of all alphas, in one sentence."""
    path = subject.contents.path
    if path is None:
        return ""
    short = path.alphas[path.statuses != "converged"]
    words = f"Along the path of {count(len(path), 'alpha')} the largest gap is {figure(float(path.dual_gaps.max()), 3)}"
    if not len(short):
        return paragraph(f"{words}; every fit meets its tolerance.")
    alphas = ", ".join(figure(float(alpha)) for alpha in short[:_MOST_ALPHAS])
    rest = f" and {len(short) - _MOST_ALPHAS} more" if len(short) > _MOST_ALPHAS else ""
    return paragraph(f"{words}; {len(short)} of the fits fall short of their tolerance, at alpha {alphas}{rest}.")
