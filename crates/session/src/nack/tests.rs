use super::*;
use proptest::prelude::*;
use weir_wire::rtcp::{Packet, parse_compound};

fn ms(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}

fn at(sequence: u64, deadline: Timestamp) -> Arrived {
    Arrived { sequence, deadline, marker: true }
}

fn nacker(rtt: i64) -> Nacker {
    let mut n = Nacker::new(NackConfig::default(), DataRate::from_mbps(2), ms(0));
    n.on_rtt(TimeDelta::from_millis(rtt));
    n
}

/// The packets requested at this time.
fn asked(n: &mut Nacker, now: Timestamp) -> Vec<u16> {
    if !n.prepare(now) {
        return vec![];
    }
    let mut out = vec![];
    n.write(FeedbackSsrcs { sender: 7, media: 9 }, now, &mut out);
    let Some(Ok(Packet::Nack(nack))) = parse_compound(&out).next() else { panic!("{out:?}") };
    assert_eq!((nack.sender_ssrc, nack.media_ssrc), (7, 9));
    nack.sequences().collect()
}

#[test]
fn a_gap_is_asked_for_after_three_packets_or_some_time_and_then_every_round_trip() {
    let mut n = nacker(100);
    for s in [65_534u64, 65_537] {
        n.on_packet(ms(0), at(s, ms(1_000)));
    }
    assert_eq!(n.missing(), [65_535, 65_536]);
    // Two packets after the second, but one after the first would be too few.
    assert_eq!(asked(&mut n, ms(0)), []);
    n.on_packet(ms(2), at(65_538, ms(1_000)));
    assert_eq!(asked(&mut n, ms(2)), [65_535]);
    assert_eq!(n.poll_timeout(), Some(ms(10)));
    assert_eq!(asked(&mut n, ms(10)), [0]);
    // 100 ms and 10 ms of slack.
    assert_eq!(n.poll_timeout(), Some(ms(112)));
    assert_eq!(asked(&mut n, ms(111)), []);
    assert_eq!(asked(&mut n, ms(112)), [65_535]);
    n.on_packet(ms(113), at(65_536, ms(1_000)));
    assert!(n.on_retransmission(ms(114), 65_535) && !n.on_retransmission(ms(114), 65_535));
    assert_eq!((asked(&mut n, ms(500)), n.poll_timeout()), (vec![], None));
    let c = n.counters;
    assert_eq!((c.missing, c.reordered, c.nacks, c.requested, c.given_up), (2, 1, 3, 3, 0));
}

#[test]
fn over_two_paths_a_packet_is_missing_once_both_are_beyond_it() {
    let mut n = nacker(50);
    n.on_path(ms(0), 1, 0);
    let mut receive = |path, s: u64, time| {
        n.on_path(ms(time), path, s);
        n.on_packet(ms(time), at(s, ms(1_000)));
        asked(&mut n, ms(time))
    };
    // Odd packets take the slower path, 30 ms behind; 5 is lost there.
    for s in [0, 2, 4] {
        assert_eq!(receive(0, s, s as i64 * 5), []);
    }
    assert_eq!(receive(1, 1, 35), []);
    assert_eq!(receive(0, 8, 40), []);
    assert_eq!(receive(1, 3, 45), []);
    assert_eq!(receive(0, 10, 50), []);
    // 6 was to arrive on the first path, and the second is beyond 5.
    assert_eq!(receive(1, 7, 65), [5, 6]);
    // The second path falls silent: what is missing is requested after a while.
    assert_eq!(receive(0, 12, 70), []);
    assert_eq!(receive(0, 14, 140), [5, 6]);
    assert_eq!(receive(0, 16, 164), []);
    assert_eq!(receive(0, 18, 166), [9, 11, 13, 15]);
}

#[test]
fn nothing_is_asked_for_that_would_come_too_late() {
    for (deadline, requests) in [(109, 0), (110, 1), (219, 1), (220, 2), (330, 3)] {
        let mut n = nacker(100);
        n.on_packet(ms(0), at(1_000, ms(deadline)));
        n.on_packet(ms(0), at(1_002, ms(deadline)));
        let mut count = 0;
        for t in 0..1_000 {
            count += asked(&mut n, ms(t)).len();
        }
        assert_eq!((count, n.counters.given_up, n.missing().len()), (requests, 1, 0), "{deadline}");
    }
}

#[test]
fn missing_packets_have_the_deadline_of_their_frame() {
    let mut n = nacker(100);
    let mut at = 1_000;
    let mut add = |n: &mut Nacker, gap: u64, deadline, marker| {
        at += 1 + gap;
        n.on_packet(ms(0), Arrived { sequence: at, deadline: ms(deadline), marker });
        n.missing.drain(..).map(|m| (m.deadline - ms(0)).as_millis()).collect::<Vec<_>>()
    };
    // Frames of two packets, 40 ms apart.
    assert_eq!(add(&mut n, 0, 400, false), []);
    assert_eq!(add(&mut n, 0, 400, true), []);
    assert_eq!(add(&mut n, 0, 440, false), []);
    // The frame's end, its beginning, and a packet between two of a frame.
    assert_eq!(add(&mut n, 1, 480, true), [440]);
    assert_eq!(add(&mut n, 1, 520, false), [520]);
    assert_eq!(add(&mut n, 1, 520, true), [520]);
    // Two whole frames.
    assert_eq!(add(&mut n, 2, 640, true), [560, 600]);
}

