use crate::update::bps;
use serde::{Deserialize, Serialize};
use weir_units::DataRate;

/// Five quantiles of the throughput expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Quantiles {
    /// Nine of ten measurements were above, bit/s.
    #[serde(with = "bps")]
    #[cfg_attr(feature = "server", schema(value_type = u64))]
    pub p10: DataRate,
    /// The lower quartile, bit/s.
    #[serde(with = "bps")]
    #[cfg_attr(feature = "server", schema(value_type = u64))]
    pub p25: DataRate,
    /// The median of the devices' medians, bit/s.
    #[serde(with = "bps")]
    #[cfg_attr(feature = "server", schema(value_type = u64))]
    pub p50: DataRate,
    /// The upper quartile, bit/s.
    #[serde(with = "bps")]
    #[cfg_attr(feature = "server", schema(value_type = u64))]
    pub p75: DataRate,
    /// One of ten measurements was above, bit/s.
    #[serde(with = "bps")]
    #[cfg_attr(feature = "server", schema(value_type = u64))]
    pub p90: DataRate,
}

impl Quantiles {
    /// The shares that belong to the fields, in order.
    pub const SHARES: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

    /// From values in the order of [`Self::SHARES`]; values that are out of order are moved to the median's side.
    pub fn from_values(mut v: [DataRate; 5]) -> Self {
        v[1] = v[1].min(v[2]);
        v[0] = v[0].min(v[1]);
        v[3] = v[3].max(v[2]);
        v[4] = v[4].max(v[3]);
        Self { p10: v[0], p25: v[1], p50: v[2], p75: v[3], p90: v[4] }
    }

    /// The values in the order of [`Self::SHARES`].
    pub const fn values(&self) -> [DataRate; 5] {
        [self.p10, self.p25, self.p50, self.p75, self.p90]
    }
}

/// From how near an answer's measurements are. The order is that of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub enum Level {
    /// This cell, at this part of the week, all that was asked for.
    Cell,
    /// This cell at any time.
    AnyHour,
    /// The next coarser cell (seven times the area).
    Near,
    /// That cell with any technology.
    AnyTechnology,
    /// The cell two steps coarser.
    District,
}

impl Level {
    /// The share of confidence that is left at this distance. Own choice: no source gives figures.
    pub const fn discount(self) -> f32 {
        match self {
            Self::Cell => 1.0,
            Self::AnyHour => 0.9,
            Self::Near => 0.6,
            Self::AnyTechnology => 0.4,
            Self::District => 0.3,
        }
    }
}

/// The capacity known at a place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Capacity {
    /// Throughput.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// Median round-trip time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f32>,
    /// Median share of packets lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f32>,
    /// 0 to 1: how many devices agree, how recently, and how near.
    pub confidence: f32,
    /// From how near it is.
    pub level: Level,
}

/// A stretch of time with one expected capacity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Segment {
    /// Begin, in seconds after the look-ahead.
    pub from_s: f32,
    /// End, in seconds after the look-ahead.
    pub to_s: f32,
    /// The expected capacity, or nothing if too few devices have reported from there.
    pub capacity: Option<Capacity>,
}

/// The capacity expected over time: a series without places, so that it can be sent to the other end of a call (thesis,
/// section 7.2: "thus preserving user's location privacy").
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct CapacityVector {
    /// Consecutive stretches, from now on.
    pub segments: Vec<Segment>,
}

/// Rounds to two significant decimal digits.
fn two_digits(rate: DataRate) -> DataRate {
    let mut unit = 1;
    while rate.as_bps() / unit >= 100 {
        unit *= 10;
    }
    DataRate::from_bps(rate.as_bps().saturating_add(unit / 2) / unit * unit)
}

impl CapacityVector {
    /// The segment at a time in seconds after the look-ahead.
    pub fn at(&self, time_s: f32) -> Option<&Segment> {
        self.segments.iter().find(|s| (s.from_s..s.to_s).contains(&time_s))
    }

    /// The lowest rate between two times, by `pick` of each capacity; `None` if nothing is known of that time.
    pub fn lowest(&self, from_s: f32, to_s: f32, pick: impl Fn(&Capacity) -> DataRate) -> Option<DataRate> {
        let within = self.segments.iter().filter(|s| s.from_s < to_s && s.to_s > from_s);
        within.filter_map(|s| s.capacity.as_ref()).map(pick).min()
    }

