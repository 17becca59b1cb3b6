"""Long work that is interrupted goes on from its folder: certified as ever, and for the same work only."""

from __future__ import annotations

import os
import shutil
from functools import partial, partialmethod

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

import groupowl as go
from groupowl._resume import ResumeFolder, described, fingerprint
from groupowl.model_selection import search
from groupowl.path.kept_points import KeptPoints
from groupowl.solvers.continuation import Continuation

DATA = go.datasets.make_correlated_groups(60, 40, 2, n_informative=5, random_state=0)
LABELS = (DATA.Y[:, 0] > 0).astype(int) + (DATA.Y[:, 1] > 0)
PATH = partial(go.group_owl_path, alphas=12, eps=0.05)


def interrupt_after(monkeypatch, owner, count):
    """Ctrl-C right after so many parts were kept, once."""
    original, written = owner.write, []

    def write(self, number, *part):
        original(self, number, *part)
        written.append(number)
        if len(written) == count:
            raise KeyboardInterrupt

    monkeypatch.setattr(owner, "write", write)


def files_in(folder, kind):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(kind))


# Paths ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"callback": lambda progress: False},
        {"standardize": True, "unpenalized": [3]},
        {"loss": "huber"},
        {"positive": True, "ridge": 0.1},
    ],
    ids=["kernel", "watched", "unpenalized", "huber", "signs"],
)
def test_a_path_goes_on_and_is_certified(tmp_path, monkeypatch, options):
    whole = PATH(DATA.X, DATA.Y, **options)
    folder = tmp_path / "kept"
    interrupt_after(monkeypatch, KeptPoints, 5)
    with pytest.raises(KeyboardInterrupt):
        PATH(DATA.X, DATA.Y, resume=folder, **options)
    assert files_in(folder, "") == [f"alpha_0000{i}.npz" for i in range(5)] + ["resume.json"]
    kept = {name: (folder / name).stat().st_mtime_ns for name in files_in(folder, "alpha")}
    path = PATH(DATA.X, DATA.Y, resume=folder, **options)
    assert {name: (folder / name).stat().st_mtime_ns for name in kept} == kept
    assert len(files_in(folder, "alpha")) == len(whole) == len(path)
    assert set(path.statuses) == {"converged"}
    objective = np.array([point.primal for point in path]), np.array([point.primal for point in whole])
    assert np.all(np.abs(objective[0] - objective[1]) <= np.maximum(path.dual_gaps, whole.dual_gaps))


def test_solutions_that_are_there_are_not_solved_again(tmp_path, monkeypatch):
    first = PATH(DATA.X, DATA.Y, resume=tmp_path)

    solved = []
    for name in ("_solve", "_propose"):
        original = getattr(Continuation, name)
        noted = partialmethod(
            lambda self, *work, call, **how: solved.append(work) or call(self, *work, **how), call=original
        )
        monkeypatch.setattr(Continuation, name, noted)
    again = PATH(DATA.X, DATA.Y, resume=tmp_path)
    assert len(solved) <= 1  # that nothing is best at the first alpha is known from the data alone
    np.testing.assert_array_equal(again.coefs, first.coefs)
    np.testing.assert_array_equal(again.n_iters, first.n_iters)


def test_what_is_stored_is_never_believed(tmp_path):
    """Coefficients that somebody has changed, with the right mark, are only a start."""
    first = PATH(DATA.X, DATA.Y, resume=tmp_path)
    stored = dict(np.load(tmp_path / "alpha_00006.npz"))
    np.savez(tmp_path / "alpha_00006.npz", **(stored | {"values": stored["values"] + 0.5}))
    again = PATH(DATA.X, DATA.Y, resume=tmp_path)
    assert set(again.statuses) == {"converged"}
    assert np.all(again.dual_gaps <= 1e-6 * again.null_loss)
    np.testing.assert_allclose(again.coefs, first.coefs, atol=2e-3)


@pytest.mark.parametrize("damage", [b"", b"PK", None])
def test_damaged_files_are_missing_files(tmp_path, damage):
    first = PATH(DATA.X, DATA.Y, resume=tmp_path)
    file = tmp_path / "alpha_00004.npz"
    file.write_bytes(file.read_bytes()[:-30] if damage is None else damage)
    again = PATH(DATA.X, DATA.Y, resume=tmp_path)
    assert set(again.statuses) == {"converged"}
    np.testing.assert_allclose(again.coefs, first.coefs, atol=2e-3)
    assert np.load(file)["values"].shape[1] == 2


