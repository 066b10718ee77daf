//! Delays: the interval covered by other blocks (RFC 6776), round trips (RFC 6843) and delay variation (RFC 6798).

use super::metric::{Fixed, IntervalMetric, pair, put};
use crate::ntp::{compact_to_delta, delta_to_compact, delta_to_span, span_to_delta};
use crate::read::{be16, be32};
use weir_units::TimeDelta;

/// Packets and time covered by the metric blocks of the same compound packet (RFC 6776, section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasurementInformation {
    /// The source of the packets.
    pub ssrc: u32,
    /// Sequence number of the session's first packet received.
    pub first_sequence: u16,
    /// Extended sequence number (wraps counted in the upper half) of the interval's first packet received.
    pub interval_first: u32,
    /// Extended sequence number of the last packet counted.
    pub last: u32,
    /// Length of the interval, 0 to 18.2 hours, to the nearest 2^-16 s.
    pub interval: TimeDelta,
    /// Time over which cumulative metrics count, 0 to 136 years, to the nearest 2^-32 s.
    pub cumulative: TimeDelta,
}

impl Fixed for MeasurementInformation {
    const TYPE: u8 = super::MEASUREMENT_INFORMATION;
    const BODY: usize = 28;
    fn read(_: u8, body: &[u8]) -> Option<Self> {
        Some(Self {
            ssrc: be32(body, 0),
            first_sequence: be16(body, 6),
            interval_first: be32(body, 8),
            last: be32(body, 12),
            interval: compact_to_delta(be32(body, 16)),
            cumulative: span_to_delta(u64::from(be32(body, 20)) << 32 | u64::from(be32(body, 24))),
        })
    }
    fn type_specific(&self) -> u8 {
        0
    }
    fn write_body(&self, out: &mut Vec<u8>) {
        let (interval, cumulative) = (delta_to_compact(self.interval), delta_to_span(self.cumulative));
        put(out, [self.ssrc, self.first_sequence.into(), self.interval_first, self.last, interval]);
        put(out, [(cumulative >> 32) as u32, cumulative as u32]);
    }
}

/// Round trips over the network, and the delay inside the reporting end (RFC 6843, section 3).
///
/// `None` if not measured. The interval covered is that of the [`MeasurementInformation`] in the same compound packet;
/// without one this must be ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayMetrics {
    /// The source of the packets.
    pub ssrc: u32,
    /// The interval covered.
    pub interval: IntervalMetric,
    /// Mean round-trip delay, 0 to 18.2 hours, to the nearest 2^-16 s.
    pub mean_round_trip: Option<TimeDelta>,
    /// The least.
    pub min_round_trip: Option<TimeDelta>,
    /// The largest.
    pub max_round_trip: Option<TimeDelta>,
    /// Delay inside the end, of jitter buffer and codec, 0 to 136 years, to the nearest 2^-32 s.
    pub end_system: Option<TimeDelta>,
}

/// The bits of a delay in units of 2^-16 s; the maximum value means unknown.
fn delay_bits(delay: Option<TimeDelta>) -> u32 {
    delay.map_or(u32::MAX, |d| delta_to_compact(d).min(u32::MAX - 1))
}

impl Fixed for DelayMetrics {
    const TYPE: u8 = super::DELAY;
    const BODY: usize = 24;
    fn read(type_specific: u8, body: &[u8]) -> Option<Self> {
        let delay = |at| Some(be32(body, at)).filter(|bits| *bits != u32::MAX).map(compact_to_delta);
        let end_system = u64::from(be32(body, 16)) << 32 | u64::from(be32(body, 20));
        Some(Self {
            ssrc: be32(body, 0),
            interval: IntervalMetric::from_octet(type_specific)?,
            mean_round_trip: delay(4),
            min_round_trip: delay(8),
            max_round_trip: delay(12),
            end_system: Some(end_system).filter(|bits| *bits != u64::MAX).map(span_to_delta),
        })
    }
    fn type_specific(&self) -> u8 {
        self.interval.octet()
    }
    fn write_body(&self, out: &mut Vec<u8>) {
        let end_system = self.end_system.map_or(u64::MAX, |d| delta_to_span(d).min(u64::MAX - 1));
        let [mean, min, max] = [self.mean_round_trip, self.min_round_trip, self.max_round_trip].map(delay_bits);
        put(out, [self.ssrc, mean, min, max, (end_system >> 32) as u32, end_system as u32]);
    }
}

