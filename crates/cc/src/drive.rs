//! Drives a controller over a modelled call, to measure the controller alone: 2 Mbit/s in packets of 1,000 bytes at 25
//! frames per second, 50 ms each way, a queue that rises to 20 ms and falls again, feedback every 100 ms, extended
//! reports every 200 ms. Requested parity packets replace media packets.
//!
//! Apart from the controller there is only the sent history and arithmetic, so that the time measured is theirs.
//! Nothing here reads a clock: callers time [`Drive::step`] and divide by [`PACKETS_PER_STEP`].

use crate::Sender;
use crate::cue::{
    EstimateKind, Fate, FramePlayout, IntervalPacket, IntervalReport, NadaReport, NextDataUnit, PacketResult,
    QueueState, ReceivedPacket, ReceiverEstimate, ReportBlock, SentPacket, TransportFeedback,
};
use crate::tunable::SetupError;
use crate::{
    Controller, Cue, Limits, OneWayDelayMeter, Receiver, ReceiverController, RepairPlan, Report, ReportedPacket, Target,
};
use crate::{Registry, SentHistory, Setup};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Media packets between two feedback messages.
pub const PACKETS_PER_STEP: u64 = 25;
const PACKET: DataSize = DataSize::from_bytes(1_000);
const SPACING: TimeDelta = TimeDelta::from_millis(4);
const PACKETS_PER_FRAME: u64 = 10;
const ONE_WAY: TimeDelta = TimeDelta::from_millis(50);
const RTT: TimeDelta = TimeDelta::from_millis(100);
/// Playout delay after departure.
const PLAYOUT: TimeDelta = TimeDelta::from_millis(150);
const CLOCK_RATE: u32 = 90_000;
/// Packets that the sender remembers as repair or media; more than are ever in flight.
const REMEMBERED: usize = 256;
/// Period of the queue in packets: 4 s.
const QUEUE_PERIOD: u64 = 1_000;

/// Both halves of a controller and a minimal session around them.
pub struct Drive {
    sender: Sender,
    receiver: Option<Receiver>,
    history: SentHistory,
    per_packet_feedback: bool,
    extended_reports: bool,
    meter: OneWayDelayMeter,
    interval: Vec<IntervalPacket>,
    /// Whether a packet is repair, indexed by sequence number.
    is_repair: [bool; REMEMBERED],
    media_since_repair: u32,
    reports: Vec<ReportedPacket>,
    results: Vec<PacketResult>,
    next: u64,
    /// First packet not yet received, and first not yet reported.
    arriving: u64,
    reported: u64,
    one_lost_of: Option<u64>,
    target: Target,
    checksum: u64,
}

fn departure(sequence: u64) -> Timestamp {
    Timestamp::ZERO + SPACING * sequence as i64
}

fn arrival(sequence: u64) -> Timestamp {
    let phase = (sequence % QUEUE_PERIOD) as i64;
    let queue = TimeDelta::from_micros(40 * phase.min(QUEUE_PERIOD as i64 - phase));
    departure(sequence) + ONE_WAY + queue
}

impl Drive {
    /// A call under this controller with its default parameters. One packet in `one_lost_of` is lost; `None` loses
    /// nothing. The target lies between 150 kbit/s and 3 Mbit/s and starts at 1 Mbit/s; the sending rate does not
    /// follow it. Errors: an unknown name.
    pub fn new(registry: &Registry, name: &str, one_lost_of: Option<u64>) -> Result<Self, SetupError> {
        let spec = registry.get(name).ok_or_else(|| SetupError::UnknownController { name: name.into() })?;
        let setup = Setup {
            limits: Limits { floor: DataRate::from_kbps(150), ceiling: DataRate::from_mbps(3) },
            start_rate: DataRate::from_kbps(1_000),
            now: Timestamp::ZERO,
            seed: 1,
            params: Vec::new(),
        };
        let pair = registry.make(name, &setup)?;
        Ok(Self {
            sender: pair.sender,
            receiver: pair.receiver,
            history: SentHistory::new(),
            per_packet_feedback: spec.feedback.is_some(),
            extended_reports: spec.reports.is_some_and(|r| r.extended),
            meter: OneWayDelayMeter::new(CLOCK_RATE),
            interval: Vec::new(),
            is_repair: [false; REMEMBERED],
            media_since_repair: 0,
            reports: Vec::new(),
            results: Vec::new(),
            next: 0,
            arriving: 0,
            reported: 0,
            one_lost_of,
            target: Target::paced(DataRate::ZERO, DataRate::ZERO),
            checksum: 0,
        })
    }

