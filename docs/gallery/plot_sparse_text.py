"""
Words that tell topics apart
============================

Text data are sparse: there are thousands of words, of which each document has a few. groupowl works on the sparse
matrix directly, and a word is selected for all topics or for none.

The texts are those that every installation of SciPy has: the docstrings of its functions. Which words say whether a
function is about statistics, signals, optimization, linear algebra or special functions?
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

import groupowl as go
from groupowl.plotting import COLORS

MODULES = {
    "linear algebra": scipy.linalg,
    "optimization": scipy.optimize,
    "signals": scipy.signal,
    "special functions": scipy.special,
    "statistics": scipy.stats,
}
documents, labels = [], []
for topic, module in MODULES.items():
    for _, function in inspect.getmembers(module, callable):
        text = inspect.getdoc(function) or ""
        if len(text.split()) > 30:
            documents.append(text.split("Examples\n")[0])
            labels.append(topic)
labels = np.array(labels)
print({topic: int(np.sum(labels == topic)) for topic in MODULES})

# %%
# The data are a sparse matrix of tf-idf values. Words that name a module of SciPy would give the answer away and are
# left out. A model with an intercept needs centered columns; centering is done inside products, so the matrix stays
# sparse.

names = {"scipy", "linalg", "optimize", "signal", "special", "stats"}
vectorizer = TfidfVectorizer(token_pattern=r"[a-z]{3,}", min_df=3, sublinear_tf=True)
X = vectorizer.fit_transform(documents)
words = vectorizer.get_feature_names_out()
allowed = ~np.isin(words, sorted(names))
X, words = X[:, allowed], words[allowed]
X_train, X_test, y_train, y_test = train_test_split(X, labels, test_size=0.3, stratify=labels, random_state=0)
print(f"{X.shape[0]} documents, {X.shape[1]} words, {100 * X.nnz / np.prod(X.shape):.1f} % of the entries are not zero")

model = go.GroupOWLClassifierCV(weights="bh", alphas=15, eps=0.05, cv=3, tol=1e-4).fit(X_train, y_train)
print(f"{len(model.selected_features_)} words selected")
largest = max(np.mean(y_test == topic) for topic in MODULES)
print(f"accuracy on new documents {model.score(X_test, y_test):.2f}, of the most frequent topic {largest:.2f}")

# %%
# The words with the largest coefficients for each topic.

figure, panels = plt.subplots(1, 5, figsize=(11, 3.8), sharex=True, layout="constrained")
for ax, topic, coef in zip(panels, model.classes_, model.coef_, strict=True):
    top = np.argsort(coef)[-10:]
    ax.barh(words[top], coef[top], color=COLORS[2])
    ax.set(title=topic, xlabel="coefficient")

# %%
# The same for two of them, larger.

figure, panels = plt.subplots(1, 2, figsize=(5.4, 3.6), sharex=True, layout="constrained")
for ax, topic in zip(panels, ("optimization", "statistics"), strict=True):
    coef = model.coef_[list(model.classes_).index(topic)]
    top = np.argsort(coef)[-8:]
    ax.barh(words[top], coef[top], color=COLORS[2])
    ax.set(title=topic, xlabel="coefficient")

# sphinx_gallery_thumbnail_number = 2
