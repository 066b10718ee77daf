//! Where a rate shows long after it was set, the queue is foreseen: growth is limited by the rate that the link is known to serve,
//! until packets sent at more than that have shown no queue.

use super::super::path::View;
use super::super::quantity::{Rate, Span, Time};
use super::{CORRECTION, Rates, Situation};

/// Time until a change of the rate shows from which the queue is foreseen. Beside flows of a shorter loop, one that waits for its own
/// queue loses its share: measured beside 0.25 and 0.3 s (`docs/sluice-tried.md`).
const LONG: Span = Span::secs(0.4);
/// Queue beyond the one wanted that growth may make to ask whether the link serves more than is known.
const ASKED: Span = Span::secs(0.03);
/// Part of it that counts: packets for which it was foreseen and that have not waited show that the link does, and packets that have
/// waited for less show no fall.
const SEEN: Span = Span::secs(0.015);

/// Whether the queue has to be foreseen where a change of the rate shows after this time. L4S marks answer sooner than it.
pub(in super::super) fn is_due(loop_time: Span, view: &View) -> bool {
    loop_time > LONG && view.l4s.is_none()
}

/// The queue foreseen where the one that is seen is short: few packets that have waited show less than the link serves, and a long loop
/// makes much of it. From the queue wanted on, a rate of service that `has_fallen` is believed.
pub(super) fn of_short(s: &Situation<'_>, has_fallen: bool) -> Option<Span> {
    let most = if has_fallen { s.queue.wanted } else { s.queue.wanted + SEEN };
    s.foreseen.filter(|_| s.view.standing.delay < most)
}

/// Knowledge of the link ahead of its feedback.
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
        if foreseen > s.queue.wanted + SEEN {
            self.asked.get_or_insert(s.now);
        }
        self.is_refuted |= self.asked.is_some_and(|asked| s.newest > asked);
        let gain = (s.queue.wanted + ASKED - foreseen) / time;
        let rate = known * (1.0 + gain.clamp(CORRECTION.0, CORRECTION.1));
        (!self.is_refuted).then_some(Rates { rate, reference: known })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::queue::Queue;
    use super::super::super::sample::Standing;
    use super::*;

    const KNOWN: Rate = Rate::bps(1e6);

    /// A message at `now` s that reports packets up to `newest` s, with 20 ms of queue wanted and so many ms foreseen.
    fn situation(view: &View, now: f64, newest: f64, foreseen: f64) -> Situation<'_> {
        let (ms, at) = (|ms: f64| Span::secs(ms * 1e-3), Time::secs);
        Situation {
            now: at(now),
            newest: at(newest),
            interval: ms(100.0),
            used: 1.0,
            view,
            share: KNOWN,
            queue: Queue { expected: ms(foreseen), wanted: ms(20.0) },
            foreseen: Some(ms(foreseen)),
            is_lasting: false,
            is_starting: false,
            hint: None,
            answer: None,
        }
    }

    fn limit(f: &mut Foresight, s: &Situation<'_>) -> Option<f64> {
        f.limit(s, KNOWN, Span::secs(0.1)).map(|limit| limit.rate.as_bps())
    }

    #[test]
    fn growth_asks_for_a_queue_of_30_ms_and_is_free_once_packets_have_not_waited_in_it() {
        let (mut f, view) = (Foresight::default(), View::default());
        let near =
            |found: Option<f64>, expected: f64| assert!((found.expect("limited") - expected).abs() < 1.0, "{found:?}");
        near(limit(&mut f, &situation(&view, 10.0, 9.4, 0.0)), 1.2e6);
        near(limit(&mut f, &situation(&view, 10.1, 9.5, 34.0)), 1.16e6);
        near(limit(&mut f, &situation(&view, 10.2, 9.6, 60.0)), 0.9e6);
        // From 10.2 s on 35 ms were foreseen.
        near(limit(&mut f, &situation(&view, 10.8, 10.2, 60.0)), 0.9e6);
        assert_eq!(limit(&mut f, &situation(&view, 10.9, 10.3, 60.0)), None);
        assert_eq!(limit(&mut f, &situation(&view, 11.0, 10.4, 0.0)), None, "until the link is busy again");
    }

    #[test]
    fn nothing_is_foreseen_at_the_start_and_in_short_loops() {
        let (mut f, view) = (Foresight::default(), View::default());
        let s = situation(&view, 10.0, 9.4, 60.0);
        assert!(f.limit(&s, Rate::ZERO, Span::secs(0.1)).is_none(), "no rate is known");
        assert!(limit(&mut f, &Situation { is_starting: true, ..s }).is_none());
        assert!(limit(&mut f, &Situation { foreseen: None, ..s }).is_none());
        assert!(is_due(Span::secs(0.41), &view) && !is_due(Span::secs(0.4), &view));
    }

    #[test]
    fn a_queue_seen_beyond_the_one_wanted_is_believed() {
        let seen = |ms: f64, has_fallen: bool| {
            let view =
                View { standing: Standing { delay: Span::secs(ms * 1e-3), ..Standing::default() }, ..View::default() };
            of_short(&situation(&view, 10.0, 9.4, 60.0), has_fallen)
        };
        assert_eq!((seen(34.0, false), seen(36.0, false)), (Some(Span::secs(0.06)), None));
        assert_eq!((seen(19.0, true), seen(21.0, true)), (Some(Span::secs(0.06)), None), "a fall");
    }
}
