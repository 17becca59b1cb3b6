"""
X on disk, read a few times
===========================

Data that do not fit into memory stay in their file, and a fit reads them in pieces. The time of a fit then depends on
how often the file is read. This example fits two paths of 12 alphas to a file and shows how much of it was read.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import groupowl as go
from groupowl.plotting import COLORS

N_SAMPLES, N_FEATURES = 30_000, 400
data = go.datasets.make_correlated_groups(
    N_SAMPLES, N_FEATURES, 3, task="classification", correlation=0.6, random_state=0
)
responses = data.X @ data.B + 5.0 * np.random.default_rng(0).standard_normal((N_SAMPLES, 3))

folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "X.npy"
np.save(file, data.X.astype(np.float32))
print(f"the file has {file.stat().st_size / 1e6:.0f} MB")

# %%
# ``MemmapDesign`` takes the place of X and adds at most ``max_memory`` to the memory of the process. It counts the
# bytes that it reads.


def fit(loss, targets):
    """The path, and how often the file had been read at each certificate."""
    design = go.MemmapDesign(file, max_memory="45MB")
    record = []
    path = go.group_owl_path(
        design,
        targets,
        loss=loss,
        alphas=12,
        eps=0.1,
        tol=1e-4,
        callback=lambda progress: record.append((progress.alpha_index, design.file_passes)) and False,
    )
    return path, np.array(record), design


fits = {
    "squared loss, 3 responses": fit("squared", responses),
    "multinomial loss, 3 classes": fit("multinomial", data.labels),
}
for name, (path, record, design) in fits.items():
    print(
        f"{name:<28} {len(path)} alphas, {path.n_selected[-1]} features at the last, {len(record)} certificates, "
        f"{design.bytes_read / 1e6:.0f} MB read"
    )

# %%
# With squared loss and more samples than features, the first passes compute means, norms and second moments. After that
# the file is not needed, for any number of alphas. The multinomial loss needs the samples: each certificate takes one
# pass, and the columns of working sets are read once and kept in memory. Here this makes about two passes for each
# alpha.

_, left = plt.subplots(figsize=(5.6, 4), layout="constrained")
_, right = plt.subplots(figsize=(5.6, 4), layout="constrained")
styles = zip(fits.items(), (COLORS[2], COLORS[5]), ("-", "--"), strict=True)
for (name, (path, record, _)), color, style in styles:
    last = [record[record[:, 0] == i, 1].max() for i in range(len(path))]
    left.step(np.arange(1, len(path) + 1), last, where="mid", color=color, linestyle=style, linewidth=2, label=name)
left.set(xlabel="alphas solved", ylabel="times that the file was read", ylim=(0, None))
left.grid(color="0.9")
left.legend(loc="upper left")
megabytes = [design.bytes_read / 1e6 for _, _, design in fits.values()]
bars = right.bar(["squared", "multinomial"], megabytes, color=[COLORS[2], COLORS[5]], width=0.6)
right.bar_label(bars, labels=[f"{value:.0f} MB" for value in megabytes], padding=3)
right.axhline(file.stat().st_size / 1e6, color="0.4", linestyle=":", label="size of the file")
right.set(ylabel="MB read for the whole path", ylim=(0, 1.15 * max(megabytes)))
right.legend(loc="upper left")

# %%
# The file is in a temporary folder, which is removed now.

folder.cleanup()
