//! Other information in acknowledgements, and the reaction to it, by RFC 4341 and the sections of RFC 4340 that it
//! names.

use super::drive::{RTT, SIZE, plain, with};
use super::ms;
use crate::ack_vector::AckState;
use crate::ccid::ccid2::Config;
use crate::ccid::{Acknowledgement, CcidSender, Permission};
use crate::option::Options;
use crate::packet::PacketType;
use proptest::prelude::*;
use weir_units::{Ecn, Seq48, TimeDelta};
use AckState::{Marked as M, NotReceived as N, Received as R};

#[test]
fn data_dropped_in_the_receive_buffer_take_one_each() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    let n = d.sent;
    // The RFC's example of section 11.7: 0, 160, 3, 162: the second and three more of code 2.
    d.data_dropped = vec![0, 160, 3, 162];
    d.ack_runs(n, &[(R, 20)]);
    assert_eq!((d.cwnd(), d.ssthresh()), (20 + 1 - 4, Some(17)), "and slow start ends");
    // The same report again.
    d.ack_runs(n, &[(R, 20)]);
    assert_eq!(d.cwnd(), 17);
    // With a mark both are taken (section 11.7.1).
    d.fill();
    d.data_dropped = vec![0xa1];
    d.ack_runs(d.sent, &[(R, 5), (M, 1), (R, 11)]);
    assert_eq!(d.cwnd(), 17 / 2 - 2);
    for _ in 0..3 {
        d.fill();
        d.data_dropped = vec![0xaf];
        d.ack_runs(d.sent, &[(R, 10)]);
    }
    assert_eq!(d.cwnd(), 1, "not below one");
}

#[test]
fn other_drop_codes() {
    for (code, want) in [(0, 21), (1, 10), (3, 10), (4, 10), (7, 10)] {
        let mut d = with(plain()).grown_to(20);
        d.fill();
        d.data_dropped = vec![1, 0x80 | code << 4];
        d.ack_runs(d.sent, &[(R, 20)]);
        assert_eq!(d.cwnd(), want, "Drop Code {code}");
        assert!(d.ssthresh().is_some(), "slow start has ended");
    }
}

#[test]
fn a_slow_receiver_stops_growth_for_a_round_trip() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    d.now += RTT;
    d.slow_receiver = true;
    d.ack(d.sent - 10);
    let cwnd = 20;
    assert_eq!((d.cwnd(), d.ssthresh()), (cwnd, Some(cwnd)), "slow start ends");
    d.slow_receiver = false;
    d.fill();
    d.now += RTT - ms(1);
    (0..5).for_each(|i| d.ack(d.sent - 4 + i));
    assert_eq!(d.cwnd(), cwnd);
    d.now += ms(2);
    d.round();
    assert_eq!(d.cwnd(), cwnd + 1);
}

#[test]
fn virtual_recovery_waits_for_packets_of_after_the_loss() {
    let run = |virtual_recovery| {
        let mut d = with(Config { virtual_recovery, ..plain() }).grown_to(45);
        d.fill();
        let n = d.sent;
        d.ack_runs(n - 40, &[(R, 3), (N, 1)]);
        assert_eq!(d.cwnd(), 22);
        // The 40 packets that were out are acknowledged.
        (n - 39..=n).for_each(|m| d.ack_runs(m, &[(R, 1)]));
        d.cwnd()
    };
    assert_eq!((run(false), run(true)), (23, 22));
}

#[test]
fn lost_and_marked_acknowledgements_raise_ack_ratio() {
    let mut d = with(plain()).grown_to(45);
    assert_eq!(d.s.ack_ratio(), Some(2));
    // An acknowledgement of the next window is lost.
    d.round();
    d.own += 1;
    d.round();
    d.round();
    assert_eq!(d.s.ack_ratio(), Some(4));
    // A mark on a packet without data counts, one with data does not.
    (d.ack_ecn, d.ack_type) = (Ecn::Ce, PacketType::DataAck);
    d.round();
    d.round();
    assert!(d.s.ack_ratio() <= Some(4));
    d.ack_type = PacketType::Ack;
    d.round();
    d.round();
    assert!(d.s.ack_ratio() >= Some(6));
    // A loss of data bounds it by the window's half.
    d.now += TimeDelta::from_secs(1);
    d.fill();
    d.now = d.s.poll_timeout().expect("data are out");
    d.s.on_timeout(d.now);
    assert_eq!(d.s.ack_ratio(), Some(1));
    let mut d = with(Config { ack_ratio_control: false, ..plain() });
    d.round();
    assert_eq!(d.s.ack_ratio(), None);
}

#[test]
fn data_of_the_other_end_are_no_lost_acknowledgements() {
    let run = |reported: bool| {
        let mut d = with(plain()).grown_to(45);
        for _ in 0..6 {
            // A DCCP-Data takes a number before each window's acknowledgements.
            d.own += 1;
            if reported {
                d.s.on_unacknowledging_packet(d.now, Seq48::new(d.own), None);
            }
            d.round();
        }
        d.s.ack_ratio()
    };
    assert_eq!(run(true), Some(2));
    assert!(run(false) > Some(2));
}

