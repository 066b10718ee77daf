//! Gives a call's ends the forecasts of a map: each end from the map itself, so that none is lost or late, or the receiver
//! alone, which announces them to the sender in RTCP.

use crate::scenario::{Expected, Forecast, Foreknown, Foretold};
use std::sync::Arc;
use weir_cc::cue::ForecastSegment;
use weir_path::Capacity;
use weir_session::Endpoint;
use weir_sim::mix;
use weir_units::{DataRate, PathId, TimeDelta, Timestamp};

/// Time over which a ride measures its rate.
const MEASURED: TimeDelta = TimeDelta::from_secs(1);
/// Samples of a capacity in that time.
const SAMPLES: i64 = 10;
/// Time for which a drawn ride keeps its ratio to the link's.
const RATIO_HELD: TimeDelta = TimeDelta::from_secs(10);
/// As many rides as this make a confidence of one half, as in a map that asks for three devices.
const HALF_CONFIDENT: f64 = 3.0;

/// The forecasts of a call's paths, of which one is given for each at the same time.
#[derive(Clone, Debug)]
pub struct ForecastFeeds {
    paths: Box<[ForecastFeed]>,
    /// Whether the end announces them to the other one, and for how long they hold.
    announced: Option<TimeDelta>,
}

impl ForecastFeeds {
    /// One for each path, in the order of paths; `None` without any.
    pub(crate) fn new(feeds: Vec<ForecastFeed>) -> Option<Self> {
        (!feeds.is_empty()).then(|| Self { paths: feeds.into(), announced: None })
    }

    /// The capacities of tables, one for each path in the order of paths, to be announced to the other end each 10 s for the
    /// 60 s ahead. Times count from the begin of the call; the last row only ends the one before it.
    pub fn of_tables(tables: Vec<Vec<Foretold>>) -> Self {
        let (look_ahead, interval) = (TimeDelta::from_secs(60), TimeDelta::from_secs(10));
        let feed = |rows: Vec<Foretold>| ForecastFeed {
            rows: rows.into(),
            look_ahead,
            interval,
            factor: 1.0,
            due: Timestamp::ZERO,
            segments: Vec::new(),
        };
        Self { paths: tables.into_iter().map(feed).collect(), announced: Some(look_ahead) }
    }

    /// To be announced to the other end by the end that gets them.
    pub(super) fn announced(self, valid_for: TimeDelta) -> Self {
        Self { announced: Some(valid_for), ..self }
    }

    /// When the next forecast of any path is given.
    pub fn due(&self) -> Timestamp {
        self.paths.iter().map(|f| f.due).min().unwrap_or(Timestamp::MAX)
    }

    /// Gives an end, whose own time is `own`, the forecasts that are due at `now`.
    pub fn give(&mut self, endpoint: &mut Endpoint, now: Timestamp, own: Timestamp) {
        for (feed, path) in self.paths.iter_mut().zip(0..) {
            let Some(segments) = feed.poll(now) else { continue };
            let sends = endpoint.target().is_some();
            let Some(mut path) = endpoint.path_mut(PathId::new(path)) else { continue };
            // The capacity announced is that of the way to this end, and not of its own way out.
            if self.announced.is_none() || !sends {
                path.on_capacity_forecast(segments, own);
            }
            if let Some(valid_for) = self.announced {
                path.announce_capacity(segments, valid_for, own);
            }
        }
    }

    /// The path's forecast of this time that allows least, by which a call may start.
    pub(crate) fn first(&mut self, now: Timestamp) -> &[ForecastSegment] {
        let low = |s: &[ForecastSegment]| s.first().map(|s| s.low);
        let all = self.paths.iter_mut().map(|f| f.at(now));
        all.min_by_key(|s| low(s)).unwrap_or_default()
    }
}

/// The forecasts of a path.
#[derive(Clone, Debug)]
pub(crate) struct ForecastFeed {
    /// Forecast capacity for the whole run; the last row only ends the one before it.
    rows: Arc<[Foretold]>,
    look_ahead: TimeDelta,
    interval: TimeDelta,
    factor: f64,
    due: Timestamp,
    segments: Vec<ForecastSegment>,
}

