use super::*;
use crate::dscp::Dscp;
use crate::link::Link;
use crate::members::{Member, Members};
use crate::packet::{Delivery, Departure, Packet, Verdict};
use crate::queue::Discipline;
use crate::{Limit, LinkConfig};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta};

/// 8 Mbit/s, so that 1,000 bytes take a millisecond; flows 0 to 3 are of the four classes.
fn link(config: Config, limit: Limit) -> Link<u32> {
    let of = |name| Member { dscp: Dscp::by_name(name).expect("a name"), ..Member::default() };
    let mut c = LinkConfig::constant(DataRate::from_mbps(8), TimeDelta::ZERO);
    (c.limit, c.discipline) = (limit, Discipline::StrictPriority(config));
    c.members = Members::new(["EF", "AF41", "DF", "LE"].map(of).to_vec());
    Link::new(&c, 1).expect("valid")
}

fn push(link: &mut Link<u32>, at_ms: i64, flow: u32) -> Verdict<u32> {
    let packet = Packet { item: flow, size: DataSize::from_bytes(1_000), ecn: Ecn::NotEct, flow };
    link.push(Timestamp::from_millis(at_ms), packet)
}

fn drain(link: &mut Link<u32>) -> Vec<Delivery<u32>> {
    let mut all = vec![];
    while let Some(at) = link.next_event() {
        all.extend(std::iter::from_fn(|| link.pop(at)).filter_map(|d| match d {
            Departure::Delivered(d) => Some(d),
            Departure::Dropped(_) => None,
        }));
    }
    all
}

#[test]
fn the_highest_class_goes_first_and_waits_for_one_packet_at_most() {
    let mut l = link(Config::default(), Limit::Unlimited);
    for flow in [3, 3, 2, 1, 0, 2, 0] {
        assert_eq!(push(&mut l, 0, flow), Verdict::Queued);
    }
    let order: Vec<_> = drain(&mut l).iter().map(|d| d.item).collect();
    // The first is in transmission when the others arrive.
    assert_eq!(order, [3, 0, 0, 1, 2, 2, 3]);
}

#[test]
fn each_class_has_its_own_room() {
    let mut l = link(Config { le_room: 0.1, ..Config::default() }, Limit::Packets(40));
    let taken = |l: &mut Link<u32>, flow| (0..100).filter(|_| push(l, 0, flow) == Verdict::Queued).count();
    // One more is in transmission. A flood of lower effort leaves the others their room.
    assert_eq!(taken(&mut l, 3), 4 + 1);
    assert_eq!([2, 1, 0].map(|flow| taken(&mut l, flow)), [10, 10, 10]);
    assert_eq!(l.stats().dropped_queue.packets, 400 - 35);
}

#[test]
fn the_expedited_class_keeps_to_its_share_and_others_are_not_starved() {
    // EF at twice the capacity, limited to a quarter of it; default traffic at the capacity.
    let mut l = link(Config { ef_share: 0.25, ..Config::default() }, Limit::Packets(40));
    let mut sent = [0u32; 4];
    for ms in 0..10_000 {
        for flow in [0, 0, 2] {
            let _ = push(&mut l, ms, flow);
        }
        while let Some(at) = l.next_event().filter(|&at| at <= Timestamp::from_millis(ms)) {
            while let Some(d) = l.pop(at) {
                if let Departure::Delivered(d) = d {
                    sent[d.item as usize] += 1;
                }
            }
        }
    }
    // 2,500 and the burst of 15 packets; the rest goes to the others.
    assert!((2_495..=2_520).contains(&sent[0]), "{sent:?}");
    assert!((7_470..=7_510).contains(&sent[2]), "{sent:?}");
    assert!(l.stats().dropped_policer.packets > 17_000, "{:?}", l.stats());
    // Without a limit nothing is left for them.
    let mut l = link(Config::default(), Limit::Packets(40));
    let mut default = 0;
    for ms in 0..1_000 {
        for flow in [0, 0, 2] {
            let _ = push(&mut l, ms, flow);
        }
        while let Some(d) = l.pop(Timestamp::from_millis(ms)) {
            default += u32::from(matches!(d, Departure::Delivered(d) if d.item == 2));
        }
    }
    assert!(default <= 1, "{default}");
}
