//! An estimator's process in the place of a controller's receiver half, and the sender that obeys it.

use crate::controller::paced;
use crate::faults::Faults;
use crate::process::{Budgets, Fault, Traffic};
use crate::protocol::{About, Answer, Event, Message, Side};
use crate::turns::{Turns, few_probes, impossible, ns, rate, timer};
use weir_cc::cue::{ReceivedPacket, SentPacket};
use weir_cc::{Controller, Cue, Limits, ReceiverController, Report, Setup, Target};
use weir_units::{DataRate, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Interval at which the floor is asked for after a fault: a message may be lost.
const AFTER_FAULT: TimeDelta = TimeDelta::from_secs(1);

/// A receiver half whose decisions another process makes. After a fault it asks for the floor, and [`Faults`] has the reason.
pub struct RemoteReceiver {
    turns: Turns,
    limits: Limits,
    report: Option<Report>,
    timer: Option<Timestamp>,
    is_broken: bool,
    /// When the last event was.
    now: Timestamp,
}

impl RemoteReceiver {
    /// Starts a command and tells it the setup; `name` is what faults call it.
    ///
    /// # Errors
    /// The command does not start, or its first answer is not in the protocol.
    pub fn start(name: &str, command: &str, setup: &Setup, faults: Faults) -> Result<Self, Fault> {
        let (turns, answer) = Turns::start(Budgets::default(), name, command, (setup, Side::Receiver), faults)?;
        let (limits, now) = (setup.limits, setup.now);
        let mut out = Self { turns, limits, report: None, timer: None, is_broken: false, now };
        out.follow(&answer, now)?;
        Ok(out)
    }

    /// Its description of itself.
    pub const fn about(&self) -> &About {
        self.turns.about()
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.turns.traffic()
    }

    /// Checks an answer whole, then takes it.
    fn follow(&mut self, a: &Answer, now: Timestamp) -> Result<(), Fault> {
        let rate = rate(a.turn, "media_bps", a.media_bps)?;
        few_probes(a)?;
        if !a.probes.is_empty() {
            return Err(impossible(a.turn, "probes", a.probes.len().to_string(), "none: this end is the receiver"));
        }
        self.timer = timer(a, now)?;
        match a.report {
            Some(Message::Remb) => self.report = Some(Report::Remb { rate }),
            Some(Message::Tmmbr) => self.report = Some(Report::Tmmbr { rate }),
            None => {}
        }
        Ok(())
    }

    fn on(&mut self, event: Event, now: Timestamp) {
        self.now = now;
        let Some(answered) = self.turns.push(event) else { return };
        if let Err(fault) = answered.and_then(|a| self.follow(&a, now)) {
            self.turns.fail(now, &fault);
            self.is_broken = true;
            self.ask_for_the_floor(now);
        }
    }

    fn ask_for_the_floor(&mut self, now: Timestamp) {
        self.report = Some(Report::Remb { rate: self.limits.floor });
        self.timer = Some(now + AFTER_FAULT);
    }
}

impl ReceiverController for RemoteReceiver {
    fn on_packet_received(&mut self, p: &ReceivedPacket) {
        let event = Event::Received {
            now_ns: ns(p.now),
            sequence: p.sequence,
            sent_ns: p.departure.map(RemoteTimestamp::as_nanos),
            size_bytes: p.size.as_bytes(),
            payload_bytes: p.payload.as_bytes(),
            rtp_timestamp: p.rtp_timestamp,
            marker: p.marker,
            ce: p.ecn == Ecn::Ce,
        };
        self.on(event, p.now);
    }

    fn on_rtt(&mut self, rtt: TimeDelta, now: Timestamp) {
        self.on(Event::Rtt { now_ns: ns(now), rtt_ns: rtt.as_nanos() }, now);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        // A report that waits is due at once.
        if self.report.is_some() { Some(self.now) } else { self.timer }
    }

    fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            if self.is_broken {
                self.ask_for_the_floor(now);
            } else {
                self.on(Event::Timer { now_ns: ns(now) }, now);
            }
        }
        self.report.take()
    }
}

/// The sender of an estimator that is at the receiver alone: it sends at the rate that it is asked for.
pub(crate) struct Follower {
    limits: Limits,
    rate: DataRate,
}

impl Follower {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self { limits: setup.limits, rate: setup.start_rate }
    }
}

impl Controller for Follower {
    fn on_packet_sent(&mut self, _: &SentPacket) {}

    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::ReceiverEstimate(e) = cue
            && !e.is_withdrawn()
        {
            self.rate = e.rate;
        }
    }

    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }

    fn target(&self) -> Target {
        paced(self.limits.clamp(self.rate))
    }
}
