//! Rates at which the link served packets that waited for one another.

use crate::jitter::{self, JitterStep};
use crate::packets::Entered;
use crate::queue::Queue;

/// Bits served over a time in which the link was never idle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Served {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) bits: f64,
    /// Whether packets that were lost are taken to have been served in it too, of which it is not known whether they were.
    pub(crate) has_lost: bool,
}

/// All of a call.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Service {
    pub(crate) served: Vec<Served>,
    /// Mean rate in bit/s; 0 if nothing waited.
    pub(crate) usual: f64,
    /// Whether packets that found the link idle are among them.
    pub(crate) lone: bool,
}

/// A packet that came to the link before the one before had left it was served right behind it: the gap between both is its
/// transmission time. Packets that were lost behind the link took time too; those that found its queue full did not. With `lone` a packet
/// that found the link idle was served from the time at which it came.
pub(crate) fn service(
    packets: &[Entered],
    queue: &Queue,
    jitter: &[JitterStep],
    resolution: f64,
    lone: bool,
) -> Service {
    let mut out = Service { lone, ..Service::default() };
    let (mut before, mut lost) = (f64::NEG_INFINITY, 0.0);
    for (i, p) in packets.iter().enumerate() {
        let Some(left) = p.left else {
            if !queue.overflowed[i] {
                lost += p.bits;
            }
            continue;
        };
        if p.at + resolution + jitter::at(jitter, p.at) < before && left >= before {
            out.served.push(Served { from: before, to: left, bits: p.bits + lost, has_lost: lost > 0.0 });
        } else if lone && lost == 0.0 && left > p.at.max(before) {
            out.served.push(Served { from: p.at.max(before), to: left, bits: p.bits, has_lost: false });
        }
        lost = 0.0;
        before = left;
    }
    let (bits, time) = out.served.iter().fold((0.0, 0.0), |(b, t), s| (b + s.bits, t + s.to - s.from));
    out.usual = if time > 0.0 { bits / time } else { 0.0 };
    out
}
