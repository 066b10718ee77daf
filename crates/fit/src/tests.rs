//! Fits of calls made by hand: packets through a queue of a known rate.

mod statistics;

use super::*;
use weir_timeline::{Call, Direction, Observed};
use weir_units::Timestamp;

/// Header of an RTP packet.
fn header(sequence: u16, timestamp: u32) -> [u8; 12] {
    let ([s0, s1], [t0, t1, t2, t3]) = (sequence.to_be_bytes(), timestamp.to_be_bytes());
    [0x80, 96, s0, s1, t0, t1, t2, t3, 0, 0, 0, 7]
}

/// A link: its rate in bit/s at a time, its base delay in s at a time, its room in bits, and which packets it loses.
struct Link<'a> {
    rate: &'a dyn Fn(f64) -> f64,
    delay: &'a dyn Fn(f64) -> f64,
    room: f64,
    loses: &'a dyn Fn(usize) -> bool,
}

/// A sender of 1,000-byte packets at a rate in bit/s at a time, for 20 s, recorded at both ends.
fn call(sent: &dyn Fn(f64) -> f64, link: &Link<'_>) -> Call {
    call_of(sent, &|_| 1_000, &|_| 0.0, link)
}

/// The same with packets of some sizes in bytes, beside others' packets of 1,500 bytes at a rate in bit/s at a time.
fn call_of(
    sent: &dyn Fn(f64) -> f64,
    size: &dyn Fn(usize) -> usize,
    others: &dyn Fn(f64) -> f64,
    link: &Link<'_>,
) -> Call {
    let (mut sender, mut receiver) = (Observed::new("sender", None), Observed::new("receiver", None));
    let time = Timestamp::from_secs_f64;
    let (mut at, mut free, mut i) = (0.0, 0.0_f64, 0_usize);
    let (mut theirs, mut before) = (0.0, 0.0);
    while at < 20.0 {
        let bytes = header(i as u16, (at * 90_000.0) as u32);
        sender.datagram(time(at), Direction::Sent, &bytes, size(i));
        let (bits, rate) = ((size(i) + 28) as f64 * 8.0, (link.rate)(at));
        theirs += others(at) * (at - before);
        before = at;
        while theirs >= 12_000.0 {
            theirs -= 12_000.0;
            if (free - at).max(0.0) * rate + 12_000.0 <= link.room {
                free = free.max(at) + 12_000.0 / rate;
            }
        }
        let waiting = (free - at).max(0.0) * rate;
        if waiting + bits <= link.room {
            free = free.max(at) + bits / rate;
            if !(link.loses)(i) {
                receiver.datagram(time(free + (link.delay)(at)), Direction::Received, &bytes, size(i));
            }
        }
        if i % 50 == 0 {
            let report = [0x80, 201, 0, 1, 0, 0, (i >> 8) as u8, i as u8];
            receiver.datagram(time(at), Direction::Sent, &report, 8);
            sender.datagram(time(at + 0.03), Direction::Received, &report, 8);
        }
        at += 8.0 * size(i) as f64 / sent(at);
        i += 1;
    }
    Call::new(vec![sender.finish(), receiver.finish()])
}

const NONE: &dyn Fn(usize) -> bool = &|_| false;

#[test]
fn one_packet_that_is_held_back_is_one_that_is_reordered() {
    use crate::packets::Packets;
    use weir_timeline::why::{Fate, Passage, Passages};
    // 100 packets 10 ms apart; each twentieth takes 45 ms more.
    let delay = |k: usize| if k.is_multiple_of(20) { 65.0 } else { 20.0 };
    let packet = |k: usize| Passage {
        at: k as f64 * 0.01,
        size: 1_000.0,
        ssrc: 1,
        timestamp: 0,
        marker: false,
        fate: Fate::Arrived(delay(k)),
    };
    let passages = Passages { packets: (0..100).map(packet).collect(), ..Passages::default() };
    assert!((Packets::of(&passages).reordered - 0.05).abs() < 1e-9);
}

