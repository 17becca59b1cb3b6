"""Data sets of the paper's experiments: every format, every kind of broken file, and the real folder where it is."""

from __future__ import annotations

import bz2
import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file

from groupowl.losses import LOSSES
from groupowl.solvers import SOLVERS
from groupowl_paper.data import DATASETS, find_datasets, load_dataset, prepare
from support import REAL_FOLDER, needs_real_folder

RNG = np.random.default_rng(0)
FEATURES = np.where(RNG.random((9, 5)) < 0.5, RNG.integers(1, 9, (9, 5)), 0) * [1, 1, 0, 1, 1]  # column 2 is zero
LABELS = (RNG.random((9, 4)) < 0.5).astype(int)
CLASSES = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])


def tiny(name, **changes):
    """An entry with the size of the arrays above, so that nothing differs from the table."""
    entry = DATASETS[name]
    n_tasks = 3 if entry.loss == "multinomial" else 4
    sizes = {"n_samples": 9, "n_features": 5, "n_tasks": n_tasks, "labels_in_file": None, "training_rows": None}
    return replace(entry, **{**sizes, **changes})


def array(X):
    return X.toarray() if sp.issparse(X) else X


def scaled(X=FEATURES):
    """Columns divided by their largest size, zeros left alone."""
    return X / np.maximum(np.abs(X).max(axis=0), 1e-300)


def centered(Y):
    return Y - Y.mean(axis=0)


def assert_holds(dataset, X, Y):
    np.testing.assert_allclose(array(dataset.X), X, rtol=1e-15)
    np.testing.assert_allclose(dataset.Y, Y, rtol=0, atol=1e-14)
    assert dataset.X.dtype == dataset.Y.dtype == np.float64


def write_npz(path, X=FEATURES, **targets):
    if sp.issparse(X):
        small = {"data": X.data.astype(np.uint8), "indices": X.indices.astype(np.uint16), "indptr": X.indptr}
        np.savez(path, **small, shape=X.shape, **targets)
    else:
        np.savez(path, X=X.astype(np.int8), **targets)
    return path


