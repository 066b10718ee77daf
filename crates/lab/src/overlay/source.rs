//! The stream: frames of equal size at a constant rate.

use weir_session::overlay::Node;
use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtp::Header;
use weir_wire::rtp::extension::Element;
use weir_wire::rtp::mprtp::SubflowNumber;

/// Frames a second, and the RTP clock's ticks between two.
pub(super) const FRAMES: i64 = 30;
pub(super) const FRAME_TICKS: u32 = 3_000;

/// When a frame is sent.
pub(super) fn frame_time(frame: u64) -> TimeDelta {
    TimeDelta::from_nanos((i128::from(frame) * 1_000_000_000 / i128::from(FRAMES)) as i64)
}

/// The source.
pub(super) struct Source {
    /// Payload of a packet.
    payload: u32,
    packets_a_frame: u32,
    first_sequence: u16,
    /// Frames and packets sent so far.
    frames: u64,
    packets: u64,
    buffer: Vec<u8>,
}

impl Source {
    pub(super) fn new(payload: u32, packets_a_frame: u32, first_sequence: u16) -> Self {
        Self { payload, packets_a_frame, first_sequence, frames: 0, packets: 0, buffer: Vec::new() }
    }

    /// When the next frame is due.
    pub(super) fn next(&self) -> Timestamp {
        Timestamp::ZERO + frame_time(self.frames)
    }

    /// Sends the frames that are due.
    pub(super) fn run(&mut self, root: &mut Node, now: Timestamp) {
        while self.next() <= now {
            let frame = self.frames;
            self.frames += 1;
            for k in 1..=self.packets_a_frame {
                let data = SubflowNumber { subflow: 0, sequence: 0 }.to_data();
                let element = Element::new(6, &data);
                let header = Header {
                    payload_type: 96,
                    marker: k == self.packets_a_frame,
                    sequence: self.first_sequence.wrapping_add(self.packets as u16),
                    timestamp: (frame as u32).wrapping_mul(FRAME_TICKS),
                    ssrc: 1,
                    elements: element.as_slice(),
                    ..Header::default()
                };
                self.buffer.clear();
                header.write_into(&mut self.buffer);
                self.packets += 1;
                let sent = root.send(&self.buffer, self.payload, now);
                debug_assert_eq!(sent, Ok(()), "the source's packets have subflow numbers");
            }
        }
    }
}
