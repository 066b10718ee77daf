"""Controllers of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

#: One packet of a report. Times are in ns: ``departure`` by the sender's clock, ``arrival`` by the receiver's (its least
#: value if the packet was lost). ``size`` is in bytes, with RTP's header. ``ecn`` is the IP header's field. ``was_lost`` marks a
#: packet that an earlier report had as lost.
PACKET = np.dtype(
    [
        ("sequence", np.uint64),
        ("departure", np.int64),
        ("arrival", np.int64),
        ("size", np.uint32),
        ("ecn", np.uint8),
        ("received", np.bool_),
        ("was_lost", np.bool_),
        ("", np.uint8),
    ]
)


class Feedback:
    """What a report says.

    ``packets`` is an array of :data:`PACKET` in the order of sending; ``bytes_sent`` counts what left since the report before;
    ``rtt_s`` is ``None`` if no packet was newly received.
    """

    __slots__ = ("now_s", "packets", "bytes_in_flight", "bytes_sent", "rtt_s")

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.now_s: float = given["now_s"]
        self.packets = np.frombuffer(given["records"], dtype=PACKET)
        self.bytes_in_flight: int = given["bytes_in_flight"]
        self.bytes_sent: int = given["bytes_sent"]
        self.rtt_s: float | None = given["rtt_s"]

    @property
    def loss(self) -> float:
        """Share of the reported packets that were lost; 0 if none was reported."""
        return 1.0 - float(self.packets["received"].mean()) if len(self.packets) else 0.0


class Controller:
    """Derive from this, give it to :func:`weir.run`, :func:`weir.compare` or :func:`weir.call`, and answer each report with a rate.

    >>> class Halves(weir.Controller):
    ...     def on_feedback(self, feedback):
    ...         self.rate *= 0.5 if feedback.loss > 0.02 else 1.05
    ...         return self.rate

    Reports are those of RFC 8888, every 50 ms. An answer is the media rate in bit/s, a pair of media and pacing rate, or
    ``None`` to keep both; without a pacing rate packets leave at 2.5 times the media rate. Rates beyond the bounds count as
    the nearer bound; NaN raises ValueError. With ``interval_s`` set (0.001 to 1,000,000), :meth:`on_timeout` is called at that
    interval too.
    """

    interval_s: float | None = None

    def __init__(self, start_bps: float, floor_bps: float, ceiling_bps: float, seed: int) -> None:
        self.rate = start_bps
        self.floor_bps = floor_bps
        self.ceiling_bps = ceiling_bps
        self.seed = seed

    def on_feedback(self, feedback: Feedback) -> float | tuple[float, float] | None:
        """A report has been received."""
        name = type(self).__name__
        raise NotImplementedError(f"controller {name}: define on_feedback(self, feedback), which answers each report with a rate")

    def on_timeout(self, now_s: float) -> float | tuple[float, float] | None:
        """``interval_s`` has passed."""
        return None

    @classmethod
    def _make(cls, start_bps: float, floor_bps: float, ceiling_bps: float, seed: int) -> Controller:
        return cls(start_bps, floor_bps, ceiling_bps, seed)

    def _on_feedback(self, given: Mapping[str, Any]) -> float | tuple[float, float] | None:
        return self.on_feedback(Feedback(given))

    def _on_limits(self, bounds: tuple[float, float]) -> None:
        self.floor_bps, self.ceiling_bps = bounds
