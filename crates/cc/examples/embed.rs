//! A congestion controller inside an RTP stack of your own.
//!
//! ```text
//! cargo run -p weir-cc --example embed
//! ```
//!
//! Your stack owns the sockets, the clock, the encoder and the RTP packets. A controller is a state machine: it takes
//! events, each with its time, and returns the rates to encode and send at. A [`Flow`] is a controller with the packets
//! that it waits for: it matches feedback to them, keeps the round-trip time and runs timeouts. [`MediaSender`] below
//! joins it to your stack and a [`Pacer`], in some 100 lines that you can copy. It does five things:
//!
//! 1. It makes a controller from a configuration of named parameters and a [`Start`], and the flow from that.
//! 2. It tells the flow about each packet that leaves.
//! 3. It turns feedback into [`ReportedPacket`]s: from TWCC in RTCP (`on_rtcp`), or from a struct of your own
//!    (`on_report`).
//! 4. It spaces packets and probe clusters by the pacer at the flow's rate, and keeps to its window, if it has one.
//! 5. It wakes the flow at the time that it requests.
//!
//! The rest of this file simulates your stack and the network: video at 30 frames per second over a link whose rate
//! changes.

use std::collections::VecDeque;
use weir_cc::algorithms::{Gcc, GccConfig, Nada, NadaConfig};
use weir_cc::cue::SentPacket;
use weir_cc::tunable::SetupError;
use weir_cc::units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};
use weir_cc::{Flow, Limits, Pacer, PacerDecision, ReportedPacket, Sender, Start};
use weir_wire::rtcp::{Packet, parse_compound, twcc};

/// A packet that your stack is to send now.
pub struct Outgoing {
    /// For the transport-wide sequence number extension.
    pub transport_sequence: u16,
    /// Bytes of the RTP packet.
    pub size: DataSize,
    /// Whether it is padding, which your stack generates.
    pub is_padding: bool,
}

/// One packet's entry in a feedback format of your own.
pub struct OwnReport {
    /// The 64-bit sequence number that the packet was sent with.
    pub number: u64,
    /// Arrival in microseconds of the receiver's clock; `None` if lost. The two clocks need not agree.
    pub arrived_us: Option<i64>,
    /// Whether it arrived marked CE ("congestion experienced").
    pub is_marked: bool,
}

/// Joins your RTP stack to a controller.
pub struct MediaSender {
    flow: Flow,
    pacer: Pacer,
    /// Media packets waiting for the pacer.
    queue: VecDeque<DataSize>,
    queued: DataSize,
    twcc_clock: twcc::ReferenceClock,
    /// Reused between reports to save allocations.
    reported: Vec<ReportedPacket>,
}

/// Bytes of a padding packet.
const PADDING: DataSize = DataSize::from_bytes(250);

impl MediaSender {
    /// A sender that has sent nothing. `now` is the time at which the controller was made.
    pub fn new(controller: impl Into<Sender>, now: Timestamp) -> Self {
        let flow = Flow::new(controller, now);
        Self {
            pacer: Pacer::new(&flow.target(), now),
            flow,
            queue: VecDeque::new(),
            queued: DataSize::ZERO,
            twcc_clock: twcc::ReferenceClock::new(),
            reported: Vec::new(),
        }
    }

    /// The rate for the encoder. Ask before each frame.
    pub fn media_rate(&self) -> DataRate {
        self.flow.target().media_rate
    }

    /// The encoder has produced a frame, and your packetiser these packets.
    pub fn on_frame(&mut self, packets: &[DataSize]) {
        self.queue.extend(packets);
        packets.iter().for_each(|&size| self.queued += size);
    }

    /// The next packet to send at `now`. Call it until it returns `None`, then sleep until [`Self::next_wakeup`].
    pub fn poll_transmit(&mut self, now: Timestamp) -> Option<Outgoing> {
        let next = self.queue.front().copied();
        // Controllers with a window (SCReAM, for one) bound what is in flight.
        if next.is_some_and(|size| !self.flow.has_room_for(size)) {
            return None;
        }
        let (size, is_padding, probe) = match (self.pacer.poll(now, next.is_some()), next) {
            (PacerDecision::Media { probe }, Some(size)) => (size, false, probe),
            (PacerDecision::Padding { probe }, _) => (PADDING, true, probe),
            _ => return None,
        };
        if !is_padding {
            self.queue.pop_front();
            self.queued = self.queued.saturating_sub(size);
        }
        let sequence = self.flow.next();
        self.pacer.on_sent(now, size, is_padding, probe);
        let packet = SentPacket::media(now, sequence, size);
        self.flow.on_sent(SentPacket { is_padding, probe, queued: self.queued, ..packet });
        Some(Outgoing { transport_sequence: sequence as u16, size, is_padding })
    }

