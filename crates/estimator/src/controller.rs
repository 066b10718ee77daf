//! An estimator's process in the place of a controller.

use crate::faults::Faults;
use crate::process::{Budgets, Fault, MAX_PROBES, Traffic};
use crate::protocol::{About, Answer, Carries, Event, Kind, Message, PacketFate, Repair, Side};
use crate::turns::{Turns, few_probes, impossible, ns, rate, timer};
use std::collections::VecDeque;
use weir_cc::cue::{EstimateKind, PacketResult, QueueState, SentPacket};
use weir_cc::{Controller, Cue, Limits, ProbeCluster, RepairPlan, Setup, Target, TimeoutReason};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// Pacing rate over media rate where an answer has none: libwebrtc's `kDefaultPaceMultiplier`.
const PACING: f64 = 2.5;
/// Most packets of a probe.
const MAX_PROBE_PACKETS: u32 = 1_000;

/// A controller whose decisions another process makes.
///
/// After a fault the flow goes on at its floor, and [`Faults`] has the reason.
pub struct Remote {
    turns: Turns,
    limits: Limits,
    wishes: Wishes,
    timer: Option<Timestamp>,
    probes: VecDeque<ProbeCluster>,
}

/// The fields of an answer that are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Wishes {
    media: DataRate,
    pacing: Option<DataRate>,
    paces_payload: bool,
    padding: Option<DataRate>,
    window: Option<DataSize>,
    max_queue_age: Option<TimeDelta>,
    overhead: Option<DataSize>,
    repair: Option<RepairPlan>,
}

impl Wishes {
    /// A target with these fields; those that are not there are `others`, whose media rate bounds this one.
    fn over(&self, others: Target) -> Target {
        Target {
            media_rate: self.media.min(others.media_rate),
            pacing_rate: self.pacing.unwrap_or(others.pacing_rate),
            paces_payload: if self.pacing.is_some() { self.paces_payload } else { others.paces_payload },
            padding_rate: self.padding.unwrap_or(others.padding_rate),
            window: self.window.or(others.window),
            max_queue_age: self.max_queue_age.or(others.max_queue_age),
            overhead: self.overhead.unwrap_or(others.overhead),
            repair: self.repair.unwrap_or(others.repair),
        }
    }
}

/// A target of one rate, paced as libwebrtc paces.
pub(crate) fn paced(media_rate: DataRate) -> Target {
    Target::paced(media_rate, DataRate::from_bps_f64(media_rate.as_bps_f64() * PACING))
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
        let (turns, answer) = Turns::start(budgets, name, command, (setup, Side::Sender), faults)?;
        let (limits, wishes) = (setup.limits, Wishes::default());
        let mut out = Self { turns, limits, wishes, timer: None, probes: VecDeque::new() };
        out.follow(&answer, setup.now)?;
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
        let turn = a.turn;
        let rate = |field, bps| rate(turn, field, bps);
        if a.report.is_some() {
            return Err(impossible(turn, "report", format!("{:?}", a.report), "none: this end is the sender"));
        }
        let age = a.max_queue_age_ns;
        if let Some(age) = age.filter(|age| *age <= 0) {
            return Err(impossible(turn, "max_queue_age_ns", age.to_string(), "more than 0"));
        }
        if let Some(bytes) = a.overhead_bytes.filter(|bytes| *bytes > 200) {
            return Err(impossible(turn, "overhead_bytes", bytes.to_string(), "0 to 200"));
        }
        let wishes = Wishes {
            media: rate("media_bps", a.media_bps)?,
            pacing: a.pacing_bps.map(|bps| rate("pacing_bps", bps)).transpose()?,
            paces_payload: a.paces_payload,
            padding: a.padding_bps.map(|bps| rate("padding_bps", bps)).transpose()?,
            window: a.window_bytes.map(DataSize::from_bytes),
            max_queue_age: age.map(TimeDelta::from_nanos),
            overhead: a.overhead_bytes.map(DataSize::from_bytes),
            repair: a.repair.map(|r| repair(turn, r)).transpose()?,
        };
        let timer = timer(a, now)?;
        few_probes(a)?;
        for p in &a.probes {
            if p.id == 0 || p.min_packets > MAX_PROBE_PACKETS {
                let value = format!("{{ id: {}, min_packets: {} }}", p.id, p.min_packets);
                return Err(impossible(turn, "probes", value, "an id above 0 and at most 1,000 packets"));
            }
            let (rate, min_size) =
                (rate("probes.rate_bps", p.rate_bps)?, DataSize::from_bytes(p.min_bytes.min(1 << 24)));
            if self.probes.len() < MAX_PROBES {
                self.probes.push_back(ProbeCluster { id: p.id, rate, min_packets: p.min_packets, min_size });
            }
        }
        (self.wishes, self.timer) = (wishes, timer);
        Ok(())
    }

    /// The target of the controller that decides on the rate has changed.
    pub(crate) fn on_target(&mut self, target: &Target, now: Timestamp) {
        let (media_bps, pacing_bps) = (target.media_rate.as_bps(), target.pacing_rate.as_bps());
        self.on(Event::Target { now_ns: ns(now), media_bps, pacing_bps }, now);
    }

    /// Its target where another controller decides on the rate.
    pub(crate) fn over(&self, others: Target) -> Target {
        if self.turns.is_broken() { paced(self.limits.floor) } else { self.wishes.over(others) }
    }

    /// Passes an event of a kind that is wanted, and follows the answer where there is one.
    fn on(&mut self, event: Event, now: Timestamp) {
        let Some(answered) = self.turns.push(event) else { return };
        if let Err(fault) = answered.and_then(|a| self.follow(&a, now)) {
            self.turns.fail(now, &fault);
            // A rate of zero, limited to the floor.
            self.wishes = Wishes::default();
            self.timer = None;
            self.probes.clear();
        }
    }
}

