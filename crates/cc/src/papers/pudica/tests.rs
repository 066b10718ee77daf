use super::bitrate::Bitrate;
use super::equations::{Sample, draining, increase, pace, probe_delay, smoothed, step, utilisation, weight};
use super::probing::Measured;
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

fn config() -> Config {
    Config::default()
}

#[test]
fn utilisation_and_pace_are_equations_1_and_2() {
    near(utilisation(0.020, 0.010, 1.0 / 60.0), 0.6);
    near(utilisation(0.009, 0.010, 1.0 / 60.0), 0.0);
    near(pace(&config(), 0.5, 12.5), 2.5);
    near(pace(&config(), 3.0, 12.5), 1.25);
    near(pace(&config(), 0.0, 12.5), 12.5);
}

#[test]
fn a_probe_counts_for_its_queue_the_frame_and_the_spacing_whichever_is_least() {
    near(probe_delay(3e-3, 5e-3, 2e-3), 2e-3);
    near(probe_delay(1e-3, 5e-3, 2e-3), 1e-3);
    near(probe_delay(3e-3, 0.5e-3, 2e-3), 0.5e-3);
    near(probe_delay(-1e-3, 5e-3, 2e-3), 0.0);
}

#[test]
fn the_smoothed_utilisation_has_the_weights_of_appendix_b() {
    let sample = |utilisation, mbps: f64| Sample { utilisation, bps: mbps * 1e6 };
    // 1.5 · 20 · 21, 2 · 50 · 22.
    near(weight(&sample(0.5, 10.0), 1), 630.0);
    near(weight(&sample(1.4, 90.0), 2), 2_200.0);
    // At 20 Mbit/s: (630 · 0.5 · 2 + 2200 · 1.4 · 20/90) / 2830.
    let both = [sample(0.5, 10.0), sample(1.4, 90.0)];
    near(smoothed(both.into_iter(), 20e6).expect("samples"), (630.0 + 2_200.0 * 1.4 * 2.0 / 9.0) / 2_830.0);
    assert!(smoothed([].into_iter(), 20e6).is_none());
}

#[test]
fn increases_are_equations_8_and_10() {
    // 0.3 · (0.925 - 0.5) / 0.5.
    near(increase(&config(), 0.5), 0.255);
    near(increase(&config(), 0.85), 0.3 * 0.075 / 0.85);
    // At most a doubling.
    near(increase(&config(), 0.01), 1.0);
    near(increase(&config(), 0.0), 1.0);
    // I = (50 + 2 · 10 / ln 25) · 0.025; A = I - 1.25, and at most a quarter of the bitrate.
    near(step(&config(), 25e6, 50e6, 0), 0.0);
    near(step(&config(), 25e6, 50e6, 10), 20.0 / libm::log(25.0) * 0.025 * 1e6);
    near(step(&config(), 25e6, 50e6, 100_000), 6.25e6);
    near(step(&config(), 2e6, 50e6, 0), 0.5e6);
    near(step(&config(), 10e6, 50e6, 0), 0.75e6);
    // The higher rate of two gains less: 40 Mbit/s loses 0.05 · 40 - 1.25 Mbit/s.
    near(step(&config(), 40e6, 50e6, 0), -0.75e6);
}

#[test]
fn draining_is_equation_11() {
    // 0.85 · 10 Mbit/s, less 25,000 bytes in 200 ms: 1 Mbit/s.
    near(draining(&config(), 10e6, 25_000.0), 7.5e6);
}

/// A frame of 60 a second, received at 8 Mbit/s.
fn frame(k: i64, utilisation: f64) -> Measured {
    Measured {
        queued_at: Timestamp::from_micros(16_667 * k),
        arrival: Some(RemoteTimestamp::from_nanos(16_666_667 * k + 20_000_000)),
        sent: 16_667,
        received: 16_667,
        interval: 1.0 / 60.0,
        utilisation,
    }
}

#[test]
fn one_frame_above_one_takes_from_the_next_frame_alone_and_three_drain() {
    let (c, at) = (config(), |k: i64| Timestamp::from_micros(16_667 * k + 30_000));
    let mut b = Bitrate::new(8e6, Timestamp::ZERO);
    b.on_frame(&c, &frame(0, 1.2), |_| 0.0, 50e6, at(0));
    near(b.next(&c), 0.85 * 8e6);
    b.on_encoded(false);
    near(b.next(&c), 8e6);
    // Two more: 0.85 of what has been received since the frame before, less the queue of 10,000 bytes in 200 ms.
    b.on_frame(&c, &frame(1, 1.3), |_| 0.0, 50e6, at(1));
    b.on_frame(&c, &frame(2, 1.4), |r| r * 10_000.0 / r, 50e6, at(2));
    assert!(b.is_draining());
    let received = 2.0 * 16_667.0 * 8.0 / (2.0 * 0.016_666_667);
    near(b.next(&c), 0.85 * received - 400_000.0);
    // Below one the rate received in the window is restored in one step: three frames after the first.
    b.on_frame(&c, &frame(3, 0.9), |_| 0.0, 50e6, at(3));
    assert!(!b.is_draining());
    near(b.next(&c), 3.0 * 16_667.0 * 8.0 / (3.0 * 0.016_666_667));
}

