//! A hop to a child: the packets that wait for it, under the hop's own controller.

use super::allowance::Allowance;
use super::config::Timing;
use super::store::PacketStore;
use crate::feedback::ccfb_packets;
use crate::sender::SendPath;
use crate::sent::nearest;
use core::net::SocketAddr;
use std::collections::VecDeque;
use weir_cc::cue::{PacketResult, SentPacket};
use weir_cc::{Controller, PacerDecision, Target};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::Packet;
use weir_wire::rtp::PacketView;
use weir_wire::rtp::mprtp::{SubflowNumber, renumber};

/// Most packets that wait for a child.
const MAX_QUEUE: usize = 512;

/// With this many packets waiting none is repeated, so that repeated ones do not delay those of the tree.
const MAX_REPEATED: usize = 16;

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    sequence: u64,
    since: Timestamp,
}

/// Counters of packets sent on a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HopCounters {
    /// RTP packets sent, repeated ones included.
    pub packets: u64,
    /// Their RTP bytes.
    pub bytes: u64,
    /// Packets repeated at the child's request.
    pub repeated: u64,
    /// Packets requested that were not there.
    pub unavailable: u64,
    /// Packets requested that were not repeated, since too many waited or the uplink was used
    /// up: the child asks another parent.
    pub declined: u64,
    /// Packets dropped since they waited too long for the hop's controller, or too many did.
    pub dropped: u64,
}

/// A hop to a child.
pub(super) struct Downstream {
    pub child: u32,
    pub address: SocketAddr,
    pub ticket: u64,
    pub tree: u8,
    path: SendPath,
    queue: VecDeque<Waiting>,
    queued: DataSize,
    /// When anything last came from the child, and was last sent to it.
    pub last_heard: Timestamp,
    pub last_sent: Timestamp,
    /// The controller's target, as taken over.
    wanted: Option<Target>,
    pub counters: HopCounters,
}

/// Context of sending a packet, beside the hop.
pub(super) struct SendContext<'a> {
    pub store: &'a PacketStore,
    /// Longest wait of a packet.
    pub max_wait: TimeDelta,
    /// Identifier of the subflow element.
    pub subflow_id: u8,
}

impl Downstream {
    pub(super) fn new(child: u32, address: SocketAddr, ticket: u64, path: SendPath, now: Timestamp) -> Self {
        Self {
            child,
            address,
            ticket,
            tree: path.id.number(),
            path,
            queue: VecDeque::new(),
            queued: DataSize::ZERO,
            last_heard: now,
            last_sent: now,
            wanted: None,
            counters: HopCounters::default(),
        }
    }

    /// The controller's media rate.
    pub(super) fn target(&self) -> DataRate {
        self.path.target().media_rate
    }

    /// Queues a packet of the tree.
    pub(super) fn forward(&mut self, sequence: u64, size: u64, now: Timestamp) {
        if self.queue.len() >= MAX_QUEUE {
            self.counters.dropped += 1;
            return;
        }
        self.queue.push_back(Waiting { sequence, since: now });
        self.queued += DataSize::from_bytes(size);
    }

    /// Queues a packet that the child has requested, unless it waits already, or there is no room for it.
    pub(super) fn repeat(&mut self, sequence: u64, store: &PacketStore, allowance: &mut Allowance, now: Timestamp) {
        let Some(packet) = store.get(sequence) else {
            self.counters.unavailable += 1;
            return;
        };
        if self.queue.iter().any(|w| w.sequence == sequence) {
            return;
        }
        if self.queue.len() >= MAX_REPEATED || !allowance.take(packet.size(), now) {
            self.counters.declined += 1;
            return;
        }
        self.counters.repeated += 1;
        self.forward(sequence, packet.size(), now);
    }