impl ForecastFeed {
    /// The forecasts of a link of this capacity from `start` on, until `end`.
    pub(crate) fn new(f: &Forecast, link: &Capacity, seed: u64, (start, end): (Timestamp, Timestamp)) -> Self {
        let until = end + f.look_ahead + f.segment;
        let every = |rides: &[Box<dyn Fn(Timestamp) -> f64 + '_>]| {
            let number = until.saturating_since(Timestamp::ZERO).as_nanos() / f.segment.as_nanos().max(1) + 1;
            let row = |i: i64| {
                let from = f.segment * i;
                Foretold { from, capacity: expected(rides, Timestamp::ZERO + from, f.segment) }
            };
            (0..number).map(row).collect()
        };
        let rows: Arc<[Foretold]> = match &f.source {
            Foreknown::Foretold(rows) => rows.clone(),
            Foreknown::Driven => {
                let mut rows: Vec<Foretold> = every(&[Box::new(|at| mean(link, at))]);
                rows.iter_mut().filter_map(|r| r.capacity.as_mut()).for_each(|c| c.confidence = 1.0);
                rows.into()
            }
            Foreknown::Rides(rides) => {
                let ride = |c| Box::new(move |at| mean(c, at)) as Box<dyn Fn(Timestamp) -> f64>;
                every(&rides.iter().map(ride).collect::<Vec<_>>()).into()
            }
            &Foreknown::Drawn { rides, shift, spread } => {
                let ride = |i: usize| {
                    let seed = mix(seed, i as u64);
                    let shift = TimeDelta::from_secs_f64(shift.as_secs_f64() * (2.0 * unit(seed, 0) - 1.0));
                    let ratio = move |at: Timestamp| {
                        let held = at.saturating_since(Timestamp::ZERO).as_nanos() / RATIO_HELD.as_nanos();
                        libm::exp(spread * normal(mix(seed, 1), held as u64))
                    };
                    let place = move |at: Timestamp| Timestamp::ZERO + (at + shift).saturating_since(Timestamp::ZERO);
                    Box::new(move |at| mean(link, place(at)) * ratio(at)) as Box<dyn Fn(Timestamp) -> f64>
                };
                every(&(0..rides).map(ride).collect::<Vec<_>>()).into()
            }
        };
        let (look_ahead, interval, factor) = (f.look_ahead, f.interval, f.factor);
        Self { rows, look_ahead, interval, factor, due: start, segments: Vec::new() }
    }

    /// The forecast given at `now`, if one is due.
    fn poll(&mut self, now: Timestamp) -> Option<&[ForecastSegment]> {
        if now < self.due {
            return None;
        }
        self.due = now + self.interval;
        Some(self.at(now))
    }

    /// The forecast of this time.
    fn at(&mut self, now: Timestamp) -> &[ForecastSegment] {
        let now = now.saturating_since(Timestamp::ZERO);
        let end = now + self.look_ahead;
        let first = self.rows.partition_point(|r| r.from <= now).saturating_sub(1);
        let scaled = |rate: DataRate| DataRate::from_bps_f64(rate.as_bps_f64() * self.factor);
        self.segments.clear();
        for pair in self.rows[first.min(self.rows.len())..].windows(2).take_while(|p| p[0].from < end) {
            let Some(Expected { low, median, confidence }) = pair[0].capacity else { continue };
            let (from, to) = ((pair[0].from - now).max(TimeDelta::ZERO), pair[1].from.min(end) - now);
            let (low, median) = (scaled(low), scaled(median));
            self.segments.push(ForecastSegment { from, to, low, median, confidence });
        }
        &self.segments
    }
}

/// Quantiles of what rides measured in a stretch of time, each with as many measurements.
fn expected(rides: &[Box<dyn Fn(Timestamp) -> f64 + '_>], from: Timestamp, segment: TimeDelta) -> Option<Expected> {
    let measured = (segment.as_nanos() / MEASURED.as_nanos()).max(1);
    let step = segment / measured;
    let (mut all, mut medians) = (Vec::new(), Vec::new());
    for ride in rides {
        let mut own: Vec<f64> = (0..measured).map(|i| ride(from + step * i)).collect();
        all.extend_from_slice(&own);
        medians.push(quantile(&mut own, 0.5)?);
    }
    let (median, low) = (quantile(&mut medians, 0.5)?, quantile(&mut all, 0.25)?);
    let confidence = rides.len() as f64 / (rides.len() as f64 + HALF_CONFIDENT);
    Some(Expected { low: DataRate::from_bps_f64(low.min(median)), median: DataRate::from_bps_f64(median), confidence })
}

/// A quantile of values, between the two nearest.
fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let place = share * values.len().checked_sub(1)? as f64;
    let (low, high) = (values[place as usize], values[(place as usize + 1).min(values.len() - 1)]);
    Some(low + (high - low) * (place - libm::floor(place)))
}

/// Mean capacity in bit/s over the time of a measurement.
fn mean(capacity: &Capacity, at: Timestamp) -> f64 {
    // An unlimited link has no rate that can be added.
    let rate = |i: i64| capacity.rate_at(at + MEASURED * i / SAMPLES).as_bps_f64().min(1e12);
    (0..SAMPLES).map(rate).sum::<f64>() / SAMPLES as f64
}

