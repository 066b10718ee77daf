//! `weir search sweep`: every run once, whole files at a stop, faults at their place.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::files;

const GRID: &str = r#"
scenarios = """
title = "Short"
duration = "3 s"
compare = ["gcc"]
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
queue = "200 ms"
[rtp.call]
controller = "$controller"
"""
controllers = ["gcc", "nada"]
seeds = 3
[set]
links.bottleneck.delay = ["20 ms", "80 ms"]
"#;

fn sweep(folder: &Path, grid: &str, arguments: &[&str]) -> Command {
    fs::write(folder.join("grid.toml"), grid).expect("writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["search", "sweep", "grid.toml"]).args(arguments).current_dir(folder);
    command
}

fn said(out: &Output) -> String {
    [&out.stdout[..], &out.stderr].map(String::from_utf8_lossy).concat()
}

#[test]
fn every_run_is_made_once_and_the_bytes_do_not_depend_on_jobs() {
    let folder = tempfile::tempdir().expect("writable");
    let run = |arguments: &[&str]| {
        let out = sweep(folder.path(), GRID, arguments).output().expect("it runs");
        assert!(out.status.success(), "{}", said(&out));
        said(&out)
    };
    assert!(run(&["--dry-run"]).contains("12 runs: none is kept"));
    assert!(!folder.path().join("weir-sweep").exists());
    let first = run(&["--out", "a", "--jobs", "1", "--quiet"]);
    assert!(first.contains("12 runs: 0 kept before, 12 made, 0 failed"), "{first}");
    assert!(run(&["--out", "b", "--jobs", "3"]).contains("12 made"));
    let (a, b) = (files(&folder.path().join("a")), files(&folder.path().join("b")));
    assert_eq!(a, b);
    assert_eq!(a.len(), 3, "two controllers and the mark");
    assert!(run(&["--out", "a"]).contains("12 kept before, 0 made"));
    assert!(run(&["--out", "a", "--dry-run"]).contains("12 kept in a, 0 to make"));
}

#[test]
fn a_stop_leaves_whole_files_and_says_what_is_missing() {
    let folder = tempfile::tempdir().expect("writable");
    let long = GRID.replace("seeds = 3", "seeds = 2000").replace("3 s", "60 s");
    let child = sweep(folder.path(), &long, &["--jobs", "2"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("it starts");
    let runs = folder.path().join("weir-sweep/runs");
    // The first file is written after 64 runs: a minute at most.
    for _ in (0..3_000).take_while(|_| !runs.exists()) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(stopped.success());
    let out = child.wait_with_output().expect("it ends");
    assert_eq!(out.status.code(), Some(130), "{}", said(&out));
    assert!(said(&out).contains("missing: the same command makes the rest"), "{}", said(&out));
    let all = files(&folder.path().join("weir-sweep"));
    assert!(all.iter().all(|(path, _)| path.extension().is_some_and(|e| e == "parquet" || e == "json")), "{all:?}");
    // Finished runs are found again.
    let again = sweep(folder.path(), &long, &["--dry-run"]).output().expect("it runs");
    let kept: u32 =
        said(&again).split(" kept in").next().and_then(|s| s.rsplit(' ').next()?.parse().ok()).expect("a number");
    assert!((64..8_000).contains(&kept), "{kept}");
}

#[test]
fn faults_are_named_before_anything_runs_and_failures_are_kept() {
    let folder = tempfile::tempdir().expect("writable");
    for (grid, words) in [
        (GRID.replace("controllers", "controler"), &["controler", "grid.toml"][..]),
        (GRID.replace("scenarios", "#"), &["grid.toml"]),
        (GRID.replace("nada", "naba"), &["naba", "controllers"]),
        (GRID.replace("links.bottleneck.delay", "links.bottlenek.delay"), &["links.bottlenek", "set"]),
        (GRID.replace("seeds = 3", "seeds = \"three\""), &["seeds"]),
        (GRID.replace("seeds = 3", "seeds = 900000"), &["1000000 runs"]),
        (GRID.replace("seeds = 3", "seeds = 0"), &["seeds", "there is none", "give one or more"]),
        (GRID.replace("[\"gcc\", \"nada\"]", "[]"), &["controllers", "there is none"]),
        (GRID.replace("[\"20 ms\", \"80 ms\"]", "[]"), &["set.links.bottleneck.delay", "there is none"]),
        (GRID.replace("\"gcc\", ", "\"onnx:none.onnx\", "), &["onnx:none.onnx"]),
    ] {
        let out = sweep(folder.path(), &grid, &[]).output().expect("it runs");
        assert_eq!(out.status.code(), Some(2), "{}", said(&out));
        assert!(words.iter().all(|w| said(&out).contains(w)), "{}: expected {words:?}", said(&out));
        assert!(!folder.path().join("weir-sweep").exists());
    }
    let wide = GRID.replace("[set]", "[set]\nrtp.call.floor = [\"50 kbps\", \"9 Gbps\"]");
    let out = sweep(folder.path(), &wide, &[]).output().expect("it runs");
    assert_eq!(out.status.code(), Some(1), "{}", said(&out));
    assert!(said(&out).contains("24 runs: 0 kept before, 24 made, 12 failed"), "{}", said(&out));
    let again = sweep(folder.path(), &wide, &[]).output().expect("it runs");
    assert!(again.status.success() && said(&again).contains("24 kept before, 0 made"), "{}", said(&again));
    assert!(said(&again).contains("of those kept, 12 runs failed"), "{}", said(&again));
    fs::create_dir(folder.path().join("full"))
        .and_then(|()| fs::write(folder.path().join("full/thesis.tex"), ""))
        .expect("writable");
    let out = sweep(folder.path(), GRID, &["--out", "full"]).output().expect("it runs");
    assert!(said(&out).contains("empty folder"), "{}", said(&out));
}
