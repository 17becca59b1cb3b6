"""How alpha and the weight sequence are chosen: folds, scores, rules, information criteria."""

from __future__ import annotations

from .candidates import Candidate, Fitting, TrainingRows, TrainingStatistics, relaxed_candidates
from .criteria import CRITERIA, EBIC_GAMMA, Evidence, Likelihood, criterion_path
from .fold_statistics import FoldStatistics, fold_statistics, statistics_pay, with_statistics
from .folds import Fold, are_complements, check_folds
from .loss_scores import LossScore, Score, StatisticsScore, mean_squared_error
from .rules import FOLD_RULES, choose, mean_scores, standard_errors
from .search import FoldResult, FoldTask, run_fold

__all__ = [
    "CRITERIA",
    "EBIC_GAMMA",
    "FOLD_RULES",
    "Candidate",
    "Evidence",
    "Fitting",
    "Fold",
    "FoldResult",
    "FoldStatistics",
    "FoldTask",
    "Likelihood",
    "LossScore",
    "Score",
    "StatisticsScore",
    "TrainingRows",
    "TrainingStatistics",
    "are_complements",
    "check_folds",
    "choose",
    "criterion_path",
    "fold_statistics",
    "mean_scores",
    "mean_squared_error",
    "relaxed_candidates",
    "run_fold",
    "standard_errors",
    "statistics_pay",
    "with_statistics",
]
