"""The runs whose branches and calls a release is laid out by: what most users run most of the time."""

from pathlib import Path

CONTROLLERS = "sluice,gcc,nada,nada-receiver,scream,scream2,bbr-rtc,tfrc,fixed"
# One of each kind: plain, changing and lossy links, queue disciplines, company, several streams and paths, repair, DCCP.
SCENARIOS = [
    "quick",
    "lte",
    "wifi",
    "applications",
    "queue-disciplines",
    "parking-lot",
    "error-resilience",
    "calls/three-calls",
    "dccp/alone",
]


def commands(folder: Path) -> list[list[str]]:
    """Words after `weir`, each with a folder of its own for what it writes below `folder`. The counts of one thread are
    the same each time."""
    one = ["--runs", "1", "--jobs", "1", "--quiet", "--out"]
    plain = ["compare", "--controllers", CONTROLLERS, "--scenario", "quick", "--scenario", "lte", *one]
    return [
        [*plain, str(folder / "plain")],
        *(["compare", "--scenario", name, *one, str(folder / name.replace("/", "-"))] for name in SCENARIOS),
    ]
