use super::*;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use weir_lab::scenario::builtin_scenarios;

#[test]
fn every_scenario_of_the_folder_has_limits_and_each_limit_its_variants() {
    let registry = Registry::builtin();
    let prefix = format!("{FOLDER}/");
    let there: BTreeSet<&str> = builtin_scenarios().filter_map(|(name, _)| name.strip_prefix(&prefix)).collect();
    let listed: Vec<&str> = cases().iter().map(|c| c.name).collect();
    assert_eq!(listed, there.into_iter().collect::<Vec<_>>());
    for case in cases() {
        let file = ScenarioFile::builtin(&format!("{prefix}{}", case.name), &registry).expect("it ships");
        let variants: Vec<&str> = file.variants().into_iter().flatten().collect();
        assert!(!case.limits.is_empty(), "{}", case.name);
        for limit in &case.limits {
            assert!(limit.variants.iter().all(|v| variants.contains(v)), "{}: {limit:?}", case.name);
            let beside = limit.against != Against::Itself;
            assert!(!beside || variants.contains(&UNDISTURBED), "{}: {limit:?}", case.name);
            assert_ne!((limit.bounds.low, limit.bounds.high), (None, None), "{}: {limit:?}", case.name);
            for exception in &limit.exceptions {
                assert!(registry.specs().any(|s| s.name == exception.controller), "{exception:?}");
                assert!(exception.reason.ends_with('.') && exception.reason.len() > 20, "{exception:?}");
            }
        }
    }
}

#[test]
fn bounds_include_their_ends_and_no_nan() {
    let bounds = Bounds::within(1.0, 2.0);
    assert_eq!([0.99, 1.0, 2.0, 2.01, f64::NAN].map(|v| bounds.contain(v)), [false, true, true, false, false]);
    assert!(Bounds::least(0.9).contain(1e9) && !Bounds::most(0.9).contain(1e9));
    assert_eq!(Bounds::least(0.9).text(Against::Share, "kbit/s"), "at least 0.900 of undisturbed");
    assert_eq!(Bounds::most(40.0).text(Against::More, "ms"), "at most 40 ms more than undisturbed");
    assert_eq!(Bounds::within(19.5, 21.0).text(Against::Itself, "s"), "19.5 to 21 s");
}

/// Copies of packets under one controller, by limits that are made up.
fn judged(limits: Vec<Limit>, stop: bool) -> Report {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(stop));
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let case = Case { name: "copies", also: &["fbra"], limits };
    judge(&[case], Some(&["gcc".to_owned()]), 2, &options).expect("judged")
}

#[test]
fn limits_beside_the_undisturbed_run_are_of_the_other_variants() {
    let goodput = Quantity::WindowGoodput("last minute");
    let report = judged(
        vec![
            Limit::share(goodput, Bounds::within(0.99, 1.01)),
            Limit::of(goodput, Bounds::most(2_010.0)),
            Limit::of(Quantity::Goodput, Bounds::least(1e6)).only(&["each"]),
            Limit::of(Quantity::Frozen, Bounds::most(1e6)).only(&["each"]),
        ],
        false,
    );
    let case = &report.cases[0];
    assert_eq!((case.runs, report.runs(), report.undone, report.failed.len()), (3, 3, 0, 0));
    let variants = |quantity: &str, against| -> Vec<&str> {
        let limits = case.limits.iter().filter(|l| l.quantity == quantity && l.against == against);
        limits.map(|l| l.variant.as_str()).collect()
    };
    assert_eq!(variants("goodput, last minute", Against::Share), ["10 %", "each"]);
    assert_eq!(variants("goodput, last minute", Against::Itself), ["none", "10 %", "each"]);
    let broken: Vec<(&str, bool)> = report.broken().map(|(_, l, v)| (l.quantity.as_str(), v.value.is_some())).collect();
    assert_eq!(broken, [("goodput", true), ("frozen", false)], "too high a bound, and a number that the run lacks");
    assert_eq!(
        (report.tally(None), report.tally(Some("gcc")), report.tally(Some("nada"))),
        ([7, 5, 0], [7, 5, 0], [0; 3])
    );
    assert_eq!(report.judged(), ["gcc"], "cases add controllers only where none is named");
    let html = page::render(&Page { report: &report, command: "weir judge <pathologies>" }).expect("rendered");
    assert!(html.contains("5 of 7 limits are kept, in 3 runs") && html.contains("judge &lt;pathologies&gt;"));
    assert!(html.contains("at least 1000000 kbit&#x2f;s") && html.contains("none<i"), "{html}");
    for outside in ["http://", "https://", "src=", "@import"] {
        assert!(!html.contains(outside), "the page names {outside}");
    }
}

#[test]
fn an_exception_is_one_controllers_and_gives_its_reason() {
    let limit = Limit::of(Quantity::Goodput, Bounds::most(1.0)).but(
        "gcc",
        Bounds::most(1e6),
        "A made-up reason, for this test.",
    );
    assert!(limit.exception("gcc:beta=0.9").is_some() && limit.exception("gcc-remb").is_none());
    let report = judged(vec![limit], false);
    assert_eq!(report.tally(None), [3, 3, 3]);
    let html = page::render(&Page { report: &report, command: "" }).expect("rendered");
    assert!(html.contains("A made-up reason, for this test.") && html.contains("at most 1 kbit"));
}

#[test]
fn a_stop_leaves_runs_undone_and_breaks_no_limit() {
    let report = judged(vec![Limit::of(Quantity::Goodput, Bounds::least(0.0))], true);
    assert_eq!((report.undone, report.runs(), report.broken().count()), (3, 0, 0));
}
