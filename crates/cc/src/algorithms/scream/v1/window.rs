//! Congestion window, send window and pacing (RFC 8298, sections 4.1.2.2 and 4.1.2.5 to 4.1.2.7).

use super::config::Config;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Window of max_bytes_in_flight, in slots of a second (RFC 8298, section 4.1.2.2).
const FLIGHT_SECONDS: usize = 5;
/// Shortest round-trip time used for the pacing rate (C++).
const SHORTEST_RTT: TimeDelta = TimeDelta::from_millis(1);

/// Maximum of bytes in flight over the last five seconds.
#[derive(Clone, Debug)]
struct PeakFlight {
    past: [u64; FLIGHT_SECONDS],
    past_peak: u64,
    next: usize,
    current: u64,
    turns_at: Timestamp,
}

impl PeakFlight {
    const SLOT: TimeDelta = TimeDelta::from_secs(1);

    fn new(now: Timestamp) -> Self {
        Self { past: [0; FLIGHT_SECONDS], past_peak: 0, next: 0, current: 0, turns_at: now + Self::SLOT }
    }
    fn update(&mut self, in_flight: u64, now: Timestamp) {
        if now >= self.turns_at {
            self.turn(now);
        }
        self.current = self.current.max(in_flight);
    }
    #[cold]
    fn turn(&mut self, now: Timestamp) {
        for _ in 0..=FLIGHT_SECONDS {
            if now < self.turns_at {
                break;
            }
            self.past[self.next] = self.current;
            self.next = (self.next + 1) % FLIGHT_SECONDS;
            self.current = 0;
            self.turns_at += Self::SLOT;
        }
        self.turns_at = self.turns_at.max(now);
        self.past_peak = self.past.iter().copied().max().unwrap_or(0);
    }
    fn get(&self) -> u64 {
        self.past_peak.max(self.current)
    }
}

/// The effect of one feedback message on the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledged {
    pub(super) now: Timestamp,
    /// bytes_newly_acked.
    pub(super) newly: DataSize,
    pub(super) in_flight: DataSize,
    pub(super) queue_delay: TimeDelta,
    pub(super) queue_delay_target: TimeDelta,
    pub(super) trend: f64,
}

/// cwnd and its bounds.
#[derive(Clone, Debug)]
pub(super) struct Window {
    cwnd: f64,
    mss: f64,
    min: f64,
    fast_increase: bool,
    /// When the trend was last high, or an event last occurred.
    congested_at: Timestamp,
    peak: PeakFlight,
    /// Factor on growth: that of a subflow among coupled ones.
    growth: f64,
}

impl Window {
    pub(super) fn new(config: &Config, now: Timestamp) -> Self {
        let min = config.min_cwnd.as_bytes() as f64;
        let mut w = Self {
            cwnd: (config.initial_cwnd.as_bytes() as f64).max(min),
            mss: 0.0,
            min,
            fast_increase: true,
            congested_at: now,
            peak: PeakFlight::new(now),
            growth: 1.0,
        };
        w.raise_mss(config.mss);
        w
    }

    /// The largest packet, in bytes.
    pub(super) fn mss(&self) -> f64 {
        self.mss
    }

    fn raise_mss(&mut self, size: DataSize) {
        self.mss = size.as_bytes() as f64;
        // Room for two packets, since a window below one large packet would block for ever.
        self.min = self.min.max(2.0 * self.mss);
        self.cwnd = self.cwnd.max(self.min);
    }

    /// A packet has been sent and these bytes are now in flight. Returns whether its size has changed the window.
    pub(super) fn on_sent(&mut self, size: DataSize, in_flight: DataSize, now: Timestamp) -> bool {
        self.peak.update(in_flight.as_bytes(), now);
        let larger = size.as_bytes() as f64 > self.mss;
        if larger {
            self.raise_mss(size);
        }
        larger
    }

    /// Sets the factor on growth, 0 to 1.
    pub(super) fn set_growth(&mut self, growth: f64) {
        self.growth = growth;
    }

    /// Congestion was detected outside the window.
    pub(super) fn end_fast_increase(&mut self, now: Timestamp) {
        self.fast_increase = false;
        self.congested_at = now;
    }

    /// On a congestion event the window is scaled by `beta`.
    pub(super) fn on_congestion(&mut self, beta: f64, now: Timestamp) {
        self.end_fast_increase(now);
        self.cwnd = (self.cwnd * beta).max(self.min);
    }

    /// update_cwnd, then check_to_resume_fast_increase.
    pub(super) fn on_acknowledgement(&mut self, a: &Acknowledged, config: &Config) {
        self.peak.update(a.in_flight.as_bytes(), a.now);
        self.update(a, config);
        // The RFC checks the trend only. As in the C++, a loss or ECN event also counts as congestion here: otherwise a
        // flow whose losses leave no queue would return to fast increase at once.
        if a.trend >= config.qdelay_trend_lo {
            self.congested_at = a.now;
        } else if a.now - self.congested_at >= config.resume_fast_increase {
            self.fast_increase = true;
        }
    }

