"""What is saved comes back equal; what cannot be saved says why; folders are whole or not there."""

import io
import json
import os
import sys
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection
from sklearn.base import BaseEstimator, clone

import groupowl as go
from groupowl import storage
from groupowl.estimators import GroupOWLClassifier, GroupOWLRegressor, GroupOWLRegressorCV
from groupowl.path import group_owl_path
from groupowl.storage import load, save
from groupowl.storage.codec import ESTIMATORS, SPLITTERS, decode, encode
from support import make_case

CASE = make_case(80, n=40, d=20, fit_intercept=True)
CLASSES = make_case(81, n=60, d=20, loss="multinomial", fit_intercept=True)
NAMES = [f"gene {j}" for j in range(20)]
LABELS = np.array(["low", "mid", "high"])[np.argmax(CLASSES.Y, axis=1)]


MADE_WHEN_READ = ("clusters_", "screened_fraction_")
# A loaded model does not know what was changed before it was saved, nor the sizes of the columns of its data.
LEFT = {*MADE_WHEN_READ, "_parameters_of_fit", "_ratio_of_columns"}


def assert_same(one, other, place="object"):
    """Equal in type and value, all the way down."""
    assert type(one) is type(other), place
    if isinstance(one, BaseEstimator):
        for name in MADE_WHEN_READ:
            assert_same(getattr(one, name, None), getattr(other, name, None), f"{place}.{name}")
        assert_same(
            *({name: value for name, value in vars(part).items() if name not in LEFT} for part in (one, other)), place
        )
    elif is_dataclass(one):
        for item in fields(one):
            if not item.name.startswith("_"):
                assert_same(getattr(one, item.name), getattr(other, item.name), f"{place}.{item.name}")
    elif isinstance(one, dict):
        assert list(one) == list(other), place
        for key in one:
            assert_same(one[key], other[key], f"{place}[{key!r}]")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), place
        for i, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{place}[{i}]")
    elif isinstance(one, np.ndarray | np.generic):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), place
        np.testing.assert_array_equal(one, other, err_msg=place)
    elif isinstance(one, float) and one != one:
        assert other != other, place
    elif type(one).__module__.startswith("sklearn."):
        assert repr(one) == repr(other), place
    else:
        assert one == other, place


def searched(**settings):
    return GroupOWLRegressorCV(alphas=4, eps=0.1, **settings).fit(CASE.X, CASE.Y)


def regressor(**settings):
    return GroupOWLRegressor(**settings).fit(pd.DataFrame(CASE.X, columns=NAMES), CASE.Y)


