use super::*;
use crate::controller::Controller;
use crate::cue::{Channel, IntervalPacket, IntervalReport, PacketResult, ReportBlock, TransportFeedback};
use crate::spec::Pair;
use crate::testing::REPORT;
use crate::{Registry, Sender};
use weir_units::{Ecn, RemoteTimestamp};

const LIMITS: Limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(4_000) };

/// The forecast's median as it is, divided by its weight.
const PLAIN: &[(&str, f64)] = &[("map_caution", 0.0), ("map_doubt", 1.0), ("map_share", 1.0), ("map_tolerance", 1.5)];

fn seconds(s: f64) -> Timestamp {
    Timestamp::ZERO + TimeDelta::from_secs_f64(s)
}

/// A fixed rate of 2 Mbit/s with these parameters.
fn fixed(params: &[(&str, f64)]) -> Sender {
    let params = params.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let start_rate = DataRate::from_kbps(2_000);
    let setup = Setup { limits: LIMITS, start_rate, now: Timestamp::ZERO, seed: 1, params };
    let Pair { sender, .. } = Registry::builtin().make("fixed+map", &setup).expect("built in");
    sender
}

fn segment(from: f64, to: f64, kbps: u64, confidence: f64) -> ForecastSegment {
    let median = DataRate::from_kbps(kbps);
    let (from, to) = (TimeDelta::from_secs_f64(from), TimeDelta::from_secs_f64(to));
    ForecastSegment { from, to, low: DataRate::from_kbps(kbps / 2), median, confidence }
}

fn forecast(c: &mut Sender, at: f64, segments: &[ForecastSegment]) {
    c.on_cue(&Cue::CapacityForecast(CapacityForecast { now: seconds(at), segments, channel: Channel::OutOfBand }));
}

fn kbps(c: &Sender) -> u64 {
    c.target().media_rate.as_bps() / 1_000
}

fn metric(c: &Sender, wanted: &str) -> f64 {
    let mut found = f64::NAN;
    c.metrics(&mut |name, value| {
        if name == wanted {
            found = value;
        }
    });
    found
}

/// Feedback every 100 ms between two times, on media of the target's rate, of which every n-th packet may be lost.
fn deliver(c: &mut Sender, from: f64, to: f64, lose: Option<u64>) {
    for n in (from * 10.0) as u64..(to * 10.0) as u64 {
        let rate = kbps(c);
        let now = seconds((n + 1) as f64 / 10.0);
        let one = |i: u64| PacketResult {
            sequence: n * 10 + i,
            departure: now - TimeDelta::from_millis(50),
            arrival: lose
                .is_none_or(|every| !(n * 10 + i).is_multiple_of(every))
                .then(|| RemoteTimestamp::from_millis(5)),
            // Ten packets a tenth of a second.
            size: DataSize::from_bytes(rate * 1_000 / 8 / 100),
            ecn: Ecn::NotEct,
            probe: 0,
            was_lost: false,
        };
        let packets: Vec<_> = (0..10).map(one).collect();
        let feedback = TransportFeedback { now, packets: &packets, bytes_in_flight: DataSize::ZERO, rtt: None };
        c.on_cue(&Cue::TransportFeedback(feedback));
    }
}

#[test]
fn the_rate_falls_before_the_capacity_and_rises_with_it() {
    let mut c = fixed(PLAIN);
    forecast(
        &mut c,
        0.0,
        &[segment(0.0, 10.0, 3_000, 1.0), segment(10.0, 12.0, 300, 1.0), segment(12.0, 60.0, 3_000, 1.0)],
    );
    let mut rates = Vec::new();
    for tenths in 0..200 {
        c.on_timeout(seconds(f64::from(tenths) / 10.0));
        rates.push(kbps(&c));
    }
    // 1.5 s before the hole until its end.
    assert_eq!(rates.iter().position(|r| *r < 2_000), Some(85));
    assert!(rates[85..120].iter().all(|r| (300..=330).contains(r)), "{rates:?}");
    assert!(rates[120..].iter().all(|r| *r == 2_000), "{rates:?}");
    assert!(c.target().pacing_rate >= c.target().media_rate);
}

