//! A half-connection without a connection: sender, link, receiver and return path.

use crate::ccid::{
    Acknowledgement, CcidReceiver, CcidSender, Chunk, Permission, ReceivedPacket, Receiver, Registry, Sender,
    SentPacket, Setup,
};
use crate::packet::{Header, PacketType, PacketWriter, WireSequence, parse};
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, Ecn, Seq48, TimeDelta, Timestamp};

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    Marked,
}

#[derive(Clone, Copy)]
struct Flying {
    at: Timestamp,
    sequence: Seq48,
    size: DataSize,
    ccval: u8,
    ecn: Ecn,
}

struct Feedback {
    at: Timestamp,
    held_from: Timestamp,
    sent_at: Timestamp,
    acknowledged: Seq48,
    bytes: Vec<u8>,
}

/// The application's behaviour.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// Sends all it may.
    Greedy,
    /// Passes a packet to the queue at each interval.
    Every(TimeDelta),
    /// Passes a chunk of this many packets at each interval, and every `key_every` of them the last number of packets.
    Frames {
        interval: TimeDelta,
        packets: u64,
        key_every: u64,
        key: u64,
    },
    Silent,
}

pub(crate) struct Net {
    pub(crate) sender: Sender,
    receiver: Receiver,
    pub(crate) now: Timestamp,
    pub(crate) sequence: u64,
    pub(crate) size: DataSize,
    pub(crate) capacity: DataRate,
    /// The maximum wait in the queue; packets beyond it are dropped.
    pub(crate) queue: TimeDelta,
    pub(crate) one_way: TimeDelta,
    pub(crate) source: Source,
    pub(crate) deaf: bool,
    /// Whether feedback reports an open second interval with its first reported length, as Linux did.
    pub(crate) freezes_second: bool,
    frozen: Option<[u8; 3]>,
    /// Other options of the next acknowledgement.
    pub(crate) data_dropped: Vec<u8>,
    pub(crate) slow_receiver: bool,
    free_at: Timestamp,
    next_frame: Timestamp,
    /// When the waiting packets were queued.
    waiting: VecDeque<Timestamp>,
    frames: u64,
    /// Packets that may wait; more are refused.
    pub(crate) room: usize,
    /// A packet sent later than this after it was queued is late.
    pub(crate) patience: TimeDelta,
    pub(crate) offered: u64,
    pub(crate) refused: u64,
    pub(crate) late: u64,
    forward: VecDeque<Flying>,
    back: VecDeque<Feedback>,
    spare: Vec<Vec<u8>>,
    newest: Option<(Seq48, Timestamp)>,
    pub(crate) sent: u64,
    pub(crate) dropped: u64,
    pub(crate) received: u64,
    pub(crate) feedbacks: u64,
    /// Send times of the last packets, for spacing.
    pub(crate) log: Vec<(Timestamp, u8)>,
    pub(crate) wants_log: bool,
}

const START: u64 = (1 << 48) - 50;

impl Net {
    pub(crate) fn new(number: u8, params: &[(&str, f64)]) -> Self {
        Self::sized(number, 1_000, params)
    }
    /// With packets of up to this many bytes.
    pub(crate) fn sized(number: u8, max: u64, params: &[(&str, f64)]) -> Self {
        let registry = Registry::builtin();
        let spec = registry.get(number).expect("a CCID");
        let size = DataSize::from_bytes(max);
        let setup = Setup {
            now: Timestamp::ZERO,
            max_packet_size: size,
            rtt: None,
            ecn: true,
            ack_ratio: 2,
            params: params.iter().map(|&(n, v)| (n.into(), v)).collect(),
        };
        Self {
            sender: (spec.sender)(&setup).expect("parameters"),
            receiver: (spec.receiver)(&setup).expect("parameters"),
            now: Timestamp::ZERO,
            sequence: 0,
            size,
            capacity: DataRate::from_mbps(1_000),
            queue: TimeDelta::from_millis(50),
            one_way: TimeDelta::from_millis(50),
            source: Source::Greedy,
            deaf: false,
            freezes_second: false,
            frozen: None,
            data_dropped: Vec::new(),
            slow_receiver: false,
            free_at: Timestamp::ZERO,
            next_frame: Timestamp::ZERO,
            waiting: VecDeque::new(),
            frames: 0,
            room: usize::MAX,
            patience: TimeDelta::MAX,
            offered: 0,
            refused: 0,
            late: 0,
            forward: VecDeque::new(),
            back: VecDeque::new(),
            spare: Vec::new(),
            newest: None,
            sent: 0,
            dropped: 0,
            received: 0,
            feedbacks: 0,
            log: Vec::new(),
            wants_log: false,
        }
    }

