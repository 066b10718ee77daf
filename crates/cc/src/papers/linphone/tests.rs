use super::*;
use crate::Registry;
use crate::cue::{ReportBlock, SendRejected, TransportRate};
use crate::testing::{Kbps, REPORT, kbps};
use weir_units::DataSize;

const KBPS: Kbps = Kbps { floor: 0, start: 1_000, ceiling: 1_000_000 };

fn make(over: Over, params: &[(&str, f64)]) -> Linphone {
    let setup = KBPS.setup(params);
    let mut config = Config::over(over);
    config.set_all("linphone", &setup.params).expect("valid");
    Linphone::over(over, config, &setup.start()).expect("valid")
}

/// Starts at 1 Mbit/s instead of the limit.
const AT_ONE: (&str, f64) = ("start_at_max", 0.0);

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn report(c: &mut Linphone, ms: i64, lost_percent: f64, jitter_ms: i64, rtt_ms: i64) -> f64 {
    c.on_cue(&Cue::ReportBlock(ReportBlock {
        now: at(ms),
        fraction_lost: lost_percent / 100.0,
        jitter: TimeDelta::from_millis(jitter_ms),
        rtt: Some(TimeDelta::from_millis(rtt_ms)),
        ..REPORT
    }));
    kbps(c)
}

fn reject(c: &mut Linphone, ms: i64) -> f64 {
    c.on_cue(&Cue::SendRejected(SendRejected { now: at(ms), packets: 3 }));
    kbps(c)
}

fn transport(c: &mut Linphone, ms: i64, rate_kbps: u64) -> f64 {
    let rate = DataRate::from_kbps(rate_kbps);
    c.on_cue(&Cue::TransportRate(TransportRate { now: at(ms), rate, smoothed: rate * HALF, rtt: None }));
    kbps(c)
}

const HALF: weir_units::Gain = match weir_units::Gain::new(0.5) {
    Some(g) => g,
    None => weir_units::Gain::ONE,
};

/// Frames of `kbps` at 25 a second over this span.
fn encode(c: &mut Linphone, ms: core::ops::Range<i64>, kbps: u64) {
    for now in ms.step_by(40).map(at) {
        let added = DataSize::from_bytes(kbps * 40 / 8);
        c.on_queue(&QueueState { now, added, queued: added, oldest_age: TimeDelta::ZERO });
    }
}

fn close(got: f64, want: f64) {
    assert!((got - want).abs() <= 0.02 * want, "{got}, expected {want}");
}

/// The encoder's rate is measured to within a frame of 25.
fn near(got: f64, want: f64) {
    assert!((got - want).abs() <= 0.045 * want, "{got}, expected {want}");
}

#[test]
fn starts_at_the_limit_and_falls_from_what_the_encoder_makes() {
    let mut c = make(Over::Udp, &[]);
    assert_eq!(kbps(&c), 100_000.0);
    assert_eq!(c.target().pacing_rate, Target::UNPACED);
    // The encoder makes at most 30 Mbit/s of it: a third is lost, and the rate becomes 20 Mbit/s.
    encode(&mut c, 0..5_000, 30_000);
    near(report(&mut c, 5_000, 100.0 / 3.0, 20, 60), 20_000.0);
    // A lower ceiling of the application is the limit.
    let bounded: Linphone = Kbps { ceiling: 3_000, ..KBPS }.sender(&[]);
    assert_eq!(kbps(&bounded), 3_000.0);
}

#[test]
fn loss_with_jitter_lowers_by_the_loss_up_to_half() {
    let after = |lost, jitter| report(&mut make(Over::Udp, &[AT_ONE]), 5_000, lost, jitter, 60);
    assert_eq!(after(9.9, 20), 1_000.0);
    close(after(10.0, 10), 900.0);
    close(after(35.0, 10), 650.0);
    close(after(80.0, 10), 500.0);
    // Without jitter it is attributed to the packet rate: 20 %.
    close(after(35.0, 9), 800.0);
}

#[test]
fn a_round_trip_that_doubles_lowers_by_a_fifth() {
    let after = |first, second| {
        let mut c = make(Over::Udp, &[AT_ONE]);
        report(&mut c, 5_000, 0.0, 0, first);
        report(&mut c, 10_000, 0.0, 0, second)
    };
    close(after(100, 200), 800.0);
    assert_eq!(after(100, 199), 1_000.0);
    // Twice as long, but below the least.
    assert_eq!(after(90, 180), 1_000.0);
    // It needs a previous report.
    assert_eq!(report(&mut make(Over::Udp, &[AT_ONE]), 5_000, 0.0, 0, 900), 1_000.0);
}

