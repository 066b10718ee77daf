//! Both halves over a path with a bottleneck: data through a drop-tail queue with a given rate, acknowledgements back
//! over a separate path. Packets have real options, so Ack Vectors are exchanged as in a connection.

use crate::ack_vector::{AckState, Buffer};
use crate::ccid::ccid2::{Avoidance, Receiver, WindowSender};
use crate::ccid::{Acknowledgement, CcidReceiver, CcidSender, Permission, ReceivedPacket, SentPacket};
use crate::option::{DccpOption, Options};
use crate::packet::{Header, PacketType, PacketWriter, WireSequence, parse};
use rand::{RngExt, SeedableRng};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_units::{DataRate, DataSize, Ecn, Seq48, TimeDelta, Timestamp};

pub(in crate::ccid) const PACKET: DataSize = DataSize::from_bytes(1_000);
/// IPv4, UDP and a header with 48-bit numbers.
const OVERHEAD: DataSize = DataSize::from_bytes(44);

/// One direction of the path.
pub(in crate::ccid) struct Link {
    pub(in crate::ccid) rate: DataRate,
    pub(in crate::ccid) delay: TimeDelta,
    /// Maximum queue, in time; packets beyond it are dropped.
    pub(in crate::ccid) queue: TimeDelta,
    /// From this queue on ECN-capable packets are marked.
    pub(in crate::ccid) mark_above: TimeDelta,
    /// Share lost at random.
    pub(in crate::ccid) loss: f64,
    /// One packet in this many is lost.
    pub(in crate::ccid) lose_every: u64,
    count: u64,
    free_at: Timestamp,
    rng: rand_pcg::Pcg32,
    pub(in crate::ccid) dropped: u64,
}

impl Link {
    pub(in crate::ccid) fn new(rate: DataRate, delay: TimeDelta, queue: TimeDelta) -> Self {
        let rng = rand_pcg::Pcg32::seed_from_u64(1);
        Self {
            rate,
            delay,
            queue,
            mark_above: TimeDelta::MAX,
            loss: 0.0,
            lose_every: u64::MAX,
            count: 0,
            free_at: Timestamp::ZERO,
            rng,
            dropped: 0,
        }
    }
    /// The arrival of a packet and its mark; `None` if it is lost.
    fn send(&mut self, now: Timestamp, size: DataSize, ecn: Ecn) -> Option<(Timestamp, Ecn)> {
        let waiting = self.free_at.saturating_since(now);
        self.count += 1;
        if waiting > self.queue || self.count.is_multiple_of(self.lose_every) || self.rng.random::<f64>() < self.loss {
            self.dropped += 1;
            return None;
        }
        let takes = self.rate.time_for(size).expect("a rate");
        self.free_at = self.free_at.max(now) + takes;
        let ecn = if ecn.is_capable() && waiting >= self.mark_above { Ecn::Ce } else { ecn };
        // A random delay of up to a packet's time keeps flows from synchronising with a full queue; it does not change
        // the order.
        Some((self.free_at + self.delay + takes.mul_f64(self.rng.random()), ecn))
    }
}

/// A half-connection whose application always has data.
pub(in crate::ccid) struct Flow<A> {
    pub(in crate::ccid) sender: WindowSender<A>,
    receiver: Receiver,
    buffer: Buffer,
    /// Path beyond the bottleneck, both ways together.
    pub(in crate::ccid) more_delay: TimeDelta,
    pub(in crate::ccid) ecn: Ecn,
    pub(in crate::ccid) starts: Timestamp,
    next: u64,
    next_ack: u64,
    newest_ack: Seq48,
    pub(in crate::ccid) sent: u64,
    pub(in crate::ccid) received: u64,
    pub(in crate::ccid) acks: u64,
    pub(in crate::ccid) longest_ack: usize,
    /// Packets received up to the last call of [`Path::run`].
    before: u64,
}