def arff_text(X, labels, *, sparse, labels_first=False, relation="tiny", nominal="{0,1}"):
    """An ARFF file with the quirks that real ones have: comments, quoted names, capitals, spaces."""
    features = ["@attribute 'a feature' numeric", "@ATTRIBUTE f2 REAL", *["@attribute\tf integer"] * (X.shape[1] - 2)]
    marks = [f"@attribute label{k} {nominal}" for k in range(labels.shape[1])]
    table = np.hstack([labels, X] if labels_first else [X, labels])
    rows = []
    for row in table:
        pairs = ", ".join(f"{j} {value:g}" for j, value in enumerate(row) if value)
        rows.append(f"{{{pairs}}}" if sparse else ",".join(f"{value:g}" for value in row))
    declared = [*marks, *features] if labels_first else [*features, *marks]
    return "\n".join(["% a comment", f"@relation '{relation}'", "", *declared, "", "@data", *rows, ""])


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def write_signals(path, levels, places):
    names = [f"WAP{j + 1:03d}" for j in range(levels.shape[1])]
    header = ",".join([*names, "LONGITUDE", "LATITUDE", "FLOOR"])
    rows = [[*level, place[1], place[0], 2] for level, place in zip(levels, places, strict=True)]
    return write(path, "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


# The table ----------------------------------------------------------------------------------------------


def test_the_table_has_the_papers_sets_and_settings():
    paper = {name: entry for name, entry in DATASETS.items() if entry.stands_in_for is None}
    settings = {
        name: (entry.n_samples, entry.n_features, entry.n_tasks, entry.loss, entry.solver, entry.tau)
        for name, entry in paper.items()
    }
    assert settings == {
        "PlantGO": (978, 3091, 12, "squared", "apgd", 3),
        "EukaryoteGO": (4658, 12689, 22, "squared", "apgd", 4),
        "IndoorLoc": (21048, 520, 2, "squared", "spgd", 3),
        "Bookmarks": (87860, 2150, 20, "squared", "spgd", 2),
        "DrivFace": (606, 6400, 3, "multinomial", "apgd", 3),
        "Reuters21578": (5801, 18933, 30, "multinomial", "apgd", 3),
        "Protein": (17766, 357, 3, "multinomial", "spgd", 2),
        "Mnist": (60000, 780, 10, "multinomial", "spgd", 2),
    }


@pytest.mark.parametrize("name", DATASETS)
def test_entries_are_complete(name):
    entry = DATASETS[name]
    assert entry.name == name
    assert entry.loss in LOSSES
    assert entry.solver in SOLVERS
    assert len(entry.source) > 10
    assert entry.files[0][0].endswith(".npz")
    assert entry.n_labels >= entry.n_tasks
    assert entry.preprocessing.endswith(("one-hot.", "centered."))


def test_stand_ins_have_the_settings_of_what_they_replace():
    stand_ins = {entry.name: entry.stands_in_for for entry in DATASETS.values() if entry.stands_in_for}
    assert stand_ins == {
        "CMUFaces": "DrivFace", "ProteinVal": "Protein", "Bibtex": "Bookmarks", "TMC2007-500": "Bookmarks",
    }  # fmt: skip
    for name, original in stand_ins.items():
        for setting in ("loss", "solver", "tau", "n_tasks"):
            assert getattr(DATASETS[name], setting) == getattr(DATASETS[original], setting)


def test_no_file_belongs_to_two_sets():
    """So a stand-in's file is never taken for the paper's set. A part of LIBSVM's Protein does both jobs."""
    owners = {}
    for entry in DATASETS.values():
        for group in entry.files:
            owners.setdefault(tuple(name.lower() for name in group), []).append(entry.name)
    assert [names for names in owners.values() if len(names) > 1] == []


def test_preprocessing_is_told_in_words():
    assert DATASETS["IndoorLoc"].preprocessing == (
        "Training and validation rows count. Signals are counted from -105 dBm; those not heard (100) are 0. "
        "All features are divided by the largest absolute value of the matrix. Targets are centered."
    )
    assert DATASETS["Bookmarks"].preprocessing == (
        "All rows count. Of 208 labels, the first 20 count. "
        "Each column is divided by its largest absolute value. Targets are centered."
    )
    assert "Of 65 classes, the first 30 count." in DATASETS["Reuters21578"].preprocessing


# Finding ------------------------------------------------------------------------------------------------


def names_in(folder):
    found, missing = find_datasets(folder)
    assert len(found) + len(missing) == len(DATASETS)
    return [entry.name for entry, _ in found], {entry.name: looked_for for entry, looked_for in missing}


def touch(folder, *names):
    for name in names:
        (folder / name).touch()


def test_an_empty_folder_misses_everything_and_says_what_it_looked_for(tmp_path):
    found, missing = names_in(tmp_path)
    assert found == []
    assert list(missing) == list(DATASETS)
    assert missing["IndoorLoc"] == ("indoorloc.npz", "trainingData.csv + validationData.csv")
    assert missing["DrivFace"] == ("drivface.npz", "DrivFace.mat")


def test_files_are_found_in_any_case_compressed_or_not(tmp_path):
    touch(tmp_path, "PLANTGO.NPZ", "bookmarks.ARFF.gz", "drivface.MAT", "Mnist.scale.BZ2", "notes.txt", "protein.tr")
    (tmp_path / "indoorloc.npz").mkdir()
    found = {entry.name: path for entry, path in find_datasets(str(tmp_path))[0]}
    assert {name: path.name for name, path in found.items()} == {
        "PlantGO": "PLANTGO.NPZ",
        "Bookmarks": "bookmarks.ARFF.gz",
        "DrivFace": "drivface.MAT",
        "Mnist": "Mnist.scale.BZ2",
    }


def test_archives_are_not_looked_for_compressed(tmp_path):
    touch(tmp_path, "plantgo.npz.gz", "drivface.mat.bz2")
    assert names_in(tmp_path)[0] == []


def test_files_that_belong_together_are_found_together(tmp_path):
    touch(tmp_path, "TrainingData.csv")
    assert names_in(tmp_path)[0] == []
    touch(tmp_path, "validationdata.csv.gz")
    found, _ = find_datasets(tmp_path)
    assert [(entry.name, path.name) for entry, path in found] == [("IndoorLoc", "TrainingData.csv")]


def test_the_first_name_of_the_table_is_preferred(tmp_path):
    touch(tmp_path, "PlantGO.arff", "plantgo.npz")
    assert find_datasets(tmp_path)[0][0].path.name == "plantgo.npz"


def test_stand_ins_are_found_under_their_own_names(tmp_path):
    touch(tmp_path, "cmufaces.npz", "protein_val.npz", "bibtex.npz", "tmc2007_500.npz")
    found, missing = names_in(tmp_path)
    assert found == ["CMUFaces", "ProteinVal", "Bibtex", "TMC2007-500"]
    assert {"DrivFace", "Protein", "Bookmarks"} <= set(missing)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"folder must be a directory .*'.*nowhere' does not exist\. Give the dir"):
        find_datasets(tmp_path / "nowhere")


