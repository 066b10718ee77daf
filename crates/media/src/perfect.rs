use crate::frame::Numbering;
use crate::vp8_buffer::Vp8Buffer;
use crate::{Frame, FrameKind, FrameSource};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// A source not polled for longer than this skips the time since instead of catching up.
const LONGEST_LAG: TimeDelta = TimeDelta::from_secs(1);
const NANO: u64 = 1_000_000_000;

/// A codec without an encoder: it generates exactly its target rate, from the time at which the target changes.
///
/// It is the "perfect codec" of the comparison of RMCAT controllers and of the syncodecs traffic sources: variations in
/// a run are due to the controller only. Its first frame is a key frame; all have the same size. With
/// [`Self::rising_in`] it follows a higher target as gradually as an encoder does.
#[derive(Clone, Debug)]
pub struct PerfectCodec {
    shape: Shape,
    rate: DataRate,
    numbering: Numbering,
    key: bool,
}

#[derive(Clone, Debug)]
enum Shape {
    /// One packet each time that its number of bits has passed at the target rate.
    Packets {
        size: DataSize,
        /// Start of the count, and the remainder until the next packet: bits times nanoseconds a second.
        since: Timestamp,
        left: u64,
        due: Option<Timestamp>,
    },
    /// One frame per interval, with the bits that pass in it at the target rate.
    Frames {
        interval: TimeDelta,
        due: Timestamp,
        /// The remainder below a byte: bits times nanoseconds a second.
        carry: u64,
        /// Time constant towards a higher target; zero to follow at once.
        rise: TimeDelta,
        /// The rate that is made, in bit/s.
        made: f64,
        /// The bucket by which frames are sized; by the rate alone without one.
        buffer: Option<Box<Vp8Buffer>>,
        /// By how much the next frame is later than its time.
        late: TimeDelta,
    },
}

impl PerfectCodec {
    /// Frames of one packet of this size (at least one byte), spaced by the target rate; the first at `start`, or as
    /// soon as a rate is set.
    pub fn packets(size: DataSize, start: Timestamp) -> Self {
        let size = size.max(DataSize::from_bytes(1));
        Self::new(Shape::Packets { size, since: start, left: 0, due: None })
    }

    /// Frames at a fixed interval (at least a microsecond), sized by the target rate; the first at `start`.
    pub fn frames(interval: TimeDelta, start: Timestamp) -> Self {
        let interval = interval.max(TimeDelta::from_micros(1));
        Self::new(Shape::Frames {
            interval,
            due: start,
            carry: 0,
            rise: TimeDelta::ZERO,
            made: 0.0,
            buffer: None,
            late: TimeDelta::ZERO,
        })
    }

    /// With this time constant the frames' rate approaches a higher target; a lower one it has at once. No effect if frames
    /// are packets.
    #[must_use]
    pub fn rising_in(mut self, constant: TimeDelta) -> Self {
        if let Shape::Frames { rise, .. } = &mut self.shape {
            *rise = constant.max(TimeDelta::ZERO);
        }
        self
    }

    /// Sizes frames as VP8's rate control does in libwebrtc: after a rise they begin at some half of the target and reach it in two seconds, key
    /// frames are larger, and all vary by a tenth and are a millisecond late, at random by the seed. Frames have a least size and are dropped to keep the
    /// target; pictures of 640x480 pixels get smaller while the quantiser is high. No effect if frames are packets.
    #[must_use]
    pub fn as_vp8(mut self, seed: u64) -> Self {
        if let Shape::Frames { buffer, .. } = &mut self.shape {
            *buffer = Some(Box::new(Vp8Buffer::new(seed)));
        }
        self
    }

    /// Sets the frame interval (at least a microsecond) from the next frame on; no effect if frames are packets.
    pub fn set_interval(&mut self, new: TimeDelta) {
        if let Shape::Frames { interval, .. } = &mut self.shape {
            *interval = new.max(TimeDelta::from_micros(1));
        }
    }

    fn new(shape: Shape) -> Self {
        Self { shape, rate: DataRate::ZERO, numbering: Numbering::default(), key: true }
    }
}

/// When `left` bits times nanoseconds a second will have passed.
fn due_after(since: Timestamp, left: u64, rate: DataRate) -> Option<Timestamp> {
    let ns = left.div_ceil(rate.as_bps().max(1));
    (rate > DataRate::ZERO).then(|| since + TimeDelta::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX)))
}

