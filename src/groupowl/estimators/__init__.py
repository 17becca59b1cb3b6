"""Estimators with the interface of scikit-learn."""

from .classifier import GroupOWLClassifier
from .cv import GroupOWLClassifierCV, GroupOWLRegressorCV
from .fit_summary import FeatureStatus, FitCertificate, FitSummary
from .regressor import GroupOWLRegressor
from .survival import GroupOWLCox, GroupOWLCoxCV
from .verification import Verification

__all__ = [
    "FeatureStatus",
    "FitCertificate",
    "FitSummary",
    "GroupOWLClassifier",
    "GroupOWLClassifierCV",
    "GroupOWLCox",
    "GroupOWLCoxCV",
    "GroupOWLRegressor",
    "GroupOWLRegressorCV",
    "Verification",
]
