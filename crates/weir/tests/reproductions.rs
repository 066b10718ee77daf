//! The script that compares two outputs of `weir judge paper --json`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/compare/reproductions.py")
}

/// One cell and one claim.
fn reproduction(measured: &str, holds: bool) -> String {
    format!(
        r#"{{"paper": "p", "cells": [{{"paper": "p", "table": "1", "scenario": "s", "condition": "c", "algorithm": "gcc",
            "metric": "loss", "unit": "percent", "published": 2.0, "published_sigma": null, "measured": {measured},
            "measured_sigma": 0.5, "runs": 3}}], "claims": [{{"id": "claim", "holds": {holds}, "measured": []}}]}}"#
    )
}

#[test]
fn differences_are_printed_and_set_the_exit_code() {
    if Command::new("python3").arg("--version").output().is_err() {
        return println!("skipped: no python3 (Debian package: python3)");
    }
    let dir = tempfile::tempdir().expect("a folder");
    let put = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).expect("written");
        path
    };
    let before = put("before.json", &reproduction("2.0", true));
    let run = |after: &Path, tolerance: &[&str]| {
        let out = Command::new("python3").arg(script()).args([&before, &after.to_path_buf()]).args(tolerance).output();
        let out = out.expect("runs");
        (out.status.code(), String::from_utf8(out.stdout).expect("UTF-8"))
    };
    let same = run(&before, &[]);
    assert_eq!(same, (Some(0), "1 cells and 1 claims compared, 0 differences\n".into()));

    let after = put("after.json", &reproduction("2.01", true));
    let (code, text) = run(&after, &[]);
    assert_eq!(code, Some(1));
    assert!(text.contains("p / 1 / s / c / gcc / loss: measured: 2.0 -> 2.01 (+0.50 %)"), "{text}");
    for (tolerance, code) in [(["--relative", "0.01"], 0), (["--absolute", "0.001"], 1), (["--sigmas", "0.1"], 0)] {
        assert_eq!(run(&after, &tolerance).0, Some(code), "{tolerance:?}");
    }

    // No tolerance covers a value or a claim that is lost.
    let lost = put("lost.json", &reproduction("null", false));
    let (code, text) = run(&lost, &["--relative", "9"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("measured: 2.0 -> None") && text.contains("claim claim: True -> False"), "{text}");
    assert_eq!(run(&put("wrong.json", "[]"), &[]).0, Some(2));
}