#[test]
fn acknowledges_acknowledgements_once_a_window() {
    let mut d = with(plain());
    let mut wanted = 0;
    for _ in 0..400 {
        let first = d.sent + 1;
        while d.s.may_send(d.now, SIZE) == Permission::Now && d.sent < first + 40 {
            let wants = d.s.wants_ack_of_ack(d.now);
            wanted += u64::from(wants);
            d.send_packet(if wants { PacketType::DataAck } else { PacketType::Data }, 1_000);
        }
        d.now += RTT;
        (first..=d.sent).step_by(2).for_each(|n| d.ack((n + 1).min(d.sent)));
    }
    // Once per window of packets, and never before there is something to acknowledge.
    let windows = d.sent / u64::from(d.cwnd());
    assert!((windows..=windows * 3).contains(&wanted), "{wanted} in {windows}");
    let mut quiet = with(plain());
    (0..100).for_each(|_| quiet.send_packet(PacketType::Data, 0));
    assert!(!quiet.s.wants_ack_of_ack(quiet.now));
}

#[test]
fn bursts_are_bounded() {
    let mut d = with(Config::default());
    for _ in 0..40 {
        let first = d.sent + 1;
        let start = d.now;
        let mut at_once = 0;
        loop {
            match d.s.may_send(d.now, SIZE) {
                Permission::Now => {
                    at_once += 1;
                    d.send_packet(PacketType::Data, 1_000);
                }
                Permission::At(at) => {
                    assert!(at > d.now && at_once <= 10, "{at_once}");
                    (d.now, at_once) = (at, 0);
                }
                Permission::Blocked => break,
            }
        }
        // The whole window is sent within half a round trip.
        assert!(d.now - start <= RTT / 2 + ms(10), "{:?}", d.now - start);
        d.now = start + RTT;
        (first..=d.sent).for_each(|n| d.ack(n));
        if d.cwnd() > 100 {
            return;
        }
    }
    panic!("the window has not grown: {}", d.cwnd());
}

#[test]
fn an_end_that_only_acknowledges_keeps_nothing() {
    let mut d = with(plain());
    (0..100_000).for_each(|_| d.send_packet(PacketType::Ack, 0));
    assert_eq!((d.pipe(), d.s.poll_timeout(), d.s.history.len()), (0, None, 0));
    // With one data packet outstanding it keeps them, up to a bound.
    d.send_packet(PacketType::Data, 0);
    (0..1_000_000).for_each(|_| d.send_packet(PacketType::Ack, 0));
    assert!(d.s.history.len() <= 1 << 17);
}

#[derive(Clone, Debug)]
enum Step {
    Send(PacketType),
    Ack(u64, Vec<u8>, Vec<u8>, bool),
    Pass(i64),
    Skip(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let any_type = prop::sample::select(&PacketType::ALL[..]);
    prop_oneof![
        8 => Just(Step::Send(PacketType::Data)),
        2 => any_type.prop_map(Step::Send),
        6 => (
            0u64..60,
            prop::collection::vec(any::<u8>(), 0..12),
            prop::collection::vec(any::<u8>(), 0..3),
            any::<bool>()
        ).prop_map(|(b, v, d, s)| Step::Ack(b, v, d, s)),
        3 => (0i64..900).prop_map(Step::Pass),
        1 => (0u64..3_000).prop_map(Step::Skip),
    ]
}

proptest! {
    /// For any acknowledgements the state is consistent: pipe equals the outstanding data packets, and windows stay in
    /// bounds.
    #[test]
    fn nothing_breaks_it(steps in prop::collection::vec(step(), 1..300)) {
        let mut d = with(Config::default());
        for s in steps {
            match s {
                Step::Send(t) if t.is_data() => {
                    if d.s.may_send(d.now, SIZE) == Permission::Now {
                        d.send_packet(t, 0);
                    }
                }
                Step::Send(t) => d.send_packet(t, 0),
                Step::Ack(back, vector, dropped, slow) => {
                    d.own += 1 + back % 3;
                    d.s.on_acknowledgement(&Acknowledgement {
                        now: d.now,
                        sequence: Seq48::new(d.own),
                        packet_type: PacketType::Ack,
                        ndp_count: (back % 2 == 0).then_some(back),
                        acknowledged: Seq48::new((d.sent + 5).saturating_sub(back)),
                        ack_vector: &vector,
                        elapsed: Some(ms(back as i64)),
                        echo_rtt: None,
                        data_dropped: &dropped,
                        slow_receiver: slow,
                        ecn: Ecn::from_bits(back as u8),
                        options: Options::new(&[], PacketType::Ack),
                    });
                }
                Step::Pass(t) => {
                    d.now += ms(t);
                    if d.s.poll_timeout().is_some_and(|at| at <= d.now) {
                        d.s.on_timeout(d.now);
                    }
                }
                Step::Skip(n) => d.sent += n,
            }
            prop_assert!(d.s.poll_timeout().is_none_or(|at| at > d.now));
            prop_assert_eq!(d.s.poll_timeout().is_some(), d.pipe() > 0);
            prop_assert_eq!(d.s.history.count_out(), d.pipe());
            prop_assert!((1..=10_000).contains(&d.cwnd()));
            prop_assert!(d.ssthresh().is_none_or(|s| s >= 2));
            prop_assert!(d.s.ack_ratio().is_some_and(|r| u32::from(r) <= d.cwnd().div_ceil(2).max(2)));
        }
    }
}
