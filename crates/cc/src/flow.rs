//! A controller with the packets that it waits for: a stack's packets and feedback become the controller's events and
//! cues.
//!
//! Every stack with packets and feedback of its own needs this loop, whatever names these have there:
//!
//! | event of the stack | call |
//! |---|---|
//! | a packet leaves | [`Flow::on_sent`] |
//! | feedback arrives | [`Flow::on_reports`] |
//! | the time of [`Flow::poll_timeout`] has come | [`Flow::on_timeout`] |
//! | a frame is to be encoded, or a packet sent | [`Flow::target`], [`Flow::has_room_for`], [`Flow::poll_probe`] |

pub(crate) mod history;
pub(crate) mod one_way_delay;
pub(crate) mod pacer;

use crate::cue::{Cue, PacketResult, QueueState, SentPacket, TransportFeedback};
use crate::tunable::SetupError;
use crate::tunable::hint;
use crate::{
    Controller, HistoryCounters, Limits, ProbeCluster, Registry, ReportedPacket, Sender, SentHistory, Setup, Spec,
    Target, TimeoutReason, Transport,
};
use core::fmt;
use core::time::Duration;
use weir_units::{DataSize, RemoteTimestamp, TimeDelta, Timestamp};

/// Packets without a report leave the flight after this time, so that a window never closes permanently (as in
/// `weir-session`).
pub const GIVE_UP_AFTER: TimeDelta = TimeDelta::from_secs(3);
/// Most timeouts in one call. Each leads to a later one, so that few are due at a time.
const MAX_TIMEOUTS: usize = 1_024;

/// A controller's sender half, the packets in flight and the round-trip time.
pub struct Flow {
    controller: Sender,
    history: SentHistory,
    give_up_after: TimeDelta,
    /// Number after that of the newest packet.
    next: u64,
    now: Timestamp,
    rtt: Option<TimeDelta>,
    /// Reused between reports.
    results: Vec<PacketResult>,
}

impl Flow {
    /// A flow that begins at `now`.
    pub fn new(controller: impl Into<Sender>, now: Timestamp) -> Self {
        Self {
            controller: controller.into(),
            history: SentHistory::new(),
            give_up_after: GIVE_UP_AFTER,
            next: 0,
            now,
            rtt: None,
            results: Vec::new(),
        }
    }

    /// A flow of a controller of `registry` that needs per-packet feedback alone.
    ///
    /// # Errors
    /// An unknown name or parameter, a value outside its range, or a controller that needs more: a receiver half, receiver
    /// reports or another transport.
    pub fn by_name(registry: &Registry, name: &str, setup: &Setup) -> Result<Self, Refused> {
        let known = || {
            let usable = registry.specs().filter(|s| needs_feedback_alone(s));
            usable.map(|s| s.name.clone()).collect::<Vec<_>>()
        };
        let pair = registry.make(name, setup).map_err(|e| match e {
            SetupError::UnknownController { name } => Refused::Unknown { name, known: known() },
            other => Refused::Setup(other),
        })?;
        if pair.receiver.is_some() || !registry.get(name).is_some_and(needs_feedback_alone) {
            return Err(Refused::NeedsMore { name: name.into(), known: known() });
        }
        Ok(Self::new(pair.sender, setup.now))
    }

    /// Sets after which time packets without a report leave the flight; [`GIVE_UP_AFTER`] at first.
    #[must_use]
    pub fn giving_up_after(self, time: TimeDelta) -> Self {
        Self { give_up_after: time, ..self }
    }

