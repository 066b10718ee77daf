//! A source whose frames have verifiable content.

use std::sync::{Arc, Mutex};
use weir_media::{Frame, FrameKind, FrameSource, Payloads, RTP_CLOCK_HZ, ReceivedFrame, SourceFeedback};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Record of a [`Toy`].
#[derive(Default, Debug)]
pub struct Life {
    /// By the frame's id: its timestamp, its kind and its payloads.
    pub frames: Vec<(u32, FrameKind, Vec<Vec<u8>>)>,
    /// Distinguishes this source from others; the upper half of the first bytes of payloads.
    pub tag: u64,
    pub key_requests: Vec<Timestamp>,
    pub feedback: Vec<SourceFeedback>,
}

/// Frames at a constant interval; each payload begins with the frame's id and continues with random bytes.
pub struct Toy {
    start: Timestamp,
    interval: TimeDelta,
    rate: DataRate,
    /// Ratio of the rate to the target, for an encoder that exceeds it.
    pub excess: f64,
    next: u64,
    key: bool,
    pending: Vec<Vec<u8>>,
    pub life: Arc<Mutex<Life>>,
}

impl Toy {
    pub fn new(interval: TimeDelta) -> Self {
        Self::starting(Timestamp::ZERO, interval)
    }
    pub fn starting(start: Timestamp, interval: TimeDelta) -> Self {
        let rate = DataRate::ZERO;
        let life = Life { tag: start.as_millis() as u64, ..Life::default() };
        let life = Arc::new(Mutex::new(life));
        Self { start, interval, rate, excess: 1.0, next: 0, key: true, pending: vec![], life }
    }
}

/// Byte `i` of a random sequence.
pub fn byte(seed: u64, i: u64) -> u8 {
    let x = (seed << 20 ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as u8
}

impl FrameSource for Toy {
    fn on_target(&mut self, rate: DataRate, _: Timestamp) {
        self.rate = rate;
    }
    fn next_frame_at(&self) -> Option<Timestamp> {
        Some(self.start + self.interval * self.next as i64)
    }
    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let captured = self.next_frame_at().filter(|&at| at <= now)?;
        let kind = if core::mem::take(&mut self.key) { FrameKind::Key } else { FrameKind::Delta };
        // Some frames have half a packet, some several.
        let share = self.excess * [0.2, 1.8, 1.0][self.next as usize % 3];
        let size = self.rate.size_in(self.interval.mul_f64(share)).max(DataSize::from_bytes(20));
        let rtp_timestamp = (captured.as_micros() * i64::from(RTP_CLOCK_HZ) / 1_000_000) as u32;
        let frame = Frame::video(self.next, captured, size, kind, rtp_timestamp);
        self.next += 1;
        let name = self.life.lock().unwrap().tag << 32 | frame.id;
        self.pending = (0..size.as_bytes()).collect::<Vec<_>>().chunks(900).map(|c| self.payload(name, c)).collect();
        let mut life = self.life.lock().unwrap();
        assert_eq!(life.frames.len() as u64, frame.id);
        life.frames.push((rtp_timestamp, kind, self.pending.clone()));
        Some(frame)
    }
    fn request_key_frame(&mut self, now: Timestamp) {
        self.key = true;
        self.life.lock().unwrap().key_requests.push(now);
    }
    fn generated_rate(&self) -> DataRate {
        self.rate
    }
    fn take_payloads(&mut self, max: DataSize, out: &mut Payloads) -> bool {
        assert!(out.is_empty());
        for p in &self.pending {
            assert!(p.len() as u64 <= max.as_bytes());
            let (a, b) = p.split_at(p.len() / 3);
            // Every other frame is not referred to.
            out.push(&[a, b], self.next.is_multiple_of(2));
        }
        true
    }
    fn on_feedback(&mut self, feedback: SourceFeedback, _: Timestamp) -> bool {
        self.life.lock().unwrap().feedback.push(feedback);
        true
    }
}

impl Toy {
    fn payload(&self, id: u64, part: &[u64]) -> Vec<u8> {
        let body = part.iter().map(|&i| byte(id, i));
        let zeros = if id.is_multiple_of(5) { 7 } else { 0 };
        id.to_be_bytes().into_iter().chain(body).chain(std::iter::repeat_n(0, zeros)).collect()
    }
}

impl Life {
    /// The id of a received frame, if it is from this source.
    pub fn id(&self, f: &ReceivedFrame) -> Option<u64> {
        let name = u64::from_be_bytes(f.packets[0].bytes[..8].try_into().unwrap());
        (name >> 32 == self.tag).then_some(name & 0xffff_ffff)
    }
    /// The id of a complete received frame, whose packets are checked against those sent; `rtp_offset` is the session's
    /// timestamp offset.
    pub fn check(&self, f: &ReceivedFrame, rtp_offset: u32) -> u64 {
        let id = self.id(f).expect("of this source");
        let (timestamp, _, payloads) = &self.frames[id as usize];
        assert_eq!(f.rtp_timestamp, timestamp.wrapping_add(rtp_offset), "frame {id}");
        let bytes: Vec<&[u8]> = f.packets.iter().map(|p| &p.bytes[..]).collect();
        if f.whole {
            assert!(&bytes == payloads, "frame {id}: {} packets of {}", bytes.len(), payloads.len());
        } else {
            assert!(bytes.iter().all(|b| payloads.iter().any(|p| p == b)), "frame {id}");
        }
        let numbers: Vec<_> = f.packets.iter().map(|p| p.sequence).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.iter().all(|n| n - numbers[0] < payloads.len() as u64));
        for p in &f.packets {
            let last = p.bytes == payloads[payloads.len() - 1];
            assert_eq!(p.marker, last, "frame {id}");
        }
        id
    }
}
