"""One picture of a study for a paper or a slide, by matplotlib: the best so far, what matters, slices, a map."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from raybo.common.errors import MissingExtra, install_command
from raybo.common.files import write_file
from raybo.record.states import FAILURES, State
from raybo.record.trial import Trial
from raybo.reporting.axes import Axis, axes_of, centre, leader, pairs_of, places_of
from raybo.reporting.emulator import Emulator
from raybo.reporting.formatting import abbreviated
from raybo.reporting.frame import Frame, colour_range
from raybo.reporting.goal_figures import FrontAxis, front_axes, front_line
from raybo.reporting.importance import Importance, importance
from raybo.reporting.model_figures import map_of
from raybo.reporting.run_figures import best_line
from raybo.reporting.theme import BLUE, GREY, LIGHT, ORANGE, RED, SCALE
from raybo.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 3  # parameters with a slice
BARS = 8  # parameters among those that matter
CURVE, MAP = 201, 61  # coordinates along a slice, and along each side of the map
LEVELS = 14  # of the map's colours
NAME_CHARACTERS = 24  # of a parameter beside or under its plot
GAP = 4.0  # pixels between two labels
EDGE = 0.025  # of an axis, beyond its ends, so that marks there are whole
LEGEND: dict[str, Any] = {
    "loc": "lower right",
    "bbox_to_anchor": (1.02, 0.98),
    "ncols": 3,
    "handletextpad": 0.3,
    "columnspacing": 0.9,
    "handlelength": 1.3,
}
STYLE: Any = {
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
}


def write_image(study: Study, path: Path) -> None:
    """Write the picture in the format that the file's name ends in.

    Raises:
        MissingExtra: matplotlib is not installed.
        RayboError: the file cannot be written.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra(f"pictures need matplotlib: {install_command('plot')}") from None
    emulator = Emulator.of(study)
    found = None if emulator is None else importance(emulator)
    with mpl.rc_context(STYLE):
        if emulator is None or found is None:
            figure = Figure(figsize=(6.4, 3.2), layout="constrained")
            _first(study, figure.add_subplot())
        else:
            figure = Figure(figsize=(9.8, 5.8), layout="constrained")
            parts: Any = figure.subfigures(2, 1)  # so that long names above leave no hole below
            upper, lower = parts
            first, second, third = upper.subplots(1, 3)
            _first(study, first)
            _importance(study, found, second)
            axes = [axis for axis in (_named_axes(study)[i] for i in found.order) if centre(study, axis) is not None]
            if pairs := pairs_of(study, axes):
                _map(study, emulator, *pairs[0], third)
            else:
                third.set_axis_off()
            for k, plot in enumerate(np.atleast_1d(lower.subplots(1, min(SHOWN, len(axes))))):
                _slice(study, emulator, axes[k], plot, first=k == 0)
            if note := emulator.left_out.strip():
                lower.supxlabel(note, fontsize="medium", color=GREY)
            _fit_labels(figure)
        drawn = io.BytesIO()
        figure.savefig(drawn, format=path.suffix[1:].lower())
    write_file(path, drawn.getvalue())


def _named_axes(study: Study) -> list[Axis]:
    """Return the parameters with labels that leave room for the plots."""
    axes = axes_of(study)
    labels = abbreviated([axis.label for axis in axes], NAME_CHARACTERS)
    return [replace(axis, label=label) for axis, label in zip(axes, labels, strict=True)]


def _first(study: Study, plot: Axes) -> None:
    if study.goals.k > 1 and study.front:
        _front(study, plot)
    else:
        _best_so_far(study, plot)


def _front(study: Study, plot: Axes) -> None:
    """Draw the trials by their first two metrics, and the front."""
    done = [trial for trial in study.trials if trial.state is State.FINISHED and trial.feasible]
    (a, b), numbers = study.goals.names[:2], {trial.number for trial in study.front}
    others = [trial for trial in done if trial.number not in numbers]
    across, up = front_axes(study, done)[:2]
    _on_front_axes(others, across, up, plot, color=BLUE, alpha=0.6, label="trial")
    if study.goals.k == 2:
        plot.plot(*front_line(study, a, b), color=ORANGE, linewidth=1.2)
    _on_front_axes(study.front, across, up, plot, color=ORANGE, label="on the front")
    for axis, which in ((across, "x"), (up, "y")):
        if axis.frame.is_log:
            getattr(plot, f"set_{which}scale")("log")
        getattr(plot, f"set_{which}lim")(*axis.frame.ends)
    plot.set(xlabel=a, ylabel=b)
    plot.legend(**LEGEND)