#[test]
fn ten_stable_reports_then_a_tenth_every_two() {
    let mut c = make(Over::Udp, &[AT_ONE]);
    // Good reports at the start change nothing, since no decrease preceded.
    (1..30).for_each(|k| assert_eq!(report(&mut c, k * 5_000, 0.0, 0, 60), 1_000.0));
    close(report(&mut c, 150_000, 50.0, 20, 60), 500.0);
    // Less loss than before is an improvement: the next report is the first of ten.
    close(report(&mut c, 155_000, 0.0, 0, 60), 500.0);
    (1..10).for_each(|k| close(report(&mut c, 155_000 + k * 5_000, 0.0, 0, 60), 500.0));
    close(report(&mut c, 205_000, 0.0, 0, 60), 550.0);
    for (k, want) in [550.0, 605.0, 605.0, 665.5].into_iter().enumerate() {
        close(report(&mut c, 210_000 + k as i64 * 5_000, 0.0, 0, 60), want);
    }
    // Loss ends the increase.
    close(report(&mut c, 230_000, 20.0, 20, 60), 532.4);
}

#[test]
fn waits_for_improvement_and_goes_on_down_without_one() {
    let mut c = make(Over::Udp, &[AT_ONE]);
    close(report(&mut c, 5_000, 20.0, 20, 60), 800.0);
    close(report(&mut c, 10_000, 20.0, 20, 60), 640.0);
    // 15 % is bad, but an improvement: no reaction yet.
    close(report(&mut c, 15_000, 15.0, 20, 60), 640.0);
    // The next report is still bad.
    close(report(&mut c, 20_000, 15.0, 20, 60), 544.0);
    (5..40).for_each(|k| _ = report(&mut c, k * 5_000, 60.0, 20, 60));
    close(kbps(&c), 64.0);
}

#[test]
fn the_rate_asked_for_stays_within_a_factor_of_ten_of_the_encoders() {
    // 90 kbit/s requested and 1,000 actual: half of that, less a fifth.
    let mut c = make(Over::Udp, &[AT_ONE]);
    c.driver.nominal = 90_000.0;
    encode(&mut c, 0..5_000, 1_000);
    near(report(&mut c, 5_000, 20.0, 20, 60), 400.0);
    // 110 kbit/s is within the factor.
    c.driver.nominal = 110_000.0;
    encode(&mut c, 5_000..10_000, 1_000);
    near(report(&mut c, 10_000, 20.0, 20, 60), 88.0);
    // 20 times the actual rate: reset to twice, and a tenth more.
    c.driver.nominal = 20e6;
    (c.state, c.stable) = (State::Stable, 9);
    encode(&mut c, 10_000..15_000, 1_000);
    report(&mut c, 15_000, 0.0, 0, 60);
    near(kbps(&c), 2_200.0);
}

#[test]
fn refused_packets_lower_by_30_percent_no_more_often_than_every_3_s() {
    let mut c = make(Over::Window, &[AT_ONE]);
    close(reject(&mut c, 1_000), 700.0);
    // Each frame of the next 3 s is refused too.
    (26..100).for_each(|k| close(reject(&mut c, k * 40), 700.0));
    close(reject(&mut c, 4_040), 490.0);
    // RTCP's metrics are ignored over DCCP, but the report counts: nothing was refused since the last step.
    close(report(&mut c, 8_000, 60.0, 90, 900), 490.0);
    (0..9).for_each(|k| close(report(&mut c, 13_000 + k * 5_000, 0.0, 0, 60), 490.0));
    close(report(&mut c, 58_000, 0.0, 0, 60), 539.0);
    close(report(&mut c, 63_000, 0.0, 0, 60), 539.0);
    close(report(&mut c, 68_000, 0.0, 0, 60), 592.9);
    // The decrease according to the text.
    close(reject(&mut make(Over::Window, &[AT_ONE, ("reject_decrease", 0.1)]), 1_000), 900.0);
    // Plain datagrams are never refused.
    assert_eq!(reject(&mut make(Over::Udp, &[AT_ONE]), 1_000), 1_000.0);
}

