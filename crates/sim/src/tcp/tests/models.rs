//! BBR over links, with HyStart++ and proportional rate reduction beside standard TCP.

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
    let mut sim = Simulator::with_observer(7, StreamHash::default());
    let route = point_to_point(&mut sim, &DuplexConfig { forward, reverse }).expect("valid");
    let sender = Sender::new(config, Workload::Bulk).expect("valid");
    let a = sim.add_agent(Endpoint::TcpSender(Box::new(sender)), Timestamp::ZERO);
    let b = sim.add_agent(Endpoint::TcpReceiver(Receiver::new(config).expect("valid")), Timestamp::ZERO);
    sim.connect(a, b, &route);
    let delivered = |sim: &Simulator<_, _>| match sim.agent(b) {
        Endpoint::TcpReceiver(r) => r.delivered().as_bytes() as f64,
        other => unreachable!("{other:?}"),
    };
    let lost = |sim: &mut Simulator<_, _>| {
        let s = sim.link(route.forward[0]).stats();
        (s.dropped_queue.packets as f64, s.offered.packets as f64)
    };
    assert_eq!(sim.run_until(Timestamp::from_secs(3)), Outcome::Reached);
    let first = lost(&mut sim);
    assert_eq!(sim.run_until(Timestamp::from_secs(20)), Outcome::Reached);
    let (before, early) = (delivered(&sim), lost(&mut sim));
    let mut waits = vec![];
    for tick in 2_001..=8_000 {
        let now = Timestamp::from_millis(10 * tick);
        assert_eq!(sim.run_until(now), Outcome::Reached);
        waits.push(sim.link(route.forward[0]).queue_delay(now).as_millis_f64());
    }
    waits.sort_by(f64::total_cmp);
    let late = lost(&mut sim);
    let Endpoint::TcpSender(sender) = sim.agent(a) else { unreachable!("stays what it is") };
    Run {
        share: (delivered(&sim) - before) * 8.0 / (60.0 * rate.as_bps_f64() * 1_448.0 / 1_500.0),
        p50: waits[waits.len() / 2],
        p95: waits[waits.len() * 95 / 100],
        early_loss: first.0 / first.1,
        late_loss: (late.0 - early.0) / (late.1 - early.1),
        sender: sender.stats(),
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
