//! RFC 4340, sections 7.5.3 to 7.5.6 and 18: invalid numbers, and attackers who cannot know them.

use super::super::{Config, EndReason, State};
use super::harness::{Link, Pair, Sent, Side, config};
use crate::packet::{PacketType as T, ResetCode};
use Side::{Client as C, Server as S};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_units::{Ecn, Seq48, TimeDelta};

/// Both windows are 100, as for new connections.
fn small_windows() -> Config {
    Config { sequence_window: 100, ..config() }
}

#[test]
fn ends_recover_from_a_burst_of_losses() {
    // The first example of section 7.5.6: more is lost than the width of the window.
    let mut pair = Pair::open(small_windows(), Link::default());
    pair.run(TimeDelta::from_secs(5));
    pair.filter = |s| s.from == C;
    for _ in 0..100 {
        pair.send(C, b"lost");
        pair.run(TimeDelta::from_millis(1_010));
    }
    pair.filter = |_| false;
    pair.log.clear();
    pair.send(C, b"found");
    pair.run(TimeDelta::from_millis(90));
    assert_eq!(pair.types(), [(C, T::Data), (S, T::Sync), (C, T::SyncAck)]);
    assert_eq!(pair.log[1].ack, Some(pair.log[0].sequence));
    assert_eq!(pair.log[2].ack, Some(pair.log[1].sequence));
    assert_eq!(pair.server().sequences.gsr.get(), pair.log[2].sequence);
    // The refused packet is lost, the next is received.
    pair.send(C, b"again");
    pair.run(TimeDelta::from_millis(50));
    assert_eq!(pair.received[&S], [b"again"]);
}

#[test]
fn a_blind_attack_gets_a_sync_that_the_other_end_ignores() {
    // The second example of section 7.5.6.
    let mut pair = Pair::open(small_windows(), Link::default());
    let before = (pair.server().sequences.gsr, pair.client.sequences.gsr);
    let bytes = pair.forge(C, T::Data, Seq48::new(1_000_000), None);
    pair.deliver(S, &bytes, 0, Ecn::NotEct);
    pair.run(TimeDelta::from_millis(100));
    assert_eq!(pair.types(), [(S, T::Sync)]);
    assert_eq!(pair.log[0].ack, Some(1_000_000));
    assert_eq!((pair.server().sequences.gsr, pair.client.sequences.gsr), before);
    assert_eq!(pair.client.counters().sequence_invalid, 1);
}

#[test]
fn half_open_connections_are_found() {
    // The last example of section 7.5.6: the client has crashed and sends a Request on the same ports.
    let mut pair = Pair::open(small_windows(), Link::default());
    let crashed = Config { seed: 99, ..small_windows() };
    pair.client = super::super::Connection::connect(crashed, pair.now).expect("valid");
    pair.run(TimeDelta::from_millis(500));
    let reason = pair.server().end().map(|e| e.reason);
    assert!(matches!(reason, Some(EndReason::ResetByPeer(ResetCode::PACKET_ERROR, [8, 0, 0]))), "{reason:?}");
    assert_eq!(pair.types()[..3], [(C, T::Request), (S, T::Sync), (C, T::Reset)]);
    assert_eq!(pair.log[1].ack, Some(pair.log[0].sequence));
    // A listener would create a new end now.
    pair.server = None;
    pair.run(TimeDelta::from_secs(10));
    assert_eq!(pair.states(), (State::Open, State::Open));
}

#[test]
fn syncs_for_invalid_packets_leave_at_a_bounded_rate() {
    let mut pair = Pair::open(config(), Link::default());
    for i in 0..200u64 {
        let bytes = pair.forge(C, T::Data, Seq48::new(i << 20), None);
        pair.deliver(S, &bytes, 0, Ecn::NotEct);
        pair.run(TimeDelta::from_millis(5));
    }
    // Section 7.5.4: not more than eight a second, and a burst of eight.
    let syncs = pair.sent(S, T::Sync).len();
    assert!((8..=16).contains(&syncs), "{syncs}");
    let c = pair.server().counters();
    assert_eq!(c.sequence_invalid + c.rate_limited, 200 + 200 - syncs as u64);
    assert_eq!(c.syncs_sent, syncs as u64);
}

#[test]
fn an_invalid_reset_is_challenged_with_gsr() {
    let mut pair = Pair::open(config(), Link::default());
    let (gsr, gss) = (pair.server().sequences.gsr, pair.server().sequences.gss);
    // Valid acknowledgement, old sequence number; then vice versa.
    for (seq, ack) in [(gsr, gss), (gsr.add(1), gss.add(9))] {
        pair.log.clear();
        let bytes = pair.forge(C, T::Reset, seq, Some(ack));
        pair.deliver(S, &bytes, 0, Ecn::NotEct);
        assert_eq!((pair.types(), pair.log[0].ack), (vec![(S, T::Sync)], Some(gsr.get())));
        assert_eq!(pair.server().state(), State::Open);
    }
}