#[test]
fn a_queue_shows_the_rate_and_its_room() {
    // 1 Mbit/s with room for 40 packets; 1.3 Mbit/s are sent for 10 s of 20.
    let link = Link { rate: &|_| 1e6, delay: &|_| 0.03, room: 40.0 * 8_224.0, loses: NONE };
    let found = fit(&call(&|t| if (5.0..15.0).contains(&t) { 1.3e6 } else { 0.5e6 }, &link)).expect("a fit");
    let rates: Vec<f64> = found.capacity.served_bps.iter().flatten().copied().collect();
    assert!(rates.len() > 180, "{}", rates.len());
    assert!(rates.iter().all(|r| (r / 1e6 - 1.0).abs() < 0.01), "{rates:?}");
    let room = found.queue.limit_bytes.expect("it overflowed");
    assert!((room / (40.0 * 1_028.0) - 1.0).abs() < 0.05, "{room}");
    assert_eq!((found.queue.discipline, found.loss.by_chance), (Discipline::DropTail, 0));
    assert!(found.loss.by_queue > 300, "{:?}", found.loss);
    let rtt = found.rtt_ms.expect("answers");
    assert!((rtt - 60.0).abs() < 1.0, "{rtt}");
    assert!(found.base.len() == 1 && found.policer.is_none() && found.jitter.is_empty() && found.cross.is_empty());
}

#[test]
fn a_sender_below_the_capacity_shows_a_bound_alone() {
    let link = Link { rate: &|_| 5e6, delay: &|_| 0.03, room: 1e9, loses: NONE };
    let found = fit(&call(&|_| 0.4e6, &link)).expect("a fit");
    assert_eq!(found.capacity.known_share(), 0.0);
    assert!(found.capacity.most_bps.iter().all(Option::is_none));
    let least = found.capacity.least_bps.iter().copied().fold(0.0, f64::max);
    assert!((0.35e6..0.6e6).contains(&least), "{least}");
    assert!(found.unknown.iter().any(|u| u.starts_with("the capacity")), "{:?}", found.unknown);
    assert!(found.queue.limit_bytes.is_none());
}

#[test]
fn packets_that_found_the_link_idle_tell_its_rate() {
    // A sixth of the rate in packets of two sizes, of which none waits.
    let link = Link { rate: &|_| 3e6, delay: &|_| 0.03, room: 1e9, loses: NONE };
    let size = |i: usize| if i.is_multiple_of(3) { 400 } else { 1_000 };
    let found = fit(&call_of(&|_| 0.5e6, &size, &|_| 0.0, &link)).expect("a fit");
    let rates: Vec<f64> = found.capacity.served_bps.iter().flatten().copied().collect();
    assert!(found.capacity.known_share() > 0.95, "{}", found.capacity.known_share());
    assert!(rates.iter().all(|r| (r / 3e6 - 1.0).abs() < 0.02), "{rates:?}");
    let rtt = found.rtt_ms.expect("answers");
    assert!((rtt - 60.0).abs() < 0.5, "{rtt}");
}

#[test]
fn others_are_told_from_a_slower_link_by_neighbours_that_differ() {
    let size = |i: usize| if i.is_multiple_of(3) { 400 } else { 1_000 };
    let link = Link { rate: &|_| 2e6, delay: &|_| 0.03, room: 40.0 * 8_224.0, loses: NONE };
    let beside = |t: f64| if (8.0..14.0).contains(&t) { 1.7e6 } else { 0.0 };
    let found = fit(&call_of(&|_| 0.8e6, &size, &beside, &link)).expect("a fit");
    let [others] = &found.cross[..] else { panic!("{found:?}") };
    assert!((7.5..9.0).contains(&others.from_s) && (13.5..15.0).contains(&others.to_s), "{others:?}");
    assert!(others.elastic && (1.0e6..1.8e6).contains(&others.rate_bps), "{others:?}");
    let room = found.queue.limit_bytes.expect("it overflowed");
    assert!((room / (40.0 * 1_028.0) - 1.0).abs() < 0.1, "{room}");
    // A link that is slower in that time is no traffic of others.
    let slower = |t: f64| if (8.0..14.0).contains(&t) { 0.9e6 } else { 2e6 };
    let link = Link { rate: &slower, delay: &|_| 0.03, room: 1e9, loses: NONE };
    let found = fit(&call_of(&|_| 0.8e6, &size, &|_| 0.0, &link)).expect("a fit");
    assert!(found.cross.is_empty(), "{:?}", found.cross);
    let middle = found.capacity.served_bps[220].expect("known");
    assert!((middle / 0.9e6 - 1.0).abs() < 0.02, "{middle}");
}

