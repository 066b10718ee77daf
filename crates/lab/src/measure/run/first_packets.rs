//! Detects frames that lose their first packet, which contains the frame's header.

use std::collections::VecDeque;

/// Maximum first packets kept of frames in flight, per stream.
const MAX_KEPT: usize = 1_024;

/// First packets of the frames of a flow's streams.
#[derive(Default)]
pub(super) struct FirstPackets {
    /// A flow has few streams, and most have one.
    streams: Vec<Stream>,
    lost: u64,
}

struct Stream {
    ssrc: u32,
    /// RTP timestamp of the newest frame.
    timestamp: u32,
    /// Sequence numbers of first packets, the oldest first.
    on_their_way: VecDeque<u16>,
}

/// The fields of an RTP header that identify frames.
struct Fields {
    sequence: u16,
    timestamp: u32,
    ssrc: u32,
}

impl Fields {
    #[inline]
    fn read(rtp: &[u8]) -> Option<Self> {
        let &[s0, s1, t0, t1, t2, t3, c0, c1, c2, c3] = rtp.get(2..12)?.first_chunk()?;
        Some(Self {
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            ssrc: u32::from_be_bytes([c0, c1, c2, c3]),
        })
    }
}

impl FirstPackets {
    /// Frames that have lost their first packet.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// A media packet was sent.
    #[inline]
    pub(super) fn on_sent(&mut self, rtp: &[u8]) {
        let Some(Fields { sequence, timestamp, ssrc }) = Fields::read(rtp) else { return };
        let Some(stream) = self.streams.iter_mut().find(|s| s.ssrc == ssrc) else {
            self.streams.push(Stream { ssrc, timestamp, on_their_way: VecDeque::from([sequence]) });
            return;
        };
        if stream.timestamp != timestamp {
            stream.timestamp = timestamp;
            if stream.on_their_way.len() == MAX_KEPT {
                stream.on_their_way.pop_front();
            }
            stream.on_their_way.push_back(sequence);
        }
    }

    /// A packet of media has been lost on the path.
    pub(super) fn on_dropped(&mut self, rtp: &[u8]) {
        let Some(Fields { sequence, ssrc, .. }) = Fields::read(rtp) else { return };
        let is_first = |s: &Stream| s.ssrc == ssrc && s.on_their_way.contains(&sequence);
        self.lost += u64::from(self.streams.iter().any(is_first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtp(ssrc: u32, sequence: u16, timestamp: u32) -> Vec<u8> {
        let mut packet = vec![0x80, 96];
        packet.extend(sequence.to_be_bytes());
        packet.extend(timestamp.to_be_bytes());
        packet.extend(ssrc.to_be_bytes());
        packet
    }

    #[test]
    fn streams_of_one_flow_are_counted_apart() {
        let mut packets = FirstPackets::default();
        // Two streams alternately, two packets per frame; their sequence numbers overlap.
        for frame in 0..10u32 {
            for k in 0..2 {
                packets.on_sent(&rtp(1, (2 * frame + k) as u16, 3_000 * frame));
                packets.on_sent(&rtp(2, (2 * frame + k + 1) as u16, 960 * frame));
            }
        }
        for (ssrc, sequence, lost) in [(1, 0, 1), (1, 1, 1), (2, 2, 1), (2, 3, 2), (1, 3, 2), (1, 18, 3), (3, 0, 3)] {
            packets.on_dropped(&rtp(ssrc, sequence, 0));
            assert_eq!(packets.lost(), lost, "packet {sequence} of stream {ssrc}");
        }
    }

    #[test]
    fn the_oldest_is_dropped_and_non_rtp_is_ignored() {
        let mut packets = FirstPackets::default();
        for frame in 0..=MAX_KEPT as u32 {
            packets.on_sent(&rtp(1, frame as u16, frame));
        }
        packets.on_sent(&[0x80; 11]);
        packets.on_dropped(&[0x80; 11]);
        packets.on_dropped(&rtp(1, 0, 0));
        assert_eq!(packets.lost(), 0);
        packets.on_dropped(&rtp(1, 1, 0));
        assert_eq!(packets.lost(), 1);
    }
}