    /// Runs 100 ms of the call: 25 packets and one feedback message.
    pub fn step(&mut self) {
        for _ in 0..PACKETS_PER_STEP {
            let now = departure(self.next);
            self.timers(now);
            if self.next.is_multiple_of(PACKETS_PER_FRAME) {
                let added = PACKET * PACKETS_PER_FRAME;
                if self.sender.on_queue(&QueueState { now, added, queued: added, oldest_age: TimeDelta::ZERO }) {
                    self.take_target();
                }
            }
            self.send(now);
            self.receive(now);
            let target = &self.target;
            let sum = target.media_rate.as_bps().rotate_left(1) ^ target.pacing_rate.as_bps();
            self.checksum = self.checksum.wrapping_add(sum);
        }
        let now = departure(self.next);
        if self.per_packet_feedback {
            self.feedback(now);
        } else if self.extended_reports {
            if self.next.is_multiple_of(2 * PACKETS_PER_STEP) {
                self.report_block(now, 2 * PACKETS_PER_STEP);
                self.interval_report(now);
            }
        } else if self.next.is_multiple_of(10 * PACKETS_PER_STEP) {
            self.report_block(now, 10 * PACKETS_PER_STEP);
        }
        while self.sender.poll_probe(now).is_some() {}
        self.take_target();
    }

    /// The sender half, for what the call itself does not do: coupling.
    pub fn sender(&mut self) -> &mut Sender {
        &mut self.sender
    }

    /// Sum of all targets so far. It shows that the controller has run, and keeps the optimiser from removing the work.
    pub fn checksum(&self) -> u64 {
        self.checksum
    }

    /// Takes the target where it has changed: after the events after which a session asks for it.
    fn take_target(&mut self) {
        if self.sender.has_other_target(&self.target) {
            self.target = self.sender.target();
        }
    }

    fn is_lost(&self, sequence: u64) -> bool {
        self.one_lost_of.is_some_and(|n| sequence % n == n - 1)
    }

    fn timers(&mut self, now: Timestamp) {
        while let Some((at, _)) = self.sender.poll_timeout().filter(|t| t.0 <= now) {
            self.sender.on_timeout(at);
            self.take_target();
        }
    }

    fn is_repair(&self, sequence: u64) -> bool {
        self.is_repair[sequence as usize % REMEMBERED]
    }

    /// Whether the next packet is repair, by the controller's plan.
    fn repair_is_due(&mut self) -> bool {
        let interval = match self.target.repair {
            RepairPlan::Parity { interval } => u32::from(interval),
            RepairPlan::ReedSolomon { block, repair } if repair > 0 => u32::from(block / repair),
            _ => u32::MAX,
        };
        self.media_since_repair += 1;
        let due = self.media_since_repair > interval;
        if due {
            self.media_since_repair = 0;
        }
        due
    }

    fn send(&mut self, now: Timestamp) {
        let is_repair = self.repair_is_due();
        self.is_repair[self.next as usize % REMEMBERED] = is_repair;
        let mut packet = SentPacket {
            is_repair,
            queued: PACKET * (PACKETS_PER_FRAME - 1 - self.next % PACKETS_PER_FRAME),
            ..SentPacket::media(now, self.next, PACKET)
        };
        self.history.on_sent(&packet);
        packet.bytes_in_flight = self.history.bytes_in_flight();
        self.sender.on_packet_sent(&packet);
        self.next += 1;
    }

    /// Delivers what has arrived by `now` to the receiver half, if there is one.
    fn receive(&mut self, now: Timestamp) {
        while arrival(self.arriving) <= now {
            let sequence = self.arriving;
            self.arriving += 1;
            let lost = self.is_lost(sequence) || self.is_repair(sequence);
            let rtp_timestamp = (sequence / PACKETS_PER_FRAME * 3_600) as u32;
            if self.extended_reports && !lost {
                self.meter.on_packet(arrival(sequence), rtp_timestamp);
            }
            let Some(receiver) = &mut self.receiver else { continue };
            let marker = sequence % PACKETS_PER_FRAME == PACKETS_PER_FRAME - 1;
            if marker {
                let due = departure(sequence) + PLAYOUT;
                receiver.on_playout(&FramePlayout {
                    now: arrival(sequence),
                    rtp_timestamp,
                    complete: !lost,
                    discarded: 0,
                    buffered: if lost { TimeDelta::ZERO } else { due - arrival(sequence) },
                });
            }
            if lost {
                continue;
            }
            receiver.on_packet_received(&ReceivedPacket {
                now: arrival(sequence),
                departure: Some(RemoteTimestamp::from_nanos(departure(sequence).as_nanos())),
                size: PACKET,
                payload: PACKET,
                sequence,
                rtp_timestamp,
                marker,
                ecn: Ecn::NotEct,
            });
        }
        let Some(receiver) = &mut self.receiver else { return };
        if receiver.poll_timeout().is_none_or(|t| t > now) {
            return;
        }
        receiver.on_rtt(RTT, now);
        match receiver.poll_report(now) {
            Some(Report::Nada { mode, aggregate_delay, receive_rate }) => {
                let report = NadaReport { now, mode, aggregate_delay, receive_rate, rtt: Some(RTT) };
                self.sender.on_cue(&Cue::NadaReport(report));
            }
            Some(Report::Remb { rate }) => self.estimate(now, rate, EstimateKind::Remb),
            Some(Report::Tmmbr { rate }) => self.estimate(now, rate, EstimateKind::Tmmbr),
            Some(Report::NextDataUnit { rate }) => {
                self.estimate(now, rate, EstimateKind::Tmmbr);
                let unit = NextDataUnit { now, next_sequence: self.arriving, playout_delay: Some(PLAYOUT - ONE_WAY) };
                self.sender.on_cue(&Cue::NextDataUnit(unit));
            }
            None => return,
        }
        self.take_target();
    }

