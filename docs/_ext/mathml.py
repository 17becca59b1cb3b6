"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline_formula(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


# Not the class "math": the theme lays that out for MathJax, to the right, and cuts off what is too wide.
_BLOCK = '<div class="formula notranslate" style="margin: 1rem 0; padding: 0.2rem 0; overflow: auto hidden">'


def block_formula(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f"{_BLOCK}{convert(node.astext(), display='block')}</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline_formula, None), (block_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
