//! Whether a path answers.
//!
//! A path on which packets are sent and of which nothing is reported is suspected, and carries no media until something
//! is. If nothing comes for longer, the path has failed. It is then checked at short intervals
//! (`endpoint::path_checks`), and carries media again once it has answered for a while.

use weir_units::{TimeDelta, Timestamp};

/// Weights of a new sample in the mean response time and in its deviation (RFC 6298, section 2).
const MEAN_WEIGHT: f64 = 1.0 / 8.0;
const DEVIATION_WEIGHT: f64 = 1.0 / 4.0;
/// Factor on the deviation (RFC 6298, section 2), and the least margin beyond the mean with feedback by packet
/// (calibrated: all controllers have it sent at least every 100 ms while media arrive).
const DEVIATIONS: i64 = 4;
pub(super) const LEAST_MARGIN: TimeDelta = TimeDelta::from_millis(100);
/// Without feedback by packet, the least margin (calibrated: one report may be lost, at intervals of a second that RFC 3550
/// randomises by half), and in mean response times.
const REPORT_MARGIN: TimeDelta = TimeDelta::from_secs(3);
const REPORTS: i64 = 2;
/// A suspected path has failed after this time (calibrated: longer than the losses of a queue that overflows).
const FAILED_AFTER: TimeDelta = TimeDelta::from_millis(500);
/// The limit before the first response, as the initial retransmission timeout of RFC 6298.
const FIRST_LIMIT: TimeDelta = TimeDelta::from_secs(1);
/// Time for which a failed path must answer before it carries media again, doubled with each failure up to the maximum
/// (calibrated: two checks; a path that flaps must not be used in every gap).
const LEAST_HOLD: TimeDelta = TimeDelta::from_millis(500);
const MAX_HOLD: TimeDelta = TimeDelta::from_secs(32);
/// A path that answers checks, and then none for this long, has failed again (calibrated: four checks).
const LEAST_SILENCE: TimeDelta = TimeDelta::from_secs(1);
/// A path that has worked for this long is as good as one that never failed (calibrated).
const FORGET_AFTER: TimeDelta = TimeDelta::from_secs(60);

/// Liveness of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Liveness {
    state: State,
    /// When the first packet was sent since the last response.
    unanswered: Option<Timestamp>,
    /// Mean and deviation of the time from a packet to the next response.
    response: Option<(TimeDelta, TimeDelta)>,
    /// Failures of late, and when the path began to work after the last one.
    failures: u32,
    live_since: Timestamp,
    /// When it answered last.
    answered: Timestamp,
    /// The longest time that a packet is left unanswered.
    limit: TimeDelta,
    /// Whether arrivals are reported by packet, not in regular reports alone.
    by_packet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Carries media.
    #[default]
    Live,
    /// Has not answered in time, since then.
    Suspected(Timestamp),
    /// Has not answered for long.
    Failed,
    /// Answers again, and carries media once it answers at this time or later. Checks are answered all the time; the
    /// other end may know none, and send its reports alone.
    Held { until: Timestamp, by_checks: bool },
}

/// Evidence that a path delivers packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Response {
    /// A report of what has arrived there.
    Report,
    /// The answer to a check.
    Check,
}

impl Liveness {
    /// Of a path whose arrivals are reported by packet, or in regular reports alone.
    pub(super) fn new(by_packet: bool) -> Self {
        let mut new = Self { by_packet, ..Self::default() };
        new.limit = new.limit();
        new
    }

    /// An RTP packet was sent on it.
    pub(super) fn on_sent(&mut self, now: Timestamp) {
        self.unanswered.get_or_insert(now);
    }

    /// The other end has received something sent on it since the last response. Returns whether it can carry media
    /// again.
    pub(super) fn on_response(&mut self, response: Response, now: Timestamp) -> bool {
        self.give_up_hold(now);
        self.answered = now;
        if response == Response::Report
            && matches!(self.state, State::Live | State::Suspected(_))
            && let Some(sent) = self.unanswered.take()
        {
            self.take_sample(now.saturating_since(sent));
        }
        match self.state {
            State::Live => false,
            // A check proves little for media, which are larger and more.
            State::Suspected(_) if response == Response::Check => false,
            State::Suspected(_) => {
                self.state = State::Live;
                true
            }
            State::Failed => {
                self.state = State::Held { until: now + self.hold(), by_checks: response == Response::Check };
                false
            }
            State::Held { until, .. } if now < until => false,
            State::Held { .. } => {
                (self.state, self.live_since, self.unanswered) = (State::Live, now, None);
                true
            }
        }
    }

    fn take_sample(&mut self, sample: TimeDelta) {
        self.response = Some(match self.response {
            None => (sample, sample / 2),
            Some((mean, deviation)) => {
                let off = (sample - mean).abs();
                let deviation = deviation + (off - deviation).mul_f64(DEVIATION_WEIGHT);
                (mean + (sample - mean).mul_f64(MEAN_WEIGHT), deviation)
            }
        });
        self.limit = self.limit();
    }

    /// A path that answered checks has to go on doing so.
    fn give_up_hold(&mut self, now: Timestamp) {
        if let State::Held { by_checks: true, .. } = self.state
            && now.saturating_since(self.answered) > LEAST_SILENCE
        {
            self.state = State::Failed;
        }
    }