    /// Handles a compound RTCP packet. Returns an error if it is malformed; feedback before the error has been applied.
    pub fn on_rtcp(&mut self, now: Timestamp, compound: &[u8]) -> Result<(), weir_wire::Error> {
        for packet in parse_compound(compound) {
            if let Packet::Twcc(feedback) = packet? {
                let reference = self.twcc_clock.unwrap(feedback.reference);
                let last = self.flow.next().wrapping_sub(1);
                let reported = feedback.statuses().map(|(sequence, since)| ReportedPacket {
                    // The last packet's 16-bit number, and the number of packets before it.
                    sequence: last.wrapping_sub(u64::from((last as u16).wrapping_sub(sequence))),
                    arrival: since.map(|since| reference + since),
                    ecn: Ecn::NotEct,
                });
                self.on_feedback(now, reported);
            }
        }
        Ok(())
    }

    /// Handles feedback in a struct of your own.
    pub fn on_report(&mut self, now: Timestamp, packets: &[OwnReport]) {
        self.on_feedback(
            now,
            packets.iter().map(|p| ReportedPacket {
                sequence: p.number,
                arrival: p.arrived_us.map(RemoteTimestamp::from_micros),
                ecn: if p.is_marked { Ecn::Ce } else { Ecn::Ect0 },
            }),
        );
    }

    fn on_feedback(&mut self, now: Timestamp, reported: impl IntoIterator<Item = ReportedPacket>) {
        self.reported.clear();
        self.reported.extend(reported);
        // Each packet is resolved once: late, repeated and forged reports only raise the flow's counters. TWCC does not say
        // how long the newest packet waited at the receiver.
        self.flow.on_reports(now, &self.reported, |_| TimeDelta::ZERO);
        self.follow(now);
    }

    /// When to call [`Self::on_wakeup`] at the latest; if that is `now`, call it at once.
    pub fn next_wakeup(&mut self, now: Timestamp) -> Option<Timestamp> {
        let paced = match self.pacer.poll(now, !self.queue.is_empty()) {
            PacerDecision::Wait(at) => Some(at),
            PacerDecision::Media { .. } | PacerDecision::Padding { .. } => Some(now),
            PacerDecision::Idle => None,
        };
        let timeout = self.flow.poll_timeout().map(|(at, _)| at);
        paced.into_iter().chain(timeout).min()
    }

    /// The time of [`Self::next_wakeup`] has come. Earlier calls do no harm.
    pub fn on_wakeup(&mut self, now: Timestamp) {
        self.flow.on_timeout(now);
        self.follow(now);
    }

    /// Runs after every event: sets the pacer to the target and takes requested probe clusters.
    fn follow(&mut self, now: Timestamp) {
        self.pacer.set_target(&self.flow.target(), now);
        while let Some(cluster) = self.flow.poll_probe(now) {
            self.pacer.add_probe(cluster, now);
        }
    }
}

/// Step 1: a controller with named parameters, checked when it is made.
pub fn gcc(now: Timestamp) -> Result<Gcc, SetupError> {
    Gcc::new(GccConfig { beta: 0.8, ..GccConfig::default() }, &start(now))
}

/// Another controller from the same start. Any fits into a [`MediaSender`]; one of your own as [`Sender::Custom`].
pub fn nada(now: Timestamp) -> Result<Nada, SetupError> {
    Nada::sender_side(NadaConfig { prio: 1.0, ..NadaConfig::default() }, &start(now))
}

fn start(now: Timestamp) -> Start {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_kbps(3_000) };
    Start { limits, rate: DataRate::from_kbps(300), now }
}

/// How the receiver of this example reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// By transport-wide feedback.
    Twcc,
    /// By [`OwnReport`].
    Own,
}

/// A link, its rate in kbit/s, and the receiver behind it.
struct Network {
    kbps: u64,
    /// When the link will have sent everything queued.
    free_at: Timestamp,
    /// Sequence number and arrival of packets not yet reported.
    arrivals: VecDeque<(u64, Timestamp)>,
    /// First packet not covered by a report, and the number of the next report.
    unreported: u64,
    reports: u8,
}

const ONE_WAY: TimeDelta = TimeDelta::from_millis(25);
const LONGEST_QUEUE: TimeDelta = TimeDelta::from_millis(300);

impl Network {
    fn carry(&mut self, now: Timestamp, number: u64, size: DataSize) {
        if self.free_at - now > LONGEST_QUEUE {
            return;
        }
        let time = DataRate::from_kbps(self.kbps).time_for(size).unwrap_or(TimeDelta::ZERO);
        self.free_at = self.free_at.max(now) + time;
        self.arrivals.push_back((number, self.free_at + ONE_WAY));
    }

