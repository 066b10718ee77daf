//! Store of received media content until its frame is played.
//!
//! Media carried as a length only is a payload of zeros. All codes are linear, so repair of such media is exact, and a
//! simulated repair packet is as long as a real one.
//!
//! Content is optional, and costs nothing if absent. `take_payloads` -> RTP queue (a ring of bytes) -> packet -> FEC
//! over whole packets -> `ContentStore` by sequence number -> `take_frame` at its playout event. Model sources stay
//! lengths.

use crate::frames::FramePart;
use crate::received_packet::ReceivedPacket;
use std::collections::VecDeque;
use weir_media::{PlayoutEvent, ReceivedFrame, ReceivedPayload};
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Most packets kept: 39 seconds of 2 Mbit/s in packets of 1,200 bytes. Beyond that, of the first and the last by sequence number the
/// one that is played later is dropped.
const MAX_PACKETS: usize = 1 << 13;
/// Most bytes kept.
const MAX_SIZE: u64 = 16 << 20;
/// Packets are kept this long after their frame's playout deadline, which clocks and adaptive playout may move.
const KEPT: TimeDelta = TimeDelta::from_secs(2);
/// Most buffers kept for reuse, and the largest size kept.
const MAX_SPARE: usize = 1 << 10;
const MAX_SPARE_SIZE: usize = 1 << 14;

/// Counters of received content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContentCounters {
    /// Packets stored for their frame, repaired ones included.
    pub packets: u64,
    /// Those recovered by repair.
    pub repaired: u64,
    /// Packets taken with their frame.
    pub taken: u64,
    /// Packets dropped because their frame was not taken in time.
    pub expired: u64,
    /// Packets dropped for lack of room.
    pub crowded_out: u64,
}

#[derive(Debug)]
struct Stored {
    rtp_timestamp: u32,
    /// Playout deadline of its frame.
    deadline: Timestamp,
    payload: ReceivedPayload,
}

/// Payloads by sequence number; bounded in number, bytes and time after their deadline. What a sender reads ahead waits here until
/// its frame is due.
#[derive(Debug, Default)]
pub(crate) struct ContentStore {
    packets: VecDeque<Stored>,
    size: u64,
    spare: Vec<Vec<u8>>,
    pub counters: ContentCounters,
}

impl ContentStore {
    /// Stores a packet that arrived in time for its frame, which is played at `deadline` at the latest.
    pub(crate) fn insert(&mut self, packet: &ReceivedPacket<'_>, sequence: u64, deadline: Timestamp) {
        let FramePart { rtp_timestamp, marker } = packet.part();
        let (now, payload, repaired) = (packet.now, packet.payload(), packet.is_recovered);
        let index = match self.packets.back() {
            Some(last) if last.payload.sequence >= sequence => {
                self.packets.partition_point(|p| p.payload.sequence < sequence)
            }
            _ => self.packets.len(),
        };
        if self.packets.get(index).is_some_and(|p| p.payload.sequence == sequence) {
            return;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload.bytes);
        bytes.resize(bytes.len() + (payload.zeros as usize).min(usize::from(u16::MAX)), 0);
        self.size += bytes.len() as u64;
        self.counters.packets += 1;
        self.counters.repaired += u64::from(repaired);
        let payload = ReceivedPayload { sequence, marker, repaired, bytes };
        self.packets.insert(index, Stored { rtp_timestamp, deadline, payload });
        while self.packets.front().is_some_and(|p| now.saturating_since(p.deadline) > KEPT) {
            self.counters.expired += 1;
            self.drop_front();
        }
        while self.packets.len() > MAX_PACKETS || self.size > MAX_SIZE {
            self.counters.crowded_out += 1;
            let deadline = |p: Option<&Stored>| p.map(|p| p.deadline);
            if deadline(self.packets.front()) > deadline(self.packets.back()) {
                self.drop_front();
            } else {
                self.drop_back();
            }
        }
    }

    /// Moves the packets of a frame into `frame` and drops those of earlier frames. Returns `false` if there are none.
    pub(crate) fn take(&mut self, event: &PlayoutEvent, frame: &mut ReceivedFrame) -> bool {
        for p in frame.packets.drain(..) {
            self.recycle(p.bytes);
        }
        (frame.rtp_timestamp, frame.at) = (event.rtp_timestamp, event.at);
        frame.whole = event.delay.is_some();
        let of_frame = |p: &Stored| p.rtp_timestamp == event.rtp_timestamp;
        if let Some(begin) = self.packets.iter().position(of_frame) {
            while self.packets.get(begin).is_some_and(of_frame)
                && let Some(p) = self.packets.remove(begin)
            {
                self.size -= p.payload.bytes.len() as u64;
                self.counters.taken += 1;
                frame.packets.push(p.payload);
            }
        }
        let is_over = |p: &Stored| (p.rtp_timestamp.wrapping_sub(event.rtp_timestamp) as i32) < 0;
        while self.packets.front().is_some_and(is_over) {
            self.counters.expired += 1;
            self.drop_front();
        }
        !frame.packets.is_empty()
    }

    /// Payload bytes stored.
    pub(crate) fn size(&self) -> DataSize {
        DataSize::from_bytes(self.size)
    }

    /// Drops all content: its frames will not be played.
    pub(crate) fn clear(&mut self) {
        while !self.packets.is_empty() {
            self.counters.expired += 1;
            self.drop_front();
        }
    }