#[test]
fn an_increase_waits_for_a_frame_of_the_new_bitrate() {
    let (c, at) = (config(), |k: i64| Timestamp::from_micros(16_667 * k + 30_000));
    let mut b = Bitrate::new(8e6, Timestamp::ZERO);
    b.on_frame(&c, &frame(0, 0.5), |_| 0.0, 50e6, at(0));
    let first = b.next(&c);
    assert_between("after one", first / 8e6, 1.2, 1.3);
    // Encoded before the increase, at 30 ms.
    b.on_frame(&c, &frame(1, 0.5), |_| 0.0, 50e6, at(1));
    near(b.next(&c), first);
    b.on_frame(&c, &frame(2, 0.5), |_| 0.0, 50e6, at(2));
    assert!(b.next(&c) > first);
}

#[test]
fn losses_count_as_use_and_above_one_by_losses_there_is_no_increase() {
    let c = config();
    let mut b = Bitrate::new(8e6, Timestamp::ZERO);
    // Half of each frame is lost: 0.6 of the link for 4 of 8 Mbit/s.
    let lossy = Measured { received: 8_333, ..frame(1, 0.6) };
    b.on_frame(&c, &lossy, |_| 0.0, 50e6, Timestamp::from_millis(50));
    near((b.smoothed().expect("a sample") * 1e3).round(), 1_200.0);
    near(b.next(&c), 0.95 * 8e6);
    // Above one without losses: (50 + 2 / ln 8) · 0.025 - 0.4 Mbit/s, of which the count of frames is zero there.
    let mut full = Bitrate::new(8e6, Timestamp::ZERO);
    full.on_frame(
        &c,
        &Measured { received: 15_000, sent: 15_000, ..frame(1, 0.99) },
        |_| 0.0,
        50e6,
        Timestamp::from_millis(50),
    );
    assert!(full.smoothed().is_some_and(|r| r > 1.0));
    near(full.next(&c), 8e6 + 0.85e6);
    // A frame of which nothing arrives is one above one, and no sample.
    let gone = Measured { arrival: None, received: 0, utilisation: f64::INFINITY, ..frame(4, 0.0) };
    b.on_frame(&c, &gone, |_| 0.0, 50e6, Timestamp::from_millis(90));
    near(b.next(&c), 0.95 * 0.85 * 8e6);
    assert!(b.smoothed().is_some_and(f64::is_finite));
}

/// A controller that has sent one frame of `packets` of 1,000 bytes at `at_ms`, one each millisecond.
fn send(c: &mut Pudica, first: u64, packets: u64, at_ms: i64) {
    let kilobytes = |n: u64| DataSize::from_bytes(1_000 * n);
    let now = Timestamp::from_millis(at_ms);
    c.on_queue(&QueueState { now, added: kilobytes(packets), queued: kilobytes(packets), oldest_age: TimeDelta::ZERO });
    for k in 0..packets {
        let sent = SentPacket::media(Timestamp::from_millis(at_ms + k as i64), first + k, kilobytes(1));
        c.on_packet_sent(&SentPacket { queued: kilobytes(packets - 1 - k), ..sent });
    }
}

