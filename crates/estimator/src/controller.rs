//! An estimator's process in the place of a controller.

use crate::faults::Faults;
use crate::process::{Budgets, Fault, Process, shown};
use crate::protocol::{About, Answer, Carries, Event, Message, PacketFate, VERSION};
use std::collections::VecDeque;
use weir_cc::cue::{EstimateKind, PacketResult, QueueState, SentPacket};
use weir_cc::{Controller, Cue, Limits, ProbeCluster, Setup, Target, TimeoutReason};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// Pacing rate over media rate where an answer has none: libwebrtc's `kDefaultPaceMultiplier`.
const PACING: f64 = 2.5;
/// Highest rate that an answer may have, in bit/s.
const MAX_RATE: f64 = 1e12;
/// Bounds of feedback intervals in ms.
const INTERVALS: (f64, f64) = (5.0, 1_000.0);
/// Most probes of an answer, and packets of a probe.
const MAX_PROBES: usize = 16;
const MAX_PROBE_PACKETS: u32 = 1_000;
/// Most events that wait for a turn: a longer batch is a turn of its own.
const MAX_BATCH: usize = 1_024;

/// A controller whose decisions another process makes.
///
/// After a fault the flow goes on at its floor, and [`Faults`] has the reason.
pub struct Remote {
    name: String,
    process: Option<Process>,
    about: About,
    faults: Faults,
    batch: Vec<Event>,
    limits: Limits,
    target: Target,
    timer: Option<Timestamp>,
    probes: VecDeque<ProbeCluster>,
}

fn time(t: Timestamp) -> i64 {
    t.as_nanos()
}

fn configure(setup: &Setup) -> Event {
    Event::Configure {
        version: VERSION,
        now_ns: time(setup.now),
        floor_bps: setup.limits.floor.as_bps(),
        ceiling_bps: setup.limits.ceiling.as_bps(),
        start_bps: setup.start_rate.as_bps(),
        seed: setup.seed,
    }
}

impl Remote {
    /// Starts a command and tells it the setup; `name` is what faults call it.
    ///
    /// # Errors
    /// The command does not start, or its first answer is not in the protocol.
    pub fn start(name: &str, command: &str, setup: &Setup, faults: Faults) -> Result<Self, Fault> {
        Self::start_within(Budgets::default(), name, command, setup, faults)
    }

    /// As [`Self::start`], with other budgets.
    pub(crate) fn start_within(
        budgets: Budgets,
        name: &str,
        command: &str,
        setup: &Setup,
        faults: Faults,
    ) -> Result<Self, Fault> {
        let mut process = Process::start(command, budgets)?;
        let mut answer = process.ask(&mut vec![configure(setup)])?;
        let about = answer.about.take().ok_or_else(|| Fault::Unreadable {
            turn: 0,
            why: "the first answer has no `about`: { version, name }".into(),
            line: String::new(),
        })?;
        let impossible =
            |field, value, expected: &str| Fault::Impossible { turn: 0, field, value, expected: expected.into() };
        if about.version != VERSION {
            return Err(impossible("about.version", about.version.to_string(), &format!("{VERSION}, Weir's")));
        }
        if about.name.is_empty() || about.name.len() > 100 || about.name.chars().any(char::is_control) {
            return Err(impossible("about.name", shown(&format!("{:?}", about.name)), "1 to 100 bytes of one line"));
        }
        let feedback = &about.feedback;
        for (field, ms) in [
            ("about.feedback.interval_ms", feedback.interval_ms),
            ("about.feedback.max_interval_ms", feedback.max_interval_ms),
        ] {
            let least = feedback.interval_ms.unwrap_or(INTERVALS.0).max(INTERVALS.0);
            if ms.is_some_and(|ms| !(least..=INTERVALS.1).contains(&ms)) {
                return Err(impossible(field, format!("{ms:?}"), "5 to 1,000, the greatest at least the least"));
            }
        }
        if feedback.bandwidth_share.is_some_and(|s| !(s > 0.0 && s <= 1.0)) {
            let value = format!("{:?}", feedback.bandwidth_share);
            return Err(impossible("about.feedback.bandwidth_share", value, "above 0 to 1"));
        }
        let mut out = Self {
            name: name.into(),
            process: Some(process),
            about,
            faults,
            batch: Vec::new(),
            limits: setup.limits,
            target: Target::paced(setup.limits.floor, setup.limits.floor),
            timer: None,
            probes: VecDeque::new(),
        };
        out.follow(&answer, setup.now)?;
        Ok(out)
    }

