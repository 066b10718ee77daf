//! The last packets of a call, for a capture: headers after decryption, in a ring of bytes.

use std::collections::VecDeque;
use weir_units::{Ecn, Timestamp};

/// Bytes kept of a call's packets, with what is noted beside them; the oldest packets make room.
pub const MAX_BYTES: usize = 4 << 20;
/// The same for a member of a room, since there may be many.
pub(super) const MAX_BYTES_IN_ROOM: usize = 1 << 20;
/// Bytes kept of an RTP packet's payload: a payload descriptor, or the original sequence number of a retransmission. Not the
/// media: a capture shows who sent what when, without what was said and shown.
pub const PAYLOAD_KEPT: usize = 8;
/// Bytes kept of an RTCP packet.
const RTCP_KEPT: usize = 1_500;
/// Bytes with which it begins.
const FIRST_BYTES: usize = 64 << 10;
/// Time, direction and ECN field, length, length kept.
const NOTED: usize = 8 + 1 + 2 + 2;

/// A packet that was kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeptPacket<'a> {
    /// When it was sent or received, by the call's clock.
    pub at: Timestamp,
    /// Whether this end sent it.
    pub sent: bool,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its length without SRTP's tag.
    pub length: usize,
    /// Its beginning.
    pub bytes: &'a [u8],
}

/// The last packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packets {
    ring: VecDeque<u8>,
    limit: usize,
    kept: u64,
    dropped: u64,
}

impl Packets {
    /// At most so many bytes of them.
    pub fn up_to(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }
    /// Bytes of them at most.
    pub fn limit(&self) -> usize {
        self.limit
    }
    /// Packets there.
    pub fn kept(&self) -> u64 {
        self.kept
    }
    /// Packets that made room for later ones.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Notes a packet, as RTP or RTCP after decryption.
    pub fn push(&mut self, at: Timestamp, sent: bool, ecn: Ecn, is_rtp: bool, packet: &[u8]) {
        let most = if is_rtp { header(packet) + PAYLOAD_KEPT } else { RTCP_KEPT };
        let bytes = &packet[..most.min(packet.len())];
        if NOTED + bytes.len() > self.limit {
            return;
        }
        while self.ring.len() + NOTED + bytes.len() > self.limit {
            self.drop_first();
        }
        let needed = self.ring.len() + NOTED + bytes.len();
        if needed > self.ring.capacity() {
            // Twice as many as before, and never more than the limit.
            let wanted = (2 * self.ring.capacity()).max(FIRST_BYTES).max(needed).min(self.limit);
            self.ring.reserve_exact(wanted - self.ring.len());
        }
        self.ring.extend(at.as_nanos().to_be_bytes());
        self.ring.push_back(u8::from(sent) << 7 | ecn.bits());
        self.ring.extend(u16::try_from(packet.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.ring.extend((bytes.len() as u16).to_be_bytes());
        self.ring.extend(bytes);
        self.kept += 1;
    }

    fn drop_first(&mut self) {
        let kept = usize::from(u16::from_be_bytes([self.byte(NOTED - 2), self.byte(NOTED - 1)]));
        self.ring.drain(..(NOTED + kept).min(self.ring.len()));
        self.kept -= 1;
        self.dropped += 1;
    }
    fn byte(&self, index: usize) -> u8 {
        self.ring.get(index).copied().unwrap_or(0)
    }

    /// Calls `visit` with each packet, the oldest first, until it fails.
    ///
    /// # Errors
    /// That of `visit`.
    pub fn each<E>(&self, mut visit: impl FnMut(KeptPacket<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut packet = Vec::with_capacity(RTCP_KEPT);
        let mut rest = self.ring.iter().copied();
        loop {
            let mut noted = [0; NOTED];
            for byte in &mut noted {
                let Some(next) = rest.next() else { return Ok(()) };
                *byte = next;
            }
            let [a, b, c, d, e, f, g, h, flags, long, len, kept_high, kept_low] = noted;
            packet.clear();
            packet.extend(rest.by_ref().take(u16::from_be_bytes([kept_high, kept_low]).into()));
            visit(KeptPacket {
                at: Timestamp::from_nanos(i64::from_be_bytes([a, b, c, d, e, f, g, h])),
                sent: flags & 0x80 != 0,
                ecn: Ecn::from_bits(flags & 3),
                length: u16::from_be_bytes([long, len]).into(),
                bytes: &packet,
            })?;
        }
    }
}

/// Bytes of an RTP packet's header (RFC 3550, section 5.1), as far as it is there.
fn header(packet: &[u8]) -> usize {
    let first = packet.first().copied().unwrap_or(0);
    let fixed = 12 + 4 * usize::from(first & 0x0f);
    let words = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let extension = if first & 0x10 == 0 { 0 } else { 4 + 4 * usize::from(words(fixed + 2).unwrap_or(0)) };
    (fixed + extension).min(packet.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(packets: &Packets) -> Vec<(i64, bool, Ecn, usize, Vec<u8>)> {
        let mut all = Vec::new();
        let each = packets.each(|p| {
            all.push((p.at.as_nanos(), p.sent, p.ecn, p.length, p.bytes.to_vec()));
            Ok::<(), ()>(())
        });
        assert_eq!(each, Ok(()));
        all
    }

    #[test]
    fn headers_stay_and_media_do_not() {
        let mut packets = Packets::up_to(10_000);
        // One contributing source and an extension of one word.
        let mut rtp = vec![0x91, 96, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4, 9, 9, 9, 9, 0xbe, 0xde, 0, 1, 0x10, 5, 0, 0];
        let header = rtp.len();
        rtp.extend((0..100).map(|n| n + 100));
        let rtcp = [0x80, 206, 0, 2, 0, 0, 0, 9, 0x11, 0x22, 0x33, 0x44];
        packets.push(Timestamp::from_nanos(7), true, Ecn::Ect1, true, &rtp);
        packets.push(Timestamp::from_nanos(-8), false, Ecn::NotEct, false, &rtcp);
        // A packet that is shorter than it says.
        packets.push(Timestamp::from_nanos(9), false, Ecn::Ce, true, &[0x9f, 96, 0]);
        packets.push(Timestamp::from_nanos(9), false, Ecn::Ce, true, &[]);
        assert_eq!(
            all(&packets),
            [
                (7, true, Ecn::Ect1, header + 100, rtp[..header + PAYLOAD_KEPT].to_vec()),
                (-8, false, Ecn::NotEct, 12, rtcp.to_vec()),
                (9, false, Ecn::Ce, 3, vec![0x9f, 96, 0]),
                (9, false, Ecn::Ce, 0, vec![]),
            ]
        );
    }

    #[test]
    fn the_oldest_make_room_and_are_counted() {
        let mut packets = Packets::up_to(MAX_BYTES);
        let rtp = [0x80; 1_200];
        for n in 0..150_000 {
            packets.push(Timestamp::from_nanos(n), n % 2 == 0, Ecn::NotEct, true, &rtp);
        }
        let there = all(&packets);
        // 13 bytes beside 12 of header and 8 of payload.
        assert_eq!((there.len(), there.len() as u64), (MAX_BYTES / 33, packets.kept()));
        assert_eq!((packets.dropped(), there[0].0), (150_000 - packets.kept(), packets.dropped() as i64));
        assert!(packets.ring.capacity() <= MAX_BYTES);
        let mut none = Packets::default();
        none.push(Timestamp::ZERO, true, Ecn::NotEct, true, &rtp);
        assert_eq!((none.kept(), none.dropped()), (0, 0));
    }
}