/// The repair of an answer.
fn repair(turn: u64, repair: Repair) -> Result<RepairPlan, Fault> {
    match repair {
        Repair::Parity { interval: interval @ 2.. } => Ok(RepairPlan::Parity { interval }),
        Repair::Standby { interval: interval @ 2.. } => Ok(RepairPlan::Standby { interval }),
        Repair::ReedSolomon { block: block @ 2.., repair } if repair < block => {
            Ok(RepairPlan::ReedSolomon { block, repair })
        }
        _ => {
            let expected = "an interval of 2 and more, or a block of 2 and more with less repair";
            Err(impossible(turn, "repair", format!("{repair:?}"), expected))
        }
    }
}

fn fate(p: &PacketResult) -> PacketFate {
    PacketFate {
        sequence: p.sequence,
        sent_ns: ns(p.departure),
        arrived_ns: p.arrival.map(|a| a.as_nanos()),
        size_bytes: p.size.as_bytes(),
        ce: p.ecn == Ecn::Ce,
        probe: p.probe,
        was_lost: p.was_lost,
    }
}

impl Controller for Remote {
    fn on_packet_sent(&mut self, p: &SentPacket) {
        if !self.turns.wants(Kind::Sent) {
            return;
        }
        let carries = match p {
            SentPacket { is_padding: true, .. } => Carries::Padding,
            SentPacket { is_repair: true, .. } => Carries::Repair,
            SentPacket { is_retransmission: true, .. } => Carries::Retransmission,
            _ => Carries::Media,
        };
        let event = Event::Sent {
            now_ns: ns(p.now),
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
            Cue::TransportFeedback(_) if !self.turns.wants(Kind::Feedback) => return,
            Cue::TransportFeedback(f) => Event::Feedback {
                now_ns: ns(f.now),
                packets: f.packets.iter().map(fate).collect(),
                in_flight_bytes: f.bytes_in_flight.as_bytes(),
                rtt_ns: f.rtt.map(TimeDelta::as_nanos),
            },
            Cue::ReportBlock(r) => Event::Report {
                now_ns: ns(r.now),
                fraction_lost: r.fraction_lost,
                cumulative_lost: r.cumulative_lost,
                highest_sequence: r.highest_sequence,
                expected: r.expected,
                jitter_ns: r.jitter.as_nanos(),
                rtt_ns: r.rtt.map(TimeDelta::as_nanos),
            },
            Cue::ReceiverEstimate(e) => Event::Estimate {
                now_ns: ns(e.now),
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

    fn on_rtcp(&mut self, datagram: &[u8], now: Timestamp) -> bool {
        let wanted = self.turns.wants(Kind::Rtcp);
        if wanted {
            self.on(Event::Rtcp { now_ns: ns(now), bytes: datagram.into() }, now);
        }
        wanted
    }

    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.limits = limits;
        let (floor_bps, ceiling_bps) = (limits.floor.as_bps(), limits.ceiling.as_bps());
        self.on(Event::Limits { now_ns: ns(now), floor_bps, ceiling_bps }, now);
    }

    fn on_queue(&mut self, q: &QueueState) -> bool {
        let event = Event::Queue {
            now_ns: ns(q.now),
            added_bytes: q.added.as_bytes(),
            queued_bytes: q.queued.as_bytes(),
            oldest_age_ns: q.oldest_age.as_nanos(),
        };
        self.on(event, q.now);
        true
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            self.on(Event::Timer { now_ns: ns(now) }, now);
        }
    }

    fn target(&self) -> Target {
        let media = self.limits.clamp(self.wishes.media);
        Wishes { media, ..self.wishes }.over(paced(media))
    }

    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.timer.map(|at| (at, TimeoutReason::RateUpdate))
    }

    fn poll_probe(&mut self, _: Timestamp) -> Option<ProbeCluster> {
        self.probes.pop_front()
    }
}