    /// Its description of itself.
    pub const fn about(&self) -> &About {
        &self.about
    }

    /// Checks an answer whole, then takes it.
    fn follow(&mut self, a: &Answer, now: Timestamp) -> Result<(), Fault> {
        let turn = a.turn;
        let impossible =
            |field, value: String, expected: &str| Fault::Impossible { turn, field, value, expected: expected.into() };
        let rate = |field, bps: f64| {
            let possible = (0.0..=MAX_RATE).contains(&bps);
            if possible {
                Ok(DataRate::from_bps_f64(bps))
            } else {
                Err(impossible(field, bps.to_string(), "0 to 1e12 bit/s"))
            }
        };
        let media_rate = self.limits.clamp(rate("media_bps", a.media_bps)?);
        let pacing_rate = match a.pacing_bps {
            Some(bps) => rate("pacing_bps", bps)?,
            None => DataRate::from_bps_f64(media_rate.as_bps_f64() * PACING),
        };
        let mut target = Target::paced(media_rate, pacing_rate);
        target.paces_payload = a.paces_payload;
        if let Some(bps) = a.padding_bps {
            target.padding_rate = rate("padding_bps", bps)?;
        }
        target.window = a.window_bytes.map(DataSize::from_bytes);
        if let Some(age) = a.max_queue_age_ns {
            if age <= 0 {
                return Err(impossible("max_queue_age_ns", age.to_string(), "more than 0"));
            }
            target.max_queue_age = Some(TimeDelta::from_nanos(age));
        }
        if let Some(bytes) = a.overhead_bytes {
            if bytes > 200 {
                return Err(impossible("overhead_bytes", bytes.to_string(), "0 to 200"));
            }
            target.overhead = DataSize::from_bytes(bytes);
        }
        if let Some(ns) = a.timer_ns.filter(|ns| *ns <= time(now)) {
            return Err(impossible(
                "timer_ns",
                ns.to_string(),
                &format!("later than the turn's last event, {}", time(now)),
            ));
        }
        if a.probes.len() > MAX_PROBES {
            return Err(impossible("probes", a.probes.len().to_string(), "at most 16"));
        }
        for p in &a.probes {
            if p.id == 0 || p.min_packets > MAX_PROBE_PACKETS {
                let value = format!("{{ id: {}, min_packets: {} }}", p.id, p.min_packets);
                return Err(impossible("probes", value, "an id above 0 and at most 1,000 packets"));
            }
            let (rate, min_size) =
                (rate("probes.rate_bps", p.rate_bps)?, DataSize::from_bytes(p.min_bytes.min(1 << 24)));
            if self.probes.len() < MAX_PROBES {
                self.probes.push_back(ProbeCluster { id: p.id, rate, min_packets: p.min_packets, min_size });
            }
        }
        self.target = target;
        self.timer = a.timer_ns.map(Timestamp::from_nanos);
        Ok(())
    }

    /// Takes an event, and asks for an answer if the estimator decides on events of its kind.
    fn on(&mut self, event: Event, now: Timestamp) {
        let Some(kind) = event.kind() else { return };
        if self.process.is_none() || !self.about.events.contains(&kind) {
            return;
        }
        self.batch.push(event);
        if self.about.answers.contains(&kind) || self.batch.len() >= MAX_BATCH {
            self.ask(now);
        }
    }