impl<A: Avoidance> Flow<A> {
    pub(in crate::ccid) fn new(sender: WindowSender<A>, receiver: Receiver) -> Self {
        Self {
            sender,
            receiver,
            buffer: Buffer::default(),
            more_delay: TimeDelta::ZERO,
            ecn: Ecn::NotEct,
            starts: Timestamp::ZERO,
            next: (1 << 48) - 500,
            next_ack: (1 << 48) - 300,
            newest_ack: Seq48::new((1 << 48) - 301),
            sent: 0,
            received: 0,
            acks: 0,
            longest_ack: 0,
            before: 0,
        }
    }
    pub(in crate::ccid) fn metric(&self, name: &str) -> f64 {
        let mut found = f64::NAN;
        self.sender.metrics(&mut |n, v| {
            if n == name {
                found = v;
            }
        });
        found
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Number, whether marked, and the acknowledgement that it acknowledges.
    Data(u64, bool, Option<u64>),
    /// A packet.
    Ack(Vec<u8>, bool),
}

pub(in crate::ccid) struct Path<A> {
    pub(in crate::ccid) now: Timestamp,
    pub(in crate::ccid) flows: Vec<Flow<A>>,
    pub(in crate::ccid) forward: Link,
    pub(in crate::ccid) back: Link,
    events: BinaryHeap<Reverse<(Timestamp, u64, usize, Event)>>,
    order: u64,
}

impl<A: Avoidance> Path<A> {
    pub(in crate::ccid) fn new(forward: Link, back: Link, flows: Vec<Flow<A>>) -> Self {
        Self { now: Timestamp::ZERO, flows, forward, back, events: BinaryHeap::new(), order: 0 }
    }

    /// Runs for a time; returns each flow's share of the bottleneck's rate, headers included.
    pub(in crate::ccid) fn run(&mut self, time: TimeDelta) -> Vec<f64> {
        let end = self.now + time;
        loop {
            (0..self.flows.len()).for_each(|f| self.drive(f));
            let event = self.events.peek().map(|Reverse(e)| e.0);
            let timer = self.flows.iter().filter_map(|f| self.timer(f)).min();
            let next = event.into_iter().chain(timer).min().unwrap_or(end);
            if next >= end {
                break;
            }
            assert!(next >= self.now, "time does not go back");
            self.now = next;
            while self.events.peek().is_some_and(|Reverse(e)| e.0 <= self.now) {
                let Reverse((_, _, flow, event)) = self.events.pop().expect("there is one");
                self.on_event(flow, event);
            }
        }
        self.now = end;
        let possible = self.forward.rate.size_in(time).as_bytes() as f64;
        let size = (PACKET + OVERHEAD).as_bytes() as f64;
        let share = |f: &mut Flow<A>| {
            let got = f.received - f.before;
            f.before = f.received;
            got as f64 * size / possible
        };
        self.flows.iter_mut().map(share).collect()
    }

    fn timer(&self, f: &Flow<A>) -> Option<Timestamp> {
        let paced = match f.sender.may_send(self.now, PACKET) {
            Permission::At(at) => Some(at),
            Permission::Now | Permission::Blocked => None,
        };
        let starts = (self.now < f.starts).then_some(f.starts);
        let sends = f.sender.poll_timeout().into_iter().chain(paced.filter(|_| starts.is_none()));
        sends.chain(starts).chain(f.receiver.poll_timeout()).min()
    }

