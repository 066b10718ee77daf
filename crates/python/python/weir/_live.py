"""Calls in real time."""

from __future__ import annotations

import json

from . import _weir
from ._results import Fields
from ._simulate import ControllerLike, Progress, _Bar, _controller


class Call(Fields):
    """A live call: ``call.sender`` and ``call.receiver``, as ``weir live call loopback --json`` has them."""

    def __repr__(self) -> str:
        sent, received = self.sender.sent_rate_bps / 1e3, self.receiver.received_rate_bps / 1e3
        return f"Call({self.sender.duration_s:.1f} s, sent {sent:,.0f} kbit/s, received {received:,.0f} kbit/s)"


def call(
    controller: ControllerLike = "sluice",
    *,
    duration_s: float = 10.0,
    start_bps: float = 500e3,
    floor_bps: float = 50e3,
    ceiling_bps: float = 5e6,
    frame_rate: float = 30.0,
    ecn: bool = False,
    srtp: bool = True,
    progress: Progress = False,
) -> Call:
    """Makes a call in real time between two sockets of this machine, under a controller that it names or that is a class of
    one's own.

    It is ``weir live call loopback --codec model``: frames have sizes and no content, packets are protected by SRTP unless ``srtp`` is
    false, and the network is the loopback device, which has no bottleneck but what is put there (``tc``, or ``weir live emulate``
    around the whole program). ``progress`` is as for :func:`run`.

    A controller of one's own is called on the thread that sends, and takes the interpreter for that time: other Python
    threads that hold it delay packets.

    Raises ValueError if there is no such controller or a value is out of its range, an exception of a controller of one's own,
    which ends the call, and NotImplementedError in builds without live calls (other systems than Linux).
    """
    name, own = _controller(controller)
    settings = {
        "duration_s": duration_s,
        "start_bps": start_bps,
        "floor_bps": floor_bps,
        "ceiling_bps": ceiling_bps,
        "frame_rate": frame_rate,
        "ecn": ecn,
        "srtp": srtp,
    }
    if name is None:
        raise TypeError("controller: expected a name or a subclass of weir.Controller, found None")
    with _Bar(progress) as bar:
        return Call(json.loads(_weir.call(name, settings, own=own, progress=bar)))
