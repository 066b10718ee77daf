use super::*;
use crate::testing::link::{Link, Reno, mean, run_with};
use crate::testing::{Kbps, metric};
use weir_units::{Ecn, RemoteTimestamp};

const CALL: Kbps = Kbps { floor: 50, start: 300, ceiling: 10_000 };

/// Packets that were sent 10 ms apart and arrived after these delays in ms are reported at once, 50 ms after the last arrival.
fn report(c: &mut Copa, first: i64, delays: &[i64]) {
    report_by(5_000, c, first, delays);
}

/// The same by a receiver's clock that is ahead by so many ms.
fn report_by(clock: i64, c: &mut Copa, first: i64, delays: &[i64]) {
    let packets: Vec<_> = (0..)
        .zip(delays)
        .map(|(k, d)| PacketResult {
            sequence: (first + k) as u64,
            departure: Timestamp::from_millis(10 * (first + k)),
            arrival: Some(RemoteTimestamp::from_millis(clock + 10 * (first + k) + d)),
            size: DataSize::from_bytes(1_000),
            ecn: Ecn::NotEct,
            probe: 0,
            was_lost: false,
        })
        .collect();
    for p in &packets {
        let sent = SentPacket::media(p.departure, p.sequence, p.size);
        c.on_packet_sent(&SentPacket { bytes_in_flight: DataSize::from_bytes(1_000_000), ..sent });
    }
    let last = packets.last().expect("packets");
    let rtt = TimeDelta::from_millis(delays[delays.len() - 1] + 50);
    let f = TransportFeedback {
        now: last.departure + rtt,
        packets: &packets,
        bytes_in_flight: DataSize::ZERO,
        rtt: Some(rtt),
    };
    c.on_cue(&Cue::TransportFeedback(f));
}

#[test]
fn the_round_trip_of_each_packet_is_known_from_one_report() {
    let mut c: Copa = CALL.sender(&[]);
    report(&mut c, 0, &[30, 70, 30]);
    // 80 ms of a packet without a queue; the standing one is the least of half a round trip.
    assert_eq!(metric(&c, "standing_rtt_ms"), 80.0);
    assert_eq!(metric(&c, "queue_ms"), 0.0);
    // 300 kbit/s for 80 ms are 3 packets, and slow start adds one for each packet.
    assert_eq!(metric(&c, "window_packets"), 6.0);
    // 6 packets of 1,000 bytes in 80 ms.
    assert_eq!(c.target().media_rate, DataRate::from_kbps(600));
    assert_eq!(c.target().pacing_rate, DataRate::from_kbps(1_200));
}

#[test]
fn the_equation_decides_the_direction() {
    let mut c: Copa = CALL.sender(&[]);
    report(&mut c, 0, &[30; 5]);
    let before = metric(&c, "window_packets");
    // 8 packets x 0.5 x 40 ms > 120 ms: down. Five steps of 1 / (0.5 x window).
    assert_eq!(before, 8.0);
    report(&mut c, 20, &[70; 5]);
    let down = (0..5).fold(8.0, |w, _| w - 2.0 / w);
    assert!((metric(&c, "window_packets") - down).abs() < 1e-9, "{}", metric(&c, "window_packets"));
    assert_eq!(metric(&c, "queue_ms"), 40.0);
}

#[test]
fn a_source_that_sends_less_does_not_open_the_window() {
    let mut c: Copa = CALL.sender(&[]);
    report(&mut c, 0, &[30; 5]);
    let window = metric(&c, "window_packets");
    c.most_in_flight = DataSize::from_bytes(1_000);
    let p = |k: i64| PacketResult {
        sequence: k as u64,
        departure: Timestamp::from_millis(10 * k),
        arrival: Some(RemoteTimestamp::from_millis(5_030 + 10 * k)),
        size: DataSize::from_bytes(1_000),
        ecn: Ecn::NotEct,
        probe: 0,
        was_lost: false,
    };
    let f = TransportFeedback {
        now: Timestamp::from_millis(280),
        packets: &[p(20)],
        bytes_in_flight: DataSize::ZERO,
        rtt: Some(TimeDelta::from_millis(80)),
    };
    c.on_cue(&Cue::TransportFeedback(f));
    assert_eq!(metric(&c, "window_packets"), window);
}

#[test]
fn alone_it_uses_the_link_with_a_few_packets_of_queue() {
    for feedback in [10, 100] {
        let link = Link { feedback, is_exact: true, ..Link::DEFAULT };
        let mut c: Copa = CALL.sender(&[]);
        let seconds = run_with(&mut c, &link, 60, &mut Reno::default());
        let (rate, queue) = (mean(&seconds[20..], |s| s.received), mean(&seconds[20..], |s| s.queue));
        // 2.5 packets in the mean (section 3), 8 ms each; here with one of the encoder's frames.
        assert!(rate > 900.0 && queue > 5.0 && queue < 60.0, "{feedback} ms: {rate:.0} kbit/s, {queue:.0} ms");
        assert_eq!(metric(&c, "is_competing"), 0.0);
    }
}

#[test]
fn beside_a_flow_that_fills_the_buffer_it_competes() {
    let link =
        Link { feedback: 10, is_exact: true, capacity: |_| 4_000, buffer: 100_000, one_way: 25, ..Link::DEFAULT };
    let share = |competes: f64| {
        let mut c: Copa = CALL.sender(&[("competes", competes)]);
        let seconds = run_with(&mut c, &link, 60, &mut Reno::between(10_000, 60_000));
        mean(&seconds[30..], |s| s.received)
    };
    let (with, without) = (share(1.0), share(0.0));
    assert!(with > 2.0 * without && with > 1_000.0 && with < 3_200.0, "{with:.0} kbit/s, without {without:.0}");
}

#[test]
fn loss_alone_costs_nothing_below_the_threshold() {
    let link = Link { feedback: 10, is_exact: true, loss: 0.05, ..Link::DEFAULT };
    let mut c: Copa = CALL.sender(&[]);
    let seconds = run_with(&mut c, &link, 60, &mut Reno::default());
    let rate = mean(&seconds[20..], |s| s.received);
    assert!(rate > 800.0, "{rate:.0} kbit/s");
}

#[test]
fn media_makes_room_for_a_backlog() {
    let mut c: Copa = CALL.sender(&[]);
    report(&mut c, 0, &[30, 70, 30]);
    let with = |c: &mut Copa, backlog: u64| {
        let (added, queued) = (DataSize::from_bytes(2_000), DataSize::from_bytes(2_000 + backlog));
        c.on_queue(&QueueState { now: Timestamp::from_millis(200), added, queued, oldest_age: TimeDelta::ZERO });
        c.target().media_rate.as_kbps_f64()
    };
    // 5,000 bytes in half a second are 80 kbit/s of 600; at most half is given up.
    assert_eq!([0, 5_000, 50_000].map(|b| with(&mut c, b)), [600.0, 520.0, 300.0]);
    assert_eq!(c.target().pacing_rate, DataRate::from_kbps(1_200));
}

#[test]
fn a_receiver_with_another_clock_begins_the_measurement_again() {
    let mut c: Copa = CALL.sender(&[]);
    report(&mut c, 0, &[30; 5]);
    for (clock, first) in [(1_000, 20), (9_000, 40)] {
        report_by(clock, &mut c, first, &[30; 5]);
        assert_eq!((metric(&c, "standing_rtt_ms"), metric(&c, "queue_ms")), (80.0, 0.0), "{clock}");
    }
}