    /// When a packet may be sent, if one is waiting.
    fn send_at(&self) -> Timestamp {
        if self.waiting.is_empty() && !matches!(self.source, Source::Greedy) {
            return Timestamp::MAX;
        }
        match self.sender.may_send(self.now, self.size) {
            Permission::Now => self.now,
            Permission::At(at) => at.max(self.now),
            Permission::Blocked => Timestamp::MAX,
        }
    }

    /// Runs for this many milliseconds; `fate` decides on each packet by its index.
    pub(crate) fn run(&mut self, ms: i64, mut fate: impl FnMut(u64) -> Fate) {
        let end = self.now + TimeDelta::from_millis(ms);
        self.next_frame = self.next_frame.max(self.now);
        loop {
            let frame = match self.source {
                Source::Every(_) | Source::Frames { .. } => self.next_frame,
                Source::Greedy | Source::Silent => Timestamp::MAX,
            };
            let timer = self.sender.poll_timeout().unwrap_or(Timestamp::MAX);
            let data = self.forward.front().map_or(Timestamp::MAX, |f| f.at);
            let back = self.back.front().map_or(Timestamp::MAX, |f| f.at);
            let ack = if self.receiver.wants_ack(self.now) {
                self.now
            } else {
                self.receiver.poll_timeout().unwrap_or(Timestamp::MAX)
            };
            let send = self.send_at();
            let at = [frame, timer, data, back, ack, send].into_iter().min().expect("six").max(self.now);
            if at > end {
                break self.now = end;
            }
            self.now = at;
            if at >= back {
                self.acknowledge();
            } else if at >= ack {
                self.feed_back();
            } else if at >= data {
                self.arrive();
            } else if at >= timer {
                self.sender.on_timeout(at);
                assert!(self.sender.poll_timeout().is_none_or(|t| t > at));
            } else if at >= frame {
                self.hand_over();
            } else {
                let fate = fate(self.sequence);
                self.send(fate);
            }
        }
    }

    fn hand_over(&mut self) {
        let (interval, packets) = match self.source {
            Source::Every(interval) => (interval, 1),
            Source::Frames { interval, packets, key_every, key } => {
                let packets = if self.frames.is_multiple_of(key_every) { key } else { packets };
                self.sender.on_chunk(&Chunk { now: self.now, size: self.size * packets, interval });
                (interval, packets)
            }
            Source::Greedy | Source::Silent => return,
        };
        self.next_frame += interval;
        self.frames += 1;
        for _ in 0..packets {
            self.offered += 1;
            if self.waiting.len() >= self.room {
                self.refused += 1;
            } else {
                self.waiting.push_back(self.now);
            }
        }
    }

    fn send(&mut self, fate: Fate) {
        let ccval = self.sender.ccval(self.now);
        let handed_over = self.waiting.pop_front().unwrap_or(self.now);
        self.late += u64::from(self.now - handed_over > self.patience);
        let waiting = self.waiting.len() as u64;
        let queued = if let Source::Greedy = self.source { self.size } else { self.size * waiting };
        let sequence = Seq48::new(START).add(self.sequence);
        self.sender.on_packet_sent(&SentPacket {
            now: self.now,
            sequence,
            packet_type: PacketType::Data,
            data: self.size,
            header: DataSize::from_bytes(16),
            ecn: Ecn::Ect0,
            queued,
        });
        self.sequence += 1;
        self.sent += 1;
        if self.wants_log {
            self.log.push((self.now, ccval));
        }
        let leaves = self.free_at.max(self.now) + self.capacity.time_for(self.size).expect("a capacity");
        if fate == Fate::Lost || leaves - self.now > self.queue {
            self.dropped += 1;
            return;
        }
        self.free_at = leaves;
        let ecn = if fate == Fate::Marked { Ecn::Ce } else { Ecn::Ect0 };
        self.forward.push_back(Flying { at: leaves + self.one_way, sequence, size: self.size, ccval, ecn });
    }