def test_solutions_that_fell_short_are_not_kept(tmp_path):
    with pytest.warns(ConvergenceWarning):
        PATH(DATA.X, DATA.Y, resume=tmp_path, max_iter=1, solver="apgd")
    short = len(files_in(tmp_path, "alpha"))
    assert short < 12
    path = PATH(DATA.X, DATA.Y, resume=tmp_path, solver="apgd")  # more steps may be allowed for the same work
    assert set(path.statuses) == {"converged"}
    assert len(files_in(tmp_path, "alpha")) == 12


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ({"tol": 1e-5}, "tol"),
        ({"weights": "linear"}, "the weights"),
        ({"ridge": 0.1}, "the penalty"),
        ({"loss": "huber"}, "the loss"),
        ({"fit_intercept": False}, "the intercept"),
        ({"alphas": 11}, "alphas"),
        ({"sample_weight": np.arange(60) + 1.0}, "the data"),
        ({"solver": "apgd"}, "the solver"),
        ({"screening": "none"}, "screening"),
    ],
)
def test_another_path_is_refused(tmp_path, other, name):
    PATH(DATA.X, DATA.Y, resume=tmp_path)
    with pytest.raises(ValueError, match=rf"resume: .* has solutions of another run, which differs in .*{name}"):
        PATH(DATA.X, DATA.Y, resume=tmp_path, **other)


def test_other_data_and_another_version_are_refused(tmp_path, monkeypatch):
    PATH(DATA.X, DATA.Y, resume=tmp_path)
    X = DATA.X.copy()
    X[3, 4] += 1e-12
    with pytest.raises(ValueError, match="differs in the data"):
        PATH(X, DATA.Y, resume=tmp_path)
    monkeypatch.setattr("groupowl.path.kept_points.installed_version", lambda name: "999")
    with pytest.raises(ValueError, match=r"differs in the version of groupowl\. Give another folder"):
        PATH(DATA.X, DATA.Y, resume=tmp_path)


def test_data_on_disk_are_known_by_their_first_pass(tmp_path):
    np.save(tmp_path / "X.npy", DATA.X)
    first = PATH(go.MemmapDesign(tmp_path / "X.npy", max_memory="20MB"), DATA.Y, resume=tmp_path / "kept")
    again = PATH(go.MemmapDesign(tmp_path / "X.npy", max_memory="50MB"), DATA.Y, resume=tmp_path / "kept")
    np.testing.assert_allclose(again.coefs, first.coefs, atol=1e-12)
    X = DATA.X.copy()
    X[3, 4] += 1e-3
    np.save(tmp_path / "Z.npy", X)
    with pytest.raises(ValueError, match="differs in the data, the norms of the columns"):
        PATH(go.MemmapDesign(tmp_path / "Z.npy"), DATA.Y, resume=tmp_path / "kept")


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [(3, TypeError, "resume must be a str or a Path"), ("", ValueError, "resume is empty")],
)
def test_what_is_no_folder(given, error, match):
    with pytest.raises(error, match=match):
        PATH(DATA.X, DATA.Y, resume=given)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"resume: .*file is a file. Give the name of a folder"):
        PATH(DATA.X, DATA.Y, resume=tmp_path / "file")


def test_a_folder_of_something_else_is_refused(tmp_path):
    PATH(DATA.X, DATA.Y, resume=tmp_path / "empty")
    (tmp_path / "table.csv").write_text("")
    with pytest.raises(
        ValueError, match=r"resume: .* has other files \('empty', 'table.csv'\), .* name of a new folder"
    ):
        PATH(DATA.X, DATA.Y, resume=tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["empty", "table.csv"]
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / ".resume.json.half").write_text("")  # as a power cut may leave it
    PATH(DATA.X, DATA.Y, resume=tmp_path / "cut")


def test_facts_that_cannot_be_read(tmp_path):
    (tmp_path / "resume.json").write_text("{")
    with pytest.raises(ValueError, match=r"resume.json cannot be read"):
        ResumeFolder(tmp_path, {})


# Cross-validation ------------------------------------------------------------------------------------------


CV = partial(go.GroupOWLRegressorCV, alphas=10, eps=0.05, cv=4)


@pytest.mark.parametrize("options", [{}, {"n_jobs": 2}, {"weights": ["oscar", "lasso"]}, {"solver": "apgd"}])
def test_folds_go_on(tmp_path, monkeypatch, options):
    whole, folder = CV(**options).fit(DATA.X, DATA.Y), tmp_path / "kept"
    interrupt_after(monkeypatch, search.KeptFolds, 2)
    with pytest.raises(KeyboardInterrupt):
        CV(resume=folder, **options).fit(DATA.X, DATA.Y)
    assert len(files_in(folder, "fold")) == 2
    fitted = []
    original = search.run_fold
    monkeypatch.setattr(search, "run_fold", lambda *work: fitted.append(work) or original(*work))
    model = CV(resume=folder, **options).fit(DATA.X, DATA.Y)
    n_folds = 4 * len(np.atleast_1d(options.get("weights", "oscar")))
    assert len(files_in(folder, "fold")) == n_folds
    assert len(fitted) == n_folds - 2 or options.get("n_jobs") == 2  # those of other processes are not seen here
    np.testing.assert_array_equal(model.selection_frequency_, whole.selection_frequency_)
    np.testing.assert_allclose(model.score_path_, whole.score_path_, rtol=1e-3)
    assert model.alpha_ == whole.alpha_
    assert model.verify(DATA.X, DATA.Y)


