"""What load accepts works: saved models, damaged in every way, are refused with a reason, or as good as new."""

import copy
import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl import storage
from groupowl.storage import load, save

SAVED = Path(__file__).parent / "data" / "saved_1"
MODELS = ["regressor", "one_target", "classifier", "search", "class_search", "path"]
X = np.round(np.random.default_rng(7).standard_normal((30, 5)), 2)


def use(obj):
    """All that reads what was loaded, without the data of the fit."""
    repr(obj)
    if isinstance(obj, go.PathResult):
        _ = obj.coefs, obj.intercepts, obj.clusters, obj.n_selected, obj.deviance_ratio, obj.statuses
        obj.coef_at(float(obj.alphas[0]))
        obj.to_frame()
        return
    if isinstance(obj, go.SolveResult):
        _ = obj.support, obj.converged, obj.history[-1]
        return
    if not hasattr(obj, "coef_"):
        return  # not fitted, which predict says
    data = X
    if hasattr(obj, "feature_names_in_"):
        import pandas as pd

        data = pd.DataFrame(X, columns=obj.feature_names_in_)
    predicted = obj.predict(data)
    assert len(predicted) == len(X)
    if hasattr(obj, "predict_proba"):
        assert np.isfinite(obj.predict_proba(data)).all()
    else:
        assert np.isfinite(predicted).all()
    obj.summary()
    obj.coef_frame(sort=True)
    obj.certificate()
    obj.score(data, predicted)
    _ = obj.sparse_coef_, obj.selected_features_
    if hasattr(obj, "path_"):
        use(obj.path_)


@pytest.fixture(scope="module")
def contents():
    """Trees and arrays of all models: those of format 1 that are kept here, and some made now."""
    found = {name: storage.read_folder(SAVED / name) for name in MODELS}
    Y = X[:, :2] + 1.0
    made = {
        "sparse": go.GroupOWLRegressor(0.1).fit(sp.csr_array(X), Y),
        "statistics": go.GroupOWLRegressor(0.1).fit(go.SufficientStatistics.from_arrays(X, Y)),
        "solve": go.solve(X, Y, go.weights.oscar(5)),
        "not fitted": go.GroupOWLClassifierCV(alphas=3),
    }
    for name, obj in made.items():
        arrays = {}
        found[name] = json.loads(json.dumps(storage.encode(obj, arrays, name))), arrays
    return found


KINDS = [*MODELS, "sparse", "statistics", "solve", "not fitted"]


