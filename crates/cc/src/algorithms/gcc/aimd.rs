//! Delay-based rate control: additive or multiplicative increase, multiplicative decrease
//! (draft-ietf-rmcat-gcc-02, section 5.5).

use super::detector::Usage;
use super::link_capacity::LinkCapacity;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Round-trip time before the first sample (libwebrtc, as of 2024: `kDefaultRtt`).
const DEFAULT_RTT: TimeDelta = TimeDelta::from_millis(200);
/// Bounds of the round-trip time within which the estimate is not lowered twice (libwebrtc, as of 2024).
const REDUCTION_INTERVAL: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(10), TimeDelta::from_millis(200));
/// Response time of estimator and detector, added to the round-trip time (draft-ietf-rmcat-gcc-02, section 5.5).
const RESPONSE_DELAY: TimeDelta = TimeDelta::from_millis(100);
/// Frame rate and packet size assumed for the additive increase near capacity, from the draft.
const FRAMES_PER_SECOND: f64 = 30.0;
const PACKET_BITS: f64 = 1_200.0 * 8.0;
/// Least additive increase near capacity in bit/s per second (libwebrtc, as of 2024; the draft's least is 1,000 bits
/// per update).
const MIN_ADDITIVE: f64 = 4_000.0;
/// Least multiplicative increase in bit/s (libwebrtc, as of 2024).
const MIN_MULTIPLICATIVE: f64 = 1_000.0;
/// The estimate is at most this multiple of the acknowledged rate (draft-ietf-rmcat-gcc-02, section 5.5) ...
const MAX_OVER_ACKED: f64 = 1.5;
/// ... plus this offset in bit/s, so that low rates can grow (libwebrtc, as of 2024).
const OVER_ACKED_OFFSET: f64 = 10_000.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Hold,
    Increase,
}

/// The constants of the rate control.
#[derive(Clone, Copy, Debug)]
pub(super) struct AimdConfig {
    pub(super) beta: f64,
    /// Subtracted after a reduction, in bit/s.
    pub(super) offset: f64,
    /// Multiplicative increase per second, 0.08.
    pub(super) increase: f64,
    /// Whether the estimate is held while the application is limited.
    pub(super) hold_in_alr: bool,
}

/// The delay-based estimate. The kernel computes in bit/s.
#[derive(Clone, Debug)]
pub(super) struct Aimd {
    config: AimdConfig,
    floor: f64,
    rate: f64,
    acked: f64,
    capacity: LinkCapacity,
    state: State,
    last_change: Option<Timestamp>,
    rtt: TimeDelta,
    /// Factor on additive increase: the share of a group of coupled flows.
    share: f64,
}

impl Aimd {
    pub(super) fn new(config: AimdConfig, start: DataRate, floor: DataRate) -> Self {
        let rate = start.max(floor).as_bps_f64();
        Self {
            config,
            floor: floor.as_bps_f64(),
            rate,
            acked: rate,
            capacity: LinkCapacity::new(),
            state: State::Hold,
            last_change: None,
            rtt: DEFAULT_RTT,
            share: 1.0,
        }
    }

