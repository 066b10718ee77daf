//! TCP over a link with each queue discipline, compared with drop tail.

use super::common::{minute, network, sender};
use super::*;
use crate::udp;

/// A bulk flow's result on a link in a minute, after 20 s to settle.
#[derive(Debug)]
struct Run {
    /// Share of the capacity used by data.
    share: f64,
    /// Queueing delay of an arriving packet in ms, sampled every 10 ms: the mean, and the 95th percentile.
    mean_wait: f64,
    p95_wait: f64,
    dropped_aqm: u64,
    dropped_queue: u64,
    marked: u64,
    sender: SenderStats,
}

fn run(discipline: Discipline, mbps: u64, variant: Variant, ecn: bool) -> Run {
    let rate = DataRate::from_mbps(mbps);
    // A round trip of 80 ms, and a second of queue.
    let reverse = LinkConfig::constant(rate, TimeDelta::from_millis(40));
    let forward = LinkConfig { limit: Limit::Time(TimeDelta::from_secs(1)), discipline, ..reverse.clone() };
    let ecn = if ecn { variant.with_ecn() } else { variant.ecn() };
    let config = TcpConfig { ecn, ..TcpConfig::of(variant) };
    let (mut sim, link, pairs) = network(5, forward, reverse, &[(config, Workload::Bulk, 0)]);
    let minute = minute(&mut sim, link, rate, &pairs);
    let stats = sim.link(link).stats();
    Run {
        share: minute.shares[0],
        mean_wait: minute.waits.iter().sum::<f64>() / minute.waits.len() as f64,
        p95_wait: minute.percentile(95),
        dropped_aqm: stats.dropped_aqm.packets,
        dropped_queue: stats.dropped_queue.packets,
        marked: stats.marked.packets,
        sender: sender(&sim, pairs[0].0).stats(),
    }
}

const CODEL: Discipline = Discipline::CoDel(codel::Config {
    target: TimeDelta::from_millis(5),
    interval: TimeDelta::from_millis(100),
    ecn: true,
});

#[test]
fn codel_keeps_the_queue_near_its_target_and_the_link_busy() {
    // A single flow that halves its window (NewReno) or reduces it to 0.7 (CUBIC) with an almost empty queue uses at
    // least the mean of a sawtooth, 3/4 and 0.85 of the link (RFC 8289, section 3.2).
    for (variant, share) in [(Variant::NewReno, 0.75..0.9), (Variant::Cubic, 0.85..0.97)] {
        let r = run(CODEL, 10, variant, false);
        assert!(share.contains(&r.share), "{variant:?}: {r:?}");
        assert!((0.5..5.0).contains(&r.mean_wait) && (2.0..15.0).contains(&r.p95_wait), "{variant:?}: {r:?}");
        // A sawtooth of about 35 round trips of 80 ms, in 80 s.
        assert!((15..50).contains(&r.dropped_aqm) && r.dropped_queue == 0, "{variant:?}: {r:?}");
        assert_eq!((r.marked, r.sender.timeouts), (0, 0), "{variant:?}: {r:?}");
    }
    let tail = run(Discipline::default(), 10, Variant::NewReno, false);
    assert!(tail.share > 0.99 && (500.0..1_000.0).contains(&tail.mean_wait), "{tail:?}");
    assert!(tail.dropped_aqm == 0 && tail.dropped_queue > 0, "{tail:?}");
}

#[test]
fn pie_keeps_the_delay_near_its_target_and_the_link_busy() {
    let discipline = Discipline::Pie(pie::Config::default());
    for (variant, share) in [(Variant::NewReno, 0.85..0.99), (Variant::Cubic, 0.95..1.0)] {
        let dropped = run(discipline, 10, variant, false);
        let marked = run(discipline, 10, variant, true);
        for r in [&dropped, &marked] {
            assert!(share.contains(&r.share), "{variant:?}: {r:?}");
            // The target is 15 ms.
            assert!((5.0..20.0).contains(&r.mean_wait) && (15.0..45.0).contains(&r.p95_wait), "{variant:?}: {r:?}");
            assert_eq!(r.dropped_queue, 0, "{variant:?}: {r:?}");
        }
        assert!((100..1_000).contains(&dropped.dropped_aqm) && dropped.marked == 0, "{variant:?}: {dropped:?}");
        // Slow start raises the probability above `mark_ecnth` once, where capable packets are also dropped.
        assert!((10..100).contains(&marked.marked) && marked.sender.recoveries == 1, "{variant:?}: {marked:?}");
    }
}