#[test]
fn losses_by_chance_are_apart_from_those_of_a_queue() {
    // Every 40th packet is lost behind a queue that overflows too.
    let lost = |i: usize| i % 40 == 7;
    let link = Link { rate: &|_| 1e6, delay: &|_| 0.03, room: 40.0 * 8_224.0, loses: &lost };
    let found = fit(&call(&|t| if (8.0..12.0).contains(&t) { 1.3e6 } else { 0.8e6 }, &link)).expect("a fit");
    let share = found.loss.steps[0].share;
    assert!(found.loss.steps.len() == 1 && (0.02..0.03).contains(&share), "{:?}", found.loss);
    assert!((80..200).contains(&found.loss.by_queue), "{:?}", found.loss);
}

#[test]
fn an_outage_is_a_time_and_not_a_chance_of_each_packet() {
    // 0.8 Mbit/s in packets of 10 ms: three seconds are lost, and five times eight packets in a row.
    let lost = |i: usize| (800..1_100).contains(&i) || ((1_200..1_700).contains(&i) && i % 100 < 8);
    let link = Link { rate: &|_| 2e6, delay: &|_| 0.03, room: 1e9, loses: &lost };
    let found = fit(&call(&|_| 0.8e6, &link)).expect("a fit");
    let [outage] = &found.loss.outages[..] else { panic!("{:?}", found.loss) };
    assert!((outage.from_s - 8.0).abs() < 0.05 && (outage.to_s - 11.0).abs() < 0.05, "{outage:?}");
    assert_eq!((found.loss.by_outage, found.loss.by_chance), (300, 40), "{:?}", found.loss);
    assert!((7.9..8.1).contains(&found.loss.in_a_row), "{:?}", found.loss);
    let text = found.scenario("Fitted", &["gcc".to_owned()], None).text;
    let line = text.lines().find(|l| l.starts_with("loss.steps")).expect("steps of loss");
    assert!(line.contains("{ at = \"8.000 s\", loss = 1 }, { at = \"11.000 s\", loss = "), "{line}");
}

#[test]
fn a_policer_is_told_by_when_it_drops() {
    // A bucket of 1 Mbit/s and 20 kB over a fast line.
    let tokens = std::cell::Cell::new((160_000.0_f64, 0.0_f64));
    let rate = |t: f64| if (t as u64 / 2).is_multiple_of(2) { 1.4e6 } else { 0.9e6 };
    let at = std::cell::Cell::new(0.0);
    let dropped = |_: usize| {
        let now = at.get();
        at.set(now + 8_000.0 / rate(now));
        let (left, before) = tokens.get();
        let left = (left + 1e6 * (now - before)).min(160_000.0);
        let drops = left < 8_224.0;
        tokens.set((if drops { left } else { left - 8_224.0 }, now));
        drops
    };
    let link = Link { rate: &|_| 20e6, delay: &|_| 0.03, room: 1e9, loses: &dropped };
    let found = fit(&call(&rate, &link)).expect("a fit").policer.expect("a policer");
    assert!((found.rate_bps / 1e6 - 1.0).abs() < 0.03, "{found:?}");
    assert!((15_000.0..25_000.0).contains(&found.burst_bytes), "{found:?}");
}

#[test]
fn a_longer_path_is_no_queue() {
    let link = Link { rate: &|_| 2e6, delay: &|t| if t < 10.0 { 0.03 } else { 0.09 }, room: 1e9, loses: NONE };
    let found = fit(&call(&|_| 0.8e6, &link)).expect("a fit");
    let [_, step] = &found.base[..] else { panic!("{:?}", found.base) };
    assert!((step.more_ms - 60.0).abs() < 1.0 && (step.from_s - 10.0).abs() < 1.0, "{step:?}");
    assert_eq!(found.capacity.known_share(), 0.0);
}

