"""A fit at one alpha."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._typing import FloatArray
from ..model import Model, warn_unless_bounded
from ..solvers import warn_unless_converged
from .base import GroupOWLBase
from .fit_data import FitData


class SingleFit(GroupOWLBase):
    """``fit`` of the estimators that take one alpha."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or design of shape (n_samples, n_features), or SufficientStatistics
            Data. float32 stays float32, sparse data stay sparse. A matrix on disk (see
            :class:`groupowl.MemmapDesign`), or a Dask array or data frame. Statistics, for regression, stand for ``y``
            and ``sample_weight`` too.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, or one label per sample for classification.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; 2 is the same as the sample twice, 0 as no sample. Weight sequences that depend on the
            number of samples ("gaussian", functions) count rows.

        Returns
        -------
        self
            The fitted estimator. A fit that fails or is interrupted leaves an earlier one as it was.

        Warns
        -----
        ConvergenceWarning
            When the duality gap stays above ``tol`` times the loss of the null model, or coefficients of unpenalised
            columns have no finite optimum because these tell classes apart.
        """
        settings = self._settings()
        data = self._validate_fit(X, y, sample_weight)
        model = self._build_model(data)
        warn_unless_bounded(model)
        alpha = model.resolve_alpha(self.alpha)
        result = self._solve(model, alpha, settings, self._start(data, model))
        warn_unless_converged(result, settings.tol * model.null_loss, settings.tol, settings.max_iter)
        return self._store(data, model, result, alpha)

    def _start(self, data: FitData, model: Model) -> FloatArray | None:
        """Coefficients of the last fit, if the user wants them and they belong to data like these."""
        last = getattr(self, "solve_result_", None)
        if not self.warm_start or last is None or last.B.shape != (data.n_features, data.n_targets):
            return None
        if data.classes is not None and not np.array_equal(data.classes, self.classes_):
            return None
        return model.start(last.B.T, last.intercept)
