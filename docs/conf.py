"""Settings of the documentation: an offline site from docstrings and the pages of this folder."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

import groupowl

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "groupowl"
author = "The groupowl developers"
copyright = author
version = release = groupowl.__version__

extensions = [
    "mathml",
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery/*", "measured/reproduction/*.csv"]

# Pages by hand are reStructuredText; those that programs write are Markdown.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "gallery_order.ReadingOrder",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "thumbnail_size": (640, 440),  # shown at half of it, or in full on narrow screens
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 3600,  # seconds say more about the load of the machine than about the example
    "plot_gallery": True,
    # Examples print what is worth reading; what a statement returns is not shown.
    "capture_repr": (),
    "remove_config_comments": True,
    # Names in the code link to the API reference of this site.
    "doc_module": ("groupowl",),
    "reference_url": {"groupowl": None},
}

# Pictures of the guide are functions of guide/pictures.py.
plot_formats = ["svg"]
plot_html_show_formats = False
plot_html_show_source_link = False

# Buttons copy what is typed: neither prompts nor what is printed below them.
copybutton_exclude = ".linenos, .gp, .go"

smartquotes = False  # "oscar" is to be copied as it is

# Types are in the docstrings, in words.
autodoc_typehints = "none"
autosummary_generate = True
# Names of members alone fit beside the page.
toc_object_entries_show_parents = "hide"
# The templates list the members, each once.
numpydoc_show_class_members = False

# Nothing is loaded from elsewhere, neither now nor when a page is read.
html_theme = "pydata_sphinx_theme"
html_title = "groupowl"
html_show_sphinx = False
html_show_sourcelink = False
html_theme_options = {
    "icon_links": [],
    "navbar_end": ["theme-switcher"],
    "footer_end": [],
    "show_prev_next": False,
    # Tables of measurements need the room.
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        "contributing/extending": [],
        "measured/benchmarks": [],
        "measured/reproduction/report": [],
        "measured/scaling": [],
    },
}
html_sidebars = {"index": [], "measured/**": []}
html_static_path = ["_static"]
html_css_files = ["groupowl.css"]


def is_made_by_sklearn(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out set_fit_request and its kind, whose docstrings refer to pages of scikit-learn."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", is_made_by_sklearn)