#[test]
fn what_is_drawn_lies_within_the_bounds_and_is_a_scenario() {
    let link =
        Link { rate: &|t| if t < 10.0 { 1e6 } else { 0.6e6 }, delay: &|_| 0.03, room: 60.0 * 8_224.0, loses: NONE };
    let found = fit(&call(&|t| if (4.0..13.0).contains(&t) { 1.1e6 } else { 0.4e6 }, &link)).expect("a fit");
    let registry = weir_cc::Registry::builtin();
    let names = ["gcc".to_owned()];
    let likely = found.scenario("Fitted", &names, None);
    for draw in std::iter::once(None).chain((0..5).map(Some)) {
        let one = found.scenario("Fitted", &names, draw);
        assert_eq!(one, found.scenario("Fitted", &names, draw));
        assert_eq!(one == likely, draw.is_none());
        let file = one.open("fitted", &registry).expect("a scenario");
        assert_eq!(file.controllers(), &names);
    }
}

#[test]
fn padding_behind_the_first_pictures_is_no_part_of_the_start() {
    // Pictures of 1,250 bytes 30 times a second; 20 packets of a probe behind the first, and four times as much from .2 s on.
    let (mut sender, mut receiver) = (Observed::new("sender", None), Observed::new("receiver", None));
    let mut sequence = 0_u16;
    let mut both = |at: f64, stamp: u32, marker: bool, size: usize| {
        let mut bytes = header(sequence, stamp);
        bytes[1] |= if marker { 0x80 } else { 0 };
        sequence += 1;
        sender.datagram(Timestamp::from_secs_f64(at), Direction::Sent, &bytes, size);
        receiver.datagram(Timestamp::from_secs_f64(at + 0.03), Direction::Received, &bytes, size);
    };
    for k in 0..600_u32 {
        let (at, stamp) = (f64::from(k) / 30.0, k * 3_000);
        let large = if at > 0.2 { 4 } else { 1 };
        for part in 0..large {
            both(at + f64::from(part) * 1e-3, stamp, false, 1_000);
        }
        both(at + 5e-3, stamp, true, 250);
        for probe in 0..if k == 0 { 20 } else { 0 } {
            both(at + 6e-3 + f64::from(probe) * 5e-4, stamp, false, 300);
        }
    }
    let found = fit(&Call::new(vec![sender.finish(), receiver.finish()])).expect("a fit");
    assert!((found.source.start_bps / 300e3 - 1.0).abs() < 0.01, "{:?}", found.source);
}

#[test]
fn answers_that_come_late_are_a_longer_way_back() {
    let (mut sender, mut receiver) = (Observed::new("sender", None), Observed::new("receiver", None));
    let time = Timestamp::from_secs_f64;
    for i in 0..4_000_u16 {
        let at = f64::from(i) * 0.01;
        let bytes = header(i, u32::from(i) * 900);
        sender.datagram(time(at), Direction::Sent, &bytes, 500);
        receiver.datagram(time(at + 0.02), Direction::Received, &bytes, 500);
        if i % 5 == 0 {
            let report = [0x80, 201, 0, 1, 0, 0, (i >> 8) as u8, i as u8];
            receiver.datagram(time(at), Direction::Sent, &report, 8);
            sender.datagram(time(at + if at < 20.0 { 0.02 } else { 0.42 }), Direction::Received, &report, 8);
        }
    }
    let found = fit(&Call::new(vec![sender.finish(), receiver.finish()])).expect("a fit");
    let [_, late] = &found.back[..] else { panic!("{:?}", found.back) };
    assert!((late.more_ms - 400.0).abs() < 1.0 && (late.from_s - 20.0).abs() < 0.5, "{late:?}");
    assert_eq!(found.base.len(), 1);
    let text = found.scenario("Late", &["gcc".to_owned()], None).text;
    let reverse = text.split("[links.path.reverse]").nth(1).expect("a way back");
    assert!(reverse.contains("delay = \"420.0 ms\""), "{reverse}");
}

