//! RTP at a node: joining the trees, delivering, forwarding.

use super::{MAX_DELIVERED, Node};
use crate::nack::Arrived;
use crate::overlay::datagram::{Outgoing, Received};
use crate::overlay::downstream::SendContext;
use crate::overlay::store::Inserted;
use crate::overlay::upstream::HopArrival;
use crate::sent::nearest;
use core::net::SocketAddr;
use weir_units::{DataSize, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;
use weir_wire::rtp::mprtp::SubflowNumber;

/// A packet further ahead is not accepted unless the stream has been silent (RFC 3550, appendix A.1).
const MAX_DROPOUT: u64 = 3_000;
/// Silence after which a stream may continue anywhere.
const RESTART: TimeDelta = TimeDelta::from_secs(2);

/// A packet for the application, in the order of arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// Its RTP sequence number, unwrapped, one cycle up; [`Node::packet`] returns its bytes.
    pub sequence: u64,
    /// Its RTP timestamp.
    pub timestamp: u32,
    /// Its marker bit.
    pub marker: bool,
    /// Bytes of the RTP packet.
    pub size: DataSize,
    /// The tree to which it belongs.
    pub tree: u8,
    /// Whether it came by another tree's parent, at this node's request.
    pub is_repair: bool,
}

/// Why the root does not send a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// Only the root sends packets of its own.
    #[error("only the root of an overlay sends")]
    NotRoot,
    /// The bytes are not an RTP packet.
    #[error(transparent)]
    Packet(#[from] weir_wire::Error),
    /// The packet has no subflow number (`NodeConfig::subflow_id`), which hops need.
    #[error("the RTP packet has no element with a subflow number")]
    NoSubflowNumber,
    /// Its sequence number was sent before.
    #[error("a packet with this sequence number was sent before")]
    Repeated,
}

/// The stream's RTP clock on this node's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MediaClock {
    /// The last timestamp, unwrapped.
    ticks: i64,
    /// The earliest that timestamp 0 would have arrived; `None` before the first packet.
    zero: Option<Timestamp>,
    /// When the last packet arrived.
    last: Option<Timestamp>,
}

impl MediaClock {
    /// A packet has arrived: returns when it is played.
    fn on_packet(&mut self, timestamp: u32, rate: u32, playout: TimeDelta, now: Timestamp) -> Timestamp {
        self.ticks = match self.zero {
            None => i64::from(timestamp),
            Some(_) => self.ticks + i64::from(timestamp.wrapping_sub(self.ticks as u32) as i32),
        };
        let nanos = i128::from(self.ticks) * 1_000_000_000 / i128::from(rate.max(1));
        let media = TimeDelta::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX / 4));
        // A timestamp far in the past shows another clock.
        let known = self.zero.filter(|z| now <= *z + media + playout + RESTART);
        let zero = known.map_or(now - media, |z| z.min(now - media));
        self.zero = Some(zero);
        self.last = Some(now);
        zero + media + playout
    }
}

impl Node {
    /// The root sends a packet of the stream: RTP with a subflow element, whose number each hop replaces, and `payload`
    /// bytes after `bytes` carried as a length only.
    ///
    /// # Errors
    /// This is not the root, or the packet is not one that can be sent.
    pub fn send(&mut self, bytes: &[u8], payload: u32, now: Timestamp) -> Result<(), SendError> {
        if !self.is_root() {
            return Err(SendError::NotRoot);
        }
        let view = PacketView::parse_header(bytes)?;
        let element = view.extension(self.config.subflow_id).and_then(SubflowNumber::from_data);
        if element.is_none() {
            return Err(SendError::NoSubflowNumber);
        }
        let sequence = self.unwrap_sequence(view.sequence());
        let tree = self.config.division.tree(self.trees(), view.sequence(), view.timestamp());
        if self.store.insert(sequence, bytes, payload, tree) != Inserted::New {
            return Err(SendError::Repeated);
        }
        self.counters.packets += 1;
        self.counters.bytes += bytes.len() as u64 + u64::from(payload);
        self.forward(sequence, tree, now);
        Ok(())
    }

    pub(super) fn trees(&self) -> u8 {
        self.slots.len() as u8
    }

    fn unwrap_sequence(&self, sequence: u16) -> u64 {
        self.store.highest().map_or(65_536 + u64::from(sequence), |last| nearest(last, sequence))
    }

