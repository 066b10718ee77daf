//! Packets of a call in the order of sending, with arrival times by a clock whose least delay is zero.

use weir_timeline::why::{Fate, Passages};
use weir_timeline::{Call, Direction};

/// Bytes of IPv4 and UDP headers, which a link carries and recordings leave out.
pub(crate) const HEADERS: f64 = 28.0;
/// Greatest delay above the least, in s: what arrived later is left out, and cannot make bins without end.
const MOST_DELAY: f64 = 60.0;

/// A packet whose fate is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Packet {
    pub(crate) sent: f64,
    /// Delay in s above the least of the call; `None`: lost.
    pub(crate) delay: Option<f64>,
    pub(crate) bits: f64,
}

/// A time with one base delay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Segment {
    pub(crate) from: f64,
    pub(crate) delay: f64,
    /// Size of the packet that had it.
    pub(crate) bits: f64,
    /// Part of the delay in which that packet was transmitted.
    pub(crate) transmission: f64,
}

impl Segment {
    /// Delay of the path but for the transmission of packets.
    pub(crate) fn propagation(&self) -> f64 {
        self.delay - self.transmission
    }
}

/// Packets of a call.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Packets {
    pub(crate) all: Vec<Packet>,
    /// Share that arrived behind a later one.
    pub(crate) reordered: f64,
    pub(crate) answers_lost: Option<f64>,
    /// Resolution of arrival times, in s.
    pub(crate) resolution: f64,
}

/// A packet at the entry of the link. The link's clock is the receiver's, less the base delay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Entered {
    /// When it came to the link.
    pub(crate) at: f64,
    /// When it left the link; `None`: lost.
    pub(crate) left: Option<f64>,
    pub(crate) bits: f64,
}

/// Transmission time of the fastest packet, in ms: it too had to be transmitted.
pub(crate) fn first_ms(base: &[Segment]) -> f64 {
    let fastest = base.iter().min_by(|a, b| a.delay.total_cmp(&b.delay));
    fastest.map_or(0.0, |s| s.transmission * 1e3)
}

impl Packets {
    pub(crate) fn of(passages: &Passages) -> Self {
        let delays = passages.packets.iter().filter_map(|p| if let Fate::Arrived(d) = p.fate { Some(d) } else { None });
        let least = delays.fold(f64::INFINITY, f64::min);
        let mut all: Vec<Packet> = passages
            .packets
            .iter()
            .filter_map(|p| {
                let delay = match p.fate {
                    Fate::Arrived(d) => Some((d - least) * 1e-3),
                    Fate::Lost => None,
                    Fate::Unknown => return None,
                };
                // NaN is not within either.
                let usable = p.at.is_finite() && delay.is_none_or(|d| d <= MOST_DELAY);
                usable.then_some(Packet { sent: p.at, delay, bits: (p.size + HEADERS) * 8.0 })
            })
            .collect();
        all.sort_by(|a, b| a.sent.total_cmp(&b.sent));
        // In the order of arrival (RFC 4737, section 3.3): one packet that is held back is one that is reordered.
        let mut arrivals: Vec<(f64, f64)> = all.iter().filter_map(|p| Some((p.sent + p.delay?, p.sent))).collect();
        arrivals.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (mut newest, mut behind) = (f64::NEG_INFINITY, 0_u32);
        for (_, sent) in &arrivals {
            behind += u32::from(*sent < newest);
            newest = newest.max(*sent);
        }
        let asked = passages.answers.iter().filter(|a| a.sent.is_some());
        let lost = asked.clone().filter(|a| a.arrived.is_none()).count();
        let answers_lost =
            (passages.captured && asked.clone().count() >= 20).then(|| lost as f64 / asked.count() as f64);
        let resolution = if passages.captured { 0.3e-3 } else { 1.0e-3 };
        Self { all, reordered: f64::from(behind) / arrivals.len().max(1) as f64, answers_lost, resolution }
    }

    /// Packets that came back to the sender, by the sender's clock; none where one of the two times is not that of a capture.
    pub(crate) fn of_answers(passages: &Passages) -> Self {
        let known =
            || passages.answers.iter().filter(|_| passages.captured).filter_map(|a| Some((a.sent?, a.arrived?)));
        let least = known().map(|(sent, arrived)| arrived - sent).fold(f64::INFINITY, f64::min);
        let mut all: Vec<Packet> = known()
            .map(|(sent, arrived)| (sent + least, arrived - sent - least))
            .filter(|(at, delay)| at.is_finite() && *delay <= MOST_DELAY)
            .map(|(sent, delay)| Packet { sent, delay: Some(delay), bits: 0.0 })
            .collect();
        all.sort_by(|a, b| a.sent.total_cmp(&b.sent));
        Self { all, reordered: 0.0, answers_lost: None, resolution: 0.3e-3 }
    }

    /// First and last time at which a packet was sent.
    pub(crate) fn span(&self) -> (f64, f64) {
        (self.all.first().map_or(0.0, |p| p.sent), self.all.last().map_or(0.0, |p| p.sent))
    }

    /// Times at the link. Packets that overtake others have left with those that they overtook, so that a queue is first in, first out.
    pub(crate) fn entered(&self, base: &[Segment]) -> Vec<Entered> {
        let mut segment = 0;
        let mut latest = f64::NEG_INFINITY;
        let at = |p: &Packet, latest: &mut f64, base: f64| {
            let left = p.delay.map(|d| p.sent + (d - base).max(0.0));
            // One that was held back says nothing of the link.
            let left = left.map(|l| l.max(*latest));
            *latest = left.unwrap_or(*latest);
            Entered { at: p.sent, left, bits: p.bits }
        };
        let mut out = Vec::with_capacity(self.all.len());
        for p in &self.all {
            while base.get(segment + 1).is_some_and(|s| p.sent >= s.from) {
                segment += 1;
                latest = f64::NEG_INFINITY;
            }
            out.push(at(p, &mut latest, base.get(segment).map_or(0.0, Segment::propagation)));
        }
        out
    }

    /// Least round-trip time in ms: the least ways there and back by captures at both ends, whose clocks then do not matter, else the
    /// least that RTCP measured.
    pub(crate) fn rtt(&self, call: &Call, passages: &Passages, base: &[Segment]) -> Option<f64> {
        let arrived =
            passages.packets.iter().filter_map(|p| if let Fate::Arrived(d) = p.fate { Some(d) } else { None });
        let there = arrived.fold(f64::INFINITY, f64::min);
        let ways = passages.answers.iter().filter_map(|a| Some((a.arrived? - a.sent?) * 1e3));
        let back = ways.fold(f64::INFINITY, f64::min);
        let measured = call.recordings.iter().flat_map(|r| &r.blocks).filter(|b| b.direction == Direction::Received);
        let measured = measured.filter_map(|b| b.rtt).map(|t| t.as_secs_f64() * 1e3).fold(f64::INFINITY, f64::min);
        let first = first_ms(base);
        let rtt = if passages.captured && (there + back).is_finite() { there + back - first } else { measured };
        rtt.is_finite().then_some(rtt.max(0.0))
    }
}
