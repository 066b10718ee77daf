//! The circuit breaker's rules, and the properties that the application declares.

use crate::tcp::throughput::Equation;
use weir_units::TimeDelta;

/// Set of rules that apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    /// RFC 8083: thresholds scale with the reporting interval, the round-trip time and the frame interval.
    Rfc8083,
    /// The three conditions of V. Singh's dissertation, section 3.7.1, after the draft of 2013: no new media in two
    /// consecutive reports, no report for three intervals, or ten times TCP's rate in two consecutive reports. Each
    /// report is judged by its own loss and round-trip time.
    Thesis2013,
}

/// When media is unusable for the receiver (RFC 8083, section 4.4, which leaves the bounds to the application).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Usability {
    /// Share of packets lost above which media is unusable.
    pub max_loss: f64,
    /// Round-trip time above which media is unusable.
    pub max_rtt: TimeDelta,
    /// How long media may stay unusable; the RFC has "seconds, or tens of seconds".
    pub patience: TimeDelta,
}

impl Default for Usability {
    fn default() -> Self {
        Self { max_loss: 0.5, max_rtt: TimeDelta::from_secs(5), patience: TimeDelta::from_secs(30) }
    }
}

/// Configuration of the circuit breaker.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// The rules.
    pub rules: Rules,
    /// The throughput equation (RFC 8083, section 4.3, recommends the simplified one; the full one trips earlier).
    pub equation: Equation,
    /// Multiple of TCP's rate that trips (RFC 8083, section 4.3: 10).
    pub factor: f64,
    /// k: the media timeout in reports without new media, where reports are rarer than frames and round trips (RFC
    /// 8083, section 4.2: 5; [`Rules::Thesis2013`]: always 2).
    pub non_reporting_threshold: u32,
    /// Tf: the longest time between frames (RFC 8083, section 3). [`super::CircuitBreaker::on_frame_interval`] updates
    /// it.
    pub frame_interval: TimeDelta,
    /// G: number of frames coded together at one rate (RFC 8083, section 3).
    pub frame_group: u32,
    /// T_rr_interval: least time between regular reports (RFC 4585, section 3.4); zero if unused.
    pub min_report_interval: TimeDelta,
    /// Whether CE marks count as loss. RFC 8083, section 5, counts them if they are reported along with a report block;
    /// section 7 notes that there is no consensus. Counting them is the more cautious choice.
    pub count_marks: bool,
    /// Whether the sender can reduce its rate to a tenth, and so may do that before it must cease (RFC 8083, section
    /// 4.3).
    pub may_reduce: bool,
    /// When media is unusable; `None` disables the rule.
    pub usability: Option<Usability>,
}

impl Default for Config {
    /// RFC 8083 with its recommended values, for video at 25 frames per second whose rate can change with each frame.
    fn default() -> Self {
        Self {
            rules: Rules::Rfc8083,
            equation: Equation::Simplified,
            factor: 10.0,
            non_reporting_threshold: 5,
            frame_interval: TimeDelta::from_millis(40),
            frame_group: 1,
            min_report_interval: TimeDelta::ZERO,
            count_marks: true,
            may_reduce: true,
            usability: Some(Usability::default()),
        }
    }
}

impl Config {
    /// The dissertation's rules alone: no reduction first, no usability rule.
    pub fn thesis_2013(equation: Equation) -> Self {
        Self {
            rules: Rules::Thesis2013,
            equation,
            count_marks: false,
            may_reduce: false,
            usability: None,
            ..Self::default()
        }
    }
}

/// Deterministic RTCP reporting intervals (RFC 3550, section 6.3.1), without the random factor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtcpIntervals {
    /// Td: this end's.
    pub own: TimeDelta,
    /// Tdr: the receiver's, as estimated by this end.
    pub receiver: TimeDelta,
}

/// Lower bound of reporting intervals, which bounds the counts derived from them.
const MIN_INTERVAL: TimeDelta = TimeDelta::from_millis(1);
/// Tmin: the fixed minimum for timeouts (RFC 8083, section 4.1).
const FIXED_MINIMUM: TimeDelta = TimeDelta::from_secs(5);
/// Most reporting intervals that the congestion rule averages over: 15 s of reports 8 ms apart.
pub(super) const MAX_CB_INTERVAL: u32 = 2_048;

/// The variables of RFC 8083, section 3, at their current values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) td: TimeDelta,
    pub(super) tdr: TimeDelta,
    /// Tr, smoothed; zero before the first sample.
    pub(super) tr: TimeDelta,
    pub(super) tf: TimeDelta,
    pub(super) group: u32,
    pub(super) t_rr: TimeDelta,
}