def test_a_folder_that_is_a_file(tmp_path):
    with pytest.raises(ValueError, match=r"folder must be a directory .*plantgo.npz' is a file\. Give the directory"):
        find_datasets(write_npz(tmp_path / "plantgo.npz"))


# Formats ------------------------------------------------------------------------------------------------


def test_npz_sparse(tmp_path):
    path = write_npz(tmp_path / "plantgo.npz", sp.csr_array(FEATURES), Y=LABELS.astype(np.uint8))
    dataset = load_dataset(tiny("PlantGO"), path)
    assert dataset.X.format == "csr"
    assert_holds(dataset, scaled(), centered(LABELS))
    assert (dataset.name, dataset.loss, dataset.solver, dataset.tau) == ("PlantGO", "squared", "apgd", 3.0)
    assert dataset.notes == ()
    assert dataset.stands_in_for is None
    assert dataset.preprocessing == DATASETS["PlantGO"].preprocessing


def test_npz_dense(tmp_path):
    dataset = load_dataset(tiny("Mnist"), write_npz(tmp_path / "mnist.npz", y=CLASSES.astype(np.uint8)))
    assert isinstance(dataset.X, np.ndarray)
    assert_holds(dataset, FEATURES / FEATURES.max(), np.eye(3)[CLASSES])
    assert dataset.notes == ()


@pytest.mark.parametrize("first_label", [0, 1])
@pytest.mark.parametrize("name", ["protein", "protein.txt", "protein.svm", "Protein.libsvm", "p.tr.bz2", "p.val.GZ"])
def test_libsvm(tmp_path, name, first_label):
    """Whichever number classes start from; columns of zeros at the end are not in the file."""
    X = FEATURES * [1, 1, 1, 1, 0]
    plain = tmp_path / "plain"
    dump_svmlight_file(X, CLASSES + first_label, str(plain), zero_based=False)
    compress = {".bz2": bz2.compress, ".gz": gzip.compress}.get(Path(name).suffix.lower(), bytes)
    path = tmp_path / name
    path.write_bytes(compress(plain.read_bytes()))
    dataset = load_dataset(tiny("Protein"), path)
    assert dataset.X.format == "csr"
    assert_holds(dataset, scaled(X), np.eye(3)[CLASSES])
    assert dataset.notes == ()


def test_libsvm_is_dense_where_the_table_says_so(tmp_path):
    dump_svmlight_file(FEATURES, CLASSES, str(tmp_path / "mnist"), zero_based=False)
    dataset = load_dataset(tiny("Mnist"), tmp_path / "mnist")
    assert isinstance(dataset.X, np.ndarray)
    assert_holds(dataset, FEATURES / FEATURES.max(), np.eye(3)[CLASSES])


def test_libsvm_in_two_parts(tmp_path):
    dump_svmlight_file(FEATURES[:6], CLASSES[:6], str(tmp_path / "protein.tr"), zero_based=False)
    dump_svmlight_file(FEATURES[6:], CLASSES[6:], str(tmp_path / "protein.val"), zero_based=False)
    whole, part = find_datasets(tmp_path)[0]
    assert (whole.entry.name, part.entry.name) == ("Protein", "ProteinVal")
    assert_holds(load_dataset(tiny("Protein"), whole.path), scaled(), np.eye(3)[CLASSES])
    alone = load_dataset(tiny("ProteinVal", n_samples=3), part.path)
    assert alone.name == "ProteinVal"
    np.testing.assert_array_equal(alone.Y, np.eye(3)[CLASSES[6:]])


