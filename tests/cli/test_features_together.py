"""Missing targets, groups, offsets, ridge, signs and factors on the command line, alone and together."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest

import groupowl as go

NAMES = [f"x{j}" for j in range(6)]
#: Options of the command line, and the same of the estimator.
FEATURES = {
    "missing": ((), {}),
    "groups": (("--feature-groups", "g=x0,x1", "--feature-groups", "h=x2,x3"), {"feature_groups": [0, 0, 1, 1, 2, 3]}),
    "offset": (("--offset", "o"), {}),
    "ridge": (("--ridge", 0.1), {"ridge": 0.1}),
    "positive": (("--positive", "*"), {"positive": True}),
    "factors": (("--penalty-factor", "x4=0", "--penalty-factor", "x5=2"), {"penalty_factor": [1, 1, 1, 1, 0, 2]}),
}
FEATURES["all"] = (
    tuple(option for options, _ in FEATURES.values() for option in options),
    {name: value for _, params in FEATURES.values() for name, value in params.items()},
)


@pytest.mark.parametrize("feature", FEATURES)
def test_fits_verify_predict_and_report(feature, run, tmp_path):
    options, params = FEATURES[feature]
    rng = np.random.default_rng(0)
    X, offset = rng.standard_normal((60, 6)), rng.standard_normal(60)
    Y = X[:, :2] @ rng.standard_normal((2, 2)) + rng.standard_normal((60, 2))
    Y[(rng.random((60, 2)) < 0.2) & (feature in ("missing", "all"))] = np.nan
    frame = pd.DataFrame(X, columns=NAMES).assign(a=Y[:, 0], b=Y[:, 1])
    has_offset = feature in ("offset", "all")
    frame = frame.assign(o=offset) if has_offset else frame
    frame.to_csv(tmp_path / "data.csv", index=False)
    out = tmp_path / "out"
    ran = run("fit", tmp_path / "data.csv", "--targets", "a,b", "--alpha", 0.1, *options, "--out", out)
    assert ran.code == 0, ran.err
    model = go.load(out / "model")
    again = go.GroupOWLRegressor(0.1, **params).fit(
        frame[NAMES], frame[["a", "b"]], offset=offset if has_offset else None
    )
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-9, atol=1e-12)
    assert run("verify", out, tmp_path / "data.csv").code == 0
    predicted = pd.read_csv(io.StringIO(run("predict", out, tmp_path / "data.csv").out))
    expected = again.predict(frame[NAMES], offset=offset if has_offset else None)
    np.testing.assert_allclose(predicted[["predicted_a", "predicted_b"]], expected, rtol=1e-6, atol=1e-9)
    assert (out / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("command", "loss"), [("cv", "squared"), ("fit", "huber"), ("cv", "poisson"), ("fit", "logistic")]
)
def test_missing_targets(command, loss, run, tmp_path):
    """Samples without any are left out with a note; scores are those of what was observed, beside a null model."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((70, 5))
    Z = X[:, :2] @ np.array([[1.0, -0.5], [0.5, 1.0]])
    Y = {"poisson": rng.poisson(np.exp(0.5 * Z)), "logistic": Z + rng.logistic(size=Z.shape) > 0.0}.get(loss, Z) * 1.0
    Y[rng.random(Y.shape) < 0.2] = np.nan
    Y[5] = np.nan
    frame = pd.DataFrame(np.hstack([X, Y]), columns=[*"abcde", "y1", "y2"])
    frame.to_csv(tmp_path / "data.csv", index=False)
    grid = () if command == "fit" else ("--alphas", 6, "--eps", 0.05)
    folds = ("--folds", 3) if command == "cv" else ()
    out = tmp_path / "out"
    ran = run(
        command, tmp_path / "data.csv", "--targets", "y1,y2", "--loss", loss, *grid, *folds, "--out", out, "--json"
    )
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    n_without = int(np.isnan(Y).all(axis=1).sum())
    assert found["n_samples"] == 70 - n_without
    assert any(f"{n_without} sample" in note and "no target" in note for note in found["notes"])
    for pair in found["scores"].values():
        assert np.isfinite([pair["model"], pair["null_model"]]).all()
    assert run("verify", out, tmp_path / "data.csv").code == 0
    if (command, loss) == ("cv", "squared"):
        (name,) = [name for name in found["scores"] if "squared error" in name]
        model = go.load(out / "model")
        assert found["scores"][name]["model"] == pytest.approx(-model.best_score_)
        assert found["scores"][name]["null_model"] == pytest.approx(np.nanvar(Y), rel=0.2)
