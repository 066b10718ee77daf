//! Marks and losses: their mean shares, and which kind of queue management marks.

use super::super::config::Config;
use super::super::quantity::{PACKET, Rate, Span, Time};
use super::super::sample::Sample;
use super::Sender;
use super::l4s::{L4sBound, Report};

/// Standing queue from which marks are a classic AQM's: CoDel's target (RFC 8289) is the least of those in use, and L4S marks
/// from 1 ms on (RFC 9332).
const CLASSIC: Span = Span::secs(0.005);
/// Share of a message's packets from which L4S marks them.
const MOSTLY: f64 = 0.5;
/// Least rate for which a packet's duration is taken.
const LEAST_RATE: Rate = Rate::bps(1e3);

/// Marks and losses so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// Mean share of packets marked.
    pub(super) marked: f64,
    /// Mean share of packets lost.
    pub(super) lost: f64,
    pub(super) l4s: L4sBound,
    /// Packets sent after this time show the effect of the last classic mark.
    cut_at: Time,
}

impl Marks {
    /// Takes a message. `capacity` is that of the message before. Whether classic queue management has marked.
    pub(super) fn observe(&mut self, sample: &Sample, sender: &Sender, capacity: Option<Rate>, weight: f64) -> bool {
        let marked = marked_share(sample);
        self.marked += weight * (marked - self.marked);
        // Packets that were only late are taken back.
        let lost = (f64::from(sample.lost) - f64::from(sample.revoked)) / f64::from(sample.received + sample.lost);
        self.lost = (self.lost + weight * (lost - self.lost)).max(0.0);
        let is_standing = sample.queue.least.delay > CLASSIC.max(3.0 * PACKET / sender.rate.max(LEAST_RATE));
        // Classic queue management marks few packets of a standing queue, L4S all.
        let is_l4s = self.l4s.rate().is_some() && marked > MOSTLY;
        let is_classic = is_standing && !is_l4s;
        self.l4s.update(Report {
            now: sender.now,
            marked: if is_classic { 0 } else { sample.marked },
            received: sample.received,
            first: sample.first_departure,
            newest: sender.newest,
            queue: sample.queue.least.delay,
            rate: sender.rate,
            shown: capacity,
            rtt: sender.rtt,
            weight: sender.weight,
        });
        is_classic && sample.marked > 0
    }

    /// The response to classic marks (RFC 3168): a cut once per round trip, from which the flow grows again. `newest` is the
    /// departure of the newest packet reported.
    pub(super) fn cut(&mut self, share: Rate, newest: Time, now: Time, config: &Config) -> Rate {
        if newest < self.cut_at {
            return share;
        }
        self.cut_at = now;
        share * config.marks.decrease
    }
}

/// Share of a message's packets that are marked.
pub(super) fn marked_share(sample: &Sample) -> f64 {
    f64::from(sample.marked) / f64::from(sample.received)
}