    pub(super) fn rate(&self) -> DataRate {
        DataRate::from_bps_f64(self.rate)
    }
    pub(super) fn capacity(&self) -> Option<f64> {
        self.capacity.estimate()
    }
    pub(super) fn set_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = rtt;
    }
    pub(super) fn set_floor(&mut self, floor: DataRate) {
        self.floor = floor.as_bps_f64();
        self.rate = self.rate.max(self.floor);
    }

    /// Sets the estimate to a measured rate.
    pub(super) fn set_rate(&mut self, rate: DataRate, now: Timestamp) {
        self.rate = rate.as_bps_f64().max(self.floor);
        self.last_change = Some(now);
    }

    /// Coupling with other flows has set the estimate. Neither the time to grow nor that since a reduction is reset.
    pub(super) fn couple(&mut self, rate: Option<DataRate>, share: f64) {
        self.share = share;
        if let Some(rate) = rate {
            self.rate = rate.as_bps_f64().max(self.floor);
        }
    }

    /// Whether overuse at `now` may lower the estimate again.
    pub(super) fn may_reduce(&self, acked: Option<DataRate>, now: Timestamp) -> bool {
        let interval = self.rtt.clamp(REDUCTION_INTERVAL.0, REDUCTION_INTERVAL.1);
        self.last_change.is_none_or(|t| now - t >= interval) || acked.is_some_and(|a| a.as_bps_f64() < 0.5 * self.rate)
    }

    /// Halves the estimate on overuse before any rate has been measured, with each feedback message. libwebrtc's comment
    /// intends once in 200 ms, but its guard (`InitialTimeToReduceFurther`) lets every message through.
    pub(super) fn halve(&mut self, now: Timestamp) {
        self.set_rate(DataRate::from_bps_f64(0.5 * self.rate), now);
    }

    /// Updates the estimate; call it with each feedback message.
    pub(super) fn update(&mut self, usage: Usage, acked: Option<DataRate>, in_alr: bool, now: Timestamp) {
        if let Some(acked) = acked {
            self.acked = acked.as_bps_f64();
        }
        match (usage, self.state) {
            (Usage::Over, _) => self.decrease(now),
            (Usage::Under, _) => self.state = State::Hold,
            (Usage::Normal, State::Hold) => {
                // Time on hold does not count as time to grow.
                self.last_change = Some(now);
                self.state = State::Increase;
                self.increase(in_alr, now);
            }
            (Usage::Normal, State::Increase) => self.increase(in_alr, now),
        }
        self.rate = self.rate.max(self.floor);
    }

    fn increase(&mut self, in_alr: bool, now: Timestamp) {
        if self.capacity.bounds().is_some_and(|(_, high)| self.acked > high) {
            self.capacity.reset();
        }
        let limit =
            if in_alr && self.config.hold_in_alr { self.rate } else { MAX_OVER_ACKED * self.acked + OVER_ACKED_OFFSET };
        let since = self.last_change.map_or(TimeDelta::from_secs(1), |t| now.saturating_since(t)).as_secs_f64();
        if self.rate < limit {
            let step = if self.capacity.estimate().is_some() {
                self.additive_slope() * since
            } else {
                let growth = libm::pow(1.0 + self.config.increase, since.min(1.0)) - 1.0;
                (self.rate * growth).max(MIN_MULTIPLICATIVE)
            };
            self.rate = (self.rate + step).min(limit);
        }
        self.last_change = Some(now);
    }

    /// Half a packet per response time, in bit/s per second; of coupled flows, the share of one flow of their joint rate.
    fn additive_slope(&self) -> f64 {
        let frame = self.rate / self.share / FRAMES_PER_SECOND;
        let packet = frame / libm::ceil(frame / PACKET_BITS).max(1.0);
        let response = 2.0 * (self.rtt + RESPONSE_DELAY).as_secs_f64();
        (packet / response).max(MIN_ADDITIVE) * self.share
    }

    fn decrease(&mut self, now: Timestamp) {
        let mut rate = self.config.beta * self.acked;
        if rate > self.config.offset {
            rate -= self.config.offset;
        }
        if rate > self.rate
            && let Some(capacity) = self.capacity.estimate()
        {
            rate = self.config.beta * capacity;
        }
        self.rate = self.rate.min(rate);
        if self.capacity.bounds().is_some_and(|(low, _)| self.acked < low) {
            self.capacity.reset();
        }
        self.capacity.on_overuse(self.acked);
        self.state = State::Hold;
        self.last_change = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KBPS: fn(u64) -> DataRate = DataRate::from_kbps;

    fn aimd(start: u64) -> Aimd {
        let config = AimdConfig { beta: 0.85, offset: 0.0, increase: 0.08, hold_in_alr: false };
        let mut a = Aimd::new(config, KBPS(start), KBPS(10));
        a.set_rtt(TimeDelta::from_millis(200));
        a
    }
    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }
    /// Feedback every 100 ms that acknowledges everything sent.
    fn grow(a: &mut Aimd, from_ms: i64, to_ms: i64) {
        let mut t = from_ms;
        while t <= to_ms {
            a.update(Usage::Normal, Some(a.rate()), false, at(t));
            t += 100;
        }
    }

    #[test]
    fn away_from_capacity_it_grows_by_eight_percent_a_second() {
        let mut a = aimd(500);
        grow(&mut a, 0, 5_000);
        // 1.08^5 = 1.4693; the first update after hold adds the least step of 1 kbit/s.
        let want = 501.0 * 1.469_328;
        assert!((a.rate().as_kbps_f64() - want).abs() < 0.1, "{}", a.rate());
    }

    #[test]
    fn overuse_falls_to_beta_of_the_acknowledged_rate_and_then_grows_by_half_a_packet() {
        let mut a = aimd(1_000);
        a.update(Usage::Over, Some(KBPS(900)), false, at(0));
        assert_eq!(a.rate(), KBPS(765));
        a.update(Usage::Under, Some(KBPS(765)), false, at(100));
        assert_eq!(a.rate(), KBPS(765), "held while the queue drains");
        // Acknowledged at 895 kbit/s, inside the bounds of the capacity, so growth is additive.
        for t in 2..=52 {
            a.update(Usage::Normal, Some(KBPS(895)), false, at(t * 100));
        }
        // Frames of 25,500 to 28,000 bits in 3 packets over twice 300 ms: 14.2 to 15.6 kbit/s each second, for 5 s.
        let grown = a.rate().as_kbps_f64() - 765.0;
        assert!((71.0..78.0).contains(&grown), "{grown}");
    }

    /// Two coupled flows of half the rate grow together as one would.
    #[test]
    fn a_coupled_flow_adds_its_share_of_one_flows_increase() {
        let grown = |share: f64| {
            let mut a = aimd(1_000);
            a.update(Usage::Over, Some(KBPS(900)), false, at(0));
            a.couple(Some(DataRate::from_bps_f64(765e3 * share)), share);
            a.update(Usage::Normal, Some(KBPS(895)), false, at(100));
            a.update(Usage::Normal, Some(KBPS(895)), false, at(1_100));
            a.rate().as_bps_f64() - 765e3 * share
        };
        assert!(grown(1.0) > 10e3 && (grown(0.5) * 2.0 - grown(1.0)).abs() < 10.0, "{} {}", grown(0.5), grown(1.0));
    }

    #[test]
    fn an_offset_is_taken_off_after_a_reduction() {
        let mut a = aimd(1_000);
        a.config.offset = 5e3;
        a.update(Usage::Over, Some(KBPS(900)), false, at(0));
        assert_eq!(a.rate(), KBPS(760));
    }

    #[test]
    fn it_never_grows_far_beyond_what_arrives() {
        let mut a = aimd(500);
        for t in 0..200 {
            a.update(Usage::Normal, Some(KBPS(400)), false, at(t * 100));
        }
        assert_eq!(a.rate(), KBPS(610));
    }

    #[test]
    fn a_rate_above_the_bounds_forgets_the_capacity() {
        let mut a = aimd(1_000);
        a.update(Usage::Over, Some(KBPS(900)), false, at(0));
        assert!(a.capacity().is_some());
        a.update(Usage::Normal, Some(KBPS(1_100)), false, at(100));
        assert!(a.capacity().is_none());
    }

    #[test]
    fn it_is_lowered_once_a_round_trip_unless_little_arrives() {
        let mut a = aimd(1_000);
        assert!(a.may_reduce(Some(KBPS(900)), at(0)));
        a.update(Usage::Over, Some(KBPS(900)), false, at(0));
        assert!(!a.may_reduce(Some(KBPS(700)), at(199)));
        assert!(a.may_reduce(Some(KBPS(380)), at(1)));
        assert!(a.may_reduce(Some(KBPS(700)), at(200)));
    }

    #[test]
    fn in_alr_it_can_be_held() {
        let mut a = aimd(500);
        a.config.hold_in_alr = true;
        for t in 0..20 {
            a.update(Usage::Normal, Some(KBPS(500)), true, at(t * 100));
        }
        assert_eq!(a.rate(), KBPS(500));
    }
}