    /// An RTP packet has arrived.
    pub(super) fn on_rtp(&mut self, received: &Received<'_>, now: Timestamp) {
        let Ok(view) = PacketView::parse_header(received.bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let number = view.extension(self.config.subflow_id).and_then(SubflowNumber::from_data);
        let Some(number) = number.filter(|_| view.ssrc() == self.config.ssrc) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(slot) = self.slots.get_mut(usize::from(number.subflow)) else {
            self.counters.strangers += 1;
            return;
        };
        let is_from = |place: SocketAddr| place == received.from;
        let ups = slot.current.iter_mut().chain(&mut slot.candidate);
        let Some(up) = ups.into_iter().find(|u| is_from(u.place.address)) else {
            self.counters.strangers += 1;
            return;
        };
        let size = DataSize::from_bytes(received.bytes.len() as u64 + u64::from(received.payload));
        let arrival = HopArrival { number: number.sequence, timestamp: view.timestamp(), size, ecn: received.ecn };
        up.on_rtp(&arrival, now);
        let is_candidate = !up.is_attached();
        let hop_tree = number.subflow as u8;
        if is_candidate {
            // Its answer has been lost or overtaken.
            self.promote(hop_tree, now);
        }
        self.join(&view, received, hop_tree, now);
    }

    /// Joins a parent's packet to those of the other trees.
    fn join(&mut self, view: &PacketView<'_>, received: &Received<'_>, hop_tree: u8, now: Timestamp) {
        let sequence = self.unwrap_sequence(view.sequence());
        let ahead = self.store.highest().map_or(0, |h| sequence.saturating_sub(h));
        let silent = self.clock.last.is_none_or(|last| now.saturating_since(last) > RESTART);
        if ahead > MAX_DROPOUT && !silent {
            self.counters.out_of_range += 1;
            return;
        }
        let tree = self.config.division.tree(self.trees(), view.sequence(), view.timestamp());
        match self.store.insert(sequence, received.bytes, received.payload, tree) {
            Inserted::New => {}
            Inserted::Duplicate => {
                self.counters.duplicates += 1;
                return;
            }
            Inserted::Old => {
                self.counters.out_of_range += 1;
                return;
            }
        }
        let size = received.bytes.len() as u64 + u64::from(received.payload);
        let deadline = self.clock.on_packet(view.timestamp(), self.config.clock_rate, self.config.playout, now);
        let is_repair = tree != hop_tree;
        self.counters.packets += 1;
        self.counters.bytes += size;
        self.counters.repaired += u64::from(is_repair);
        self.counters.late += u64::from(now > deadline);
        let arrived = Arrived { sequence, deadline, marker: view.marker() };
        if is_repair {
            if !self.nacker.on_retransmission(now, sequence) {
                self.nacker.on_packet(now, arrived);
            }
        } else {
            self.nacker.on_path(now, usize::from(tree), sequence);
            self.nacker.on_packet(now, arrived);
        }
        self.note(tree, now);
        if self.delivered.len() >= MAX_DELIVERED {
            self.delivered.pop_front();
            self.counters.not_taken += 1;
        }
        let (timestamp, marker) = (view.timestamp(), view.marker());
        let size = DataSize::from_bytes(size);
        self.delivered.push_back(Delivered { sequence, timestamp, marker, size, tree, is_repair });
        if self.forwards == Some(tree) {
            self.forward(sequence, tree, now);
        }
    }

    /// A packet of a tree has arrived, on whatever hop.
    fn note(&mut self, tree: u8, now: Timestamp) {
        let slot = &mut self.slots[usize::from(tree)];
        slot.first.get_or_insert(now);
        slot.last = Some(now);
        if self.complete.is_none() && self.slots.iter().all(|s| s.first.is_some()) {
            self.complete = Some(now);
        }
    }

    /// Queues a packet for the children in its tree.
    fn forward(&mut self, sequence: u64, tree: u8, now: Timestamp) {
        let size = self.store.get(sequence).map_or(0, |p| p.size());
        for down in self.downs.iter_mut().filter(|d| d.tree == tree) {
            down.forward(sequence, size, now);
            self.allowance.on_forwarded(size, now);
        }
    }

    /// The next packet that a child's controller lets pass; each child in turn.
    pub(super) fn poll_packet(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Outgoing> {
        let context =
            SendContext { store: &self.store, max_wait: self.config.max_wait, subflow_id: self.config.subflow_id };
        let count = self.downs.len();
        for k in 0..count {
            let at = (self.next_down + k) % count;
            let down = &mut self.downs[at];
            if let Some((payload, ecn)) = down.poll(&context, now, out) {
                self.next_down = at + 1;
                let size = DataSize::from_bytes(out.len() as u64 + u64::from(payload));
                return Some(Outgoing { to: down.address, payload, size, ecn, is_rtp: true });
            }
        }
        None
    }

    /// The next packet for the application; call it until it returns `None`.
    pub fn poll_delivered(&mut self) -> Option<Delivered> {
        self.delivered.pop_front()
    }
    /// The bytes of a packet, and its payload bytes after them that were carried as a length only; `None` once it is no
    /// longer kept. The subflow number in it is that of the last hop.
    pub fn packet(&self, sequence: u64) -> Option<(&[u8], u32)> {
        self.store.get(sequence).map(|p| (&p.bytes[..], p.payload))
    }
}