@pytest.mark.parametrize("compress", [None, gzip.compress, bz2.compress], ids=["plain", "gz", "bz2"])
@pytest.mark.parametrize("labels_first", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_arff(tmp_path, sparse, labels_first, compress):
    text = arff_text(FEATURES, LABELS, sparse=sparse, labels_first=labels_first)
    suffix = {None: "", gzip.compress: ".gz", bz2.compress: ".bz2"}[compress]
    path = tmp_path / f"PlantGO.arff{suffix}"
    path.write_bytes((compress or bytes)(text.encode()))
    dataset = load_dataset(tiny("PlantGO", labels_first=labels_first), path)
    assert dataset.X.format == "csr"
    assert dataset.X.indices.dtype == dataset.X.indptr.dtype == np.int32
    assert_holds(dataset, scaled(), centered(LABELS))


@pytest.mark.parametrize("count", [4, -4])
def test_mekas_note_says_where_labels_are(tmp_path, count):
    """It stands in the name of the relation, and wins over the table."""
    text = arff_text(FEATURES, LABELS, sparse=True, labels_first=count > 0, relation=f"tiny: -C {count}")
    path = write(tmp_path / "PlantGO.arff", text)
    assert_holds(load_dataset(tiny("PlantGO", labels_first=count < 0), path), scaled(), centered(LABELS))


def test_arff_in_two_parts(tmp_path):
    for name, rows in (("PlantGO-train.arff", slice(6)), ("PlantGO-test.arff", slice(6, None))):
        write(tmp_path / name, arff_text(FEATURES[rows], LABELS[rows], sparse=True))
    for name in ("PlantGO-train.arff", "PlantGO-test.arff"):
        assert_holds(load_dataset(tiny("PlantGO"), tmp_path / name), scaled(), centered(LABELS))


def test_a_row_of_zeros_in_sparse_arff(tmp_path):
    X, labels = FEATURES * (np.arange(9) != 4)[:, None], LABELS * (np.arange(9) != 4)[:, None]
    path = write(tmp_path / "PlantGO.arff", arff_text(X, labels, sparse=True))
    assert "\n{}\n" in path.read_text()
    assert_holds(load_dataset(tiny("PlantGO"), path), scaled(X), centered(labels))


def test_csv_in_two_parts(tmp_path):
    levels = np.array([[-104, 100, -55], [0, 100, 100], [-80, 100, -30], [100, 100, 100]])
    places = np.array([[4864.0, -7541.5], [4870.0, -7500.0], [4990.0, -7311.25], [4880.0, -7400.0]])
    write_signals(tmp_path / "trainingData.csv", levels[:3], places[:3])
    write_signals(tmp_path / "validationData.csv", levels[3:], places[3:])
    ((entry, path),) = find_datasets(tmp_path)[0]
    dataset = load_dataset(replace(entry, n_samples=4, n_features=3), path)
    assert_holds(dataset, np.array([[1, 0, 50], [105, 0, 0], [25, 0, 75], [0, 0, 0]]) / 105, centered(places))
    assert dataset.notes == ()


def test_csv_and_npz_agree(tmp_path):
    levels = np.array([[-104, 100, -55], [0, 100, 100]])
    places = np.array([[4864.0, -7541.5], [4870.0, -7500.0]])
    entry = replace(DATASETS["IndoorLoc"], n_samples=2, n_features=3)
    archive = load_dataset(entry, write_npz(tmp_path / "indoorloc.npz", levels, Y=places))
    text = load_dataset(entry, write_signals(tmp_path / "both.csv", levels, places))
    np.testing.assert_array_equal(archive.X, text.X)
    np.testing.assert_array_equal(archive.Y, text.Y)


@pytest.mark.parametrize("names", [("fea", "gnd"), ("X", "y"), ("X", "Y"), ("data", "nlab")])
@pytest.mark.parametrize("kind", [np.asarray, sp.csc_matrix])
@pytest.mark.parametrize("shape", [(9, 1), (1, 9)])
def test_matlab(tmp_path, names, kind, shape):
    path = tmp_path / "DrivFace.mat"
    savemat(path, {names[0]: kind(FEATURES.astype(float)), names[1]: (CLASSES + 1).reshape(shape)})
    dataset = load_dataset(tiny("DrivFace"), path)
    assert isinstance(dataset.X, np.ndarray)
    assert_holds(dataset, FEATURES / FEATURES.max(), np.eye(3)[CLASSES])


def test_matlab_structure(tmp_path):
    """As UCI ships DrivFace: a PRTools data set in one variable."""
    structure = {"data": FEATURES.astype(float), "nlab": CLASSES[:, None] + 1, "lablist": "right"}
    savemat(tmp_path / "DrivFace.mat", {"drivFaceD": structure})
    dataset = load_dataset(tiny("DrivFace"), tmp_path / "DrivFace.mat")
    assert_holds(dataset, FEATURES / FEATURES.max(), np.eye(3)[CLASSES])


def test_matlab_training_split(tmp_path):
    """As Deng Cai ships Reuters21578: row numbers from 1; of the classes the first ones count."""
    rows = np.array([9, 1, 3, 4, 5, 7])
    split = {"trainIdx": rows[:, None], "testIdx": np.array([[2], [6], [8]])}
    path = tmp_path / "Reuters21578.mat"
    savemat(path, {"fea": sp.csc_matrix(FEATURES.astype(float)), "gnd": CLASSES[:, None] + 1, **split})
    dataset = load_dataset(tiny("Reuters21578", n_samples=4, n_tasks=2, labels_in_file=3), path)
    kept = [i - 1 for i in rows if CLASSES[i - 1] < 2]
    assert_holds(dataset, scaled(FEATURES[kept]), np.eye(2)[CLASSES[kept]])
    assert dataset.notes == ()


# What counts --------------------------------------------------------------------------------------------


def test_the_first_labels_count(tmp_path):
    path = write(tmp_path / "bookmarks.arff", arff_text(FEATURES, LABELS, sparse=True))
    dataset = load_dataset(tiny("Bookmarks", n_tasks=2, labels_in_file=4), path)
    assert_holds(dataset, scaled(), centered(LABELS[:, :2]))
    assert dataset.notes == ()


def test_the_first_classes_count(tmp_path):
    entry = tiny("CMUFaces", n_samples=6, n_tasks=2, labels_in_file=3)
    dataset = load_dataset(entry, write_npz(tmp_path / "cmufaces.npz", y=CLASSES))
    kept = CLASSES < 2
    assert_holds(dataset, FEATURES[kept] / FEATURES[kept].max(), np.eye(2)[CLASSES[kept]])


def test_the_first_rows_count(tmp_path):
    path = write(tmp_path / "EukaryoteGO.arff", arff_text(FEATURES, LABELS, sparse=True))
    dataset = load_dataset(tiny("EukaryoteGO", n_samples=6, training_rows=6), path)
    assert_holds(dataset, scaled(FEATURES[:6]), centered(LABELS[:6]))
    assert dataset.notes == ()


# Notes --------------------------------------------------------------------------------------------------


def test_other_sizes_are_noted(tmp_path):
    path = write_npz(tmp_path / "plantgo.npz", sp.csr_array(FEATURES), Y=LABELS)
    dataset = load_dataset(DATASETS["PlantGO"], path)
    assert dataset.notes == (
        "The data have 9 samples, the paper has 978.",
        "The data have 5 features, the paper has 3091.",
        "The data have 4 tasks, the paper has 12.",
    )


def test_a_strange_number_of_classes_is_noted(tmp_path):
    path = write_npz(tmp_path / "mnist.npz", y=np.arange(9))
    assert load_dataset(tiny("Mnist"), path).notes == (
        "The data have 3 samples, the paper has 9.",
        "The file has 9 classes, of which the first 3 count.",
    )


def test_stand_ins_say_what_they_are(tmp_path):
    entry = tiny("CMUFaces")
    dataset = load_dataset(entry, write_npz(tmp_path / "cmufaces.npz", y=CLASSES))
    assert dataset.name == "CMUFaces"
    assert dataset.stands_in_for == "DrivFace"
    assert dataset.notes == ("CMUFaces stands in for DrivFace, which is 606 x 6400 with 3 classes.",)
    smaller = load_dataset(replace(entry, n_samples=10), tmp_path / "cmufaces.npz")
    assert smaller.notes[1:] == ("The data have 9 samples, the known copy has 10.",)


@pytest.mark.parametrize(
    ("stand_in", "file"),
    [("CMUFaces", "cmufaces.npz"), ("ProteinVal", "Protein_val.npz"), ("Bibtex", "bibtex.arff.gz")],
)
def test_a_stand_ins_file_is_not_taken_for_the_papers_set(tmp_path, stand_in, file):
    touch(tmp_path, file)
    paper = DATASETS[stand_in].stands_in_for
    with pytest.raises(ValueError, match=rf"{file}' is a file of {stand_in}, which must not go by the name of {paper}"):
        load_dataset(DATASETS[paper], tmp_path / file)


# Preparing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scaling", ["columns", "matrix"])
def test_prepare_scales_to_one_and_keeps_zero_columns(kind, sparse, scaling):
    signed = FEATURES * np.where(np.arange(5) == 1, -1.0, 1.0)
    X, _ = prepare(kind(signed), LABELS, tiny("PlantGO", sparse=sparse, scaling=scaling))
    assert sp.issparse(X) == sparse
    sizes = np.abs(array(X)).max(axis=0)
    assert sizes.max() == 1.0
    if scaling == "columns":
        np.testing.assert_array_equal(sizes, [1, 1, 0, 1, 1])
    np.testing.assert_array_equal(array(X) != 0, signed != 0)
    np.testing.assert_array_equal(np.sign(array(X)), np.sign(signed))


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
def test_prepare_leaves_its_input_alone(dtype):
    X = np.array([[-128, 3], [64, 0]], dtype=dtype)
    before, Y = X.copy(), np.array([[1.0], [3.0]])
    prepared, targets = prepare(X, Y, tiny("DrivFace", loss="squared", scaling="columns"))
    np.testing.assert_array_equal(prepared, [[-1.0, 1.0], [0.5, 0.0]])
    np.testing.assert_array_equal(targets, [[-1.0], [1.0]])
    np.testing.assert_array_equal(X, before)
    assert prepared.dtype == np.float64


def test_prepare_leaves_0_1_features_as_they_are():
    X = sp.csr_array((FEATURES > 0).astype(float))
    prepared, _ = prepare(X, LABELS, tiny("PlantGO"))
    np.testing.assert_array_equal(prepared.toarray(), X.toarray())


def test_prepare_on_zeros_alone():
    X, _ = prepare(np.zeros((9, 5)), CLASSES, tiny("Mnist"))
    np.testing.assert_array_equal(X, np.zeros((9, 5)))


# Files that cannot be read ------------------------------------------------------------------------------


def test_no_such_file(tmp_path):
    with pytest.raises(ValueError, match=r"path must be a file of Mnist, but '.*mnist' does not exist\. See LIBSVM"):
        load_dataset(DATASETS["Mnist"], tmp_path / "mnist")
    with pytest.raises(ValueError, match=r"is a directory"):
        load_dataset(DATASETS["Mnist"], tmp_path)


def test_a_part_is_missing(tmp_path):
    path = write_signals(tmp_path / "trainingData.csv", np.zeros((2, 3)), np.zeros((2, 2)))
    message = r"IndoorLoc is made of trainingData.csv and validationData.csv, but .* only a part .* UJIIndoorLoc"
    with pytest.raises(ValueError, match=message):
        load_dataset(DATASETS["IndoorLoc"], path)


def test_parts_that_do_not_fit(tmp_path):
    for name, d in (("trainingData.csv", 3), ("validationData.csv", 2)):
        write_signals(tmp_path / name, np.zeros((2, d)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"do not fit together: they have 3 features and 2 labels, 2 features and 2"):
        load_dataset(DATASETS["IndoorLoc"], tmp_path / "trainingData.csv")


def test_an_unknown_suffix(tmp_path):
    with pytest.raises(ValueError, match=r"mnist.xlsx.* unknown suffix '.xlsx'; known are .*\.arff, .*\.npz"):
        load_dataset(DATASETS["Mnist"], write(tmp_path / "mnist.xlsx", "1 1:2"))


SPARSE = arff_text(FEATURES, LABELS, sparse=True)  # rows on lines 15 to 23
DENSE = arff_text(FEATURES, LABELS, sparse=False)
ONE_FIRST = arff_text(FEATURES, LABELS, sparse=True, nominal="{1,0}")
SIGNALS = "WAP001,LONGITUDE,LATITUDE\n"
FILES = {
    "arff": ("PlantGO", "PlantGO.arff"),
    "libsvm": ("Protein", "protein"),
    "libsvm.bz2": ("Protein", "protein.bz2"),
    "csv": ("IndoorLoc", "signals.csv"),
    "npz": ("PlantGO", "plantgo.npz"),
    "mat": ("DrivFace", "DrivFace.mat"),
}
BROKEN_TEXTS = [
    ("arff", "", "there is no line @data in it"),
    ("arff", SPARSE.split("@data")[0], "there is no line @data in it"),
    ("arff", SPARSE.split("@data")[0] + "@data\n", "X is empty"),
    ("arff", SPARSE.rstrip()[:-1], "line 23: not pairs of a value"),
    ("arff", DENSE.rstrip()[:-2], "line 23: 8 values for 9 attributes"),
    ("arff", SPARSE + "{0 1, 3}\n", "line 24: not pairs of a value and the place of one of 9 attributes"),
    ("arff", SPARSE + "{9 1}\n", "line 24: not pairs"),
    ("arff", SPARSE + "{-1 1}\n", "line 24: not pairs"),
    ("arff", DENSE + "?,1,1,1,1,1,1,1,1\n", "X has 1 NaN or infinite entry in column 0"),
    ("arff", "@attribute a string\n@data\n", "its attribute 'a' is not numeric"),
    ("arff", "@attribute a {no,yes}\n@data\n", "its attribute 'a' is not numeric"),
    ("arff", "@attribute a {0,1}\n@data\n0\n", "it has 1 attributes, and 4 of them should be labels"),
    ("arff", ONE_FIRST, "line 15: a sparse row, but what it leaves out is not 0"),
    ("libsvm", "this is no data\n", "line 1 is not in the format"),
    ("libsvm", "", "X is empty"),
    ("libsvm", "1 1:nan\n2 1:3\n", "X has 1 NaN or infinite entry"),
    ("libsvm.bz2", "1 1:2\n", ""),
    ("csv", "a,b\n1,2\n", "its first line begins with 'A, B'"),
    ("csv", SIGNALS, "has no rows below its header"),
    ("csv", SIGNALS + "1,2,3\n1,2\n", "row 2 below the header has 2 cells"),
    ("csv", SIGNALS + "1,here,3\n", "here"),
    ("npz", "", "File is not a zip file"),
    ("npz", "hello", "File is not a zip file"),
    ("mat", "", ""),
    ("mat", "hello, this is no data at all\n" * 20, ""),
]


def refusal(entry, path):
    """The whole message, which names the file, what was expected and the remedy."""
    with pytest.raises(ValueError) as caught:
        load_dataset(entry, path)
    message = str(caught.value)
    assert str(path) in message
    assert entry.name in message
    assert "Expected: " in message
    assert message.endswith(f"Download it again ({entry.source}), or take it out of the folder.")
    assert ".. " not in message
    return message


@pytest.mark.parametrize(("kind", "text", "problem"), BROKEN_TEXTS)
def test_broken_text(tmp_path, kind, text, problem):
    name, file = FILES[kind]
    assert problem in refusal(tiny(name), write(tmp_path / file, text))


BROKEN_ARRAYS = {
    "no targets": ({"X": FEATURES}, "the arrays in it are X."),
    "classes": ({"X": FEATURES, "y": CLASSES}, "the arrays in it are X, y."),
    "no features": ({"Y": LABELS}, "the arrays in it are Y."),
    "a piece is missing": ({"data": [1.0], "indices": [0], "shape": [9, 5], "Y": LABELS}, "data, indices, shape."),
    "too few targets": ({"X": FEATURES, "Y": LABELS[:4]}, "X has 9 rows, Y has 4"),
    "a vector": ({"X": FEATURES[0], "Y": LABELS}, "X must be 2-dimensional"),
    "words": ({"X": FEATURES.astype(str), "Y": LABELS}, "X must hold real numbers"),
    "nan": ({"X": np.where(FEATURES > 0, np.nan, 1.0), "Y": LABELS}, "NaN or infinite"),
    "nan in targets": ({"X": FEATURES, "Y": np.where(LABELS > 0, np.nan, 1.0)}, "Y has"),
    "index beyond": (
        {"data": [1.0], "indices": [7], "indptr": [0, *[1] * 9], "shape": [9, 5], "Y": LABELS}, "indices",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN_ARRAYS)
def test_broken_arrays(tmp_path, case):
    arrays, problem = BROKEN_ARRAYS[case]
    np.savez(tmp_path / "plantgo.npz", **arrays)
    assert problem in refusal(tiny("PlantGO"), tmp_path / "plantgo.npz")


def test_archives_with_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "plantgo.npz", X=np.array([{}, {}], dtype=object), Y=LABELS)
    assert "allow_pickle" in refusal(tiny("PlantGO"), tmp_path / "plantgo.npz")


def test_a_cut_off_archive(tmp_path):
    path = write_npz(tmp_path / "plantgo.npz", Y=LABELS)
    path.write_bytes(path.read_bytes()[:-40])
    refusal(tiny("PlantGO"), path)


BROKEN_VARIABLES = {
    "other names": ({"pixels": FEATURES, "label": CLASSES}, "the variables in it are label, pixels."),
    "no labels": ({"drivFaceD": {"data": FEATURES}}, "the variables in it are data, drivFaceD."),
    "too few labels": ({"fea": FEATURES, "gnd": CLASSES[:4]}, "X has 9 rows"),
    "many columns": ({"X": FEATURES, "Y": np.eye(3)[CLASSES]}, "one class per sample is needed"),
    "row 0": ({"fea": FEATURES, "gnd": CLASSES, "trainIdx": [0, 1]}, "trainIdx holds a row number below 1"),
    "row beyond": ({"fea": FEATURES, "gnd": CLASSES, "trainIdx": [1, 12]}, "out of bounds"),
}


@pytest.mark.parametrize("case", BROKEN_VARIABLES)
def test_broken_variables(tmp_path, case):
    variables, problem = BROKEN_VARIABLES[case]
    savemat(tmp_path / "DrivFace.mat", variables)
    assert problem in refusal(tiny("DrivFace"), tmp_path / "DrivFace.mat")


def test_new_matlab_files_come_with_a_remedy(tmp_path):
    """Version 7.3 is HDF5; its first 128 bytes still say which version it is."""
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    (tmp_path / "DrivFace.mat").write_bytes(header + bytes(400))
    assert "save it from MATLAB with the option -v7" in refusal(tiny("DrivFace"), tmp_path / "DrivFace.mat")


# The real folder ----------------------------------------------------------------------------------------

IN_REAL_FOLDER = ["PlantGO", "EukaryoteGO", "IndoorLoc", "Reuters21578", "Mnist"]
REAL_STAND_INS = ["CMUFaces", "ProteinVal", "Bibtex", "TMC2007-500"]
ZERO_COLUMNS = {"PlantGO": 0, "EukaryoteGO": 2307, "Reuters21578": 1081, "Mnist": 63, "ProteinVal": 1}


@needs_real_folder
def test_the_real_folder_has_five_sets_and_the_stand_ins():
    found, missing = names_in(REAL_FOLDER)
    assert found == [*IN_REAL_FOLDER, *REAL_STAND_INS]
    assert list(missing) == ["Bookmarks", "DrivFace", "Protein"]


@needs_real_folder
@pytest.mark.parametrize("name", [*IN_REAL_FOLDER, *REAL_STAND_INS])
def test_the_real_sets_have_the_size_of_the_table(name):
    entry, path = next(item for item in find_datasets(REAL_FOLDER)[0] if item.entry.name == name)
    dataset = load_dataset(entry, path)
    assert dataset.X.shape == (entry.n_samples, entry.n_features)
    assert dataset.Y.shape == (entry.n_samples, entry.n_tasks)
    assert len(dataset.notes) == (entry.stands_in_for is not None)
    assert sp.issparse(dataset.X) == entry.sparse
    sizes = array(abs(dataset.X).max(axis=0)).ravel()
    assert sizes.max() == 1.0
    assert np.count_nonzero(sizes == 0) == ZERO_COLUMNS.get(name, np.count_nonzero(sizes == 0))
    if entry.loss == "multinomial":
        assert dataset.Y.sum(axis=0).min() >= 12
        np.testing.assert_array_equal(np.sort(dataset.Y, axis=1)[:, -2:], np.tile([0.0, 1.0], (entry.n_samples, 1)))
    else:
        np.testing.assert_allclose(dataset.Y.mean(axis=0), 0.0, atol=1e-9)
