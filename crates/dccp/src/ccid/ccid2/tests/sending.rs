//! The window, packet by packet, by the text of RFC 4341.

use super::drive::{Drive, RTT, SIZE, plain, with};
use super::{ms, setup};
use crate::ack_vector::AckState;
use crate::ccid::ccid2::window::Window;
use crate::ccid::ccid2::{Acked, Config, Reno, Sender};
use crate::ccid::{CcidSender, Permission, Setup};
use crate::packet::PacketType;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
use AckState::{Marked as M, NotReceived as N, Received as R};

#[test]
fn the_initial_window_is_rfc_3390s() {
    for (size, want) in [(100, 4), (1_095, 4), (1_096, 3), (1_460, 3), (2_189, 2), (2_190, 2), (9_000, 2), (0, 4)] {
        let setup = Setup { max_packet_size: DataSize::from_bytes(size), ..setup() };
        let s = Sender::new(&setup, plain(), Reno::default());
        assert_eq!(Drive { s, ..with(plain()) }.cwnd(), want, "{size}");
    }
}

#[test]
fn the_window_keeps_its_bound() {
    let mut d = with(Config { max_window: 50, ..plain() });
    (0..20).for_each(|_| d.round());
    assert_eq!(d.cwnd(), 50);
}

#[test]
fn data_leave_while_pipe_is_below_the_window() {
    let mut d = with(plain());
    assert_eq!((d.fill(), d.pipe()), (4, 4));
    assert_eq!(d.s.may_send(d.now, SIZE), Permission::Blocked);
    // Acknowledgements are neither held back nor counted.
    d.send_packet(PacketType::Ack, 0);
    assert_eq!(d.pipe(), 4);
    // The same acknowledgement twice is one.
    d.ack(2);
    d.ack(2);
    assert_eq!((d.pipe(), d.cwnd()), (2, 5));
}

#[test]
fn slow_start_grows_by_one_for_two() {
    let mut d = with(plain());
    let mut seen = Vec::new();
    for _ in 0..7 {
        d.round();
        seen.push(d.cwnd());
    }
    // Half of each window, the odd packet carried over to the next: 4 + 2, 6 + 3, 9 + 4, 13 + (13 + 1) / 2, ...
    assert_eq!(seen, [6, 9, 13, 20, 30, 45, 67]);
}

#[test]
fn slow_start_grows_by_half_the_ack_ratio_at_most_an_acknowledgement() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    let before = d.cwnd();
    d.ack(d.sent);
    assert_eq!(d.cwnd(), before + 1, "Ack Ratio 2");
    let mut w = Window::new(&plain(), &setup(), Reno::default());
    for (packets, ack_ratio, want) in [(20, 8, 4), (5, 8, 2), (1, 8, 1), (1, 8, 0), (6, 5, 2), (1, 1, 0), (9, 1, 1)] {
        let before = w.get();
        w.grow(&Acked { now: Timestamp::ZERO, packets, srtt: RTT }, ack_ratio);
        assert_eq!(w.get() - before, want, "{packets} with Ack Ratio {ack_ratio}");
    }
}

#[test]
fn congestion_avoidance_grows_by_one_a_window() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    let n = d.sent;
    d.ack_runs(n, &[(R, 3), (N, 1), (R, n - 4)]);
    assert_eq!((d.cwnd(), d.ssthresh()), (10, Some(10)));
    for want in 11..40 {
        d.round();
        assert_eq!(d.cwnd(), want);
    }
}

#[test]
fn three_later_packets_make_a_loss_and_a_window_is_halved_once() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    let first = d.sent - 19;
    // First and sixth are lost. Two later ones are not enough.
    d.ack_runs(first + 2, &[(R, 2), (N, 1)]);
    assert_eq!((d.cwnd(), d.pipe()), (21, 18));
    d.ack_runs(first + 3, &[(R, 3), (N, 1)]);
    assert_eq!((d.cwnd(), d.ssthresh(), d.pipe(), d.metric("losses")), (10, Some(10), 16, Some(1.0)));
    // The sixth was sent before: the same event. Only its pipe changes.
    d.ack_runs(first + 8, &[(R, 3), (N, 1), (R, 4), (N, 1)]);
    assert_eq!((d.cwnd(), d.pipe(), d.metric("losses")), (10, 11, Some(2.0)));
    // Lost packets received late change nothing.
    d.ack_runs(first + 8, &[(R, 9)]);
    assert_eq!((d.cwnd(), d.pipe()), (10, 11));
    // One sent now is another event.
    d.ack(first + 13);
    let sent = d.sent;
    assert!(d.fill() > 0);
    let n = d.sent + 3;
    while d.sent < n {
        d.send_packet(PacketType::Data, 0);
    }
    let before = d.cwnd();
    d.ack_runs(n, &[(R, n - sent - 1), (N, 1), (R, 19)]);
    assert_eq!(d.cwnd(), before / 2);
}

#[test]
fn packets_without_data_behind_a_hole_count() {
    let mut d = with(plain());
    d.fill();
    (0..3).for_each(|_| d.send_packet(PacketType::Ack, 0));
    d.ack_runs(6, &[(R, 2), (N, 1), (R, 3)]);
    assert_eq!((d.cwnd(), d.pipe()), (5, 1));
    d.ack_runs(7, &[(R, 3), (N, 1), (R, 3)]);
    assert_eq!((d.cwnd(), d.pipe(), d.metric("losses")), (2, 0, Some(1.0)));
}

#[test]
fn the_window_is_halved_down_to_one() {
    let mut d = with(plain());
    for (want, ssthresh) in [(2, 2), (1, 2), (1, 2)] {
        d.fill();
        let n = d.sent;
        d.ack_runs(n, &[(M, 1)]);
        assert_eq!((d.cwnd(), d.ssthresh()), (want, Some(ssthresh)));
        // All outstanding packets before the next.
        d.ack_runs(n, &[(R, n)]);
    }
}

