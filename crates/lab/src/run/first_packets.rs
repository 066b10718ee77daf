//! Detects frames that lose their first packet, which contains the frame's header, or, for applications that decode at
//! the marker bit, their first or their last.

use std::collections::VecDeque;
use weir_units::cold_path;

/// Maximum first packets kept of frames in flight, per stream.
const MAX_KEPT: usize = 1_024;
/// The same where last packets count: few enough that sequence numbers of frames of 200 packets do not wrap.
const MAX_FRAMES: usize = 256;

/// First packets of the frames of a flow's streams.
#[derive(Default)]
pub(super) struct FirstPackets {
    /// A flow has few streams, and most have one.
    streams: Vec<Stream>,
    lost: u64,
    needs_marker: bool,
}

struct Stream {
    ssrc: u32,
    /// RTP timestamp of the newest frame.
    timestamp: u32,
    /// Sequence numbers of first packets, the oldest first.
    on_their_way: VecDeque<u16>,
    /// Frames, the oldest first, where last packets count.
    frames: VecDeque<Frame>,
}

#[derive(Clone, Copy)]
struct Frame {
    first: u16,
    /// The packet with the marker bit, once sent.
    last: Option<u16>,
    is_lost: bool,
}

/// The fields of an RTP header that identify frames.
struct Fields {
    sequence: u16,
    timestamp: u32,
    ssrc: u32,
    marker: bool,
}

impl Fields {
    #[inline]
    fn read(rtp: &[u8]) -> Option<Self> {
        let &[s0, s1, t0, t1, t2, t3, c0, c1, c2, c3] = rtp.get(2..12)?.first_chunk()?;
        Some(Self {
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            ssrc: u32::from_be_bytes([c0, c1, c2, c3]),
            marker: rtp[1] & 0x80 != 0,
        })
    }
}

impl FirstPackets {
    /// Frames that have lost their first packet, or with [`Self::needs_marker`] their first or their last.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Frames without their marker bit are lost as well, be it lost on the path or never sent.
    pub(super) fn needs_marker(&mut self) {
        self.needs_marker = true;
    }

    /// A media packet was sent.
    #[inline]
    pub(super) fn on_sent(&mut self, rtp: &[u8]) {
        let Some(Fields { sequence, timestamp, ssrc, marker }) = Fields::read(rtp) else { return };
        if self.needs_marker {
            cold_path();
            return self.on_sent_of_frame(sequence, timestamp, ssrc, marker);
        }
        let Some(stream) = self.streams.iter_mut().find(|s| s.ssrc == ssrc) else {
            cold_path();
            let on_their_way = VecDeque::from([sequence]);
            self.streams.push(Stream { ssrc, timestamp, on_their_way, frames: VecDeque::new() });
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
        if self.needs_marker {
            let frames = self.streams.iter_mut().filter(|s| s.ssrc == ssrc).flat_map(|s| s.frames.iter_mut().rev());
            let mut of_packet = frames.filter(|f| f.first == sequence || f.last == Some(sequence));
            if let Some(frame) = of_packet.next() {
                self.lost += u64::from(!std::mem::replace(&mut frame.is_lost, true));
            }
            return;
        }
        let is_first = |s: &Stream| s.ssrc == ssrc && s.on_their_way.contains(&sequence);
        self.lost += u64::from(self.streams.iter().any(is_first));
    }

    fn on_sent_of_frame(&mut self, sequence: u16, timestamp: u32, ssrc: u32, marker: bool) {
        let place = self.streams.iter().position(|s| s.ssrc == ssrc).unwrap_or_else(|| {
            self.streams.push(Stream { ssrc, timestamp, on_their_way: VecDeque::new(), frames: VecDeque::new() });
            self.streams.len() - 1
        });
        let stream = &mut self.streams[place];
        if stream.timestamp != timestamp || stream.frames.is_empty() {
            // The frame before is over: without its marker bit it never will be whole.
            if let Some(frame) = stream.frames.back_mut().filter(|f| f.last.is_none()) {
                self.lost += u64::from(!std::mem::replace(&mut frame.is_lost, true));
            }
            stream.timestamp = timestamp;
            if stream.frames.len() == MAX_FRAMES {
                stream.frames.pop_front();
            }
            stream.frames.push_back(Frame { first: sequence, last: None, is_lost: false });
        }
        if let Some(frame) = stream.frames.back_mut().filter(|_| marker) {
            frame.last = Some(sequence);
        }
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
    fn where_the_marker_counts_a_frame_is_lost_once_without_its_first_or_its_last() {
        let mut packets = FirstPackets::default();
        packets.needs_marker();
        let with_marker = |sequence, timestamp| {
            let mut packet = rtp(1, sequence, timestamp);
            packet[1] |= 0x80;
            packet
        };
        // Four frames of three packets; the marker of the third was never sent.
        for frame in 0..4u16 {
            let timestamp = 3_600 * u32::from(frame);
            packets.on_sent(&rtp(1, 3 * frame, timestamp));
            packets.on_sent(&rtp(1, 3 * frame + 1, timestamp));
            if frame != 2 {
                packets.on_sent(&with_marker(3 * frame + 2, timestamp));
            }
            assert_eq!(packets.lost(), u64::from(frame == 3));
        }
        // The middle of a frame, its end, then its beginning, and the beginning of one that is lost.
        for (sequence, lost) in [(1, 1), (2, 2), (0, 2), (6, 2), (9, 3), (77, 3)] {
            packets.on_dropped(&rtp(1, sequence, 0));
            assert_eq!(packets.lost(), lost, "packet {sequence}");
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
