//! NADA over a simulated bottleneck of 2 Mbit/s, 100 ms and a queue of 300 ms, both variants.

use crate::link;
use link::{FlowPlan, FlowTrace, LinkPlan, run};

const VARIANTS: [&str; 2] = ["nada", "nada-receiver"];

fn alone(controller: &'static str, plan: &LinkPlan, params: &[(&str, f64)]) -> FlowTrace {
    let params = params.iter().map(|&(n, v)| (n.into(), v)).collect();
    run(plan, &[FlowPlan { params, ..FlowPlan::new(controller, 0, 150) }]).remove(0)
}

#[track_caller]
fn within(what: &str, value: f64, range: core::ops::RangeInclusive<f64>) {
    assert!(range.contains(&value), "{what} is {value:.1}, not in {range:?}");
}

#[test]
fn converges_to_the_capacity_with_a_short_queue() {
    for v in VARIANTS {
        let t = alone(v, &LinkPlan::default(), &[]);
        within("rate", t.sent_kbps(20, 100), 1_900.0..=2_050.0);
        // Equilibrium: XREF * RMAX / r_ref = 10 ms * 3 / 2, plus the transmission time of a packet, 4 ms.
        within("queue", t.queue_ms(30, 100), 15.0..=23.0);
        within("worst queue", t.worst_queue_ms(0, 100), 20.0..=110.0);
        // 50 / 420 more in each round of about 0.5 s: 13-fold takes 10 to 14 s.
        within("ramp-up", t.sent_kbps(0, 5), 200.0..=500.0);
        within("ramp-up", t.sent_kbps(14, 16), 1_800.0..=2_100.0);
    }
}

#[test]
fn follows_the_capacity_down_and_up() {
    let plan = LinkPlan { capacity: vec![(0, 2_000), (30, 1_000), (60, 2_000)], ..LinkPlan::default() };
    for v in VARIANTS {
        let t = alone(v, &plan, &[]);
        within("before", t.sent_kbps(20, 30), 1_900.0..=2_050.0);
        within("just after", t.sent_kbps(31, 33), 150.0..=1_000.0);
        within("after", t.sent_kbps(35, 60), 930.0..=1_020.0);
        // XREF * RMAX / r_ref = 30 ms.
        within("queue after", t.queue_ms(40, 60), 25.0..=45.0);
        within("worst queue", t.worst_queue_ms(30, 60), 100.0..=605.0);
        within("recovered", t.sent_kbps(75, 100), 1_700.0..=2_050.0);
    }
}

#[test]
fn a_late_comer_takes_more_but_starves_no_flow() {
    let plan = LinkPlan { seconds: 160, ..LinkPlan::default() };
    for v in VARIANTS {
        let t = run(&plan, &[FlowPlan::new(v, 0, 150), FlowPlan::new(v, 40, 150)]);
        let (first, second) = (t[0].sent_kbps(100, 160), t[1].sent_kbps(100, 160));
        within("sum", first + second, 1_850.0..=2_050.0);
        within("first", first, 400.0..=1_050.0);
        // Its baseline includes the first flow's standing queue (RFC 8698, section 6.1).
        within("second", second, 950.0..=1_600.0);
        within("queue", t[1].queue_ms(100, 160), 20.0..=110.0);
    }
}

#[test]
fn holds_at_one_percent_loss_and_gives_way_at_five() {
    for v in VARIANTS {
        let at = |loss, params: &[(&str, f64)]| alone(v, &LinkPlan { loss, ..LinkPlan::default() }, params);
        within("rate at 1 %", at(0.01, &[]).sent_kbps(20, 100), 1_700.0..=2_050.0);
        // DLOSS * (5 / 1)^2 = 250 ms has its equilibrium at 120 kbit/s, below the floor.
        within("rate at 5 %", at(0.05, &[]).sent_kbps(20, 100), 150.0..=350.0);
        within("rate at 5 %, deaf to loss", at(0.05, &[("dloss", 0.0)]).sent_kbps(20, 100), 1_500.0..=2_100.0);
    }
}

#[test]
fn keeps_a_share_against_tcp_and_takes_the_link_back() {
    let plan = LinkPlan { tcp: Some((20, 100)), seconds: 140, ..LinkPlan::default() };
    for v in VARIANTS {
        let t = alone(v, &plan, &[]);
        within("share", t.sent_kbps(30, 100), 600.0..=1_400.0);
        within("worst queue", t.worst_queue_ms(30, 100), 150.0..=305.0);
        within("rate after", t.sent_kbps(110, 140), 1_900.0..=2_050.0);
        // Warped delay has another equilibrium than the plain one of 19 ms: with RFC 5348's average the loss never
        // expires, without the open interval it does.
        within("queue after", t.queue_ms(125, 140), 30.0..=60.0);
        let expires = alone(v, &plan, &[("open_loss_interval", 0.0)]);
        within("queue after the loss has expired", expires.queue_ms(125, 140), 15.0..=35.0);
    }
}

#[test]
fn marks_alone_hold_the_rate() {
    let plan = LinkPlan { marks: 0.05, ..LinkPlan::default() };
    for v in VARIANTS {
        let t = alone(v, &plan, &[]);
        // Marks of 5 % give DMARK * 5^2 = 50 ms: equilibrium at 10 ms * 3 Mbit/s / 50 ms = 600 kbit/s, and more where a
        // window of about 40 packets has no mark by chance.
        within("rate", t.sent_kbps(30, 100), 500.0..=900.0);
        within("queue", t.queue_ms(30, 100), 4.0..=8.0);
    }
}

#[test]
fn priority_shares_the_link_in_proportion() {
    let plan = LinkPlan { seconds: 160, ..LinkPlan::default() };
    let flow = |prio: f64| FlowPlan { params: vec![("prio".into(), prio)], ..FlowPlan::new("nada", 0, 150) };
    let t = run(&plan, &[flow(1.0), flow(2.0)]);
    within("ratio", t[1].sent_kbps(100, 160) / t[0].sent_kbps(100, 160), 1.6..=2.4);
}