    fn ask(&mut self, now: Timestamp) {
        let Some(process) = &mut self.process else { return };
        let answered = process.ask(&mut self.batch);
        if let Err(fault) = answered.and_then(|a| self.follow(&a, now)) {
            self.faults.add(&self.name, now, &fault);
            self.process = None;
            let floor = self.limits.floor;
            self.target = Target::paced(floor, DataRate::from_bps_f64(floor.as_bps_f64() * PACING));
            self.timer = None;
            self.probes.clear();
        }
    }
}

fn fate(p: &PacketResult) -> PacketFate {
    PacketFate {
        sequence: p.sequence,
        sent_ns: time(p.departure),
        arrived_ns: p.arrival.map(|a| a.as_nanos()),
        size_bytes: p.size.as_bytes(),
        ce: p.ecn == Ecn::Ce,
        probe: p.probe,
        was_lost: p.was_lost,
    }
}

impl Controller for Remote {
    fn on_packet_sent(&mut self, p: &SentPacket) {
        let carries = match p {
            SentPacket { is_padding: true, .. } => Carries::Padding,
            SentPacket { is_repair: true, .. } => Carries::Repair,
            SentPacket { is_retransmission: true, .. } => Carries::Retransmission,
            _ => Carries::Media,
        };
        let event = Event::Sent {
            now_ns: time(p.now),
            sequence: p.sequence,
            size_bytes: p.size.as_bytes(),
            carries,
            probe: p.probe,
            queued_bytes: p.queued.as_bytes(),
            in_flight_bytes: p.bytes_in_flight.as_bytes(),
        };
        self.on(event, p.now);
    }

    fn on_cue(&mut self, cue: &Cue<'_>) {
        let event = match cue {
            Cue::TransportFeedback(f) => Event::Feedback {
                now_ns: time(f.now),
                packets: f.packets.iter().map(fate).collect(),
                in_flight_bytes: f.bytes_in_flight.as_bytes(),
                rtt_ns: f.rtt.map(TimeDelta::as_nanos),
            },
            Cue::ReportBlock(r) => Event::Report {
                now_ns: time(r.now),
                fraction_lost: r.fraction_lost,
                cumulative_lost: r.cumulative_lost,
                highest_sequence: r.highest_sequence,
                expected: r.expected,
                jitter_ns: r.jitter.as_nanos(),
                rtt_ns: r.rtt.map(TimeDelta::as_nanos),
            },
            Cue::ReceiverEstimate(e) => Event::Estimate {
                now_ns: time(e.now),
                rate_bps: (!e.is_withdrawn()).then(|| e.rate.as_bps()),
                message: match e.kind {
                    EstimateKind::Remb => Message::Remb,
                    EstimateKind::Tmmbr => Message::Tmmbr,
                },
            },
            _ => return,
        };
        self.on(event, cue.now());
    }

    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.limits = limits;
        self.target.media_rate = limits.clamp(self.target.media_rate);
        let (floor_bps, ceiling_bps) = (limits.floor.as_bps(), limits.ceiling.as_bps());
        self.on(Event::Limits { now_ns: time(now), floor_bps, ceiling_bps }, now);
    }

    fn on_queue(&mut self, q: &QueueState) {
        let event = Event::Queue {
            now_ns: time(q.now),
            added_bytes: q.added.as_bytes(),
            queued_bytes: q.queued.as_bytes(),
            oldest_age_ns: q.oldest_age.as_nanos(),
        };
        self.on(event, q.now);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            self.on(Event::Timer { now_ns: time(now) }, now);
        }
    }

    fn target(&self) -> Target {
        self.target
    }

    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.timer.map(|at| (at, TimeoutReason::RateUpdate))
    }

    fn poll_probe(&mut self, _: Timestamp) -> Option<ProbeCluster> {
        self.probes.pop_front()
    }
}
