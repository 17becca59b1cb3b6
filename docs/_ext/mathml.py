"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline_formula(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def block_formula(translator: Any, node: nodes.math_block) -> None:
    # The theme lays formulas out for a script that is not here, and cuts off what is wider than the page.
    style = "display: block; overflow: auto hidden; margin-bottom: 1rem; padding: 0.2rem 0"
    formula = convert(node.astext(), display="block")
    translator.body.append(f'<div class="math notranslate" style="{style}">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline_formula, None), (block_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