/// Section 4.3: without an update interval each frame lowers the rate, until the check against the actual rate resets
/// it to a higher one.
#[test]
fn without_an_update_interval_the_rate_oscillates() {
    let mut c = make(Over::Window, &[AT_ONE, ("update_interval", 0.0)]);
    encode(&mut c, 0..2_000, 1_000);
    let rates: Vec<f64> = (50..75)
        .map(|k| {
            encode(&mut c, k * 40..k * 40 + 1, 1_000);
            reject(&mut c, k * 40 + 1)
        })
        .collect();
    // 0.7^6 is 0.118, 0.7^7 is 0.082: the eighth refusal finds less than a tenth and resets to 0.35.
    near(rates[6], 82.4);
    near(rates[7], 350.0);
    let jumps = rates.windows(2).filter(|w| w[1] > 2.0 * w[0]).count();
    assert!((3..=5).contains(&jumps), "{rates:?}");
    // With an interval, a refusal per frame lowers the rate once in 3 s.
    let mut c = make(Over::Window, &[AT_ONE]);
    encode(&mut c, 0..2_000, 1_000);
    (50..75).for_each(|k| _ = reject(&mut c, k * 40));
    near(kbps(&c), 700.0);
}

#[test]
fn follows_nine_tenths_of_the_rate_after_four_samples() {
    let mut c = make(Over::Rate, &[AT_ONE]);
    let run =
        |c: &mut Linphone, from: i64, rate| (0..5).map(|k| transport(c, (from + k) * 1_001, rate)).collect::<Vec<_>>();
    // Four samples are ignored, the fifth has an effect: 0.9 of 2,000.
    assert_eq!(run(&mut c, 1, 2_000), [1_000.0, 1_000.0, 1_000.0, 1_000.0, 1_800.0]);
    // 10 % less and 20 % more have an effect, less does not.
    assert_eq!(run(&mut c, 6, 1_800), [1_800.0; 5]);
    assert_eq!(run(&mut c, 11, 2_400), [1_800.0; 5]);
    // The hold has expired long ago.
    assert_eq!(transport(&mut c, 17_000, 2_500), 2_250.0);
    assert_eq!(run(&mut c, 18, 100), [2_250.0, 2_250.0, 2_250.0, 2_250.0, 90.0]);
    // The floor holds.
    assert_eq!(run(&mut c, 23, 1).last(), Some(&64.0));
}

#[test]
fn samples_between_do_not_count_and_rejections_do() {
    let mut c = make(Over::Rate, &[AT_ONE]);
    (0..100).for_each(|k| assert_eq!(transport(&mut c, k * 40, 5_000), 1_000.0));
    assert_eq!(transport(&mut c, 4_000, 5_000), 4_500.0);
    close(reject(&mut c, 5_001), 3_150.0);
    close(reject(&mut c, 5_900), 3_150.0);
    close(reject(&mut c, 6_100), 2_205.0);
    // Samples keep the count of good reports at zero.
    let before = kbps(&c);
    for k in 0..30 {
        transport(&mut c, 10_000 + k * 5_000, 2_450);
        report(&mut c, 10_001 + k * 5_000, 0.0, 0, 60);
    }
    assert_eq!(kbps(&c), before);
}

#[test]
fn a_window_may_be_followed_by_its_rate_and_the_smoothed_one() {
    let follow = |params: &[(&str, f64)]| {
        let mut c = make(Over::Window, params);
        (1..10).for_each(|k| _ = transport(&mut c, k * 4_000, 3_000));
        kbps(&c)
    };
    assert_eq!(follow(&[AT_ONE]), 1_000.0);
    assert_eq!(follow(&[AT_ONE, ("follow_rate", 1.0)]), 2_700.0);
    assert_eq!(follow(&[AT_ONE, ("follow_rate", 1.0), ("follow_smoothed", 1.0)]), 1_350.0);
}

#[test]
fn entries_say_what_they_run_over() {
    let registry = Registry::builtin();
    let of = |name: &str| {
        let spec = registry.get(name).expect("built in");
        let default = |p: &str| spec.params.iter().find(|i| i.name == p).map(|i| i.default);
        (spec.transport, default("update_interval"), default("follow_rate"))
    };
    let dccp = |ccid| Transport::Dccp { ccid };
    assert_eq!(of("linphone"), (Transport::Udp, Some(0.0), Some(0.0)));
    assert_eq!(of("ccid2"), (dccp(2), Some(3_000.0), Some(0.0)));
    assert_eq!(of("ccid3"), (dccp(3), Some(1_000.0), Some(1.0)));
    assert_eq!(of("ccid4+fec").0, dccp(4));
    assert_eq!(of("ccid5"), (dccp(5), Some(3_000.0), Some(0.0)));
    assert_eq!(of("ccid-video").0, dccp(248));
    assert_eq!(of("gcc").0, Transport::Udp);
}
