"""Settings of the documentation: an offline site from docstrings and the pages of this folder."""

import groupowl

project = "groupowl"
author = "The groupowl developers"
copyright = author
version = release = groupowl.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]

smartquotes = False  # "oscar" is to be copied as it is

# Types are in the docstrings, in words.
autodoc_typehints = "none"
autosummary_generate = True
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
}
html_sidebars = {"index": [], "pages/*": []}