/// Deviation of packets from their expected time (RFC 6798, section 3).
///
/// `None` if not measured. Thresholds and mean are in units of 1/16 ms, -2,047.9375 to 2,047.8125 ms, to the nearest;
/// values beyond are written and read as -2,048 and 2,047.875 ms. Percentiles are in units of 1/256 %. The interval
/// covered is that of the [`MeasurementInformation`] in the same compound packet; without one this must be ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayVariation {
    /// The source of the packets.
    pub ssrc: u32,
    /// The interval covered.
    pub interval: IntervalMetric,
    /// The metric, 4 bits: [`DelayVariation::MAPDV2`] or [`DelayVariation::TWO_POINT`].
    pub metric: u8,
    /// Lateness up to which a packet counts in the percentile, or the greatest.
    pub positive_threshold: Option<TimeDelta>,
    /// Share of packets less late than that.
    pub positive_percentile: Option<u16>,
    /// Earliness up to which a packet counts in the percentile, or the greatest.
    pub negative_threshold: Option<TimeDelta>,
    /// Share of packets less early than that.
    pub negative_percentile: Option<u16>,
    /// The metric's mean.
    pub mean: Option<TimeDelta>,
}

impl DelayVariation {
    /// Mean absolute packet delay variation 2 (ITU-T G.1020, clause 6.2.3.2).
    pub const MAPDV2: u8 = 0;
    /// 2-point packet delay variation (ITU-T Y.1540, clause 6.2.4).
    pub const TWO_POINT: u8 = 1;
}

/// A sixteenth of a millisecond in ns.
const SIXTEENTH: i64 = 62_500;
/// The bits of an unknown variation.
const NO_VARIATION: u16 = 0x7fff;
/// The bits of an unknown percentile.
const NO_PERCENTILE: u16 = 0xffff;

fn variation(bits: u16) -> Option<TimeDelta> {
    (bits != NO_VARIATION).then(|| TimeDelta::from_nanos(i64::from(bits as i16) * SIXTEENTH))
}

fn variation_bits(variation: Option<TimeDelta>) -> u16 {
    let Some(variation) = variation else { return NO_VARIATION };
    let ns = variation.as_nanos();
    let units = ns.saturating_add(ns.signum() * (SIXTEENTH / 2)) / SIXTEENTH;
    // 0x8000 and 0x7ffe stand for all values beyond.
    units.clamp(-0x8000, 0x7ffe) as i16 as u16
}

impl Fixed for DelayVariation {
    const TYPE: u8 = super::DELAY_VARIATION;
    const BODY: usize = 16;
    fn read(type_specific: u8, body: &[u8]) -> Option<Self> {
        let percentile = |at| Some(be16(body, at)).filter(|bits| *bits != NO_PERCENTILE);
        Some(Self {
            ssrc: be32(body, 0),
            interval: IntervalMetric::from_octet(type_specific)?,
            metric: type_specific >> 2 & 0xf,
            positive_threshold: variation(be16(body, 4)),
            positive_percentile: percentile(6),
            negative_threshold: variation(be16(body, 8)),
            negative_percentile: percentile(10),
            mean: variation(be16(body, 12)),
        })
    }
    fn type_specific(&self) -> u8 {
        self.interval.octet() | (self.metric & 0xf) << 2
    }
    fn write_body(&self, out: &mut Vec<u8>) {
        let percentile = |p: Option<u16>| p.unwrap_or(NO_PERCENTILE);
        let positive = pair(variation_bits(self.positive_threshold), percentile(self.positive_percentile));
        let negative = pair(variation_bits(self.negative_threshold), percentile(self.negative_percentile));
        put(out, [self.ssrc, positive, negative, pair(variation_bits(self.mean), 0)]);
    }
}
