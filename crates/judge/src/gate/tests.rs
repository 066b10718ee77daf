use super::*;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use weir_cc::Registry;
use weir_lab::run::RunOptions;
use weir_lab::scenario::InputError;

/// A link that loses by chance, so that seeds differ.
const LOSSY: &str = "title = \"lossy\"\nduration = \"3 s\"\n[links.l]\nrate = \"1 Mbps\"\ndelay = \"20 ms\"\nloss = 0.05\n\
                     [rtp.video]\ncontroller = \"$controller\"\nstart_rate = \"300 kbps\"\n";
/// Two variants.
const TWO: &str = "title = \"two\"\nduration = \"3 s\"\n[links.l]\nrate = \"1 Mbps\"\ndelay = \"20 ms\"\n[rtp.video]\n\
                   controller = \"$controller\"\nstart_rate = \"300 kbps\"\n[[variants]]\nname = \"slow\"\n\
                   links.l.rate = \"500 kbps\"\n[[variants]]\nname = \"fast\"\n";

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("lossy.toml"), LOSSY).expect("written");
    std::fs::write(dir.path().join("two.toml"), TWO).expect("written");
    dir
}

fn parsed(text: &str, dir: &Path) -> GateFile {
    GateFile::parse("gate.toml", text, dir).unwrap_or_else(|e| panic!("{e}"))
}

/// The answer to a file. Time is that which `elapsed` says, in s.
fn answered(text: &str, threads: usize, baseline: Option<&Baseline>, elapsed: &(dyn Fn() -> f64 + Sync)) -> Answer {
    let dir = folder();
    let (file, registry, stop) = (parsed(text, dir.path()), Registry::builtin(), AtomicBool::new(false));
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let plan = Plan::new(&file, &registry).unwrap_or_else(|e| panic!("{e}: {:?}", e.help_text()));
    let work = Work { baseline, saves: false, threads, elapsed, faults: &Vec::new };
    let mut answer = plan.run(work, &options, &|_| {});
    plan.explain(&mut answer.report, &options, None).expect("no file is written");
    answer
}

fn verdicts(report: &Report) -> Vec<(&str, Verdict)> {
    report.checks.iter().map(|c| (c.budget.as_str(), c.verdict)).collect()
}

const MIXED: &str = "controllers = [\"fixed\", \"nada\"]\nseed = 11\n[[suites]]\nscenario = \"lossy.toml\"\nbudgets = [\n\
                     \"loss <= 0.2\",\n\"loss <= 0.001\",\n\"video: utilisation no worse than fixed by 95 %\",\n\
                     \"loss <= 0.05\"]\n[[suites]]\nscenario = \"two.toml\"\nbudgets = [\"utilisation >= 0.9\"]\n";

#[test]
fn budgets_pass_and_fail_and_say_why() {
    let report = answered(MIXED, 2, None, &|| 0.0).report;
    let of = |controller: &str, scenario: &str, budget: &str| {
        let is = |c: &&Check| c.controller == controller && c.scenario == scenario && c.budget == budget;
        report.checks.iter().find(is).unwrap_or_else(|| panic!("{controller} {scenario} {budget}: {report:#?}"))
    };
    let sound = of("fixed", "lossy.toml", "loss <= 0.2");
    assert_eq!((sound.verdict, sound.misses, sound.line), (Verdict::Passes, 0, 6));
    let broken = of("fixed", "lossy.toml", "loss <= 0.001");
    assert_eq!((broken.verdict, broken.hits), (Verdict::Fails, 0));
    assert!(broken.worst_seed.is_some_and(|s| (11..51).contains(&s)) && broken.values.len() == 4, "{broken:#?}");
    assert!(broken.why.as_ref().is_some_and(|w| w.starts_with("seed ") && w.contains("video, ")), "{broken:#?}");
    // Wald's test stops at the first seed that decides: four misses, or ten hits, with 11 budgets.
    assert_eq!((sound.values.len(), report.error_of_each), (10, 0.05 / 11.0));
    let same = |c: &Check| (c.controller == "fixed").then_some(c.budget.contains("no worse than fixed"));
    assert!(report.checks.iter().filter_map(same).all(|compares| !compares), "none is compared with itself");
    let better = of("nada", "lossy.toml", "video: utilisation no worse than fixed by 95 %");
    assert_eq!((better.verdict, better.others.len()), (Verdict::Passes, better.values.len()));
    // The fixed rate of 300 kbit/s is 0.6 of the slow variant, and 0.3 of the other.
    assert_eq!(of("fixed", "two.toml [slow]", "utilisation >= 0.9").verdict, Verdict::Fails);
    assert_eq!((report.verdict, report.ended), (Verdict::Fails, None));
    assert_eq!(report.checks.len(), 11);
}

