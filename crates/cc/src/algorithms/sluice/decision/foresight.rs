//! Where a rate shows long after it was set, the queue is foreseen: growth is limited by the rate that the link is known to serve,
//! until packets sent at more than that have shown no queue.

use super::super::path::View;
use super::super::quantity::{Rate, Span, Time};
use super::{CORRECTION, Rates, Situation};

/// Time until a change of the rate shows from which the queue is foreseen. Beside flows of a shorter loop, one that waits for its own
/// queue loses its share: measured beside 0.25 s (`docs/sluice.md`).
const LONG: Span = Span::secs(0.3);
/// Queue beyond the one wanted that growth may make to ask whether the link serves more than is known.
const ASKED: Span = Span::secs(0.03);
/// Share of it from which packets that have not waited show that the link does.
const SHOWS: f64 = 0.5;

/// Whether the queue has to be foreseen where a change of the rate shows after this time. L4S marks answer sooner than it.
pub(in super::super) fn is_due(loop_time: Span, view: &View) -> bool {
    loop_time > LONG && view.l4s.is_none()
}

/// What is known of the link ahead of its feedback.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Foresight {
    /// Since when packets would have waited if the link served no more than is known.
    asked: Option<Time>,
    /// Whether such packets have been reported and have not waited.
    is_refuted: bool,
}

impl Foresight {
    /// The greatest rate on a link that seems to have room, where it has been busy before: `known` is the rate of service of that
    /// time, and `time` the one in which the queue is corrected.
    pub(super) fn limit(&mut self, s: &Situation<'_>, known: Rate, time: Span) -> Option<Rates> {
        let foreseen = s.foreseen.filter(|_| !s.is_starting && known > Rate::ZERO)?;
        if foreseen > s.queue.wanted + SHOWS * ASKED {
            self.asked.get_or_insert(s.now);
        }
        self.is_refuted |= self.asked.is_some_and(|asked| s.newest > asked);
        let gain = (s.queue.wanted + ASKED - foreseen) / time;
        let rate = known * (1.0 + gain.clamp(CORRECTION.0, CORRECTION.1));
        (!self.is_refuted).then_some(Rates { rate, reference: known })
    }
}
