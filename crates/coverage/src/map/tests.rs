use super::*;
use crate::{Level, Position, Update};
use proptest::prelude::*;
use weir_units::DataRate;

const NOW: WallTime = WallTime::from_unix_millis(1_700_000_000_000);

fn here() -> Position {
    Position::new(60.187, 24.833).expect("valid")
}

fn update(at: Position, seconds: i64, kbps: f64) -> Update {
    let rate = DataRate::from_bps_f64(kbps * 1e3);
    let time = NOW.plus(TimeDelta::from_secs(seconds));
    Update::new(0, time, at, "244-91".parse().expect("valid"), Technology::Umts, rate)
}

fn filter() -> Filter {
    Filter { operator: Some("244-91".parse().expect("valid")), technology: Some(Technology::Umts) }
}

/// A map in which each device reported its rates here, one a second.
fn map(devices: &[&[f64]]) -> Map {
    let mut map = Map::new(MapConfig::default());
    for (device, rates) in devices.iter().enumerate() {
        for (i, kbps) in rates.iter().enumerate() {
            let done = map.insert(device as u32, &update(here(), i as i64, *kbps), NOW);
            assert_eq!(done, Inserted::Counted);
        }
    }
    map
}

fn median_kbps(map: &Map, at: Position) -> Option<f64> {
    map.capacity(at.cell(map.resolution()), &filter(), NOW).map(|c| c.quantiles.p50.as_kbps_f64())
}

#[test]
fn a_region_answers_with_the_median_of_medians() {
    // Medians 100, 1000 and 1100: how often a device reports does not matter beyond three times.
    let map = map(&[&[100.0; 50], &[1000.0, 900.0, 1000.0], &[1100.0, 1100.0, 50.0]]);
    let known = map.capacity(here().cell(map.resolution()), &filter(), NOW).expect("three devices");
    assert!((known.quantiles.p50.as_kbps_f64() / 1000.0 - 1.0).abs() < 0.05, "{known:?}");
    assert_eq!(known.level, Level::Cell);
    assert!((0.1..0.5).contains(&known.confidence), "{}", known.confidence);
    assert!(known.quantiles.values().is_sorted());
}

#[test]
fn too_few_devices_are_silent() {
    let two = map(&[&[1000.0; 20], &[1000.0; 20]]);
    assert_eq!(median_kbps(&two, here()), None);
    // The same two, under other operators and hours: devices count, not leaves.
    let mut again = two.clone();
    for device in 0..2 {
        let mut other = update(here(), 12 * 3600, 900.0);
        again.insert(device, &other, NOW);
        other.technology = Technology::Lte;
        again.insert(device, &other, NOW);
    }
    assert_eq!(again.stats().entries, 6);
    let any = Filter::default();
    assert_eq!(again.capacity(here().cell(again.resolution()), &any, NOW), None);
}

#[test]
fn answers_come_from_as_near_as_enough_devices_are() {
    let mut map = map(&[&[500.0; 3], &[500.0; 3]]);
    let at = |map: &Map, f: &Filter| map.capacity(here().cell(map.resolution()), f, NOW).map(|c| c.level);
    assert_eq!(at(&map, &filter()), None);
    // A third device next door.
    let next = here().cell(map.resolution()).parent(Resolution::Nine).span(Resolution::Ten).1.center();
    assert_ne!(next.cell(Resolution::Ten), here().cell(Resolution::Ten));
    map.insert(7, &update(next, 0, 500.0), NOW);
    assert_eq!(at(&map, &filter()), Some(Level::Near));
    // A third one here, twelve hours before.
    map.insert(8, &update(here(), -43_200, 500.0), NOW);
    assert_eq!(at(&map, &filter()), Some(Level::AnyHour));
    map.insert(9, &update(here(), 0, 500.0), NOW);
    assert_eq!(at(&map, &filter()), Some(Level::Cell));
    // Another operator is no answer, another technology is one.
    let other = Filter { operator: Some("244-5".parse().expect("valid")), technology: None };
    assert_eq!(at(&map, &other), None);
    let lte = Filter { technology: Some(Technology::Lte), ..filter() };
    assert_eq!(at(&map, &lte), Some(Level::AnyTechnology));
}

#[test]
fn old_reports_give_way_and_are_forgotten() {
    let mut map = map(&[&[1000.0; 3], &[1000.0; 3], &[1000.0; 3]]);
    let month = TimeDelta::from_secs(28 * 86_400);
    let later = NOW.plus(month);
    let confidence = |map: &Map, at| map.capacity(here().cell(map.resolution()), &filter(), at).map(|c| c.confidence);
    let (fresh, old) = (confidence(&map, NOW).expect("known"), confidence(&map, later).expect("known"));
    assert!(old < 0.5 * fresh && old > 0.1 * fresh, "{fresh} {old}");
    let year = NOW.plus(TimeDelta::from_secs(365 * 86_400));
    assert_eq!(confidence(&map, year), None);
    let mut sweep = Sweep::new([]);
    map.sweep(&mut sweep, 10, year);
    assert!(sweep.is_done());
    assert_eq!((map.stats().cells, map.stats().leaves, map.stats().entries), (0, 0, 0));
}

