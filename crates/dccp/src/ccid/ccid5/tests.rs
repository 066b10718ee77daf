//! CCID 5 in the frame of CCID 2: utilisation and sharing.

use super::{Cubic, Sender};
use crate::ccid::ccid2::tests::path::{Flow, Link, Path};
use crate::ccid::ccid2::tests::setup;
use crate::ccid::ccid2::{Config, Receiver};
use crate::ccid::{Receiver as AnyReceiver, Registry, Sender as AnySender, Setup};
use weir_cc::tunable::SetupError;
use weir_units::{DataRate, TimeDelta, Timestamp};

fn flow() -> Flow<Cubic> {
    let config = Config::default();
    Flow::new(Sender::new(&setup(), config, Cubic::default()), Receiver::new(&setup(), &config))
}

/// A bottleneck of 10 Mbit/s with a queue of one round trip.
fn path(rtt_ms: i64, flows: Vec<Flow<Cubic>>) -> Path<Cubic> {
    let rtt = TimeDelta::from_millis(rtt_ms);
    let forward = Link::new(DataRate::from_mbps(10), rtt / 2, rtt);
    let back = Link::new(DataRate::from_mbps(100), rtt / 2, TimeDelta::from_secs(1));
    Path::new(forward, back, flows)
}

#[test]
fn one_flow_fills_ten_megabits() {
    for rtt in [20, 100, 200] {
        let mut p = path(rtt, vec![flow()]);
        p.run(TimeDelta::from_secs(20));
        let share = p.run(TimeDelta::from_secs(60))[0];
        assert!((0.95..=1.001).contains(&share), "{rtt} ms: {share}");
    }
}

#[test]
fn two_flows_share() {
    for rtt in [20, 100, 200] {
        let mut late = flow();
        late.starts = Timestamp::from_secs(5);
        let mut p = path(rtt, vec![flow(), late]);
        p.run(TimeDelta::from_secs(100));
        let shares = p.run(TimeDelta::from_secs(200));
        let ratio = shares[0] / shares[1];
        assert!((0.55..1.8).contains(&ratio), "{rtt} ms: {shares:?}");
        assert!((0.95..=1.001).contains(&(shares[0] + shares[1])), "{rtt} ms: {shares:?}");
    }
}

#[test]
fn windows_depend_on_loss_as_rfc_9438_has_it() {
    // Section 5.1, figure 6, the mean window in the concave region: (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) /
    // p^(3/4), if that is above Reno's.
    for (every, rtt) in [(20_000, 0.1), (10_000, 0.2)] {
        let mut p = path((rtt * 1_000.0) as i64, vec![flow()]);
        p.forward.rate = DataRate::from_mbps(1_000);
        p.forward.queue = TimeDelta::from_secs(1);
        p.forward.lose_every = every;
        p.run(TimeDelta::from_secs(100));
        let share = p.run(TimeDelta::from_secs(400))[0];
        let mean = share * 1e9 / 8.0 / 1_044.0 * rtt;
        let p = every as f64;
        let want = libm::pow(0.4 * 3.7 / (4.0 * 0.3), 0.25) * libm::pow(rtt * p, 0.75);
        assert!(want > libm::sqrt(1.5 * p), "above Reno's");
        assert!((0.85..=1.2).contains(&(mean / want)), "one in {every}: {mean}, not {want}");
    }
}

#[test]
fn parameters_of_both_are_taken() {
    let registry = Registry::builtin();
    let spec = registry.get(5).expect("built in");
    let with = |name: &str, value| Setup { params: vec![(name.into(), value)], ..setup() };
    for (name, value) in [("beta", 0.8), ("max_window", 50.0), ("ack_delay", 100.0)] {
        assert!(matches!((spec.sender)(&with(name, value)), Ok(AnySender::Ccid5(_))), "{name}");
        assert!(matches!((spec.receiver)(&with(name, value)), Ok(AnyReceiver::Ccid5(_))), "{name}");
    }
    assert!(matches!((spec.sender)(&with("beta", 2.0)), Err(SetupError::OutOfRange { .. })));
    assert!(matches!((spec.sender)(&with("alpha", 2.0)), Err(SetupError::UnknownParam { .. })));
    assert_eq!(spec.params.len(), 3 + registry.get(2).expect("built in").params.len());
}
