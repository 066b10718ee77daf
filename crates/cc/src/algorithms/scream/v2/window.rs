//! The reference window (draft, section 4.2.2).

use super::config::Config;
use weir_units::{TimeDelta, Timestamp};

/// Least factor of growth, and of a reduction for marks, near the inflection point (draft, sections 4.2.2.1 and
/// 4.2.2.2).
const LEAST_SCALE: f64 = 0.25;
/// Least factor of growth where the queue delay varies (draft, section 4.2.2.2).
const LEAST_DELAY_SCALE: f64 = 0.1;
/// Share of the target below which a queue delay is that of L4S's short queue (draft, section 4.2.2.1).
const SHORT_QUEUE_SHARE: f64 = 0.25;
/// Round trips without congestion after which the window may be far above the flight (draft, section 4.2.2.1).
const LONG_TIME_RTTS: i64 = 100;
/// Packets of the least window (C++).
const LEAST_PACKETS: f64 = 2.0;

/// A congestion event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Congestion {
    /// Packets were lost.
    Loss,
    /// Packets carried a CE mark.
    Ecn,
    /// The averaged queue delay is above half of its target.
    Delay,
}

/// The path as seen by one update of the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub(super) now: Timestamp,
    pub(super) srtt: TimeDelta,
    /// MSS in bytes.
    pub(super) mss: f64,
    /// l4s_alpha and l4s_alpha_v.
    pub(super) alpha: f64,
    pub(super) virtual_alpha: f64,
    /// qdelay over qdelay_target.
    pub(super) queue_share: f64,
    /// ref_wnd_delay_scale.
    pub(super) delay_scale: f64,
    /// Whether the target is well below the acknowledged rate already.
    pub(super) is_target_low: bool,
    /// Whether the target is at its upper bound.
    pub(super) is_target_highest: bool,
    /// max_bytes_in_flight with its predecessor, and the predecessor alone.
    pub(super) peak_flight: f64,
    pub(super) previous_flight: f64,
}

/// ref_wnd and its inflection point, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Window {
    size: f64,
    inflection: f64,
    may_move_inflection: bool,
    least: f64,
    /// last_congestion_detected_time.
    congested_at: Timestamp,
    /// Whether `max_allowed_t` was below the window at the last update.
    application_limited: bool,
    /// Factor on growth: that of a subflow among coupled ones.
    growth: f64,
}

impl Window {
    pub(super) fn new(config: &Config, now: Timestamp) -> Self {
        let least = config.min_ref_wnd.as_bytes() as f64;
        Self {
            size: least.max(config.initial_ref_wnd.as_bytes() as f64),
            inflection: 1.0,
            may_move_inflection: true,
            least,
            congested_at: now,
            application_limited: false,
            growth: 1.0,
        }
    }

    /// Sets the factor on growth, 0 to 1.
    pub(super) fn set_growth(&mut self, growth: f64) {
        self.growth = growth;
    }

    /// Keeps room for two packets of this size.
    pub(super) fn make_room(&mut self, mss: f64, config: &Config) {
        self.least = (config.min_ref_wnd.as_bytes() as f64).max(LEAST_PACKETS * mss);
        self.size = self.size.max(self.least);
    }

    pub(super) fn limit(&mut self, most: f64) {
        self.size = self.size.min(most).max(self.least);
    }

    /// One update: a reduction if there is an event, then growth by what was acknowledged without a mark.
    pub(super) fn update(&mut self, event: Option<Congestion>, unmarked: f64, c: &Conditions, config: &Config) {
        let scale = self.inflection_scale();
        if let Some(event) = event {
            self.reduce(event, scale, c, config);
        }
        self.grow(unmarked, scale, c, config);
    }

    /// scl_t: 1 far from the inflection point, 0.1 at it.
    fn inflection_scale(&self) -> f64 {
        let distance = 8.0 * (self.size - self.inflection) / self.inflection;
        (distance * distance).clamp(0.1, 1.0)
    }

