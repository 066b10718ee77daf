//! The controller in a closed loop over a model of one link: drop-tail, fixed rate, delay both ways.

use super::*;
use crate::testing::Kbps;
use crate::testing::link::{Link, PACKET, Reno, Second, assert_between, mean, run_with};
use proptest::collection::vec;
use proptest::prelude::*;
use weir_units::{DataSize, Ecn};

const KBPS: fn(u64) -> DataRate = DataRate::from_kbps;

fn run(link: &Link, seconds: i64) -> Vec<Second> {
    run_with(&mut gcc(&[]), link, seconds, &mut Reno::default())
}

fn gcc(params: &[(&str, f64)]) -> Gcc {
    // The model's packets have no headers, and its pacer runs each millisecond, too coarse for a factor of 1.1.
    let params = [&[("overhead", 0.0), ("pacing_factor", 2.5)], params].concat();
    Kbps { floor: 50, start: 500, ceiling: 10_000 }.sender(&params)
}

#[test]
fn a_lone_flow_settles_below_capacity_with_a_short_queue() {
    for (capacity, kbps) in [((|_| 1_000) as fn(i64) -> u64, 1_000.0), (|_| 2_000, 2_000.0)] {
        let r = run(&Link { capacity, ..Link::default() }, 80);
        let settled = &r[10..];
        assert_between("received", mean(settled, |s| s.received), 0.8 * kbps, kbps);
        assert_between("target", mean(settled, |s| s.target), 0.8 * kbps, 1.02 * kbps);
        assert_between("mean queue", mean(settled, |s| s.queue), 0.0, 30.0);
        for s in settled {
            assert_between("a second's target", s.target, 0.7 * kbps, 1.1 * kbps);
            assert_between("longest queue", s.max_queue, 0.0, 150.0);
        }
    }
}

#[test]
fn initial_probes_find_most_of_the_capacity_within_two_seconds() {
    let r = run(&Link { capacity: |_| 2_000, ..Link::default() }, 10);
    assert_between("probes", f64::from(r[0].probes), 2.0, 4.0);
    assert_between("second second", r[1].received, 1_600.0, 2_000.0);
    let mut c = gcc(&[("probe_initial", 0.0)]);
    let r = run_with(&mut c, &Link { capacity: |_| 2_000, ..Link::default() }, 10, &mut Reno::default());
    assert_between("without", r[1].received, 480.0, 620.0);
    assert_between("without, 8 % a second", r[9].received, 500.0 * 1.85, 500.0 * 2.2);
}

#[test]
fn halved_and_doubled_capacity_is_followed() {
    let half = |ms| if (20_000..40_000).contains(&ms) { 1_000 } else { 2_000 };
    let r = run(&Link { capacity: half, ..Link::default() }, 80);
    for (i, s) in r[22..40].iter().enumerate() {
        assert_between(&format!("target {} s after the halving", i + 2), s.target, 700.0, 1_050.0);
    }
    assert_between("queue while it drains", r[20..40].iter().map(|s| s.max_queue).fold(0.0, f64::max), 300.0, 600.0);
    for s in &r[26..40] {
        assert_between("queue afterwards", s.max_queue, 0.0, 150.0);
    }
    // 8 % a second takes 9 s for a doubling, after a slow approach to the former capacity.
    assert_between("30 s after the doubling", mean(&r[70..], |s| s.received), 1_500.0, 2_000.0);
}

#[test]
fn random_loss_is_no_congestion_to_the_drafts_rule() {
    let run = |link: &Link, seconds| run_with(&mut gcc(&[("loss_v2", 0.0)]), link, seconds, &mut Reno::default());
    for (loss, low) in [(0.01, 0.8), (0.05, 0.6)] {
        let r = run(&Link { capacity: |_| 2_000, loss, ..Link::default() }, 80);
        assert_between("target", mean(&r[10..], |s| s.target), low * 2_000.0, 1.02 * 2_000.0);
        assert_between("share of the target", mean(&r[10..], |s| s.received / s.target), 0.985 - loss, 1.015 - loss);
    }
    // Of 30 % the rule takes half, at most once per second, so the rate ends at the floor.
    let r = run(&Link { capacity: |_| 2_000, loss: 0.3, ..Link::default() }, 60);
    assert_between("target at 30 %", mean(&r[40..], |s| s.target), 49.9, 100.0);
}

