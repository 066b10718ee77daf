use super::*;
use crate::{Capacity, Cell, Filter, Level, Position, Quantiles, View, WallTime};
use h3o::Resolution;
use proptest::prelude::*;
use std::collections::BTreeMap;
use weir_units::DataRate;

const NOW: WallTime = WallTime::from_unix_millis(1_700_000_000_000);

/// Capacities by cell, in kbit/s.
struct Drawn(BTreeMap<Cell, u64>);

impl View for Drawn {
    fn resolution(&self) -> Resolution {
        Resolution::Ten
    }

    fn capacity_within(&self, cell: Cell, _: &Filter, _: WallTime, _: Level) -> Option<Capacity> {
        let rate = DataRate::from_kbps(*self.0.get(&cell)?);
        let quantiles = Quantiles::from_values([rate; 5]);
        Some(Capacity { quantiles, rtt_ms: None, loss: None, confidence: 0.5, level: Level::Cell })
    }
}

fn start() -> Position {
    Position::new(60.187, 24.833).expect("valid")
}

/// A road of 6 km to the east with 2 Mbit/s, and 50 kbit/s between 2 and 3 km.
fn road() -> Drawn {
    let mut cells = BTreeMap::new();
    for metre in (0..6_000).step_by(5) {
        let cell = start().offset(90.0, f64::from(metre)).cell(Resolution::Ten);
        let rate = if (2_000..3_000).contains(&metre) { 50 } else { 2_000 };
        let held = cells.entry(cell).or_insert(rate);
        *held = rate.min(*held);
    }
    Drawn(cells)
}

fn route(speed_mps: f64, length: f64) -> Route {
    let points = vec![start(), start().offset(90.0, length)];
    Route { points, polyline: None, speed_mps, horizon_s: 600.0, network: Filter::default() }
}

fn kbps(c: &Capacity) -> f64 {
    c.quantiles.p50.as_kbps_f64()
}

#[test]
fn a_route_meets_the_hole_when_it_gets_there() {
    let vector = route(20.0, 6_000.0).look(&road(), NOW).expect("valid");
    let rows: Vec<_> = vector.segments.iter().map(|s| (s.from_s, s.to_s, s.capacity.as_ref().map(kbps))).collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!([rows[0].2, rows[1].2, rows[2].2], [Some(2000.0), Some(50.0), Some(2000.0)]);
    // 2,000 m at 20 m/s, within a cell's width on each side.
    assert!((93.0..=101.0).contains(&rows[1].0) && (149.0..=157.0).contains(&rows[1].1), "{rows:?}");
    assert!(rows[0].0 == 0.0 && (rows[2].1 - 300.0).abs() < 0.5);
    assert_eq!(vector.lowest(60.0, 120.0, |c| c.quantiles.p50), Some(DataRate::from_kbps(50)));
}

#[test]
fn the_horizon_ends_a_look_and_unknown_ways_are_unknown() {
    let short = Route { horizon_s: 60.0, ..route(20.0, 6_000.0) }.look(&road(), NOW).expect("valid");
    assert_eq!(short.segments.last().map(|s| s.to_s), Some(60.0));
    let away = route(20.0, 8_000.0).look(&road(), NOW).expect("valid");
    let last = away.segments.last().expect("some");
    assert!(last.capacity.is_none() && (300.0..306.0).contains(&last.from_s), "{last:?}");
}

#[test]
fn a_polyline_is_a_route() {
    // The example of Google's description of the format.
    let points = decode_polyline("_p~iF~ps|U_ulLnnqC_mqNvxq`@").expect("valid");
    let rounded: Vec<_> = points.iter().map(|p| (p.lat(), p.lon())).collect();
    for (got, expected) in rounded.iter().zip([(38.5, -120.2), (40.7, -120.95), (43.252, -126.453)]) {
        assert!((got.0 - expected.0).abs() < 1e-9 && (got.1 - expected.1).abs() < 1e-9, "{got:?}");
    }
    assert_eq!(encode_polyline(points), "_p~iF~ps|U_ulLnnqC_mqNvxq`@");
    assert_eq!(decode_polyline("_p~iF~ps|U_"), Err(LookaheadError::Polyline(10)));
    assert!(decode_polyline("_p~iF").is_err() && decode_polyline("\u{7f}").is_err());
    assert_eq!(decode_polyline(""), Ok(Vec::new()));
}

#[test]
fn requests_out_of_range_are_refused() {
    let view = road();
    let look = |r: Route| r.look(&view, NOW);
    assert!(look(Route { speed_mps: f64::NAN, ..route(1.0, 10.0) }).is_err());
    assert_eq!(look(Route { speed_mps: 0.0, ..route(1.0, 10.0) }), Err(LookaheadError::Speed(0.0)));
    assert_eq!(look(Route { points: vec![start()], ..route(1.0, 10.0) }), Err(LookaheadError::Points(1)));
    assert!(matches!(look(Route { horizon_s: 1e9, ..route(1.0, 10.0) }), Err(LookaheadError::Range { .. })));
    assert!(look(route(1.0, 400_000.0)).is_err());
    let many = Route { points: vec![start(); MAX_POINTS + 1], ..route(1.0, 10.0) };
    assert_eq!(look(many), Err(LookaheadError::Points(MAX_POINTS + 1)));
}

