//! Excessive input is refused, with the limit and the way out, before it takes memory.
#![cfg(unix)]

use std::process::{Command, Output};

const SMALL: &str = r#"
title = "Small"
duration = "200 ms"
compare = ["fixed", "nada"]
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
[rtp.video]
controller = "$controller"
"#;

/// Runs with 1 GB of address space at most.
fn weir(folder: &std::path::Path, args: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.current_dir(folder).env("NO_COLOR", "1");
    command.args(["-c", "ulimit -v 1000000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_weir")]).args(args);
    command.output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('│', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("small.toml"), SMALL).expect("written");
    let trace = SMALL.replace("\"1 Mbps\"", "{ trace = \"/dev/zero\" }");
    std::fs::write(folder.path().join("endless.toml"), trace).expect("written");
    let piped = SMALL.replace("\"1 Mbps\"", "{ trace = \"pipe\" }");
    std::fs::write(folder.path().join("piped.toml"), piped).expect("written");
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status().expect("mkfifo starts");
    assert!(made.success());
    let frames = format!("{SMALL}source = {{ model = \"trace\", file = \"big\" }}\n");
    std::fs::write(folder.path().join("big.toml"), frames).expect("written");
    std::fs::File::create(folder.path().join("big")).and_then(|f| f.set_len(300 << 20)).expect("a hole");
    folder
}

#[test]
fn a_thousand_million_runs_are_refused_and_thousands_take_no_memory() {
    let folder = folder();
    let path = folder.path();
    for args in [
        &["compare", "--scenario", "small.toml", "--runs", "1000000000"][..],
        &["judge", "paper", "rmcat-comparison", "--runs", "1000000000"],
        &["judge", "paper", "rmcat-comparison", "--table", "2", "--runs", "9000"],
    ] {
        let o = weir(path, args);
        let said = text(&o.stderr);
        assert_eq!(o.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("--runs") && (said.contains("1000000") || said.contains("10000")), "{said}");
    }
    // 12,000 runs are above the number whose results are kept: the statistics are there, and the first run of each.
    let args = ["compare", "--scenario", "small.toml", "--runs", "6000", "--json"];
    let o = weir(path, &args);
    assert!(o.status.success(), "{}", text(&o.stderr));
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).expect("JSON");
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(2));
    let stat = &json["aggregates"][1]["flows"][0]["metrics"]["goodput_bps"];
    assert_eq!(stat["runs"].as_u64(), Some(6_000));
    assert!(text(&o.stderr).contains("10000 runs"), "{}", text(&o.stderr));
}

#[test]
fn what_is_no_file_is_refused_and_large_files_by_name_size_and_limit() {
    let folder = folder();
    for (args, parts) in [
        (&["run", "/dev/zero"][..], &["/dev/zero", "only regular files are read"][..]),
        (&["show", "scenario", "--check", "/dev/zero"], &["/dev/zero", "only regular files are read"]),
        (&["run", "endless.toml", "--controller", "fixed"], &["/dev/zero", "only regular files are read"]),
        (&["run", "pipe"], &["pipe", "only regular files are read"]),
        (&["show", "scenario", "--check", "piped.toml"], &["pipe", "only regular files are read"]),
        (&["compare", "--scenario", "piped.toml"], &["pipe", "only regular files are read"]),
        (&["run", "/proc/kmsg"], &["/proc/kmsg"]),
        (&["run", "big.toml", "--controller", "fixed"], &["big", "300 MiB", "256 MiB"]),
        (&["run", "big", "--controller", "fixed"], &["big", "300 MiB", "4096 KiB"]),
    ] {
        let o = weir(folder.path(), args);
        let said = text(&o.stderr);
        assert_eq!(o.status.code(), Some(2), "{args:?}: {said}");
        assert!(parts.iter().all(|p| said.contains(p)), "{parts:?} in {said}");
    }
}