#[test]
fn the_answer_is_the_same_twice_and_at_one_thread_and_at_two() {
    let text = |threads| {
        let answer = answered(MIXED, threads, None, &|| 0.0);
        let json = serde_json::to_string(&answer.report).expect("serialises");
        (json, serde_json::to_string(&answer.baseline).expect("serialises"), answer.report.markdown())
    };
    let once = text(1);
    assert_eq!(once, text(1));
    assert_eq!(once, text(2));
}

#[test]
fn a_budget_on_the_edge_is_undecided_with_its_count() {
    // A loss of 5 % by chance is more in about half of the seeds.
    let report = answered(MIXED, 2, None, &|| 0.0).report;
    let edge = report.checks.iter().find(|c| c.budget == "loss <= 0.05" && c.controller == "fixed").expect("asked");
    assert_ne!(edge.verdict, Verdict::Passes, "{edge:#?}");
    assert!(edge.hits > 0 && edge.misses > 0, "{edge:#?}");
    if edge.verdict == Verdict::Undecided {
        assert!(edge.note.as_ref().is_some_and(|n| n.contains("seeds keep it")), "{edge:#?}");
    }
}

#[test]
fn time_ends_the_runs_and_leaves_the_rest_undecided() {
    let looks = AtomicU32::new(0);
    let counted = || f64::from(looks.fetch_add(1, Ordering::Relaxed));
    let whole = answered(MIXED, 1, None, &|| counted().min(0.0)).report;
    // The clock goes by looks at it, and time is over after three of four.
    let scale = 60.0 / (0.75 * f64::from(looks.swap(0, Ordering::Relaxed)));
    let report = answered(MIXED, 1, None, &|| counted() * scale).report;
    assert_eq!((report.ended, whole.ended), (Some(Ended::Time), None));
    assert!(report.made > 10 && report.made < whole.made, "{} of {}", report.made, whole.made);
    let notes = report.checks.iter().filter_map(|c| c.note.as_deref()).filter(|n| n.starts_with("time was over: "));
    assert!(notes.count() > 0 && report.count(Verdict::Undecided) < report.checks.len(), "{report:#?}");
    assert!(report.summary().contains("the file's time ended the runs: "), "{}", report.summary());
    // Those that were decided have the verdict, and the values, of the whole.
    for (part, whole) in report.checks.iter().zip(&whole.checks).filter(|(p, _)| p.verdict != Verdict::Undecided) {
        assert_eq!((part.verdict, &part.values), (whole.verdict, &whole.values), "{part:#?}");
    }
    let none = answered(MIXED, 2, None, &|| 100.0).report;
    assert_eq!((none.made, none.count(Verdict::Undecided), none.verdict), (0, 11, Verdict::Undecided));
}

#[test]
fn a_baseline_is_compared_with_seed_by_seed_and_orders_the_runs() {
    let text = "controllers = [\"fixed\"]\nruns = 12\n[[suites]]\nscenario = \"two.toml\"\nbudgets = [\"utilisation \
                no worse than baseline by 1 %\"]\n[[suites]]\nscenario = \"lossy.toml\"\nbudgets = [\"loss <= 0.001\"]\n";
    let first = answered(text, 2, None, &|| 0.0);
    let compared = &first.report.checks[0];
    assert_eq!((compared.verdict, compared.values.len()), (Verdict::Undecided, 0));
    assert!(compared.note.as_ref().is_some_and(|n| n.contains("--save-baseline")), "{compared:#?}");
    let dir = folder();
    let (file, registry, stop) = (parsed(text, dir.path()), Registry::builtin(), AtomicBool::new(false));
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let plan = Plan::new(&file, &registry).expect("sound");
    let begun = Mutex::new(Vec::new());
    let run = |baseline: Option<&Baseline>, saves| {
        begun.lock().expect("whole").clear();
        let work = Work { baseline, saves, threads: 1, elapsed: &|| 0.0, faults: &Vec::new };
        plan.run(work, &options, &|what| begun.lock().expect("whole").push(what.to_owned()))
    };
    let saved = run(None, true).baseline;
    assert!(begun.lock().expect("whole")[0].starts_with("two.toml [slow]"), "the file's order");
    let again = run(Some(&saved), false).report;
    let compared: Vec<&Check> = again.checks.iter().filter(|c| c.budget.contains("baseline")).collect();
    assert!(compared.len() == 2 && compared.iter().all(|c| c.verdict == Verdict::Passes && c.values == c.others));
    assert!(begun.lock().expect("whole")[0].starts_with("lossy.toml"), "what failed comes first");
    // A controller that has become worse.
    let other = parsed(&text.replace("\"fixed\"]", "\"gcc\"]"), dir.path());
    let mut entries = saved.entries.clone();
    entries.iter_mut().for_each(|e| {
        e.controller = "gcc".into();
        e.values.iter_mut().for_each(|v| *v = v.map(|v| v * 100.0));
    });
    let before = Baseline::new(1, entries);
    let plan = Plan::new(&other, &registry).expect("sound");
    let work = Work { baseline: Some(&before), saves: false, threads: 2, elapsed: &|| 0.0, faults: &Vec::new };
    let worse = plan.run(work, &options, &|_| {}).report;
    assert!(worse.checks.iter().all(|c| c.verdict == Verdict::Fails), "{worse:#?}");
}