    fn reduce(&mut self, event: Congestion, scale: f64, c: &Conditions, config: &Config) {
        if core::mem::take(&mut self.may_move_inflection) {
            self.inflection = self.size.max(1.0);
        }
        let round_trips = (c.srtt.as_secs_f64() / config.reduction_interval.as_secs_f64()).max(1.0);
        let low = if c.is_target_low { config.backoff_scale_low_target_rate } else { 1.0 };
        let factor = match event {
            Congestion::Loss => config.beta_loss,
            Congestion::Ecn if !config.is_l4s => config.beta_ecn,
            Congestion::Ecn => {
                let mut backoff = c.alpha / 2.0 * low / round_trips;
                if c.queue_share < SHORT_QUEUE_SHARE {
                    backoff *= scale.max(LEAST_SCALE) * c.delay_scale.max(LEAST_SCALE);
                }
                if c.now - self.congested_at > c.srtt.max(config.virtual_rtt) * LONG_TIME_RTTS {
                    self.size = self.size.min(c.previous_flight);
                }
                1.0 - backoff
            }
            Congestion::Delay => {
                let divisions = i32::try_from(config.delay_reduction_divisions).unwrap_or(1);
                1.0 - c.virtual_alpha / 2.0 * low / round_trips.powi(divisions)
            }
        };
        self.size = (self.size * factor).max(self.least);
        self.congested_at = c.now;
    }

    fn grow(&mut self, unmarked: f64, scale: f64, c: &Conditions, config: &Config) {
        let calm = c.srtt.as_secs_f64() * config.post_congestion_delay_rtts;
        let since = (c.now - self.congested_at).as_secs_f64();
        let post_congestion = if calm > 0.0 { (since / calm).clamp(0.0, 1.0) } else { 1.0 };
        let multiplicative = config.mul_increase_factor * self.size / c.mss * post_congestion * scale;
        let increment = unmarked
            * (c.mss / self.size)
            * scale.max(LEAST_SCALE)
            * c.srtt.ratio(config.virtual_rtt).unwrap_or(1.0).min(1.0)
            * c.delay_scale.max(LEAST_DELAY_SCALE)
            * (1.0 + multiplicative)
            * self.growth;
        let most = c.mss + c.peak_flight * config.bytes_in_flight_head_room;
        self.application_limited = most < self.size;
        if increment > 0.0 && self.size + increment <= most && !c.is_target_highest {
            self.size += increment;
            self.may_move_inflection = true;
        }
    }

    /// ref_wnd.
    pub(super) fn size(&self) -> f64 {
        self.size
    }
    /// ref_wnd_i.
    pub(super) fn inflection(&self) -> f64 {
        self.inflection
    }
    /// MIN_REF_WND, or two packets if that is more.
    pub(super) fn least(&self) -> f64 {
        self.least
    }
    /// Whether the flight was too small for the window to grow.
    pub(super) fn is_application_limited(&self) -> bool {
        self.application_limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::DataSize;

    const fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }
    const fn at(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }
    const CALM: Conditions = Conditions {
        now: at(0),
        srtt: ms(60),
        mss: 1_000.0,
        alpha: 0.5,
        virtual_alpha: 0.5,
        queue_share: 0.5,
        delay_scale: 1.0,
        is_target_low: false,
        is_target_highest: false,
        peak_flight: 1e9,
        previous_flight: 1e9,
    };
    fn window(bytes: u64, config: &Config) -> Window {
        Window::new(&Config { initial_ref_wnd: DataSize::from_bytes(bytes), ..*config }, at(0))
    }
    fn after(bytes: u64, event: Congestion, c: Conditions, config: &Config) -> f64 {
        let mut w = window(bytes, config);
        w.update(Some(event), 0.0, &c, config);
        w.size()
    }

