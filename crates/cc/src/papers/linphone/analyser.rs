//! Analysis of feedback (S. Jero, 2013, appendix A.2, qosanalyzer.c).

use super::config::Config;
use crate::cue::ReportBlock;
use weir_units::TimeDelta;

/// The recommended reaction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Action {
    Nothing,
    /// Reduce the rate by this share.
    Decrease(f64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    /// Share of packets lost, 0 to 1.
    lost: f64,
    jitter: TimeDelta,
    rtt: TimeDelta,
    refused: bool,
}

/// The last two reports; the original keeps three and uses two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Analyser {
    current: Stats,
    previous: Stats,
    rtt_doubled: bool,
    was_refused: bool,
}

impl Analyser {
    /// Takes a report. Over DCCP the original uses none.
    pub(super) fn on_report(&mut self, block: &ReportBlock) {
        self.previous = self.current;
        let rtt = block.rtt.unwrap_or(self.previous.rtt);
        self.current = Stats { lost: block.fraction_lost, jitter: block.jitter, rtt, refused: false };
    }

    /// The transport has refused packets.
    pub(super) fn on_refused(&mut self) {
        self.current.refused = true;
        self.was_refused = true;
    }

    fn rtt_increased(&mut self, c: &Config) -> bool {
        let (now, before) = (self.current.rtt, self.previous.rtt);
        let doubled = now >= c.significant_rtt && before > TimeDelta::ZERO && now >= before.mul_f64(c.rtt_factor);
        self.rtt_doubled |= doubled;
        doubled
    }

    pub(super) fn suggest(&mut self, c: &Config) -> Action {
        let lossy = self.current.lost >= c.loss_threshold;
        if lossy && self.current.jitter >= c.jitter_threshold {
            Action::Decrease(self.current.lost.min(c.max_loss_decrease))
        } else if self.rtt_increased(c) {
            Action::Decrease(c.rtt_decrease)
        } else if core::mem::take(&mut self.current.refused) {
            Action::Decrease(c.reject_decrease)
        } else if lossy {
            Action::Decrease(c.packet_rate_decrease)
        } else {
            Action::Nothing
        }
    }

    /// Whether the metric that was bad has improved since the last decrease.
    pub(super) fn has_improved(&mut self, c: &Config) -> bool {
        if self.current.refused {
            return false;
        }
        if self.previous.lost >= c.loss_threshold {
            return self.current.lost < self.previous.lost;
        }
        if self.rtt_doubled {
            self.rtt_doubled = self.current.rtt >= self.previous.rtt;
            return !self.rtt_doubled;
        }
        core::mem::take(&mut self.was_refused)
    }
}
