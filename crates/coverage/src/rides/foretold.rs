//! Rides foretold from others by place: for controllers in simulated calls, and to judge a map.

use crate::lookahead::{LookaheadError, Route, in_range};
use crate::{Capacity, Filter, Map, MapConfig, Position, Update, View, WallTime};
use weir_units::{DataRate, TimeDelta};

/// Points of the way ahead that a look-ahead gets.
const POINTS_AHEAD: usize = 600;
/// Slowest speed that a look-ahead assumes, in m/s: a device that stands may start (guess).
const SLOWEST: f64 = 0.5;
/// Speeds above this are errors of the position, in m/s.
const FASTEST: f64 = 100.0;
/// Longest ride: what is later is left out.
const LONGEST: TimeDelta = TimeDelta::from_secs(86_400);
/// Rows closer than this are one: files have times in milliseconds.
const CLOSEST: TimeDelta = TimeDelta::from_millis(2);

/// How rides are foretold.
#[derive(Clone, Debug, PartialEq)]
pub struct Foretelling {
    /// Devices that must have reported before a region answers; each ride is one. Default: 3.
    pub anonymity: usize,
    /// Interval at which a ride looks ahead along its way. Default: 10 s, as scenarios do.
    pub interval: TimeDelta,
    /// Of which network. Default: all.
    pub network: Filter,
}

impl Default for Foretelling {
    fn default() -> Self {
        Self { anonymity: 3, interval: TimeDelta::from_secs(10), network: Filter::default() }
    }
}

/// A map's forecast of a ride from `from` to the next row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Foretold {
    /// Since the ride's beginning.
    pub from: TimeDelta,
    /// `None` if nothing is known.
    pub capacity: Option<Capacity>,
}

/// A map of all rides but one. Their age does not count: a ride may be foretold from later ones.
pub fn map_without(rides: &[Vec<Update>], left_out: usize, anonymity: usize) -> Map {
    let half_life = TimeDelta::from_secs(100 * 365 * 86_400);
    let mut map = Map::new(MapConfig { anonymity: anonymity.max(1), half_life, ..MapConfig::default() });
    let others = rides.iter().zip(0_u32..).filter(|(_, device)| *device as usize != left_out);
    for (ride, device) in others {
        for update in ride {
            map.insert(device, update, update.time_ms);
        }
    }
    map
}

/// Foretells a ride along its way; its updates are in order of time. At each interval it looks ahead until the next, on the route that it will take, at the mean
/// speed of the last interval: the place is known, and the time at which it is reached is not. A device that stands has the
/// capacity of its place.
///
/// # Errors
/// The interval is not one that a look-ahead may have, or the way not one that a vehicle takes.
pub fn foretell(view: &impl View, ride: &[Update], how: &Foretelling) -> Result<Vec<Foretold>, LookaheadError> {
    let horizon_s = how.interval.as_secs_f64();
    in_range("interval", horizon_s, 1.0, 3_600.0)?;
    let Some((first, last)) = ride.first().zip(ride.last()) else { return Ok(Vec::new()) };
    let begin = first.time_ms;
    let end = last.time_ms.min(begin.plus(LONGEST));
    let mut rows = Vec::new();
    let mut now = begin;
    while now <= end {
        let here = ride.partition_point(|u| u.time_ms <= now).saturating_sub(1);
        let before = ride.partition_point(|u| now.since(u.time_ms) > how.interval);
        // At the beginning the speed is that of the first interval to come.
        let behind = if before < here { &ride[before..=here] } else { until(&ride[here..], now.plus(how.interval)) };
        let mut points: Vec<Position> = Vec::new();
        for update in &ride[here..] {
            if points.last() != Some(&update.position) && points.len() < POINTS_AHEAD {
                points.push(update.position);
            }
        }
        let since = now.since(begin);
        let mut known_until = 0.0;
        if points.len() >= 2 {
            let (network, speed_mps) = (how.network.clone(), speed(behind));
            let route = Route { points, polyline: None, speed_mps, horizon_s, network };
            for s in route.look(view, now)?.segments {
                rows.push(Foretold {
                    from: since + TimeDelta::from_secs_f64(f64::from(s.from_s)),
                    capacity: s.capacity,
                });
                known_until = f64::from(s.to_s);
            }
        }
        if known_until + 0.1 < horizon_s {
            // It stands, or the way ends here.
            let from = since + TimeDelta::from_secs_f64(known_until);
            let place = if known_until > 0.0 { last.position } else { ride[here].position };
            rows.push(Foretold { from, capacity: view.capacity(place.cell(view.resolution()), &how.network, now) });
        }
        now = now.plus(how.interval);
    }
    // An unchanged value is one row.
    rows.dedup_by(|next, row| next.capacity == row.capacity || next.from - row.from < CLOSEST);
    Ok(rows)
}

