//! Forecasts of capacity passed to a call's controller.

use crate::common;
use common::call_plan;
use weir_cc::Limits;
use weir_cc::cue::ForecastSegment;
use weir_media::PerfectCodec;
use weir_units::{DataRate, PathId, TimeDelta, Timestamp};

#[test]
fn a_forecast_bounds_the_target_of_its_path_alone() {
    let limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_mbps(2) };
    let source = || PerfectCodec::frames(TimeDelta::from_millis(33), Timestamp::ZERO).into();
    let rate = |controller: &str, path| {
        let (mut a, mut b) =
            call_plan(controller, limits, limits.ceiling, source()).into_ends(Timestamp::ZERO).unwrap();
        let median = DataRate::from_kbps(400);
        let to = TimeDelta::from_secs(60);
        let segment = ForecastSegment { from: TimeDelta::ZERO, to, low: median, median, confidence: 1.0 };
        if let Some(mut p) = a.path_mut(path) {
            p.on_capacity_forecast(&[segment], Timestamp::from_millis(10));
        }
        if let Some(mut p) = b.path_mut(path) {
            p.on_capacity_forecast(&[segment], Timestamp::from_millis(10));
        }
        assert_eq!(b.target(), None, "it sends nothing");
        a.target().expect("it sends").media_rate.as_bps() / 1_000
    };
    assert_eq!(rate("fixed+map", PathId::FIRST), 380, "0.95 of it");
    assert_eq!(rate("fixed+map", PathId::new(1)), 2_000, "no such path");
    assert_eq!(rate("fixed", PathId::FIRST), 2_000, "it has no use for forecasts");
}