/// 0 to 1.
fn unit(seed: u64, k: u64) -> f64 {
    (mix(seed, k) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A draw of a normal distribution, as the sum of twelve uniform ones.
fn normal(seed: u64, k: u64) -> f64 {
    let seed = mix(seed, k);
    (0..12).map(|i| unit(seed, i)).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_path::{Schedule, Step};

    fn link() -> Capacity {
        let step = |s, kbps| Step { at: TimeDelta::from_secs(s), rate: DataRate::from_kbps(kbps) };
        Capacity::Schedule(Schedule::new(vec![step(0, 1_000), step(10, 200), step(20, 600)], None).expect("sound"))
    }
    fn feed(source: Foreknown, factor: f64) -> ForecastFeed {
        let (segment, look_ahead) = (TimeDelta::from_secs(5), TimeDelta::from_secs(12));
        let f = Forecast { source, segment, look_ahead, interval: TimeDelta::from_secs(4), factor, in_band: false };
        ForecastFeed::new(&f, &link(), 7, (Timestamp::ZERO, Timestamp::from_secs(30)))
    }
    fn kbps(segments: &[ForecastSegment]) -> Vec<(f64, f64, f64)> {
        segments.iter().map(|s| (s.from.as_secs_f64(), s.to.as_secs_f64(), s.median.as_kbps_f64())).collect()
    }

    #[test]
    fn the_driven_ride_is_foretold_exactly_and_again_after_each_interval() {
        let mut f = feed(Foreknown::Driven, 1.0);
        let first = f.poll(Timestamp::ZERO).expect("due");
        assert_eq!(kbps(first), [(0.0, 5.0, 1_000.0), (5.0, 10.0, 1_000.0), (10.0, 12.0, 200.0)]);
        assert!(first.iter().all(|s| s.confidence == 1.0 && s.low == s.median));
        assert_eq!(f.poll(Timestamp::from_secs(3)), None);
        assert_eq!(f.due, Timestamp::from_secs(4));
        let next = f.poll(Timestamp::from_secs(7)).expect("due");
        assert_eq!(kbps(next), [(0.0, 3.0, 1_000.0), (3.0, 8.0, 200.0), (8.0, 12.0, 200.0)]);
        assert_eq!(
            kbps(feed(Foreknown::Driven, 0.1).at(Timestamp::from_secs(25))),
            [(0.0, 5.0, 60.0), (5.0, 10.0, 60.0), (10.0, 12.0, 60.0)]
        );
    }

    #[test]
    fn rides_give_the_median_and_the_lower_quartile_of_all() {
        let constant = |kbps| Capacity::Constant(DataRate::from_kbps(kbps));
        let mut f = feed(Foreknown::Rides(vec![constant(100), constant(500), constant(300)]), 1.0);
        let s = f.at(Timestamp::ZERO)[0];
        assert_eq!((s.low.as_bps(), s.median.as_bps(), s.confidence), (100_000, 300_000, 0.5));
    }

    #[test]
    fn drawn_rides_differ_from_the_link_by_their_spread_and_shift() {
        let mut exact = feed(Foreknown::Drawn { rides: 9, shift: TimeDelta::ZERO, spread: 0.0 }, 1.0);
        assert_eq!(kbps(exact.at(Timestamp::ZERO))[2], (10.0, 12.0, 200.0));
        let mut shifted = feed(Foreknown::Drawn { rides: 9, shift: TimeDelta::from_secs(5), spread: 0.0 }, 1.0);
        let around = shifted.at(Timestamp::from_secs(5))[0];
        assert!(around.low < around.median && around.low.as_kbps_f64() >= 200.0, "{around:?}");
        let spread = |seed| {
            let source = Foreknown::Drawn { rides: 1, shift: TimeDelta::ZERO, spread: 0.5 };
            let f = Forecast { source, segment: TimeDelta::from_secs(5), ..SHORT };
            let span = (Timestamp::ZERO, Timestamp::from_secs(5));
            let rate = ForecastFeed::new(&f, &link(), seed, span).at(Timestamp::ZERO)[0].median.as_kbps_f64();
            libm::log(rate / 1_000.0)
        };
        let draws: Vec<f64> = (0..400).map(spread).collect();
        let mean = draws.iter().sum::<f64>() / 400.0;
        let sd = libm::sqrt(draws.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / 400.0);
        assert!(mean.abs() < 0.1 && (0.42..0.58).contains(&sd), "{mean} {sd}");
    }

    const SHORT: Forecast = Forecast {
        source: Foreknown::Driven,
        segment: TimeDelta::from_secs(5),
        look_ahead: TimeDelta::from_secs(5),
        interval: TimeDelta::from_secs(5),
        factor: 1.0,
        in_band: false,
    };
}
