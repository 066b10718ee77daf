//! Media rate control and pacing of one stream (draft, sections 4.3.2 and 4.4).

use super::config::Config;
use super::network::{Network, RTT_GUARD};
use crate::controller::Limits;
use crate::cue::QueueState;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// PACKET_OVERHEAD in bytes (draft, section 4.4).
const PACKET_OVERHEAD: f64 = 20.0;
/// Upper bound of rate_adjust_factor (draft, section 4.4).
const MOST_ADJUSTMENT: f64 = 0.5;
/// frame_period before the second frame (draft, section 4.4), and the weight of the one before in its average (C++).
const FRAME_PERIOD: f64 = 0.02;
const FRAME_PERIOD_MEMORY: f64 = 0.1;
/// Mean frame size from which pacing follows single frames (C++).
const LEAST_PACED_FRAME: f64 = 500.0;
/// Part of the period of 400 ms over which the rate of the frames is measured for pacing (C++).
const RATE_SLOT: TimeDelta = TimeDelta::from_millis(100);
const RATE_SLOTS: usize = 4;

/// Rate of the frames that entered the RTP queue, over 400 ms.
#[derive(Clone, Debug)]
struct FrameRate {
    bytes: u64,
    since: Timestamp,
    past: [f64; RATE_SLOTS],
    next: usize,
}

impl FrameRate {
    fn on_frame(&mut self, size: DataSize, now: Timestamp) {
        let elapsed = now - self.since;
        if elapsed > RATE_SLOT {
            self.past[self.next] = self.bytes as f64 * 8.0 / elapsed.as_secs_f64();
            self.next = (self.next + 1) % RATE_SLOTS;
            (self.bytes, self.since) = (0, now);
        }
        self.bytes += size.as_bytes();
    }
    fn mean(&self) -> f64 {
        self.past.iter().sum::<f64>() / RATE_SLOTS as f64
    }
}

/// The target bit rate of one stream.
#[derive(Clone, Debug)]
pub(super) struct MediaRate {
    /// target_bitrate in bit/s.
    target: f64,
    /// rate_adjust_factor.
    adjustment: f64,
    /// frame_period in seconds.
    frame_period: f64,
    last_frame: Option<Timestamp>,
    /// Factor of the pacing rate for the latest frame.
    frame_pacing: f64,
    frames: FrameRate,
    has_new_frame: bool,
}

impl MediaRate {
    pub(super) fn new(start: DataRate, limits: Limits, now: Timestamp) -> Self {
        Self {
            target: limits.clamp(start).as_bps_f64(),
            adjustment: 0.0,
            frame_period: FRAME_PERIOD,
            last_frame: None,
            frame_pacing: 1.0,
            frames: FrameRate { bytes: 0, since: now, past: [0.0; RATE_SLOTS], next: 0 },
            has_new_frame: false,
        }
    }

    /// A frame has entered the RTP queue.
    pub(super) fn on_frame(&mut self, queue: &QueueState, config: &Config) {
        let now = queue.now;
        self.has_new_frame = true;
        self.frames.on_frame(queue.added, now);
        if let Some(last) = self.last_frame.replace(now) {
            let period = (now - last).as_secs_f64().clamp(0.001, 1.0);
            self.frame_period = (1.0 - FRAME_PERIOD_MEMORY) * period + FRAME_PERIOD_MEMORY * self.frame_period;
        }
        let waiting = queue.oldest_age.as_secs_f64() / self.frame_period;
        self.adjustment += config.rate_adjust_gain * (waiting - config.rate_adjust_delay);
        self.adjustment = self.adjustment.clamp(0.0, MOST_ADJUSTMENT);
        let mean = self.target * self.frame_period / 8.0;
        self.frame_pacing = if mean > LEAST_PACED_FRAME {
            (queue.queued.as_bytes() as f64 / mean).clamp(1.0, config.frame_pacing_factor)
        } else {
            1.0
        };
    }

    /// The target bit rate for the present reference window.
    pub(super) fn update(&mut self, network: &Network, limits: &Limits, config: &Config) {
        self.has_new_frame = false;
        let (window, mss) = (network.window.size(), network.mss());
        let rtt = (network.srtt().as_secs_f64() + RTT_GUARD).min(config.target_rate_max_rtt.as_secs_f64());
        let small_window = 1.0 - (mss / window - 0.1).clamp(0.0, 0.2);
        let rate = 8.0 * window / rtt * small_window / config.target_rate_margin * mss / (mss + PACKET_OVERHEAD);
        self.target = limits.clamp_bps(rate / (1.0 + self.adjustment));
    }