#[test]
fn a_loss_based_flow_leaves_it_a_share() {
    let link = Link { capacity: |_| 2_000, ..Link::default() };
    let r = run_with(&mut gcc(&[]), &link, 120, &mut Reno::between(20_000, 100_000));
    assert_between("share", mean(&r[30..100], |s| s.received), 0.15 * 2_000.0, 0.6 * 2_000.0);
    let least = r[30..100].iter().map(|s| s.target).fold(f64::MAX, f64::min);
    assert_between("least second", least, 200.0, 1_000.0);
    // Growth near a rate at which there was overuse is additive, 40 s are too short for the rest.
    assert_between("afterwards", r[119].received - r[101].received, 100.0, 1_700.0);
}

#[test]
fn missing_feedback_lowers_the_rate_after_three_seconds() {
    let link = Link { capacity: |_| 2_000, silent: (20_000, 30_000), ..Link::default() };
    let r = run(&link, 80);
    // The last feedback arrives at 20.2 s and leaves 2.7 s; then 0.8 per second until 30.3 s: seven or eight steps.
    assert_between("before the limit", r[22].target, 1_850.0, 2_000.0);
    assert_between("last", r[29].target, 0.8f64.powi(8) * r[22].target, 0.8f64.powi(6) * r[22].target);
    // It recovers, at most by 8 % a second.
    assert_between("10 s later", r[40].target / r[30].target, 1.05, 2.4);
    assert_between("at the end", r[79].received, 1_600.0, 2_000.0);
}

#[test]
fn an_application_that_sends_little_is_probed_for() {
    let link = Link { capacity: |_| 4_000, encoder: |ms| if ms < 40_000 { 0.3 } else { 1.0 }, ..Link::default() };
    let r = run(&link, 60);
    let probes: u32 = r[5..40].iter().map(|s| s.probes).sum();
    assert_between("probes in 35 s", f64::from(probes), 6.0, 8.0);
    assert_between("target", r[39].target, 3_000.0, 4_000.0);
    assert_between("use of it", mean(&r[42..], |s| s.received), 3_000.0, 4_000.0);
}

#[test]
fn an_application_that_sent_a_twentieth_recovers_when_it_sends_everything() {
    let link = Link { capacity: |_| 4_000, encoder: |ms| if ms < 40_000 { 0.05 } else { 1.0 }, ..Link::default() };
    let r = run(&link, 70);
    assert_between("target before", r[39].target, 1_500.0, 4_200.0);
    assert_between("5 s later", mean(&r[45..50], |s| s.received), 1_500.0, 4_000.0);
    assert_between("20 s later", mean(&r[60..], |s| s.received), 2_800.0, 4_000.0);
}

#[test]
fn a_fall_to_a_25th_of_the_capacity_is_followed_by_what_arrives_now() {
    let capacity = |ms| if ms < 20_000 { 50_000 } else { 2_000 };
    let mut c: Gcc =
        Kbps { floor: 50, start: 500, ceiling: 60_000 }.sender(&[("overhead", 0.0), ("pacing_factor", 2.5)]);
    let link = Link { capacity, buffer: 200_000, ..Link::default() };
    let r = run_with(&mut c, &link, 40, &mut Reno::default());
    assert_between("before", r[19].target, 30_000.0, 51_000.0);
    // Overuse is known half a second after the fall; the rate of what arrives is measured over about a second.
    assert_between("2 s later", r[22].target, 500.0, 2_500.0);
    for s in &r[24..] {
        assert_between("afterwards", s.target, 500.0, 2_200.0);
    }
}