#[test]
fn doubt_widens_the_bound_until_it_is_none() {
    for (confidence, expected) in [(1.0, 500), (0.5, 1_000), (0.25, 2_000), (0.1, 2_000), (f64::NAN, 2_000), (7.0, 500)]
    {
        let mut c = fixed(PLAIN);
        forecast(&mut c, 0.0, &[segment(0.0, 60.0, 500, confidence)]);
        c.on_timeout(seconds(1.0));
        assert_eq!(kbps(&c), expected, "{confidence}");
        // The floor holds.
        forecast(&mut c, 2.0, &[segment(0.0, 60.0, 0, 1.0)]);
        assert_eq!(kbps(&c), 50);
        forecast(&mut c, 3.0, &[]);
        assert_eq!(kbps(&c), 2_000, "withdrawn");
    }
}

#[test]
fn a_forecast_that_is_too_low_loses_its_weight_and_one_that_is_right_keeps_it() {
    // Nothing is lost, and the link carries four times as much.
    let mut c = fixed(PLAIN);
    forecast(&mut c, 0.0, &[segment(0.0, 600.0, 500, 1.0)]);
    deliver(&mut c, 0.0, 0.9, None);
    assert_eq!(kbps(&c), 500);
    deliver(&mut c, 0.9, 2.9, None);
    assert!((750..=800).contains(&kbps(&c)), "{}", kbps(&c));
    assert_eq!(metric(&c, "map_trust"), 1.0);
    // The next forecast says the same of here.
    forecast(&mut c, 2.9, &[segment(0.0, 600.0, 500, 1.0)]);
    assert!((750..=800).contains(&kbps(&c)), "{}", kbps(&c));
    deliver(&mut c, 2.9, 12.0, None);
    assert_eq!(kbps(&c), 2_000, "trust {}", metric(&c, "map_trust"));
    assert!((0.01..0.4).contains(&metric(&c, "map_trust")));
    // With losses the forecast is right.
    let mut c = fixed(PLAIN);
    forecast(&mut c, 0.0, &[segment(0.0, 600.0, 500, 1.0)]);
    deliver(&mut c, 0.0, 20.0, Some(20));
    assert_eq!((kbps(&c), metric(&c, "map_trust")), (500, 1.0));
    // A forecast of later times is not wrong yet.
    let mut c = fixed(PLAIN);
    forecast(&mut c, 0.0, &[segment(0.0, 30.0, 2_000, 1.0), segment(30.0, 60.0, 100, 1.0)]);
    deliver(&mut c, 0.0, 29.0, None);
    assert_eq!((kbps(&c), metric(&c, "map_trust")), (100, 1.0));
}

#[test]
fn what_arrived_before_the_first_forecast_does_not_count_against_it() {
    let mut c = fixed(PLAIN);
    deliver(&mut c, 0.0, 30.0, None);
    forecast(&mut c, 30.0, &[segment(0.0, 600.0, 3_000, 1.0)]);
    deliver(&mut c, 30.0, 35.0, None);
    assert_eq!((kbps(&c), metric(&c, "map_trust")), (2_000, 1.0));
}

#[test]
fn trust_is_regained_slowly_and_never_lost_for_good() {
    let mut c = fixed(PLAIN);
    forecast(&mut c, 0.0, &[segment(0.0, 600.0, 500, 1.0)]);
    deliver(&mut c, 0.0, 100.0, None);
    assert_eq!(metric(&c, "map_trust"), LEAST_TRUST);
    forecast(&mut c, 100.0, &[segment(0.0, 600.0, 2_000, 1.0)]);
    deliver(&mut c, 100.0, 125.0, None);
    assert!(metric(&c, "map_trust") > 0.99);
}

