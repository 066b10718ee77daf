use super::equations::{sample, step};
use super::*;
use crate::cue::PacketResult;
use crate::testing::link::{Link, Reno, assert_between, mean, run_with};
use crate::testing::{Kbps, kbps, metric};
use weir_units::{Ecn, RemoteTimestamp};

const CALL: Kbps = Kbps { floor: 50, start: 1_000, ceiling: 20_000 };
const LINK: Link = Link { feedback: 10, is_exact: true, one_way: 10, capacity: |_| 8_000, ..Link::DEFAULT };

fn near(got: f64, wanted: f64) {
    assert!((got - wanted).abs() < 1e-9 * wanted.abs().max(1.0), "{got} is not {wanted}");
}

#[test]
fn a_frame_on_an_idle_link_finds_its_capacity_whatever_its_size() {
    // 8 Mbit/s at 50 frames a second: F_max is 160 kbit, 16 ms of 10 Mbit/s.
    let most = 16e6;
    near(sample(160e3, 160e3, 0.016, 0.016, most), 10e6);
    near(sample(160e3, 40e3, 0.004, 0.004, most), 10e6);
    near(sample(160e3, 320e3, 0.032, 0.032, most), 10e6);
    // 10 ms of queue before a frame of half the size: 160 kbit in 10 + 16 ms.
    near(sample(160e3, 80e3, 0.018, 0.008, most), 160e3 / 0.026);
    // Without a wait, and with a least delay from after the frame.
    near(sample(160e3, 160e3, 0.010, 0.010, most), most);
    near(sample(160e3, 160e3, 0.0, 0.010, most), most);
    near(sample(160e3, 160e3, -0.1, 0.010, most), most);
}

#[test]
fn the_step_is_none_at_the_target_and_that_of_the_defaults_elsewhere() {
    let c = Config::default();
    near(step(&c, 9e6, 10e6), 0.0);
    // T S / B = 1.8: 320 · (0.25 · 0.8 + 1 - 1 / 1.8) kbit/s.
    near(step(&c, 5e6, 10e6), 320e3 * (0.2 + 1.0 - 1.0 / 1.8));
    // T S / B = 0.45: 320 · (-0.25 · 0.55 - (1 / 0.45 - 1)) kbit/s: more than twice as much down as up.
    near(step(&c, 20e6, 10e6), 320e3 * (-0.1375 - (1.0 / 0.45 - 1.0)));
    // T S = B, r = 0: what a queue costs, alone.
    near(step(&Config { reward: 0.0, ..c }, 10e6, 10e6), 320e3 * (1.0 - 1.0 / 0.9));
}

#[test]
fn beside_traffic_that_fills_the_rest_the_fixed_point_follows_from_m_and_t() {
    // Others at C - B stretch a train at m B to m B C / (m B + C - B), so that B = C (m T - 1) / (m - 1).
    let fixed = |c: &Config| {
        let (capacity, mut bandwidth) = (20e6, 5e6);
        for _ in 0..20_000 {
            let train = c.pacing * bandwidth;
            let arriving = train + capacity - bandwidth;
            bandwidth += step(c, bandwidth, train * (capacity / arriving).min(1.0));
        }
        bandwidth / capacity
    };
    let c = Config::default();
    assert!((fixed(&c) - 0.8).abs() < 1e-6, "{}", fixed(&c));
    let slower = Config { pacing: 1.5, ..c };
    assert!((fixed(&slower) - 0.7).abs() < 1e-6, "{}", fixed(&slower));
}

/// A frame of packets of 1,000 bytes from `at_ms` on, one each millisecond.
fn send(c: &mut Sqp, first: u64, packets: u64, at_ms: i64) {
    let kilobytes = |n: u64| DataSize::from_bytes(1_000 * n);
    let now = Timestamp::from_millis(at_ms);
    c.on_queue(&QueueState { now, added: kilobytes(packets), queued: kilobytes(packets), oldest_age: TimeDelta::ZERO });
    for k in 0..packets {
        let sent = SentPacket::media(Timestamp::from_millis(at_ms + k as i64), first + k, kilobytes(1));
        c.on_packet_sent(&SentPacket { queued: kilobytes(packets - 1 - k), ..sent });
    }
}