    /// The controller's time, which does not go back: an earlier time counts as that of the last event.
    pub fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.now
    }

    /// A packet has been sent. Its number is [`SentPacket::sequence`], [`Self::next`] unless packets went unseen; the bytes in
    /// flight are filled in.
    pub fn on_sent(&mut self, packet: SentPacket) {
        let now = self.advance(packet.now);
        let mut packet = SentPacket { now, ..packet };
        self.history.on_sent(&packet);
        packet.bytes_in_flight = self.history.bytes_in_flight();
        self.next = packet.sequence.saturating_add(1);
        self.controller.on_packet_sent(&packet);
    }

    /// Packets are reported, in the order of sending. `held` gives the time from the newest packet's arrival to the report,
    /// as far as known.
    ///
    /// Lost packets are reported too, with no arrival: one that is left out is unknown, not lost. It leaves the flight
    /// only after [`Self::giving_up_after`], and the controller does not see the loss.
    pub fn on_reports(
        &mut self,
        now: Timestamp,
        reported: &[ReportedPacket],
        held: impl FnOnce(&PacketResult) -> TimeDelta,
    ) {
        let now = self.advance(now);
        self.history.give_up_before(now - self.give_up_after);
        self.history.resolve(reported.iter().copied(), &mut self.results);
        let newest = self.results.iter().rfind(|r| r.arrival.is_some());
        let rtt = newest.map(|r| (now.saturating_since(r.departure) - held(r)).max(TimeDelta::from_nanos(1)));
        self.rtt = rtt.or(self.rtt);
        let bytes_in_flight = self.history.bytes_in_flight();
        let feedback = TransportFeedback { now, packets: &self.results, bytes_in_flight, rtt };
        self.controller.on_cue(&Cue::TransportFeedback(feedback));
    }

    /// Any other cue.
    pub fn on_cue(&mut self, cue: &Cue<'_>) {
        self.controller.on_cue(cue);
    }
    /// As [`Controller::on_queue`].
    pub fn on_queue(&mut self, queue: &QueueState) {
        self.controller.on_queue(queue);
    }
    /// As [`Controller::on_limits`].
    pub fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        let now = self.advance(now);
        self.controller.on_limits(limits, now);
    }

    /// Runs the timeouts that are due.
    pub fn on_timeout(&mut self, now: Timestamp) {
        let now = self.advance(now);
        self.history.give_up_before(now - self.give_up_after);
        for _ in 0..MAX_TIMEOUTS {
            if self.controller.poll_timeout().is_none_or(|(due, _)| due > now) {
                break;
            }
            self.controller.on_timeout(now);
        }
    }
    /// When to call [`Self::on_timeout`] next, and why.
    pub fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.controller.poll_timeout()
    }
    /// As [`Controller::poll_probe`].
    pub fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> {
        let now = self.advance(now);
        self.controller.poll_probe(now)
    }

    /// As [`Controller::target`].
    pub fn target(&self) -> Target {
        self.controller.target()
    }
    /// As [`Controller::metrics`].
    pub fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.controller.metrics(out);
    }
    /// Number of the next packet.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// The last round-trip time; `None` before the first.
    pub fn rtt(&self) -> Option<TimeDelta> {
        self.rtt
    }
    /// A round-trip time measured by other means, such as receiver reports.
    pub fn set_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = Some(rtt);
    }
    /// Bytes sent and neither reported nor given up.
    pub fn bytes_in_flight(&self) -> DataSize {
        self.history.bytes_in_flight()
    }
    /// Whether the controller's window, if it has one, lets a packet of this size into the flight. An empty flight has room for any: a
    /// window can be smaller than a packet (the first one of SCReAM version 2, 700 bytes).
    pub fn has_room_for(&self, size: DataSize) -> bool {
        let in_flight = self.bytes_in_flight();
        in_flight.is_zero() || self.target().window.is_none_or(|window| in_flight + size <= window)
    }
    /// Counters of feedback that does not match what was sent.
    pub fn counters(&self) -> HistoryCounters {
        self.history.counters()
    }
}

/// Whether per-packet feedback over UDP is all that a controller needs of the other end.
fn needs_feedback_alone(spec: &Spec) -> bool {
    let suffices = spec.feedback.is_some() || !spec.adapts;
    spec.transport == Transport::Udp && spec.reports.is_none() && suffices && !spec.foresees
}

/// Why a controller cannot have a [`Flow`] by name.
#[derive(Clone, PartialEq, Debug)]
pub enum Refused {
    /// No controller has this name.
    Unknown {
        /// The name.
        name: String,
        /// The controllers that can be had.
        known: Vec<String>,
    },
    /// A parameter.
    Setup(SetupError),
    /// It needs more than per-packet feedback: a receiver half, receiver reports or another transport.
    NeedsMore {
        /// Its name.
        name: String,
        /// The controllers that need no more.
        known: Vec<String>,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known } => {
                let hint = hint(name, known.iter().map(String::as_str));
                write!(f, "no controller is named `{name}`{hint}")
            }
            Self::Setup(SetupError::UnknownParam { controller, name, known }) if !known.is_empty() => {
                let hint = hint(name, known.iter().copied());
                write!(f, "controller `{controller}` has no parameter `{name}`{hint}")
            }
            Self::Setup(e) => e.fmt(f),
            Self::NeedsMore { name, known } => {
                write!(f, "`{name}` needs more than per-packet feedback; these do not: {}", known.join(", "))
            }
        }
    }
}

impl core::error::Error for Refused {}