#[test]
fn before_a_rate_is_known_each_message_of_overuse_halves_the_estimate() {
    let mut c = gcc(&[]);
    let gap = TimeDelta::from_millis(20);
    (0..3).for_each(|i| c.detector.update(1.0, 60, gap, RemoteTimestamp::ZERO + gap * i));
    for (ms, kbps) in [(0, 250), (20, 125), (40, 62)] {
        c.update_delay_based(None, false, Timestamp::from_millis(ms));
        assert_eq!(c.aimd.rate().as_bps() / 1_000, kbps);
    }
}

#[test]
fn a_full_congestion_window_holds_the_encoder_back_but_not_the_pacer() {
    let mut c = gcc(&[("congestion_window", 350.0)]);
    report_packets(&mut c, 0, 200, 10, |i| 8 * i as i64 + 50);
    let send = |c: &mut Gcc, in_flight| {
        let bytes_in_flight = DataSize::from_bytes(in_flight);
        let packet = SentPacket::media(Timestamp::from_millis(1_700), 200, DataSize::from_bytes(PACKET));
        (0..60).for_each(|_| c.on_packet_sent(&SentPacket { bytes_in_flight, ..packet }));
        c.target()
    };
    let open = send(&mut c, 20_000);
    assert_between("open", open.media_rate.as_kbps_f64(), 500.0, 650.0);
    // About 560 kbit/s for 180 + 350 ms are 37 kB.
    let full = send(&mut c, 60_000);
    let quarter = DataRate::from_bps_f64(0.25 * open.media_rate.as_bps_f64());
    assert_eq!((full.media_rate, full.pacing_rate), (quarter, open.pacing_rate));
    assert_eq!(send(&mut c, 3_000), open);
}

#[test]
fn with_a_congestion_window_less_is_queued_when_the_capacity_falls() {
    let quarter = |ms| if ms < 20_000 { 2_000 } else { 500 };
    let run = |allowance| {
        let link = Link { capacity: quarter, ..Link::default() };
        run_with(&mut gcc(&[("congestion_window", allowance)]), &link, 40, &mut Reno::default())
    };
    let (with, without) = (run(350.0), run(0.0));
    let queued = |r: &[Second]| mean(&r[20..30], |s| s.queue);
    assert_between("queue with a window", queued(&with), 0.0, 0.8 * queued(&without));
    assert_between("afterwards", mean(&with[32..], |s| s.received), 350.0, 500.0);
}

#[test]
fn the_target_obeys_new_limits_at_once() {
    let mut c = gcc(&[]);
    let set = |c: &mut Gcc, floor, ceiling| {
        c.on_limits(Limits { floor: KBPS(floor), ceiling: KBPS(ceiling) }, Timestamp::from_millis(5));
        c.target().media_rate
    };
    assert_eq!(set(&mut c, 50, 300), KBPS(300));
    assert_eq!(set(&mut c, 800, 900), KBPS(800));
    assert_eq!(set(&mut c, 800, 100), KBPS(800), "the floor wins");
    assert_eq!(set(&mut c, 0, 0), KBPS(0));
}
#[test]
fn version_2_distinguishes_random_loss_from_congestion() {
    for (loss, low, high) in [(0.0, 0.85, 1.0), (0.02, 0.8, 1.0), (0.05, 0.75, 1.0), (0.1, 0.5, 1.0), (0.3, 0.02, 0.1)]
    {
        let link = Link { capacity: |_| 2_000, loss, ..Link::default() };
        let r = run_with(&mut gcc(&[("loss_v2", 1.0)]), &link, 80, &mut Reno::default());
        assert_between(
            &format!("target at {loss}"),
            mean(&r[10..], |s| s.target),
            low * 2_000.0,
            1.02 * high * 2_000.0,
        );
    }
    // A queue too short for a delay signal: 5 packets, 20 ms of the link.
    for v2 in [0.0, 1.0] {
        let link = Link { buffer: 5_000, ..Link::default() };
        let r = run_with(&mut gcc(&[("loss_v2", v2)]), &link, 80, &mut Reno::default());
        assert_between("received", mean(&r[10..], |s| s.received), 700.0, 1_000.0);
        assert_between("lost", mean(&r[10..], |s| s.target - s.received), -20.0, 150.0);
    }
}

