"""The short form of the campaign at the edges, and proofs that its judge can say no."""

from dataclasses import replace

import numpy as np
import pytest
from edge_cases import WAYS, draw, known_cases
from edges import Counts, examine, examine_range, fit
from judge import judge

CHUNKS, SIZE = 8, 30


@pytest.mark.parametrize("name", known_cases())
def test_known_false_proofs_are_gone(name):
    """A refusal would be right as well."""
    assert examine(known_cases()[name], name).findings == []


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_short_campaign(chunk):
    counts = examine_range(chunk * SIZE, (chunk + 1) * SIZE)
    assert counts.findings == []
    assert counts.fits == SIZE
    assert counts.refused <= 0.3 * SIZE
    assert counts.undecided <= 0.1 * SIZE
    assert counts.nonzero >= 0.4 * SIZE


def test_every_way_is_drawn():
    assert {draw(seed).way for seed in range(CHUNKS * SIZE)} == set(WAYS)


# The judge ----------------------------------------------------------------------------------------------


def _honest_fits():
    """Converged fits with nonzero rows and proved zeros, on data without edges."""
    for seed in range(400):
        case = draw(seed)
        plain = {case.way, "sample weights", "no intercept", "standardize", "unpenalized columns", "correlated columns"}
        if case.way in ("GroupOWLRegressor", "group_owl_path", "solve") and set(case.traits) <= plain:
            made = fit(case)
            if made.converged and made.claim.B.any() and judge(made.question, made.claim).gap == "confirmed":
                yield made


@pytest.mark.filterwarnings("ignore")
def test_judge_refutes_what_is_wrong():
    """Coefficients moved by little, a smaller gap than the true distance, a selected row that is called zero."""
    n_gaps = n_zeros = 0
    for made in _honest_fits():
        claim = made.claim
        moved = replace(claim, B=claim.B * (1 + 1e-5))
        verdict = judge(made.question, moved)
        assert verdict.excess > 0
        assert judge(made.question, replace(moved, gap=0.99 * verdict.excess)).gap == "refuted"
        assert judge(made.question, replace(moved, gap=1.01 * verdict.excess)).gap == "confirmed"
        n_gaps += 1
        penalized = np.delete(np.arange(len(claim.B)), made.question.unpenalized)
        row = int(penalized[np.argmax(np.linalg.norm(claim.B[penalized].astype(float), axis=1))])
        if not claim.B[row].any():
            continue
        without = replace(
            claim, B=np.where(np.arange(len(claim.B))[:, None] == row, 0, claim.B), gap=1e300, zero=(row,)
        )
        n_zeros += judge(made.question, without).zeros == "refuted"
    assert n_gaps >= 10
    assert n_zeros >= 8  # a row that others can stand for is rightly zero


def test_counts_add_up():
    total = Counts()
    total.add(Counts(fits=2, judged=1, traits={"a": {"fits": 2}}, refusals={"x": 1}))
    total.add(Counts(fits=1, judged=1, traits={"a": {"fits": 1}, "b": {"fits": 1}}))
    assert (total.fits, total.judged) == (3, 2)
    assert total.traits == {"a": {"fits": 3}, "b": {"fits": 1}}