def _on_front_axes(
    trials: Sequence[Trial], across: FrontAxis, up: FrontAxis, plot: Axes, *, label: str, **style: Any
) -> None:
    """Draw trials by two metrics; those far worse than a frame as triangles at its edge."""
    low = [trial for trial in trials if trial.number in up.outside]
    aside = [trial for trial in trials if trial.number in across.outside - up.outside]
    inside = [trial for trial in trials if trial.number not in up.outside | across.outside]
    plot.plot(across.places(inside), up.places(inside), ".", label=label, **style)
    for far, mark in ((low, _far_worse(up.frame)), (aside, "<" if across.frame.larger_is_better else ">")):
        plot.plot(across.places(far), up.places(far), mark, markersize=4, **style)


def _best_so_far(study: Study, plot: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    done = [trial for trial in study.trials if trial.state is State.FINISHED]
    numbers = np.array([trial.number for trial in done])
    values = np.array([trial.value for trial in done], dtype=np.float64)
    frame = Frame.of(study.goal, values)
    if frame.is_log:
        plot.set_yscale("log")
    inside = ~frame.is_outside
    plot.plot(numbers[inside], values[inside], ".", color=BLUE, alpha=0.6, label="trial")
    if frame.is_outside.any():
        far = numbers[frame.is_outside]
        plot.plot(far, np.full(len(far), frame.worst), _far_worse(frame), color=BLUE, markersize=4, label="far worse")
    if done:
        line = best_line(study, done)
        plot.step([*numbers, len(study.trials) - 1], [*line, line[-1]], where="post", color=ORANGE, label="best so far")
    failed = [trial.number for trial in study.trials if trial.state in FAILURES]
    if failed:
        plot.plot(failed, np.full(len(failed), frame.ends[0]), "x", color=RED, clip_on=False, label="failed")
    plot.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    plot.set_ylim(*frame.ends)
    plot.set(xlabel="trial", ylabel=study.description.metric)
    plot.legend(**LEGEND)


def _importance(study: Study, found: Importance, plot: Axes) -> None:
    order = found.order[:BARS][::-1]
    names = [_named_axes(study)[i].label for i in order]
    rows = np.arange(len(order))
    for name, index, colour, at in (("total", found.total, LIGHT, rows - 0.2), ("alone", found.main, BLUE, rows + 0.2)):
        middle = index[1, order]
        ends = np.maximum([middle - index[0, order], index[2, order] - middle], 0.0)
        bars = {"elinewidth": 0.8, "ecolor": "#4a5058"}
        # as a list: matplotlib 3.10 takes a row of one number for a number
        plot.barh(at, middle, 0.4, xerr=ends.tolist(), color=colour, label=name, error_kw=bars)
    plot.set_yticks(rows, names)
    plot.set(xlabel="share of the objective's variance", xlim=(0.0, None))
    plot.legend(**LEGEND, reverse=True)


def _slice(study: Study, emulator: Emulator, axis: Axis, plot: Axes, *, first: bool) -> None:
    u, at = axis.grid(CURVE)
    X = emulator.around(cast(Trial, centre(study, axis)).number, {axis.index: u})
    middle, below, above = emulator.band(X)
    done = [trial for trial in study.trials if trial.state is State.FINISHED]
    values = np.array([trial.value for trial in done], dtype=np.float64)
    frame = Frame.of(study.goal, values)
    if frame.is_log:
        plot.set_yscale("log")
    places, far = places_of(study, done)[:, axis.index], frame.is_outside
    plot.plot(places[~far], values[~far], ".", color=BLUE, alpha=0.35, label="trial")
    plot.plot(places[far], np.full(int(far.sum()), frame.worst), _far_worse(frame), color=BLUE, alpha=0.5, markersize=4)
    if axis.is_stepped:
        ends = np.maximum([middle - below, above - middle], 0.0)
        plot.errorbar(at, middle, ends, fmt="_", color=ORANGE, markersize=9, elinewidth=0.9, label="model")
    else:
        plot.fill_between(at, below, above, color=ORANGE, alpha=0.18, linewidth=0)
        plot.plot(at, middle, color=ORANGE, label="model")
    plot.set_ylim(*frame.ends)
    plot.set(xlabel=axis.label, ylabel=study.description.metric if first else "")
    _scale(plot, axis, "x")
    if first:
        plot.legend(**LEGEND)


def _far_worse(frame: Frame) -> str:
    """Return the mark that points to where values outside the frame are."""
    return "v" if frame.larger_is_better else "^"


def _map(study: Study, emulator: Emulator, a: Axis, b: Axis, plot: Axes) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    x, y, z = map_of(study, emulator, a, b, MAP)
    low, high = colour_range(study.goal, z)
    is_cut = bool(np.nanmin(z) < low - 1e-12 or np.nanmax(z) > high + 1e-12)
    worse: Any = ("min" if study.goal.larger_is_better else "max") if is_cut else "neither"
    scale: Any = LinearSegmentedColormap.from_list("raybo", SCALE)
    colours = scale if study.goal.larger_is_better else scale.reversed()
    if a.is_stepped or b.is_stepped:
        drawn: Any = plot.pcolormesh(x, y, z, cmap=colours, vmin=low, vmax=high)
    else:
        levels = np.linspace(low, high, LEVELS + 1)
        drawn = plot.contourf(x, y, z, levels=levels, cmap=colours, extend=worse)
    figure: Any = plot.figure
    figure.colorbar(drawn, ax=plot, label=study.description.metric, extend=worse)
    done = places_of(study, [trial for trial in study.trials if trial.state is State.FINISHED])
    plot.plot(done[:, a.index], done[:, b.index], ".", color="#2b3036", alpha=0.5, markersize=3)
    star = places_of(study, [cast(Trial, leader(study))])[0]
    plot.plot(star[a.index], star[b.index], "*", color=ORANGE, markeredgecolor="white", markersize=13)
    plot.set(xlabel=a.label, ylabel=b.label)
    _scale(plot, a, "x")
    _scale(plot, b, "y")


def _scale(plot: Axes, axis: Axis, which: str) -> None:
    if axis.is_categorical:
        places = list(range(len(axis.labels)))
        getattr(plot, f"set_{which}ticks")(places, axis.labels)
    elif axis.is_log:
        getattr(plot, f"set_{which}scale")("log")
        formatter, ticks = plain_logarithms(), getattr(plot, f"{which}axis")
        ticks.set_major_formatter(formatter())
        ticks.set_minor_formatter(formatter())
    low, high = axis.range
    if axis.is_log:
        low, high = low * (low / high) ** EDGE, high * (high / low) ** EDGE
    elif not axis.is_categorical:
        steps = max(1, (axis.parameter.count or 2) - 1) if axis.is_stepped else 1
        edge = max(EDGE * (high - low), 0.5 * (high - low) / steps if axis.is_stepped else 0.0)
        low, high = low - edge, high + edge
    getattr(plot, f"set_{which}lim")(low, high)


def _fit_labels(figure: Any) -> None:
    """Turn the names under an axis that do not fit side by side; where there is no room even so, leave some out."""
    from matplotlib.ticker import FixedLocator

    for which in ("x", "y"):
        figure.draw_without_rendering()  # only a layout tells the room, and names that are turned take it from others
        for plot in figure.axes:
            axis = getattr(plot, f"{which}axis")
            if isinstance(axis.get_major_locator(), FixedLocator) and len(axis.get_ticklocs()):
                _fit_names(axis, plot.bbox.width if which == "x" else plot.bbox.height, is_across=which == "x")


def _fit_names(axis: Any, length: float, *, is_across: bool) -> None:
    names = [label.get_text() for label in axis.get_ticklabels()]
    boxes = [label.get_window_extent() for label in axis.get_ticklabels()]
    line = max(box.height for box in boxes) + GAP
    turned: dict[str, Any] = {}
    if is_across:
        if all(a.x1 + GAP <= b.x0 for a, b in pairwise(boxes)):
            return
        is_oblique = math.sqrt(2.0) * line * len(boxes) <= length
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if is_oblique else {"rotation": 90}
    every = math.ceil(line * len(boxes) / length)
    axis.set_ticks(axis.get_ticklocs()[::every], names[::every], **turned)


def plain_logarithms() -> type[Any]:
    """Return matplotlib's formatter of a logarithmic axis, but with 20 in place of 2 x 10^1 if all of it is short."""
    from matplotlib.ticker import LogFormatterSciNotation

    class Plain(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            text: str = super().__call__(x, pos)
            axis: Any = self.axis
            low, high = sorted(axis.get_view_interval())
            return f"{x:g}" if text and 5e-4 < low and high < 2e5 else text

    return Plain
