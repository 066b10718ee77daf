//! Every controller that adapts brings its rate down when feedback stops, and comes back with it.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::{Call, Fate, Link, call_plan};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_cc::feedback_guard::Config;
use weir_cc::{Limits, Registry, Transport};
use weir_media::PerfectCodec;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// When feedback stops: several reports by RTCP's own timing have gone by.
const CUT: Timestamp = Timestamp::from_secs(40);
const FLOOR: DataRate = DataRate::from_kbps(100);

/// A call of 2 Mbit/s whose way back can be cut.
fn call(name: &str, cut: &Arc<AtomicBool>) -> Call {
    let limits = Limits { floor: FLOOR, ceiling: DataRate::from_mbps(3) };
    let source = PerfectCodec::frames(TimeDelta::from_millis(33), Timestamp::ZERO).into();
    let mut plan = call_plan(name, limits, DataRate::from_kbps(800), source);
    plan.sending[0].feedback_guard = Some(Config::to_floor(FLOOR));
    let (a, b) = plan.into_ends(Timestamp::ZERO).unwrap();
    let mut call = Call::new(a, b, Link::new(DataRate::from_mbps(2), |_, _| Fate::Pass));
    let cut = cut.clone();
    call.back = Link::new(
        DataRate::from_mbps(10),
        move |_, _| if cut.load(Ordering::Relaxed) { Fate::Lose } else { Fate::Pass },
    );
    call
}

#[test]
fn without_feedback_the_target_is_halved_and_then_least_under_every_controller() {
    let registry = Registry::builtin();
    let mut tried = 0;
    for spec in registry.specs().filter(|s| s.adapts && s.transport == Transport::Udp) {
        let cut = Arc::new(AtomicBool::new(false));
        let mut c = call(&spec.name, &cut);
        c.run_until(CUT);
        let target = |c: &Call| c.a.target().unwrap().media_rate;
        let before = target(&c);
        cut.store(true, Ordering::Relaxed);
        // Reports by RTCP's own timing may be seconds apart; then so are the steps.
        let reports: Vec<Timestamp> =
            c.sent[1].iter().map(|s| s.0).filter(|at| *at > Timestamp::from_secs(2)).collect();
        let interval = reports.windows(2).map(|w| w[1] - w[0]).max().unwrap().max(TimeDelta::from_millis(500));
        let half = (interval * 3).max(TimeDelta::from_secs(2)) + interval;
        let least = (interval * 6).max(TimeDelta::from_secs(5)) + interval;
        c.run_until(CUT + half);
        // The rate at the first packet after the last report, which may differ a little from that at the cut.
        assert!(target(&c).as_bps() as f64 <= 0.55 * before.as_bps() as f64, "{}: {before}, {}", spec.name, target(&c));
        c.run_until(CUT + least);
        assert!(target(&c) <= FLOOR, "{}: {}", spec.name, target(&c));
        cut.store(false, Ordering::Relaxed);
        c.run_until(CUT + least + interval * 2 + TimeDelta::from_secs(20));
        assert!(target(&c) > FLOOR, "{}: it stays at {}", spec.name, target(&c));
        tried += 1;
    }
    assert!(tried >= 12, "{tried} controllers");
}
