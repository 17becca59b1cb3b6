"""The report of a selection: sentences, a table of the strongest features, and no text that acts."""

import unicodedata

import numpy as np
import pandas as pd
import pytest

from groupowl.report import SelectionContents, write_selection_report
from groupowl.report.page import SHOWN_ROWS
from report_support import HOSTILE


def page_of(path, n_features=5, *, n_selected=2, name="feature {}", **changes):
    frame = pd.DataFrame({
        "feature": pd.Series([name.format(j) for j in range(n_features)], dtype=object),
        "selected": np.arange(n_features) < n_selected,
        "W": np.linspace(1.0, -1.0, n_features),
    })  # fmt: skip
    contents = {
        "title": "Selected features: t.csv",
        "command": ("groupowl", "select", "a file.csv"),
        "facts": {"Samples": "30"},
        "selector": "KnockoffSelector()",
        "promise": "What is promised holds.",
        "assumption": "What is assumed holds.",
        "frame": frame,
        "picture": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "caption": "Bars.",
        "notes": ("Read this.",),
    }
    write_selection_report(path / "report.html", SelectionContents(**(contents | changes)))
    return (path / "report.html").read_text(encoding="utf-8")


def test_what_is_said(tmp_path):
    page = page_of(tmp_path)
    for words in ("What is promised holds.", "What is assumed holds.", "Read this.", "Bars.", "KnockoffSelector()"):
        assert words in page
    assert "groupowl select &#39;a file.csv&#39;" in page
    assert "2 features of 5" in " ".join(page.split())
    assert page.count('class="chosen"') == 2
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    ("n_selected", "words"), [(0, "No feature of 5 is selected."), (1, "1 feature of 5 is selected.")]
)
def test_few_selected_features(tmp_path, n_selected, words):
    assert words in " ".join(page_of(tmp_path, n_selected=n_selected).split())


def test_long_tables_end(tmp_path):
    page = page_of(tmp_path, SHOWN_ROWS + 7)
    assert page.count('scope="row"') == SHOWN_ROWS
    assert "7 features more: selection.csv has them all." in " ".join(page.split())


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_acts(tmp_path, text):
    """Elements are those of an innocent page, whatever names and sentences hold."""
    words = {"title": text, "notes": (text,), "promise": text, "caption": text}
    page = page_of(tmp_path, name=text.replace("{", "{{").replace("}", "}}") + "{}", **words)
    plain = page_of(tmp_path)
    for element in ("<script", "<b>", "<img", "<!--", "<td", "<svg"):
        assert page.count(element) == plain.count(element)
    assert not any(unicodedata.category(sign) == "Cc" for sign in page.replace("\n", "").replace("\t", ""))
