//! 3G links by the patterns of V. Singh's dissertation (Aalto University, 2015), table 4.2.
//!
//! The dissertation names five patterns (excellent, good, fair, poor, elevator) and concatenates three in a call of 180
//! s, but shows the capacity of only one such sequence: that of figures 4.2 and 7.2. It is taken as
//! excellent-poor-elevator, the pattern of call 1, since its last 60 s are its first with a fade between 20 and 42 s,
//! where the call of figure 4.3 falters in an elevator, and its middle is low throughout. The other two are not shown.
//! Chosen here, from where calls 2 and 4 of figure 4.3 dip: good has three quarters of excellent's capacity and fair
//! one half.
//!
//! The link layer is in RLC's unacknowledged mode (section 4): packets corrupted on the radio are lost without
//! retransmission, 0.5 % of them, and add no delay. Chosen here, since the dissertation leaves it open: 60 ms one way,
//! its least end-to-end latency, and a queue of 300 ms, since a longer delay would be too late for conversation.

use crate::{Capacity, ConfigError, Limit, LinkConfig, Loss, Schedule, Step};
use weir_units::{DataRate, TimeDelta};

/// Length of a pattern.
pub const PATTERN: TimeDelta = TimeDelta::from_secs(60);
/// Names of the patterns.
pub const PATTERNS: [&str; 5] = ["excellent", "good", "fair", "poor", "elevator"];

const MOBILE: &str = include_str!("../../data/mobile-3g-capacity.csv");
const SLOW: &str = include_str!("../../data/slow-link-capacity.csv");

/// The capacity of figures 4.2 and 7.2, 180 s, repeated.
pub fn mobile() -> Schedule {
    read(MOBILE, "mobile-3g-capacity.csv", 180)
}

/// The capacity of the slow link of figure 4.2, 60 s, repeated.
pub fn slow() -> Schedule {
    read(SLOW, "slow-link-capacity.csv", 60)
}

fn read(text: &str, file: &str, seconds: i64) -> Schedule {
    let drawn = Schedule::parse(text, file, false).expect("the shipped curve is sound");
    Schedule::new(drawn.steps().to_vec(), Some(TimeDelta::from_secs(seconds)))
        .expect("the shipped curve fits its length")
}

/// The steps of one pattern, the first at zero.
fn pattern(name: &str) -> Option<Vec<Step>> {
    // Its position in the curve, and its share of that capacity.
    let (third, share) = match name {
        "excellent" => (0, 1.0),
        "good" => (0, 0.75),
        "fair" => (0, 0.5),
        "poor" => (1, 1.0),
        "elevator" => (2, 1.0),
        _ => return None,
    };
    let curve = mobile();
    let from = PATTERN * third;
    let mut steps: Vec<Step> = Vec::new();
    for s in curve.steps().iter().filter(|s| s.at < from + PATTERN) {
        let rate = DataRate::from_bps_f64(s.rate.as_bps_f64() * share);
        // The step in force when the pattern begins applies from its beginning.
        let at = (s.at - from).max(TimeDelta::ZERO);
        match steps.last_mut() {
            Some(last) if last.at == at => last.rate = rate,
            _ => steps.push(Step { at, rate }),
        }
    }
    Some(steps)
}

/// The capacity of patterns joined by `-`, such as `good-good-poor`: 60 s each, repeated.
///
/// # Errors
/// A name not among [`PATTERNS`].
pub fn patterns(names: &str) -> Result<Schedule, ConfigError> {
    let mut all: Vec<Step> = Vec::new();
    let mut begin = TimeDelta::ZERO;
    for name in names.split('-') {
        let expected = "excellent, good, fair, poor and elevator, joined by `-`";
        let steps = pattern(name).ok_or_else(|| ConfigError::new("capacity.pattern", name, expected))?;
        all.extend(steps.iter().map(|s| Step { at: begin + s.at, rate: s.rate }));
        begin += PATTERN;
    }
    Schedule::new(all, Some(begin))
}

/// A 3G link with this capacity.
pub fn link(capacity: Schedule) -> LinkConfig {
    let mut c = LinkConfig::constant(DataRate::ZERO, TimeDelta::from_millis(60));
    c.capacity = Capacity::Schedule(capacity);
    c.limit = Limit::Time(TimeDelta::from_millis(300));
    c.loss = Loss::Independent { share: 0.005 };
    c
}

fn of(names: &str) -> LinkConfig {
    link(patterns(names).expect("the presets name patterns"))
}

pub(super) fn excellent() -> LinkConfig {
    of("excellent")
}
pub(super) fn good() -> LinkConfig {
    of("good")
}
pub(super) fn fair() -> LinkConfig {
    of("fair")
}
pub(super) fn poor() -> LinkConfig {
    of("poor")
}
pub(super) fn elevator() -> LinkConfig {
    of("elevator")
}
pub(super) fn mobile_link() -> LinkConfig {
    link(mobile())
}
pub(super) fn slow_link() -> LinkConfig {
    let mut c = link(slow());
    c.loss = Loss::None;
    c
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Timestamp;

    fn kbps(s: &Schedule, from: i64, to: i64) -> f64 {
        let rate = |t: i64| s.rate_at(Timestamp::from_millis(t * 100)).as_kbps_f64();
        let n = (to - from) * 10;
        (0..n).map(|i| rate(from * 10 + i)).sum::<f64>() / n as f64
    }
    fn near(x: f64, expected: f64) {
        assert!((x - expected).abs() < 0.005 * expected, "{x} is not near {expected}");
    }

    #[test]
    fn the_drawn_curve_is_excellent_poor_elevator() {
        let (whole, strung) = (mobile(), patterns("excellent-poor-elevator").expect("patterns"));
        assert_eq!(strung.period(), Some(TimeDelta::from_secs(180)));
        assert!((0..1_800).all(|t| {
            let at = Timestamp::from_millis(t * 100);
            whole.rate_at(at) == strung.rate_at(at)
        }));
        // Means of the curve, and the fade of the elevator.
        near(kbps(&whole, 0, 180), 235.4);
        assert!((70.0..95.0).contains(&kbps(&strung, 140, 160)));
        assert!((340.0..440.0).contains(&kbps(&strung, 120, 140)));
    }

    #[test]
    fn patterns_stand_in_their_order() {
        let mean = |name| kbps(&patterns(name).expect("a pattern"), 0, 60);
        let [excellent, good, fair, poor, elevator] = PATTERNS.map(mean);
        near(good, 0.75 * excellent);
        near(fair, 0.5 * excellent);
        assert!(poor < fair && (poor..excellent).contains(&elevator), "{excellent} {fair} {poor} {elevator}");
        near(kbps(&patterns("good-good-poor").expect("patterns"), 0, 180), (2.0 * good + poor) / 3.0);
        let e = patterns("good-grand").expect_err("no such pattern").to_string();
        assert!(e.contains("capacity.pattern is grand: expected excellent, good"), "{e}");
    }

    #[test]
    fn the_slow_link_changes_every_20_s() {
        let s = slow();
        assert_eq!([10, 30, 50, 70].map(|t| s.rate_at(Timestamp::from_secs(t)).as_bps() / 1_000), [192, 96, 128, 192]);
    }
}