#[test]
fn a_call_begins_at_the_careful_rate_of_its_place() {
    let fallback = DataRate::from_kbps(300);
    let near = [segment(0.0, 1.0, 4_000, 0.8), segment(1.0, 9.0, 3_000, 0.9)];
    // Half of 3,000, times 0.9, is less than half of 4,000, times 0.8.
    assert_eq!(start_rate(&near, LIMITS, fallback), DataRate::from_kbps(1_350));
    assert_eq!(start_rate(&[], LIMITS, fallback), fallback);
    assert_eq!(start_rate(&[segment(0.0, 9.0, 100_000, 1.0)], LIMITS, fallback), LIMITS.ceiling);
    assert_eq!(start_rate(&[segment(0.0, 9.0, 100, 1.0)], LIMITS, fallback), fallback);
    assert_eq!(start_rate(&[segment(5.0, 9.0, 9_000, 1.0)], LIMITS, fallback), fallback, "not there yet");
}

#[test]
fn any_forecast_is_bounded_in_memory_and_effect() {
    let mut c = fixed(PLAIN);
    let odd: Vec<_> =
        (0..100_000).map(|n| segment(f64::from(n), f64::from(n % 7), u64::MAX / 2_000, f64::INFINITY)).collect();
    forecast(&mut c, 0.0, &odd);
    let backwards = [segment(5.0, 1.0, 1, 1.0), segment(-9.0, 1e9, 600, 1.0), segment(f64::from(1 << 20), 1e8, 1, 1.0)];
    forecast(&mut c, 1.0, &backwards);
    c.on_timeout(seconds(2.0));
    assert_eq!(kbps(&c), 600);
    let known = [
        "map_horizon",
        "map_least_weight",
        "map_caution",
        "map_doubt",
        "map_share",
        "map_growth",
        "map_distrust",
        "map_recovery",
        "map_tolerance",
    ];
    let spec = Registry::builtin().get("gcc+map").cloned().expect("each has one");
    assert!(known.iter().all(|k| spec.params.iter().any(|p| p.name == *k)));
}

#[test]
fn the_bound_is_a_share_of_the_lower_quartile_with_some_doubt() {
    let mut c = fixed(&[]);
    forecast(&mut c, 0.0, &[segment(0.0, 60.0, 1_000, 0.64)]);
    c.on_timeout(seconds(1.0));
    // 0.95 of 500, divided by the square root of 0.64.
    assert_eq!(kbps(&c), 593);
}

#[test]
fn a_queue_that_stays_ends_the_growth() {
    let mut c = fixed(PLAIN);
    forecast(&mut c, 0.0, &[segment(0.0, 600.0, 500, 1.0)]);
    // One packet in each 100 ms; from 2 s on it takes 50 ms longer.
    for n in 0_u32..60 {
        let departure = seconds(f64::from(n) / 10.0);
        let extra = if n < 20 { 0 } else { 50 };
        let arrival = RemoteTimestamp::from_millis(1_000 + i64::from(n) * 100 + extra);
        let size = DataSize::from_bytes(500_000 / 80);
        let packet = PacketResult {
            sequence: u64::from(n),
            departure,
            arrival: Some(arrival),
            size,
            ecn: Ecn::NotEct,
            probe: 0,
            was_lost: false,
        };
        let now = departure + TimeDelta::from_millis(100);
        let packets = &[packet];
        c.on_cue(&Cue::TransportFeedback(TransportFeedback {
            now,
            packets,
            bytes_in_flight: DataSize::ZERO,
            rtt: None,
        }));
    }
    // Two seconds of growth, with the delay of the third not yet known in the second.
    assert_eq!((kbps(&c), metric(&c, "map_trust")), (781, 1.0));
}

