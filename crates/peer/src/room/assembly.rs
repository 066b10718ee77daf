//! From an encoding's packets, in any order, to whole frames in order.

use std::collections::BTreeMap;
use weir_media::{Depacketiser, ReceivedFrame, ReceivedPayload, Unpacked, VideoCodec};
use weir_units::{TimeDelta, Timestamp};

/// Time for which a missing packet is waited for: that of retransmission without playout.
const PATIENCE: TimeDelta = TimeDelta::from_secs(1);
/// Packets and bytes kept while one is missing.
const MAX_PACKETS: usize = 2_048;
const MAX_SIZE: usize = 4 << 20;

/// A packet of media.
pub(super) struct Packet<'a> {
    pub(super) sequence: u16,
    pub(super) rtp_timestamp: u32,
    pub(super) marker: bool,
    /// Empty for padding.
    pub(super) payload: &'a [u8],
}

struct Stored {
    rtp_timestamp: u32,
    /// `None` for padding.
    payload: Option<ReceivedPayload>,
    marker: bool,
}

/// A whole frame, in order; its bytes are in the buffer given.
pub(super) struct Whole {
    pub(super) rtp_timestamp: u32,
    pub(super) unpacked: Unpacked,
}

/// Of one encoding.
pub(super) struct Assembly {
    depacketiser: Depacketiser,
    packets: BTreeMap<u64, Stored>,
    size: usize,
    /// The highest number received.
    highest: Option<u64>,
    /// The first packet of the next frame.
    next: u64,
    /// Since when its continuation is missing.
    waits: Option<Timestamp>,
    needs_key: bool,
    /// Frames that were never whole, as far as known.
    pub(super) lost: u64,
    frame: ReceivedFrame,
}

impl Assembly {
    pub(super) fn new(codec: VideoCodec) -> Self {
        Self {
            depacketiser: Depacketiser::new(codec),
            packets: BTreeMap::new(),
            size: 0,
            highest: None,
            next: 0,
            waits: None,
            needs_key: true,
            lost: 0,
            frame: ReceivedFrame::default(),
        }
    }
    /// Whether frames are left out until the next key frame.
    pub(super) fn needs_key(&self) -> bool {
        self.needs_key
    }

    /// Takes a packet that has arrived or was recovered.
    pub(super) fn add(&mut self, p: &Packet<'_>) {
        let number = match self.highest {
            // The nearest of those with these 16 bits.
            Some(highest) => highest.wrapping_add_signed(i64::from(p.sequence.wrapping_sub(highest as u16) as i16)),
            None => {
                self.next = (1 << 16) + u64::from(p.sequence);
                self.next
            }
        };
        self.highest = self.highest.max(Some(number));
        if number < self.next || self.packets.contains_key(&number) {
            return;
        }
        let bytes = p.payload.to_vec();
        self.size += bytes.len();
        let payload = ReceivedPayload { sequence: number, marker: p.marker, repaired: false, bytes };
        let payload = (!p.payload.is_empty()).then_some(payload);
        self.packets.insert(number, Stored { rtp_timestamp: p.rtp_timestamp, payload, marker: p.marker });
    }

    /// The next whole frame, its bytes in `data`; call it until it returns `None`.
    pub(super) fn poll(&mut self, now: Timestamp, data: &mut Vec<u8>) -> Option<Whole> {
        loop {
            self.skip_padding();
            let Some(end) = self.end_of_next() else {
                let is_missing = self.packets.last_key_value().is_some_and(|(last, _)| *last >= self.next)
                    && (self.packets.keys().zip(self.next..).any(|(n, expected)| *n != expected));
                if !is_missing {
                    self.waits = None;
                    return None;
                }
                let since = *self.waits.get_or_insert(now);
                let is_full = self.packets.len() > MAX_PACKETS || self.size > MAX_SIZE;
                if !is_full && now.saturating_since(since) < PATIENCE {
                    return None;
                }
                self.give_up();
                continue;
            };
            self.waits = None;
            let (rtp_timestamp, unpacked) = self.join(end, data);
            if !unpacked.whole {
                self.lost += 1;
                self.needs_key = true;
                continue;
            }
            if self.needs_key && !unpacked.key {
                continue;
            }
            self.needs_key = false;
            return Some(Whole { rtp_timestamp, unpacked });
        }
    }

    fn skip_padding(&mut self) {
        while self.packets.get(&self.next).is_some_and(|p| p.payload.is_none()) {
            self.packets.remove(&self.next);
            self.next += 1;
        }
    }

    /// The last packet of the next frame, if all before it are there.
    fn end_of_next(&self) -> Option<u64> {
        let timestamp = self.packets.get(&self.next)?.rtp_timestamp;
        let mut end = self.next;
        loop {
            let packet = self.packets.get(&end)?;
            if packet.payload.is_some() && packet.rtp_timestamp != timestamp {
                return Some(end - 1);
            }
            if packet.marker && packet.payload.is_some() {
                return Some(end);
            }
            end += 1;
        }
    }

    fn join(&mut self, end: u64, data: &mut Vec<u8>) -> (u32, Unpacked) {
        self.frame.packets.clear();
        for number in self.next..=end {
            let Some(stored) = self.packets.remove(&number) else { continue };
            let Some(payload) = stored.payload else { continue };
            self.size -= payload.bytes.len();
            self.frame.rtp_timestamp = stored.rtp_timestamp;
            self.frame.packets.push(payload);
        }
        self.next = end + 1;
        // Padding in the middle leaves no gap.
        for (payload, number) in self.frame.packets.iter_mut().zip(0..) {
            payload.sequence = number;
        }
        // Behind a gap the beginning has to show by itself.
        self.frame.whole = !self.needs_key;
        (self.frame.rtp_timestamp, self.depacketiser.read(&self.frame, data))
    }

