"""How alpha and the weight sequence are chosen: folds, scores, information criteria, and the search."""

from __future__ import annotations

from .folds import Fold, check_folds
from .search import CRITERIA, FOLD_RULES, Choice, Fitting, Search

__all__ = ["CRITERIA", "FOLD_RULES", "Choice", "Fitting", "Fold", "Search", "check_folds"]