#[test]
fn reports_by_interval_show_a_wrong_forecast_as_feedback_does() {
    let mut c = fixed(PLAIN);
    forecast(&mut c, 0.0, &[segment(0.0, 600.0, 100, 1.0)]);
    for n in 0_u32..60 {
        let now = seconds(f64::from(n) / 5.0);
        let size = DataSize::from_bytes(1_000_000 / 40);
        let packets =
            [IntervalPacket { sequence: u64::from(n), departure: now, size, fate: Fate::Received, repaired: false }];
        c.on_cue(&Cue::IntervalReport(IntervalReport { now, packets: &packets, one_way_delay: None, rtt: None }));
    }
    assert!(metric(&c, "map_trust") < 0.2);
    assert_eq!(kbps(&c), 2_000);
}

#[test]
fn repair_is_part_of_what_the_bound_allows() {
    struct Repaired(RepairPlan);
    impl Controller for Repaired {
        fn on_packet_sent(&mut self, _: &SentPacket) {}
        fn on_cue(&mut self, _: &Cue<'_>) {}
        fn on_limits(&mut self, _: Limits, _: Timestamp) {}
        fn target(&self) -> Target {
            let rate = DataRate::from_kbps(2_000);
            Target { repair: self.0, ..Target::paced(rate, rate) }
        }
    }
    let plans = [
        (RepairPlan::Off, 1_000),
        (RepairPlan::Standby { interval: 4 }, 1_000),
        (RepairPlan::Parity { interval: 4 }, 800),
        (RepairPlan::ReedSolomon { block: 10, repair: 3 }, 700),
    ];
    let params: Vec<_> = PLAIN.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let config = Config::from_params(SUFFIX, &params).expect("in range");
    for (plan, expected) in plans {
        let start = Start { limits: LIMITS, rate: LIMITS.ceiling, now: Timestamp::ZERO };
        let mut c = MapGuided::new(config, Repaired(plan), &start).expect("in range");
        let segments = &[segment(0.0, 60.0, 1_000, 1.0)];
        c.on_cue(&Cue::CapacityForecast(CapacityForecast {
            now: Timestamp::ZERO,
            segments,
            channel: Channel::OutOfBand,
        }));
        assert_eq!(c.target().media_rate, DataRate::from_kbps(expected), "{plan:?}");
    }
}

#[test]
fn without_feedback_by_packet_reports_and_what_was_sent_show_a_wrong_forecast() {
    let mut c = fixed(PLAIN);
    forecast(&mut c, 0.0, &[segment(0.0, 600.0, 100, 1.0)]);
    for n in 0_u32..200 {
        let now = seconds(f64::from(n) / 10.0);
        let size = DataSize::from_bytes(kbps(&c) * 1_000 / 80);
        c.on_packet_sent(&SentPacket::media(now, u64::from(n), size));
        if n % 10 == 9 {
            c.on_cue(&Cue::ReportBlock(ReportBlock { now, ..REPORT }));
        }
    }
    assert!(metric(&c, "map_trust") < 0.2, "{}", metric(&c, "map_trust"));
    assert_eq!(kbps(&c), 2_000);
}

#[test]
fn a_hole_that_is_always_a_second_away_holds_a_call_once() {
    let mut c = fixed(PLAIN);
    for tenth in 0..300 {
        let at = f64::from(tenth) / 10.0;
        forecast(&mut c, at, &[segment(0.0, 1.0, 3_000, 1.0), segment(1.0, 60.0, 100, 1.0)]);
        let expected = if at < 2.55 { 100 } else { 2_000 };
        assert_eq!(kbps(&c), expected, "{at}");
    }
    // It comes, and the next one is followed.
    forecast(&mut c, 30.0, &[segment(0.0, 1.0, 100, 1.0), segment(1.0, 60.0, 3_000, 1.0)]);
    assert_eq!(kbps(&c), 100);
    forecast(&mut c, 31.0, &[segment(0.0, 1.0, 3_000, 1.0), segment(1.0, 60.0, 200, 1.0)]);
    assert_eq!(kbps(&c), 200);
}
