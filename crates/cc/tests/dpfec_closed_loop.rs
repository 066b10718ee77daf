//! DP-FEC alone, beside TCP, and on a link that is too narrow; feedback every 10 ms.

use crate::link;
use link::{FlowPlan, FlowTrace, LinkPlan, run};
use weir_units::TimeDelta;

fn plan() -> LinkPlan {
    LinkPlan {
        capacity: vec![(0, 20_000)],
        queue_bytes: 128_000.0,
        one_way: TimeDelta::from_millis(10),
        limits_kbps: (100, 10_000),
        feedback: TimeDelta::from_millis(10),
        seconds: 60,
        ..LinkPlan::default()
    }
}

fn alone(plan: &LinkPlan, params: &[(&str, f64)]) -> FlowTrace {
    let params = params.iter().map(|&(n, v)| (n.into(), v)).collect();
    run(plan, &[FlowPlan { params, ..FlowPlan::new("dpfec", 0, 6_000) }]).remove(0)
}

#[track_caller]
fn within(what: &str, value: f64, range: core::ops::RangeInclusive<f64>) {
    assert!(range.contains(&value), "{what} is {value:.1}, not in {range:?}");
}

#[test]
fn an_empty_link_gets_all_the_repair_there_is() {
    let t = alone(&plan(), &[]);
    // 63 steps of 160 ms; then 127 / 64 of the media rate.
    within("at first", t.sent_kbps(0, 2), 6_000.0..=6_700.0);
    within("then", t.sent_kbps(15, 60), 11_800.0..=11_960.0);
    within("queue", t.queue_ms(15, 60), 0.3..=2.0);
}

#[test]
fn loss_takes_repair_away_and_a_higher_threshold_keeps_more() {
    let at = |loss, threshold| alone(&LinkPlan { loss, ..plan() }, &[("threshold", threshold)]).sent_kbps(10, 60);
    // A loss event every 700 to 1,400 packets; then every 100, about 150 ms apart. 127 / (127 - 13) is 1.11.
    within("at 0.1 and one loss in a thousand", at(0.001, 0.1), 8_000.0..=9_500.0);
    within("at 0.1 and one in a hundred", at(0.01, 0.1), 6_400.0..=6_900.0);
    within("at 0.3 and one in a hundred", at(0.01, 0.3), 9_000.0..=10_700.0);
    // 40 packets per second lost are a loss interval below 35 ms.
    within("at 0.3 and one in 25", at(0.04, 0.3), 6_000.0..=6_250.0);
}

#[test]
fn beside_a_tcp_flow_that_loses_seldom_most_of_the_repair_stays() {
    let t = alone(&LinkPlan { tcp: Some((0, 60)), ..plan() }, &[]);
    within("rate", t.sent_kbps(15, 60), 10_500.0..=11_960.0);
    within("worst queue", t.worst_queue_ms(15, 60), 45.0..=52.0);
}

#[test]
fn lost_repair_keeps_the_window_small() {
    // 7 Mbit/s for 6 of media: room for 18 packets in 127.
    let t = alone(&LinkPlan { capacity: vec![(0, 7_000)], ..plan() }, &[]);
    within("rate", t.sent_kbps(20, 60), 6_700.0..=7_300.0);
}

#[test]
fn without_room_for_the_media_there_is_no_repair() {
    let t = alone(&LinkPlan { capacity: vec![(0, 5_000)], ..plan() }, &[]);
    within("rate", t.sent_kbps(20, 60), 5_990.0..=6_100.0);
}
