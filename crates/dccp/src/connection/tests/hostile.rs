//! A peer that knows all numbers and sends anything: nothing panics, hangs or sends endlessly.

use super::super::{Config, State};
use super::harness::{Link, Pair, Side, config};
use crate::packet::{PacketType as T, parse};
use Side::{Client as C, Server as S};
use proptest::prelude::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_units::{Ecn, Seq48, TimeDelta};

/// Options that are mostly well-formed: numbers that exist, lengths that fit, data of any kind.
fn options(random: &mut Pcg64Mcg) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.random_range(0..6) {
        let number = match random.random_range(0..10) {
            0 => random.random(),
            1 => random.random_range(0..3),
            2 => random.random_range(192..195),
            _ => random.random_range(32..45),
        };
        bytes.push(number);
        if number >= 32 {
            let len = match number {
                32..=35 => random.random_range(1..9),
                37 => random.random_range(1..7),
                41 | 44 => 4,
                42 => 4 + 2 * random.random_range(0..3),
                43 => 2 + 2 * random.random_range(0..2),
                _ => random.random_range(0..40),
            };
            bytes.push(if random.random_bool(0.05) { random.random() } else { len + 2 });
            let mut data = vec![0; usize::from(len)];
            random.fill_bytes(&mut data);
            if (32..36).contains(&number) {
                data[0] = random.random_range(0..12);
            }
            bytes.extend_from_slice(&data);
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Numbers as the peer would have them, or near, or far.
fn near(random: &mut Pcg64Mcg, number: Seq48) -> Seq48 {
    match random.random_range(0..8) {
        0 => Seq48::new(random.random()),
        1 => number.sub(random.random_range(0..200)),
        2 => number.add(random.random_range(0..200)),
        _ => number,
    }
}

fn attack(seed: u64, packets: u32, client: Config) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut pair = Pair::new(client, Link { delay: TimeDelta::from_millis(5), ..Link::default() });
    pair.run(TimeDelta::from_millis(random.random_range(0..40)));
    let target = if pair.server.is_some() && random.random_bool(0.5) { S } else { C };
    for _ in 0..packets {
        let (gsr, gss) = {
            let end = pair.end(target);
            (end.sequences.gsr, end.sequences.gss)
        };
        // Mostly packets that do not end the connection at once.
        let packet_type = if random.random_bool(0.9) {
            [T::Data, T::Ack, T::DataAck, T::DataAck, T::Sync, T::SyncAck][random.random_range(0..6)]
        } else {
            T::ALL[random.random_range(0..10)]
        };
        let (sequence, ack) = (near(&mut random, gsr.next()), near(&mut random, gss));
        let mut bytes = pair.forge(target.other(), packet_type, sequence, Some(ack));
        bytes.extend_from_slice(&options(&mut random));
        bytes[4] = (bytes.len() / 4).min(255) as u8;
        let mut data = vec![0; random.random_range(0..60)];
        random.fill_bytes(&mut data);
        bytes.extend_from_slice(&data);
        if random.random_bool(0.1) {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
        let ecn = Ecn::from_bits(random.random());
        let before = pair.log.len();
        pair.deliver(target, &bytes, random.random_range(0..2) * 700, ecn);
        let answers = pair.log.len() - before;
        assert!(answers <= 16, "{answers} answers to one packet");
        let now = pair.now;
        let end = pair.end(target);
        // Deadlines that have passed are dealt with by one call.
        if end.poll_timeout(now).is_some_and(|t| t <= now) {
            end.handle_timeout(now);
            let late = end.poll_timeout(now).filter(|t| *t < now);
            assert_eq!(late, None, "{:?}", end.state());
        }
        if random.random_bool(0.2) {
            let message = crate::queue::Message { bytes: b"data", ..Default::default() };
            pair.end(target).send(now, &message).ok();
        }
        pair.run(TimeDelta::from_micros(random.random_range(0..20_000)));
        pair.log.clear();
        if pair.end(target).state() == State::Closed {
            break;
        }
    }
    // It ends in bounded time after any input.
    let now = pair.now;
    pair.client.close(now);
    pair.run(TimeDelta::from_secs(1_500));
    assert_eq!(pair.client.state(), State::Closed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn a_hostile_peer_breaks_nothing(seed: u64, ccid in prop::sample::select(vec![super::harness::TEST_CCID, 2, 3, 4, 5])) {
        let mut config = config();
        if config.registry.get(ccid).is_some() {
            config.ccids = super::super::Ccids::both(ccid);
        }
        attack(seed, 150, Config { short_sequence_numbers: seed % 2 == 0, data_checksum: seed % 3 == 0, ..config });
    }

    #[test]
    fn bytes_of_any_kind_break_nothing(bytes in prop::collection::vec(any::<u8>(), 0..100), payload in 0u32..3_000) {
        let mut pair = Pair::new(config(), Link::default());
        pair.run(TimeDelta::from_millis(100));
        for side in [C, S] {
            pair.deliver(side, &bytes, payload, Ecn::Ce);
        }
        prop_assert!(pair.client.state() == State::Open || parse(&bytes, payload).is_ok());
    }
}