    fn drop_front(&mut self) {
        let first = self.packets.pop_front();
        self.discard(first);
    }

    fn drop_back(&mut self) {
        let last = self.packets.pop_back();
        self.discard(last);
    }

    fn discard(&mut self, stored: Option<Stored>) {
        if let Some(p) = stored {
            self.size -= p.payload.bytes.len() as u64;
            self.recycle(p.payload.bytes);
        }
    }

    fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < MAX_SPARE && bytes.capacity() <= MAX_SPARE_SIZE {
            self.spare.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtp::{Header, PacketView};

    fn event(rtp_timestamp: u32) -> PlayoutEvent {
        let (at, delay) = (Timestamp::from_secs(1), Some(TimeDelta::ZERO));
        PlayoutEvent { rtp_timestamp, at, size: DataSize::ZERO, delay, is_from_capture: true }
    }

    /// A packet whose frame is due `ahead` after its arrival.
    fn put(s: &mut ContentStore, now: Timestamp, ahead: TimeDelta, sequence: u64, rtp_timestamp: u32, bytes: &[u8]) {
        let mut packet = Vec::new();
        Header { timestamp: rtp_timestamp, ..Header::default() }.write_into(&mut packet);
        packet.extend_from_slice(bytes);
        let rtp = PacketView::parse(&packet).expect("valid");
        let packet = ReceivedPacket::recovered(rtp, &packet, 0, now);
        s.insert(&ReceivedPacket { is_recovered: sequence == 6, ..packet }, sequence, now + ahead);
    }

    const SOON: TimeDelta = TimeDelta::from_millis(200);

    #[test]
    fn packets_come_out_sorted_by_frame_and_once() {
        let (mut s, now) = (ContentStore::default(), Timestamp::ZERO);
        let first = u32::MAX - 100;
        for (sequence, frame, byte) in [(5, 0, 5), (8, 1, 8), (6, 0, 6), (7, 1, 7), (5, 0, 99), (9, 2, 9)] {
            put(&mut s, now, SOON, sequence, first.wrapping_add(frame * 3_000), &[byte]);
        }
        let mut frame = ReceivedFrame::default();
        // The first frame is never taken: it is dropped with the second.
        assert!(s.take(&event(first.wrapping_add(3_000)), &mut frame));
        let got: Vec<_> = frame.packets.iter().map(|p| (p.sequence, p.bytes[0])).collect();
        assert_eq!((got, frame.whole, frame.at), (vec![(7, 7), (8, 8)], true, Timestamp::from_secs(1)));
        assert!(!s.take(&event(first.wrapping_add(3_000)), &mut frame) && frame.packets.is_empty());
        assert!(s.take(&event(first.wrapping_add(6_000)), &mut frame));
        assert_eq!(s.size(), DataSize::ZERO);
        let c = s.counters;
        assert_eq!((c.packets, c.repaired, c.taken, c.expired, c.crowded_out), (5, 1, 3, 2, 0));
    }

    #[test]
    fn content_ahead_of_its_time_is_kept_until_it_is_due() {
        let mut s = ContentStore::default();
        let frame_at = |second: i64| (second as u32 + 1) * 90_000;
        // Within ten seconds, what lasts forty and begins after them.
        for second in 0..40 {
            let now = Timestamp::from_millis(250 * second);
            let ahead = Timestamp::from_secs(10 + second) - now;
            put(&mut s, now, ahead, second as u64, frame_at(second), &[1; 1_000]);
        }
        assert_eq!((s.packets.len(), s.counters.expired), (40, 0));
        let mut frame = ReceivedFrame::default();
        assert!(s.take(&event(frame_at(39)), &mut frame));
        assert_eq!((s.packets.len(), s.counters.expired), (0, 39));
    }

    #[test]
    fn untaken_content_is_bounded_in_packets_bytes_and_age() {
        let (mut s, now) = (ContentStore::default(), Timestamp::ZERO);
        for sequence in 0..10_000 {
            put(&mut s, now, SOON, sequence, sequence as u32, &[1; 10]);
        }
        assert_eq!((s.packets.len(), s.counters.crowded_out), (MAX_PACKETS, 10_000 - MAX_PACKETS as u64));
        // Packets that are played first stay, and an implausible deadline does not keep one.
        let numbers = |s: &ContentStore| s.packets.iter().map(|p| p.payload.sequence).collect::<Vec<_>>();
        assert_eq!(numbers(&s), (0..MAX_PACKETS as u64).collect::<Vec<_>>());
        let expired = s.packets.len() as u64;
        let later = now + TimeDelta::from_secs(3);
        put(&mut s, later, TimeDelta::from_secs(9_999), 20_000, 20_000, &[1]);
        assert_eq!((s.packets.len(), s.counters.expired), (1, expired));
        for sequence in 20_001..20_600 {
            put(&mut s, later, SOON, sequence, sequence as u32, &[1; 65_000]);
        }
        assert!(s.size().as_bytes() <= MAX_SIZE && s.size().as_bytes() > MAX_SIZE - 65_000);
        assert_eq!(numbers(&s)[0], 20_001);
        assert!(s.spare.len() <= MAX_SPARE && s.spare.iter().all(|b| b.capacity() <= MAX_SPARE_SIZE));
    }
}
