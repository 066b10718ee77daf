//! BBR over links, with HyStart++ and proportional rate reduction beside standard TCP.

use super::common::{minute, network, sender};
use super::*;

/// A bulk flow's result with a round trip of 40 ms.
#[derive(Debug)]
struct Run {
    /// Share of the capacity used by data in the last minute of 80 s.
    share: f64,
    /// Queueing delay in ms, sampled every 10 ms: the median and the 95th percentile.
    p50: f64,
    p95: f64,
    /// Loss of the link in the first 3 s and in the last minute.
    early_loss: f64,
    late_loss: f64,
    sender: SenderStats,
}

fn run(config: TcpConfig, limit: Limit, random_loss: f64) -> Run {
    run_at(10, config, limit, random_loss)
}

fn run_at(mbps: u64, config: TcpConfig, limit: Limit, random_loss: f64) -> Run {
    let rate = DataRate::from_mbps(mbps);
    let reverse = LinkConfig::constant(rate, TimeDelta::from_millis(20));
    let mut forward = LinkConfig { limit, ..reverse.clone() };
    if random_loss > 0.0 {
        forward.loss = weir_path::Loss::Independent { share: random_loss };
    }
    let (mut sim, link, pairs) = network(7, forward, reverse, &[(config, Workload::Bulk, 0)]);
    let lost = |sim: &mut Simulator<_, _>| {
        let s = sim.link(link).stats();
        (s.dropped_queue.packets as f64, s.offered.packets as f64)
    };
    assert_eq!(sim.run_until(Timestamp::from_secs(3)), Outcome::Reached);
    let first = lost(&mut sim);
    assert_eq!(sim.run_until(Timestamp::from_secs(20)), Outcome::Reached);
    let early = lost(&mut sim);
    let minute = minute(&mut sim, link, rate, &pairs);
    let late = lost(&mut sim);
    Run {
        share: minute.shares[0],
        p50: minute.percentile(50),
        p95: minute.percentile(95),
        early_loss: first.0 / first.1,
        late_loss: (late.0 - early.0) / (late.1 - early.1),
        sender: sender(&sim, pairs[0].0).stats(),
    }
}

const BBRS: [Variant; 2] = [Variant::Bbr1, Variant::Bbr];

#[test]
fn bbr_fills_a_deep_buffer_s_link_without_filling_the_buffer() {
    for variant in BBRS {
        // A second of buffer: 25 round trips.
        let r = run(TcpConfig::of(variant), Limit::Time(TimeDelta::from_secs(1)), 0.0);
        assert!(r.share > 0.93, "{variant:?}: {r:?}");
        // The window gain of 2 bounds the queue to one bandwidth-delay product, 40 ms.
        assert!(r.p50 < 15.0 && r.p95 < 45.0, "{variant:?}: {r:?}");
        assert_eq!((r.sender.recoveries, r.sender.timeouts), (0, 0), "{variant:?}: {r:?}");
    }
    let cubic = run(TcpConfig::of(Variant::Cubic), Limit::Time(TimeDelta::from_secs(1)), 0.0);
    assert!(cubic.p50 > 300.0, "{cubic:?}");
}

#[test]
fn bbr_keeps_its_rate_under_random_loss_that_stops_cubic() {
    for variant in BBRS {
        let r = run(TcpConfig::of(variant), Limit::Time(TimeDelta::from_millis(200)), 0.01);
        // One loss in version 3's 66 packets in flight is below its 2 %, two are above.
        assert!(r.share > 0.8, "{variant:?}: {r:?}");
    }
    let cubic = run(TcpConfig::of(Variant::Cubic), Limit::Time(TimeDelta::from_millis(200)), 0.01);
    assert!(cubic.share < 0.6, "{cubic:?}");
}

#[test]
fn version_3_bounds_the_loss_of_a_shallow_buffer() {
    // Half a bandwidth-delay product: version 1 overruns it, version 3 tolerates 2 % while it probes.
    let limit = Limit::Time(TimeDelta::from_millis(10));
    let (one, three) = (run(TcpConfig::of(Variant::Bbr1), limit, 0.0), run(TcpConfig::of(Variant::Bbr), limit, 0.0));
    assert!(three.late_loss < 0.02 && three.late_loss < one.late_loss / 2.0, "{one:?} {three:?}");
    assert!(three.share > 0.85, "{three:?}");
}

#[test]
fn hystart_overshoots_by_less() {
    let limit = Limit::Time(TimeDelta::from_millis(300));
    let (plain, early) = (
        run_at(100, TcpConfig::of(Variant::Cubic), limit, 0.0),
        run_at(100, TcpConfig { hystart: true, ..TcpConfig::of(Variant::Cubic) }, limit, 0.0),
    );
    // The rise is seen a round trip after the window has passed the path's 333 segments, at 1,280; five round trips of
    // conservative growth triple that, and 2,833 fill path and buffer. Doubling would go on to 5,120.
    assert!(early.early_loss < plain.early_loss / 2.0, "{plain:?} {early:?}");
    assert!(early.share > 0.97, "{early:?}");
}

#[test]
fn proportional_reduction_gives_the_same_rate() {
    let limit = Limit::Time(TimeDelta::from_millis(40));
    for variant in [Variant::NewReno, Variant::Cubic] {
        let plain = run(TcpConfig::of(variant), limit, 0.0);
        let prr = run(TcpConfig { prr: true, ..TcpConfig::of(variant) }, limit, 0.0);
        assert!((prr.share - plain.share).abs() < 0.03, "{variant:?}: {plain:?} {prr:?}");
        assert_eq!(prr.sender.timeouts, plain.sender.timeouts, "{variant:?}");
    }
}
