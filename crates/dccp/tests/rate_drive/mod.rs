//! A half-connection of CCID 3, 4 or 248 at a steady loss event rate over a path of 50 ms: for benches and the proof that it
//! does not allocate.

use std::collections::VecDeque;
use weir_dccp::ccid::{
    Acknowledgement, CcidReceiver, CcidSender, Permission, ReceivedPacket, Receiver, Registry, Sender, SentPacket,
    Setup,
};
use weir_dccp::option::Options;
use weir_dccp::packet::{Header, PacketType, PacketWriter, WireSequence, parse};
use weir_units::{DataSize, Ecn, Seq48, TimeDelta, Timestamp};

const RTT: TimeDelta = TimeDelta::from_millis(50);
const SIZE: DataSize = DataSize::from_bytes(1_200);

#[derive(Clone, Copy)]
struct Flying {
    arrives: Timestamp,
    number: u64,
    ccval: u8,
}

struct Feedback {
    now: Timestamp,
    acknowledged: Seq48,
    bytes: Vec<u8>,
}

/// Both halves.
pub(crate) struct Drive {
    sender: Sender,
    receiver: Receiver,
    now: Timestamp,
    next: u64,
    lose_every: u64,
    flying: VecDeque<Flying>,
    feedback: Vec<Feedback>,
    spare: Vec<Vec<u8>>,
}

impl Drive {
    /// One packet lost of so many.
    pub(crate) fn new(ccid: u8, lose_every: u64) -> Self {
        let setup = Setup {
            now: Timestamp::ZERO,
            max_packet_size: SIZE,
            rtt: Some(RTT),
            ecn: true,
            ack_ratio: 2,
            params: Vec::new(),
        };
        let registry = Registry::builtin();
        let spec = registry.get(ccid).expect("built in");
        Self {
            sender: (spec.sender)(&setup).expect("defaults"),
            receiver: (spec.receiver)(&setup).expect("defaults"),
            now: Timestamp::ZERO,
            next: 1,
            lose_every,
            flying: VecDeque::new(),
            feedback: Vec::new(),
            spare: Vec::new(),
        }
    }
    pub(crate) fn metric(&self, wanted: &str) -> f64 {
        let mut found = f64::NAN;
        self.sender.metrics(&mut |name, v| found = if name == wanted { v } else { found });
        found
    }
    /// Sends what a quarter of a round trip allows; gives how many packets.
    pub(crate) fn send(&mut self) -> u64 {
        let (before, end) = (self.next, self.now + RTT / 4);
        loop {
            let at = match self.sender.may_send(self.now, SIZE) {
                Permission::Now => self.now,
                Permission::At(at) => at,
                Permission::Blocked => end,
            };
            if at >= end {
                break;
            }
            self.now = at;
            let ccval = self.sender.ccval(at);
            self.sender.on_packet_sent(&SentPacket {
                now: at,
                sequence: Seq48::new(self.next),
                packet_type: PacketType::Data,
                data: SIZE,
                header: DataSize::from_bytes(16),
                ecn: Ecn::Ect0,
                queued: SIZE,
            });
            if !self.next.is_multiple_of(self.lose_every) {
                self.flying.push_back(Flying { arrives: at + RTT / 2, number: self.next, ccval });
            }
            self.next += 1;
        }
        self.now = end;
        self.next - before
    }
    /// What has come by now is taken, and feedback on it is made; gives how many packets came.
    pub(crate) fn receive(&mut self) -> u64 {
        let mut came = 0;
        while let Some(f) = self.flying.front().copied().filter(|f| f.arrives <= self.now) {
            self.flying.pop_front();
            came += 1;
            let sequence = Seq48::new(f.number);
            self.receiver.on_packet(&ReceivedPacket {
                now: f.arrives,
                sequence,
                packet_type: PacketType::Data,
                data: SIZE,
                ecn: Ecn::Ect0,
                ccval: f.ccval,
                ndp_count: None,
                rtt: None,
                options: Options::new(&[], PacketType::Data),
            });
            if self.receiver.wants_ack(f.arrives) {
                self.feed_back(f.arrives, sequence);
            }
        }
        came
    }
    fn feed_back(&mut self, now: Timestamp, acknowledged: Seq48) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        let header = Header {
            source_port: 1,
            destination_port: 2,
            ccval: 0,
            checksum_coverage: 0,
            packet_type: PacketType::Ack,
            sequence: WireSequence::Long(Seq48::new(1)),
            acknowledgement: Some(WireSequence::Long(acknowledged)),
        };
        let mut writer = PacketWriter::new(&mut bytes, &header);
        self.receiver.write_options(now, &mut writer);
        writer.finish();
        self.receiver.on_ack_sent(now);
        self.feedback.push(Feedback { now, acknowledged, bytes });
    }
    /// The sender takes the feedback; gives how much.
    pub(crate) fn acknowledge(&mut self) -> u64 {
        let taken = self.feedback.len() as u64;
        for f in self.feedback.drain(..) {
            let packet = parse(&f.bytes, 0).expect("our own");
            self.sender.on_acknowledgement(&Acknowledgement {
                now: self.now.max(f.now + RTT / 2),
                sequence: Seq48::new(1),
                packet_type: PacketType::Ack,
                ndp_count: None,
                acknowledged: f.acknowledged,
                ack_vector: &[],
                elapsed: Some(TimeDelta::ZERO),
                echo_rtt: None,
                data_dropped: &[],
                slow_receiver: false,
                ecn: Ecn::NotEct,
                options: packet.options,
            });
            self.spare.push(f.bytes);
        }
        taken
    }
    /// A quarter of a round trip; gives the packets sent.
    pub(crate) fn step(&mut self) -> u64 {
        if self.sender.poll_timeout().is_some_and(|t| t <= self.now) {
            self.sender.on_timeout(self.now);
        }
        let sent = self.send();
        self.receive();
        self.acknowledge();
        sent
    }
}
