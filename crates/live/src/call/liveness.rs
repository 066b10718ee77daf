//! Whether the other end is alive, and why a call has ended.

use serde::Serialize;
use weir_cc::circuit_breaker::{Reason, Trip};
use weir_units::{TimeDelta, Timestamp};

/// Time for which all packets may fail authentication before that is reported.
const UNAUTHENTIC: TimeDelta = TimeDelta::from_millis(1_500);
/// Number of times that the circuit breaker's congestion and usability rules may stop the media; the next one ends the
/// call.
const MAX_STOPS: u32 = 3;

/// Why a call has ended.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EndReason {
    /// Its time was over.
    Duration,
    /// The flag was raised.
    Stopped,
    /// The media ended.
    MediaEnded,
    /// The other end sent a BYE (RFC 3550, section 6.6).
    Goodbye {
        /// The reason in its BYE, if any.
        reason: Option<String>,
    },
    /// Nothing of the call was received for too long.
    Silence {
        /// For how long.
        seconds: f64,
        /// Packets that failed SRTP's authentication meanwhile.
        unauthentic: u64,
    },
    /// The circuit breaker stopped the media too often (RFC 8083).
    CircuitBreaker {
        /// Its rule.
        rule: &'static str,
    },
    /// The DCCP connection has ended.
    Connection,
}

impl EndReason {
    /// Whether the call ended without either end's intention.
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::Silence { .. } | Self::CircuitBreaker { .. })
    }
}

impl std::fmt::Display for EndReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Duration => f.write_str("its time was over"),
            Self::Stopped => f.write_str("stopped here"),
            Self::MediaEnded => f.write_str("the media ended"),
            Self::Goodbye { reason: None } => f.write_str("the other end ended the call"),
            Self::Goodbye { reason: Some(reason) } => write!(f, "the other end ended the call: {reason}"),
            Self::Silence { seconds, unauthentic: 0 } => {
                write!(f, "nothing was received from the other end for {seconds:.1} s")
            }
            Self::Silence { seconds, unauthentic } => {
                let what = "packets failed SRTP authentication: the ends' keys differ, or a stranger sends";
                write!(f, "nothing authentic was received for {seconds:.1} s; {unauthentic} {what}")
            }
            Self::CircuitBreaker { rule } => write!(f, "the circuit breaker (RFC 8083) stopped the media: {rule}"),
            Self::Connection => f.write_str("the DCCP connection ended"),
        }
    }
}

/// Events for a call's operator while it runs.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Notice {
    /// Packets fail SRTP's authentication, and none has passed it.
    Unauthentic {
        /// Number of packets so far.
        packets: u64,
    },
    /// The circuit breaker has stopped the media; RTCP continues.
    MediaStopped {
        /// Its rule.
        rule: &'static str,
    },
    /// Media is sent again.
    MediaRestarted,
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unauthentic { packets } => {
                write!(
                    f,
                    "{packets} packets failed SRTP authentication and none passed: do both ends have the same keys?"
                )
            }
            Self::MediaStopped { rule } => write!(f, "the circuit breaker (RFC 8083) has stopped the media: {rule}"),
            Self::MediaRestarted => f.write_str("media are sent again"),
        }
    }
}

fn rule(reason: Reason) -> &'static str {
    match reason {
        Reason::RtcpTimeout => "no RTCP was received",
        Reason::MediaTimeout => "the other end reports no media received",
        Reason::Congestion => "the rate is more than ten times that of TCP",
        Reason::MediaUsability => "the received media is unusable",
    }
}

/// Counts of packets from the other end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Liveness {
    heard: Option<Timestamp>,
    has_heard: bool,
    unauthentic: u64,
    /// When the first packet failed, before any passed, and whether that was reported.
    failing: Option<(Timestamp, bool)>,
    stopped: Option<Trip>,
    stops: u32,
}

/// The action that [`Liveness::look`] requests about the circuit breaker.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Step {
    None,
    Notice(Notice),
    /// Resumes media, if the breaker allows it.
    Restart,
    End(EndReason),
}

