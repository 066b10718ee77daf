//! A half-connection of CCID 2 or 5 with a window that is always full: for benches and the proof that it does not allocate.

use std::ops::Range;
use weir_dccp::ack_vector::{AckState, Buffer};
use weir_dccp::ccid::{
    Acknowledgement, CcidReceiver, CcidSender, Permission, ReceivedPacket, Receiver, Registry, Sender, SentPacket,
    Setup,
};
use weir_dccp::option::{DccpOption, Options};
use weir_dccp::packet::{Header, PacketType, PacketWriter, WireSequence, parse};
use weir_units::{DataSize, Ecn, Seq48, TimeDelta, Timestamp};

const RTT: TimeDelta = TimeDelta::from_millis(50);
const SIZE: DataSize = DataSize::from_bytes(1_200);

/// Both halves and the receiver's Ack Vector.
pub(crate) struct Drive {
    sender: Sender,
    receiver: Receiver,
    buffer: Buffer,
    now: Timestamp,
    next: u64,
    /// Packets that the receiver has seen.
    arrived: u64,
    own: u64,
    newest_ack: Option<Seq48>,
    lose_every: u64,
    packet: Vec<u8>,
    /// Acknowledgements on their way: own number, number acknowledged, and where in `vectors` the vector stands.
    acks: Vec<(Seq48, Seq48, Range<usize>)>,
    vectors: Vec<u8>,
}

impl Drive {
    /// A window of `window` packets at most; every so many packets one is lost.
    pub(crate) fn new(ccid: u8, window: u32, lose_every: u64) -> Self {
        let params = [("max_window", f64::from(window)), ("max_burst", 0.0), ("window_validation", 0.0)];
        let setup = Setup {
            now: Timestamp::ZERO,
            max_packet_size: SIZE,
            rtt: Some(RTT),
            ecn: true,
            ack_ratio: 2,
            params: params.map(|(name, value)| (name.into(), value)).to_vec(),
        };
        let registry = Registry::builtin();
        let spec = registry.get(ccid).expect("built in");
        Self {
            sender: (spec.sender)(&setup).expect("valid parameters"),
            receiver: (spec.receiver)(&setup).expect("valid parameters"),
            buffer: Buffer::default(),
            now: Timestamp::ZERO,
            next: 1,
            arrived: 1,
            own: 1,
            newest_ack: None,
            lose_every,
            packet: Vec::new(),
            acks: Vec::new(),
            vectors: Vec::new(),
        }
    }
    pub(crate) fn window(&self) -> f64 {
        let mut cwnd = 0.0;
        self.sender.metrics(&mut |name, v| cwnd = if name == "cwnd" { v } else { cwnd });
        cwnd
    }
    /// Sends what the window lets out; gives how many packets.
    pub(crate) fn send(&mut self) -> u64 {
        let before = self.next;
        while self.sender.may_send(self.now, SIZE) == Permission::Now {
            let acks = self.sender.wants_ack_of_ack(self.now);
            self.sender.on_packet_sent(&SentPacket {
                now: self.now,
                sequence: Seq48::new(self.next),
                packet_type: if acks { PacketType::DataAck } else { PacketType::Data },
                data: SIZE,
                header: DataSize::from_bytes(16),
                ecn: Ecn::Ect0,
                queued: SIZE,
            });
            self.next += 1;
            if acks && let Some(own) = self.newest_ack {
                self.buffer.on_ack_of_ack(own);
            }
        }
        self.next - before
    }
    /// All that is on its way comes, and the acknowledgements of it are made; gives how many.
    pub(crate) fn receive(&mut self) -> u64 {
        self.vectors.clear();
        self.acks.clear();
        self.now += RTT;
        while self.arrived < self.next {
            let n = self.arrived;
            self.arrived += 1;
            if n.is_multiple_of(self.lose_every) {
                continue;
            }
            let sequence = Seq48::new(n);
            self.buffer.on_packet(sequence, AckState::Received);
            self.receiver.on_packet(&ReceivedPacket {
                now: self.now,
                sequence,
                packet_type: PacketType::Data,
                data: SIZE,
                ecn: Ecn::Ect0,
                ccval: 0,
                ndp_count: None,
                rtt: None,
                options: Options::new(&[], PacketType::Data),
            });
            if self.receiver.wants_ack(self.now) || self.arrived == self.next {
                self.make_ack(sequence);
            }
        }
        self.acks.len() as u64
    }
    fn make_ack(&mut self, acknowledged: Seq48) {
        let own = Seq48::new(self.own);
        self.own += 1;
        self.packet.clear();
        let header = Header {
            source_port: 1,
            destination_port: 2,
            ccval: 0,
            checksum_coverage: 0,
            packet_type: PacketType::Ack,
            sequence: WireSequence::Long(own),
            acknowledgement: Some(WireSequence::Long(acknowledged)),
        };
        let mut writer = PacketWriter::new(&mut self.packet, &header);
        self.receiver.write_options(self.now, &mut writer);
        self.buffer.write(acknowledged, &mut writer);
        writer.finish();
        self.receiver.on_ack_sent(self.now);
        self.buffer.on_ack_sent(own, acknowledged);
        let start = self.vectors.len();
        for option in parse(&self.packet, 0).expect("our own").options.iter() {
            if let Ok(DccpOption::AckVector { runs, .. }) = option {
                self.vectors.extend_from_slice(runs);
            }
        }
        self.acks.push((own, acknowledged, start..self.vectors.len()));
    }
    /// The sender takes these acknowledgements; gives how many.
    pub(crate) fn acknowledge(&mut self) -> u64 {
        for (own, acknowledged, vector) in &self.acks {
            self.sender.on_acknowledgement(&Acknowledgement {
                now: self.now,
                sequence: *own,
                packet_type: PacketType::Ack,
                ndp_count: None,
                acknowledged: *acknowledged,
                ack_vector: &self.vectors[vector.clone()],
                elapsed: None,
                echo_rtt: None,
                data_dropped: &[],
                slow_receiver: false,
                ecn: Ecn::Ect0,
                options: Options::new(&[], PacketType::Ack),
            });
            self.newest_ack = Some(*own);
        }
        self.acks.len() as u64
    }
    /// A round trip; gives the packets sent.
    pub(crate) fn round(&mut self) -> u64 {
        if self.sender.poll_timeout().is_some_and(|t| t <= self.now) {
            self.sender.on_timeout(self.now);
        }
        let sent = self.send();
        self.receive();
        self.acknowledge();
        sent
    }
}