impl Timing {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            td: FIXED_MINIMUM,
            tdr: FIXED_MINIMUM,
            tr: TimeDelta::ZERO,
            tf: config.frame_interval.max(TimeDelta::ZERO),
            group: config.frame_group.max(1),
            t_rr: config.min_report_interval,
        }
    }

    pub(super) fn set(&mut self, intervals: RtcpIntervals) {
        self.td = intervals.own.max(MIN_INTERVAL);
        self.tdr = intervals.receiver.max(MIN_INTERVAL);
    }

    /// RTCP timeout: three reporting intervals computed with the fixed minimum (RFC 8083, section 4.1).
    pub(super) fn rtcp_timeout(&self) -> TimeDelta {
        self.td.max(FIXED_MINIMUM) * 3
    }

    /// The longest of Tf, Tr and Tdr: the time within which a report may not yet cover a packet.
    pub(super) fn longest(&self) -> TimeDelta {
        self.tf.max(self.tr).max(self.tdr)
    }

    /// MEDIA_TIMEOUT in reports (RFC 8083, section 4.2).
    pub(super) fn media_timeout(&self, k: u32) -> u32 {
        ceil(self.longest() * i64::from(k), self.tdr).max(1)
    }

    /// CB_INTERVAL in reporting intervals (RFC 8083, section 4.3).
    pub(super) fn cb_interval(&self) -> u32 {
        let tdr = self.tdr.max(self.t_rr);
        let least = (self.tf * 10 * i64::from(self.group)).max(self.tr * 10).max(tdr * 3);
        let most = TimeDelta::from_secs(15).max(self.td * 3);
        ceil(least.min(most) * 3, tdr * 3).clamp(1, MAX_CB_INTERVAL)
    }
}

/// `span` divided by `unit`, rounded up. `unit` is above zero.
fn ceil(span: TimeDelta, unit: TimeDelta) -> u32 {
    let n = (span.as_nanos().max(0) as u64).div_ceil(unit.as_nanos().max(1) as u64);
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(td_ms: i64, tdr_ms: i64, tr_ms: i64, tf_ms: i64) -> Timing {
        let ms = TimeDelta::from_millis;
        Timing { td: ms(td_ms), tdr: ms(tdr_ms), tr: ms(tr_ms), tf: ms(tf_ms), group: 1, t_rr: TimeDelta::ZERO }
    }

    #[test]
    fn the_rtcp_timeout_keeps_the_fixed_minimum() {
        assert_eq!(timing(1_000, 1_000, 0, 40).rtcp_timeout(), TimeDelta::from_secs(15));
        assert_eq!(timing(5_000, 1_000, 0, 40).rtcp_timeout(), TimeDelta::from_secs(15));
        assert_eq!(timing(6_000, 1_000, 0, 40).rtcp_timeout(), TimeDelta::from_secs(18));
    }

    #[test]
    fn the_media_timeout_scales_with_frames_and_round_trips() {
        assert_eq!(timing(5_000, 5_000, 100, 40).media_timeout(5), 5);
        // Frames of 10 s and reports of 3 s: 5 * 10 / 3 = 16.7.
        assert_eq!(timing(5_000, 3_000, 100, 10_000).media_timeout(5), 17);
        assert_eq!(timing(5_000, 100, 200, 40).media_timeout(5), 10);
        assert_eq!(timing(5_000, 100, 201, 40).media_timeout(5), 11);
    }

    #[test]
    fn the_congestion_rule_looks_back_over_three_reports_ten_round_trips_and_ten_groups() {
        assert_eq!(timing(5_000, 5_000, 100, 40).cb_interval(), 3);
        assert_eq!(timing(1_000, 1_000, 100, 40).cb_interval(), 3);
        assert_eq!(timing(1_000, 1_000, 301, 40).cb_interval(), 4);
        assert_eq!(timing(1_000, 1_000, 100, 320).cb_interval(), 4);
        // Ten groups of 25 frames of 40 ms are 10 s.
        assert_eq!(Timing { group: 25, ..timing(1_000, 1_000, 100, 40) }.cb_interval(), 10);
        // Never more than 15 s, or three of this end's own intervals.
        assert_eq!(Timing { group: 250, ..timing(1_000, 1_000, 100, 40) }.cb_interval(), 15);
        assert_eq!(Timing { group: 250, ..timing(8_000, 1_000, 100, 40) }.cb_interval(), 24);
        // Receivers that report less often than 15 s allow for: 15 / 10.
        assert_eq!(timing(5_000, 10_000, 100, 40).cb_interval(), 2);
        // T_rr_interval replaces Tdr where it is longer.
        let regular = Timing { t_rr: TimeDelta::from_secs(4), ..timing(1_000, 100, 1_300, 40) };
        assert_eq!(regular.cb_interval(), 4);
        assert_eq!(timing(1_000, 1, 20_000, 40).cb_interval(), MAX_CB_INTERVAL);
    }
}