/// The capacity that a ride found: the mean of each second that it measured, from its beginning on.
pub fn measured(ride: &[Update]) -> Vec<(TimeDelta, DataRate)> {
    let Some(begin) = ride.first().map(|u| u.time_ms) else { return Vec::new() };
    let mut seconds: Vec<(i64, f64, u32)> = Vec::new();
    for update in ride.iter().filter(|u| u.time_ms.since(begin) <= LONGEST) {
        let second = update.time_ms.since(begin).as_millis().max(0) / 1_000;
        let rate = update.throughput.as_bps_f64();
        match seconds.last_mut() {
            Some((last, sum, number)) if *last >= second => (*sum, *number) = (*sum + rate, *number + 1),
            _ => seconds.push((second, rate, 1)),
        }
    }
    let mean = |(second, sum, number): (i64, f64, u32)| {
        (TimeDelta::from_secs(second), DataRate::from_bps_f64(sum / f64::from(number)))
    };
    seconds.into_iter().map(mean).collect()
}

/// The updates until a time, at least one.
fn until(ride: &[Update], time: WallTime) -> &[Update] {
    &ride[..ride.partition_point(|u| u.time_ms <= time).clamp(ride.len().min(1), ride.len())]
}

/// Mean speed of some of a ride, in m/s.
fn speed(of: &[Update]) -> f64 {
    let Some((first, last)) = of.first().zip(of.last()) else { return SLOWEST };
    let time = last.time_ms.since(first.time_ms).as_secs_f64();
    let way: f64 = of.windows(2).map(|leg| leg[0].position.distance_m(leg[1].position)).sum();
    if time > 0.0 { (way / time).clamp(SLOWEST, FASTEST) } else { SLOWEST }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Technology;

    /// A ride to the north, with 2 Mbit/s but for 200 kbit/s from 1,000 to 1,500 m.
    fn ride(begin_s: u64, speed: f64) -> Vec<Update> {
        let start = Position::new(59.9, 10.7).expect("a place");
        let seconds = (3_000.0 / speed) as u64;
        let update = |s: u64| {
            let way = s as f64 * speed;
            let kbps = if (1_000.0..1_500.0).contains(&way) { 200 } else { 2_000 };
            let time = WallTime::from_unix_millis((begin_s + s) * 1_000);
            let (operator, rate) = ("242-01".parse().expect("a name"), DataRate::from_kbps(kbps));
            Update::new(s, time, start.offset(0.0, way), operator, Technology::Umts, rate)
        };
        (0..seconds).map(update).collect()
    }

    #[test]
    fn a_ride_is_foretold_by_place_however_fast_the_others_were() {
        let rides = [ride(1_000_000, 10.0), ride(1_100_000, 20.0), ride(1_200_000, 5.0), ride(900_000, 8.0)];
        let map = map_without(&rides, 0, 3);
        let rows = foretell(&map, &rides[0], &Foretelling::default()).expect("in range");
        let at = |second: i64| {
            let row = rows.partition_point(|r| r.from <= TimeDelta::from_secs(second)) - 1;
            rows[row].capacity.map(|c| c.quantiles.p50.as_kbps_f64())
        };
        // The hole lasts from 100 s to 150 s at 10 m/s; a cell is 13 s long.
        for (second, kbps) in [(50, 2_000.0), (85, 2_000.0), (120, 200.0), (135, 200.0), (170, 2_000.0), (280, 2_000.0)]
        {
            let known = at(second).unwrap_or_else(|| panic!("nothing known at {second} s"));
            assert!((known / kbps - 1.0).abs() < 0.05, "{second} s: {known} kbit/s");
        }
        // Two others are too few.
        assert!(
            foretell(&map_without(&rides[..3], 0, 3), &rides[0], &Foretelling::default())
                .expect("in range")
                .iter()
                .all(|r| r.capacity.is_none())
        );
        let none = foretell(&map, &rides[0], &Foretelling { interval: TimeDelta::ZERO, ..Foretelling::default() });
        assert!(none.is_err());
    }

    #[test]
    fn a_ride_that_stands_has_its_place_and_measures_once_a_second() {
        let mut still = ride(1_000_000, 10.0);
        still.truncate(3);
        let place = still[0].position;
        still.iter_mut().for_each(|u| u.position = place);
        still[1].time_ms = still[0].time_ms;
        still[1].throughput = DataRate::from_kbps(1_000);
        let others = [ride(1_100_000, 20.0), ride(1_200_000, 5.0), ride(900_000, 8.0), still];
        let map = map_without(&others, 3, 3);
        let rows = foretell(&map, &others[3], &Foretelling::default()).expect("in range");
        assert_eq!(rows.len(), 1);
        assert!(rows[0].capacity.is_some());
        let rates: Vec<_> =
            measured(&others[3]).iter().map(|(at, rate)| (at.as_millis(), rate.as_bps() / 1_000)).collect();
        assert_eq!(rates, [(0, 1_500), (2_000, 2_000)]);
        assert_eq!((foretell(&map, &[], &Foretelling::default()), measured(&[])), (Ok(vec![]), vec![]));
    }
}