OBJECTS = {
    "path": lambda: group_owl_path(pd.DataFrame(CASE.X, columns=NAMES), CASE.Y, alphas=6),
    "path of classes": lambda: group_owl_path(CLASSES.X, LABELS, loss="multinomial", alphas=6),
    "path in single precision": lambda: group_owl_path(CASE.X.astype(np.float32), CASE.Y[:, 0], alphas=3, tol=1e-4),
    "path of nothing": lambda: group_owl_path(CASE.X, CASE.Y, alphas=1),
    "solve": lambda: go.solve(**CASE.arguments()),
    "history": lambda: go.solve(**CASE.arguments()).history,
    "regressor": regressor,
    "one target": lambda: GroupOWLRegressor(0.1).fit(CASE.X, CASE.Y[:, 0]),
    "single precision": lambda: GroupOWLRegressor(tol=1e-4).fit(CASE.X.astype(np.float32), CASE.Y[:, 0]),
    "weights as an array": lambda: regressor(weights=go.weights.bh(20), alpha=0.05),
    "solver as an object": lambda: regressor(solver=go.APGD(check_every=5)),
    "relaxed": lambda: regressor(relaxed=True),
    "not fitted": lambda: GroupOWLRegressor(0.3),
    "classifier": lambda: GroupOWLClassifier(class_weight={"low": 2.0, "mid": 1.0, "high": 1.0}).fit(CLASSES.X, LABELS),
    "two classes": lambda: GroupOWLClassifier().fit(CLASSES.X, LABELS == "low"),
    "integer labels": lambda: GroupOWLClassifier(class_weight={0: 1.0, 7: 2.0}).fit(CLASSES.X, 7 * (LABELS == "low")),
    "several weights": lambda: searched(weights=["bh", np.ones(20)], cv=2),
    "splitter": lambda: searched(cv=model_selection.RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)),
    "list of splits": lambda: searched(cv=[(np.arange(20), np.arange(20, 40)), (np.arange(20, 40), np.arange(20))]),
    "criterion": lambda: searched(selection="bic"),
    "labels of a column": lambda: GroupOWLClassifier().fit(CLASSES.X, pd.Series(LABELS, dtype=object)),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_what_is_saved_comes_back(name, tmp_path):
    obj = OBJECTS[name]()
    folder = save(obj, tmp_path / "model")
    assert folder == tmp_path / "model"
    again = load(folder)
    assert_same(obj, again)
    if not isinstance(obj, BaseEstimator):
        assert repr(obj) == repr(again)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert sorted(path.name for path in folder.iterdir()) == ["arrays.npz", "model.json"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_comes_back_and_works(name, tmp_path):
    """A new estimator joins by being public."""
    kind = ESTIMATORS[name]
    y = LABELS if "Classifier" in name else CLASSES.Y
    if "Cox" in name:
        y = np.column_stack([np.arange(len(CLASSES.X)) % 3 > 0, 1.0 + np.arange(len(CLASSES.X)) % 17])
    X = pd.DataFrame(CLASSES.X, columns=NAMES)
    settings = {"alphas": 5, "cv": 3} if "CV" in name else {}
    estimator = kind(**settings).fit(X, y)
    again = load(save(estimator, tmp_path / "model"))
    assert_same(estimator, again)
    np.testing.assert_array_equal(estimator.predict(X), again.predict(X))
    assert estimator.score(X, y) == again.score(X, y)
    assert bool(again.verify(X, y))
    assert repr(clone(again)) == repr(clone(estimator))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(X.rename(columns={"gene 3": "gene X"}))
    again.fit(X, y)


def test_the_dual_point_of_a_solve_needs_the_data(tmp_path):
    again = load(save(go.solve(**CASE.arguments()), tmp_path / "solve"))
    with pytest.raises(AttributeError, match="theta is not stored"):
        _ = again.theta


# Values -------------------------------------------------------------------------------------------------

VALUES = [
    None, True, 3, 2**70, 0.1, float("nan"), float("-inf"), "text", "", "§ü\0", [], [1, [2, None]], (1, "a"), {},
    {"a": {"b": (1,)}}, {1: "a", "b": 2.5, None: 3, (1, 2): 4}, {"$": "array"},
    np.float32(0.1), np.int8(3), np.str_("a"), np.bool_(True), np.array(2.5), np.full(2, np.nan),
    np.arange(6).reshape(2, 3), np.asfortranarray(np.eye(3)[:, :2]), np.zeros((0, 3), dtype=np.float32),
    np.array(["a", "bcd"]), np.array(["2020-01-01"], dtype="datetime64[D]"),
    np.array(["a", "b\0"], dtype=object), np.array([[1, None], ["a", 2.5]], dtype=object),
    np.array([(1, 2), None], dtype=object),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back(value, tmp_path):
    arrays = {}
    storage.write_folder(tmp_path / "value", encode(value, arrays, "a value"), arrays)
    content, arrays = storage.read_folder(tmp_path / "value")
    assert_same(value, decode(content, arrays))
    assert arrays == {}


@pytest.mark.parametrize("name", SPLITTERS)
def test_splitters_come_back(name):
    arguments = {"LeavePOut": (2,), "LeavePGroupsOut": (2,), "PredefinedSplit": ([0, 1, 1, 0, 2, 2],)}.get(name, ())
    splitter = getattr(model_selection, name)(*arguments)
    if hasattr(splitter, "random_state"):
        splitter.random_state = 3
    if hasattr(splitter, "shuffle"):
        splitter.shuffle = True
    if hasattr(splitter, "n_repeats"):
        splitter.n_repeats = 2
        splitter.cvargs["n_splits"] = 3
    arrays = {}
    tree = json.dumps(encode(splitter, arrays, "a splitter"))
    again = decode(json.loads(tree), arrays)
    assert type(again) is type(splitter)
    assert set(vars(again)) == set(vars(splitter))
    X, y, groups = np.zeros((12, 1)), np.repeat([0, 1], 6), np.arange(12) % 6
    if name == "PredefinedSplit":
        X, y, groups = X[:6], y[:6], groups[:6]
    data = (X, y, groups) if "Group" in name else (X, y)
    for one, other in zip(splitter.split(*data), again.split(*data), strict=True):
        np.testing.assert_array_equal(one[1], other[1])


class Special(GroupOWLRegressor):
    """A user's own."""


REFUSED = {
    "function": (lambda: GroupOWLRegressor(weights=go.weights.bh), r"weights is the function bh\. .*weights_"),
    "lambda": (lambda: GroupOWLRegressor(weights=lambda d, **_: np.ones(d)), r"weights is the function <lambda>"),
    "in a list": (lambda: GroupOWLRegressor(weights=["bh", go.weights.bh]), r"weights\[1\] is the function bh"),
    "generator": (
        lambda: GroupOWLRegressor(random_state=np.random.default_rng(0)),
        r"random_state is the Generator\. Use an integer",
    ),
    "old generator": (
        lambda: GroupOWLRegressor(random_state=np.random.RandomState(0)),
        r"random_state is the RandomState",
    ),
    "solver": (
        lambda: GroupOWLRegressor(solver=object()),
        r"solver is the object\. Use a name, or a solver of groupowl",
    ),
    "unknown": (lambda: GroupOWLRegressor(verbose={1, 2}), r"verbose is the set\. Only plain values"),
    "records": (
        lambda: GroupOWLRegressor(weights=np.zeros(2, dtype=[("a", float)])),
        r"weights is the ndarray",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_saved_is_refused_by_name_with_a_remedy(name, tmp_path):
    make, message = REFUSED[name]
    with pytest.raises(TypeError, match=r"GroupOWLRegressor(CV)? cannot be saved: " + message):
        save(make(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("obj", [{"coef": 1}, np.ones(3), GroupOWLRegressor, Special(), None], ids=str)
def test_only_our_own_objects_are_saved(obj, tmp_path):
    with pytest.raises(TypeError, match=r"save writes .*GroupOWLRegressor.*PathResult, SolveResult, History, got "):
        save(obj, tmp_path / "model")


# Folders ------------------------------------------------------------------------------------------------


def history():
    return go.solve(**CASE.arguments()).history


def test_parents_are_made_and_text_is_accepted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(history(), "a/b/model")
    assert len(load(str(tmp_path / "a" / "b" / "model"))) > 0


def test_a_saved_model_is_replaced(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()  # an empty folder is fine
    save(regressor(alpha=0.1), folder)
    save(history(), folder)
    assert isinstance(load(folder), go.History)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_other_folders_and_files_are_never_replaced(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(
        FileExistsError, match=r"holds other files than those of a saved model, for example 'thesis.txt'"
    ):
        save(history(), folder)
    with pytest.raises(FileExistsError, match="is a file; save writes a folder"):
        save(history(), folder / "thesis.txt")
    save(history(), tmp_path / "model")
    (tmp_path / "model" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match=r"'thesis\.txt'"):
        save(history(), tmp_path / "model")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "model.json").write_text("{}")
    with pytest.raises(FileExistsError, match="holds other files"):
        save(history(), foreign)
    assert (folder / "thesis.txt").read_text() == (tmp_path / "model" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("fails", ["np.savez_compressed", "json.dumps"])
def test_a_failure_leaves_the_earlier_model(fails, tmp_path, monkeypatch):
    folder = save(regressor(alpha=0.1), tmp_path / "model")

    def broken(*args, **settings):
        raise OSError("the disk is full")

    monkeypatch.setattr(f"groupowl.storage.{fails}", broken)
    with pytest.raises(OSError, match="the disk is full"):
        save(history(), folder)
    assert isinstance(load(folder), GroupOWLRegressor)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def change_envelope(folder, **changes):
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_newer_format_is_refused(tmp_path):
    folder = save(history(), tmp_path / "model")
    change_envelope(folder, format_version=storage.FORMAT_VERSION + 1, groupowl_version="9.0")
    with pytest.raises(
        ValueError, match=r"written by groupowl 9\.0 in format 3; this version reads formats up to 2\. Update"
    ):
        load(folder)


def test_what_is_not_ours_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="is no folder that groupowl's save has written"):
        load(tmp_path)
    (tmp_path / "model.json").write_text("[1, 2]")
    with pytest.raises(ValueError, match=r"is no folder that groupowl's save has written: its model\.json is not ours"):
        load(tmp_path)
    with pytest.raises(ValueError, match=r"is a file, but load reads model\.json and arrays\.npz together\. Give it"):
        load(tmp_path / "model.json")
    with pytest.raises(TypeError, match="folder must be a str or a Path, got None of type NoneType"):
        load(None)


def test_a_tree_that_is_cut_off_is_damaged(tmp_path):
    folder = save(history(), tmp_path / "model")
    text = (folder / "model.json").read_text()
    (folder / "model.json").write_text(text[: len(text) // 2])
    with pytest.raises(ValueError, match=r"is damaged: model\.json cannot be read \(.*\)\. Save again"):
        load(folder)


DAMAGED = [
    {"$": "record", "class": "Popen", "fields": {}},
    {"$": "record", "class": "History", "fields": {}},
    {"$": "estimator", "class": "Pipeline", "params": {}, "fitted": {}},
    {"$": "array", "name": "array_99"},
    {"$": "call"},
    {"$": "objects", "shape": [3], "items": [1, 2]},
    {"$": "dict", "pairs": [[1, 2, 3]]},
    {"$": "record", "class": "History", "fields": []},
]


@pytest.mark.parametrize("content", DAMAGED, ids=str)
def test_unknown_classes_and_damaged_trees_are_refused(content, tmp_path):
    folder = save(history(), tmp_path / "model")
    change_envelope(folder, content=content)
    with pytest.raises(ValueError, match="is damaged"):
        load(folder)


def other_bits(content):
    """The data of the first array with all bits turned, as a bad disk might."""
    start = content.index(b"array_0.npy") + 20
    return content[:start] + bytes(255 - byte for byte in content[start : start + 60]) + content[start + 60 :]


def plain_array(_):
    stream = io.BytesIO()
    np.save(stream, np.ones(3))
    return stream.getvalue()


SPOILED = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "cut off early": lambda content: content[:100],
    "cut off late": lambda content: content[:-5],
    "other bits": other_bits,
    "no archive": lambda content: b"something else",
    "one array": plain_array,
}


@pytest.mark.parametrize("name", SPOILED)
def test_damaged_arrays_are_refused(name, tmp_path):
    folder = save(history(), tmp_path / "model")
    file = folder / "arrays.npz"
    file.write_bytes(SPOILED[name](file.read_bytes()))
    with pytest.raises(ValueError, match=r"is damaged: arrays\.npz cannot be read \(\w+: .*\)\. Save again"):
        load(folder)


def test_missing_arrays_are_refused(tmp_path):
    folder = save(history(), tmp_path / "model")
    (folder / "arrays.npz").unlink()
    with pytest.raises(ValueError, match=r"is damaged: arrays\.npz cannot be read"):
        load(folder)


def test_any_damage_to_the_arrays_is_an_error_of_ours_or_none(tmp_path):
    """Bytes changed at random: what loads is what was saved, and what does not says why."""
    saved = history()
    folder = save(saved, tmp_path / "model")
    file, rng = folder / "arrays.npz", np.random.default_rng(0)
    content, refused = file.read_bytes(), 0
    for place in rng.integers(len(content), size=200):
        changed = bytearray(content)
        changed[place] ^= int(rng.integers(1, 256))
        file.write_bytes(bytes(changed))
        try:
            assert_same(load(folder), saved)
        except ValueError as error:
            assert "is damaged" in str(error)  # noqa: PT017
            refused += 1
    assert refused > 100


class Marker:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_loading_runs_no_code_from_the_folder(tmp_path):
    folder = save(history(), tmp_path / "model")
    trap = np.empty(1, dtype=object)
    trap[0] = Marker(tmp_path / "sprung")
    names = np.load(folder / "arrays.npz").files
    np.savez(folder / "arrays.npz", **dict.fromkeys(names, trap))
    with pytest.raises(ValueError, match="is damaged"):
        load(folder)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such modes there")
def test_folders_have_the_modes_that_the_user_asks_for(tmp_path):
    (tmp_path / "plain").mkdir()
    folder = save(history(), tmp_path / "model")
    assert folder.stat().st_mode == (tmp_path / "plain").stat().st_mode
