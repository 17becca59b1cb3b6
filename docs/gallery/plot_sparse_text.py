"""
Words that tell topics apart
============================

Text data are sparse: there are thousands of words, of which each document has a few. groupowl works on the sparse
matrix directly, and a word is selected for all topics or for none. The documents here are simulated, from words that
belong to a topic and words that all topics share.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

import groupowl as go
from groupowl.plotting import COLORS

TOPICS = {
    "cooking": "oven flour butter simmer garlic pan recipe dough salt taste whisk onion",
    "sailing": "harbor wind sail mast anchor tide crew hull rudder knot deck storm",
    "music": "violin chord tempo choir melody rehearsal score rhythm orchestra tune sonata piano",
    "gardening": "soil seed prune compost bloom root hedge water leaf spade mulch tulip",
}
SHARED = "the a and of to in with for on at it was then after before day time people house good"


def make_document(topic, rng):
    """Mostly shared and rare words; a few belong to the topic, and as many to any topic."""
    own, any_topic = TOPICS[topic].split(), " ".join(TOPICS.values()).split()
    rare = [f"word{number}" for number in rng.integers(0, 4000, size=12)]
    words = [*rng.choice(SHARED.split(), 16), *rng.choice(own, 3), *rng.choice(any_topic, 3), *rare]
    return " ".join(rng.permutation(words))


rng = np.random.default_rng(0)
labels = rng.choice(list(TOPICS), size=800)
documents = [make_document(topic, rng) for topic in labels]
print(labels[0], "|", documents[0][:80], "...")

# %%
# The data are a sparse matrix of tf-idf values. Most of its columns are rare words without information. A model with an
# intercept needs centered columns; centering is done inside products, so the matrix stays sparse.

vectorizer = TfidfVectorizer()
X = vectorizer.fit_transform(documents)
words = vectorizer.get_feature_names_out()
X_train, X_test, y_train, y_test = train_test_split(X, labels, test_size=0.4, random_state=0)
print(f"{X.shape[0]} documents, {X.shape[1]} words, {100 * X.nnz / np.prod(X.shape):.2f} % of the entries are not zero")

model = go.GroupOWLClassifierCV(alphas=15, eps=0.1, cv=3, selection="1se", tol=1e-4).fit(X_train, y_train)
selected = words[model.get_support(indices=True)]
known = set(" ".join(TOPICS.values()).split())
print(f"accuracy on new documents {model.score(X_test, y_test):.3f}")
print(f"{len(selected)} words selected, {len(set(selected) & known)} of the {len(known)} that belong to a topic")
print("selected as well:", *sorted(set(selected) - known))

# %%
# The picture shows the words with the largest coefficients for each topic. They are words of the topic. Each word of a
# topic had the same probability, so the differences between them are due to chance: how often a word occurred in the
# training documents.

figure, panels = plt.subplots(1, 4, figsize=(9, 4.2), sharex=True, layout="constrained")
for ax, topic, coef in zip(panels, model.classes_, model.coef_, strict=True):
    top = np.argsort(coef)[-12:]
    ax.barh(words[top], coef[top], color=COLORS[2])
    ax.set(title=topic, xlabel="coefficient")
