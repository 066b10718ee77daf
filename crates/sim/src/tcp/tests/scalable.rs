//! DCTCP and Prague over links that mark.

use super::common::{minute, network, sender};
use super::*;

/// Bulk flows that share a link for a minute after 20 s.
struct Shared {
    /// Share of the capacity used by each flow's data.
    shares: Vec<f64>,
    senders: Vec<SenderStats>,
    /// The 99th percentile of the queueing delay of the low-latency queue in ms, by DualPI2's own count if there is one.
    p99_ms: f64,
}

fn share(mbps: u64, one_way_ms: i64, discipline: Discipline, flows: &[TcpConfig]) -> Shared {
    let rate = DataRate::from_mbps(mbps);
    let reverse = LinkConfig::constant(rate, TimeDelta::from_millis(one_way_ms));
    let forward = LinkConfig { limit: Limit::Time(TimeDelta::from_millis(500)), discipline, ..reverse.clone() };
    let flows = flows.iter().enumerate();
    let flows: Vec<_> =
        flows.map(|(k, c)| (TcpConfig { seed: k as u64, ..*c }, Workload::Bulk, 700 * k as i64)).collect();
    let (mut sim, link, pairs) = network(5, forward, reverse, &flows);
    let minute = minute(&mut sim, link, rate, &pairs);
    let senders = pairs.iter().map(|p| sender(&sim, p.0).stats()).collect();
    Shared { p99_ms: minute.percentile(99), shares: minute.shares, senders }
}

fn step(threshold_bytes: u64) -> Discipline {
    Discipline::DropTail(drop_tail::Config { ecn_threshold: Limit::Size(DataSize::from_bytes(threshold_bytes)) })
}

#[test]
fn dctcp_keeps_a_step_marked_queue_at_the_threshold_and_the_link_busy() {
    // 20 packets, above the seventh of the bandwidth-delay product that is enough (RFC 8257's source, Alizadeh and
    // others 2010: K > C RTT / 7; here 83 packets / 7).
    let r = share(100, 5, step(30_000), &[TcpConfig::of(Variant::Dctcp)]);
    assert!(r.shares[0] > 0.97, "{:?}", r.shares);
    // 20 packets are 2.4 ms; the window overshoots by a segment a round trip.
    assert!((1.0..5.0).contains(&r.p99_ms), "{}", r.p99_ms);
    assert!(r.senders[0].ecn_reductions > 100 && r.senders[0].recoveries == 0, "{:?}", r.senders);
    // NewReno with classic ECN halves each time, and uses less.
    let classic = share(100, 5, step(30_000), &[TcpConfig { ecn: EcnFeedback::Classic, ..TcpConfig::default() }]);
    assert!(classic.shares[0] < r.shares[0] - 0.05, "{:?}", classic.shares);
}

#[test]
fn prague_keeps_dualpi2_shallow_and_the_link_busy() {
    for (mbps, one_way_ms) in [(10, 10), (40, 5), (100, 20)] {
        let r =
            share(mbps, one_way_ms, Discipline::DualPi2(dualpi2::Config::default()), &[TcpConfig::of(Variant::Prague)]);
        assert!(r.shares[0] > 0.9, "{mbps} Mbit/s: {:?}", r.shares);
        // A packet takes 1.2 ms at 10 Mbit/s.
        assert!(r.p99_ms < 2.0 + 30.0 / mbps as f64, "{mbps} Mbit/s: {}", r.p99_ms);
        assert_eq!(r.senders[0].recoveries, 0, "{mbps} Mbit/s");
        assert!(r.senders[0].ecn_reductions > 50, "{mbps} Mbit/s: {:?}", r.senders);
    }
}

#[test]
fn classic_and_scalable_flows_share_dualpi2() {
    // RFC 9332's goal, with equal round-trip times: rates within a factor of about 1.5.
    let dualpi2 = Discipline::DualPi2(dualpi2::Config::default());
    for classic in [Variant::Cubic, Variant::NewReno] {
        let r = share(40, 10, dualpi2, &[TcpConfig::of(Variant::Prague), TcpConfig::of(classic)]);
        let ratio = r.shares[0] / r.shares[1];
        assert!((1.0 / 1.6..1.6).contains(&ratio), "{classic:?}: {:?}", r.shares);
        assert!(r.shares.iter().sum::<f64>() > 0.95, "{classic:?}: {:?}", r.shares);
    }
}

#[test]
fn prague_survives_paths_without_marks() {
    // Drop tail never marks: losses alone control it.
    let r = share(10, 20, Discipline::default(), &[TcpConfig::of(Variant::Prague)]);
    assert!(r.shares[0] > 0.95 && r.senders[0].recoveries >= 2, "{:?} {:?}", r.shares, r.senders);
    assert_eq!(r.senders[0].ecn_reductions, 0);
}
