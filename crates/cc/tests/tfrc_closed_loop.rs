//! TFRC over a simulated bottleneck of 2 Mbit/s, 100 ms and a queue of 300 ms; feedback every 100 ms.

use crate::link;
use link::{FlowPlan, FlowTrace, LinkPlan, run};

fn alone(plan: &LinkPlan) -> FlowTrace {
    run(plan, &[FlowPlan::new("tfrc", 0, 300)]).remove(0)
}

#[track_caller]
fn within(what: &str, value: f64, range: core::ops::RangeInclusive<f64>) {
    assert!(range.contains(&value), "{what} is {value:.1}, not in {range:?}");
}

#[test]
fn fills_the_link_and_its_queue() {
    let t = alone(&LinkPlan::default());
    within("ramp-up", t.sent_kbps(3, 5), 1_000.0..=3_000.0);
    within("rate", t.sent_kbps(20, 100), 1_800.0..=2_050.0);
    // It needs losses to find the capacity.
    within("queue", t.queue_ms(20, 100), 50.0..=290.0);
    within("worst queue", t.worst_queue_ms(20, 100), 290.0..=305.0);
}

#[test]
fn random_loss_gives_the_rate_of_the_equation() {
    let at = |loss| alone(&LinkPlan { loss, ..LinkPlan::default() }).sent_kbps(20, 100);
    // s = 1,012 bytes and R = 204 ms: 446 and 176 kbit/s, and more where losses of one round trip are one event.
    within("rate at 1 %", at(0.01), 400.0..=520.0);
    within("rate at 4 %", at(0.04), 160.0..=240.0);
}

#[test]
fn follows_the_capacity_down_and_up() {
    let plan = LinkPlan { capacity: vec![(0, 2_000), (50, 1_000), (100, 2_000)], seconds: 150, ..LinkPlan::default() };
    let t = alone(&plan);
    within("before", t.sent_kbps(30, 50), 1_800.0..=2_050.0);
    within("after", t.sent_kbps(60, 100), 900.0..=1_030.0);
    within("recovered", t.sent_kbps(120, 150), 1_600.0..=2_050.0);
}

#[test]
fn shares_with_its_own_kind_and_with_tcp() {
    let plan = LinkPlan { seconds: 160, ..LinkPlan::default() };
    let t = run(&plan, &[FlowPlan::new("tfrc", 0, 300), FlowPlan::new("tfrc", 40, 300)]);
    let (first, second) = (t[0].sent_kbps(80, 160), t[1].sent_kbps(80, 160));
    within("sum", first + second, 1_850.0..=2_100.0);
    within("first", first, 600.0..=1_400.0);
    within("second", second, 600.0..=1_400.0);
    let plan = LinkPlan { tcp: Some((30, 130)), seconds: 160, ..LinkPlan::default() };
    let t = alone(&plan);
    within("against TCP", t.sent_kbps(50, 130), 600.0..=1_400.0);
    within("after TCP", t.sent_kbps(145, 160), 1_600.0..=2_050.0);
}

#[test]
fn marks_count_as_losses() {
    let rate = |loss, marks| alone(&LinkPlan { loss, marks, ..LinkPlan::default() }).sent_kbps(20, 100);
    within("ratio", rate(0.02, 0.0) / rate(0.0, 0.02), 0.8..=1.25);
}