/// Packets of 1,000 bytes every 8 ms, 1 Mbit/s, reported `many` at a time; `arrival` in ms by index.
fn report_packets(c: &mut Gcc, from: u64, to: u64, many: u64, arrival: fn(u64) -> i64) {
    for first in (from..to).step_by(many as usize) {
        let packets = (first..(first + many).min(to))
            .map(|i| {
                let departure = Timestamp::from_millis(8 * i as i64);
                let arrival = Some(RemoteTimestamp::from_millis(arrival(i)));
                let size = DataSize::from_bytes(PACKET);
                PacketResult { sequence: i, departure, arrival, size, ecn: Ecn::NotEct, probe: 0, was_lost: false }
            })
            .collect::<Vec<_>>();
        let now = Timestamp::from_millis(8 * (first + many) as i64 + 100);
        let rtt = Some(TimeDelta::from_millis(100));
        let f = TransportFeedback { now, packets: &packets, bytes_in_flight: DataSize::ZERO, rtt };
        c.on_cue(&Cue::TransportFeedback(f));
    }
}

#[test]
fn packets_that_overtook_each_other_are_taken_in_the_order_of_arrival() {
    let mut c = gcc(&[]);
    // Every second packet arrives 10 ms late, after its successor.
    report_packets(&mut c, 0, 500, 10, |i| 8 * i as i64 + 50 + if i % 2 == 0 { 10 } else { 0 });
    assert_between("acknowledged", c.acked.rate().expect("measured").as_kbps_f64(), 950.0, 1_050.0);
    assert_eq!(c.detector.usage(), Usage::Normal);
}

#[test]
fn a_pause_of_two_seconds_restarts_the_delay_filter() {
    let mut c = gcc(&[]);
    report_packets(&mut c, 0, 200, 10, |i| 8 * i as i64 + 50);
    assert!(c.trendline.count() > 60);
    report_packets(&mut c, 440, 450, 10, |i| 8 * i as i64 + 950);
    assert!(c.trendline.count() > 60, "1.92 s after the last feedback");
    report_packets(&mut c, 710, 720, 10, |i| 8 * i as i64 + 50);
    assert!(c.trendline.count() < 10, "2.16 s after it");
}

#[test]
fn a_low_probe_result_takes_the_rate_no_lower_than_what_arrives() {
    let mut c = gcc(&[]);
    report_packets(&mut c, 0, 1_200, 10, |i| 8 * i as i64 + 50);
    let before = c.target().media_rate;
    assert!(before > KBPS(900), "{before}");
    c.update_delay_based(Some(KBPS(100)), false, Timestamp::from_secs(10));
    c.set_target();
    let acked = c.acked.rate().expect("measured").as_kbps_f64();
    assert_between("acknowledged", acked, 950.0, 1_050.0);
    assert_between("target", c.target().media_rate.as_kbps_f64(), 0.849 * acked, 0.851 * acked);
}

/// A call of the controller with hostile arguments.
#[derive(Clone, Debug)]
enum Call {
    Send { after_us: i64, size: u64, probe: u32 },
    Feedback { after_us: i64, packets: Vec<(i64, Option<i64>, u64, bool)>, rtt_us: Option<i64> },
    Limits { floor: u64, ceiling: u64 },
    Timeout,
    Probe,
}