/// Arrivals on one time line, although the clocks in feedback start again at zero after their period.
#[derive(Clone, Debug, Default)]
pub struct ArrivalClock {
    last: Option<Duration>,
    turns: u32,
}

impl ArrivalClock {
    /// Period of the reference time in transport-wide feedback: 2^24 times 64 ms
    /// (draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.1).
    pub const TRANSPORT_WIDE: Duration = Duration::from_millis(64 << 24);
    /// Period of the report timestamp of RFC 8888, section 3.1: 2^16 s.
    pub const RFC_8888: Duration = Duration::from_secs(1 << 16);

    /// The next arrival: nearest to the one before, by a clock that starts again after `period`.
    pub fn next(&mut self, arrival: Duration, period: Duration) -> RemoteTimestamp {
        let half = period / 2;
        if let Some(last) = self.last {
            if arrival + half < last {
                self.turns = self.turns.saturating_add(1);
            } else if last + half < arrival {
                self.turns = self.turns.saturating_sub(1);
            }
        }
        self.last = Some(arrival);
        let total = period.saturating_mul(self.turns).saturating_add(arrival);
        RemoteTimestamp::from_nanos(i64::try_from(total.as_nanos()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{DataRate, Ecn};

    fn setup() -> Setup {
        Setup {
            limits: Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_mbps(10) },
            start_rate: DataRate::from_kbps(300),
            now: Timestamp::ZERO,
            seed: 1,
            params: Vec::new(),
        }
    }

    #[test]
    fn refusals_name_the_nearest_or_all_that_can_be_had() {
        let refused = |name: &str, params: &[(&str, f64)]| {
            let params = params.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
            Flow::by_name(&Registry::builtin(), name, &Setup { params, ..setup() }).err().expect("refused").to_string()
        };
        assert_eq!(refused("nadda", &[]), "no controller is named `nadda`; did you mean `nada`?");
        assert!(refused("q", &[]).starts_with("no controller is named `q`; there are "));
        assert!(refused("gcc-remb", &[]).contains("`gcc-remb` needs more than per-packet feedback; these do not: "));
        assert!(refused("gcc", &[("bta", 0.8)]).starts_with("controller `gcc` has no parameter `bta`; did you mean `"));
    }

    #[test]
    fn packets_reports_and_times_become_one_round_trip() {
        let at = Timestamp::from_millis;
        let mut flow = Flow::by_name(&Registry::builtin(), "gcc", &setup()).expect("made");
        for (n, ms) in [(0, 10), (1, 15), (2, 12)] {
            flow.on_sent(SentPacket::media(at(ms), n, DataSize::from_bytes(1_000)));
        }
        assert_eq!((flow.next(), flow.bytes_in_flight()), (3, DataSize::from_bytes(3_000)));
        let report = |sequence, arrival: Option<i64>| ReportedPacket {
            sequence,
            arrival: arrival.map(RemoteTimestamp::from_millis),
            ecn: Ecn::NotEct,
        };
        flow.on_reports(at(70), &[report(0, Some(900)), report(1, None), report(2, Some(905))], |newest| {
            // The third one's time went back, and counts as that of the second.
            assert_eq!(newest.departure, at(15));
            TimeDelta::from_millis(5)
        });
        assert_eq!((flow.rtt(), flow.bytes_in_flight()), (Some(TimeDelta::from_millis(50)), DataSize::ZERO));
        flow.on_timeout(at(5_000));
        assert!(flow.poll_timeout().is_none_or(|(due, _)| due > at(5_000)));
    }

    #[test]
    fn an_empty_flight_has_room_for_a_packet_larger_than_the_window() {
        let mut flow = Flow::by_name(&Registry::builtin(), "scream2", &setup()).expect("made");
        let size = DataSize::from_bytes(1_000);
        assert!(flow.target().window.is_some_and(|w| w < size) && flow.has_room_for(size));
        flow.on_sent(SentPacket::media(Timestamp::ZERO, flow.next(), size));
        let window = flow.target().window.expect("has one");
        assert_eq!(flow.has_room_for(size), size + size <= window);
        assert!(!flow.has_room_for(window));
    }

    #[test]
    fn arrivals_go_on_past_the_period_and_back() {
        let mut clock = ArrivalClock::default();
        let mut next = |ms| clock.next(Duration::from_millis(ms), Duration::from_millis(1_000)).as_nanos() / 1_000_000;
        assert_eq!([next(900), next(10), next(990), next(20), next(500)], [900, 1_010, 990, 1_020, 1_500]);
    }
}