    /// Takes the packets that arrived by `now` and were not reported before.
    fn take_arrived(&mut self, now: Timestamp) -> Vec<(u64, Timestamp)> {
        let arrived = self.arrivals.partition_point(|a| a.1 <= now);
        self.arrivals.drain(..arrived).collect()
    }

    /// Encodes them as RTCP, as a WebRTC receiver does. Gaps between arrived packets are reported lost.
    fn twcc(&mut self, arrived: &[(u64, Timestamp)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (Some(first), Some(last)) = (arrived.first(), arrived.last()) else { return bytes };
        let mut builder = twcc::Builder::new(1, 2, self.reports, self.unreported as u16, first.1);
        for &(number, at) in arrived {
            builder.push(number as u16, Some(at));
        }
        builder.finish_into(&mut bytes);
        self.reports = self.reports.wrapping_add(1);
        self.unreported = last.0 + 1;
        bytes
    }

    /// Encodes them in a format of your own.
    fn own(&mut self, arrived: &[(u64, Timestamp)]) -> Vec<OwnReport> {
        let end = arrived.last().map_or(self.unreported, |last| last.0 + 1);
        let report = |number| OwnReport {
            number,
            arrived_us: arrived.iter().find(|a| a.0 == number).map(|a| a.1.as_micros()),
            is_marked: false,
        };
        let all = (self.unreported..end).map(report).collect();
        self.unreported = end;
        all
    }
}

/// One second of the call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Second {
    /// Encoder rate at the end of the second.
    pub media_kbps: f64,
    /// Queueing delay of the link at the end of the second.
    pub queue_ms: f64,
}

/// A minute of video over 1 Mbit/s, reduced to 500 kbit/s in the middle third.
pub fn call(controller: impl Into<Sender>, format: Format) -> Result<Vec<Second>, weir_wire::Error> {
    let mut sender = MediaSender::new(controller, Timestamp::ZERO);
    let mut network =
        Network { kbps: 1_000, free_at: Timestamp::ZERO, arrivals: VecDeque::new(), unreported: 0, reports: 0 };
    let mut feedback: VecDeque<(Timestamp, Vec<(u64, Timestamp)>)> = VecDeque::new();
    let mut seconds = Vec::new();
    let mut number = 0;
    // Your loop sleeps on its sockets until `next_wakeup`; this one steps by a millisecond.
    for ms in 0..60_000 {
        let now = Timestamp::from_millis(ms);
        network.kbps = if (20_000..40_000).contains(&ms) { 500 } else { 1_000 };
        if sender.next_wakeup(now).is_some_and(|at| at <= now) {
            sender.on_wakeup(now);
        }
        if ms % 33 == 0 {
            let frame = sender.media_rate().size_in(TimeDelta::from_millis(33)).as_bytes();
            let packets = frame.div_ceil(1_200).max(1);
            sender.on_frame(&vec![DataSize::from_bytes(frame / packets); packets as usize]);
        }
        while let Some(packet) = sender.poll_transmit(now) {
            network.carry(now, number, packet.size);
            number += 1;
        }
        // The receiver reports every 50 ms; reports are delayed too.
        if ms % 50 == 0 {
            feedback.push_back((now + ONE_WAY, network.take_arrived(now)));
        }
        while feedback.front().is_some_and(|f| f.0 <= now) {
            let Some((_, arrived)) = feedback.pop_front() else { break };
            match format {
                Format::Twcc => sender.on_rtcp(now, &network.twcc(&arrived))?,
                Format::Own => sender.on_report(now, &network.own(&arrived)),
            }
        }
        if ms % 1_000 == 999 {
            let queue_ms = network.free_at.saturating_since(now).as_millis_f64();
            seconds.push(Second { media_kbps: sender.media_rate().as_kbps_f64(), queue_ms });
        }
    }
    Ok(seconds)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A bad parameter is an error when the controller is made.
    let wrong = Gcc::new(GccConfig { beta: 1.5, ..GccConfig::default() }, &start(Timestamp::ZERO));
    println!("beta = 1.5: {}\n", wrong.err().map(|e| e.to_string()).unwrap_or_default());

    let with_gcc = call(gcc(Timestamp::ZERO)?, Format::Twcc)?;
    let with_nada = call(nada(Timestamp::ZERO)?, Format::Own)?;
    println!("  s   GCC kbit/s  queue ms   NADA kbit/s  queue ms");
    for (s, (g, n)) in with_gcc.iter().zip(&with_nada).enumerate().filter(|(s, _)| s % 5 == 4) {
        println!("{:3} {:12.0} {:9.0} {:13.0} {:9.0}", s + 1, g.media_kbps, g.queue_ms, n.media_kbps, n.queue_ms);
    }
    Ok(())
}
