//! Ctrl-C and SIGTERM: what had finished is shown as what it is, and nothing that blocks holds them up.
#![cfg(unix)]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const SMALL: &str = r#"
title = "Small"
duration = "20 s"
compare = ["fixed", "nada"]
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
[rtp.video]
controller = "$controller"
start_rate = "500 kbps"
"#;

/// Time that a program has to end after its signal: a second, and some for a busy machine.
const GRACE: Duration = Duration::from_millis(2_500);

fn start(folder: &Path, args: &[&str], stdin: Stdio) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).args(args).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("starts")
}

/// Output of a child that gets this signal after a while, and is killed where it does not end soon.
fn stopped(mut child: Child, after: Duration, signal: &str) -> Output {
    std::thread::sleep(after);
    assert!(child.try_wait().expect("asked").is_none(), "it ended before the signal");
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
    let (ended, late) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if late.recv_timeout(GRACE).is_err() {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
    });
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut out = child.stdout.take().expect("piped");
    let reader = std::thread::spawn(move || {
        out.read_to_end(&mut stdout).expect("read");
        stdout
    });
    child.stderr.take().expect("piped").read_to_end(&mut stderr).expect("read");
    let stdout = reader.join().expect("no panic");
    let status = child.wait().expect("ends");
    let _ = ended.send(());
    watch.join().expect("no panic");
    Output { status, stdout, stderr }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("small.toml"), SMALL).expect("written");
    folder
}

#[test]
fn a_comparison_that_is_killed_goes_on_and_gives_what_an_unbroken_one_gives() {
    let folder = folder();
    let plain = ["compare", "--scenario", "small.toml", "--runs", "300", "--json", "-q"];
    let resumed = [&plain[..], &["--resume", "kept"]].concat();
    let mut first = start(folder.path(), &resumed, Stdio::null());
    // Once some runs are in the file.
    let kept = folder.path().join("kept/weir-runs");
    let has_runs = || std::fs::metadata(&kept).is_ok_and(|m| m.len() > 50_000);
    while !has_runs() && first.try_wait().expect("asked").is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    first.kill().expect("killed");
    first.wait().expect("ends");
    let run = |args: &[&str]| start(folder.path(), args, Stdio::null()).wait_with_output().expect("ends");
    let loud: Vec<&str> = resumed.iter().copied().filter(|a| *a != "-q").collect();
    let (second, unbroken) = (run(&loud), run(&plain));
    let said = text(&second.stderr);
    assert!(second.status.success() && said.contains("of 600 runs were in kept"), "{said}");
    assert_eq!(text(&second.stdout), text(&unbroken.stdout));
}

#[test]
fn a_comparison_that_is_stopped_says_so_everywhere_and_compares_equal_numbers_of_runs() {
    for signal in ["-INT", "-TERM"] {
        let folder = folder();
        let args = ["compare", "--scenario", "small.toml", "--runs", "4000", "--jobs", "2", "--json", "-q"];
        let o = stopped(start(folder.path(), &args, Stdio::null()), Duration::from_millis(2_500), signal);
        assert_eq!(o.status.code(), Some(130), "{signal}: {}", text(&o.stderr));
        let json: serde_json::Value = serde_json::from_slice(&o.stdout).expect("JSON");
        let s = &json["stopped"];
        assert_eq!((s["planned"].as_u64(), s["planned_sets"].as_u64()), (Some(8_000), Some(4_000)));
        let (finished, sets) = (s["finished"].as_u64().expect("a count"), s["sets"].as_u64().expect("a count"));
        assert!(sets >= 1 && finished >= 2 * sets && finished < 8_000, "{s}");
        let runs = json["runs"].as_array().expect("runs");
        assert_eq!(runs.len() as u64, 2 * sets);
        for a in json["aggregates"].as_array().expect("aggregates") {
            assert_eq!(a["seeds"].as_array().map(Vec::len), Some(sets as usize), "{}", a["controller"]);
        }
        let missing = s["missing"].as_array().expect("named");
        assert_eq!(missing.len(), 2);
        assert_eq!((missing[1]["controller"].as_str(), missing[1]["planned"].as_u64()), (Some("nada"), Some(4_000)));
        let page = std::fs::read_to_string(folder.path().join("weir-report/report.html")).expect("a page");
        assert!(page.contains(&format!("stopped after {finished} of 8000 runs")), "the page says so");
    }
    let folder = folder();
    let args = ["compare", "--scenario", "small.toml", "--runs", "4000", "--jobs", "1", "-q"];
    let o = stopped(start(folder.path(), &args, Stdio::null()), Duration::from_millis(1_500), "-INT");
    let table = text(&o.stdout);
    assert!(table.starts_with("stopped after ") && table.contains("small nada"), "{table}");
}