    /// Drops the frames of which something is missing, and what depends on them.
    fn give_up(&mut self) {
        let mut after = self.next;
        // Up to the gap, over it, and the rest of the frame in which it ends.
        while self.packets.contains_key(&after) {
            after += 1;
        }
        let behind = self.packets.range(after..).next().map(|(n, p)| (*n, p.rtp_timestamp));
        if let Some((number, timestamp)) = behind {
            after = number;
            while self.packets.get(&after).is_some_and(|p| p.rtp_timestamp == timestamp) {
                after += 1;
            }
        }
        let kept = self.packets.split_off(&after);
        self.packets = kept;
        self.size = self.packets.values().flat_map(|p| &p.payload).map(|p| p.bytes.len()).sum();
        self.next = after;
        self.waits = None;
        self.lost += 1;
        self.needs_key = true;
    }
}

/// Width and height of a VP8 key frame (RFC 6386, section 9.1).
pub(super) fn size_of(codec: VideoCodec, data: &[u8]) -> Option<(u16, u16)> {
    let [_, _, _, 0x9d, 0x01, 0x2a, a, b, c, d, ..] = data else { return None };
    let side = |low, high| u16::from_le_bytes([low, high]) & 0x3fff;
    (codec == VideoCodec::Vp8).then_some((side(*a, *b), side(*c, *d)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }
    /// A packet of VP8 without picture ID.
    fn add(a: &mut Assembly, sequence: u16, frame: u32, (starts, ends): (bool, bool), key: bool) {
        let payload = [if starts { 0x10 } else { 0 }, u8::from(!key), sequence as u8];
        a.add(&Packet { sequence, rtp_timestamp: frame * 3_000, marker: ends, payload: &payload });
    }
    fn polled(a: &mut Assembly, now: Timestamp) -> Vec<u32> {
        let mut data = Vec::new();
        std::iter::from_fn(|| a.poll(now, &mut data)).map(|w| w.rtp_timestamp / 3_000).collect()
    }

    #[test]
    fn frames_come_whole_in_order_and_begin_with_a_key_frame() {
        let mut a = Assembly::new(VideoCodec::Vp8);
        add(&mut a, 65_533, 1, (true, true), false);
        assert!(polled(&mut a, at(0)).is_empty() && a.needs_key());
        add(&mut a, 65_534, 2, (true, false), true);
        add(&mut a, 0, 3, (true, true), false);
        assert!(polled(&mut a, at(0)).is_empty());
        add(&mut a, 65_535, 2, (false, true), true);
        assert_eq!(polled(&mut a, at(5)), [2, 3]);
        // Padding, and a packet again.
        a.add(&Packet { sequence: 1, rtp_timestamp: 9_000, marker: false, payload: &[] });
        add(&mut a, 0, 3, (true, true), false);
        add(&mut a, 2, 4, (true, true), false);
        assert_eq!((polled(&mut a, at(5)), a.lost), (vec![4], 0));
    }

    #[test]
    fn what_stays_missing_is_given_up_and_frames_go_on_with_a_key_frame() {
        let mut a = Assembly::new(VideoCodec::Vp8);
        add(&mut a, 10, 1, (true, true), true);
        add(&mut a, 12, 3, (true, true), false);
        add(&mut a, 13, 4, (true, true), true);
        assert_eq!(polled(&mut a, at(0)), [1]);
        assert!(polled(&mut a, at(999)).is_empty());
        assert_eq!((polled(&mut a, at(1_000)), a.lost, a.packets.len(), a.size), (vec![4], 1, 0, 0));
        // Numbers far from the last are bounded in what they make it keep.
        for n in 0..20_000u32 {
            add(&mut a, (n * 2 + 100) as u16, 100 + n, (true, false), false);
            polled(&mut a, at(1_001));
        }
        assert!(a.packets.len() <= MAX_PACKETS + 1, "{}", a.packets.len());
    }

    #[test]
    fn any_packets_are_taken_and_what_is_kept_is_bounded() {
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for codec in [VideoCodec::Vp8, VideoCodec::H264] {
            let mut a = Assembly::new(codec);
            let (mut data, mut whole, mut sequence) = (Vec::new(), 0, 0u16);
            for n in 0..30_000i64 {
                let mut payload: Vec<u8> = (0..next(60)).map(|_| next(256) as u8).collect();
                // Beginnings of key frames among them.
                if let Some(first) = payload.first_mut().filter(|_| next(3) == 0) {
                    *first = if codec == VideoCodec::Vp8 { 0x10 } else { 0x65 };
                }
                sequence = if next(200) == 0 { next(65_536) as u16 } else { sequence.wrapping_add(next(3) as u16) };
                let (rtp_timestamp, marker) = (n as u32 / 3 * 3_000, next(2) == 0);
                a.add(&Packet { sequence, rtp_timestamp, marker, payload: &payload });
                while a.poll(at(n), &mut data).is_some() {
                    whole += 1;
                }
                let kept: usize = a.packets.values().flat_map(|p| &p.payload).map(|p| p.bytes.len()).sum();
                assert!(a.size == kept && a.packets.len() <= MAX_PACKETS + 1, "{n}: {} {kept}", a.size);
            }
            assert!(whole > 5 && a.lost > 100, "{codec}: {whole} whole, {} lost", a.lost);
        }
    }

    #[test]
    fn sizes_are_those_of_the_key_frames_header() {
        let key = [0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0x68, 0x41, 9];
        assert_eq!(size_of(VideoCodec::Vp8, &key), Some((640, 360)));
        assert_eq!((size_of(VideoCodec::H264, &key), size_of(VideoCodec::Vp8, &key[..8])), (None, None));
    }
}
