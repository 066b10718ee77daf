//! The RTP queue between packetiser and pacer.

use std::collections::VecDeque;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Most packets that wait; past this new packets are dropped, so that a stopped pacer cannot grow memory.
const MAX_PACKETS: usize = 1 << 15;

/// A media packet that waits for its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueuedPacket {
    /// Media payload in bytes.
    pub payload: u16,
    /// Whether it is the last of its frame.
    pub marker: bool,
    /// RTP timestamp of its frame.
    pub rtp_timestamp: u32,
    /// When its frame was captured.
    pub captured: Timestamp,
    /// Whether its frame is a key frame.
    pub key: bool,
}

/// First in, first out, with its size kept.
#[derive(Clone, Debug, Default)]
pub struct RtpQueue {
    packets: VecDeque<QueuedPacket>,
    size: u64,
    dropped: u64,
}

impl RtpQueue {
    /// Adds a packet; drops and counts it where the queue is full.
    pub fn push(&mut self, packet: QueuedPacket) {
        if self.packets.len() == MAX_PACKETS {
            self.dropped += 1;
            return;
        }
        self.size += u64::from(packet.payload);
        self.packets.push_back(packet);
    }
    /// The packet that goes next.
    pub fn front(&self) -> Option<&QueuedPacket> {
        self.packets.front()
    }
    /// Takes the packet that goes next.
    pub fn pop(&mut self) -> Option<QueuedPacket> {
        let p = self.packets.pop_front()?;
        self.size -= u64::from(p.payload);
        Some(p)
    }
    /// Throws everything away and counts it.
    pub fn discard_all(&mut self) {
        self.dropped += self.packets.len() as u64;
        self.packets.clear();
        self.size = 0;
    }
    /// Media payload that waits.
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.size)
    }
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    /// Age of the oldest packet.
    pub fn oldest_age(&self, now: Timestamp) -> TimeDelta {
        self.front().map_or(TimeDelta::ZERO, |p| now.saturating_since(p.captured))
    }
    /// Packets thrown away so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_count_of_its_bytes() {
        let p = |payload| QueuedPacket {
            payload,
            marker: true,
            rtp_timestamp: 0,
            captured: Timestamp::from_millis(10),
            key: false,
        };
        let mut q = RtpQueue::default();
        q.push(p(1_000));
        q.push(p(200));
        assert_eq!((q.size().as_bytes(), q.oldest_age(Timestamp::from_millis(25)).as_millis()), (1_200, 15));
        assert_eq!(q.pop().map(|p| p.payload), Some(1_000));
        assert_eq!(q.size().as_bytes(), 200);
        q.discard_all();
        assert_eq!((q.size(), q.dropped(), q.is_empty()), (DataSize::ZERO, 1, true));
    }

    #[test]
    fn a_full_queue_drops_the_newest() {
        let mut q = RtpQueue::default();
        for _ in 0..MAX_PACKETS + 3 {
            q.push(QueuedPacket { payload: 1, marker: true, rtp_timestamp: 0, captured: Timestamp::ZERO, key: false });
        }
        assert_eq!((q.size().as_bytes(), q.dropped()), (MAX_PACKETS as u64, 3));
    }
}