#[test]
fn a_reproduction_that_is_stopped_says_so() {
    let folder = folder();
    let args = ["judge", "paper", "rmcat-comparison", "--table", "2", "--runs", "300", "--json", "-q", "--out", "out"];
    let o = stopped(start(folder.path(), &args, Stdio::null()), Duration::from_millis(2_000), "-TERM");
    assert_eq!(o.status.code(), Some(130), "{}", text(&o.stderr));
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).expect("JSON");
    assert!(json["stopped"]["finished"].as_u64() < json["stopped"]["planned"].as_u64(), "{}", json["stopped"]);
    assert!(json["cells"].is_array());
    assert!(text(&o.stderr).contains("stopped after"), "{}", text(&o.stderr));
}

#[test]
fn reads_that_block_end_at_the_signal() {
    let folder = folder();
    let path = folder.path();
    let made = Command::new("mkfifo").current_dir(path).arg("pipe").status().expect("mkfifo starts");
    assert!(made.success());
    let clip = ["media", "clip", "sports", "--size", "64x48", "--frames", "2", "--out", "clip.y4m", "-q"];
    assert!(start(path, &clip, Stdio::null()).wait().expect("ends").success());
    let cases: [(&[&str], &str); 3] = [
        (&["media", "quality", "clip.y4m", "-"], "standard input"),
        (&["media", "quality", "clip.y4m", "-", "--frames", "frames.csv"], "standard input"),
        (&["media", "quality", "pipe", "clip.y4m"], "pipe"),
    ];
    for (args, what) in cases {
        for signal in ["-INT", "-TERM"] {
            let o = stopped(start(path, args, Stdio::piped()), Duration::from_millis(400), signal);
            assert_eq!(o.status.code(), Some(130), "{args:?} {signal}: {}", text(&o.stderr));
            assert!(text(&o.stderr).contains(&format!("interrupted while reading {what}")), "{}", text(&o.stderr));
        }
    }
    let left: Vec<_> = std::fs::read_dir(path).expect("there").map(|e| e.expect("an entry").file_name()).collect();
    assert!(!left.iter().any(|n| n.to_string_lossy().contains("part")), "{left:?}");
}

/// Standard input that has some pictures and then waits.
fn some_pictures(child: &mut Child, path: &Path) -> std::process::ChildStdin {
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(&std::fs::read(path).expect("there")).expect("written");
    stdin
}

#[cfg(target_os = "linux")]
#[test]
fn a_call_whose_camera_says_nothing_more_ends_in_time() {
    let folder = folder();
    let path = folder.path();
    let clip = ["media", "clip", "sports", "--size", "64x48", "--frames", "20", "--out", "clip.y4m", "-q"];
    assert!(start(path, &clip, Stdio::null()).wait().expect("ends").success());
    let call = ["live", "call", "loopback", "--clip", "-", "-q"];
    // Before the header, and behind some pictures.
    let o = stopped(start(path, &call, Stdio::piped()), Duration::from_millis(400), "-TERM");
    assert_eq!(o.status.code(), Some(130), "{}", text(&o.stderr));
    let mut child = start(path, &call, Stdio::piped());
    let stdin = some_pictures(&mut child, &path.join("clip.y4m"));
    let o = stopped(child, Duration::from_millis(1_000), "-INT");
    assert_eq!(o.status.code(), Some(0), "{}", text(&o.stderr));
    drop(stdin);
    // --duration is heeded: the signal comes when it has ended long ago.
    let mut child = start(path, &["live", "call", "loopback", "--clip", "-", "--duration", "1", "-q"], Stdio::piped());
    let stdin = some_pictures(&mut child, &path.join("clip.y4m"));
    std::thread::sleep(Duration::from_millis(3_500));
    assert_eq!(child.try_wait().expect("asked").map(|s| s.code()), Some(Some(0)));
    drop(stdin);
}