#[test]
fn invalid_syncs_are_ignored_and_valid_ones_answered() {
    let mut pair = Pair::open(config(), Link::default());
    let (gsr, gss) = (pair.server().sequences.gsr, pair.server().sequences.gss);
    pair.run(TimeDelta::from_secs(1));
    pair.log.clear();
    for t in [T::Sync, T::SyncAck] {
        for (seq, ack) in [(gsr.sub(20_000), gss), (gsr.add(1), gss.add(1))] {
            let bytes = pair.forge(C, t, seq, Some(ack));
            pair.deliver(S, &bytes, 0, Ecn::NotEct);
        }
    }
    assert!(pair.log.is_empty());
    assert_eq!(pair.server().counters().sequence_invalid, 4);
    // Far ahead on a connection that has been quiet for three round trips: valid.
    let bytes = pair.forge(C, T::Sync, gsr.add(1_000_000), Some(gss));
    pair.deliver(S, &bytes, 0, Ecn::NotEct);
    assert_eq!(pair.types(), [(S, T::SyncAck)]);
    assert_eq!(pair.log[0].ack, Some(gsr.add(1_000_000).get()));
    assert_eq!(pair.server().sequences.gsr, gsr.add(1_000_000));
    // On an active one it is not (section 7.5.3).
    let bytes = pair.forge(C, T::Sync, gsr.add(2_000_000), Some(gss));
    pair.deliver(S, &bytes, 0, Ecn::NotEct);
    assert_eq!(pair.log.len(), 1);
}

#[test]
fn packets_that_come_twice_are_given_to_the_application_once() {
    let mut pair = Pair::open(config(), Link { repeats: 1.0, ..Link::default() });
    for i in 0..50u8 {
        pair.send(C, &[i]);
        pair.run(TimeDelta::from_millis(3));
    }
    pair.run(TimeDelta::from_millis(100));
    assert_eq!(pair.received[&S], (0..50u8).map(|i| vec![i]).collect::<Vec<_>>());
    assert!(pair.server().counters().duplicates >= 50);
}

#[test]
fn other_ports_are_strangers() {
    let mut pair = Pair::open(config(), Link::default());
    let mut bytes = pair.forge(C, T::Close, Seq48::new(1), Some(Seq48::new(1)));
    bytes[1] ^= 1;
    pair.deliver(S, &bytes, 0, Ecn::NotEct);
    pair.deliver(S, &bytes[..7], 0, Ecn::NotEct);
    let c = pair.server().counters();
    assert_eq!((c.strangers, c.malformed), (1, 1));
    assert!(pair.log.is_empty());
}

#[test]
fn attackers_off_the_path_force_nothing() {
    // Section 18: packets of all types with numbers drawn blindly. Windows of 100 in 2^48 are not met.
    for quiet in [false, true] {
        let mut pair = Pair::open(small_windows(), Link::default());
        let mut random = Pcg64Mcg::seed_from_u64(3);
        if quiet {
            pair.run(TimeDelta::from_secs(10));
        }
        let before = (pair.client.sequences.gsr, pair.server().sequences.gsr);
        for i in 0..20_000 {
            let (from, t) = if i % 2 == 0 { (C, S) } else { (S, C) };
            let packet_type = T::ALL[random.random_range(0..10)];
            let (seq, ack) = (Seq48::new(random.random()), Seq48::new(random.random()));
            let bytes = pair.forge(from, packet_type, seq, Some(ack));
            pair.deliver(t, &bytes, 0, Ecn::NotEct);
            pair.run(TimeDelta::from_millis(1));
            pair.log.retain(|s| !matches!(s.packet_type, T::Sync | T::SyncAck));
        }
        assert_eq!(pair.states(), (State::Open, State::Open));
        assert!(pair.client.sequences.gsr.since(before.0) < 200 && pair.server().sequences.gsr.since(before.1) < 200);
        assert!(pair.log.is_empty(), "{:?}", pair.types());
        // And data still pass.
        pair.send(C, b"still here");
        pair.run(TimeDelta::from_secs(1));
        assert_eq!(pair.received[&S], [b"still here"]);
    }
}

#[test]
fn short_numbers_are_used_where_both_agree_and_windows_are_small() {
    let agreed = Config { short_sequence_numbers: true, ..config() };
    let mut pair = Pair::open(agreed.clone(), Link::default());
    for i in 0..100u8 {
        pair.send(C, &[i]);
        pair.run(TimeDelta::from_millis(3));
    }
    pair.run(TimeDelta::from_millis(100));
    let short = |pair: &Pair, from| {
        let all: Vec<_> = pair.log.iter().filter(|s| s.from == from && s.packet_type.may_be_short()).collect();
        (all.iter().filter(|s| s.packet().header.sequence.is_short()).count(), all.len())
    };
    let (used, all) = short(&pair, C);
    assert_eq!((used, used >= 100), (all, true));
    assert_eq!(pair.received[&S].len(), 100);
    assert_eq!(pair.client.counters().sequence_invalid + pair.server().counters().sequence_invalid, 0);
    // Not with windows that a blind attacker would meet (section 7.6.2).
    let mut pair = Pair::open(Config { sequence_window: 100_000, ..agreed }, Link::default());
    pair.send(C, b"long");
    assert_eq!(short(&pair, C), (0, 1));
    // And short numbers without negotiation are ignored (section 7.6.1).
    let mut pair = Pair::open(config(), Link::default());
    let mut bytes = vec![0x03, 0xe9, 0x07, 0xd2, 3, 0, 0, 0, (T::Data.number() << 1)];
    bytes.extend_from_slice(&pair.client.sequences.gss.add(1).get().to_be_bytes()[5..]);
    pair.deliver(S, &bytes, 0, Ecn::NotEct);
    assert_eq!((pair.server().counters().sequence_invalid, pair.log.len()), (1, 0));
}

