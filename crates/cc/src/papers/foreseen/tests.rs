use super::outlook::{Hole, Outlook};
use super::*;
use crate::controller::{Controller, ReceiverController, Report};
use crate::cue::{CapacityForecast, Channel, Cue, EstimateKind, ForecastSegment};
use crate::testing::{Kbps, estimate, kbps};
use weir_units::Timestamp;

const KBPS: Kbps = Kbps { floor: 50, start: 1_000, ceiling: 3_000 };
const EXACT: &[(&str, f64)] = &[("share", 1.0)];

fn at(s: f64) -> Timestamp {
    Timestamp::ZERO + TimeDelta::from_secs_f64(s)
}

/// Consecutive segments: their ends, lower quartiles and medians.
fn segments(of: &[(f64, u64, u64)]) -> Vec<ForecastSegment> {
    let mut from = TimeDelta::ZERO;
    let mut segment = |&(to, low, median): &(f64, u64, u64)| {
        let to = TimeDelta::from_secs_f64(to);
        let (low, median) = (DataRate::from_kbps(low), DataRate::from_kbps(median));
        ForecastSegment { from: core::mem::replace(&mut from, to), to, low, median, confidence: 0.5 }
    };
    of.iter().map(&mut segment).collect()
}

#[test]
fn holes_join_what_is_below_and_next_to_each_other() {
    let mut outlook = Outlook::default();
    let given =
        segments(&[(5.0, 2_000, 2_000), (10.0, 400, 900), (15.0, 200, 500), (20.0, 1_500, 2_000), (25.0, 300, 300)]);
    outlook.set(&CapacityForecast { now: at(100.0), segments: &given, channel: Channel::OutOfBand });
    let rate = DataRate::from_kbps(1_000);
    let hole = |begin, end, least| Hole { begin: at(begin), end: at(end), least: DataRate::from_kbps(least) };
    assert_eq!(outlook.holes(rate, at(100.0)).collect::<Vec<_>>(), [hole(105.0, 115.0, 200), hole(120.0, 125.0, 300)]);
    // In the second segment of the first hole.
    assert_eq!(outlook.holes(rate, at(111.0)).next(), Some(hole(110.0, 115.0, 200)));
    assert_eq!(outlook.next_change(at(100.0), TimeDelta::from_secs(1)), Some(at(104.0)));
    assert_eq!(outlook.next_change(at(124.0), TimeDelta::ZERO), Some(at(125.0)));
    assert_eq!((outlook.next_change(at(125.0), TimeDelta::ZERO), outlook.at(at(125.0))), (None, None));
}

#[test]
fn the_omniscient_end_follows_the_median_below_the_streams_rate() {
    let mut c: Omniscient = KBPS.sender(EXACT);
    assert_eq!(kbps(&c), 1_000.0);
    let given = segments(&[(5.0, 2_000, 2_000), (10.0, 400, 900), (15.0, 10, 10)]);
    c.on_cue(&Cue::CapacityForecast(CapacityForecast { now: at(0.0), segments: &given, channel: Channel::OutOfBand }));
    let mut rates = Vec::new();
    while let Some((next, _)) = c.poll_timeout() {
        rates.push(kbps(&c));
        c.on_timeout(next);
    }
    // The floor holds, and nothing is known after the end.
    assert_eq!((rates, kbps(&c)), (vec![1_000.0, 900.0, 50.0], 1_000.0));
}

#[test]
fn a_switch_is_asked_for_before_the_region_and_undone_after_it() {
    let mut r = KBPS.receiver::<RateSwitching>(EXACT);
    assert_eq!((r.poll_report(at(0.0)), r.poll_timeout()), (None, None));
    let given = segments(&[(5.0, 2_000, 2_000), (10.0, 400, 900), (15.0, 260, 500), (60.0, 2_000, 2_000)]);
    r.on_forecast(&CapacityForecast { now: at(0.0), segments: &given, channel: Channel::OutOfBand });
    assert_eq!(r.poll_report(at(0.0)), None, "nothing to ask for yet");
    let mut asked = Vec::new();
    for tenths in 0..200 {
        let now = at(f64::from(tenths) / 10.0);
        if r.poll_timeout().is_some_and(|t| t <= now) {
            asked.extend(r.poll_report(now).map(|report| (tenths, report)));
        }
    }
    let tmmbr = |kbps| Report::Tmmbr { rate: DataRate::from_kbps(kbps) };
    assert_eq!(asked, [(40, tmmbr(260)), (150, tmmbr(1_000))]);

    let mut c: RateSwitching = KBPS.sender(EXACT);
    for (request, expected) in [(260, 250.0), (5, 125.0), (999, 875.0), (1_000, 1_000.0), (9_000, 1_000.0)] {
        c.on_cue(&estimate(request, EstimateKind::Tmmbr));
        assert_eq!(kbps(&c), expected, "asked for {request}");
    }
}

#[test]
fn late_scheduling_sends_the_longest_hole_ahead_and_no_more() {
    let mut c: LateScheduling = KBPS.sender(EXACT);
    let given = segments(&[(10.0, 2_000, 2_000), (14.0, 500, 700), (60.0, 2_000, 2_000)]);
    c.on_cue(&Cue::CapacityForecast(CapacityForecast { now: at(0.0), segments: &given, channel: Channel::OutOfBand }));
    let mut rates = Vec::new();
    for tenths in 0..400 {
        c.on_timeout(at(f64::from(tenths) / 10.0));
        rates.push(kbps(&c));
    }
    let ahead = |c: &LateScheduling| {
        let mut ms = 0.0;
        c.metrics(&mut |_, value| ms = value);
        ms
    };
    // Twice the rate for as long as the hole lasts, and a second; then the stream's; in the hole, which is covered, the floor.
    let span = |from: usize, to: usize| (rates[from..to].iter().sum::<f64>() / (to - from) as f64).round();
    assert_eq!((span(1, 50), span(52, 99), span(101, 139), span(141, 399)), (2_000.0, 1_000.0, 50.0, 1_000.0));
    // Of four seconds, the floor carried a twentieth.
    assert!((1_100.0..=1_400.0).contains(&ahead(&c)), "{}", ahead(&c));

    // Content too long to be covered is spread over the hole, at most at its rate.
    let mut c: LateScheduling = KBPS.sender(EXACT);
    let given = segments(&[(3.0, 2_000, 2_000), (13.0, 900, 900), (14.0, 300, 300), (60.0, 2_000, 2_000)]);
    c.on_cue(&Cue::CapacityForecast(CapacityForecast { now: at(0.0), segments: &given, channel: Channel::OutOfBand }));
    c.on_timeout(at(3.0));
    // Three seconds ahead, one of them kept: nine of the eleven are left.
    assert!((815.0..=820.0).contains(&kbps(&c)), "{}", kbps(&c));
    c.on_timeout(at(13.0));
    assert_eq!(kbps(&c), 300.0);
}
