use super::*;
use crate::capacity::Capacity;
use crate::dscp::Dscp;
use crate::impairment::Draw;
use crate::members::{Member, Members};
use crate::queue::Room;
use crate::queue::discipline::Queue as _;
use crate::random::Random;
use crate::{DropReason, Limit};
use weir_units::{DataRate, Ecn};

/// A queue in which flows 0 to 3 are of the four classes.
fn queue(config: Config, limit: Limit) -> Queue<u32> {
    let of = |name| Member { dscp: Dscp::by_name(name).expect("a name"), ..Member::default() };
    let members = Members::new(["EF", "AF41", "DF", "LE"].map(of).to_vec());
    let room = Room::new(limit, Capacity::Constant(DataRate::from_mbps(8)));
    config.queue(Setup { room, random: Random::new(1), members })
}

fn put(q: &mut Queue<u32>, flow: u32, bytes: u32) -> Result<(), DropReason> {
    let (arrived, ecn) = (Timestamp::ZERO, Ecn::NotEct);
    let mut packet = Queued { item: flow, arrived, bytes, flow, ecn, draw: Draw::default() };
    q.admit(Timestamp::ZERO, &mut packet, &mut Ledger::default())?;
    q.put(packet);
    Ok(())
}

/// Bytes sent by each class while all have packets.
fn shares(config: Config, bytes: [u32; 4], turns: usize) -> [u64; 4] {
    let mut q = queue(config, Limit::Unlimited);
    let mut ledger = Ledger::default();
    let mut sent = [0u64; 4];
    for flow in 0..4 {
        for _ in 0..20 {
            put(&mut q, flow, bytes[flow as usize]).expect("room");
        }
    }
    for _ in 0..turns {
        let p = q.dequeue(Timestamp::ZERO, &mut ledger).expect("packets");
        sent[p.item as usize] += u64::from(p.bytes());
        put(&mut q, p.item, p.bytes()).expect("room");
    }
    sent
}

#[test]
fn classes_share_bytes_by_weight() {
    let weights = [4.0, 3.0, 2.0, 1.0];
    let config = Config { ef_weight: 4.0, af_weight: 3.0, df_weight: 2.0, le_weight: 1.0, ..Config::default() };
    for sizes in [[1_000; 4], [200, 1_500, 700, 1_500], [1_500, 60, 1_500, 100]] {
        let sent = shares(config, sizes, 200_000);
        let all: u64 = sent.iter().sum();
        for (bytes, weight) in sent.iter().zip(weights) {
            let share = *bytes as f64 / all as f64;
            assert!((share - weight / 10.0).abs() < 0.003, "{sizes:?} {sent:?}");
        }
    }
}

#[test]
fn no_class_waits_longer_than_a_round() {
    // Quanta of 4, 4, 2 and 1 full packets: between two packets of the lowest class there are ten of the others.
    let mut q = queue(Config::default(), Limit::Unlimited);
    let mut ledger = Ledger::default();
    for flow in 0..4 {
        for _ in 0..400 {
            put(&mut q, flow, 1_514).expect("room");
        }
    }
    let order: Vec<u32> = (0..110).map(|_| q.dequeue(Timestamp::ZERO, &mut ledger).expect("packets").item).collect();
    assert_eq!(order[..11], [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3]);
    assert_eq!(order[..11], order[99..]);
}

#[test]
fn an_idle_class_leaves_its_share_and_keeps_no_claim() {
    let mut q = queue(Config::default(), Limit::Unlimited);
    let mut ledger = Ledger::default();
    for _ in 0..100 {
        put(&mut q, 3, 1_514).expect("room");
    }
    assert!((0..50).all(|_| q.dequeue(Timestamp::ZERO, &mut ledger).is_some_and(|p| p.item == 3)));
    // One that comes back starts with one quantum, not with those that it has missed.
    for _ in 0..10 {
        put(&mut q, 2, 1_514).expect("room");
    }
    let order: Vec<u32> = (0..7).map(|_| q.dequeue(Timestamp::ZERO, &mut ledger).expect("packets").item).collect();
    assert_eq!(order, [2, 2, 3, 2, 2, 3, 2]);
}

#[test]
fn a_packet_larger_than_its_quantum_is_sent() {
    let mut q = queue(Config::default(), Limit::Unlimited);
    let mut ledger = Ledger::default();
    put(&mut q, 3, 9_000).expect("room");
    for _ in 0..40 {
        put(&mut q, 2, 1_000).expect("room");
    }
    let order: Vec<u32> = std::iter::from_fn(|| q.dequeue(Timestamp::ZERO, &mut ledger)).map(|p| p.item).collect();
    // Six quanta of 1,514 bytes: after five turns of three packets of the other class, or a little later.
    let place = order.iter().position(|&f| f == 3).expect("sent");
    assert!((13..=19).contains(&place) && order.len() == 41, "{place}");
    put(&mut q, 3, 9_000).expect("room");
    assert_eq!(q.dequeue(Timestamp::ZERO, &mut ledger).map(|p| p.bytes()), Some(9_000));
}

#[test]
fn each_class_has_its_own_room() {
    let mut q = queue(Config { le_room: 0.1, ..Config::default() }, Limit::Packets(40));
    let mut taken = |flow| (0..100).filter(|_| put(&mut q, flow, 1_000).is_ok()).count();
    assert_eq!([3, 2, 1, 0].map(&mut taken), [4, 10, 10, 10]);
}