@pytest.mark.parametrize("kind", [go.GroupOWLRegressorCV, go.GroupOWLClassifierCV])
def test_predictions_of_folds_go_on(tmp_path, monkeypatch, kind):
    """Solutions are in the files of folds where they are asked for; files without them are of no use there."""
    y = LABELS if kind is go.GroupOWLClassifierCV else DATA.Y
    fitted, original = [], search.run_fold
    monkeypatch.setattr(search, "run_fold", lambda *work: fitted.append(work) or original(*work))

    def held_out(keeps, resume=None):
        fitted.clear()
        model = kind(alphas=6, eps=0.05, cv=4, resume=resume)
        model._keeps_details = keeps
        return getattr(model.fit(DATA.X, y), "_held_out", None), len(fitted)

    whole, _ = held_out(True)
    assert held_out(False, tmp_path) == (None, 4)
    assert held_out(False, tmp_path) == (None, 0)
    for n_fitted in (4, 0):
        found, n_folds = held_out(True, tmp_path)
        assert n_folds == n_fitted
        for (fold, Z), (expected_fold, expected) in zip(found, whole, strict=True):
            np.testing.assert_array_equal(fold.test, expected_fold.test)
            np.testing.assert_array_equal(Z, expected)
    assert held_out(False, tmp_path) == (None, 0)


def test_a_criterion_goes_on(tmp_path, monkeypatch):
    make = partial(CV, selection="bic", resume=tmp_path)
    interrupt_after(monkeypatch, KeptPoints, 3)
    with pytest.raises(KeyboardInterrupt):
        make().fit(DATA.X, DATA.Y)
    model = make().fit(DATA.X, DATA.Y)
    assert model.alpha_ == CV(selection="bic").fit(DATA.X, DATA.Y).alpha_
    make(selection="ebic").fit(DATA.X, DATA.Y)  # whose solutions are the same
    with pytest.raises(ValueError, match="differs in relaxed, scoring, the folds"):
        make(selection="min").fit(DATA.X, DATA.Y)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ({"cv": 3}, "the folds"),
        ({"cv": KFold(4, shuffle=True, random_state=1)}, "the folds"),
        ({"relaxed": True}, "relaxed"),
        ({"scoring": "r2"}, "scoring"),
        ({"tol": 1e-5}, "tol"),
        ({"ridge": [0.0, 0.1]}, "ridge"),
    ],
)
def test_another_search_is_refused(tmp_path, other, name):
    CV(resume=tmp_path).fit(DATA.X, DATA.Y)
    with pytest.raises(ValueError, match=rf"resume: .*differs in .*{name}"):
        CV(resume=tmp_path).set_params(**other).fit(DATA.X, DATA.Y)


def test_classes_go_on(tmp_path):
    make = partial(go.GroupOWLClassifierCV, alphas=5, eps=0.1, cv=3, resume=tmp_path)
    first = make().fit(DATA.X, LABELS)
    np.testing.assert_allclose(make().fit(DATA.X, LABELS).coef_, first.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="differs in"):
        make(class_weight="balanced").fit(DATA.X, LABELS)


def test_a_model_is_saved_without_its_folder(tmp_path):
    model = CV(resume=tmp_path / "kept", callback=lambda progress: None).fit(DATA.X, DATA.Y)
    again = go.load(go.save(model, tmp_path / "model"))
    assert (again.resume, again.callback) == (None, None)
    np.testing.assert_array_equal(again.coef_, model.coef_)


# Single fits -------------------------------------------------------------------------------------------------


def stopping(after):
    """A callback that interrupts at a certificate, and the gaps that it has seen."""
    gaps = []

    def callback(progress):
        gaps.append(progress.gap)
        if len(gaps) == after:
            raise KeyboardInterrupt

    return callback, gaps


@pytest.mark.parametrize("kind", ["warm_start", "resume"])
def test_an_interrupted_fit_goes_on_from_its_iterate(tmp_path, kind):
    callback, gaps = stopping(after=6)
    how = {"warm_start": True} if kind == "warm_start" else {"resume": tmp_path / "kept"}
    model = go.GroupOWLRegressor(0.05, solver="apgd", callback=callback, **how)
    with pytest.raises(KeyboardInterrupt):
        model.fit(DATA.X, DATA.Y)
    assert not hasattr(model, "coef_")
    seen = []
    model.set_params(callback=lambda progress: seen.append(progress.gap)).fit(DATA.X, DATA.Y)
    assert seen[0] <= 1.001 * min(gaps) < gaps[0]
    assert model.verify(DATA.X, DATA.Y)
    assert not hasattr(model, "_iterate")