#[test]
fn the_sequence_window_widens_with_the_packets_of_a_round_trip() {
    use crate::feature::Location::{Local, Remote};
    use crate::option::FeatureNumber as F;
    let mut pair = Pair::open(Config { sequence_window: 40, ..config() }, Link::default());
    pair.run(TimeDelta::from_secs(1));
    let windows = |pair: &mut Pair| {
        (pair.client.feature(Local, F::SEQUENCE_WINDOW), pair.server().feature(Remote, F::SEQUENCE_WINDOW))
    };
    assert_eq!(windows(&mut pair), (40, 40));
    // 4 ms apart, 40 ms round trip: ten packets per round trip, so 50 is needed.
    for i in 0..100u8 {
        pair.send(C, &[i]);
        pair.run(TimeDelta::from_millis(4));
    }
    pair.run(TimeDelta::from_millis(60));
    assert_eq!(windows(&mut pair), (64, 64));
    assert_eq!(pair.server().sequences.remote_window, 64);
    assert_eq!(pair.received[&S].len(), 100);
    // One in three seconds requests nothing more.
    for i in 0..10u8 {
        pair.send(C, &[i]);
        pair.run(TimeDelta::from_secs(3));
    }
    assert_eq!(windows(&mut pair), (64, 64));
}

#[test]
fn numbers_go_round() {
    use super::super::sequence::Sequences;
    for (iss, short) in [((1 << 48) - 5, false), ((1 << 48) - 5, true), ((7 << 24) - 5, true)] {
        let config = Config { short_sequence_numbers: short, ..config() };
        let mut pair = Pair::new(config.clone(), Link { loss: 1.0, ..Link::default() });
        pair.client = super::super::Connection::connect(config, pair.now).expect("valid");
        pair.client.sequences = Sequences::new(Seq48::new(iss));
        pair.link.loss = 0.0;
        for i in 0..200u8 {
            pair.send(C, &[i]);
            pair.run(TimeDelta::from_millis(7));
        }
        pair.run(TimeDelta::from_millis(50));
        assert_eq!(pair.received[&S].len(), 200, "{iss} {short}");
        let end = pair.client.sequences.gss;
        assert!(end.since(Seq48::new(iss)) >= 200 && end.get() & 0xff_ffff < 1_000, "{end:?}");
        let invalid = pair.client.counters().sequence_invalid + pair.server().counters().sequence_invalid;
        assert_eq!((invalid, pair.client.counters().data_lost), (0, 0));
    }
}

#[test]
fn connections_outlive_any_outage() {
    // Small windows, traffic in both directions, and outages of one or both directions that move the numbers out of
    // every window.
    let mut out_of_step = 0;
    for seed in 0..60 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let link = Link { loss: 0.05, jitter: TimeDelta::from_millis(10), repeats: 0.05, seed, ..Link::default() };
        let short_sequence_numbers = seed % 2 == 0;
        let mut pair = Pair::open(
            Config { sequence_window: 32, short_sequence_numbers, ..config() },
            Link { seed, ..Link::default() },
        );
        pair.link = link;
        for _ in 0..4 {
            let filters: [fn(&Sent) -> bool; 3] = [|s| s.from == C, |s| s.from == S, |_| true];
            pair.filter = filters[random.random_range(0..3)];
            for _ in 0..random.random_range(10..150) {
                for side in [C, S] {
                    let now = pair.now;
                    let message = crate::queue::Message { bytes: b"lost", deadline: Some(now), ..Default::default() };
                    pair.end(side).send(now, &message).ok();
                }
                pair.run(TimeDelta::from_millis(random.random_range(1..300)));
            }
            pair.filter = |_| false;
            let before = [C, S].map(|side| pair.received.get(&side).map_or(0, Vec::len));
            for _ in 0..30 {
                pair.send(C, b"found");
                pair.send(S, b"found");
                pair.run(TimeDelta::from_millis(200));
            }
            let after = [C, S].map(|side| pair.received.get(&side).map_or(0, Vec::len));
            let heard = [after[0] - before[0], after[1] - before[1]];
            assert!(heard.iter().all(|n| *n >= 20), "{seed}: {heard:?}");
            assert_eq!(pair.states(), (State::Open, State::Open), "{seed}");
        }
        out_of_step += pair.client.counters().sequence_invalid + pair.server().counters().sequence_invalid;
    }
    assert!(out_of_step > 100, "{out_of_step}: the outages were too short to matter");
}