    fn update(&mut self, a: &Acknowledged, config: &Config) {
        let (newly, in_flight) = (a.newly.as_bytes() as f64, a.in_flight.as_bytes() as f64);
        if self.fast_increase {
            if a.trend < config.qdelay_trend_th {
                if in_flight * 1.5 + newly > self.cwnd {
                    self.cwnd += self.growth * newly;
                }
                if config.bound_fast_increase {
                    self.bound(config);
                }
                return;
            }
            self.fast_increase = false;
        }
        let off_target = 1.0 - a.queue_delay.ratio(a.queue_delay_target).unwrap_or(0.0);
        let used = in_flight * config.used_window + newly > self.cwnd;
        if off_target <= 0.0 || used {
            // Coupling slows increases only (RFC 6356, section 3).
            let gain = if off_target > 0.0 { self.growth * config.gain_up } else { config.gain_down };
            self.cwnd += gain * off_target * newly * self.mss / self.cwnd;
        }
        self.bound(config);
    }

    /// Bounds the window by what was in flight.
    fn bound(&mut self, config: &Config) {
        let most = self.peak.get() as f64 * config.max_bytes_in_flight_head_room;
        self.cwnd = self.cwnd.min(most).max(self.min);
    }

    /// in_fast_increase.
    pub(super) fn is_fast_increase(&self) -> bool {
        self.fast_increase
    }
    /// cwnd.
    pub(super) fn cwnd(&self) -> DataSize {
        DataSize::from_bytes(self.cwnd as u64)
    }
    /// max_bytes_in_flight.
    pub(super) fn max_bytes_in_flight(&self) -> DataSize {
        DataSize::from_bytes(self.peak.get())
    }
    /// MIN_CWND, or the size of two packets if that is larger.
    pub(super) fn min(&self) -> DataSize {
        DataSize::from_bytes(self.min as u64)
    }

    /// Bytes that may be in flight: send_wnd plus bytes_in_flight (section 4.1.2.5).
    pub(super) fn limit(&self, queue_delay: TimeDelta, queue_delay_target: TimeDelta) -> DataSize {
        let slack = if queue_delay <= queue_delay_target { self.mss } else { 0.0 };
        DataSize::from_bytes((self.cwnd + slack) as u64)
    }

