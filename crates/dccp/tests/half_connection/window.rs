//! A half-connection of CCID 2 or 5 with a window that is always full.

use super::{Halves, RTT, SIZE, acknowledgement};
use std::ops::Range;
use weir_dccp::ack_vector::{AckState, Buffer};
use weir_dccp::ccid::{Acknowledgement, CcidReceiver, CcidSender, Permission};
use weir_dccp::option::DccpOption;
use weir_dccp::packet::{PacketType, parse};
use weir_units::{Seq48, Timestamp};

/// An acknowledgement in flight.
struct Ack {
    own: Seq48,
    acknowledged: Seq48,
    /// Position of its vector in [`Drive::vectors`].
    vector: Range<usize>,
}

/// Both halves and the receiver's Ack Vector.
pub(crate) struct Drive {
    halves: Halves,
    buffer: Buffer,
    now: Timestamp,
    next: u64,
    /// Packets received.
    arrived: u64,
    own: u64,
    newest_ack: Option<Seq48>,
    lose_every: u64,
    packet: Vec<u8>,
    acks: Vec<Ack>,
    vectors: Vec<u8>,
}

impl Drive {
    /// A window of at most `window` packets; one packet of this many is lost.
    pub(crate) fn new(ccid: u8, window: u32, lose_every: u64) -> Self {
        let params = [("max_window", f64::from(window)), ("max_burst", 0.0), ("window_validation", 0.0)];
        Self {
            halves: Halves::new(ccid, &params),
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
        self.halves.metric("cwnd")
    }
    /// Sends what the window allows; returns the number of packets.
    pub(crate) fn send(&mut self) -> u64 {
        let before = self.next;
        while self.halves.sender.may_send(self.now, SIZE) == Permission::Now {
            let acks = self.halves.sender.wants_ack_of_ack(self.now);
            self.halves.send(self.now, self.next, if acks { PacketType::DataAck } else { PacketType::Data });
            self.next += 1;
            if acks && let Some(own) = self.newest_ack {
                self.buffer.on_ack_of_ack(own);
            }
        }
        self.next - before
    }
    /// Delivers and acknowledges everything in flight; returns the number of acknowledgements.
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
            self.halves.receive(self.now, sequence, 0);
            if self.halves.receiver.wants_ack(self.now) || self.arrived == self.next {
                self.make_ack(sequence);
            }
        }
        self.acks.len() as u64
    }
    fn make_ack(&mut self, acknowledged: Seq48) {
        let own = Seq48::new(self.own);
        self.own += 1;
        let Self { halves, buffer, packet, .. } = self;
        halves.write_ack(self.now, own, acknowledged, packet, |writer| {
            buffer.write(acknowledged, writer);
        });
        self.buffer.on_ack_sent(own, acknowledged);
        let start = self.vectors.len();
        for option in parse(&self.packet, 0).expect("our own").options.iter() {
            if let Ok(DccpOption::AckVector { runs, .. }) = option {
                self.vectors.extend_from_slice(runs);
            }
        }
        self.acks.push(Ack { own, acknowledged, vector: start..self.vectors.len() });
    }
    /// The sender processes these acknowledgements; returns their number.
    pub(crate) fn acknowledge(&mut self) -> u64 {
        for ack in &self.acks {
            self.halves.sender.on_acknowledgement(&Acknowledgement {
                ack_vector: &self.vectors[ack.vector.clone()],
                ecn: weir_units::Ecn::Ect0,
                ..acknowledgement(self.now, ack.own, ack.acknowledged)
            });
            self.newest_ack = Some(ack.own);
        }
        self.acks.len() as u64
    }
    /// A round trip; returns the packets sent.
    pub(crate) fn round(&mut self) -> u64 {
        self.halves.run_timer(self.now);
        let sent = self.send();
        self.receive();
        self.acknowledge();
        sent
    }
}
