//! The scenarios of queue disciplines: each variant runs and shows what it is for.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::measure::results::RunResult;
use weir_lab::measure::run::{RunOptions, run};
use weir_lab::measure::scenario::ScenarioFile;
use weir_path::Discipline;

/// A run of each variant of a scenario under a controller, by the variant's name.
fn variants(name: &str, controller: &str) -> Vec<(String, RunResult)> {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let file = ScenarioFile::open(name, &registry).unwrap_or_else(|e| panic!("{e}"));
    let all = file.scenarios(Some(&[controller.to_owned()]), &registry).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let each = all.iter().map(|s| (s.variant.clone().unwrap_or_default(), run(s, s.seed, &options).expect("runs")));
    each.collect()
}

fn find<'a>(all: &'a [(String, RunResult)], name: &str) -> &'a RunResult {
    &all.iter().find(|v| v.0 == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// Mean delay of a run's first link in ms.
fn queue_ms(r: &RunResult) -> f64 {
    r.links[0].delay_ms.as_ref().expect("a queue").mean
}

fn names(all: &[(String, RunResult)]) -> Vec<&str> {
    let mut names: Vec<_> = all.iter().map(|v| &v.0[..]).collect();
    names.sort_unstable();
    names
}

fn disciplines() -> Vec<&'static str> {
    let mut names: Vec<_> = Discipline::all().iter().map(Discipline::name).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_controller_uses_steps_of_capacity_under_each_discipline() {
    let all = variants("capacity-steps", "gcc");
    assert_eq!(names(&all), disciplines());
    for (name, r) in &all {
        let call = &r.flows[0];
        eprintln!("{name}: {:.3} {:.1} ms {:.4} {:?}", call.utilisation, queue_ms(r), call.loss, call.packets);
        assert!((0.5..=1.0).contains(&call.utilisation), "{name}: {}", call.utilisation);
        assert!(call.loss < 0.05, "{name}: {}", call.loss);
        assert_eq!(call.packets.marked > 0, name != "drop-tail", "{name}: {:?}", call.packets);
    }
}

#[test]
fn short_queues_spare_a_call_the_delay_of_downloads() {
    let all = variants("call-and-downloads", "nada");
    assert_eq!(names(&all), disciplines());
    let delay = |name: &str| {
        let r = find(&all, name);
        let call = r.windows.iter().find(|w| w.label == "with downloads").expect("a window");
        call.flows[0].one_way_delay_ms.expect("packets arrived") - 15.0
    };
    let got: Vec<_> = disciplines().into_iter().map(|name| (name, delay(name))).collect();
    eprintln!("{got:?}");
    assert!(delay("drop-tail") > 200.0, "{got:?}");
    for name in ["codel", "pie", "dualpi2", "red"] {
        assert!((1.0..40.0).contains(&delay(name)), "{got:?}");
    }
    // A queue of its own: little more than the packets of the others that are in transmission.
    assert!((0.0..5.0).contains(&delay("fq-codel")), "{got:?}");
}