#[test]
fn a_process_that_dies_fails_its_budgets_alone() {
    let dir = folder();
    let (file, registry, stop) = (parsed(MIXED, dir.path()), Registry::builtin(), AtomicBool::new(false));
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let plan = Plan::new(&file, &registry).expect("sound");
    for threads in [1, 2] {
        let begun = Mutex::new(std::collections::HashMap::new());
        let name = || std::thread::current().id();
        // The second seed of nada on the lossy link.
        let faults = || {
            let what: Option<String> = begun.lock().expect("whole").get(&name()).cloned();
            let is = what.as_deref() == Some("lossy.toml, nada, seed 12");
            if is { vec!["nada, 0.100 s after the begin: it ended".to_owned()] } else { Vec::new() }
        };
        let work = Work { baseline: None, saves: false, threads, elapsed: &|| 0.0, faults: &faults };
        let begin = |what: &str| {
            begun.lock().expect("whole").insert(name(), what.to_owned());
        };
        let report = plan.run(work, &options, &begin).report;
        for check in &report.checks {
            let is_it = check.controller == "nada" && check.scenario == "lossy.toml";
            let said = is_it.then(|| "seed 12: nada, 0.100 s after the begin: it ended".to_owned());
            assert_eq!(check.broken, said, "{check:#?}");
            assert!(!is_it || check.verdict == Verdict::Fails);
            assert!(is_it || check.hits + check.misses >= 4, "{check:#?}");
        }
    }
}

#[test]
fn rows_have_their_own_goals_or_those_of_the_suite() {
    let (registry, dir) = (Registry::builtin(), folder());
    let planned = |suite: &str| {
        let file = parsed(&format!("controllers = [\"fixed\", \"gcc:beta=0.9\"]\n[[suites]]\n{suite}\n"), dir.path());
        Plan::new(&file, &registry).map(|plan| plan.asked.iter().map(|a| a.text.clone()).collect::<Vec<_>>())
    };
    let goals = planned("rows = [\"j1\", \"f\"]").expect("sound");
    assert_eq!(goals.len(), 2 * 6);
    assert!(goals.contains(&"extra delay p95 over 15 ms <= 40".to_owned()), "{goals:?}");
    assert!(goals.contains(&"new over old, last 30 s from 0.90 to 1.11".to_owned()), "{goals:?}");
    let own = planned("rows = [\"h\"]\nbudgets = [\"queue peak <= 100\", \"h50: time to 80 % <= 2\"]").expect("sound");
    assert_eq!(own.iter().filter(|b| b.starts_with("queue peak")).count(), 4);
    assert_eq!(own.iter().filter(|b| b.starts_with("h50: ")).count(), 2);
    let cases = planned("rfc8867 = true").expect("sound");
    assert!(cases.len() >= 16 && cases.iter().all(|c| c == "every phase passes"), "{cases:?}");
    let phases = planned("rfc8867 = true\nbudgets = [\"use >= 0.5\", \"fairness no worse than gcc by 5 %\"]");
    assert!(phases.expect("sound").len() > cases.len());
}