/// A report of packets by number, departure and arrival in ms.
fn report(c: &mut Sqp, now_ms: i64, rtt_ms: i64, packets: &[(u64, i64, Option<i64>)]) {
    let packets = packets.iter().map(|&(sequence, departure, arrival)| PacketResult {
        sequence,
        departure: Timestamp::from_millis(departure),
        arrival: arrival.map(RemoteTimestamp::from_millis),
        size: DataSize::from_bytes(1_000),
        ecn: Ecn::NotEct,
        probe: 0,
        was_lost: false,
    });
    let packets: Vec<_> = packets.collect();
    let f = TransportFeedback {
        now: Timestamp::from_millis(now_ms),
        packets: &packets,
        bytes_in_flight: DataSize::ZERO,
        rtt: Some(TimeDelta::from_millis(rtt_ms)),
    };
    c.on_cue(&Cue::TransportFeedback(f));
}

#[test]
fn a_frame_is_a_sample_of_what_arrived_from_its_first_departure_on() {
    let mut c: Sqp = CALL.sender(&[]);
    // Four packets in 3 ms, which the link spreads over 12: F_max is 1 Mbit/s for 1/30 s, F is 32 kbit.
    send(&mut c, 0, 4, 100);
    report(&mut c, 130, 100, &[(0, 100, Some(110)), (1, 101, Some(114)), (2, 102, Some(118)), (3, 103, Some(122))]);
    let gamma = 1e6 / 30.0 / 32e3;
    let wanted = 1e6 / 30.0 / (0.012 + 0.012 * (gamma - 1.0));
    // More than m · B.
    assert!(wanted > 2e6, "{wanted}");
    near(metric(&c, "sample_bps"), 2e6);
    near(metric(&c, "bandwidth_bps"), 1e6 + step(&Config::default(), 1e6, 2e6));
    // The next one waits 30 ms, and loses its second packet: F is 24 kbit.
    let bandwidth = metric(&c, "bandwidth_bps");
    send(&mut c, 4, 4, 133);
    report(&mut c, 190, 100, &[(4, 133, Some(173)), (5, 134, None), (6, 135, Some(177)), (7, 136, Some(183))]);
    let interval = metric(&c, "frame_interval_ms") / 1e3;
    let gamma = bandwidth * interval / 24e3;
    let wanted = bandwidth * interval / (0.040 + 0.010 * (gamma - 1.0));
    near(metric(&c, "sample_bps"), wanted);
    assert!(metric(&c, "bandwidth_bps") < bandwidth);
    assert_eq!(c.target().pacing_rate.as_bps() / c.target().media_rate.as_bps(), 2);
}

#[test]
fn the_least_delay_is_of_two_smoothed_round_trips() {
    let mut c: Sqp = CALL.sender(&[]);
    // A frame each 50 ms of 16 kbit in 8 ms. Returns its sample over the bitrate before.
    let mut at = |k: i64, wait: i64, rtt: i64| {
        let (first, from, before) = (2 * k as u64, 50 * k, metric(&c, "bandwidth_bps"));
        send(&mut c, first, 2, from);
        report(
            &mut c,
            from + 60,
            rtt,
            &[(first, from, Some(from + wait)), (first + 1, from + 1, Some(from + wait + 8))],
        );
        (metric(&c, "sample_bps") / before, metric(&c, "least_delay_window_ms"))
    };
    let (idle, window) = at(0, 10, 100);
    assert!(idle > 1.5, "{idle}");
    near(window, 200.0);
    // 30 ms more from now on: a queue, as long as a packet of before is within 200 ms.
    for k in 1..=4 {
        let (queued, _) = at(k, 40, 100);
        assert!(queued < 0.9, "{queued}");
    }
    at(5, 40, 100);
    let (settled, _) = at(6, 40, 100);
    assert!(settled > 1.5, "{settled}");
    // Longer round trips smoothen: 100 + (180 - 100) / 8.
    near(at(7, 40, 180).1, 220.0);
}