#[test]
fn a_device_is_forgotten_in_steps() {
    let mut map = Map::new(MapConfig::default());
    for step in 0..100 {
        for device in 0..4 {
            map.insert(device, &update(here().offset(90.0, 150.0 * f64::from(step)), 0, 1000.0), NOW);
        }
    }
    let cells = map.stats().cells;
    assert!((90..=100).contains(&cells), "{cells}");
    let mut sweep = Sweep::new([1, 2]);
    let mut steps = 0;
    while !sweep.is_done() {
        map.sweep(&mut sweep, 9, NOW);
        steps += 1;
    }
    assert!((10..=13).contains(&steps), "{steps}");
    assert_eq!((map.stats().cells, map.stats().entries, map.stats().devices), (cells, 2 * cells, 2));
    assert_eq!(median_kbps(&map, here()), None);
}

#[test]
fn limits_bound_memory() {
    let config = MapConfig { max_cells: 5, max_devices: 4, ..MapConfig::default() };
    let mut map = Map::new(config);
    for step in 0..20 {
        let done = map.insert(1, &update(here().offset(0.0, 200.0 * f64::from(step)), 0, 100.0), NOW);
        assert_eq!(done == Inserted::Full, step >= 5, "{step}");
    }
    for device in 0..50 {
        map.insert(device, &update(here(), i64::from(device), 100.0), NOW);
    }
    assert_eq!((map.stats().cells, map.stats().entries), (5, 4 + 4));
}

#[test]
fn what_the_sender_limits_is_a_lower_bound_only() {
    let mut map = map(&[&[1000.0; 3], &[1000.0; 3], &[1000.0; 3]]);
    let limited = |kbps| Update { app_limited: true, ..update(here(), 10, kbps) };
    assert_eq!(map.insert(0, &limited(300.0), NOW), Inserted::Limited);
    assert_eq!(map.insert(0, &limited(3000.0), NOW), Inserted::Counted);
    assert!((median_kbps(&map, here()).expect("known") / 1000.0 - 1.0).abs() < 0.03);
}

#[test]
fn clocks_that_go_back_do_no_harm() {
    let mut map = map(&[&[1000.0; 3], &[1000.0; 3], &[1000.0; 3]]);
    let before = NOW.plus(TimeDelta::from_secs(-86_400));
    for device in 0..3 {
        map.insert(device, &update(here(), -86_400, 1000.0), before);
    }
    for at in [before, NOW, WallTime::from_unix_millis(0)] {
        let known = map.capacity(here().cell(map.resolution()), &filter(), at).expect("known");
        assert!((known.quantiles.p50.as_kbps_f64() / 1000.0 - 1.0).abs() < 0.03);
        assert!((0.0..=1.0).contains(&known.confidence));
    }
}

proptest! {
    #[test]
    fn no_update_makes_an_answer_senseless(
        updates in prop::collection::vec(
            (0_u32..6, -90.0..90.0_f64, -180.0..180.0_f64, any::<u64>(), any::<u64>(), any::<f32>()), 1..60,
        ),
        at in any::<u64>(),
    ) {
        let mut map = Map::new(MapConfig { anonymity: 1, ..MapConfig::default() });
        let at = WallTime::from_unix_millis(at);
        for (device, lat, lon, time, bps, rtt) in &updates {
            let position = Position::new(*lat, *lon).expect("valid");
            let mut u = update(position, 0, 0.0);
            u.time_ms = WallTime::from_unix_millis(*time);
            u.throughput = DataRate::from_bps(*bps);
            u.rtt_ms = rtt.is_finite().then_some(rtt.abs());
            map.insert(*device, &u, at);
            if let Some(known) = map.capacity(position.cell(Resolution::Ten), &filter(), at) {
                prop_assert!(known.quantiles.values().is_sorted());
                prop_assert!((0.0..=1.0).contains(&known.confidence));
            }
        }
        let mut sweep = Sweep::new([0, 1]);
        map.sweep(&mut sweep, usize::MAX, at);
        let count: usize = map.cells.values().flatten().map(|l| l.entries.len()).sum();
        prop_assert_eq!((map.stats().entries, map.stats().leaves),
            (count, map.cells.values().map(Vec::len).sum::<usize>()));
    }
}