    /// Lets a flow send what it may now.
    fn drive(&mut self, index: usize) {
        let now = self.now;
        let f = &mut self.flows[index];
        if now < f.starts {
            return;
        }
        if f.sender.poll_timeout().is_some_and(|t| t <= now) {
            f.sender.on_timeout(now);
            assert!(f.sender.poll_timeout().is_none_or(|t| t > now));
        }
        while f.sender.may_send(now, PACKET) == Permission::Now {
            let seq = f.next;
            f.next = Seq48::new(f.next + 1).get();
            f.sent += 1;
            let acks = f.sender.wants_ack_of_ack(now);
            f.sender.on_packet_sent(&SentPacket {
                now,
                sequence: Seq48::new(seq),
                packet_type: if acks { PacketType::DataAck } else { PacketType::Data },
                data: PACKET,
                header: DataSize::from_bytes(16),
                ecn: f.ecn,
                queued: DataSize::from_bytes(100_000),
            });
            if let Some((at, ecn)) = self.forward.send(now, PACKET + OVERHEAD, f.ecn) {
                let data = Event::Data(seq, ecn == Ecn::Ce, acks.then_some(f.newest_ack.get()));
                self.order += 1;
                self.events.push(Reverse((at + f.more_delay / 2, self.order, index, data)));
            }
        }
        if f.receiver.wants_ack(now) {
            let own = f.next_ack;
            f.next_ack = Seq48::new(own + 1).get();
            f.acks += 1;
            let acknowledged = f.buffer.newest().expect("something has come");
            let mut bytes = Vec::new();
            let header = Header {
                source_port: 1,
                destination_port: 2,
                ccval: 0,
                checksum_coverage: 0,
                packet_type: PacketType::Ack,
                sequence: WireSequence::Long(Seq48::new(own)),
                acknowledgement: Some(WireSequence::Long(acknowledged)),
            };
            let mut writer = PacketWriter::new(&mut bytes, &header);
            f.receiver.write_options(now, &mut writer);
            assert!(f.buffer.write(acknowledged, &mut writer));
            writer.finish();
            f.receiver.on_ack_sent(now);
            f.buffer.on_ack_sent(Seq48::new(own), acknowledged);
            f.longest_ack = f.longest_ack.max(bytes.len());
            let size = DataSize::from_bytes(28 + bytes.len() as u64);
            if let Some((at, ecn)) = self.back.send(now, size, f.ecn) {
                self.order += 1;
                let ack = Event::Ack(bytes, ecn == Ecn::Ce);
                self.events.push(Reverse((at + f.more_delay / 2, self.order, index, ack)));
            }
        }
    }

    fn on_event(&mut self, index: usize, event: Event) {
        let f = &mut self.flows[index];
        let now = self.now;
        match event {
            Event::Data(seq, is_marked, ack_of_ack) => {
                f.received += 1;
                f.buffer.on_packet(Seq48::new(seq), if is_marked { AckState::Marked } else { AckState::Received });
                if let Some(own) = ack_of_ack {
                    f.buffer.on_ack_of_ack(Seq48::new(own));
                }
                let packet_type = if ack_of_ack.is_some() { PacketType::DataAck } else { PacketType::Data };
                f.receiver.on_packet(&ReceivedPacket {
                    now,
                    sequence: Seq48::new(seq),
                    packet_type,
                    data: PACKET,
                    ecn: if is_marked { Ecn::Ce } else { f.ecn },
                    ccval: 0,
                    ndp_count: None,
                    rtt: None,
                    options: Options::new(&[], packet_type),
                });
            }
            Event::Ack(bytes, is_marked) => {
                let packet = parse(&bytes, 0).expect("our own");
                let mut vector = Vec::new();
                let mut elapsed = None;
                for option in packet.options.iter() {
                    match option.expect("our own") {
                        DccpOption::AckVector { runs, .. } => vector.extend_from_slice(runs),
                        DccpOption::ElapsedTime(tens) => elapsed = Some(TimeDelta::from_micros(i64::from(tens) * 10)),
                        other => panic!("{other:?}"),
                    }
                }
                let whole = |s: WireSequence| s.extend(Seq48::new(0));
                let own = whole(packet.header.sequence);
                f.newest_ack = f.newest_ack.max(own);
                f.sender.on_acknowledgement(&Acknowledgement {
                    now,
                    sequence: own,
                    packet_type: PacketType::Ack,
                    ndp_count: None,
                    acknowledged: whole(packet.header.acknowledgement.expect("an Ack has one")),
                    ack_vector: &vector,
                    elapsed,
                    echo_rtt: None,
                    data_dropped: &[],
                    slow_receiver: false,
                    ecn: if is_marked { Ecn::Ce } else { f.ecn },
                    options: packet.options,
                });
                // The feature's negotiation, without delay.
                f.receiver.on_ack_ratio(f.sender.ack_ratio().unwrap_or(2));
                let cwnd = f.metric("cwnd");
                assert!((1.0..=10_000.0).contains(&cwnd) && f.metric("pipe") <= 20_000.0, "{cwnd}");
            }
        }
    }
}
