use super::*;
use crate::cue::PacketResult;
use crate::testing::link::{Link, Reno, assert_between, mean, run_with};
use crate::testing::{Kbps, metric};
use weir_units::RemoteTimestamp;

const CALL: Kbps = Kbps { floor: 50, start: 1_000, ceiling: 10_000 };
const LINK: Link = Link { feedback: 20, is_exact: true, one_way: 25, capacity: |_| 4_000, ..Link::DEFAULT };

fn alone(link: &Link, params: &[(&str, f64)]) -> (Ndtc, Vec<crate::testing::link::Second>) {
    let mut c: Ndtc = CALL.sender(params);
    let seconds = run_with(&mut c, link, 60, &mut Reno::default());
    (c, seconds)
}

#[test]
fn the_regression_is_that_of_the_draft() {
    let config = Config::default();
    let mut fdace = Fdace::default();
    assert!(fdace.available().is_nan() && fdace.slope() == 1.0);
    fdace.on_sample(&config, 1.0, 2.0);
    assert_eq!((fdace.slope(), fdace.available()), (0.0, 0.5));
    // Means 2 and 2.5, variances 1 and 1/4, covariance 1/2: slope 1/2, intercept 3/2; from 2.5 to 2.75, 2.875, 2.9375. The fit is exact.
    fdace.on_sample(&config, 3.0, 3.0);
    assert_eq!((fdace.slope(), fdace.available()), (0.5, 1.0 / 2.9375));
    // Without visible durations there is no bound, and no division by zero.
    let mut fdace = Fdace::default();
    fdace.on_sample(&config, 0.0, 0.0);
    assert!(fdace.available() > 1e11 && fdace.available().is_finite());
}

#[test]
fn the_slope_is_the_share_of_constant_cross_traffic() {
    // A link of 1 MB/s, of which others take `share`: a frame sent faster than what is left takes 1 us a byte, and what they send meanwhile.
    for share in [0.0, 0.25, 0.5, 0.75] {
        let mut fdace = Fdace::default();
        for k in 0..200 {
            let send = 0.5e-6 + 0.01e-6 * f64::from(k % 50);
            fdace.on_sample(&Config { iterations: 32, ..Config::default() }, send, 1e-6 + share * send);
        }
        assert_between("slope", fdace.slope(), share - 1e-9, share + 1e-9);
        assert_between("available", fdace.available() / 1e6, 0.999 * (1.0 - share), 1.001 * (1.0 - share));
    }
}

#[test]
fn the_pseudo_slope_is_zero_at_the_target_and_one_at_the_greatest_rate() {
    let at = |size: f64| Congestion::new(size).slope(2_000.0, 0.5);
    assert_eq!((at(1_000.0), at(500.0), at(2_000.0), at(9_000.0)), (0.0, 0.0, 1.0, 1.0));
    assert!((at(1_500.0) - 2.0 / 3.0).abs() < 1e-12);
}

/// A frame of `packets` packets of 1,000 bytes, sent from `at_ms` on at one a millisecond.
fn send(frames: &mut SentFrames, first: u64, packets: u64, at_ms: i64) {
    frames.on_queued(DataSize::from_bytes(packets * 1_000), Timestamp::from_millis(at_ms));
    for k in 0..packets {
        let sent = SentPacket::media(Timestamp::from_millis(at_ms + k as i64), first + k, DataSize::from_bytes(1_000));
        frames.on_sent(&SentPacket { queued: DataSize::from_bytes((packets - 1 - k) * 1_000), ..sent });
    }
}

fn fate(sequence: u64, arrival_ms: Option<i64>, ecn: Ecn) -> PacketResult {
    PacketResult {
        sequence,
        departure: Timestamp::ZERO,
        arrival: arrival_ms.map(RemoteTimestamp::from_millis),
        size: DataSize::from_bytes(1_000),
        ecn,
        probe: 0,
        was_lost: false,
    }
}

#[test]
fn a_frame_is_measured_without_one_of_its_outer_packets() {
    let mut frames = SentFrames::new();
    send(&mut frames, 0, 5, 100);
    send(&mut frames, 5, 3, 140);
    for (k, at) in [(0, 130), (1, 132), (2, 134), (3, 136)] {
        frames.on_fate(&fate(k, Some(at), Ecn::NotEct));
    }
    assert!(frames.take_reported().is_none());
    frames.on_fate(&fate(4, Some(138), Ecn::NotEct));
    let frame = frames.take_reported().expect("all of it is reported");
    let (sent, received) = frame.durations(DataSize::from_bytes(1_000), 1.0).expect("a sample");
    assert!((sent - 1e-6).abs() < 1e-12 && (received - 2e-6).abs() < 1e-12, "{sent} {received}");
    // Receive durations are bounded, and frames of less than the least length tell nothing.
    assert_eq!(frame.durations(DataSize::from_bytes(1_000), 0.004).map(|d| d.1), Some(1e-6));
    assert!(frame.durations(DataSize::from_bytes(4_001), 1.0).is_none());
    // A later frame's packet ends the one before, whose missing packets are not waited for.
    frames.on_fate(&fate(5, None, Ecn::NotEct));
    send(&mut frames, 8, 2, 180);
    let frame = frames.take_before(8).expect("it ended before");
    assert_eq!((frame.lost, frame.packets), (1, 3));
    assert!(frame.durations(DataSize::ZERO, 1.0).is_none());
    assert!(frames.take_before(8).is_none());
}