#[test]
fn a_link_that_stands_still_is_told_from_a_slow_one() {
    // 2 Mbit/s that carry nothing in the first quarter of each second from 5 to 15 s.
    let stands = |t: f64| (5.0..15.0).contains(&t) && t.fract() < 0.25;
    let (mut sender, mut receiver) = (Observed::new("sender", None), Observed::new("receiver", None));
    let mut free = 0.0_f64;
    for i in 0..2_000_u16 {
        let at = f64::from(i) * 0.01;
        let bytes = header(i, u32::from(i / 3) * 2_700);
        sender.datagram(Timestamp::from_secs_f64(at), Direction::Sent, &bytes, 1_000);
        free = free.max(at);
        if stands(free) {
            free = free.floor() + 0.25;
        }
        free += 8_224.0 / 2e6;
        receiver.datagram(Timestamp::from_secs_f64(free + 0.02), Direction::Received, &bytes, 1_000);
    }
    let found = fit(&Call::new(vec![sender.finish(), receiver.finish()])).expect("a fit");
    assert_eq!(found.stalls.len(), 10, "{:?}", found.stalls);
    for (k, s) in found.stalls.iter().enumerate() {
        let begin = 5.0 + k as f64;
        assert!((s.from_s - begin).abs() < 0.02 && (s.to_s - begin - 0.25).abs() < 0.01, "{s:?}");
    }
    assert!(found.capacity.served_bps.iter().flatten().all(|r| (r / 2e6 - 1.0).abs() < 0.02));
    assert!(found.cross.is_empty() && found.jitter.is_empty());
    let trace = found.scenario("Stalls", &["gcc".to_owned()], None).trace;
    assert!(trace.lines().filter(|l| l.ends_with(",0")).count() >= 10, "{trace}");
}

#[test]
fn jitter_that_begins_later_is_not_taken_for_capacity() {
    // Pictures of six packets over 4 Mbit/s; from 14 s on packets are held for up to 50 ms, in order.
    let (mut sender, mut receiver) = (Observed::new("sender", None), Observed::new("receiver", None));
    let time = Timestamp::from_secs_f64;
    let (mut free, mut out, mut random) = (0.0_f64, 0.0_f64, 1_u32);
    for i in 0..3_600_u16 {
        let at = f64::from(i / 6) / 30.0 + f64::from(i % 6) * 1.5e-3;
        let bytes = header(i, u32::from(i / 6) * 3_000);
        let size = if i % 3 == 0 { 400 } else { 1_000 };
        sender.datagram(time(at), Direction::Sent, &bytes, size);
        let transmission = (size + 28) as f64 * 8.0 / 4e6;
        free = free.max(at) + transmission;
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let late = if at < 14.0 { 0.0 } else { f64::from(random >> 8) / f64::from(1 << 24) * 0.05 };
        out = (free + late).max(out + transmission);
        receiver.datagram(time(out + 0.02), Direction::Received, &bytes, size);
    }
    let found = fit(&Call::new(vec![sender.finish(), receiver.finish()])).expect("a fit");
    assert!(found.jitter.iter().any(|j| j.from_s >= 10.0 && j.max_ms > 25.0), "{:?}", found.jitter);
    let least = found.capacity.served_bps.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    assert!(least > 3.5e6, "{least}");
}

/// Runs that a stop has left out would count as runs in which nothing arrived.
#[test]
fn a_stop_leaves_no_prediction_of_fewer_runs() {
    let link = Link { rate: &|_| 1e6, delay: &|_| 0.02, room: 200e3, loses: NONE };
    let found = fit(&call(&|_| 0.5e6, &link)).expect("a fit");
    let registry = weir_cc::Registry::builtin();
    let stop = std::sync::atomic::AtomicBool::new(true);
    let options = weir_lab::run::RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let answer = whatif(&found, &["gcc".into()], 3, 1, &options);
    assert!(matches!(answer, Err(WhatIfError::Run(e)) if e.to_string().contains("stopped")));
}

#[test]
fn calls_without_fates_are_refused() {
    let empty = Call::new(vec![]);
    assert_eq!(fit(&empty), Err(FitError::NoPassages));
    let mut end = Observed::new("end", None);
    for i in 0..300_u16 {
        end.datagram(Timestamp::from_millis(i64::from(i) * 20), Direction::Sent, &header(i, 0), 500);
    }
    assert_eq!(fit(&Call::new(vec![end.finish()])), Err(FitError::NoPassages));
}

