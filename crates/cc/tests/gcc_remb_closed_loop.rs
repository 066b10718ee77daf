//! GCC with REMB over a simulated bottleneck of 2 Mbit/s, 100 ms and a queue of 300 ms; receiver reports every second.

use crate::link;
use link::{FlowPlan, FlowTrace, LinkPlan, run};

fn alone(plan: &LinkPlan, params: &[(&str, f64)]) -> FlowTrace {
    let params = params.iter().map(|&(n, v)| (n.into(), v)).collect();
    run(plan, &[FlowPlan { params, ..FlowPlan::new("gcc-remb", 0, 500) }]).remove(0)
}

#[track_caller]
fn within(what: &str, value: f64, range: core::ops::RangeInclusive<f64>) {
    assert!(range.contains(&value), "{what} is {value:.1}, not in {range:?}");
}

#[test]
fn converges_to_the_capacity_with_a_short_queue() {
    let t = alone(&LinkPlan::default(), &[]);
    // The loss-based rule's 5 % per report is the slower: four-fold takes 28 s.
    within("ramp-up", t.sent_kbps(10, 11), 500.0 * 1.05f64.powi(9)..=500.0 * 1.05f64.powi(11));
    within("rate", t.sent_kbps(35, 100), 1_750.0..=2_000.0);
    within("queue", t.queue_ms(35, 100), 4.0..=20.0);
    within("worst queue", t.worst_queue_ms(0, 100), 8.0..=120.0);
}

#[test]
fn follows_the_capacity_down_and_up() {
    let plan = LinkPlan { capacity: vec![(0, 2_000), (50, 1_000), (100, 2_000)], seconds: 150, ..LinkPlan::default() };
    let t = alone(&plan, &[]);
    within("before", t.sent_kbps(40, 50), 1_700.0..=2_000.0);
    within("just after", t.sent_kbps(51, 54), 300.0..=1_100.0);
    within("after", t.sent_kbps(55, 100), 850.0..=1_050.0);
    within("worst queue", t.worst_queue_ms(50, 100), 100.0..=605.0);
    within("recovered", t.sent_kbps(120, 150), 1_700.0..=2_000.0);
    // libwebrtc's threshold falls again quickly, the draft's does not.
    let fast = alone(&plan, &[("k_up", 0.0087), ("k_down", 0.039)]);
    within("queue with libwebrtc's gains", fast.queue_ms(60, 100), 8.0..=20.0);
    within("queue with the draft's gains", t.queue_ms(60, 100), 20.0..=200.0);
}

#[test]
fn random_loss_below_a_tenth_does_not_matter() {
    let at = |loss| alone(&LinkPlan { loss, ..LinkPlan::default() }, &[]).sent_kbps(60, 100);
    within("rate at 1 %", at(0.01), 1_600.0..=2_000.0);
    // Between 2 and 10 % the loss-based rule holds its rate, here close to the start rate.
    within("rate at 5 %", at(0.05), 450.0..=1_200.0);
    within("rate at 20 %", at(0.2), 145.0..=170.0);
}

#[test]
fn flows_share_the_link_without_starving() {
    let plan = LinkPlan { seconds: 160, ..LinkPlan::default() };
    let t = run(&plan, &[FlowPlan::new("gcc-remb", 0, 500), FlowPlan::new("gcc-remb", 40, 500)]);
    let (first, second) = (t[0].sent_kbps(100, 160), t[1].sent_kbps(100, 160));
    within("sum", first + second, 1_700.0..=2_000.0);
    within("first", first, 500.0..=1_500.0);
    within("second", second, 300.0..=1_300.0);
    within("queue", t[0].queue_ms(100, 160), 4.0..=60.0);
}

#[test]
fn tcp_starves_it_until_it_goes() {
    let plan = LinkPlan { tcp: Some((40, 120)), seconds: 170, ..LinkPlan::default() };
    let t = alone(&plan, &[]);
    within("before", t.sent_kbps(35, 40), 1_700.0..=2_000.0);
    within("against TCP", t.sent_kbps(80, 120), 149.0..=400.0);
    within("after", t.sent_kbps(150, 170), 1_500.0..=2_000.0);
}

#[test]
fn the_threshold_by_the_letter_of_the_draft_fills_the_queue() {
    let t = alone(&LinkPlan::default(), &[("offset_gain", 1.0)]);
    within("queue", t.queue_ms(40, 100), 250.0..=300.0);
}
