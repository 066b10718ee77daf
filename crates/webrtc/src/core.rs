//! A controller, the packets it waits for, and the two time lines between which this crate translates.

use crate::{Refused, Settings};
use rtc_interceptor::PacketReport;
use rtc_rtcp::transport_feedbacks::cc_feedback_report::Ecn as RtcEcn;
use std::time::{Duration, Instant};
use weir_cc::cue::{PacketResult, SentPacket, TransportFeedback};
use weir_cc::{Controller, Cue, Limits, Registry, ReportedPacket, Sender, SentHistory, Spec, Target, Transport};
use weir_units::{DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Packets not reported within this time leave the flight (`DEFAULT_PRUNE_HORIZON` of rtc-interceptor 0.21.1).
const GIVE_UP: TimeDelta = TimeDelta::from_secs(2);
/// Period of the reference time in transport-wide feedback: 2^24 times 64 ms.
const TWCC_PERIOD: Duration = Duration::from_millis(64 << 24);
/// Period of the report timestamp of RFC 8888: 2^16 s.
const CCFB_PERIOD: Duration = Duration::from_secs(1 << 16);

pub(crate) struct Core {
    controller: Sender,
    history: SentHistory,
    /// Number after that of the newest packet.
    next: u64,
    /// The first event: zero of the controller's time.
    epoch: Option<Instant>,
    now: Timestamp,
    rtt: Option<TimeDelta>,
    arrivals: Unwrapped,
    results: Vec<PacketResult>,
    reported: Vec<ReportedPacket>,
}

impl Core {
    /// A controller by name. Errors: an unknown name or parameter, or a controller that needs more than per-packet feedback.
    pub(crate) fn new(name: &str, settings: &Settings) -> Result<Self, Refused> {
        let registry = Registry::builtin();
        let setup = settings.setup();
        let pair = registry.make(name, &setup)?;
        if pair.receiver.is_some() || !registry.get(name).is_some_and(needs_feedback_alone) {
            let known = registry.specs().iter().filter(|s| needs_feedback_alone(s)).map(|s| s.name.clone());
            return Err(Refused::NeedsMore { name: name.into(), known: known.collect() });
        }
        Ok(Self {
            controller: pair.sender,
            history: SentHistory::new(),
            next: 0,
            epoch: None,
            now: setup.now,
            rtt: None,
            arrivals: Unwrapped::default(),
            results: Vec::new(),
            reported: Vec::new(),
        })
    }

    /// A packet leaves, the `number`-th of the history.
    pub(crate) fn on_sent(&mut self, number: u64, bytes: usize, at: Instant) {
        let now = self.advance(at);
        self.sent(number, bytes, now);
    }

    fn sent(&mut self, number: u64, bytes: usize, departure: Timestamp) {
        let size = DataSize::from_bytes(bytes as u64);
        let mut packet = SentPacket::media(departure, number, size);
        packet.bytes_in_flight = self.history.bytes_in_flight() + size;
        self.history.on_sent(&packet);
        self.next = number.saturating_add(1);
        self.controller.on_packet_sent(&packet);
    }

    /// Packets are reported, in the order of sending; `held` is how long the newest one waited for its report at the
    /// receiver, as far as known.
    pub(crate) fn on_reports(&mut self, at: Instant, reports: &[Report], held: Duration) {
        if reports.is_empty() {
            return;
        }
        let now = self.advance(at);
        let mut reported = std::mem::take(&mut self.reported);
        let mut results = std::mem::take(&mut self.results);
        reported.clear();
        for r in reports {
            let arrival = match r.arrival {
                Arrival::Lost => None,
                // Nothing to measure, and no loss: it leaves the flight after a while.
                Arrival::Unknown => continue,
                Arrival::At { clock, before, period } => {
                    let since = TimeDelta::from_nanos(i64::try_from(before.as_nanos()).unwrap_or(i64::MAX));
                    Some(self.arrivals.next(clock, period) - since)
                }
            };
            reported.push(ReportedPacket { sequence: r.number, arrival, ecn: ecn(r.ecn) });
        }
        self.history.give_up_before(now - GIVE_UP);
        self.history.resolve(reported.iter().copied(), &mut results);
        let held = TimeDelta::from_nanos(i64::try_from(held.as_nanos()).unwrap_or(0));
        let newest = results.iter().rfind(|r| r.arrival.is_some());
        let rtt = newest.map(|r| (now.saturating_since(r.departure) - held).max(TimeDelta::ZERO));
        self.rtt = rtt.or(self.rtt);
        let bytes_in_flight = self.history.bytes_in_flight();
        let feedback = TransportFeedback { now, packets: &results, bytes_in_flight, rtt };
        self.controller.on_cue(&Cue::TransportFeedback(feedback));
        (self.reported, self.results) = (reported, results);
        self.run_timers();
    }

    /// Takes packets as sent that were not shown when they left: their report has number, size and departure.
    pub(crate) fn catch_up(&mut self, at: Instant, reports: &[PacketReport]) {
        let now = self.advance(at);
        for r in reports {
            if r.id >= self.next {
                let departure = self.time(r.departure).min(now);
                self.sent(r.id, r.size, departure);
            }
        }
    }

    /// The time of [`Self::poll_timeout`] may have come.
    pub(crate) fn on_timeout(&mut self, at: Instant) {
        let now = self.advance(at);
        self.history.give_up_before(now - GIVE_UP);
        self.run_timers();
    }

    fn run_timers(&mut self) {
        // A timeout leads to a later one.
        while self.controller.poll_timeout().is_some_and(|(due, _)| due <= self.now) {
            self.controller.on_timeout(self.now);
        }
    }

    /// When to call [`Self::on_timeout`] next; later than the last event.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let (due, _) = self.controller.poll_timeout()?;
        let since_epoch = u64::try_from(due.as_nanos()).ok()?;
        self.epoch?.checked_add(Duration::from_nanos(since_epoch))
    }

    pub(crate) fn target(&self) -> Target {
        self.controller.target()
    }
    pub(crate) fn rtt(&self) -> Option<TimeDelta> {
        self.rtt
    }
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.controller.on_limits(limits, self.now);
    }
    pub(crate) fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.controller.metrics(out);
    }

    /// The controller's time never goes back, whatever the caller's does.
    fn advance(&mut self, at: Instant) -> Timestamp {
        self.epoch.get_or_insert(at);
        self.now = self.now.max(self.time(at));
        self.now
    }
    fn time(&self, at: Instant) -> Timestamp {
        let since = self.epoch.map_or(Duration::ZERO, |epoch| at.saturating_duration_since(epoch));
        Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// What feedback says about one packet.
#[derive(Clone, Copy)]
pub(crate) struct Report {
    /// Its number by the order of sending.
    pub(crate) number: u64,
    arrival: Arrival,
    ecn: RtcEcn,
}

#[derive(Clone, Copy)]
enum Arrival {
    Lost,
    /// Received, without a time.
    Unknown,
    /// `before` a time of the receiver's clock, which starts again after `period`.
    At {
        clock: Duration,
        before: Duration,
        period: Duration,
    },
}

impl Report {
    pub(crate) fn transport_wide(number: u64, arrived: bool, at: Option<Duration>) -> Self {
        let at = at.map(|clock| Arrival::At { clock, before: Duration::ZERO, period: TWCC_PERIOD });
        Self { number, arrival: Self::arrival(arrived, at), ecn: RtcEcn::NotEct }
    }
    /// `at` is the report's timestamp and the packet's offset before it.
    pub(crate) fn rfc8888(number: u64, arrived: bool, at: Option<(Duration, Duration)>, ecn: RtcEcn) -> Self {
        let at = at.map(|(clock, before)| Arrival::At { clock, before, period: CCFB_PERIOD });
        Self { number, arrival: Self::arrival(arrived, at), ecn }
    }
    fn arrival(arrived: bool, at: Option<Arrival>) -> Arrival {
        if arrived { at.unwrap_or(Arrival::Unknown) } else { Arrival::Lost }
    }
}

fn needs_feedback_alone(spec: &Spec) -> bool {
    spec.transport == Transport::Udp && spec.reports.is_none() && (spec.feedback.is_some() || !spec.adapts)
}

/// Arrivals on one time line, although both formats' clocks start again at zero.
#[derive(Default)]
struct Unwrapped {
    last: Option<Duration>,
    turns: u32,
}

impl Unwrapped {
    fn next(&mut self, arrival: Duration, period: Duration) -> RemoteTimestamp {
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

const fn ecn(e: RtcEcn) -> Ecn {
    match e {
        RtcEcn::NotEct => Ecn::NotEct,
        RtcEcn::Ect1 => Ecn::Ect1,
        RtcEcn::Ect0 => Ecn::Ect0,
        RtcEcn::Ce => Ecn::Ce,
    }
}