    /// Whether the path carries media.
    pub(super) fn is_live(&mut self, now: Timestamp) -> bool {
        match self.state {
            State::Live if self.unanswered.is_some_and(|at| now.saturating_since(at) > self.limit) => {
                self.state = State::Suspected(now);
            }
            State::Suspected(since) if now.saturating_since(since) >= FAILED_AFTER => {
                if since.saturating_since(self.live_since) >= FORGET_AFTER {
                    self.failures = 0;
                }
                self.failures = self.failures.saturating_add(1);
                (self.state, self.unanswered) = (State::Failed, None);
            }
            State::Held { .. } => self.give_up_hold(now),
            _ => {}
        }
        self.state == State::Live
    }

    /// Whether the path has failed, or has just begun to answer again: it is to be checked.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed | State::Held { .. })
    }

    /// When a live path is suspected if nothing is reported.
    pub(super) fn suspected_at(&self) -> Timestamp {
        self.unanswered.map_or(Timestamp::MAX, |at| at + self.limit)
    }

    fn limit(&self) -> TimeDelta {
        let Some((mean, deviation)) = self.response else { return FIRST_LIMIT * if self.by_packet { 1 } else { 5 } };
        let least = if self.by_packet { LEAST_MARGIN } else { (mean * REPORTS).max(REPORT_MARGIN) };
        mean + (deviation * DEVIATIONS).max(least)
    }

    fn hold(&self) -> TimeDelta {
        let doublings = self.failures.saturating_sub(1).min(6);
        (LEAST_HOLD * (1 << doublings)).min(MAX_HOLD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Packets every 10 ms, answered after 50 ms in reports every 50 ms, until `end`.
    fn answered(l: &mut Liveness, from: i64, end: i64) {
        for at in (from..end).step_by(10) {
            l.on_sent(ms(at));
            if at % 50 == 0 && at >= from + 50 {
                l.on_response(Response::Report, ms(at));
            }
            assert!(l.is_live(ms(at)), "at {at} ms");
        }
    }
    fn fail(l: &mut Liveness, from: i64) {
        l.on_sent(ms(from));
        assert!(!l.is_live(ms(from + 1_100)));
        assert!(!l.is_live(ms(from + 2_000)));
    }

    #[test]
    fn a_path_that_stops_answering_is_left_soon() {
        let mut l = Liveness::new(true);
        answered(&mut l, 0, 5_000);
        let left = (5_000..6_000).step_by(10).find(|at| {
            l.on_sent(ms(*at));
            !l.is_live(ms(*at))
        });
        assert!(left.is_some_and(|at| at < 5_250), "{left:?}");
        // A late report clears it at once.
        let left = left.expect("left");
        assert!(l.on_response(Response::Report, ms(left + 100)));
        assert!(l.is_live(ms(left + 100)));
    }

    #[test]
    fn a_lost_report_is_no_silence() {
        let mut l = Liveness::new(false);
        for second in 0..60 {
            for at in (0..1_000).step_by(100) {
                let now = ms(second * 1_000 + at);
                l.on_sent(now);
                assert!(l.is_live(now), "at {now}");
            }
            if second % 7 != 6 {
                l.on_response(Response::Report, ms(second * 1_000 + 999));
            }
        }
        l.on_sent(ms(60_000));
        assert!(!l.is_live(ms(68_000)));
    }

    #[test]
    fn it_is_used_again_when_it_has_answered_for_a_while() {
        let mut l = Liveness::new(true);
        answered(&mut l, 0, 1_000);
        fail(&mut l, 1_000);
        assert!(!l.on_response(Response::Report, ms(5_000)));
        assert!(!l.on_response(Response::Report, ms(5_400)));
        assert!(!l.is_live(ms(5_400)) && l.has_failed());
        assert!(l.on_response(Response::Report, ms(5_500)));
        assert!(l.is_live(ms(5_500)) && !l.has_failed());
    }

    #[test]
    fn reports_alone_may_be_far_apart_but_checks_must_be_answered_all_the_time() {
        for (response, at_once) in [(Response::Report, true), (Response::Check, false)] {
            let mut l = Liveness::new(true);
            answered(&mut l, 0, 1_000);
            fail(&mut l, 1_000);
            assert!(!l.on_response(response, ms(5_000)));
            assert!(!l.is_live(ms(6_500)));
            assert_eq!(l.on_response(response, ms(6_500)), at_once, "{response:?}");
            assert!(at_once || !l.on_response(response, ms(6_900)) && l.on_response(response, ms(7_000)));
            assert!(l.is_live(ms(7_000)));
        }
    }

    #[test]
    fn a_check_does_not_clear_a_path_whose_media_are_not_answered() {
        let mut l = Liveness::new(true);
        answered(&mut l, 0, 1_000);
        l.on_sent(ms(1_000));
        assert!(!l.is_live(ms(1_400)));
        assert!(!l.on_response(Response::Check, ms(1_500)));
        assert!(!l.is_live(ms(1_950)) && l.has_failed());
    }

    #[test]
    fn each_failure_doubles_the_wait() {
        let mut l = Liveness::new(true);
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..8 {
            answered(&mut l, now, now + 1_000);
            fail(&mut l, now + 1_000);
            now += 3_000;
            l.on_response(Response::Report, ms(now));
            let heard = now;
            while !l.on_response(Response::Report, ms(now)) {
                now += 100;
            }
            waits.push((now - heard) / 500);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 64]);
        // After a minute without failure the first wait counts again.
        answered(&mut l, now, now + 60_000);
        fail(&mut l, now + 60_000);
        now += 62_000;
        assert!(!l.on_response(Response::Report, ms(now)));
        assert!(l.on_response(Response::Report, ms(now + 500)));
    }

    #[test]
    fn a_path_without_packets_is_not_blamed() {
        let mut l = Liveness::new(true);
        answered(&mut l, 0, 1_000);
        l.on_response(Response::Report, ms(1_050));
        assert!(l.is_live(ms(100_000)));
    }
}