#[test]
fn a_mark_is_a_loss_of_a_received_packet() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    let n = d.sent;
    d.ack_runs(n - 10, &[(R, 3), (M, 2), (R, 5)]);
    assert_eq!((d.cwnd(), d.pipe(), d.metric("marks"), d.metric("losses")), (10, 10, Some(2.0), Some(0.0)));
    // The same window.
    d.ack_runs(n, &[(M, 10), (R, 3)]);
    assert_eq!((d.cwnd(), d.pipe()), (10, 0));
    // Marked packets do not count towards growth.
    d.fill();
    let n = d.sent;
    d.ack_runs(n - 1, &[(R, 9)]);
    assert_eq!(d.cwnd(), 10);
    d.ack_runs(n, &[(M, 1)]);
    assert_eq!(d.cwnd(), 5);
}

#[test]
fn a_timeout_leaves_one_packet() {
    let mut d = with(plain()).grown_to(20);
    let start = d.now;
    d.fill();
    let n = d.sent;
    // SRTT 100 ms with little deviation: the minimum of 200 ms.
    assert_eq!(d.s.poll_timeout(), Some(start + ms(200)));
    d.now = start + ms(199);
    d.s.on_timeout(d.now);
    assert_eq!(d.cwnd(), 20, "not yet");
    for (k, ssthresh) in [(1, 10), (2, 2), (4, 2)] {
        d.now = d.s.poll_timeout().expect("data are out");
        d.s.on_timeout(d.now);
        assert_eq!((d.cwnd(), d.ssthresh(), d.pipe()), (1, Some(ssthresh), 0));
        assert_eq!(d.s.poll_timeout(), None);
        assert_eq!(d.fill(), 1);
        assert_eq!(d.s.poll_timeout(), Some(d.now + ms(400 * k)), "doubled");
    }
    assert_eq!(d.metric("losses"), Some(22.0));
    // Packets assumed lost arrive after all and count for nothing.
    d.ack_runs(n, &[(R, 20)]);
    assert_eq!((d.cwnd(), d.pipe()), (1, 1));
    // A round-trip time ends the back-off, and slow start leads to the threshold of 2.
    d.now += RTT;
    d.ack(d.sent);
    d.round();
    assert_eq!(d.cwnd(), 2);
    d.fill();
    assert!(d.s.poll_timeout().is_some_and(|t| t - d.now <= ms(400)));
}

#[test]
fn the_timeout_counts_from_the_last_news() {
    let mut d = with(plain()).grown_to(20);
    let start = d.now;
    d.fill();
    d.now = start + ms(150);
    d.ack(d.sent - 5);
    let first = d.s.poll_timeout().expect("data are out");
    assert!(first >= d.now + ms(200), "{first:?}");
    // An acknowledgement without news does not count.
    d.now = start + ms(180);
    d.ack(d.sent - 5);
    assert_eq!(d.s.poll_timeout(), Some(first));
    d.ack(d.sent);
    assert_eq!(d.s.poll_timeout(), None);
}

#[test]
fn round_trip_times_are_taken_once_a_window_less_the_time_held() {
    let mut d = with(plain());
    d.fill();
    d.now += ms(150);
    d.elapsed = Some(ms(50));
    d.ack(2);
    assert_eq!(d.s.rtt(), Some(ms(100)));
    // The rest of the window brings no sample; the next window does: 7/8 * 100 + 1/8 * 180.
    d.now += ms(500);
    d.ack(4);
    assert_eq!(d.s.rtt(), Some(ms(100)));
    d.fill();
    d.now += ms(180);
    d.elapsed = None;
    d.ack(d.sent);
    assert_eq!(d.s.rtt(), Some(ms(110)));
    assert_eq!(d.s.rate(), Some(DataRate::from_bps(u64::from(d.cwnd()) * 8_000 * 1_000 / 110)));
}

#[test]
fn an_idle_sender_loses_half_for_every_timeout() {
    let mut d = with(plain()).grown_to(40);
    let before = d.cwnd();
    let timeout = ms(200);
    d.now += timeout * 2 + ms(1) - RTT;
    d.send_packet(PacketType::Data, 0);
    // Packets were sent one RTT before the last acknowledgement, so twice the timeout has passed.
    assert_eq!((d.cwnd(), d.ssthresh()), (before / 4, None));
    d.ack(d.sent);
    d.now += TimeDelta::from_secs(100);
    d.send_packet(PacketType::Data, 0);
    assert_eq!(d.cwnd(), 4, "not below the initial window");
    let mut d = with(Config { window_validation: false, ..plain() }).grown_to(40);
    d.now += TimeDelta::from_secs(100);
    d.send_packet(PacketType::Data, 0);
    assert!(d.cwnd() >= 40);
}

#[test]
fn a_window_that_is_not_used_does_not_grow_and_shrinks() {
    let mut d = with(plain()).grown_to(40);
    let before = d.cwnd();
    let mut seen = vec![before];
    // Ten packets per round trip.
    while d.cwnd() > 10 {
        (0..10).for_each(|i| d.send_packet(PacketType::Data, 9 - i));
        d.now += RTT;
        d.ack(d.sent);
        if *seen.last().expect("one") != d.cwnd() {
            seen.push(d.cwnd());
        }
    }
    // RFC 2861: half way to the ten used, per timeout of 200 ms.
    let want: Vec<u32> = std::iter::successors(Some(before), |&w| Some((w + 10) / 2)).take(seen.len()).collect();
    assert_eq!(seen, want);
    assert_eq!(d.now - Timestamp::ZERO < TimeDelta::from_secs(4), d.ssthresh().is_none());
}