#[test]
fn repair_packets_have_their_chance_first() {
    let mut n = nacker(20);
    let deadline = ms(1_000);
    // Repair packets 20 ms apart.
    for i in 0..10 {
        n.on_packet(ms(i * 20), at(1_000 + i as u64, deadline));
        n.on_repair(ms(i * 20), 1_000 + i as u64);
    }
    n.on_packet(ms(190), at(1_014, deadline));
    assert_eq!(asked(&mut n, ms(209)), []);
    // It covers what is missing, and did not recover all of it.
    n.on_repair(ms(210), 1_012);
    n.on_repaired(ms(210), at(1_010, deadline));
    assert_eq!(asked(&mut n, ms(210)), [1_011, 1_012]);
    // No repair packet covers the last: the wait is at most twice their interval.
    assert_eq!(asked(&mut n, ms(228)), []);
    let asked_at = (211..400).find(|&t| asked(&mut n, ms(t)).contains(&1_013));
    assert!(asked_at.is_some_and(|t| (229..=260).contains(&t)), "{asked_at:?}");
    // Without time for it there is no wait.
    n.on_packet(ms(400), at(1_015, deadline));
    n.on_packet(ms(400), at(1_020, ms(431)));
    let all = asked(&mut n, ms(401));
    assert_eq!(all.into_iter().filter(|&s| s > 1_013).collect::<Vec<_>>(), [1_016, 1_017]);
    assert_eq!(n.counters.repaired, 1);
}

#[test]
fn messages_keep_inside_the_bandwidth_of_rtcp() {
    let mut n = Nacker::new(NackConfig::default(), DataRate::from_kbps(100), ms(0));
    let (mut bytes, mut messages) = (0, 0);
    for t in 0..10_000 {
        n.on_packet(ms(t), at(1_000 + t as u64 * 2, ms(t + 300)));
        let requested = n.counters.requested;
        asked(&mut n, ms(t));
        if n.counters.requested > requested {
            messages += 1;
            bytes += 12 + n.entries.len() * 4;
        }
        assert!(n.entries.len() <= MAX_IN_MESSAGE && n.missing().len() <= 1_000);
    }
    // 5 kbit/s for 10 s is 6,250 bytes.
    assert!((5_000..7_200).contains(&bytes), "{bytes} in {messages}");
}

proptest! {
    /// For arbitrary input memory is bounded, time advances, and every missing packet is accounted for once.
    #[test]
    fn anything_may_come(steps in proptest::collection::vec((0u8..5, 0u64..5_000, 0i64..60), 1..300), max in 1usize..50) {
        let config = NackConfig { max_packets: max, ..NackConfig::default() };
        let mut n = Nacker::new(config, DataRate::from_mbps(1), ms(0));
        let (mut now, mut high) = (ms(0), 70_000u64);
        for (what, step, wait) in steps {
            now += TimeDelta::from_millis(wait);
            match what {
                0 => n.on_repair(now, high.saturating_sub(step % 50)),
                1 => n.on_repaired(now, at(high.saturating_sub(step % 50), now)),
                2 => n.counters.recovered += u64::from(n.on_retransmission(now, high.saturating_sub(step % 50))),
                3 => n.on_packet(now, at(high.saturating_sub(step), now + TimeDelta::from_millis(200))),
                _ => {
                    high += step % 40 * (step % 97);
                    n.on_packet(now, at(high, now + TimeDelta::from_millis(200)));
                }
            }
            if n.prepare(now) {
                let mut out = vec![];
                n.write(FeedbackSsrcs { sender: 1, media: 2 }, now, &mut out);
                prop_assert!(out.len() <= 12 + MAX_IN_MESSAGE * 4);
            }
            prop_assert!(n.poll_timeout().is_none_or(|at| at > now), "time stands still");
            let c = n.counters;
            let settled = c.reordered + c.repaired + c.recovered + c.given_up;
            prop_assert!(n.missing().len() <= max && n.missing().is_sorted());
            prop_assert_eq!(settled + n.missing().len() as u64, c.missing);
        }
    }
}

#[test]
fn chromium_asks_at_once_and_again_by_a_timer() {
    let mut n = nacker(40);
    n.behave_as(ReceiverModel::Chromium);
    n.on_packet(ms(0), at(10, ms(60_000)));
    n.on_packet(ms(1), at(12, ms(60_000)));
    // One packet later, without waiting for reordered ones.
    assert_eq!(asked(&mut n, ms(1)), [11]);
    // A round trip later is 41 ms: the look at 60 ms, on a tick of 15.625 ms.
    assert_eq!(n.poll_timeout(), Some(ms(0) + TimeDelta::from_micros(46_875)));
    assert_eq!((asked(&mut n, ms(46)), asked(&mut n, ms(47))), (vec![], vec![11]));
    // It goes on long after Weir's own limit of ten requests.
    let requests = (48..2_000).filter(|t| !asked(&mut n, ms(*t)).is_empty()).count();
    assert!((35..=48).contains(&requests), "{requests}");
}