#[test]
fn dualpi2_keeps_classic_flows_near_its_target_and_the_link_busy() {
    let discipline = Discipline::DualPi2(dualpi2::Config::default());
    for (variant, share) in [(Variant::NewReno, 0.85..0.99), (Variant::Cubic, 0.95..1.0)] {
        let dropped = run(discipline, 10, variant, false);
        let marked = run(discipline, 10, variant, true);
        for r in [&dropped, &marked] {
            assert!(share.contains(&r.share), "{variant:?}: {r:?}");
            // The target is 15 ms.
            assert!((5.0..20.0).contains(&r.mean_wait) && (15.0..45.0).contains(&r.p95_wait), "{variant:?}: {r:?}");
            assert_eq!(r.dropped_queue, 0, "{variant:?}: {r:?}");
        }
        assert!((10..1_000).contains(&dropped.dropped_aqm) && dropped.marked == 0, "{variant:?}: {dropped:?}");
        // Only in slow start does the probability exceed its limit, above which capable packets are also dropped.
        assert!((10..200).contains(&marked.marked) && marked.sender.recoveries <= 1, "{variant:?}: {marked:?}");
    }
}

#[test]
fn fq_codel_treats_a_single_flow_as_codel_does() {
    let discipline = Discipline::FqCoDel(fq_codel::Config::default());
    for ecn in [false, true] {
        let (fair, single) = (run(discipline, 10, Variant::Cubic, ecn), run(CODEL, 10, Variant::Cubic, ecn));
        assert_eq!(format!("{fair:?}"), format!("{single:?}"));
    }
}

#[test]
fn red_keeps_the_average_queue_between_its_thresholds() {
    let config = red::Config { max_p: 0.1, ..red::Config::default() };
    for gentle in [false, true] {
        let discipline = Discipline::Red(red::Config { gentle, ..config });
        let dropped = run(discipline, 10, Variant::NewReno, false);
        let marked = run(discipline, 10, Variant::NewReno, true);
        for r in [&dropped, &marked] {
            // 5 and 15 packets are 6 and 18 ms, and the average follows the sawtooth slowly.
            assert!((0.75..0.95).contains(&r.share) && (1.0..15.0).contains(&r.mean_wait), "{gentle}: {r:?}");
            assert!((5.0..40.0).contains(&r.p95_wait) && r.dropped_queue == 0, "{gentle}: {r:?}");
        }
        assert!((10..500).contains(&dropped.dropped_aqm) && dropped.marked == 0, "{gentle}: {dropped:?}");
        assert!((10..500).contains(&marked.marked), "{gentle}: {marked:?}");
    }
}

#[test]
fn codel_marks_a_capable_flow_and_drops_nothing() {
    let r = run(CODEL, 10, Variant::NewReno, true);
    assert!((0.75..0.9).contains(&r.share) && (0.5..5.0).contains(&r.mean_wait), "{r:?}");
    assert!((15..50).contains(&r.marked) && r.sender.ecn_reductions + 2 >= r.marked, "{r:?}");
    assert_eq!((r.dropped_aqm, r.dropped_queue, r.sender.retransmits), (0, 0, 0), "{r:?}");
}

#[test]
fn codel_finds_the_drop_rate_of_a_flow_that_does_not_yield() {
    // 12 Mbit/s over 10: 1,000 packets a second, of which 166.7 must be dropped. The interval between drops is 100 ms /
    // sqrt(count), so this is reached after 278 drops, 3.3 s (RFC 8289, section 3.3).
    let rate = DataRate::from_mbps(10);
    let mut forward = LinkConfig::constant(rate, TimeDelta::from_millis(40));
    (forward.limit, forward.discipline) = (Limit::Time(TimeDelta::from_secs(10)), CODEL);
    let mut sim = Simulator::with_observer(5, StreamHash::default());
    let reverse = LinkConfig::constant(rate, TimeDelta::from_millis(40));
    let route = point_to_point(&mut sim, &DuplexConfig { forward, reverse }).expect("valid");
    let source = udp::Source::constant(DataRate::from_mbps(12), DataSize::from_bytes(1_500));
    let a = sim.add_agent(Endpoint::UdpSource(source), Timestamp::ZERO);
    let b = sim.add_agent(Endpoint::UdpSink(udp::Sink::default()), Timestamp::ZERO);
    sim.connect(a, b, &route);
    let mut drops = vec![];
    for second in 1..=60 {
        let _ = sim.run_until(Timestamp::from_secs(second));
        drops.push(sim.link(route.forward[0]).stats().dropped_aqm.packets);
    }
    // (2.9 s / 200 ms)^2 = 210 by the end of the third second, and then the excess over the link's capacity, within 3
    // %.
    assert!((190..260).contains(&drops[2]), "{drops:?}");
    assert!((8_083..8_583).contains(&(drops[59] - drops[9])), "{drops:?}");
    let wait = sim.link(route.forward[0]).queue_delay(Timestamp::from_secs(60)).as_millis_f64();
    assert!((5.0..500.0).contains(&wait), "{wait}");
}
