"""Estimators in the manner of scikit-learn."""

from __future__ import annotations

from .certificate import FeatureStatus, FitCertificate
from .classifier import GroupOWLClassifier
from .cv import GroupOWLClassifierCV, GroupOWLRegressorCV
from .regressor import GroupOWLRegressor
from .verification import Verification

__all__ = [
    "FeatureStatus",
    "FitCertificate",
    "GroupOWLClassifier",
    "GroupOWLClassifierCV",
    "GroupOWLRegressor",
    "GroupOWLRegressorCV",
    "Verification",
]