    /// Feedback from the child, in a report on this hop's subflow. Returns whether it was feedback.
    pub(super) fn on_feedback(&mut self, packet: &Packet<'_>, now: Timestamp) -> bool {
        let last = self.path.last_transport();
        match packet {
            Packet::Twcc(f) => {
                let reports = self.path.reader.twcc(f, move |s| nearest(last, s), now);
                self.path.on_reports(reports, |_| TimeDelta::ZERO, now);
            }
            Packet::Ccfb(f) => {
                let report = self.path.reader.ccfb_report_time(f, now);
                let reports = f.streams().take(1).flat_map(|s| ccfb_packets(&s, report, move |n| nearest(last, n)));
                let holding = |p: &PacketResult| p.arrival.map_or(TimeDelta::ZERO, |a| report - a);
                self.path.on_reports(reports, holding, now);
            }
            _ => return false,
        }
        self.follow_controller(now);
        true
    }

    /// The controller's timer may have expired.
    pub(super) fn on_timeout(&mut self, now: Timestamp) {
        if self.path.run_controller(now) {
            self.follow_controller(now);
        }
        self.path.give_up(now);
    }

    /// Takes over the controller's target. The stream is what it is: there is no padding, and the controller's probes are
    /// not sent, since the hop needs no more than its tree's rate.
    fn follow_controller(&mut self, now: Timestamp) {
        let Some(target) = self.path.wants_news().filter(|t| self.wanted != Some(*t)) else { return };
        self.wanted = Some(target);
        let target = Target { padding_rate: DataRate::ZERO, ..target };
        self.path.apply(target, target.media_rate, now);
    }

    /// Writes the next packet that may be sent now; returns its payload carried as a length, and its ECN field.
    pub(super) fn poll(&mut self, context: &SendContext<'_>, now: Timestamp, out: &mut Vec<u8>) -> Option<(u32, Ecn)> {
        loop {
            let waiting = *self.queue.front()?;
            let packet = context.store.get(waiting.sequence);
            let (Some(packet), true) = (packet, now.saturating_since(waiting.since) <= context.max_wait) else {
                self.queue.pop_front();
                self.counters.dropped += 1;
                self.settle();
                continue;
            };
            let size = DataSize::from_bytes(packet.size());
            let PacerDecision::Media { probe } = self.path.poll_pacer(now, true) else { return None };
            if !self.path.has_room(size) {
                return None;
            }
            self.queue.pop_front();
            self.queued = self.queued.saturating_sub(size);
            self.settle();
            out.extend_from_slice(&packet.bytes);
            let number = self.path.take_number();
            renumber(out, context.subflow_id, SubflowNumber { subflow: self.tree.into(), sequence: number as u16 });
            let sent = SentPacket { probe, queued: self.queued, ..SentPacket::media(now, number, size) };
            let headers = PacketView::parse_header(&packet.bytes).map_or(0, |p| p.header_len());
            self.path.on_sent(sent, u32::try_from(headers).unwrap_or(0));
            self.follow_controller(now);
            self.counters.packets += 1;
            self.counters.bytes += size.as_bytes();
            self.last_sent = now;
            return Some((packet.payload, self.path.ecn));
        }
    }

    /// An empty queue has no bytes: sizes of packets that the store has dropped are not known.
    fn settle(&mut self) {
        if self.queue.is_empty() {
            self.queued = DataSize::ZERO;
        }
    }

    /// Whether the child has been silent for too long.
    pub(super) fn is_silent(&self, timing: &Timing, now: Timestamp) -> bool {
        now >= self.last_heard + timing.child_silence
    }
    /// Whether a keep-alive is due.
    pub(super) fn wants_keepalive(&self, timing: &Timing, now: Timestamp) -> bool {
        now >= self.last_sent + timing.keepalive
    }

    pub(super) fn poll_timeout(&mut self, timing: &Timing, now: Timestamp) -> Timestamp {
        let mut at = (self.last_heard + timing.child_silence).min(self.last_sent + timing.keepalive);
        crate::timers::earliest(&mut at, self.path.controller.poll_timeout().map(|(at, _)| at));
        if !self.queue.is_empty() {
            crate::timers::earliest(&mut at, self.path.next_departure(now, || true));
        }
        at
    }
}