    #[test]
    fn each_event_has_its_factor() {
        let c = Config::default();
        assert_eq!(after(20_000, Congestion::Loss, CALM, &c), 14_000.0);
        // Half of alpha, over the two reductions that fall into a round trip of 60 ms.
        assert_eq!(after(20_000, Congestion::Ecn, CALM, &c), 20_000.0 * (1.0 - 0.125));
        assert_eq!(after(20_000, Congestion::Delay, CALM, &c), 20_000.0 * (1.0 - 0.0625), "divided twice");
        let draft = Config { delay_reduction_divisions: 1, ..c };
        assert_eq!(after(20_000, Congestion::Delay, CALM, &draft), 20_000.0 * (1.0 - 0.125));
        let classic = Config { is_l4s: false, ..c };
        assert_eq!(after(20_000, Congestion::Ecn, CALM, &classic), 18_000.0);
        assert_eq!(after(300, Congestion::Loss, CALM, &c), 210.0);
        assert_eq!(after(250, Congestion::Loss, CALM, &c), 200.0, "its minimum");
    }

    #[test]
    fn a_low_target_and_a_short_queue_make_reductions_smaller() {
        let c = Config::default();
        let low = Conditions { is_target_low: true, ..CALM };
        assert_eq!(after(20_000, Congestion::Ecn, low, &c), 20_000.0 * (1.0 - 0.125 / 4.0));
        let jittery = Conditions { queue_share: 0.1, delay_scale: 0.5, ..CALM };
        assert_eq!(after(20_000, Congestion::Ecn, jittery, &c), 20_000.0 * (1.0 - 0.125 / 2.0));
    }

    #[test]
    fn a_mark_after_a_long_time_brings_the_window_to_the_flight() {
        let c = Config::default();
        let late = Conditions { now: at(6_001), previous_flight: 8_000.0, ..CALM };
        assert_eq!(after(20_000, Congestion::Ecn, late, &c), 7_000.0);
        let earlier = Conditions { now: at(6_000), ..late };
        assert_eq!(after(20_000, Congestion::Ecn, earlier, &c), 17_500.0);
    }

    #[test]
    fn growth_is_a_packet_a_round_trip_and_in_calm_a_twentieth_more() {
        let c = Config::default();
        let grown = |cond: Conditions| {
            let mut w = window(20_000, &c);
            w.update(None, 20_000.0, &cond, &c);
            w.size() - 20_000.0
        };
        assert_eq!(grown(CALM), 1_000.0, "just congested");
        // 200 round trips later: 0.05 x 20 packets more.
        let calm = Conditions { now: at(12_000), ..CALM };
        assert!((grown(calm) - 2_000.0).abs() < 1e-9);
        assert!((grown(Conditions { delay_scale: 0.0, ..calm }) - 200.0).abs() < 1e-9);
        assert!((grown(Conditions { srtt: ms(5), now: at(1_000), ..CALM }) - 400.0).abs() < 1e-9, "a fifth of both");
        assert_eq!(grown(Conditions { is_target_highest: true, ..calm }), 0.0);
        assert_eq!(grown(Conditions { peak_flight: 10_000.0, ..calm }), 0.0, "1,000 + 2 x 10,000 is less");
    }

    #[test]
    fn a_coupled_window_grows_by_its_factor() {
        let c = Config::default();
        let mut w = window(20_000, &c);
        w.set_growth(0.25);
        w.update(None, 20_000.0, &CALM, &c);
        assert_eq!(w.size(), 20_250.0);
    }

    #[test]
    fn near_the_inflection_point_it_grows_slowly() {
        let c = Config { reduce_jitter: false, ..Config::default() };
        let mut w = window(20_000, &c);
        w.update(Some(Congestion::Loss), 0.0, &CALM, &c);
        assert_eq!(w.inflection(), 20_000.0);
        w.update(Some(Congestion::Loss), 0.0, &CALM, &c);
        assert_eq!(w.inflection(), 20_000.0, "it moves once the window has grown");
        let mut near = window(20_000, &c);
        near.inflection = 20_000.0;
        near.update(None, 20_000.0, &CALM, &c);
        assert_eq!(near.size(), 20_250.0);
    }
}