#[test]
fn an_area_sees_the_hole_ahead_and_not_behind() {
    let look = |heading_deg| {
        let position = start().offset(90.0, 1_500.0);
        let area = Area { position, heading_deg, speed_mps: 10.0, radius_m: 1_200.0, network: Filter::default() };
        area.look(&road(), NOW).expect("valid")
    };
    let east = look(90.0);
    let lowest = |v: &crate::CapacityVector, a, b| v.lowest(a, b, |c| c.quantiles.p10).map(|r| r.as_bps() / 1000);
    assert_eq!((lowest(&east, 0.0, 30.0), lowest(&east, 60.0, 110.0)), (Some(2_000), Some(50)));
    assert_eq!(lowest(&look(-90.0), 0.0, 120.0), Some(2_000));
    assert!((east.segments.last().expect("some").to_s - 120.0).abs() < 0.01);
    // Beside the road nothing is known, which lowers the confidence.
    let far = east.segments.iter().filter_map(|s| s.capacity).next_back().expect("known");
    assert!(far.confidence < 0.25, "{far:?}");
}

#[test]
fn a_fence_says_what_comes_into_reach_and_what_is_entered() {
    let mut view = road();
    let request = FenceRequest { below_bps: 500_000, radius_m: 400.0, network: Filter::default() };
    let mut fence = Fence::new(request).expect("valid");
    assert!(fence.update(&view, None, NOW).is_empty());
    let mut count = BTreeMap::new();
    let (mut first_poor, mut entered, mut left) = (None, None, None);
    for metre in (0..5_000).step_by(20) {
        for event in fence.update(&view, Some(start().offset(90.0, f64::from(metre))), NOW) {
            let name = match &event {
                FenceEvent::Poor(_) => "poor",
                FenceEvent::Gone { .. } => "gone",
                FenceEvent::Entered(_) => "entered",
                FenceEvent::Left { .. } => "left",
            };
            *count.entry(name).or_insert(0) += 1;
            match event {
                FenceEvent::Poor(_) => first_poor = first_poor.or(Some(metre)),
                FenceEvent::Entered(_) => entered = entered.or(Some(metre)),
                FenceEvent::Left { .. } => left = Some(metre),
                FenceEvent::Gone { .. } => {}
            }
        }
    }
    // 400 m before the first cell of the hole, which may begin 130 m before it.
    assert!((1_400..=1_640).contains(&first_poor.expect("seen")), "{first_poor:?}");
    assert!((1_860..=2_020).contains(&entered.expect("entered")), "{entered:?}");
    assert!((2_980..=3_140).contains(&left.expect("left")), "{left:?}");
    assert_eq!((count["poor"], count["entered"]), (count["gone"], count["left"]));
    // The map gets better under the subscriber.
    fence.update(&view, Some(start().offset(90.0, 2_500.0)), NOW);
    view.0.values_mut().for_each(|rate| *rate = 540);
    assert!(fence.update(&view, None, NOW).iter().all(|e| matches!(e, FenceEvent::Poor(_))), "within the hysteresis");
    view.0.values_mut().for_each(|rate| *rate = 560);
    let events = fence.update(&view, None, NOW);
    assert_eq!(events.iter().filter(|e| matches!(e, FenceEvent::Left { .. })).count(), 1);
    assert!(Fence::new(FenceRequest { below_bps: 0, radius_m: 10.0, network: Filter::default() }).is_err());
}

proptest! {
    #[test]
    fn segments_follow_each_other(speed in 0.1..350.0_f64, length in 1.0..20_000.0_f64, horizon in 1.0..4_000.0_f64) {
        let request = Route { horizon_s: horizon, ..route(speed, length) };
        let vector = request.look(&road(), NOW).expect("valid");
        prop_assert_eq!(vector.segments[0].from_s, 0.0);
        prop_assert!(vector.segments.windows(2).all(|s| s[0].to_s == s[1].from_s && s[0].capacity != s[1].capacity));
        prop_assert!(vector.segments.iter().all(|s| s.to_s > s.from_s));
        let coarse = vector.coarse();
        prop_assert!(coarse.segments.windows(2).all(|s| s[0].to_s == s[1].from_s));
    }

    #[test]
    fn any_text_is_a_polyline_or_an_error(text in "[?-~ é]{0,60}") {
        if let Ok(points) = decode_polyline(&text) {
            prop_assert!(points.len() <= text.len() / 2);
        }
    }
}