def test_without_a_warm_start_nothing_is_kept():
    callback, gaps = stopping(after=6)
    model = go.GroupOWLRegressor(0.05, solver="apgd", callback=callback)
    with pytest.raises(KeyboardInterrupt):
        model.fit(DATA.X, DATA.Y)
    seen = []
    model.set_params(callback=lambda progress: seen.append(progress.gap)).fit(DATA.X, DATA.Y)
    assert seen[0] == gaps[0]


def test_an_iterate_of_other_classes_or_sizes_is_not_used():
    model = go.GroupOWLClassifier(0.05, warm_start=True, callback=stopping(after=2)[0])
    with pytest.raises(KeyboardInterrupt):
        model.fit(DATA.X, LABELS)
    fresh = go.GroupOWLClassifier(0.05).fit(DATA.X[:, :20], LABELS + 1)
    model.set_params(callback=None).fit(DATA.X[:, :20], LABELS + 1)
    np.testing.assert_allclose(model.coef_, fresh.coef_, atol=1e-3)


def test_another_fit_is_refused(tmp_path):
    go.GroupOWLRegressor(0.1, resume=tmp_path).fit(DATA.X, DATA.Y)
    go.GroupOWLRegressor(0.1, resume=tmp_path).fit(DATA.X, DATA.Y)
    with pytest.raises(ValueError, match="differs in alphas"):
        go.GroupOWLRegressor(0.2, resume=tmp_path).fit(DATA.X, DATA.Y)


def test_a_long_fit_is_kept_now_and_then(tmp_path, monkeypatch):
    """A process that is killed says nothing before."""
    monkeypatch.setattr("groupowl.path.follower._KEEP_EVERY", 0.0)
    seen = []
    model = go.GroupOWLRegressor(
        0.05, resume=tmp_path, callback=lambda progress: seen.append(files_in(tmp_path, "fit"))
    )
    model.fit(DATA.X, DATA.Y)
    assert seen[-1] == ["fit.npz"]


# Callbacks ---------------------------------------------------------------------------------------------------


def test_callbacks_of_estimators():
    seen = []
    model = go.GroupOWLRegressor(0.05, solver="apgd", callback=lambda p: seen.append(p) or len(seen) == 3)
    model.fit(DATA.X, DATA.Y)
    assert (len(seen), model.solve_result_.status) == (3, "callback")
    assert seen[0].coefficients()[0].shape == (40, 2)
    with pytest.raises(TypeError, match="callback must be callable, got 3"):
        go.GroupOWLRegressor(callback=3).fit(DATA.X, DATA.Y)


def test_callbacks_of_searches_see_where_they_are():
    seen = []
    model = CV(callback=lambda p: seen.append(p.alpha_index)).fit(DATA.X, DATA.Y)
    of_path = seen[: len(seen) - seen[::-1].index(9)]
    assert of_path == sorted(of_path)
    assert set(of_path) == set(range(10))
    assert set(seen[len(of_path) :]) == {model.best_index_}
    short = CV(callback=lambda p: p.alpha_index == 4).fit(DATA.X, DATA.Y)
    assert len(short.alphas_) == 4  # what was stopped half-way is not to be chosen
    assert short.score_path_.shape == (4, 4)


# What work depends on ------------------------------------------------------------------------------------------


def test_numbers_agree_up_to_rounding(tmp_path):
    ResumeFolder(tmp_path, {"x": [1.0, 1e-3]})
    ResumeFolder(tmp_path, {"x": [1.0 + 1e-9, 1e-3]})
    for other in ([1.0 + 1e-5, 1e-3], [1.0], "1"):
        with pytest.raises(ValueError, match="differs in x"):
            ResumeFolder(tmp_path, {"x": other})


def test_parts_of_other_work_are_not_read(tmp_path):
    folder, other = ResumeFolder(tmp_path / "1", {"x": "1"}), ResumeFolder(tmp_path / "2", {"x": "2"})
    folder.write("part", a=[1, 2])
    assert folder.read("part")["a"].tolist() == [1, 2]
    assert [name for name in os.listdir(tmp_path / "1") if name.startswith(".")] == []
    shutil.copy(tmp_path / "1" / "part.npz", tmp_path / "2")
    assert other.read("part") is None


def test_descriptions_are_those_of_values():
    assert described(np.arange(3)) == fingerprint(np.arange(3)) != described(np.arange(4))
    assert described(go.weights.oscar) == "groupowl.weights.oscar"
    assert described([1, "a", {"b": None}]) == "[1, 'a', {'b': None}]"
    assert described(go.APGD()) == described(go.APGD()) != described(go.APGD(check_every=5))
