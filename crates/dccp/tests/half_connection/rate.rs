//! A half-connection of CCID 3, 4 or 248 at a steady loss event rate.

use super::{Halves, RTT, SIZE, acknowledgement};
use std::collections::VecDeque;
use weir_dccp::ccid::{Acknowledgement, CcidReceiver, CcidSender, Permission};
use weir_dccp::packet::{PacketType, parse};
use weir_units::{Seq48, TimeDelta, Timestamp};

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
    halves: Halves,
    now: Timestamp,
    next: u64,
    lose_every: u64,
    flying: VecDeque<Flying>,
    feedback: Vec<Feedback>,
    spare: Vec<Vec<u8>>,
}

impl Drive {
    /// One packet of this many is lost.
    pub(crate) fn new(ccid: u8, lose_every: u64) -> Self {
        Self {
            halves: Halves::new(ccid, &[]),
            now: Timestamp::ZERO,
            next: 1,
            lose_every,
            flying: VecDeque::new(),
            feedback: Vec::new(),
            spare: Vec::new(),
        }
    }
    pub(crate) fn metric(&self, wanted: &str) -> f64 {
        self.halves.metric(wanted)
    }
    /// Sends what a quarter of a round trip allows; returns the number of packets.
    pub(crate) fn send(&mut self) -> u64 {
        let (before, end) = (self.next, self.now + RTT / 4);
        loop {
            let at = match self.halves.sender.may_send(self.now, SIZE) {
                Permission::Now => self.now,
                Permission::At(at) => at,
                Permission::Blocked => end,
            };
            if at >= end {
                break;
            }
            self.now = at;
            let ccval = self.halves.sender.ccval(at);
            self.halves.send(at, self.next, PacketType::Data);
            if !self.next.is_multiple_of(self.lose_every) {
                self.flying.push_back(Flying { arrives: at + RTT / 2, number: self.next, ccval });
            }
            self.next += 1;
        }
        self.now = end;
        self.next - before
    }
    /// Delivers the packets that have arrived by now and makes feedback; returns the number of packets.
    pub(crate) fn receive(&mut self) -> u64 {
        let mut came = 0;
        while let Some(f) = self.flying.front().copied().filter(|f| f.arrives <= self.now) {
            self.flying.pop_front();
            came += 1;
            let sequence = Seq48::new(f.number);
            self.halves.receive(f.arrives, sequence, f.ccval);
            if self.halves.receiver.wants_ack(f.arrives) {
                let mut bytes = self.spare.pop().unwrap_or_default();
                self.halves.write_ack(f.arrives, Seq48::new(1), sequence, &mut bytes, |_| {});
                self.feedback.push(Feedback { now: f.arrives, acknowledged: sequence, bytes });
            }
        }
        came
    }
    /// The sender processes the feedback; returns its number of packets.
    pub(crate) fn acknowledge(&mut self) -> u64 {
        let taken = self.feedback.len() as u64;
        for f in self.feedback.drain(..) {
            let packet = parse(&f.bytes, 0).expect("our own");
            self.halves.sender.on_acknowledgement(&Acknowledgement {
                elapsed: Some(TimeDelta::ZERO),
                options: packet.options,
                ..acknowledgement(self.now.max(f.now + RTT / 2), Seq48::new(1), f.acknowledged)
            });
            self.spare.push(f.bytes);
        }
        taken
    }
    /// A quarter of a round trip; returns the packets sent.
    pub(crate) fn step(&mut self) -> u64 {
        self.halves.run_timer(self.now);
        let sent = self.send();
        self.receive();
        self.acknowledge();
        sent
    }
}
