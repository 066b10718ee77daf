use super::*;
use crate::compare::{Outcome, Plan, Repeat};
use crate::run::RunOptions;
use crate::scenario::ScenarioFile;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weir_cc::Registry;

const TEXT: &str = r#"
    title = "Small"
    duration = "2 s"
    compare = ["fixed", "nada"]
    links.bottleneck = { rate = "1 Mbps", delay = "20 ms", loss = 0.02 }
    rtp.video.controller = "$controller"
    rtp.video.playout_deadline = "100 ms"
"#;

fn plan(text: &str) -> Plan {
    let registry = Registry::builtin();
    let file = ScenarioFile::parse("small", text, ".".as_ref(), &registry).expect("reads");
    Plan::new(&[file], None, Repeat { runs: 3, own: false, seed: Some(7) }, &registry).expect("plans")
}

/// Runs with a journal; the stop flag is raised as so many runs have begun. Returns also how many began.
fn run(plan: &Plan, journal: Option<&Journal>, stop_at: u64) -> (Outcome, u64) {
    let (registry, stop, begun) = (Registry::builtin(), AtomicBool::new(false), AtomicU64::new(0));
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let outcome = plan.run(1, &options, journal, &|_: &Scenario, _| {
        if begun.fetch_add(1, Ordering::Relaxed) + 1 == stop_at {
            stop.store(true, Ordering::Relaxed);
        }
    });
    (outcome, begun.into_inner())
}

fn digests(o: &Outcome) -> Vec<String> {
    o.runs().map(RunResult::digest).collect()
}

/// A folder with a program in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    fs::write(&program, "a build").expect("written");
    (folder, program)
}

#[test]
fn a_controller_whose_source_has_changed_is_run_again() {
    use weir_cc::Spec;
    let file = ScenarioFile::parse("small", TEXT, ".".as_ref(), &Registry::builtin()).expect("reads");
    let scenario = file.one(None, Some("fixed"), &Registry::builtin()).expect("resolves");
    let of = |source: &str| {
        let mut registry = Registry::builtin();
        let fixed = registry.find("fixed").expect("there").clone();
        registry.register(Spec { source: source.to_owned(), ..fixed }, |_, _| unreachable!("not made"));
        ScenarioDigest::of(&scenario, &registry).map(|digest| digest.key(1, false))
    };
    assert!(of("a file").is_some());
    assert_eq!(of("a file"), of("a file"));
    assert_ne!(of("a file"), of("another file of the same name"));
}

#[test]
fn a_stopped_plan_goes_on_and_gives_the_bytes_of_one_that_was_not() {
    let (folder, program) = folder();
    let plan = plan(TEXT);
    let (whole, _) = run(&plan, None, 99);
    let open = || Journal::open(folder.path(), &program).expect("opens");
    // The fourth run is stopped as it begins.
    let (first, begun) = run(&plan, Some(&open()), 4);
    assert_eq!((first.stopped.as_ref().map(|s| s.finished), begun), (Some(3), 4));
    let journal = open();
    assert_eq!(journal.runs(), 3);
    let (second, begun) = run(&plan, Some(&journal), 99);
    assert_eq!((second.stopped.is_none(), begun, journal.found(), journal.runs()), (true, 3, 3, 6));
    assert_eq!(digests(&second), digests(&whole));
    let same = |a: &RunResult, b: &RunResult| (a.rates_over_time == b.rates_over_time) && a.outline == b.outline;
    assert!(second.runs().zip(whole.runs()).all(|(a, b)| same(a, b)));
    assert_eq!(second.runs().filter(|r| r.series.is_some()).count(), 2);
    drop(journal);
    let journal = open();
    let (third, begun) = run(&plan, Some(&journal), 99);
    assert_eq!((begun, digests(&third)), (0, digests(&whole)));
    assert_eq!(journal.error(), None);
}

#[test]
fn other_links_seeds_and_builds_find_nothing() {
    let (folder, program) = folder();
    let (_, begun) = run(&plan(TEXT), Some(&Journal::open(folder.path(), &program).expect("opens")), 99);
    assert_eq!(begun, 6);
    let journal = Journal::open(folder.path(), &program).expect("opens");
    let (_, begun) = run(&plan(&TEXT.replace("0.02", "0.03")), Some(&journal), 99);
    assert_eq!((begun, journal.found()), (6, 0));
    drop(journal);
    fs::write(&program, "another build").expect("written");
    let e = Journal::open(folder.path(), &program).expect_err("another build");
    assert!(e.to_string().contains("another build of weir"), "{e}");
    assert!(e.help_text().is_some_and(|h| h.contains("remove the file")), "{e:?}");
}

#[test]
fn a_file_that_was_cut_off_or_damaged_gives_the_runs_that_are_whole() {
    let (folder, program) = folder();
    let plan = plan(TEXT);
    let (whole, _) = run(&plan, Some(&Journal::open(folder.path(), &program).expect("opens")), 99);
    let path = folder.path().join(FILE);
    let bytes = fs::read(&path).expect("there");
    // At every length the file opens; what is not there is run again.
    for length in (HEADER as usize..bytes.len()).step_by(bytes.len() / 7) {
        fs::write(&path, &bytes[..length]).expect("written");
        let journal = Journal::open(folder.path(), &program).expect("opens");
        let kept = journal.runs();
        let (o, begun) = run(&plan, Some(&journal), 99);
        assert_eq!((begun as usize + kept, digests(&o)), (6, digests(&whole)), "{length} bytes");
    }
    // A flipped bit in the last run.
    let mut damaged = bytes.clone();
    *damaged.last_mut().expect("bytes") ^= 1;
    fs::write(&path, &damaged).expect("written");
    let journal = Journal::open(folder.path(), &program).expect("opens");
    let (o, begun) = run(&plan, Some(&journal), 99);
    assert_eq!((begun, digests(&o)), (1, digests(&whole)));
    drop(journal);
    // Lengths that lie.
    let mut long = bytes[..HEADER as usize].to_vec();
    long.extend([0xff; 200]);
    fs::write(&path, &long).expect("written");
    assert_eq!(Journal::open(folder.path(), &program).expect("opens").runs(), 0);
    fs::write(&path, "something else").expect("written");
    let e = Journal::open(folder.path(), &program).expect_err("no journal");
    assert!(e.to_string().contains("not a file of finished runs"), "{e}");
}

#[test]
fn two_at_once_are_refused() {
    let (folder, program) = folder();
    let _first = Journal::open(folder.path(), &program).expect("opens");
    let e = Journal::open(folder.path(), &program).expect_err("in use");
    assert!(e.to_string().contains("another weir"), "{e}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_loses_no_result() {
    let (folder, program) = folder();
    let plan = plan(TEXT);
    let journal = Journal::open(folder.path(), &program).expect("opens");
    journal.lock().file = OpenOptions::new().read(true).write(true).open("/dev/full").expect("there");
    let (o, _) = run(&plan, Some(&journal), 99);
    assert_eq!(o.count(), 6);
    assert!(journal.error().is_some_and(|e| e.contains("not kept")), "{:?}", journal.error());
}
