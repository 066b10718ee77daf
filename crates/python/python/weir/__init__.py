"""Congestion control for live audio and video: controllers, scenarios and a fast, deterministic simulator.

>>> import weir
>>> run = weir.run("responsiveness", controller="nada")
>>> round(run.flows[0].utilisation, 2)
0.91
>>> run.series["video", "sent_bps"]        # a NumPy array
"""

from ._calls import Calls, calls
from ._controllers import Controller, Feedback, PACKET
from ._live import Call, call
from ._open import Opened, Recording, Table
from ._open import open as open
from ._results import Comparison, Reproduction, Run, Series
from ._simulate import Scenario, compare, controllers, reproduce, run, scenarios
from ._sweep import Sweep, sweep
from ._weir import __version__

__all__ = [
    "Call",
    "Calls",
    "Comparison",
    "Controller",
    "Feedback",
    "Opened",
    "PACKET",
    "Recording",
    "Reproduction",
    "Run",
    "Scenario",
    "Series",
    "Sweep",
    "Table",
    "__version__",
    "call",
    "calls",
    "compare",
    "controllers",
    "reproduce",
    "run",
    "scenarios",
    "sweep",
]
