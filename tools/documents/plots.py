"""Pictures of controllers, drawn by matplotlib when the site is built: one run of each on the same link.

A page asks for one by a line of its own, which viewers without this site do not show:

    <!-- plot: CONTROLLER -->
"""

import csv
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from documents.reference import Program

SCENARIO = "capacity-steps"
VARIANT = "drop-tail"
FLOW = "video"
LINK = "bottleneck"
# Of that scenario: its length and the time between two steps of the capacity, in s.
LASTS, STEP = 200, 20
# The same scales for all: the ceiling of the rate in Mbit/s, and more than the queue of 300 ms holds.
MOST_RATE, MOST_DELAY = 3, 350
# Samples of 0.1 s to a point: a picture has no room for more, and its file is a third.
TOGETHER = 5
MARK = re.compile(r"^<!-- plot: (?P<name>\S+) -->$", re.MULTILINE)
MISSING = "matplotlib is missing, which draws the pictures: V/bin/pip install matplotlib, and V/bin first in PATH"

# Read on white and on the dark scheme alike: the page's scheme does not reach into a picture.
GREY, CAPACITY, TARGET, RECEIVED, DELAY = "#7c828b", "#8f959e", "#0c9488", "#d9770a", "#4f7fd9"
STYLE = {
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "font.size": 12,
    "grid.alpha": 0.25,
    "grid.color": GREY,
    "legend.frameon": False,
    "legend.labelcolor": GREY,
    "svg.fonttype": "none",
    # Identifiers in the file, which are random otherwise.
    "svg.hashsalt": "weir",
    "text.color": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
}


@dataclass
class Series:
    """A run over time, in s, Mbit/s and ms."""

    time: list[float]
    target: list[float]
    received: list[float]
    link_time: list[float]
    capacity: list[float]
    queue: list[float]


def rows(folder: Path, kind: str) -> list[dict[str, str]]:
    found = sorted(folder.glob(f"*.{kind}.csv"))
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} files *.{kind}.csv of one run in {folder}")
    with found[0].open(newline="") as file:
        return list(csv.DictReader(file))


def column(of: list[dict[str, str]], name: str, scale: float = 1.0) -> list[float]:
    """Means of a column; cells that are all empty, as before the first packet, leave a gap in the line."""
    made = []
    for at in range(0, len(of), TOGETHER):
        known = [float(row[name]) * scale for row in of[at : at + TOGETHER] if row[name]]
        made.append(sum(known) / len(known) if known else float("nan"))
    return made


def read(folder: Path) -> Series:
    """The series that `weir run --series` wrote."""
    flow = [row for row in rows(folder, "flows") if row["flow"] == FLOW]
    link = [row for row in rows(folder, "links") if row["link"] == LINK]
    if not (flow and link):
        raise RuntimeError(f"no flow {FLOW} or no link {LINK} in the series of {SCENARIO}")
    return Series(
        time=column(flow, "time_s"),
        target=column(flow, "target_bps", 1e-6),
        received=column(flow, "goodput_bps", 1e-6),
        link_time=column(link, "time_s"),
        capacity=column(link, "capacity_bps", 1e-6),
        queue=column(link, "queue_delay_ms"),
    )


def draw(series: Series, file: Path) -> None:
    """Rates above, queueing delay below."""
    try:
        import matplotlib
    except ImportError:
        raise RuntimeError(MISSING) from None
    matplotlib.use("svg")
    from matplotlib import pyplot

    with matplotlib.rc_context(STYLE):
        figure, (rates, delay) = pyplot.subplots(2, sharex=True, figsize=(6.4, 4.6), height_ratios=[3, 2], layout="constrained")
        rates.fill_between(series.link_time, series.capacity, step="pre", color=CAPACITY, alpha=0.22, linewidth=0, label="capacity")
        rates.plot(series.time, series.received, color=RECEIVED, linewidth=1.1, label="received")
        rates.plot(series.time, series.target, color=TARGET, linewidth=1.6, label="target")
        rates.set_ylim(0, MOST_RATE)
        rates.set_ylabel("Mbit/s")
        figure.legend(loc="outside upper center", ncols=3)
        delay.plot(series.link_time, series.queue, color=DELAY, linewidth=1.2)
        delay.set_ylim(0, MOST_DELAY)
        delay.set_ylabel("queue, ms")
        delay.set_xlabel("time, s")
        for axes in (rates, delay):
            axes.grid(True)
            axes.set_xlim(0, LASTS)
            axes.set_xticks(range(0, LASTS + 1, STEP))
        # No date: the same run gives the same file.
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)


def with_picture(page: str, name: str) -> str:
    """A page with the picture of a controller in the place of its mark."""
    alt = f"Capacity, target and received rate, and queueing delay of {name} over time"
    return MARK.sub(lambda m: f"![{alt}]({name}.svg)" if m["name"] == name else m[0], page)


def add(folder: Path, program: Program, say: Callable[[str], None]) -> None:
    """Draws the pictures of all pages in a folder beside them. A controller that the program lacks has none."""
    known = {c["name"] for c in program.json("show", "controllers")["controllers"]}
    for page in sorted(folder.glob("*.md")):
        text = page.read_text()
        for name in [m["name"] for m in MARK.finditer(text) if m["name"] in known]:
            say(f"picture: {name}")
            with tempfile.TemporaryDirectory() as place:
                program.text("run", SCENARIO, "--variant", VARIANT, "--controller", name, "--series", place, "--quiet")
                draw(read(Path(place)), folder / f"{name}.svg")
            text = with_picture(text, name)
        page.write_text(text)
