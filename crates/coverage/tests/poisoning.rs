//! A tenth of the devices lies by a factor of ten.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use weir_coverage::rides::City;
use weir_coverage::{Filter, Level, Map, MapConfig, Resolution, Update, View, WallTime};
use weir_units::{DataRate, TimeDelta};

const DEVICES: u32 = 200;
const RIDES: u32 = 5;
/// Seconds of each.
const LONG: u32 = 240;
const NOW: WallTime = WallTime::from_unix_millis(1_700_000_000_000);

/// Rule by which the liars change their measurements.
type Lie = fn(u32, &mut Update);

fn higher(_: u32, update: &mut Update) {
    update.throughput = DataRate::from_bps(update.throughput.as_bps() * 10);
}

fn lower(_: u32, update: &mut Update) {
    update.throughput = DataRate::from_bps(update.throughput.as_bps() / 10);
}

/// Half of them each way.
fn both(device: u32, update: &mut Update) {
    if device % 20 < 10 { higher(device, update) } else { lower(device, update) }
}

/// Honest in the western half of the city, so that others agree with them there.
fn in_one_half(device: u32, update: &mut Update) {
    if update.position.lon() > City::new(5, 12).at(2_200.0, 0.0).lon() {
        higher(device, update);
    }
}

/// As few as 1 in 10: every tenth device, all of which begin before the others.
fn is_liar(device: u32) -> bool {
    device.is_multiple_of(10)
}

fn begin(ride: u32) -> WallTime {
    NOW.plus(TimeDelta::from_secs(i64::from(ride) * 3_600))
}

/// The rides of all devices, by ride.
fn rides() -> &'static [Vec<Vec<Update>>] {
    static RIDDEN: OnceLock<Vec<Vec<Vec<Update>>>> = OnceLock::new();
    let city = City::new(5, 12);
    RIDDEN.get_or_init(|| {
        (0..RIDES).map(|ride| (0..DEVICES).map(|d| city.ride(d, ride, begin(ride), LONG)).collect()).collect()
    })
}

/// A map of all rides, in order of time, without those that `absent` names.
fn map(lie: Option<Lie>, absent: fn(u32) -> bool) -> Map {
    let mut map = Map::new(MapConfig::default());
    for (ride, of_devices) in (0..).zip(rides()) {
        let begin = begin(ride);
        // All ride at once; reports come in batches of ten seconds.
        for batch in 0..LONG as usize / 10 {
            for (device, updates) in (0..).zip(of_devices).filter(|(d, _)| !absent(*d)) {
                for update in &updates[batch * 10..batch * 10 + 10] {
                    let mut update = update.clone();
                    if let Some(lie) = lie.filter(|_| is_liar(device)) {
                        lie(device, &mut update);
                    }
                    map.insert(device, &update, begin);
                }
            }
        }
    }
    map
}

/// Medians of all regions that speak for themselves, in bit/s.
fn medians(map: &Map) -> BTreeMap<String, f64> {
    let at = NOW.plus(TimeDelta::from_secs(i64::from(RIDES) * 3_600));
    let area = City::new(5, 12).at(2_000.0, 2_000.0).cell(Resolution::Five);
    let mut all = BTreeMap::new();
    for area in area.disk(1) {
        for (cell, _) in map.cells_in(area, &Filter::default(), at, 100_000) {
            let known = map.capacity_within(cell, &Filter::default(), at, Level::AnyHour).expect("known");
            all.insert(cell.to_string(), known.quantiles.p50.as_bps_f64());
        }
    }
    all
}

/// Greatest change of a median, and how many regions were compared.
fn greatest_change(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> (f64, usize) {
    let changes = before.iter().filter_map(|(cell, rate)| Some((after.get(cell)? / rate - 1.0).abs()));
    changes.fold((0.0, 0), |(most, count), change| (most.max(change), count + 1))
}

#[test]
fn no_median_moves_by_more_than_a_twentieth() {
    let honest = medians(&map(None, is_liar));
    assert!(honest.len() > 500, "{} regions", honest.len());
    let same = medians(&map(None, |_| false));
    println!("their honest reports move medians by {:.2} %", 100.0 * greatest_change(&honest, &same).0);
    for (name, lie) in [("higher", higher as Lie), ("lower", lower), ("both", both)] {
        let (change, regions) = greatest_change(&honest, &medians(&map(Some(lie), |_| false)));
        println!("{name}: {:.2} % in {regions} regions", 100.0 * change);
        assert!(regions > 500 && change < 0.05, "{name}: {change} of {regions}");
    }
}

#[test]
fn who_lies_in_one_place_moves_little_there() {
    let honest = medians(&map(None, is_liar));
    let poisoned = medians(&map(Some(in_one_half), |_| false));
    let (change, regions) = greatest_change(&honest, &poisoned);
    let moved =
        honest.iter().filter(|(cell, rate)| poisoned.get(*cell).is_some_and(|r| (r / *rate - 1.0).abs() > 0.05));
    let share = moved.count() as f64 / regions as f64;
    println!("{:.2} % of {regions} regions by more than 5 %, the worst by {:.1} %", 100.0 * share, 100.0 * change);
    assert!(regions > 500 && share < 0.03, "{share} of {regions}");
}

#[test]
fn liars_are_known_and_honest_devices_are_not_taken_for_them() {
    let poisoned = map(Some(both), |_| false);
    for device in 0..DEVICES {
        let trust = poisoned.trust_of(device);
        assert!(if is_liar(device) { trust == 0.0 } else { trust > 0.9 }, "{device}: {trust}");
    }
}
