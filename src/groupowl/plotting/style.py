"""What all pictures share: colors, axes to draw on, names that fit, room for texts, and checks of what is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._checks import checked_names
from .._typing import FloatArray, IndexArray
from ..inputs import names_in_groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

#: Okabe and Ito's colors, told apart with every kind of color vision; yellow is too faint for lines.
COLORS = ("#000000", "#E69F00", "#0072B2", "#CC79A7", "#009E73", "#D55E00", "#56B4E9")
#: Dashes of curves.
LINE_STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 3)))
#: Marks at the end of a curve, where the solve stopped.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: What is drawn but not named.
FAINT = "0.75"
#: Lines that mark a choice, such as the chosen alpha.
CHOSEN: dict[str, Any] = {"color": COLORS[5], "linewidth": 1.4, "linestyle": (0, (4, 2))}

#: Names are cut in the middle to so many characters, and to fewer where there is no room, down to the smaller number.
LONGEST_NAME, SHORTEST_NAME = 28, 3
SMALLEST_FONT, LARGEST_FONT = 5.0, 9.0  # points, for names of features and tasks
#: Distance of lines of text in units of the font's size.
LINE_HEIGHT = 1.35
_POINTS_PER_INCH = 72.0
_LETTER_WIDTH = 0.6  # in units of the font's size
_MOST_FOR_NAMES = 0.5  # of the width of axes
_SPARE = 0.93  # of the room for names: widths of letters change a little with the resolution
_GOLDEN = 0.618034  # of the circle of hues from one color to the next: the golden ratio leaves no two close
_APART = 6.0  # pixels between numbers or names side by side


# Axes ---------------------------------------------------------------------------------------------------


def line_colors(count: int) -> list[str]:
    """Distinct colors for named lines; none is the color that marks a choice.

    Those that are told apart with every kind of color vision come first; more are told apart by hue and lightness.
    """
    colors = [color for color in COLORS if color != CHOSEN["color"]]
    for k in range(count - len(colors)):
        levels = hls_to_rgb(_GOLDEN * k % 1.0, 0.3 + 0.12 * (k % 3), 0.6)
        colors.append("#" + "".join(f"{round(255 * level):02X}" for level in levels))
    return colors[:count]


def new_axes(n_rows: int = 1, n_columns: int = 1, figsize: tuple[float, float] | None = None) -> Any:
    """Axes of a new figure, an array of them where there are several."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Drawing needs Matplotlib; run: pip install "groupowl[plot]"') from error
    return plt.subplots(n_rows, n_columns, figsize=figsize, layout="constrained")[1]


def axes_to_draw_on(ax: Axes | None, figsize: tuple[float, float] | None = None) -> Axes:
    """The axes that were given, or those of a new figure."""
    if ax is None:
        return new_axes(figsize=figsize)
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be a Matplotlib Axes, got {type(ax).__name__}. Use one of plt.subplots(), or None.")
    return ax


@dataclass(eq=False)
class Display:
    """What all displays on one pair of axes have.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    """

    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    def _begin(self, ax: Axes | None, figsize: tuple[float, float] | None = None) -> Axes:
        """The axes that were given, or new ones, as attributes."""
        self.ax_ = axes_to_draw_on(ax, figsize)
        self.figure_ = self.ax_.figure
        return self.ax_


def lay_out(ax: Axes) -> None:
    """Let the figure find its layout, so that sizes on screen can be measured."""
    figure = ax.figure.canvas.figure
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes as they were laid out last."""
    to_points = _POINTS_PER_INCH / ax.figure.dpi
    return ax.bbox.width * to_points, ax.bbox.height * to_points


def say(ax: Axes, sentence: str) -> None:
    """A sentence in the middle of axes that have nothing else to show."""
    box = {"facecolor": "white", "edgecolor": "none"}
    ax.text(0.5, 0.5, sentence, transform=ax.transAxes, ha="center", va="center", wrap=True, color="0.3", bbox=box)
    ax.grid(visible=False)


def text_beside(
    ax: Axes, text: str, place: tuple[float, float], offset: float, rise: float = 0.0, **settings: Any
) -> Any:
    """A text so many points to the right of a place, and above it."""
    return ax.annotate(text, place, xytext=(offset, rise), textcoords="offset points", va="center", **settings)


# Names --------------------------------------------------------------------------------------------------


def names_of(features: IndexArray, names: Any, n_features: int) -> list[str]:
    """Names of some features; where there are no names, x0, x1, ... like scikit-learn's."""
    if names is None:
        return [f"x{j}" for j in features.tolist()]
    listed = checked_names("feature_names", names, n_features)
    return [str(listed[j]) for j in features.tolist()]


def default_names(given: Any, names: Any, groups: Any, n_features: int) -> Any:
    """Names of all features as they are given, or else those known, with the names of their feature groups."""
    if given is not None or groups is None:
        return names if given is None else given
    return names_in_groups([f"x{j}" for j in range(n_features)] if names is None else names, groups)


def public_rows(path: Any, rows: FloatArray) -> FloatArray:
    """Rows of coefficients of a path as users know them: two classes become one difference, as in ``coef_``."""
    is_binary = path.classes is not None and len(path.classes) == 2
    return rows[:, 1:] - rows[:, :1] if is_binary and rows.shape[1] == 2 else rows