    /// New bounds apply at once.
    pub(super) fn on_limits(&mut self, limits: &Limits) {
        self.target = limits.clamp_bps(self.target);
    }

    /// pace_bitrate.
    pub(super) fn pacing_rate(&self, limits: &Limits, config: &Config) -> DataRate {
        let rate = self.target.max(self.frames.mean()) * self.frame_pacing * config.packet_pacing_headroom;
        let nominal = self.target / limits.ceiling.as_bps_f64().max(1.0);
        let low = config.relaxed_pacing_limit_low;
        let relaxed = (1.0 - (nominal - low) / (1.0 - low)).clamp(1.0 / config.max_relaxed_pacing_factor, 1.0);
        DataRate::from_bps_f64(rate / relaxed).max(config.rate_pace_min)
    }

    /// target_bitrate in bit/s.
    pub(super) fn target(&self) -> f64 {
        self.target
    }
    /// rate_adjust_factor.
    pub(super) fn adjustment(&self) -> f64 {
        self.adjustment
    }
    /// Whether a frame has come since the last update.
    pub(super) fn has_new_frame(&self) -> bool {
        self.has_new_frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::SentPacket;

    const fn at(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }
    fn limits() -> Limits {
        Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_kbps(5_000) }
    }
    fn rate(kbps: u64) -> MediaRate {
        MediaRate::new(DataRate::from_kbps(kbps), limits(), at(0))
    }
    fn frame(now: i64, added: u64, queued: u64, age: i64) -> QueueState {
        let (added, queued) = (DataSize::from_bytes(added), DataSize::from_bytes(queued));
        QueueState { now: at(now), added, queued, oldest_age: TimeDelta::from_millis(age) }
    }

    #[test]
    fn the_target_is_the_window_over_the_round_trip_less_margins() {
        let c = Config { initial_ref_wnd: DataSize::from_bytes(20_000), ..Config::default() };
        let mut network = Network::new(&c, at(0));
        network.on_packet_sent(&SentPacket::media(at(0), 0, DataSize::from_bytes(980)), &c);
        let mut m = rate(300);
        m.update(&network, &limits(), &c);
        // 160,000 bits in 51 ms.
        let rate = 160e3 / 0.051;
        assert!((m.target() - rate / 1.1 * 0.98).abs() < 1e-6, "{}", m.target());
        // Five packets: a tenth less.
        let c = Config { initial_ref_wnd: DataSize::from_bytes(4_900), ..c };
        let mut network = Network::new(&c, at(0));
        network.on_packet_sent(&SentPacket::media(at(0), 0, DataSize::from_bytes(980)), &c);
        m.update(&network, &limits(), &c);
        assert!((m.target() - 39_200.0 / 0.051 / 1.1 * 0.98 * 0.9).abs() < 1e-6, "{}", m.target());
    }

    #[test]
    fn a_long_media_queue_lowers_the_target_frame_by_frame() {
        let c = Config::default();
        let mut m = rate(1_000);
        (0..10).for_each(|i| m.on_frame(&frame(i * 20, 2_500, 2_500, 10), &c));
        assert_eq!(m.adjustment(), 0.0, "half a frame period is allowed");
        m.on_frame(&frame(200, 2_500, 2_500, 50), &c);
        assert!((m.adjustment() - 0.025 * 2.0).abs() < 1e-9);
        (0..100).for_each(|i| m.on_frame(&frame(220 + i * 20, 2_500, 2_500, 90), &c));
        assert_eq!(m.adjustment(), 0.5);
    }

    #[test]
    fn pacing_follows_the_target_the_frame_and_the_upper_bound() {
        let c = Config::default();
        let mut m = rate(1_000);
        assert_eq!(m.pacing_rate(&limits(), &c), DataRate::from_kbps(1_500));
        m.on_frame(&frame(0, 3_125, 3_125, 0), &c);
        assert_eq!(m.pacing_rate(&limits(), &c), DataRate::from_bps(1_875_000), "a frame of 1.25 times the mean");
        let c = Config { max_relaxed_pacing_factor: 4.0, ..c };
        assert_eq!(rate(4_500).pacing_rate(&limits(), &c), DataRate::from_kbps(13_500), "halfway to the bound");
        assert_eq!(rate(5_000).pacing_rate(&limits(), &c), DataRate::from_mbps(30));
        assert_eq!(
            rate(1_000).pacing_rate(&limits(), &Config { rate_pace_min: DataRate::from_mbps(9), ..c }).as_kbps_f64(),
            9_000.0
        );
    }
}
