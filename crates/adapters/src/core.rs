//! A controller, the packets it waits for, and the two time lines between which this crate translates.

use crate::{Refused, Settings};
use rtc_interceptor::PacketReport;
use rtc_rtcp::transport_feedbacks::cc_feedback_report::Ecn as RtcEcn;
use std::time::{Duration, Instant};
use weir_cc::cue::SentPacket;
use weir_cc::flow::ArrivalClock;
use weir_cc::{Flow, Limits, Registry, ReportedPacket, Target};
use weir_units::{DataSize, Ecn, TimeDelta, Timestamp};

/// Packets not reported within this time leave the flight (`DEFAULT_PRUNE_HORIZON` of rtc-interceptor 0.21.1).
const GIVE_UP: TimeDelta = TimeDelta::from_secs(2);

pub(crate) struct Core {
    flow: Flow,
    /// The first event: zero of the controller's time.
    epoch: Option<Instant>,
    arrivals: ArrivalClock,
    reported: Vec<ReportedPacket>,
}

impl Core {
    /// A controller by name. Errors: an unknown name or parameter, or a controller that needs more than per-packet feedback.
    pub(crate) fn new(name: &str, settings: &Settings) -> Result<Self, Refused> {
        let flow = Flow::by_name(&Registry::builtin(), name, &settings.setup())?.giving_up_after(GIVE_UP);
        Ok(Self { flow, epoch: None, arrivals: ArrivalClock::default(), reported: Vec::new() })
    }

    /// A packet leaves, the `number`-th of the history.
    pub(crate) fn on_sent(&mut self, number: u64, bytes: usize, at: Instant) {
        let now = self.time(at);
        self.flow.on_sent(SentPacket::media(now, number, DataSize::from_bytes(bytes as u64)));
    }

    /// Packets are reported, in the order of sending; `held` is how long the newest one waited for its report at the
    /// receiver, as far as known.
    pub(crate) fn on_reports(&mut self, at: Instant, reports: &[Report], held: Duration) {
        if reports.is_empty() {
            return;
        }
        self.reported.clear();
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
            self.reported.push(ReportedPacket { sequence: r.number, arrival, ecn: ecn(r.ecn) });
        }
        let now = self.time(at);
        let held = TimeDelta::from_nanos(i64::try_from(held.as_nanos()).unwrap_or(0));
        self.flow.on_reports(now, &self.reported, |_| held);
        self.flow.on_timeout(now);
    }

    /// Takes packets as sent that were not shown when they left: their report has number, size and departure.
    pub(crate) fn catch_up(&mut self, at: Instant, reports: &[PacketReport]) {
        let now = self.time(at);
        for r in reports {
            if r.id >= self.flow.next() {
                let departure = self.time(r.departure).min(now);
                self.flow.on_sent(SentPacket::media(departure, r.id, DataSize::from_bytes(r.size as u64)));
            }
        }
    }

    /// The time of [`Self::poll_timeout`] may have come.
    pub(crate) fn on_timeout(&mut self, at: Instant) {
        let now = self.time(at);
        self.flow.on_timeout(now);
    }

    /// When to call [`Self::on_timeout`] next; later than the last event.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let (due, _) = self.flow.poll_timeout()?;
        self.instant(due)
    }
    /// The application's time, once there was an event.
    pub(crate) fn instant(&self, at: Timestamp) -> Option<Instant> {
        let since_epoch = u64::try_from(at.as_nanos()).ok()?;
        self.epoch?.checked_add(Duration::from_nanos(since_epoch))
    }

    pub(crate) fn target(&self) -> Target {
        self.flow.target()
    }
    pub(crate) fn rtt(&self) -> Option<TimeDelta> {
        self.flow.rtt()
    }
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        // Limits are set between events, at the time of the last one.
        self.flow.on_limits(limits, Timestamp::ZERO);
    }
    pub(crate) fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.flow.metrics(out);
    }

    /// The controller's time.
    pub(crate) fn time(&mut self, at: Instant) -> Timestamp {
        let epoch = *self.epoch.get_or_insert(at);
        let since = at.saturating_duration_since(epoch);
        Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Feedback about one packet.
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
        let at = at.map(|clock| Arrival::At { clock, before: Duration::ZERO, period: ArrivalClock::TRANSPORT_WIDE });
        Self { number, arrival: Self::arrival(arrived, at), ecn: RtcEcn::NotEct }
    }
    /// `at` is the report's timestamp and the packet's offset before it.
    pub(crate) fn rfc8888(number: u64, arrived: bool, at: Option<(Duration, Duration)>, ecn: RtcEcn) -> Self {
        let at = at.map(|(clock, before)| Arrival::At { clock, before, period: ArrivalClock::RFC_8888 });
        Self { number, arrival: Self::arrival(arrived, at), ecn }
    }
    fn arrival(arrived: bool, at: Option<Arrival>) -> Arrival {
        if arrived { at.unwrap_or(Arrival::Unknown) } else { Arrival::Lost }
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
