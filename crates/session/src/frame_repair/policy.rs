//! A policy of repair by frames: the frames and the path as it sees them, and its orders.

use std::collections::VecDeque;
use std::fmt::Debug;
use weir_cc::cue::PacketResult;
use weir_fec::Coverage;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Weights of a new round trip in the mean and in the mean deviation (RFC 6298, section 2).
const WEIGHTS: (f64, f64) = (0.125, 0.25);
/// Parts of the interval over which packets are counted.
const PARTS: usize = 10;
/// Length of a part: all are a second.
const PART: TimeDelta = TimeDelta::from_millis(100);

/// A frame that has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SentFrame {
    pub captured: Timestamp,
    /// When its first packet was sent.
    pub begun: Timestamp,
    pub packets: Coverage,
}

/// Repair packets to be sent over some packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Order {
    pub packets: Coverage,
    pub count: u16,
}

/// Decides on the repair packets of frames.
pub(crate) trait FramePolicy: Debug + Send {
    /// The last of `frames` has been sent whole.
    fn on_frame(
        &mut self,
        frames: &VecDeque<SentFrame>,
        network: &Network,
        now: Timestamp,
        order: &mut dyn FnMut(Order),
    );
    /// Some packets of a frame are sent again.
    fn on_resent(
        &mut self,
        _frame: &SentFrame,
        _packets: &Coverage,
        _network: &Network,
        _now: Timestamp,
        _order: &mut dyn FnMut(Order),
    ) {
    }
    /// Feedback of any stream's packets, in the order in which they were sent.
    fn on_results(&mut self, _results: &[PacketResult]) {}
    /// Internal values, by name.
    fn metrics(&self, _out: &mut dyn FnMut(&'static str, f64)) {}
    /// Whether the encoder's rate is reduced by what was sent alone, not by what is known to come.
    fn is_measured(&self) -> bool {
        false
    }
    /// A report of this fraction lost was received.
    fn on_report(&mut self, _lost: f64, _now: Timestamp) {}
}

/// The path, by reports and requests.
#[derive(Debug, Default)]
pub(crate) struct Network {
    round_trip: Option<(TimeDelta, TimeDelta)>,
    /// Packets sent of any kind, and those sent again, by part of the interval; the newest last.
    parts: VecDeque<(Timestamp, u32, u32)>,
    last_loss: Option<Timestamp>,
    rate: DataRate,
    /// Pixels of a picture, if the source knows them.
    pixels: Option<u32>,
}

impl Network {
    fn part(&mut self, now: Timestamp) -> &mut (Timestamp, u32, u32) {
        if self.parts.back().is_none_or(|(since, ..)| now - *since >= PART) {
            if self.parts.len() >= PARTS {
                self.parts.pop_front();
            }
            self.parts.push_back((now, 0, 0));
        }
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }
    pub(super) fn on_sent(&mut self, count: u32, now: Timestamp) {
        self.part(now).1 += count;
    }
    /// Packets are requested, and sent again.
    pub(super) fn on_resent(&mut self, count: u32, now: Timestamp) {
        let part = self.part(now);
        (part.1, part.2) = (part.1 + count, part.2 + count);
        self.last_loss = Some(now);
    }
    pub(super) fn on_report(&mut self, lost: f64, rtt: Option<TimeDelta>, now: Timestamp) {
        if lost > 0.0 {
            self.last_loss = Some(now);
        }
        let Some(rtt) = rtt else { return };
        self.round_trip = Some(match self.round_trip {
            None => (rtt, TimeDelta::ZERO),
            Some((mean, deviation)) => {
                let off = rtt - mean;
                (mean + off.mul_f64(WEIGHTS.0), deviation + (off.abs() - deviation).mul_f64(WEIGHTS.1))
            }
        });
    }

    pub(super) fn set_pixels(&mut self, pixels: u32) {
        self.pixels = Some(pixels);
    }
    pub(super) fn pixels(&self) -> Option<u32> {
        self.pixels
    }
    pub(super) fn set_rate(&mut self, rate: DataRate) {
        self.rate = rate;
    }

    /// The rate that media and repair packets share.
    pub(super) fn rate(&self) -> DataRate {
        self.rate
    }
    /// Mean round trip and mean deviation; `None` before the first.
    pub(super) fn round_trip(&self) -> Option<(TimeDelta, TimeDelta)> {
        self.round_trip
    }
    /// Packets sent again as a share of all that were sent in the last second.
    pub(super) fn resent_share(&self, now: Timestamp) -> f64 {
        let (mut sent, mut resent) = (0, 0);
        for (_, all, again) in self.parts.iter().filter(|(since, ..)| now - *since <= PART * PARTS as i64) {
            (sent, resent) = (sent + all, resent + again);
        }
        f64::from(resent) / f64::from(sent.max(1))
    }
    /// Time since the last report or request of a lost packet.
    pub(super) fn since_loss(&self, now: Timestamp) -> Option<TimeDelta> {
        self.last_loss.map(|at| now - at)
    }
}