def size_label(what: str, is_scaled: bool, is_per_deviation: bool) -> str:
    """What an axis of coefficients or norms has, on the scale of X or on that of the penalty."""
    if is_per_deviation:
        return f"{what}, per standard deviation"
    return f"{what}, scaled as the penalty sees it" if is_scaled else what


def fitted_attribute(estimator: Any, attribute: str, remedy: str) -> Any:
    """An attribute that only some estimators have after ``fit``; the message says which."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must be a fitted estimator, got {estimator!r} of type {type(estimator).__name__}.")
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise TypeError(f"estimator: {type(estimator).__name__} has no {attribute}. {remedy}")
    return getattr(estimator, attribute)


def shortened_names(names: Sequence[str], longest: int = LONGEST_NAME) -> list[str]:
    """Shorten names to ``longest`` characters: cut a common beginning, or the middle."""
    clean = [" ".join(name.split()) for name in names]  # a line break would reach into the neighbor's place
    long = [name for name in clean if len(name) > longest]
    shared = sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*long, strict=False)))
    tail = (longest - 1) // 2
    without_middle, without_start = list(clean), list(clean)
    for i, name in enumerate(clean):
        if len(name) > longest:
            without_middle[i] = f"{name[: longest - 1 - tail]}…{name[len(name) - tail :]}"
            rest = f"…{name[shared:]}"
            without_start[i] = rest if len(rest) <= longest else f"{rest[: longest - 1]}…"
    return max(without_middle, without_start, key=lambda candidate: len(set(candidate)))  # what tells more apart


def name_in_legend(ax: Axes, artists: Mapping[str, Any], **settings: Any) -> Any:
    """A legend with labels as they are: a $ is no mathematics, a leading _ no reason to leave one out."""
    legend = ax.legend(artists.values(), map(str, range(len(artists))), **settings)
    for text, label in zip(legend.get_texts(), artists, strict=True):
        text.set(parse_math=False, text=label)
    return legend


def longest_name(room: float, fontsize: float) -> int:
    """How many letters of a name fit into so many points."""
    return int(np.clip(room / (_LETTER_WIDTH * fontsize), SHORTEST_NAME, LONGEST_NAME))


def font_for(pitch: float) -> float:
    """Size of the font for lines of text so many points apart."""
    return float(np.clip(pitch / LINE_HEIGHT, SMALLEST_FONT, LARGEST_FONT))


def most_lines(height: float) -> int:
    """How many lines of text fit into a height in points."""
    return max(int(height / (SMALLEST_FONT * LINE_HEIGHT)), 1)


def name_ticks(ax: Axes, side: int, positions: Sequence[float], names: Sequence[str], **settings: Any) -> None:
    """Names to the left of the axes (side 0) or below them (side 1), cut where there is no room for them."""
    axis, figure, box, along = (ax.yaxis, ax.xaxis)[side], ax.figure.canvas.figure, ax.bbox, 1 - side
    # The room begins at a neighbor, or at the figure's edge.
    before = [other.bbox for other in figure.axes if other.bbox.max[side] <= box.min[side]]
    facing = [other for other in before if other.min[along] < box.max[along] and box.min[along] < other.max[along]]
    room = _SPARE * (box.min[side] - max((other.max[side] for other in facing), default=0.0))
    most = longest_name(_MOST_FOR_NAMES * size_in_points(ax)[side], settings["fontsize"])
    for longest in range(most, SHORTEST_NAME - 1, -1):
        labels = shortened_names(names, longest)
        axis.set_ticks(positions, labels, parse_math=False, **settings)  # a $ in a name is a dollar
        axis.set_tick_params(length=0)
        lay_out(ax)
        needed = box.min[side] - min(label.get_window_extent().min[side] for label in axis.get_ticklabels())
        if needed <= room or figure.get_layout_engine() is not None:  # which makes room for names
            return


def touching(texts: Sequence[Any]) -> bool:
    """Whether texts side by side are less than a small distance apart."""
    boxes = sorted((text.get_window_extent() for text in texts), key=lambda box: box.x0)
    return any(right.x0 - left.x1 < _APART for left, right in pairwise(boxes))


# Room ---------------------------------------------------------------------------------------------------


def widest(ax: Axes, artists: Iterable[Any]) -> float:
    """Width of the widest artist as a fraction of the width of the axes."""
    width = ax.bbox.width
    return max((artist.get_window_extent().width / width for artist in artists), default=0.0)


# Numbers along axes -------------------------------------------------------------------------------------


def label_log_axis(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers (50, not 5 x 10^1).

    A long axis has labels at powers of ten, a shorter one at 1, 2, 5, 10, and a very short one at all ticks.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from groupowl.plotting import label_log_axis
    >>> ax = Figure().subplots()
    >>> _ = ax.loglog([1, 10, 100], [1, 2, 3])
    >>> label_log_axis(ax.xaxis)
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    subs = range(1, 10) if high < 5 * low else (1.0, 2.0, 5.0) if high < 2e2 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, position: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
