//! The RTP queue between packetiser and pacer.

use std::collections::VecDeque;
use weir_fec::Importance;
use weir_units::cold_path;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Most packets queued; beyond this new packets are dropped, so that a stopped pacer cannot grow memory.
const MAX_PACKETS: usize = 1 << 15;
/// Most bytes of content queued, for the same reason.
const MAX_CONTENT: usize = 64 << 20;

/// A queued media packet.
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
    /// The cost of its loss.
    pub importance: Importance,
}

/// First in, first out, with its size tracked. A packet without content is a payload of zeros.
#[derive(Clone, Debug, Default)]
pub struct RtpQueue {
    packets: VecDeque<QueuedPacket>,
    size: u64,
    dropped: u64,
    /// The payloads in sequence, if any queued packet has content; otherwise empty.
    content: VecDeque<u8>,
    /// Bytes at the front of the content that belong to the last popped packet.
    popped: usize,
}

impl RtpQueue {
    /// Adds a packet; drops and counts it if the queue is full.
    pub fn push(&mut self, packet: QueuedPacket) {
        if self.packets.len() == MAX_PACKETS || self.content.len() > MAX_CONTENT {
            self.dropped += 1;
            return;
        }
        self.size += u64::from(packet.payload);
        self.packets.push_back(packet);
        if !self.content.is_empty() {
            cold_path();
            self.content.resize(self.content.len() + usize::from(packet.payload), 0);
        }
    }
    /// Adds a packet with its whole payload as content; drops and counts it if the queue is full.
    pub fn push_content(&mut self, packet: QueuedPacket, content: &[u8]) {
        if self.packets.len() == MAX_PACKETS || self.content.len() > MAX_CONTENT {
            self.dropped += 1;
            return;
        }
        if self.content.is_empty() {
            // Packets queued without content are zeros.
            self.popped = 0;
            self.content.resize(self.size as usize, 0);
        }
        self.size += u64::from(packet.payload);
        self.packets.push_back(packet);
        self.content.extend(&content[..content.len().min(packet.payload.into())]);
        self.content.resize(self.popped + self.size as usize, 0);
    }
    /// Packets of the frame in front, or of the rest of it, and their payload.
    pub fn front_frame(&self) -> (usize, DataSize) {
        let timestamp = self.front().map(|p| p.rtp_timestamp);
        let frame = self.packets.iter().take_while(|p| Some(p.rtp_timestamp) == timestamp);
        let (packets, bytes) = frame.fold((0, 0), |(n, bytes), p| (n + 1, bytes + u64::from(p.payload)));
        (packets, DataSize::from_bytes(bytes))
    }
    /// The next packet.
    pub fn front(&self) -> Option<&QueuedPacket> {
        self.packets.front()
    }
    /// Takes the next packet. Its content is available to [`Self::take_content`] until the next call.
    pub fn pop(&mut self) -> Option<QueuedPacket> {
        let p = self.packets.pop_front()?;
        self.size -= u64::from(p.payload);
        if !self.content.is_empty() {
            cold_path();
            self.content.drain(..self.popped);
            self.popped = usize::from(p.payload).min(self.content.len());
        }
        Some(p)
    }
    /// Appends the content of the last popped packet to `out`; returns whether it has any.
    #[inline]
    pub fn take_content(&mut self, out: &mut Vec<u8>) -> bool {
        !self.content.is_empty() && self.move_content(out)
    }
    #[inline(never)]
    fn move_content(&mut self, out: &mut Vec<u8>) -> bool {
        let (a, b) = self.content.as_slices();
        out.extend_from_slice(&a[..self.popped.min(a.len())]);
        out.extend_from_slice(&b[..self.popped.saturating_sub(a.len())]);
        self.content.drain(..self.popped);
        core::mem::take(&mut self.popped) > 0
    }
    /// Whether any packet of a key frame is queued.
    pub fn has_key_frame(&self) -> bool {
        self.packets.iter().any(|p| p.importance == Importance::Key)
    }
    /// Discards and counts everything.
    pub fn discard_all(&mut self) {
        self.dropped += self.packets.len() as u64;
        self.packets.clear();
        self.content.clear();
        (self.size, self.popped) = (0, 0);
    }
    /// Discards the frames at the front, or the rest of them, that were captured before `oldest`; returns whether there
    /// were any. The newest frame is kept.
    pub fn discard_before(&mut self, oldest: Timestamp) -> bool {
        let before = self.dropped;
        while let Some(&front) = self.packets.front().filter(|p| p.captured < oldest)
            && self.packets.back().is_some_and(|p| p.rtp_timestamp != front.rtp_timestamp)
        {
            while self.packets.front().is_some_and(|p| p.rtp_timestamp == front.rtp_timestamp) {
                self.pop();
                self.dropped += 1;
            }
        }
        self.dropped > before
    }
    /// Media payload queued.
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.size)
    }
    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    /// Age of the oldest packet.
    pub fn oldest_age(&self, now: Timestamp) -> TimeDelta {
        self.front().map_or(TimeDelta::ZERO, |p| now.saturating_since(p.captured))
    }
    /// Packets queued, and the sum of their ages.
    pub(crate) fn ages(&self, now: Timestamp) -> (usize, TimeDelta) {
        let sum = self.packets.iter().map(|p| now.saturating_since(p.captured)).fold(TimeDelta::ZERO, |a, b| a + b);
        (self.packets.len(), sum)
    }
    /// Packets discarded so far.
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
            importance: Importance::Other,
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
            q.push(QueuedPacket { payload: 1, marker: true, ..QueuedPacket::default() });
        }
        assert_eq!((q.size().as_bytes(), q.dropped()), (MAX_PACKETS as u64, 3));
    }

    #[test]
    fn content_stays_with_its_packet_among_others_without() {
        let p = |payload| QueuedPacket { payload, marker: true, ..QueuedPacket::default() };
        let (mut q, mut out) = (RtpQueue::default(), vec![]);
        let mut pop = |q: &mut RtpQueue| {
            out.clear();
            let size = q.pop().map(|p| p.payload);
            (size, q.take_content(&mut out), out.clone())
        };
        q.push(p(3));
        q.push(p(2));
        assert_eq!(pop(&mut q), (Some(3), false, vec![]));
        q.push_content(p(3), b"abc");
        q.push(p(1));
        q.push_content(p(2), b"de");
        // From here on zeros are stored as bytes.
        assert_eq!(pop(&mut q), (Some(2), true, vec![0; 2]));
        assert_eq!(pop(&mut q), (Some(3), true, b"abc".to_vec()));
        // Content that is not taken is lost.
        assert_eq!(q.pop().map(|p| p.payload), Some(1));
        assert_eq!(pop(&mut q), (Some(2), true, b"de".to_vec()));
        q.push(p(4));
        assert_eq!(pop(&mut q), (Some(4), false, vec![]));
        q.push_content(p(1), b"f");
        q.discard_all();
        q.push_content(p(1), b"g");
        assert_eq!(pop(&mut q), (Some(1), true, b"g".to_vec()));
        assert_eq!((q.size(), q.content.len()), (DataSize::ZERO, 0));
    }

    #[test]
    fn old_frames_go_whole_and_the_newest_stays() {
        let mut q = RtpQueue::default();
        for frame in 0..4u32 {
            for marker in [false, true] {
                let captured = Timestamp::from_millis(i64::from(frame) * 40);
                let p =
                    QueuedPacket { payload: 2, marker, rtp_timestamp: frame, captured, importance: Importance::Other };
                q.push_content(p, &[frame as u8; 2]);
            }
        }
        q.pop();
        assert!(!q.discard_before(Timestamp::ZERO));
        assert!(q.discard_before(Timestamp::from_millis(80)));
        assert_eq!((q.dropped(), q.size().as_bytes(), q.front().map(|p| p.rtp_timestamp)), (3, 8, Some(2)));
        assert!(q.discard_before(Timestamp::from_secs(9)));
        assert_eq!((q.dropped(), q.size().as_bytes(), q.front().map(|p| p.rtp_timestamp)), (5, 4, Some(3)));
        let mut out = vec![];
        assert!(q.pop().is_some() && q.take_content(&mut out) && out == [3, 3]);
    }
}
