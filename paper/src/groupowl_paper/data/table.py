"""The table of data sets: the paper's eight, and the stand-ins under their own names."""

from __future__ import annotations

from dataclasses import dataclass

#: Level, in dBm, from which the signals of IndoorLoc are counted: just below the weakest, -104.
SILENCE = -105.0

KDIS = "KDIS multi-label repository (www.uco.es/kdis/mllresources), Xu et al. 2016"
LIBSVM = "LIBSVM data, multi-class (www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets)"
MULAN = "Mulan multi-label data (mulan.sourceforge.net/datasets-mlc.html)"
UCI = "UCI Machine Learning Repository (archive.ics.uci.edu)"


@dataclass(frozen=True)
class DatasetEntry:
    """One data set: its size and setting in the paper, where it comes from, and how its file is read.

    Attributes
    ----------
    name : str
        The paper's name, or a stand-in's own.
    n_samples, n_features, n_tasks : int
        Size in the paper, or of the known copy of a stand-in; ``n_tasks`` counts classes for the multinomial loss.
    loss : {"squared", "multinomial"}
    solver : {"apgd", "spgd"}
        The paper's algorithm: batch or stochastic.
    tau : float
        The paper's exponent: strengths are ``i * exp(-tau) * max_j ||x_j^T Y||`` for i = 1, 2, 3.
    source : str
        Where the original can be downloaded.
    files : tuple of tuples of str
        File names looked for, in order of preference; names in one tuple belong together and are stacked.
    sparse : bool
        Whether X is sparse, whatever the format of the file.
    labels_in_file : int or None
        Labels or classes in the source's file where they are more than ``n_tasks``; the first ``n_tasks`` count.
    labels_first : bool
        Whether an ARFF file begins with its labels; otherwise it ends with them.
    training_rows : int or None
        Number of rows that count, from the first; None for all.
    rows : str
        A sentence on which rows of the source count.
    scaling : {"columns", "matrix"}
        Whether each column is divided by its largest absolute value, or the matrix by its own.
    not_heard : float or None
        Value that stands for "no signal", for signal strengths in dBm.
    stands_in_for : str or None
        Name of the paper's set that this one replaces.
    """

    name: str
    n_samples: int
    n_features: int
    n_tasks: int
    loss: str
    solver: str
    tau: float
    source: str
    files: tuple[tuple[str, ...], ...]
    sparse: bool = False
    labels_in_file: int | None = None
    labels_first: bool = False
    training_rows: int | None = None
    rows: str = "All rows count."
    scaling: str = "columns"
    not_heard: float | None = None
    stands_in_for: str | None = None

    @property
    def n_labels(self) -> int:
        """Labels or classes in the source's file, of which the first ``n_tasks`` count."""
        return self.labels_in_file or self.n_tasks

    @property
    def task_noun(self) -> str:
        """What ``n_tasks`` counts."""
        return "classes" if self.loss == "multinomial" else "tasks"

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{self.n_samples} x {self.n_features} with {self.n_tasks} {self.task_noun}"

    @property
    def preprocessing(self) -> str:
        """What :func:`load_dataset` does to the values in the file, in sentences."""
        sentences = [self.rows]
        if self.labels_in_file:
            kind = "classes" if self.loss == "multinomial" else "labels"
            sentences.append(f"Of {self.labels_in_file} {kind}, the first {self.n_tasks} count.")
        if self.not_heard is not None:
            sentences.append(f"Signals are counted from {SILENCE:g} dBm; those not heard ({self.not_heard:g}) are 0.")
        sentences.append(
            "Each column is divided by its largest absolute value."
            if self.scaling == "columns"
            else "All features are divided by the largest absolute value of the matrix."
        )
        sentences.append("Classes are one-hot." if self.loss == "multinomial" else "Targets are centered.")
        return " ".join(sentences)


def _libsvm_names(*names: str) -> tuple[tuple[str, ...], ...]:
    """LIBSVM's own files have no suffix; people add one."""
    return tuple((f"{name}{suffix}",) for name in names for suffix in ("", ".txt", ".svm", ".libsvm"))