fn call() -> impl Strategy<Value = Call> {
    let any_time = prop_oneof![8 => -500_000i64..5_000_000, 1 => any::<i64>()];
    let packet = (any_time.clone(), proptest::option::weighted(0.8, any_time.clone()), 0u64..100_000, any::<bool>());
    let rtt = proptest::option::of(any_time);
    prop_oneof![
        6 => (0i64..2_000_000, 0u64..100_000, 0u32..20)
            .prop_map(|(after_us, size, probe)| Call::Send { after_us, size, probe }),
        4 => (0i64..2_000_000, vec(packet, 0..40), rtt)
            .prop_map(|(after_us, packets, rtt_us)| Call::Feedback { after_us, packets, rtt_us }),
        1 => (0u64..5_000_000, 0u64..50_000_000).prop_map(|(floor, ceiling)| Call::Limits { floor, ceiling }),
        2 => Just(Call::Timeout),
        2 => Just(Call::Probe),
    ]
}

proptest! {
    #[test]
    fn no_input_breaks_it(calls in vec(call(), 1..200), v2 in 0u8..2) {
        let mut c = gcc(&[("loss_v2", f64::from(v2)), ("probe_recovery", f64::from(v2))]);
        let mut limits = Limits { floor: KBPS(50), ceiling: KBPS(10_000) };
        let mut now = Timestamp::ZERO;
        let mut sequence = 0;
        for call in calls {
            match call {
                Call::Send { after_us, size, probe } => {
                    now += TimeDelta::from_micros(after_us);
                    sequence += 1;
                    let size = DataSize::from_bytes(size);
                    let (queued, bytes_in_flight) = (DataSize::ZERO, size);
                    let is_padding = probe % 2 == 1;
                    c.on_packet_sent(&SentPacket { is_padding, probe, queued, bytes_in_flight, ..SentPacket::media(now, sequence, size) });
                }
                Call::Feedback { after_us, packets, rtt_us } => {
                    now += TimeDelta::from_micros(after_us);
                    let packets = packets
                        .iter()
                        .enumerate()
                        .map(|(i, &(ago, arrival, size, was_lost))| PacketResult {
                            sequence: sequence + i as u64,
                            departure: now - TimeDelta::from_micros(ago),
                            arrival: arrival.map(RemoteTimestamp::from_micros),
                            size: DataSize::from_bytes(size),
                            ecn: Ecn::NotEct,
                            probe: (size % 8) as u32,
                            was_lost,
                        })
                        .collect::<Vec<_>>();
                    let rtt = rtt_us.map(TimeDelta::from_micros);
                    let f = TransportFeedback { now, packets: &packets, bytes_in_flight: DataSize::ZERO, rtt };
                    c.on_cue(&Cue::TransportFeedback(f));
                }
                Call::Limits { floor, ceiling } => {
                    limits = Limits { floor: DataRate::from_bps(floor), ceiling: DataRate::from_bps(ceiling) };
                    c.on_limits(limits, now);
                }
                Call::Timeout => {
                    if let Some((t, _)) = c.poll_timeout() {
                        now = now.max(t);
                        c.on_timeout(now);
                        prop_assert!(c.poll_timeout().is_none_or(|(t, _)| t > now));
                    }
                }
                Call::Probe => {
                    if let Some(p) = c.poll_probe(now) {
                        prop_assert!(p.id > 0 && p.rate > DataRate::ZERO && p.min_packets >= 2);
                    }
                }
            }
            let target = c.target();
            prop_assert!(target.media_rate >= limits.floor);
            prop_assert!(target.media_rate <= limits.ceiling.max(limits.floor));
            prop_assert!(target.pacing_rate >= target.media_rate);
            let mut names = 0;
            let mut wild = None;
            c.metrics(&mut |name, v| {
                names += 1;
                if v.is_infinite() || (v.is_nan() && !matches!(name, "acked_bps" | "link_capacity_bps" | "probe_bps" | "rtt_ms")) {
                    wild = Some(name);
                }
            });
            prop_assert_eq!((names, wild), (12, None));
        }
    }
}