impl Liveness {
    /// The call begins: the limit of the other end's silence starts here.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.heard.get_or_insert(now);
    }
    /// A packet of the call was received, authenticated if it is protected.
    pub(super) fn on_packet(&mut self, now: Timestamp) {
        (self.heard, self.has_heard, self.failing) = (Some(now), true, None);
    }
    /// A packet failed authentication.
    pub(super) fn on_unauthentic(&mut self, now: Timestamp) {
        self.unauthentic += 1;
        if !self.has_heard {
            self.failing.get_or_insert((now, false));
        }
    }
    pub(super) fn on_restarted(&mut self) {
        self.stopped = None;
    }

    /// The current state. `silence` is the maximum time without a received packet, `trip` the circuit breaker's state.
    pub(super) fn look(&mut self, now: Timestamp, silence: Option<TimeDelta>, trip: Option<Trip>) -> Step {
        let quiet = self.heard.map_or(TimeDelta::ZERO, |heard| now.saturating_since(heard));
        if silence.is_some_and(|limit| quiet >= limit) {
            let unauthentic = self.unauthentic;
            return Step::End(EndReason::Silence { seconds: quiet.as_secs_f64(), unauthentic });
        }
        if let Some((since, reported @ false)) = &mut self.failing
            && now.saturating_since(*since) >= UNAUTHENTIC
        {
            *reported = true;
            return Step::Notice(Notice::Unauthentic { packets: self.unauthentic });
        }
        match (trip, self.stopped) {
            (Some(trip), None) => {
                self.stopped = Some(trip);
                // A path that carries nothing may recover any number of times; a congested one may not.
                let is_congested = matches!(trip.reason, Reason::Congestion | Reason::MediaUsability);
                self.stops += u32::from(is_congested);
                if self.stops > MAX_STOPS {
                    return Step::End(EndReason::CircuitBreaker { rule: rule(trip.reason) });
                }
                Step::Notice(Notice::MediaStopped { rule: rule(trip.reason) })
            }
            (Some(trip), Some(_)) if now >= trip.earliest_restart() && self.heard.is_some_and(|h| h > trip.at) => {
                Step::Restart
            }
            _ => Step::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Option<TimeDelta> = Some(TimeDelta::from_secs(15));

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn silence_counts_from_the_begin_and_from_each_packet() {
        let mut l = Liveness::default();
        l.begin(at(1_000));
        assert_eq!(l.look(at(15_999), LIMIT, None), Step::None);
        l.on_packet(at(15_999));
        assert_eq!(l.look(at(30_998), LIMIT, None), Step::None);
        assert_eq!(l.look(at(90_000), None, None), Step::None);
        let Step::End(end) = l.look(at(30_999), LIMIT, None) else { panic!() };
        assert!(matches!(end, EndReason::Silence { seconds: 14.999..15.001, unauthentic: 0 }), "{end:?}");
        assert!(end.is_failure() && end.to_string().contains("for 15.0 s"), "{end}");
    }

    #[test]
    fn failing_authentication_is_reported_once_and_only_while_nothing_passes() {
        let mut l = Liveness::default();
        l.begin(at(0));
        (0..40).for_each(|i| l.on_unauthentic(at(100 + i)));
        assert_eq!(l.look(at(1_599), LIMIT, None), Step::None);
        assert_eq!(l.look(at(1_600), LIMIT, None), Step::Notice(Notice::Unauthentic { packets: 40 }));
        assert_eq!(l.look(at(1_601), LIMIT, None), Step::None);
        let Step::End(end) = l.look(at(15_000), LIMIT, None) else { panic!() };
        assert!(end.to_string().contains("40 packets failed SRTP authentication"), "{end}");
        // A stranger beside a working call.
        let mut l = Liveness::default();
        l.on_packet(at(0));
        l.on_unauthentic(at(10));
        assert_eq!(l.look(at(5_000), LIMIT, None), Step::None);
    }

    /// Random events: at one instant a few looks lead to one that asks for nothing, or to the call's end, and the end stays.
    #[test]
    fn no_instant_has_more_than_a_few_steps() {
        let mut state = 1u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut ends, mut restarts) = (0, 0);
        for _ in 0..2_000 {
            let (mut l, mut now, mut trip) = (Liveness::default(), at(0), None);
            for _ in 0..50 {
                now += TimeDelta::from_millis(random(2_000).cast_signed());
                match random(6) {
                    0 => l.begin(now),
                    1 | 2 => l.on_packet(now),
                    3 => l.on_unauthentic(now),
                    4 => {
                        let reason = [Reason::Congestion, Reason::RtcpTimeout][random(2) as usize];
                        let pause = TimeDelta::from_millis(random(3_000).cast_signed());
                        trip = Some(Trip { reason, at: now, sending_rate: None, tcp_rate: None, pause });
                    }
                    _ => trip = None,
                }
                for looks in 0.. {
                    assert!(looks <= 3, "{l:?} at {now}");
                    match l.look(now, LIMIT, trip) {
                        Step::None => break,
                        Step::Notice(_) => {}
                        Step::Restart => {
                            // The breaker allows it; while it does not, the call goes on and asks at its next turn.
                            l.on_restarted();
                            (trip, restarts) = (None, restarts + 1);
                        }
                        end @ Step::End(EndReason::Silence { .. }) => {
                            assert_eq!(l.look(now, LIMIT, trip), end);
                            ends += 1;
                            break;
                        }
                        Step::End(_) => {
                            ends += 1;
                            break;
                        }
                    }
                }
            }
        }
        assert!(ends > 100 && restarts > 100, "{ends} ends, {restarts} restarts");
    }

    #[test]
    fn media_restart_after_the_pause_where_the_other_end_is_heard_and_not_without_end() {
        let trip = |ms, reason| Trip {
            reason,
            at: at(ms),
            sending_rate: None,
            tcp_rate: None,
            pause: TimeDelta::from_secs(2),
        };
        let mut l = Liveness::default();
        l.begin(at(0));
        for n in 0..=3 {
            let t = trip(4_000 * n, Reason::Congestion);
            let now = |ms| at(4_000 * n + ms);
            let step = l.look(now(0), LIMIT, Some(t));
            if n == 3 {
                assert!(matches!(step, Step::End(EndReason::CircuitBreaker { .. })), "{step:?}");
                break;
            }
            assert!(matches!(step, Step::Notice(Notice::MediaStopped { .. })), "{step:?}");
            assert_eq!(l.look(now(2_500), LIMIT, Some(t)), Step::None, "nothing was heard since");
            l.on_packet(now(2_600));
            assert_eq!(l.look(now(2_700), LIMIT, Some(t)), Step::Restart);
            l.on_restarted();
            assert_eq!(l.look(now(2_800), LIMIT, None), Step::None);
        }
        let mut l = Liveness::default();
        for n in 0..10 {
            let t = trip(4_000 * n, Reason::RtcpTimeout);
            assert!(matches!(l.look(at(4_000 * n), None, Some(t)), Step::Notice(_)), "a path may come back any time");
            l.on_restarted();
        }
    }
}
