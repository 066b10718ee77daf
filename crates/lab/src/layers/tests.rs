use super::*;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;

fn run_plan(plan: &LayersPlan) -> Result<LayersResult, PlanError> {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    run(plan, &RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} })
}

fn plan() -> LayersPlan {
    LayersPlan { receivers: 100, sites: 10, ..LayersPlan::default() }
}

#[test]
fn levels_that_a_link_carries() {
    let plan = LayersPlan::default();
    let levels: Vec<u8> = (0..5).map(|class| plan.right_level(class)).collect();
    // 32, 96, 224, 480, 992 and 2,016 kbit/s together.
    assert_eq!(levels, [2, 3, 4, 5, 6]);
}

#[test]
fn a_hundred_receivers_find_their_levels_and_learn_from_each_other() {
    let with = run_plan(&plan()).expect("it runs");
    assert_eq!((with.never, with.classes.len()), (0, 5));
    assert!(with.right > 0.85 && with.above < 0.12 && with.loss < 0.05, "{with:?}");
    let reached = with.reached_s.expect("all have");
    assert!(reached.min > 2.0 && reached.max < 250.0, "{reached:?}");
    let without = run_plan(&LayersPlan { learning: Learning::None, ..plan() }).expect("it runs");
    assert_eq!((without.control.announced, without.control.learned), (0, 0));
    assert!(with.control.learned > 20 && with.control.drops < without.control.drops, "{:?}", without.control);
    assert!(with.loss < without.loss, "{} and {}", with.loss, without.loss);
    // The same again, and not with another seed.
    assert_eq!(run_plan(&plan()).expect("it runs"), with);
    assert_ne!(run_plan(&LayersPlan { seed: 2, ..plan() }).expect("it runs").events, with.events);
}

#[test]
fn announcements_to_all_take_room_on_the_links() {
    let r = run_plan(&LayersPlan { learning: Learning::Session, ..plan() }).expect("it runs");
    let site = run_plan(&plan()).expect("it runs");
    assert_eq!(site.control.share_of_links, 0.0);
    assert!(r.control.share_of_links > 0.0 && r.control.share_of_links < 0.05, "{:?}", r.control);
    assert!(r.control.heard > 5 * site.control.heard, "{:?}", r.control);
}

#[test]
fn impossible_plans_are_refused() {
    let wrong = |plan: LayersPlan| run_plan(&plan).expect_err("refused").to_string();
    assert_eq!(wrong(LayersPlan { receivers: 0, ..plan() }), "the number of receivers is 0, expected 1 to 20000");
    assert_eq!(wrong(LayersPlan { sites: 101, ..plan() }), "the number of sites is 101, expected 1 to 100");
    assert_eq!(
        wrong(LayersPlan { sites: 4, ..plan() }),
        "the number of classes is 5, expected 1 to 4, the number of sites"
    );
    assert!(wrong(LayersPlan { layers: vec![DataRate::ZERO], ..plan() }).starts_with("a layer's rate is 0"));
    assert!(wrong(LayersPlan { leave_latency: TimeDelta::from_secs(301), ..plan() }).contains("the duration"));
    let long = LayersPlan { receivers: 20_000, sites: 20_000, duration: TimeDelta::from_secs(7_000), ..plan() };
    assert!(wrong(long).contains("receivers times packets"));
}