#[test]
fn a_call_of_days_is_refused_and_late_arrivals_take_no_memory() {
    let time = Timestamp::from_secs_f64;
    let calls = |pause: f64, late: f64| {
        let (mut sender, mut receiver) = (Observed::new("sender", None), Observed::new("receiver", None));
        for i in 0..1_000_u16 {
            let at = f64::from(i) * 0.02 + if i < 500 { 0.0 } else { pause };
            let bytes = header(i, u32::from(i) * 1_800);
            sender.datagram(time(at), Direction::Sent, &bytes, 1_000);
            let delay = if i == 700 { late } else { 0.03 };
            receiver.datagram(time(at + delay), Direction::Received, &bytes, 1_000);
        }
        Call::new(vec![sender.finish(), receiver.finish()])
    };
    assert!(matches!(fit(&calls(30_000.0, 0.03)), Err(FitError::TooLong { hours }) if hours > 8.0));
    let found = fit(&calls(0.0, 1e7)).expect("a fit");
    assert!(found.capacity.served_bps.len() < 1_000, "{}", found.capacity.served_bps.len());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Whatever a file says of times and sizes, there is an error, or a scenario that opens.
    #[test]
    fn no_times_are_too_strange(
        rows in proptest::collection::vec((-0.5_f64..3.0, 0_u8..20, -100.0_f64..400.0, 12_usize..1_500), 300..700),
        jump in -1e6_f64..1e6,
    ) {
        let (mut sender, mut receiver) = (Observed::new("sender", None), Observed::new("receiver", None));
        let time = Timestamp::from_secs_f64;
        let mut at = 1e6;
        for (i, (pause, fate, delay, size)) in rows.into_iter().enumerate() {
            at += if i == 250 && fate == 0 { jump } else { pause * 0.04 };
            let bytes = header(i as u16, (at * 90_000.0) as u32);
            sender.datagram(time(at), Direction::Sent, &bytes, size);
            let delay = if fate == 2 { delay * 1e3 } else { delay.max(0.0) };
            if fate > 1 {
                receiver.datagram(time(at + delay * 1e-3), Direction::Received, &bytes, size);
            }
        }
        let call = Call::new(vec![sender.finish(), receiver.finish()]);
        for found in [fit(&call), fit_by_seconds(&call)].into_iter().flatten() {
            let registry = weir_cc::Registry::builtin();
            for draw in [None, Some(1)] {
                let text = found.scenario("Strange", &["gcc".to_owned()], draw);
                let opened = text.open("strange", &registry);
                proptest::prop_assert!(opened.is_ok(), "{opened:?}\n{}", text.text);
            }
        }
    }
}

#[test]
fn changes_are_in_the_scenario_and_leave_what_is_drawn() {
    let link = Link { rate: &|_| 1e6, delay: &|_| 0.02, room: 200e3, loses: NONE };
    let fit = fit(&call(&|at| if at < 10.0 { 1.2e6 } else { 0.5e6 }, &link)).expect("a fit");
    let changes = Changes::new([
        ("ceiling", "3Mbps"),
        ("floor", "200kbps"),
        ("start", "100kbps"),
        ("fps", "15"),
        ("audio", "32kbps"),
        ("repair", "nack"),
        ("queue", "codel"),
        ("extra-delay", "50ms"),
        ("deadline", "200ms"),
        ("reverse-loss", "1%"),
    ]);
    let changes = changes.expect("changes");
    let registry = weir_cc::Registry::builtin();
    for draw in [None, Some(0), Some(7)] {
        let plain = fit.scenario("x", &["gcc".into()], draw);
        let changed = fit.changed_scenario("x", &["gcc".into()], draw, &changes);
        assert_eq!(plain.trace, changed.trace);
        let half = fit.rtt_ms.unwrap_or(60.0) / 2.0;
        for part in [
            "ceiling = \"3000000 bps\"".to_owned(),
            "floor = \"200000 bps\"".into(),
            "start_rate = \"200000 bps\"".into(),
            "fps = 15".into(),
            "[rtp.audio]".into(),
            "error_resilience = [\"nack\"]".into(),
            "discipline = \"codel\"".into(),
            format!("delay = \"{:.1} ms\"", half + 50.0),
            format!("playout_deadline = \"{:.0} ms\"", half + 250.0),
            "loss = 0.0100".into(),
        ] {
            assert!(changed.text.contains(&part), "{part}: {}", changed.text);
        }
        changed.open("x", &registry).expect("a scenario");
        let none = fit.changed_scenario("x", &["gcc".into()], draw, &Changes::default());
        assert_eq!(none, plain);
    }
}