/// Names that exist nowhere, each at its place with the value and a way out.
#[test]
fn what_is_not_there_is_named_at_its_place() {
    let (registry, dir) = (Registry::builtin(), folder());
    std::fs::write(dir.path().join("own.toml"), LOSSY.replace("$controller", "gcc")).expect("written");
    std::fs::write(dir.path().join("broken.toml"), LOSSY.replace("1 Mbps", "1")).expect("written");
    let fault = |text: &str| -> InputError {
        let file = parsed(text, dir.path());
        Plan::new(&file, &registry).map(|_| ()).expect_err(text)
    };
    let suite = |lines: &str| format!("controllers = [\"gcc\"]\n[[suites]]\n{lines}\n");
    let budget = |b: &str| suite(&format!("scenario = \"lossy.toml\"\nbudgets = [\"{b}\"]"));
    let row = |b: &str| suite(&format!("rows = [\"h\", \"e\"]\nbudgets = [\"{b}\"]"));
    for (text, at, field, message, help) in [
        (
            "controllers = [\"ncc\"]\n[[suites]]\nrows = [\"e\"]\n".into(),
            (1, 16),
            "controllers",
            "no controller is named `ncc`",
            "did you mean `gcc`?",
        ),
        (
            "controllers = [\"gcc:betta=1\"]\n[[suites]]\nrows = [\"e\"]\n".into(),
            (1, 16),
            "controllers",
            "`betta`",
            "beta",
        ),
        (suite("scenario = \"qick\"\nbudgets = [\"loss <= 1\"]"), (3, 12), "suites[0].scenario", "qick", "`quick`"),
        (suite("scenario = \"no.toml\"\nbudgets = [\"loss <= 1\"]"), (3, 12), "suites[0].scenario", "no such file", ""),
        (suite("scenario = \"own.toml\"\nbudgets = [\"loss <= 1\"]"), (3, 12), "suites[0]", "itself", "$controller"),
        (suite("rows = [\"zz\"]"), (3, 9), "suites[0].rows", "no row is named `zz`", "rows: a, a0"),
        (budget("los <= 1"), (4, 12), "suites[0].budgets[0]", "no metric is named `los`", "`loss`"),
        (budget("vdeo: loss <= 1"), (4, 12), "suites[0].budgets[0]", "no flow is named `vdeo`", "`video`"),
        (budget("video: jain_end >= 1"), (4, 12), "suites[0].budgets[0]", "whole run", "write `jain_end` alone"),
        (
            budget("sent_bps no worse than nada by 1 %"),
            (4, 12),
            "suites[0].budgets[0]",
            "neither better nor worse",
            "METRIC <= N",
        ),
        (budget("loss no worse than nda by 1 %"), (4, 12), "suites[0].budgets", "named `nda`", "`nada`"),
        (budget("loss no worse than gcc by 1 %"), (3, 12), "suites[0]", "none of the controllers", "itself"),
        (row("time to 80% <= 1"), (4, 12), "suites[0].budgets[0]", "none of these rows", "`time to 80 %`"),
        (row("h1: queue peak <= 1"), (4, 12), "suites[0].budgets[0]", "of the row `h1`", "`queue peak`"),
        (suite("rfc8867 = true\nbudgets = [\"jain_end >= 1\"]"), (4, 12), "suites[0].budgets[0]", "jain_end", "`use`"),
        (
            format!("runs = 5\n{}", budget("loss <= 1")),
            (1, 8),
            "runs",
            "5 seeds decide nothing: 1 budgets with the error 0.05 need 6",
            "runs = 6 or more",
        ),
    ] {
        let error = fault(&text);
        assert_eq!((error.position(), error.field_path()), (Some(at), Some(field)), "{text}: {error}");
        assert!(error.message().contains(message), "{text}: {error}");
        assert!(error.help_text().is_some_and(|h| h.contains(help)), "{text}: {:?}", error.help_text());
    }
    // The fault of a scenario's file has its place there.
    let error = fault(&suite("scenario = \"broken.toml\"\nbudgets = [\"loss <= 1\"]"));
    assert!(error.file().ends_with("broken.toml") && error.position().is_some_and(|p| p.0 == 4), "{error}");
}

#[test]
fn plots_of_what_fails_are_written_beside_the_markdown() {
    let dir = folder();
    let (file, registry, stop) = (parsed(MIXED, dir.path()), Registry::builtin(), AtomicBool::new(false));
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let plan = Plan::new(&file, &registry).expect("sound");
    let work = Work { baseline: None, saves: false, threads: 2, elapsed: &|| 0.0, faults: &Vec::new };
    let mut report = plan.run(work, &options, &|_| {}).report;
    let page = dir.path().join("gate.md");
    let written = plan.explain(&mut report, &options, Some(&page)).expect("written");
    assert!((1..=3).contains(&written.len()), "{written:?}");
    for path in &written {
        let name = path.file_name().and_then(|n| n.to_str()).expect("UTF-8");
        assert!(std::fs::read_to_string(path).expect("there").starts_with("<svg"), "{name}");
        assert!(report.markdown().contains(&format!("](<{name}>)")), "{name}");
    }
    let fails: Vec<(&str, Verdict)> = verdicts(&report).into_iter().filter(|v| v.1 == Verdict::Fails).collect();
    assert!(!fails.is_empty() && report.checks.iter().all(|c| c.why.is_none() || c.verdict == Verdict::Fails));
}
