use super::*;
use crate::run::RunOptions;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_units::DataRate;

fn run_plan(plan: &OverlayPlan) -> Result<OverlayResult, PlanError> {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    run(plan, &RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} })
}

fn plan() -> OverlayPlan {
    let (leave_at, duration) = (TimeDelta::from_secs(4), TimeDelta::from_secs(9));
    OverlayPlan { nodes: 120, leave_at, duration, ..OverlayPlan::default() }
}

#[test]
fn a_hundred_nodes_join_in_a_second_and_are_whole_two_seconds_after_a_fifth_has_vanished() {
    let r = run_plan(&plan()).expect("it runs");
    assert_eq!((r.joins.joined, r.joins.incomplete, r.depth.unplaced), (120, 0, 0));
    let join = r.joins.time_s.expect("all have");
    assert!(join.min > 0.05 && join.max < 1.0, "{join:?}");
    assert!((2..=6).contains(&r.depth.max) && r.depth.mean > 1.5, "{:?}", r.depth);
    let churn = r.churn.expect("24 leave");
    assert_eq!((churn.left, churn.never_reconnected), (24, 0));
    let again = churn.reconnected_s.expect("some are disconnected");
    assert!(again.p50 > 0.3 && again.max < 2.0, "{again:?}");
    assert!(churn.whole_after_s.is_none_or(|w| w.max < 2.0), "{churn:?}");
    assert!(churn.in_time > 0.98 && churn.in_time <= 1.0, "{churn:?}");
    assert!(r.delivery.in_time > 0.995 && r.delivery.residual_loss < 1e-3, "{:?}", r.delivery);
    assert!(r.traffic.forwarded > 0.6 && r.traffic.forwarded < 1.2, "{:?}", r.traffic);
    // The same again, and not with another seed.
    assert_eq!(run_plan(&plan()).expect("it runs"), r);
    assert_ne!(run_plan(&OverlayPlan { seed: 2, ..plan() }).expect("it runs").events, r.events);
}

#[test]
fn nodes_that_say_goodbye_are_not_missed() {
    let r = run_plan(&OverlayPlan { graceful: true, nodes: 60, ..plan() }).expect("it runs");
    let churn = r.churn.expect("12 leave");
    assert_eq!((churn.left, churn.interrupted, churn.never_reconnected), (12, 0, 0), "{churn:?}");
    assert_eq!(r.traffic.failed, 0);
    assert!(churn.residual_loss < 1e-9 && churn.in_time > 0.999_999, "{churn:?}");
}

#[test]
fn frames_under_another_controller_with_loss_are_repaired() {
    let plan = OverlayPlan {
        division: Division::Frames,
        controller: "scream".into(),
        loss: 0.005,
        nodes: 60,
        leave: 0.0,
        ..plan()
    };
    let r = run_plan(&plan).expect("it runs");
    assert!(r.churn.is_none());
    assert!(r.delivery.in_time > 0.995 && r.delivery.residual_loss < 0.003, "{:?}", r.delivery);
    assert!(r.traffic.repeated > 0.003 && r.traffic.repeated < 0.2, "{:?}", r.traffic);
}

#[test]
fn impossible_plans_are_refused() {
    let wrong = |plan: OverlayPlan| run_plan(&plan).expect_err("refused").to_string();
    assert_eq!(wrong(OverlayPlan { nodes: 0, ..plan() }), "the number of nodes is 0, expected 1 to 20000");
    assert_eq!(wrong(OverlayPlan { trees: 17, ..plan() }), "the number of trees is 17, expected 1 to 16");
    assert_eq!(wrong(OverlayPlan { leave: 1.5, ..plan() }), "the share that leaves is 1.5, expected 0 to 0.9");
    assert!(wrong(OverlayPlan { rate: DataRate::ZERO, ..plan() }).starts_with("the rate is 0"));
    assert!(wrong(OverlayPlan { leave_at: TimeDelta::from_secs(10), ..plan() }).contains("the duration"));
    assert!(wrong(OverlayPlan { controller: "gcc-remb".into(), ..plan() }).contains("feedback on single packets"));
    let long = OverlayPlan { nodes: 20_000, duration: TimeDelta::from_secs(3_000), ..plan() };
    assert!(wrong(long).contains("nodes times packets"));
}

#[test]
fn without_a_focus_neighbours_repair_the_trees() {
    let alone =
        OverlayPlan { focus: false, leave_at: TimeDelta::from_secs(8), duration: TimeDelta::from_secs(16), ..plan() };
    let r = run_plan(&alone).expect("it runs");
    assert_eq!((r.joins.joined, r.depth.unplaced, r.depth_at_end.unplaced), (120, 0, 0), "{r:?}");
    assert!((2..=10).contains(&r.depth.max) && r.depth.mean > 1.5 && r.depth.mean < 6.0, "{:?}", r.depth);
    let churn = r.churn.expect("24 leave");
    assert_eq!((churn.left, churn.never_reconnected), (24, 0), "{churn:?}");
    let again = churn.reconnected_s.expect("some are disconnected");
    assert!(again.p50 > 0.3 && again.p95 < 3.0, "{again:?}");
    assert!(churn.in_time > 0.9 && churn.in_time <= 1.0 && churn.broken_s_a_leave > 0.05, "{churn:?}");
    let n = r.traffic.neighbours.expect("there is no focus");
    assert!(n.searches >= 600 && n.offered >= 600 && n.referred > 0, "{n:?}");
    assert_eq!((r.traffic.placements, r.traffic.failed), (0, 0));
    // The same again, and not with another seed.
    assert_eq!(run_plan(&alone).expect("it runs"), r);
    assert_ne!(run_plan(&OverlayPlan { seed: 2, ..alone }).expect("it runs").events, r.events);
}

#[test]
fn goodbyes_without_a_focus_are_hardly_missed() {
    let alone = OverlayPlan {
        focus: false,
        graceful: true,
        leave_at: TimeDelta::from_secs(6),
        leave_within: TimeDelta::from_secs(4),
        duration: TimeDelta::from_secs(14),
        ..plan()
    };
    let churn = run_plan(&alone).expect("it runs").churn.expect("24 leave");
    assert_eq!((churn.left, churn.never_reconnected), (24, 0), "{churn:?}");
    assert!(churn.residual_loss < 0.01 && churn.in_time > 0.98, "{churn:?}");
}