/// A report of packets by number, departure and arrival in ms.
fn report(c: &mut Pudica, now_ms: i64, packets: &[(u64, i64, i64)]) {
    let packets = packets.iter().map(|&(sequence, departure, arrival)| PacketResult {
        sequence,
        departure: Timestamp::from_millis(departure),
        arrival: Some(RemoteTimestamp::from_millis(arrival)),
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
        rtt: Some(TimeDelta::from_millis(20)),
    };
    c.on_cue(&Cue::TransportFeedback(f));
}

#[test]
fn probes_follow_a_frame_and_what_they_wait_adds_to_its_utilisation() {
    let mut c: Pudica = CALL.sender(&[("probe_share", 1.0)]);
    // Five packets in 4 ms; the least delay is 10 ms, the frame's 14 ms. 1/30 s less 4 ms in five parts.
    send(&mut c, 0, 5, 100);
    let (at, reason) = c.poll_timeout().expect("a probe");
    assert_eq!(reason, TimeoutReason::Probe);
    near(((at - Timestamp::from_millis(104)).as_secs_f64() * 1e6).round(), 5_867.0);
    for k in 0..4 {
        let (at, _) = c.poll_timeout().expect("a probe");
        c.on_timeout(at);
        let probe = c.poll_probe(at).expect("due");
        assert_eq!((probe.min_packets, probe.min_size), (1, DataSize::ZERO));
        let sent = SentPacket::media(at, 5 + k, DataSize::from_bytes(21));
        c.on_packet_sent(&SentPacket { is_padding: true, probe: probe.id, ..sent });
        assert!(c.poll_probe(at).is_none());
    }
    assert!(c.poll_timeout().is_some_and(|(_, reason)| reason == TimeoutReason::FeedbackMissing));
    report(&mut c, 120, &[(0, 100, 110), (1, 101, 111), (2, 102, 112), (3, 103, 113), (4, 104, 114)]);
    assert!(metric(&c, "utilisation").is_nan(), "it waits for the probes");
    // One has waited 3 ms, two not at all, and one 8 ms of which the spacing of 5.87 ms counts: (4 + 3 + 5.87) ms of 33.3.
    let departures = [109, 115, 121, 127];
    let waits = [3, 0, 0, 8];
    let probes: Vec<_> = (0..4).map(|k| (5 + k as u64, departures[k], departures[k] + 10 + waits[k])).collect();
    report(&mut c, 150, &probes);
    let spacing = (100.0 / 3.0 - 4.0) / 5.0;
    let wanted = (4.0 + 3.0 + spacing) / (100.0 / 3.0);
    assert!((metric(&c, "utilisation") - wanted).abs() < 1e-6, "{} {wanted}", metric(&c, "utilisation"));
}

#[test]
fn single_packets_count_as_frames_only_where_there_are_no_others() {
    let mut c: Pudica = CALL.sender(&[]);
    for k in 0..100 {
        send(&mut c, k, 1, 4 * k as i64);
        // A queue of 5 ms from the fiftieth on.
        report(&mut c, 4 * k as i64 + 20, &[(k, 4 * k as i64, 4 * k as i64 + if k < 50 { 10 } else { 15 })]);
    }
    // Five packets of 4 ms are the first 20 ms that are no less than a sixtieth of a second.
    near(metric(&c, "frame_interval_ms"), 20.0);
    near(metric(&c, "utilisation"), 0.25);
    assert!(c.poll_timeout().is_none_or(|(_, reason)| reason != TimeoutReason::Probe));
    let mut c: Pudica = CALL.sender(&[]);
    for k in 0..100 {
        let at = 40 * k as i64;
        send(&mut c, 5 * k, 4, at);
        send(&mut c, 5 * k + 4, 1, at + 20);
        let at_and_ten = |n: i64| (5 * k + n as u64, at + n, at + n + 10);
        report(
            &mut c,
            at + 30,
            &[at_and_ten(0), at_and_ten(1), at_and_ten(2), at_and_ten(3), (5 * k + 4, at + 20, at + 60)],
        );
    }
    assert_between("interval of the frames, ms", metric(&c, "frame_interval_ms"), 39.9, 40.1);
    // Three milliseconds of 40, and not the fifty of the packets between.
    assert_between("utilisation, %", 100.0 * metric(&c, "utilisation"), 7.4, 7.6);
}

#[test]
fn alone_it_fills_the_link_with_little_queue() {
    let mut c: Pudica = CALL.sender(&[]);
    let seconds = run_with(&mut c, &LINK, 60, &mut Reno::default());
    assert_between("use", mean(&seconds[10..], |s| s.received) / 8_000.0, 0.75, 1.0);
    // A frame of a fiftieth of a second is queued for half of that in the mean.
    assert_between("queue, ms", mean(&seconds[10..], |s| s.queue), 0.5, 15.0);
    assert!(
        seconds[10..].iter().all(|s| s.max_queue < 60.0),
        "{:?}",
        seconds.iter().map(|s| s.max_queue).collect::<Vec<_>>()
    );
    assert!(seconds[20].padded > 100, "{}", seconds[20].padded);
}

#[test]
fn it_follows_a_link_that_falls_and_rises() {
    let link = Link { capacity: |ms| if (20_000..40_000).contains(&ms) { 3_000 } else { 10_000 }, ..LINK };
    let mut c: Pudica = CALL.sender(&[]);
    let seconds = run_with(&mut c, &link, 60, &mut Reno::default());
    let at = |from: usize| mean(&seconds[from..from + 8], |s| s.received);
    assert_between("before", at(11), 7_500.0, 10_000.0);
    assert_between("fallen", at(30), 2_200.0, 3_000.0);
    assert_between("risen", at(51), 7_500.0, 10_000.0);
    assert_between("queue a second after the fall, ms", seconds[21].queue, 0.0, 40.0);
}

#[test]
fn without_reports_it_yields() {
    let mut c: Pudica = CALL.sender(&[]);
    let seconds = run_with(&mut c, &Link { silent: (30_000, 33_000), ..LINK }, 60, &mut Reno::default());
    let (before, after) = (mean(&seconds[25..30], |s| s.target), seconds[32].target);
    assert!(after < 0.2 * before && after > 0.0, "{before:.0}, {after:.0} kbit/s");
    assert_between("afterwards", mean(&seconds[40..], |s| s.received) / 8_000.0, 0.7, 1.0);
    assert!(kbps(&c) <= 20_000.0);
}
