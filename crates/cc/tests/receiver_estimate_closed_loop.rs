//! C-NADU and TMMBR over a simulated bottleneck of 2 Mbit/s, 100 ms and a queue of 300 ms. Each packet is a frame and
//! there are no run lengths; receiver reports every second.

use crate::link;
use link::{FlowPlan, FlowTrace, LinkPlan, run};

fn alone(controller: &'static str, plan: &LinkPlan) -> FlowTrace {
    run(plan, &[FlowPlan::new(controller, 0, 500)]).remove(0)
}

#[track_caller]
fn within(what: &str, value: f64, range: core::ops::RangeInclusive<f64>) {
    assert!(range.contains(&value), "{what} is {value:.1}, not in {range:?}");
}

#[test]
fn each_finds_the_capacity_with_a_short_queue() {
    for c in ["cnadu", "tmmbr"] {
        let t = alone(c, &LinkPlan::default());
        assert_eq!(t.breaker, (None, None), "{c}");
        within(&format!("{c}: rate"), t.sent_kbps(50, 100), 1_650.0..=2_010.0);
        within(&format!("{c}: queue"), t.queue_ms(50, 100), 4.0..=70.0);
        within(&format!("{c}: worst queue"), t.worst_queue_ms(50, 100), 4.0..=302.0);
    }
}

#[test]
fn loss_without_a_queue() {
    let at = |c, loss| alone(c, &LinkPlan { loss, ..LinkPlan::default() }).sent_kbps(50, 100);
    // C-NADU lies between TCP's rate, 8 * 1012 / (0.2 * sqrt(0.02 / 3) + ...) = 480 kbit/s, and the receiver's estimate.
    within("C-NADU at 1 %", at("cnadu", 0.01), 450.0..=1_100.0);
    within("C-NADU at 5 %", at("cnadu", 0.05), 149.0..=450.0);
    // TMMBR treats missing packets as late ones from 5 % on.
    within("TMMBR at 1 %", at("tmmbr", 0.01), 1_500.0..=2_010.0);
    within("TMMBR at 20 %", at("tmmbr", 0.2), 149.0..=170.0);
}

#[test]
fn cnadu_lets_a_second_flow_in() {
    let plan = LinkPlan { seconds: 200, ..LinkPlan::default() };
    let t = run(&plan, &[FlowPlan::new("cnadu", 0, 500), FlowPlan::new("cnadu", 40, 500)]);
    let (first, second) = (t[0].sent_kbps(120, 200), t[1].sent_kbps(120, 200));
    within("sum", first + second, 1_700.0..=2_010.0);
    within("second", second, 450.0..=1_300.0);
    within("queue", t[0].queue_ms(120, 200), 4.0..=50.0);
}

#[test]
fn against_tcp() {
    let plan = LinkPlan { tcp: Some((40, 120)), seconds: 160, ..LinkPlan::default() };
    for (c, share) in [("cnadu", 200.0..=900.0), ("tmmbr", 300.0..=1_400.0)] {
        let t = alone(c, &plan);
        within(&format!("{c}: share"), t.sent_kbps(60, 120), share);
        within(&format!("{c}: after"), t.sent_kbps(150, 160), 450.0..=2_050.0);
    }
}