    fn arrive(&mut self) {
        let Some(f) = self.forward.pop_front() else { return };
        self.received += 1;
        self.newest = Some((f.sequence, self.now));
        self.receiver.on_packet(&ReceivedPacket {
            now: self.now,
            sequence: f.sequence,
            packet_type: PacketType::Data,
            data: f.size,
            ecn: f.ecn,
            ccval: f.ccval,
            ndp_count: None,
            rtt: None,
            options: crate::option::Options::new(&[], PacketType::Data),
        });
    }

    fn feed_back(&mut self) {
        let (acknowledged, held_from) = self.newest.expect("a packet");
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        let header = Header {
            source_port: 1,
            destination_port: 2,
            ccval: 0,
            checksum_coverage: 0,
            packet_type: PacketType::Ack,
            sequence: WireSequence::Long(Seq48::new(self.feedbacks)),
            acknowledgement: Some(WireSequence::Long(acknowledged)),
        };
        let mut writer = PacketWriter::new(&mut bytes, &header);
        self.receiver.write_options(self.now, &mut writer);
        writer.finish();
        if self.freezes_second {
            self.freeze(&mut bytes);
        }
        self.receiver.on_ack_sent(self.now);
        self.feedbacks += 1;
        let at = self.now + self.one_way;
        self.back.push_back(Feedback { at, held_from, sent_at: self.now, acknowledged, bytes });
    }

    /// Rewrites the data length of the open interval if two are reported.
    fn freeze(&mut self, bytes: &mut [u8]) {
        const HEADER: usize = 24;
        let mut at = HEADER;
        while at + 1 < bytes.len() && bytes[at] != 0 {
            let len = usize::from(bytes[at + 1]);
            if bytes[at] == 193 && len == 3 + 2 * 9 {
                let place = &mut bytes[at + 9..at + 12];
                let frozen = *self.frozen.get_or_insert([place[0], place[1], place[2]]);
                place.copy_from_slice(&frozen);
            }
            at += len;
        }
    }

    fn acknowledge(&mut self) {
        let Some(f) = self.back.pop_front() else { return };
        if !self.deaf {
            let packet = parse(&f.bytes, 0).expect("our own packet");
            self.sender.on_acknowledgement(&Acknowledgement {
                now: self.now,
                sequence: Seq48::new(0),
                packet_type: PacketType::Ack,
                ndp_count: None,
                acknowledged: f.acknowledged,
                ack_vector: &[],
                elapsed: Some(f.sent_at - f.held_from),
                echo_rtt: None,
                data_dropped: &self.data_dropped,
                slow_receiver: self.slow_receiver,
                ecn: Ecn::NotEct,
                options: packet.options,
            });
        }
        self.spare.push(f.bytes);
    }

    pub(crate) fn kbps(&self) -> f64 {
        self.sender.rate().map_or(0.0, DataRate::as_kbps_f64)
    }
    pub(crate) fn metric(&self, wanted: &str) -> f64 {
        let mut found = None;
        self.sender.metrics(&mut |name, v| {
            if name == wanted {
                found = Some(v);
            }
        });
        found.expect("a metric of this name")
    }
    /// Mean rate sent during this run.
    pub(crate) fn sent_kbps(&mut self, ms: i64, fate: impl FnMut(u64) -> Fate) -> f64 {
        let before = self.sent;
        self.run(ms, fate);
        (self.sent - before) as f64 * self.size.as_bits() as f64 / ms as f64
    }
}

pub(crate) fn clean(_: u64) -> Fate {
    Fate::Arrives
}

#[track_caller]
pub(crate) fn within(value: f64, range: core::ops::RangeInclusive<f64>) {
    assert!(range.contains(&value), "{value} is not in {range:?}");
}
