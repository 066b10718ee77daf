//! No controller trips the circuit breaker in normal operation; a source that does not adapt, or adapts too late, does.

use crate::link;
use link::{FlowPlan, LinkPlan, run};
use weir_cc::Registry;
use weir_cc::circuit_breaker::Reason;

/// The scenarios of the controllers' own closed loops, shorter.
fn plans() -> Vec<(&'static str, LinkPlan)> {
    let seconds = 60;
    vec![
        ("alone", LinkPlan { seconds, ..LinkPlan::default() }),
        ("narrowing", LinkPlan { capacity: vec![(0, 2_000), (20, 1_000)], seconds, ..LinkPlan::default() }),
        ("lossy", LinkPlan { loss: 0.02, seconds, ..LinkPlan::default() }),
        ("marking", LinkPlan { marks: 0.05, seconds, ..LinkPlan::default() }),
        ("against TCP", LinkPlan { tcp: Some((10, 60)), seconds, ..LinkPlan::default() }),
    ]
}

#[test]
fn the_breaker_lets_every_controller_work() {
    let registry = Registry::builtin();
    let probing = ["gcc+fec", "nada+fec"].map(String::from);
    for name in registry.specs().filter(|s| s.is_interactive()).map(|s| s.name.clone()).chain(probing) {
        let name: &'static str = Box::leak(name.into_boxed_str());
        for (what, plan) in plans() {
            let trace = run(&plan, &[FlowPlan::new(name, 0, 500)]).remove(0);
            assert!(trace.sent_kbps(0, 60) > 100.0, "{name}, {what}: it ran");
            assert!(trace.queue_ms(0, 60) <= trace.worst_queue_ms(0, 60) + 1e-6, "{name}, {what}: of both one run");
            // Vivace's first step down is a twentieth, after four intervals of a round trip that the queue has made half a second: with
            // 1.8 Mbit/s on 1 Mbit/s for nine seconds the breaker is right.
            if (name, what) == ("vivace", "narrowing") {
                assert!(trace.breaker.0.is_some_and(|t| t.reason == Reason::Congestion), "{:?}", trace.breaker);
            } else {
                assert_eq!(trace.breaker, (None, None), "{name}, {what}");
            }
        }
    }
}

#[test]
fn a_controller_that_hears_of_loss_every_five_seconds_trips_it() {
    // One sends 3 Mbit/s into 2 Mbit/s from the start, the other reaches that gradually.
    for (name, range) in [("linphone", 10.0..30.0), ("rtcp-thresholds", 30.0..60.0)] {
        let plan = LinkPlan { seconds: 60, ..LinkPlan::default() };
        let trip = run(&plan, &[FlowPlan::new(name, 0, 500)]).remove(0).breaker.0.expect("tripped");
        assert_eq!(trip.reason, Reason::Congestion);
        assert!(range.contains(&trip.at.as_secs_f64()), "{name}: {trip:?}");
    }
}

#[test]
fn a_source_far_above_the_capacity_trips_it() {
    // 3 Mbit/s over a capacity of 200 kbit/s: 93 % loss and a queue of 3.2 s. TCP by the equation: 3 kbit/s.
    let plan = LinkPlan { capacity: vec![(0, 200)], seconds: 60, ..LinkPlan::default() };
    let trace = run(&plan, &[FlowPlan::new("fixed", 0, 3_000)]).remove(0);
    let (trip, cap) = trace.breaker;
    let trip = trip.expect("tripped");
    assert_eq!(trip.reason, Reason::Congestion);
    // Ten round trips of 3.2 s exceed the 15 s; once for the reduction, which the sender ignores, and once more.
    let at = trip.at.as_secs_f64();
    assert!((15.0..50.0).contains(&at), "at {at} s");
    assert!(cap.is_some_and(|c| (280.0..=320.0).contains(&c.as_kbps_f64())), "{cap:?}");
}