#[test]
fn padding_and_repair_are_no_part_of_a_frame() {
    let mut frames = SentFrames::new();
    frames.on_queued(DataSize::from_bytes(2_000), Timestamp::ZERO);
    let sent = |k: u64, at| SentPacket::media(Timestamp::from_millis(at), k, DataSize::from_bytes(1_000));
    frames.on_sent(&SentPacket { queued: DataSize::from_bytes(1_000), ..sent(0, 0) });
    frames.on_sent(&SentPacket { is_repair: true, queued: DataSize::from_bytes(1_000), ..sent(1, 1) });
    frames.on_sent(&sent(2, 4));
    frames.on_sent(&SentPacket { is_padding: true, ..sent(3, 9) });
    for (k, at) in [(0, 10), (1, 90), (2, 18)] {
        frames.on_fate(&fate(k, Some(at), Ecn::NotEct));
    }
    let frame = frames.take_reported().expect("both media packets are reported");
    assert_eq!(frame.durations(DataSize::ZERO, 1.0), Some((0.004 / 1_000.0, 0.008 / 1_000.0)));
}

#[test]
fn losses_and_marks_decrease_the_bound_once_a_round_trip() {
    let config = Config::default();
    let frame = |at_ms, lost, marked| {
        let mut frames = SentFrames::new();
        send(&mut frames, 0, 10, at_ms);
        (0..10).for_each(|k| {
            let ecn = if k < marked { Ecn::Ce } else { Ecn::Ect1 };
            frames.on_fate(&fate(k, (k >= lost).then_some(0), ecn));
        });
        frames.take_reported().expect("reported")
    };
    let at = Timestamp::from_millis;
    let mut c = Congestion::new(50_000.0);
    c.on_frame(&config, &frame(0, 1, 0), 10_000.0, at(50));
    assert_eq!(c.size(10_000.0), 7_000.0);
    // Sent before the decrease: neither a second one nor growth.
    c.on_frame(&config, &frame(33, 1, 0), 10_000.0, at(80));
    assert_eq!(c.size(10_000.0), 7_000.0);
    c.on_frame(&config, &frame(66, 0, 0), 10_000.0, at(110));
    assert_eq!(c.size(10_000.0), 7_040.0);
    // Marks: the mean share begins at 1, and has fallen by a sixteenth of itself for three frames without any.
    let mut c = Congestion::new(50_000.0);
    c.on_frame(&config, &frame(0, 0, 10), 10_000.0, at(50));
    assert!((c.size(10_000.0) - (7_000.0)).abs() < 1e-9, "{}", c.size(10_000.0));
    c.on_frame(&config, &frame(66, 0, 0), 10_000.0, at(110));
    assert!((c.size(10_000.0) - 7_400.0).abs() < 1e-9, "{}", c.size(10_000.0));
}

#[test]
fn alone_it_takes_six_tenths_of_the_link() {
    let (c, seconds) = alone(&LINK, &[]);
    assert_between("use", mean(&seconds[20..], |s| s.received) / 4_000.0, 0.5, 0.66);
    assert_between("queue, ms", mean(&seconds[20..], |s| s.queue), 0.0, 12.0);
    assert_between("slope", metric(&c, "slope"), 0.0, 0.3);
    assert_between("frame interval, ms", metric(&c, "frame_interval_ms"), 19.9, 20.1);
    // Another share of the interval is another share of the link.
    let (_, seconds) = alone(&LINK, &[("receive_share", 0.8)]);
    assert_between("use", mean(&seconds[20..], |s| s.received) / 4_000.0, 0.68, 0.86);
}

#[test]
fn it_follows_a_link_that_falls_and_rises() {
    let link = Link { capacity: |ms| if (20_000..40_000).contains(&ms) { 2_000 } else { 6_000 }, ..LINK };
    let (_, seconds) = alone(&link, &[]);
    let at = |from: usize| mean(&seconds[from..from + 8], |s| s.target);
    assert_between("before", at(11), 2_900.0, 4_000.0);
    assert_between("fallen", at(30), 950.0, 1_350.0);
    assert_between("risen", at(51), 2_900.0, 4_000.0);
}

#[test]
fn beside_a_loss_based_flow_it_keeps_a_share_and_without_reports_it_yields() {
    let mut c: Ndtc = CALL.sender(&[]);
    let seconds = run_with(&mut c, &LINK, 60, &mut Reno::between(10_000, 60_000));
    assert_between("beside Reno", mean(&seconds[30..], |s| s.received), 400.0, 2_600.0);
    let (_, seconds) = alone(&Link { silent: (30_000, 33_000), ..LINK }, &[("min_target", 500.0)]);
    let (before, after) = (mean(&seconds[25..30], |s| s.target), seconds[32].target);
    assert!(after < 0.5 * before, "{before:.0}, {after:.0} kbit/s");
}

#[test]
fn a_source_of_single_packets_gives_no_estimate_and_no_interval() {
    let mut c: Ndtc = CALL.sender(&[]);
    let mut at = Timestamp::ZERO;
    for k in 0..2_000 {
        let size = DataSize::from_bytes(1_000);
        c.on_queue(&QueueState { now: at, added: size, queued: size, oldest_age: TimeDelta::ZERO });
        c.on_packet_sent(&SentPacket::media(at, k, size));
        let arrival = RemoteTimestamp::from_nanos(at.as_nanos());
        let packets = [PacketResult { sequence: k, departure: at, arrival: Some(arrival), ..fate(k, None, Ecn::Ect1) }];
        let feedback = TransportFeedback { now: at, packets: &packets, bytes_in_flight: DataSize::ZERO, rtt: None };
        c.on_cue(&Cue::TransportFeedback(feedback));
        at += TimeDelta::from_millis(5);
    }
    assert!(metric(&c, "capacity_bps").is_nan());
    assert!((metric(&c, "frame_interval_ms") - 1e3 / 30.0).abs() < 1e-9);
    assert_eq!(c.target().media_rate, DataRate::from_mbps(1));
}
