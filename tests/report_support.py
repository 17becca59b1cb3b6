"""What the tests of the report share: contents of every kind, and a reader of pages."""

import json
from html.parser import HTMLParser

import numpy as np

import groupowl as go
from estimator_support import labelled_data
from groupowl.path import PathPoint, PathResult
from groupowl.report import ReportContents

HOSTILE = [
    "</script><b>bold</b>",
    "\"double\" and 'single'",
    "<!-- comment",
    "a & b &lt; &#60;",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "]]> \\u003c \\ $title ${title}",
    "two\nlines\tand a tab, \x1b[31mred\x07 \u202eturned",
    "http://example.org/x.js",
    "Größe 漢字 \u2028 \U0001f989",
    "half \ud83e of a character",
    "",
]


def names_of(count):
    return [f"gene {j}" for j in range(count)]


def contents_of(estimator=None, path=None, /, **changed):
    """Contents with plain names; whatever matters to a test is changed."""
    source = path if estimator is None else estimator
    n_features = source.n_features if estimator is None else estimator.n_features_in_
    classes = path.classes if estimator is None else getattr(estimator, "classes_", None)
    n_targets = path.n_targets if estimator is None else len(np.atleast_2d(estimator.coef_))
    given = {
        "title": "A title",
        "command": ("groupowl", "cv", "my file.csv", "--targets", "y1,y2"),
        "facts": {"File": "my file.csv", "Samples": "40"},
        "estimator": estimator,
        "path": path,
        "feature_names": names_of(n_features),
        "target_names": ["species"] if classes is not None else [f"target {k}" for k in range(n_targets)],
        "scores": {"mean squared error, held out": (0.25, 1.5)},
        "notes": (),
    }
    return ReportContents(**(given | changed))


def sparse_data(seed=0, *, d=12, q=2):
    """Pairs of columns that are nearly equal; the first two pairs matter, behind as much noise as signal."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.standard_normal((60, (d + 1) // 2)), 2, axis=1)[:, :d] + 0.1 * rng.standard_normal((60, d))
    return X, X[:, :4] @ rng.standard_normal((4, q)) + 1.5 * rng.standard_normal((60, q)) + 3.0


def cross_validated(seed=0, *, d=12, q=2, **settings):
    """A small regression with folds that selects some of its features."""
    X, Y = sparse_data(seed, d=d, q=q)
    return go.GroupOWLRegressorCV(**({"alphas": 12, "cv": 3, "eps": 0.05} | settings)).fit(X, Y)


def classified(seed=0, *, n_classes=3, labels=("ash", "beech", "oak"), **settings):
    X, y = labelled_data(seed, n_classes=n_classes)
    named = np.array(labels[:n_classes])[y]
    return go.GroupOWLClassifierCV(**({"alphas": 10, "cv": 2, "eps": 0.1} | settings)).fit(X, named)


def full_path(n_features=3000, n_alphas=100, n_targets=2, smallest=0.01):
    """A path on which one feature after the other enters, in clusters of three, until all are in the model."""
    base = np.random.default_rng(0).standard_normal((n_features, n_targets))
    points = []
    for i, alpha in enumerate(np.geomspace(1.0, smallest, n_alphas)):
        support = np.arange(n_features * i // (n_alphas - 1))
        points.append(
            PathPoint(
                alpha=float(alpha),
                support=support,
                rows=base[support] * (1.0 - 0.9 * alpha),
                intercept=np.zeros(n_targets),
                clusters=1 + support // 3,
                primal=1.0,
                gap=1e-8,
                loss=1.0,
                deviance_ratio=i / n_alphas,
                n_iter=1,
                n_passes=1.0,
                seconds=0.1,
                status="converged",
                n_selected=len(support),
            )
        )
    return PathResult(
        points=tuple(points),
        weights=np.ones(n_features),
        n_features=n_features,
        loss="squared",
        fit_intercept=True,
        alpha_max=1.0,
        null_loss=1.0,
        stopped_because="end",
        unpenalized=np.array([], dtype=np.intp),
    )


INLINE = {"span", "strong", "code"}  # elements within a line


class Page(HTMLParser):
    """Tags with their attributes in order, and the text of everything but scripts and styles."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.raw, self.open = [], [], {}, []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in INLINE:
            self.texts.append(" ")
        self.tags.append((tag, dict(attrs)))
        self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tag, attrs = self.open[-1] if self.open else ("", {})
        if tag in ("script", "style"):
            self.raw[attrs.get("id", tag)] = data
        else:
            self.texts.append(data)

    @property
    def names(self):
        return [tag for tag, _ in self.tags]

    @property
    def text(self):
        return " ".join("".join(self.texts).split())

    @property
    def data(self):
        return json.loads(self.raw["data"])