    /// pace_bitrate without its lower bound (section 4.1.2.6).
    pub(super) fn pacing_rate(&self, srtt: TimeDelta, head_room: f64) -> DataRate {
        DataRate::from_bps_f64(head_room * self.cwnd * 8.0 / srtt.max(SHORTEST_RTT).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }
    const fn at(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }
    const fn bytes(n: u64) -> DataSize {
        DataSize::from_bytes(n)
    }
    fn window(cwnd: u64) -> Window {
        Window::new(&Config { initial_cwnd: bytes(cwnd), ..Config::default() }, at(0))
    }
    #[test]
    fn what_was_in_flight_may_bound_fast_increase_too() {
        let grown = |config: &Config| {
            let mut w = window(20_000);
            w.on_sent(bytes(1_000), bytes(12_000), at(50));
            w.on_acknowledgement(&ack(12_000, 12_000, ms(0), 0.0), config);
            w.cwnd().as_bytes()
        };
        // 12,000 bytes more than 20,000, or 1.1 times the 12,000 in flight.
        assert_eq!(grown(&Config::default()), 32_000);
        assert_eq!(grown(&Config { bound_fast_increase: true, ..Config::default() }), 13_200);
    }

    fn ack(newly: u64, in_flight: u64, queue_delay: TimeDelta, trend: f64) -> Acknowledged {
        let (newly, in_flight) = (bytes(newly), bytes(in_flight));
        Acknowledged { now: at(100), newly, in_flight, queue_delay, queue_delay_target: ms(100), trend }
    }
    /// A window of 20,000 bytes out of fast increase; its flight has reached 30,000.
    fn steady() -> Window {
        let mut w = window(25_000);
        w.on_sent(bytes(1_000), bytes(30_000), at(0));
        w.on_congestion(0.8, at(0));
        w
    }

    #[test]
    fn fast_increase_grows_by_what_is_acknowledged_while_the_window_is_used() {
        let c = Config::default();
        let mut w = window(10_000);
        w.on_acknowledgement(&ack(2_000, 6_000, ms(0), 0.0), &c);
        assert_eq!(w.cwnd(), bytes(12_000));
        // 1.5 x 6,000 + 2,000 is not above 12,000.
        w.on_acknowledgement(&ack(2_000, 6_000, ms(0), 0.1), &c);
        assert_eq!(w.cwnd(), bytes(12_000));
        assert!(w.is_fast_increase());
        w.on_acknowledgement(&ack(2_000, 6_000, ms(0), 0.2), &c);
        assert!(!w.is_fast_increase());
    }

    #[test]
    fn below_the_target_the_window_grows_by_the_share_left() {
        let mut w = steady();
        w.on_acknowledgement(&ack(4_000, 19_000, ms(25), 0.3), &Config::default());
        // 1.0 x 0.75 x 4,000 x 1,000 / 20,000 = 150.
        assert_eq!(w.cwnd(), bytes(20_150));
        let mut w = steady();
        w.on_acknowledgement(&ack(2_000, 14_400, ms(25), 0.3), &Config::default());
        assert_eq!(w.cwnd(), bytes(20_000), "1.25 x 14,400 + 2,000 is not above the window");
    }

    #[test]
    fn a_coupled_window_grows_by_its_factor_and_falls_as_any() {
        let mut w = steady();
        w.set_growth(0.25);
        w.on_acknowledgement(&ack(4_000, 19_000, ms(25), 0.3), &Config::default());
        // A quarter of 150.
        assert_eq!(w.cwnd(), bytes(20_037));
        let mut w = steady();
        w.set_growth(0.25);
        w.on_acknowledgement(&ack(4_000, 1_000, ms(150), 0.3), &Config::default());
        assert_eq!(w.cwnd(), bytes(19_900));
    }

    #[test]
    fn above_the_target_the_window_shrinks_whether_used_or_not() {
        let mut w = steady();
        w.on_acknowledgement(&ack(4_000, 1_000, ms(150), 0.3), &Config::default());
        // 1.0 x -0.5 x 4,000 x 1,000 / 20,000 = -100.
        assert_eq!(w.cwnd(), bytes(19_900));
        let mut w = steady();
        w.on_acknowledgement(&ack(4_000, 1_000, ms(150), 0.3), &Config { gain_down: 2.0, ..Config::default() });
        assert_eq!(w.cwnd(), bytes(19_800));
    }

    #[test]
    fn the_window_is_bound_by_the_flight_of_five_seconds_and_by_its_minimum() {
        let c = Config::default();
        let mut w = window(25_000);
        w.on_sent(bytes(1_000), bytes(10_000), at(0));
        w.on_congestion(0.8, at(0));
        w.on_acknowledgement(&ack(1_000, 9_000, ms(50), 0.3), &c);
        assert_eq!(w.cwnd(), bytes(11_000));
        // The peak is kept for its own second and five more.
        w.on_sent(bytes(1_000), bytes(100), at(5_900));
        assert_eq!(w.max_bytes_in_flight(), bytes(10_000));
        w.on_sent(bytes(1_000), bytes(100), at(6_000));
        assert_eq!(w.max_bytes_in_flight(), bytes(100));
        (0..20).for_each(|_| w.on_congestion(0.8, at(0)));
        assert_eq!(w.cwnd(), bytes(3_000));
    }

    #[test]
    fn an_event_scales_the_window_and_ends_fast_increase() {
        let mut w = window(10_000);
        w.on_congestion(0.9, at(0));
        assert_eq!((w.cwnd(), w.is_fast_increase()), (bytes(9_000), false));
    }

    #[test]
    fn fast_increase_resumes_after_five_calm_seconds() {
        let c = Config::default();
        let mut w = steady();
        let mut tick = |now, trend| {
            w.on_acknowledgement(&Acknowledged { now: at(now), ..ack(1_000, 1_000, ms(0), trend) }, &c);
            w.is_fast_increase()
        };
        assert!(!tick(2_000, 0.2));
        assert!(!tick(6_999, 0.1));
        assert!(tick(7_000, 0.1));
    }

    #[test]
    fn the_send_window_has_a_packets_slack_up_to_the_target() {
        let w = window(10_000);
        assert_eq!(w.limit(ms(100), ms(100)), bytes(11_000));
        assert_eq!(w.limit(ms(101), ms(100)), bytes(10_000));
    }

    #[test]
    fn the_window_is_paced_over_a_round_trip() {
        assert_eq!(window(50_000).pacing_rate(ms(200), 1.0), DataRate::from_mbps(2));
        assert_eq!(window(50_000).pacing_rate(ms(0), 1.5), DataRate::from_mbps(600));
    }

    #[test]
    fn larger_packets_raise_the_minimum() {
        let mut w = window(3_000);
        w.on_sent(bytes(9_000), bytes(9_000), at(0));
        assert_eq!((w.min(), w.cwnd()), (bytes(18_000), bytes(18_000)));
    }
}