#[test]
fn chrome_has_its_window_unless_another_is_given() {
    let window = |entry: &str, params: &[(String, f64)]| Config::of(entry, params).map(|c| c.congestion_window);
    let ms = TimeDelta::from_millis;
    assert_eq!(window("gcc", &[]), Ok(TimeDelta::ZERO));
    assert_eq!(window(config::CHROME, &[]), Ok(ms(350)));
    assert_eq!(window(config::CHROME, &[("congestion_window".into(), 0.0)]), Ok(TimeDelta::ZERO));
    assert!(window(config::CHROME, &[("window".into(), 0.0)]).is_err());
    // Lists show the very settings that are made, and nothing else differs.
    let specs = Gcc::specs();
    let of = |spec: &Spec, params: Vec<_>| {
        let given: Vec<(String, f64)> = params;
        Config::of(&spec.name, &given).expect("valid")
    };
    for spec in &specs {
        let shown: Vec<(String, f64)> = spec.params.iter().map(|p| (p.name.to_owned(), p.default)).collect();
        assert_eq!(of(spec, shown), of(spec, vec![]));
    }
    let of_chrome = of(&specs[1], vec![]);
    assert_eq!(of_chrome.overhead, DataSize::from_bytes(58));
    assert!(of_chrome.report_rtt && of_chrome.departure_tick == ms(1));
    assert!(!of_chrome.probe_in_alr);
    let Config { congestion_window, overhead, report_rtt, departure_tick, probe_in_alr, .. } = Config::default();
    let plain = Config { congestion_window, overhead, report_rtt, departure_tick, probe_in_alr, ..of_chrome };
    assert_eq!(plain, Config::default());
}

#[test]
fn the_rate_follows_the_round_trip_of_reports_if_it_is_to() {
    let block = |ms| {
        let rtt = Some(TimeDelta::from_millis(ms));
        let now = Timestamp::ZERO;
        Cue::ReportBlock(ReportBlock {
            now,
            fraction_lost: 0.0,
            cumulative_lost: 0,
            highest_sequence: 0,
            expected: 0,
            jitter: TimeDelta::ZERO,
            rtt,
        })
    };
    for (by_reports, expected) in [(0.0, 100), (1.0, 40)] {
        let mut c = gcc(&[("report_rtt", by_reports)]);
        c.on_cue(&block(40));
        // Per-packet feedback has a round trip of 100 ms.
        report_packets(&mut c, 0, 50, 10, |i| 8 * i as i64 + 50);
        assert!(format!("{:?}", c.aimd).contains(&format!("rtt: {:?}", TimeDelta::from_millis(expected))));
    }
}

#[test]
fn departures_are_taken_in_whole_ticks() {
    // A packet each 8 ms, on a tick of 20 ms: groups of two and three, of which the first starts each 20 ms.
    let groups = |tick: f64| {
        let mut c = gcc(&[("departure_tick", tick)]);
        report_packets(&mut c, 0, 500, 10, |i| 8 * i as i64 + 50);
        c.trendline.count()
    };
    assert_eq!(on_tick(Timestamp::from_micros(41_999), TimeDelta::from_millis(1)), Timestamp::from_millis(41));
    assert_eq!(on_tick(Timestamp::from_millis(41), TimeDelta::from_millis(20)), Timestamp::from_millis(40));
    let (plain, coarse) = (groups(0.0), groups(20.0));
    assert!(coarse < plain / 2 && coarse > plain / 3, "{coarse} of {plain}");
}

#[test]
fn the_first_pacing_factor_ends_with_the_first_feedback() {
    let pacing = |c: &Gcc| c.target().pacing_rate.ratio(c.target().media_rate).expect("a rate");
    for (first, before) in [(0.0, 1.1), (2.5, 2.5)] {
        let mut c = gcc(&[("pacing_factor", 1.1), ("first_pacing_factor", first)]);
        assert_between("before", pacing(&c), before - 1e-3, before + 1e-3);
        report_packets(&mut c, 0, 10, 10, |i| 8 * i as i64 + 50);
        assert_between("after", pacing(&c), 1.099, 1.101);
    }
}
