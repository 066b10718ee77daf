//! The links of `tools/record-calls`, which records calls whose causes are known.

use std::path::Path;
use std::process::Command;
use weir_cc::Registry;
use weir_lab::scenario::ScenarioFile;

#[test]
fn each_link_of_the_recorder_of_calls_is_a_scenario() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3 on this machine");
        return;
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/record-calls");
    // The calls of the list, and two lists of drawn ones.
    for more in [&[][..], &["--seed", "1"], &["--seed", "20"]] {
        check(&program, more);
    }
}

fn check(program: &Path, more: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |option: &str| {
        let made =
            Command::new("python3").arg(program).arg(folder.path()).arg(option).args(more).output().expect("runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8(made.stdout).expect("UTF-8")
    };
    run("--links");
    let registry = Registry::builtin();
    let (mut files, mut faults) = (0, 0);
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        let text = std::fs::read_to_string(entry.expect("readable").path()).expect("UTF-8");
        let file =
            ScenarioFile::parse("link", &text, folder.path(), &registry).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let scenario = file.one(None, None, &registry).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(scenario.duration.as_secs_f64(), 90.0);
        files += 1;
        faults += usize::from(text.contains("steps"));
    }
    let list = run("--list");
    assert_eq!(list.lines().count(), files);
    assert!((20..=100).contains(&files) && (10..=files).contains(&faults), "{faults} of {files}");
    // Healthy calls, and causes that are no fault of the link.
    for cause in ["healthy", "sender limited", "source paused", "other end asked", "cross traffic"] {
        assert!(list.contains(cause), "{cause}: {list}");
    }
}