def places_of(node, place=()):
    """Where something stands in a tree."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, item in items:
        yield (*place, key)
        yield from places_of(item, (*place, key))


def changed_tree(tree, place, change):
    """A copy of a tree that differs in one place."""
    tree = json.loads(json.dumps(tree))  # faster than a deep copy
    *parents, last = place
    node = tree
    for key in parents:
        node = node[key]
    change(node, last)
    return tree


def drop(node, key):
    del node[key]


def put(value):
    def change(node, key):
        node[key] = value

    return change


TREE_CHANGES = {
    "dropped": drop,
    "null": put(None),
    "text": put("something else"),
    "number": put(-7),
    "large": put(10**30),
    "list": put([1, 2]),
    "mapping": put({}),
}
ARRAY_CHANGES = {
    "cut": lambda array: array[:-1],
    "longer": lambda array: np.concatenate([array, array[-1:]]),
    "another axis": lambda array: array[None],
    "empty": lambda array: array[:0],
    "complex": lambda array: array.astype(complex),
    "text": lambda array: array.astype(str),
    "missing": lambda array: np.full(array.shape, np.nan),
    "infinite": lambda array: np.full(array.shape, np.inf),
    "negative": lambda array: np.full(array.shape, -5),
    "large": lambda array: np.full(array.shape, 10**6),
    "records": lambda array: np.zeros(array.shape, dtype=[("a", float)]),
}


def outcome(monkeypatch, content, arrays):
    """Whether a folder with this content is refused; anything but a clear refusal or a model that works is an error."""
    monkeypatch.setattr(storage, "read_folder", lambda folder: (content, arrays))
    try:
        obj = load("here")
    except ValueError as error:
        text = str(error)
    else:
        use(obj)
        return False
    assert text.startswith("'here' is damaged: ")
    assert text.endswith(". Save the model again.")
    return True


@pytest.mark.parametrize("name", KINDS)
def test_models_that_are_whole_work(contents, name, monkeypatch):
    assert not outcome(monkeypatch, *contents[name])


@pytest.mark.filterwarnings("ignore")  # of models that are other than they were
@pytest.mark.parametrize("how", TREE_CHANGES)
@pytest.mark.parametrize("name", KINDS)
def test_what_is_wrong_in_the_tree_is_refused_or_no_matter(contents, name, how, monkeypatch):
    content, arrays = contents[name]
    refused = [
        outcome(monkeypatch, changed_tree(content, place, TREE_CHANGES[how]), arrays) for place in places_of(content)
    ]
    assert any(refused)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ARRAY_CHANGES)
@pytest.mark.parametrize("name", sorted(set(KINDS) - {"not fitted"}))
def test_what_is_wrong_in_the_arrays_is_refused_or_no_matter(contents, name, how, monkeypatch):
    content, arrays = contents[name]
    refused = []
    for key, array in arrays.items():
        if array.ndim or how not in ("cut", "longer", "empty"):
            try:
                changed = ARRAY_CHANGES[how](array)
            except ValueError:  # text is no number
                continue
            refused.append(outcome(monkeypatch, content, arrays | {key: changed}))
    assert any(refused)


# By name --------------------------------------------------------------------------------------------------


def array_of(content, *place):
    for key in place:
        content = content[key]
    return content["name"]


def test_coefficients_are_there_and_finite(contents, monkeypatch):
    content, arrays = contents["regressor"]
    name = array_of(content, "fitted", "coef_")
    spoiled = arrays[name].copy()
    spoiled[0, 1] = np.nan
    monkeypatch.setattr(storage, "read_folder", lambda folder: (content, arrays | {name: spoiled}))
    with pytest.raises(ValueError, match=r"'here' is damaged: GroupOWLRegressor\.coef_ must hold finite numbers"):
        load("here")
    other = changed_tree(content, ("fitted", "coef_"), put(None))
    monkeypatch.setattr(storage, "read_folder", lambda folder: (other, {k: a for k, a in arrays.items() if k != name}))
    with pytest.raises(ValueError, match=r"GroupOWLRegressor\.coef_ is missing\. Save the model again"):
        load("here")


def test_parts_that_belong_to_other_models(contents, monkeypatch):
    """Each part is whole, but not of this fit."""
    content, arrays = contents["regressor"]
    name = array_of(content, "fitted", "clusters_")
    monkeypatch.setattr(storage, "read_folder", lambda folder: (content, arrays | {name: np.zeros(7, dtype=int)}))
    with pytest.raises(ValueError, match=r"clusters_ of shape \(7,\) has 7 features, other parts have 5"):
        load("here")


def test_arrays_that_nobody_names(contents, monkeypatch):
    content, arrays = contents["path"]
    monkeypatch.setattr(storage, "read_folder", lambda folder: (content, arrays | {"more": np.ones(2)}))
    with pytest.raises(ValueError, match="it has the array 'more', which nothing in it names"):
        load("here")


def test_a_fit_leaves_no_methods_behind(contents, monkeypatch):
    content, arrays = contents["one_target"]
    for name in ("predict", "sparse_coef_", "__class__"):
        other = copy.deepcopy(content)
        other["fitted"][name] = 1
        monkeypatch.setattr(storage, "read_folder", lambda folder, other=other: (other, arrays))
        with pytest.raises(ValueError, match=rf"GroupOWLRegressor\.{name} is nothing that a fit leaves behind"):
            load("here")


def test_deep_trees(tmp_path):
    folder = save(go.solve(X, X[:, :1], go.weights.oscar(5)), tmp_path / "model")
    text = (folder / "model.json").read_text()
    before, _, after = text.partition('"content":')
    deep = "[" * 100_000 + "]" * 100_000
    (folder / "model.json").write_text(f'{before}"content": {deep}, "old":{after}')
    with pytest.raises(ValueError, match=r"is damaged: model\.json cannot be read \(RecursionError: .*depth"):
        load(folder)


@pytest.mark.parametrize("number", [0, -1, 1.0, True, "1", None, [1]])
def test_format_numbers_that_do_not_exist(number, tmp_path):
    folder = save(go.GroupOWLRegressor(), tmp_path / "model")
    envelope = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(envelope | {"format_version": number}))
    with pytest.raises(
        ValueError, match=r"is damaged: model\.json says that it has the format .*, which does not exist"
    ):
        load(folder)


@pytest.mark.parametrize("name", ["model.json", "arrays.npz"])
@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink(path, path)], ids=["pipe", "dir", "loop"]
)
def test_what_is_no_file_is_not_read(make, name, tmp_path):
    folder = save(go.GroupOWLRegressor(), tmp_path / "model")
    (folder / name).unlink()
    make(folder / name)
    with pytest.raises(ValueError, match=rf"is damaged: {name} cannot be read \(.*it is no file\)"):
        load(folder)


@pytest.mark.parametrize("text", [b"\xff\xfe{}", b'{"kind": NaN}', b"9" * 10_000], ids=["coding", "NaN", "digits"])
def test_text_that_is_no_json(text, tmp_path):
    folder = save(go.GroupOWLRegressor(), tmp_path / "model")
    (folder / "model.json").write_bytes(text)
    with pytest.raises(ValueError, match=r"is damaged: model\.json cannot be read \("):
        load(folder)


# Format 1 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_models_of_format_1_are_read(name):
    """Saved when format 1 was new: all later versions read them."""
    expected = json.loads((SAVED / "coefficients.json").read_text())[name]
    obj = load(SAVED / name)
    np.testing.assert_array_equal(obj.coefs if name == "path" else obj.coef_, expected)
    use(obj)