#[test]
fn a_frame_of_which_nothing_arrives_and_silence_lower_the_rate() {
    let mut c: Sqp = CALL.sender(&[]);
    send(&mut c, 0, 2, 100);
    report(&mut c, 130, 20, &[(0, 100, None), (1, 101, None)]);
    near(metric(&c, "bandwidth_bps"), 1e6 + step(&Config::default(), 1e6, 0.5e6));
    let before = metric(&c, "bandwidth_bps");
    send(&mut c, 2, 2, 200);
    let (at, _) = c.poll_timeout().expect("silence");
    assert_eq!(at, Timestamp::from_millis(700));
    c.on_timeout(at);
    near(metric(&c, "bandwidth_bps"), before / 2.0);
}

#[test]
fn alone_it_takes_nine_tenths_of_the_link() {
    let mut c: Sqp = CALL.sender(&[]);
    let seconds = run_with(&mut c, &LINK, 60, &mut Reno::default());
    assert_between("use", mean(&seconds[10..], |s| s.received) / 8_000.0, 0.82, 0.95);
    assert_between("queue, ms", mean(&seconds[10..], |s| s.queue), 0.5, 10.0);
    assert!(seconds[10..].iter().all(|s| s.max_queue < 25.0), "a frame of a fiftieth of a second at most");
}

#[test]
fn a_source_that_makes_half_does_not_change_what_is_found() {
    let mut c: Sqp = CALL.sender(&[]);
    let seconds = run_with(&mut c, &Link { encoder: |_| 0.5, ..LINK }, 60, &mut Reno::default());
    assert_between("target", mean(&seconds[10..], |s| s.target) / 8_000.0, 0.8, 1.1);
}

#[test]
fn it_follows_a_link_that_falls_and_rises() {
    let link = Link { capacity: |ms| if (20_000..40_000).contains(&ms) { 3_000 } else { 10_000 }, ..LINK };
    let mut c: Sqp = CALL.sender(&[]);
    let seconds = run_with(&mut c, &link, 60, &mut Reno::default());
    let at = |from: usize| mean(&seconds[from..from + 8], |s| s.received);
    assert_between("before", at(11), 8_000.0, 9_500.0);
    // The least delay has a packet's transmission in it: a frame of seven packets finds seven sixths of the capacity.
    assert_between("fallen", at(30), 2_700.0, 3_000.0);
    assert_between("risen", at(45), 8_000.0, 9_500.0);
    assert_between("queue a second after the fall, ms", seconds[21].queue, 0.0, 40.0);
}

#[test]
fn beside_a_flow_that_fills_the_queue_it_keeps_a_share() {
    let link = Link { buffer: 100_000, ..LINK };
    let mut c: Sqp = CALL.sender(&[]);
    let seconds = run_with(&mut c, &link, 90, &mut Reno::between(30_000, 90_000));
    assert_between("share", mean(&seconds[50..], |s| s.received) / 8_000.0, 0.3, 0.9);
}

#[test]
fn single_packets_are_held_by_their_delay() {
    let mut c: Sqp = CALL.sender(&[]);
    for k in 0..2_000u64 {
        let at = 4 * k as i64;
        send(&mut c, k, 1, at);
        // A queue of 40 ms from the thousandth on.
        report(&mut c, at + 20, 20, &[(k, at, Some(at + if k < 1_000 { 10 } else { 50 }))]);
        if k == 999 {
            assert_eq!(kbps(&c), 20_000.0, "nothing waits: up to the ceiling");
            near(metric(&c, "frame_interval_ms"), 20.0);
        }
    }
    assert!(kbps(&c) < 1_000.0, "{}", kbps(&c));
}

#[test]
fn without_reports_it_yields() {
    let mut c: Sqp = CALL.sender(&[]);
    let seconds = run_with(&mut c, &Link { silent: (30_000, 33_000), ..LINK }, 60, &mut Reno::default());
    let (before, after) = (mean(&seconds[25..30], |s| s.target), seconds[32].target);
    assert!(after < 0.2 * before && after > 0.0, "{before:.0}, {after:.0} kbit/s");
    assert_between("afterwards", mean(&seconds[40..], |s| s.received) / 8_000.0, 0.7, 1.0);
}