    fn estimate(&mut self, now: Timestamp, rate: DataRate, kind: EstimateKind) {
        self.sender.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate { now, rate, kind }));
    }

    fn feedback(&mut self, now: Timestamp) {
        self.reports.clear();
        while arrival(self.reported) + ONE_WAY <= now {
            let arrival = RemoteTimestamp::from_nanos(arrival(self.reported).as_nanos());
            let arrival = Some(arrival).filter(|_| !self.is_lost(self.reported));
            self.reports.push(ReportedPacket { sequence: self.reported, arrival, ecn: Ecn::NotEct });
            self.reported += 1;
        }
        self.history.resolve(self.reports.iter().copied(), &mut self.results);
        let feedback = TransportFeedback {
            now,
            packets: &self.results,
            bytes_in_flight: self.history.bytes_in_flight(),
            rtt: Some(RTT),
        };
        self.sender.on_cue(&Cue::TransportFeedback(feedback));
    }

    /// The fates of the media packets that have arrived and not been reported; every third loss is a discard.
    fn interval_report(&mut self, now: Timestamp) {
        self.interval.clear();
        while arrival(self.reported) + ONE_WAY <= now {
            let sequence = self.reported;
            self.reported += 1;
            let fate = match (self.is_lost(sequence), sequence % 3) {
                (false, _) => Fate::Received,
                (true, 0) => Fate::Discarded,
                (true, _) => Fate::Lost,
            };
            if !self.is_repair(sequence) {
                let departure = departure(sequence);
                self.interval.push(IntervalPacket { sequence, departure, size: PACKET, fate, repaired: false });
            }
        }
        self.meter.on_rtt(RTT);
        let one_way_delay = self.meter.take_interval();
        self.sender.on_cue(&Cue::IntervalReport(IntervalReport {
            now,
            packets: &self.interval,
            one_way_delay,
            rtt: Some(RTT),
        }));
    }

    fn report_block(&mut self, now: Timestamp, expected: u64) {
        self.history.give_up_before(now - RTT);
        self.sender.on_cue(&Cue::ReportBlock(ReportBlock {
            now,
            fraction_lost: 0.0,
            cumulative_lost: 0,
            highest_sequence: self.next,
            expected,
            jitter: TimeDelta::from_millis(1),
            rtt: Some(RTT),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_controller_is_driven_and_repeats_itself() {
        let registry = Registry::builtin();
        for spec in registry.specs().chain(registry.probing_specs()).chain(registry.filled_specs()) {
            let run = |steps, one_lost_of| {
                let mut drive = Drive::new(&registry, &spec.name, one_lost_of).expect("the defaults are valid");
                (0..steps).for_each(|_| drive.step());
                assert_eq!(drive.next, steps * PACKETS_PER_STEP, "{}", spec.name);
                // A round trip of 100 ms and up to 20 ms of queue are in flight: at most the packets of 2 steps are
                // unreported.
                let behind = drive.next - if drive.reported > 0 { drive.reported } else { drive.next };
                assert_eq!(drive.reported > 0, drive.per_packet_feedback || drive.extended_reports, "{}", spec.name);
                assert!(behind <= 2 * PACKETS_PER_STEP, "{}: {behind} packets unreported", spec.name);
                drive.checksum()
            };
            assert_ne!(run(100, None), 0, "{}", spec.name);
            assert_eq!(run(100, Some(37)), run(100, Some(37)), "{}", spec.name);
        }
    }
}
