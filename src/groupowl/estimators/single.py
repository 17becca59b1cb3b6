"""A fit at one alpha."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from .._typing import FloatArray
from ..model import Model, warn_unless_bounded
from ..path import PathResult, path_through_fit
from ..solvers import Callback, Sequence, warn_unless_converged
from .base import GroupOWLBase
from .data import FitData


class SingleFit(GroupOWLBase):
    """``fit`` of the estimators that take one alpha."""

    # Whether the fit keeps what a path goes on from, the data among it, until the path is made.
    _keeps_solves = False
    _solves: tuple[Model, Sequence]

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
        sequence = model.sequence(settings.solver, tol=settings.tol, start=self._start(data, model))
        result = self._solve(model, alpha, settings, sequence=sequence)
        warn_unless_converged(result, settings.tol * model.null_loss, settings.tol, settings.max_iter)
        if self._keeps_solves:
            self._solves = model, sequence
        return self._store(data, model, result, alpha)

    def _path_through_fit(self, alphas_of: Callable[[float], FloatArray], callback: Callback) -> PathResult:
        """The path at other alphas, with the fit as one of its points; the fit must have kept its solves.

        ``alphas_of`` makes falling alphas from the smallest one that selects nothing. The solves are let go.
        """
        model, sequence = self._solves
        del self._solves, self._keeps_solves
        settings = self._settings()
        fit = path_through_fit(
            model,
            sequence,
            self.alpha_,
            self.solve_result_,
            alphas_of(model.alpha_max),
            rule=settings.rule,
            max_iter=settings.max_iter,
            rng=settings.rng,
            dtype=model.dtype,
            callback=callback,
        )
        return PathResult.from_fit(
            fit,
            model,
            feature_names=getattr(self, "feature_names_in_", None),
            classes=getattr(self, "classes_", None),
            target_names=getattr(self, "target_names_", None),
        )

    def _start(self, data: FitData, model: Model) -> FloatArray | None:
        """Coefficients of the last fit, if the user wants them and they belong to data like these."""
        last = getattr(self, "solve_result_", None)
        if not self.warm_start or last is None or last.B.shape != (data.n_features, data.n_targets):
            return None
        if data.classes is not None and not np.array_equal(data.classes, self.classes_):
            return None
        return model.start(last.B.T, last.intercept)
