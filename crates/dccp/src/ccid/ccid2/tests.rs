//! CCID 2 by the text and numbers of RFC 4341.

pub(in crate::ccid) mod path;
mod answering;
mod drive;
mod receiving;
mod sending;

use super::{Config, Receiver, Reno, Sender};
use crate::ccid::Setup;
use path::{Flow, Link, Path};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

pub(in crate::ccid) fn setup() -> Setup {
    Setup {
        now: Timestamp::ZERO,
        max_packet_size: DataSize::from_bytes(1_000),
        rtt: None,
        ecn: true,
        ack_ratio: 2,
        params: Vec::new(),
    }
}

const fn ms(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}

fn flow(config: Config) -> Flow<Reno> {
    Flow::new(Sender::new(&setup(), config, Reno::default()), Receiver::new(&setup(), &config))
}

/// A bottleneck of 10 Mbit/s with a queue of one round trip and an uncongested return path.
fn path(rtt: TimeDelta, flows: Vec<Flow<Reno>>) -> Path<Reno> {
    let forward = Link::new(DataRate::from_mbps(10), rtt / 2, rtt);
    let back = Link::new(DataRate::from_mbps(100), rtt / 2, ms(1_000));
    Path::new(forward, back, flows)
}

#[test]
fn one_flow_fills_ten_megabits() {
    for rtt in [20, 100, 200] {
        let mut p = path(ms(rtt), vec![flow(Config::default())]);
        p.run(TimeDelta::from_secs(20));
        let share = p.run(TimeDelta::from_secs(60))[0];
        // With a queue of one round trip, halving keeps the link busy.
        assert!((0.95..=1.001).contains(&share), "{rtt} ms: {share}");
        assert!(p.flows[0].metric("timeouts") <= 1.0);
    }
}

#[test]
fn the_sawtooth_is_aimds() {
    // One loss in n packets: the window oscillates between W / 2 and W, 3/8 W^2 = n, so that its mean is sqrt(3/2 n).
    for (n, virtual_recovery) in [(600, false), (600, true), (5_400, false), (5_400, true)] {
        let rtt = ms(100);
        let mut p = path(rtt, vec![flow(Config { virtual_recovery, ..Config::default() })]);
        p.forward = Link::new(DataRate::from_mbps(1_000), rtt / 2, ms(1_000));
        p.forward.lose_every = n;
        p.run(TimeDelta::from_secs(60));
        let share = p.run(TimeDelta::from_secs(300))[0];
        let mean = share * 1e9 / 8.0 / 1_044.0 * rtt.as_secs_f64();
        let ratio = mean / libm::sqrt(1.5 * n as f64);
        // Measured: 0.99 and 0.99; with virtual recovery 0.91 and 0.97.
        assert!((0.88..=1.03).contains(&ratio), "{n}, {virtual_recovery}: {ratio}");
        assert_eq!(p.flows[0].metric("timeouts"), 0.0);
    }
}

#[test]
fn two_flows_share() {
    for rtt in [20, 100, 200] {
        let mut late = flow(Config::default());
        late.starts = Timestamp::from_secs(5);
        let mut p = path(ms(rtt), vec![flow(Config::default()), late]);
        p.run(TimeDelta::from_secs(60));
        let shares = p.run(TimeDelta::from_secs(120));
        let ratio = shares[0] / shares[1];
        assert!((0.6..1.7).contains(&ratio), "{rtt} ms: {shares:?}");
        assert!((0.95..=1.001).contains(&(shares[0] + shares[1])), "{rtt} ms: {shares:?}");
    }
}

#[test]
fn marks_have_the_effect_of_losses_without_loss() {
    let mut f = flow(Config::default());
    f.ecn = Ecn::Ect0;
    let mut p = path(ms(50), vec![f]);
    p.forward.mark_above = ms(40);
    p.run(TimeDelta::from_secs(5));
    let (dropped, marks) = (p.forward.dropped, p.flows[0].metric("marks"));
    let share = p.run(TimeDelta::from_secs(60))[0];
    assert_eq!(p.forward.dropped, dropped);
    let marks = p.flows[0].metric("marks") - marks;
    assert!((50.0..2_000.0).contains(&marks), "{marks}");
    assert!((0.9..=1.001).contains(&share), "{share}");
}

#[test]
fn a_narrow_way_back_raises_ack_ratio() {
    // 10 Mbit/s are 1,197 packets per second, and half as many acknowledgements of about 60 bytes: 290 kbit/s.
    let back = |kbps| {
        let mut p = path(ms(50), vec![flow(Config::default())]);
        p.back = Link::new(DataRate::from_kbps(kbps), ms(25), ms(50));
        p.run(TimeDelta::from_secs(20));
        let acks = p.flows[0].acks;
        let share = p.run(TimeDelta::from_secs(60))[0];
        let ratio = p.flows[0].metric("ack_ratio");
        (share, ratio, (p.flows[0].acks - acks) as f64 / 60.0)
    };
    let (share, ratio, _) = back(1_000);
    assert!(share > 0.95 && ratio == 2.0, "{share} {ratio}");
    let (share, ratio, acks) = back(64);
    assert!(share > 0.6 && (4.0..=32.0).contains(&ratio) && acks < 300.0, "{share} {ratio} {acks}");
}
