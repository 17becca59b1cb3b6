"""The former name of :mod:`groupowl.model_selection`, with the former names of what is there."""

import warnings
from typing import NamedTuple

from .model_selection.folds import *  # noqa: F403
from .model_selection.search import *  # noqa: F403
from .model_selection.search import TrainingSet, relaxed_solutions
from .path import Solution as Candidate  # noqa: F401

TrainingRows = TrainingStatistics = TrainingSet
relaxed_candidates = relaxed_solutions


class Evidence(NamedTuple):
    """What a criterion knows of a fit."""

    loss: float
    degrees_of_freedom: float
    n_selected: int


warnings.warn(
    "groupowl.selection is now groupowl.model_selection, and will be removed. Import from there.",
    DeprecationWarning,
    stacklevel=2,
)