/// The rate of the next frame, with what was `made` so far on its way to a higher target.
fn rising(target: DataRate, made: &mut f64, rise: TimeDelta, interval: TimeDelta) -> DataRate {
    // The first frame has the rate of the start.
    if rise == TimeDelta::ZERO || *made <= 0.0 || target.as_bps_f64() <= *made {
        *made = target.as_bps_f64();
        return target;
    }
    let left = libm::exp(-interval.as_secs_f64() / rise.as_secs_f64());
    *made = target.as_bps_f64() - left * (target.as_bps_f64() - *made);
    DataRate::from_bps_f64(*made)
}

fn work(size: DataSize) -> u64 {
    size.as_bits().saturating_mul(NANO)
}

impl FrameSource for PerfectCodec {
    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        match &mut self.shape {
            Shape::Packets { since, left, due, .. } => {
                let passed = u64::try_from((now - *since).as_nanos()).unwrap_or(0);
                *left = left.saturating_sub(self.rate.as_bps().saturating_mul(passed));
                *since = now.max(*since);
                *due = due_after(*since, *left, rate);
            }
            Shape::Frames { interval, due, .. } => {
                if self.rate == DataRate::ZERO && *due < now {
                    // Frames in a period without rate are not captured: continue with the next one on the time grid.
                    let missed = (now - *due).as_nanos().div_euclid(interval.as_nanos()) + 1;
                    *due += *interval * missed;
                }
            }
        }
        self.rate = rate;
    }

    fn next_frame_at(&self) -> Option<Timestamp> {
        match self.shape {
            Shape::Packets { due, .. } => due,
            Shape::Frames { due, late, .. } => (self.rate > DataRate::ZERO).then(|| due + late),
        }
    }

    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let mut at = self.next_frame_at().filter(|&at| at <= now)?;
        if now - at > LONGEST_LAG {
            at = now;
        }
        let size = match &mut self.shape {
            Shape::Packets { size, since, left, due } => {
                (*since, *left) = (at, work(*size));
                *due = due_after(at, *left, self.rate);
                *size
            }
            Shape::Frames { interval, due, carry, rise, made, buffer, late } => {
                *due = at - *late + *interval;
                let mut rate = rising(self.rate, made, *rise, *interval);
                if let Some(buffer) = buffer {
                    let span = interval.as_secs_f64();
                    *late = buffer.lateness(*interval);
                    self.key |= buffer.restart(at);
                    rate = DataRate::from_bps_f64(buffer.frame(rate.as_bps_f64(), span, self.key, at)? / span);
                }
                let bit_ns = rate.as_bps().saturating_mul(interval.as_nanos().unsigned_abs()).saturating_add(*carry);
                *carry = bit_ns % (8 * NANO);
                // A rate below a byte per frame still sends one, since frames are not empty.
                DataSize::from_bytes((bit_ns / (8 * NANO)).max(1))
            }
        };
        let kind = if self.key { FrameKind::Key } else { FrameKind::Delta };
        self.key = false;
        Some(self.numbering.frame(at, size, kind))
    }

    fn request_key_frame(&mut self, _: Timestamp) {
        self.key = true;
    }

    fn pixels(&self) -> Option<u32> {
        if let Shape::Frames { buffer, .. } = &self.shape { buffer.as_ref().map(|b| b.pixels()) } else { None }
    }

    fn leave_out(&mut self, one_of: u32, _: Timestamp) {
        if let Shape::Frames { buffer: Some(buffer), .. } = &mut self.shape {
            buffer.leave_out(one_of);
        }
    }

    fn generated_rate(&self) -> DataRate {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KB: DataSize = DataSize::from_bytes(1_000);
    fn ms(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }
    fn kbps(n: u64) -> DataRate {
        DataRate::from_kbps(n)
    }
    /// The frames due before `end`.
    fn until(s: &mut PerfectCodec, end: Timestamp) -> Vec<Frame> {
        std::iter::from_fn(|| {
            let at = s.next_frame_at().filter(|&at| at < end)?;
            s.poll_frame(at)
        })
        .collect()
    }

    #[test]
    fn packets_are_spaced_by_the_rate() {
        let mut s = PerfectCodec::packets(KB, ms(10));
        assert_eq!(s.next_frame_at(), None);
        s.on_target(kbps(800), ms(10));
        let at: Vec<_> = until(&mut s, ms(50)).iter().map(|f| (f.captured.as_millis(), f.kind)).collect();
        assert_eq!(at, [(10, FrameKind::Key), (20, FrameKind::Delta), (30, FrameKind::Delta), (40, FrameKind::Delta)]);
        // Half of the next packet has passed at 45 ms; the other half takes 20 ms at a quarter of the rate.
        s.on_target(kbps(200), ms(45));
        assert_eq!(s.next_frame_at(), Some(ms(65)));
        s.on_target(DataRate::ZERO, ms(55));
        assert_eq!(s.next_frame_at(), None);
        s.on_target(kbps(2_000), ms(100));
        assert_eq!(s.next_frame_at(), Some(ms(101)));
    }

    #[test]
    fn frames_carry_the_target_rate() {
        let mut s = PerfectCodec::frames(TimeDelta::from_micros(33_333), ms(0));
        s.on_target(kbps(1_000), ms(0));
        let frames = until(&mut s, ms(10_000));
        assert_eq!(frames.len(), 301);
        let total: u64 = frames.iter().map(|f| f.size.as_bytes()).sum();
        // 301 times 33,333 bits, exact to a byte.
        assert_eq!(total, 301 * 33_333 / 8);
        assert!(frames.iter().all(|f| (4_166..=4_167).contains(&f.size.as_bytes())));
        s.on_target(DataRate::ZERO, ms(10_000));
        assert_eq!(s.next_frame_at(), None);
        s.on_target(kbps(500), ms(10_500));
        let next = s.next_frame_at().expect("on the grid");
        assert_eq!(next.as_micros() % 33_333, 0);
        assert!(next > ms(10_500) && next <= ms(10_534));
    }

    #[test]
    fn a_higher_target_is_approached_and_a_lower_one_followed_at_once() {
        let interval = TimeDelta::from_millis(20);
        let mut s = PerfectCodec::frames(interval, ms(0)).rising_in(TimeDelta::from_millis(500));
        s.on_target(kbps(200), ms(0));
        let sizes =
            |s: &mut PerfectCodec, end| -> Vec<u64> { until(s, ms(end)).iter().map(|f| f.size.as_bits()).collect() };
        assert!(
            sizes(&mut s, 100).iter().all(|&bits| (3_992..=4_008).contains(&bits)),
            "200 kbit/s from the first frame"
        );
        s.on_target(kbps(1_000), ms(100));
        let rising = sizes(&mut s, 600);
        // After one time constant 1 - 1/e of the way, 706 kbit/s.
        assert!(rising.windows(2).all(|w| w[0] < w[1]), "{rising:?}");
        assert!((14_050..=14_200).contains(rising.last().expect("frames")), "{rising:?}");
        s.on_target(kbps(300), ms(600));
        assert!(sizes(&mut s, 700).iter().all(|&bits| (5_992..=6_008).contains(&bits)));
    }

    #[test]
    fn a_source_left_alone_does_not_catch_up() {
        let mut s = PerfectCodec::packets(KB, ms(0));
        s.on_target(kbps(800), ms(0));
        assert_eq!(s.poll_frame(ms(60_000)).map(|f| f.captured), Some(ms(60_000)));
        assert_eq!(s.poll_frame(ms(60_000)), None);
    }

    proptest! {
        /// The output is the integral of the target, for any target.
        #[test]
        fn output_is_the_integral_of_the_target(
            targets in proptest::collection::vec((0u64..5_000, 1i64..500_000), 1..50),
            frames: bool,
        ) {
            let mut s = match frames {
                true => PerfectCodec::frames(TimeDelta::from_millis(20), ms(0)),
                false => PerfectCodec::packets(KB, ms(0)),
            };
            let (mut now, mut bits, mut bytes, mut largest) = (ms(0), 0.0, 0, 0);
            for (rate, us) in targets {
                s.on_target(kbps(rate), now);
                let span = TimeDelta::from_micros(us);
                now += span;
                bits += rate as f64 * 1e3 * span.as_secs_f64();
                bytes += until(&mut s, now).iter().map(|f| f.size.as_bytes()).sum::<u64>();
                largest = largest.max(rate);
                if !frames {
                    // One packet is pending, and the first was sent without waiting; each is due at a whole nanosecond.
                    let (due, rounding) = (bits / 8.0, bytes as f64 / 1_000.0 * largest as f64 * 1e-6 / 8.0);
                    let range = -1.0 - rounding..=1_001.0;
                    prop_assert!(range.contains(&(bytes as f64 - due)), "{bytes} against {due}");
                }
            }
            let slack = if frames { 50.0 * 0.02 * largest as f64 * 125.0 + 50.0 } else { 1_001.0 };
            prop_assert!((bytes as f64 - bits / 8.0).abs() <= slack);
        }
    }
}
