//! The rate that feedback has shown to arrive.

use weir_cc::cue::PacketResult;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Time over which it is measured.
const WINDOW: TimeDelta = TimeDelta::from_secs(1);
/// Age up to which it says something of the present.
const FRESH: TimeDelta = TimeDelta::from_secs(2);

/// Delivery over the last whole window.
#[derive(Debug, Default)]
pub(super) struct Proof {
    begin: Option<Timestamp>,
    size: DataSize,
    has_lost: bool,
    last: Option<(Timestamp, DataRate)>,
    /// Bytes sent when the last report block came.
    sent: DataSize,
}

impl Proof {
    pub(super) fn on_packets(&mut self, results: &[PacketResult], now: Timestamp) {
        let mut arrived = DataSize::ZERO;
        for p in results {
            match p.arrival {
                Some(_) => arrived += p.size,
                None => self.has_lost = true,
            }
        }
        self.add(arrived, now);
    }

    /// A report block, when this many bytes had been sent in all.
    pub(super) fn on_block(&mut self, sent: DataSize, fraction_lost: f64, now: Timestamp) {
        let size = sent.saturating_sub(core::mem::replace(&mut self.sent, sent));
        self.has_lost |= fraction_lost > 0.0;
        self.add(size, now);
    }

    fn add(&mut self, size: DataSize, now: Timestamp) {
        let begin = *self.begin.get_or_insert(now);
        let time = now.saturating_since(begin);
        self.size += size;
        if time >= WINDOW {
            let rate = DataRate::from_size_over(self.size, time).filter(|_| !self.has_lost);
            *self = Self { begin: Some(now), last: rate.map(|r| (now, r)), sent: self.sent, ..Self::default() };
        }
    }

    /// The rate of the last window, if nothing was lost in it.
    pub(super) fn rate(&self, now: Timestamp) -> Option<DataRate> {
        self.last.filter(|(at, _)| now.saturating_since(*at) <= FRESH).map(|(_, rate)| rate)
    }
}
