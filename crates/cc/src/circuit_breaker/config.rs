//! What the rules are and what the application says of itself.

use crate::throughput::Equation;
use weir_units::TimeDelta;

/// Which rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    /// RFC 8083: thresholds that follow the reporting interval, the round-trip time and the frames.
    Rfc8083,
    /// The three conditions of V. Singh's dissertation, section 3.7.1, after the draft of 2013: no new media in two
    /// reports on end, no report for three intervals, ten times TCP's rate in two reports on end, each report judged
    /// by its own loss and round-trip time.
    Thesis2013,
}

/// When media is of no use to the receiver (RFC 8083, section 4.4, which names no bounds: they are the application's).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Usability {
    /// Share of packets lost above which it is not.
    pub max_loss: f64,
    /// Round-trip time above which it is not.
    pub max_rtt: TimeDelta,
    /// How long it may stay so; the RFC has "seconds, or tens of seconds".
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
    /// How many times TCP's rate is too much (RFC 8083, section 4.3: 10).
    pub factor: f64,
    /// k: reports without new media that make a media timeout where reports are rarer than frames and round trips
    /// (RFC 8083, section 4.2: 5; [`Rules::Thesis2013`]: always 2).
    pub non_reporting_threshold: u32,
    /// Tf: the longest time between frames (RFC 8083, section 3). [`super::CircuitBreaker::on_frame_interval`] changes it.
    pub frame_interval: TimeDelta,
    /// G: frames that are coded together at one rate (RFC 8083, section 3).
    pub frame_group: u32,
    /// T_rr_interval: least time between regular reports (RFC 4585, section 3.4), zero without it.
    pub min_report_interval: TimeDelta,
    /// Whether congestion marks count as loss. RFC 8083, section 5, has them so where they are reported along with a
    /// report block; its section 7 says that there is no consensus on it. The former is the more cautious.
    pub count_marks: bool,
    /// Whether the sender can go down to a tenth, and so may do that before it must cease (RFC 8083, section 4.3).
    pub may_reduce: bool,
    /// When media is of no use; `None` never asks.
    pub usability: Option<Usability>,
}

impl Default for Config {
    /// RFC 8083 with its recommended values, for video of 25 frames a second that can change its rate with each.
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
    /// The dissertation's rules alone: no reduction first, no judgement of usability.
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
    /// Tdr: this end's estimate of the receiver's.
    pub receiver: TimeDelta,
}

/// The shortest reporting interval that is believed, so that no count of reports runs away.
const MIN_INTERVAL: TimeDelta = TimeDelta::from_millis(1);
/// Tmin: the fixed minimum for timeouts (RFC 8083, section 4.1).
const FIXED_MINIMUM: TimeDelta = TimeDelta::from_secs(5);
/// Most reporting intervals that the congestion rule looks back over; at 15 s, reports 8 ms apart.
pub(super) const MAX_CB_INTERVAL: u32 = 2_048;

/// The variables of RFC 8083, section 3, as they stand.
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

    /// Silence that is an RTCP timeout: three intervals computed with the fixed minimum (RFC 8083, section 4.1).
    pub(super) fn rtcp_timeout(&self) -> TimeDelta {
        self.td.max(FIXED_MINIMUM) * 3
    }

    /// The longest of the times that a report may miss a packet by.
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

/// How many times `unit`, above zero, covers `span`.
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
        // Receivers that report more seldom than the 15 s allow for: 15 / 10.
        assert_eq!(timing(5_000, 10_000, 100, 40).cb_interval(), 2);
        // T_rr_interval takes Tdr's place where it is longer.
        let regular = Timing { t_rr: TimeDelta::from_secs(4), ..timing(1_000, 100, 1_300, 40) };
        assert_eq!(regular.cb_interval(), 4);
        assert_eq!(timing(1_000, 1, 20_000, 40).cb_interval(), MAX_CB_INTERVAL);
    }
}