    /// The same with times in whole seconds and rates of two significant digits, and without what says how it was found:
    /// exact values would let someone who has the map find the route again. Stretches shorter than a second are joined
    /// with the next one, at the lower median of both.
    #[must_use]
    pub fn coarse(&self) -> Self {
        let mut out: Vec<Segment> = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            let capacity = segment.capacity.map(|c| Capacity {
                quantiles: Quantiles::from_values(c.quantiles.values().map(two_digits)),
                rtt_ms: c.rtt_ms.map(|ms| libm::roundf(ms / 10.0) * 10.0),
                loss: c.loss.map(|share| libm::roundf(share * 100.0) / 100.0),
                confidence: libm::roundf(c.confidence * 10.0) / 10.0,
                level: c.level.max(Level::AnyHour),
            });
            let (from_s, to_s) = (libm::roundf(segment.from_s), libm::roundf(segment.to_s));
            let new = Segment { from_s, to_s, capacity };
            match out.last_mut() {
                Some(last) if last.capacity == capacity => last.to_s = to_s,
                Some(last) if last.to_s <= last.from_s => {
                    let median = |s: &Segment| s.capacity.map_or(DataRate::from_bps(u64::MAX), |c| c.quantiles.p50);
                    let lower = if median(last) < median(&new) { last.capacity } else { capacity };
                    *last = Segment { from_s: last.from_s, to_s, capacity: lower };
                }
                _ => out.push(new),
            }
        }
        out.retain(|s| s.to_s > s.from_s);
        Self { segments: out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn capacity(kbps: u64) -> Capacity {
        let rate = DataRate::from_kbps(kbps);
        let quantiles = Quantiles::from_values([rate; 5]);
        Capacity { quantiles, rtt_ms: Some(61.7), loss: None, confidence: 0.63, level: Level::Cell }
    }

    fn segment(from_s: f32, to_s: f32, kbps: u64) -> Segment {
        Segment { from_s, to_s, capacity: (kbps > 0).then(|| capacity(kbps)) }
    }

    #[test]
    fn quantiles_are_put_in_order_around_the_median() {
        let v = [5, 1, 3, 2, 9].map(DataRate::from_kbps);
        assert_eq!(Quantiles::from_values(v).values(), [1, 1, 3, 3, 9].map(DataRate::from_kbps));
    }

    #[test]
    fn the_lowest_rate_is_that_of_the_stretch_asked_for() {
        let vector = CapacityVector {
            segments: vec![
                segment(0.0, 5.0, 1000),
                segment(5.0, 8.0, 80),
                segment(8.0, 20.0, 0),
                segment(20.0, 25.0, 2000),
            ],
        };
        let lowest = |a, b| vector.lowest(a, b, |c| c.quantiles.p50).map(|r| r.as_bps() / 1000);
        assert_eq!((lowest(0.0, 5.0), lowest(0.0, 5.1)), (Some(1000), Some(80)));
        assert_eq!((lowest(8.0, 20.0), lowest(8.0, 30.0)), (None, Some(2000)));
        assert_eq!(vector.at(6.0).map(|s| s.from_s), Some(5.0));
        assert_eq!(vector.at(25.0), None);
    }

    #[test]
    fn a_coarse_vector_keeps_holes_and_loses_detail() {
        let vector = CapacityVector {
            segments: vec![
                segment(0.0, 4.3, 1234),
                segment(4.3, 4.4, 50),
                segment(4.4, 9.7, 1229),
                segment(9.7, 12.0, 1199),
                segment(12.0, 13.0, 0),
            ],
        };
        let coarse = vector.coarse();
        let row = |s: &Segment| (s.from_s, s.to_s, s.capacity.map(|c| c.quantiles.p50.as_bps() / 1000));
        let rows: Vec<_> = coarse.segments.iter().map(row).collect();
        assert_eq!(rows, [(0.0, 4.0, Some(1200)), (4.0, 10.0, Some(50)), (10.0, 12.0, Some(1200)), (12.0, 13.0, None)]);
        let first = coarse.segments[0].capacity.expect("known");
        assert_eq!((first.rtt_ms, first.confidence, first.level), (Some(60.0), 0.6, Level::AnyHour));
        assert_eq!(two_digits(DataRate::from_bps(u64::MAX)).as_bps() / 10_u64.pow(18), 18);
    }
}