_ENTRIES = (
    DatasetEntry(
        "PlantGO", 978, 3091, 12, "squared", "apgd", 3.0,
        source=KDIS,
        files=(("plantgo.npz",), ("PlantGO.arff",), ("PlantGO-train.arff", "PlantGO-test.arff")),
        sparse=True,
        rows="Training and test rows count.",
    ),
    DatasetEntry(
        "EukaryoteGO", 4658, 12689, 22, "squared", "apgd", 4.0,
        source=KDIS,
        files=(("eukaryotego.npz",), ("EukaryoteGO.arff",), ("eukaryote-go.arff",)),
        sparse=True,
        training_rows=4658,
        rows="The first 4658 rows count: the training part of the set's authors.",
    ),
    DatasetEntry(
        "IndoorLoc", 21048, 520, 2, "squared", "spgd", 3.0,
        source=f"{UCI}, data set UJIIndoorLoc",
        files=(("indoorloc.npz",), ("trainingData.csv", "validationData.csv")),
        rows="Training and validation rows count.",
        scaling="matrix",
        not_heard=100.0,
    ),
    DatasetEntry(
        "Bookmarks", 87860, 2150, 20, "squared", "spgd", 2.0,
        source=f"{MULAN}, Katakis et al. 2008",
        files=(("bookmarks.npz",), ("bookmarks.arff",)),
        sparse=True,
        labels_in_file=208,
    ),
    DatasetEntry(
        "DrivFace", 606, 6400, 3, "multinomial", "apgd", 3.0,
        source=f"{UCI}, data set DrivFace",
        files=(("drivface.npz",), ("DrivFace.mat",)),
        scaling="matrix",
    ),
    DatasetEntry(
        "Reuters21578", 5801, 18933, 30, "multinomial", "apgd", 3.0,
        source="Deng Cai's text data (www.cad.zju.edu.cn/home/dengcai/Data/TextData.html), Cai et al. 2005",
        files=(("reuters21578.npz",), ("Reuters21578.mat",)),
        sparse=True,
        labels_in_file=65,
        rows="The rows of the training split count.",
    ),
    DatasetEntry(
        "Protein", 17766, 357, 3, "multinomial", "spgd", 2.0,
        source=f"{LIBSVM}, protein",
        files=(("protein.npz",), *_libsvm_names("protein"), ("protein.tr", "protein.val")),
        sparse=True,
    ),
    DatasetEntry(
        "Mnist", 60000, 780, 10, "multinomial", "spgd", 2.0,
        source=f"{LIBSVM}, mnist",
        files=(("mnist.npz",), *_libsvm_names("mnist", "mnist.scale")),
        scaling="matrix",
    ),
    DatasetEntry(
        "CMUFaces", 468, 3840, 3, "multinomial", "apgd", 3.0,
        source=f"{UCI}, data set CMU Face Images, half size",
        files=(("cmufaces.npz",),),
        labels_in_file=4,
        rows="The rows of the poses left, right and straight count.",
        scaling="matrix",
        stands_in_for="DrivFace",
    ),
    DatasetEntry(
        "ProteinVal", 2871, 357, 3, "multinomial", "spgd", 2.0,
        source=f"{LIBSVM}, protein, validation part",
        files=(("protein_val.npz",), *_libsvm_names("protein.val")),
        sparse=True,
        rows="The rows of the validation part count.",
        stands_in_for="Protein",
    ),
    DatasetEntry(
        "Bibtex", 7395, 1836, 20, "squared", "spgd", 2.0,
        source=f"{MULAN}, Katakis et al. 2008",
        files=(("bibtex.npz",), ("bibtex.arff",)),
        sparse=True,
        labels_in_file=159,
        stands_in_for="Bookmarks",
    ),
    DatasetEntry(
        "TMC2007-500", 28596, 500, 20, "squared", "spgd", 2.0,
        source=f"{MULAN}, Srivastava and Zane-Ulman 2005",
        files=(("tmc2007_500.npz",), ("tmc2007-500.arff",)),
        sparse=True,
        labels_in_file=22,
        stands_in_for="Bookmarks",
    ),
)  # fmt: skip

#: Every data set by name: the paper's, then the stand-ins.
DATASETS: dict[str, DatasetEntry] = {entry.name: entry for entry in _ENTRIES}
