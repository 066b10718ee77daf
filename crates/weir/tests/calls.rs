//! `weir live call` between two processes, as users run it, including faults of one of them.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn weir(args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_weir"));
    c.args(args).env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    c
}

/// A listener, and the lines of its standard error up to its address.
struct Listener {
    child: Child,
    errors: BufReader<ChildStderr>,
    address: String,
    fingerprint: Option<String>,
}

impl Listener {
    fn start(signal: &str, more: &[&str], home: &Path) -> Self {
        let mut command = weir(&[&["live", "call", "listen", "--json", "--signal", signal], more].concat());
        let mut child = command.env("XDG_CONFIG_HOME", home).spawn().expect("weir starts");
        let mut errors = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("waiting at ").unwrap_or_else(|| panic!("{line}")).to_owned();
        let mut fingerprint = None;
        if signal.starts_with("tls:") {
            line.clear();
            errors.read_line(&mut line).expect("a line");
            fingerprint = line.trim().strip_prefix("--fingerprint ").map(str::to_owned);
        }
        Self { child, errors, address, fingerprint }
    }

    /// Its end: whether it succeeded, its results, and the rest of its output.
    fn finish(mut self) -> (bool, Value, String) {
        let out = self.child.wait_with_output().expect("it ends");
        let mut said = String::new();
        self.errors.read_to_string(&mut said).expect("text");
        (out.status.success(), serde_json::from_slice(&out.stdout).unwrap_or(Value::Null), said)
    }
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn results(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(out)))
}

#[test]
fn a_call_under_tls_goes_to_the_listener_with_the_fingerprint_alone() {
    let home = tempfile::tempdir().expect("a folder");
    let listener = Listener::start("tls:127.0.0.1:0", &[], home.path());
    let (to, right) = (format!("tls:{}", listener.address), listener.fingerprint.clone().expect("printed"));
    let wrong = right.replace(&right[..2], if right.starts_with("00") { "01" } else { "00" });
    let connect = |more: &[&str]| {
        let args = [&["live", "call", "connect", "--signal", &to, "--duration", "1.5", "--json"], more].concat();
        weir(&args).output().expect("weir runs")
    };
    let out = connect(&[]);
    assert!(!out.status.success() && said(&out).contains("--fingerprint"), "{}", said(&out));
    let out = connect(&["--fingerprint", &wrong]);
    assert!(!out.status.success() && said(&out).contains(&right), "{}", said(&out));
    let out = connect(&["--fingerprint", &right]);
    assert!(out.status.success(), "{}", said(&out));
    assert_eq!(results(&out)["end"]["ended"]["why"], "duration");
    let (done, results, refusals) = listener.finish();
    assert!(done && refusals.contains("refused 127.0.0.1:"), "{refusals}");
    assert_eq!(results["end"]["ended"]["why"], "goodbye");
    assert!(results["end"]["received"]["rtp_packets"].as_u64().is_some_and(|n| n > 20), "{results}");
    // The next listener is the same one.
    let mut again = Listener::start("tls:127.0.0.1:0", &[], home.path());
    assert_eq!(again.fingerprint.as_deref(), Some(&right[..]));
    again.child.kill().expect("it runs");
    again.child.wait().expect("it ends");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long another process takes")]
fn a_dead_peer_ends_the_call_with_a_reason() {
    let home = tempfile::tempdir().expect("a folder");
    let mut listener = Listener::start("tcp:127.0.0.1:0", &[], home.path());
    let to = format!("tcp:{}", listener.address);
    let args = ["live", "call", "connect", "--signal", &to, "--timeout", "3", "--duration", "60", "--json"];
    let caller = weir(&args).spawn().expect("weir starts");
    std::thread::sleep(Duration::from_secs(3));
    // SIGKILL: no goodbye.
    listener.child.kill().expect("it runs");
    listener.child.wait().expect("it ends");
    let begin = Instant::now();
    let out = caller.wait_with_output().expect("it ends");
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    assert_eq!(out.status.code(), Some(1), "{}", said(&out));
    assert!(said(&out).contains("nothing was received from the other end for 3."), "{}", said(&out));
    let end = &results(&out)["end"]["ended"];
    assert_eq!(end["why"], "silence", "{end}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long the connections take")]
fn refusals_make_ten_lines_a_second_and_the_rest_is_counted() {
    const STRANGERS: u64 = 300;
    let home = tempfile::tempdir().expect("a folder");
    let listener = Listener::start("tcp:127.0.0.1:0", &[], home.path());
    let begin = Instant::now();
    for _ in 0..STRANGERS {
        drop(TcpStream::connect(&listener.address).expect("accepted"));
    }
    // All are refused before the end.
    std::thread::sleep(Duration::from_secs(1));
    let id = listener.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().is_ok_and(|s| s.success()));
    let (_, _, said) = listener.finish();
    let seconds = begin.elapsed().as_secs() + 1;
    let (mut lines, mut counted) = (0, 0);
    for line in said.lines().filter_map(|l| l.strip_prefix("refused ")) {
        match line.strip_suffix(" more") {
            Some(n) => counted += n.parse::<u64>().expect("a number"),
            None => lines += 1,
        }
    }
    assert!(lines >= 10 && lines <= 10 * seconds, "{lines} lines in {seconds} s");
    assert_eq!(lines + counted, STRANGERS, "{said}");
}

/// Another key in each line of SDES, of the same length.
fn with_other_keys(sdp: &str) -> String {
    let line = |l: &str| match l.split_once("inline:") {
        Some((head, key)) => {
            let other: String = key.chars().map(|c| if c == 'A' { 'B' } else { 'A' }).take(20).collect();
            format!("{head}inline:{other}{}\r\n", &key[20..])
        }
        None => format!("{l}\r\n"),
    };
    sdp.lines().map(line).collect()
}

fn wait_for(path: &Path) -> String {
    let whole = (0..600).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        fs::read_to_string(path).ok()
    });
    whole.unwrap_or_else(|| panic!("no {}", path.display()))
}

#[test]
fn both_ends_say_that_their_keys_differ() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    let way = |name: &str| format!("file:{}", at(name).display());
    let (here, there) = (way("here"), way("there"));
    let args = |role, way| ["live", "call", role, "--signal", way, "--timeout", "5", "--duration", "60", "--json"];
    let listening = weir(&args("listen", &there)).spawn().expect("weir starts");
    let calling = weir(&args("connect", &here)).spawn().expect("weir starts");
    // A man in the middle changes the keys.
    let offer = with_other_keys(&wait_for(&at("here.offer")));
    fs::write(at("part"), offer).and_then(|()| fs::rename(at("part"), at("there.offer"))).expect("written");
    let answer = with_other_keys(&wait_for(&at("there.answer")));
    fs::write(at("part"), answer).and_then(|()| fs::rename(at("part"), at("here.answer"))).expect("written");
    for end in [calling, listening] {
        let out = end.wait_with_output().expect("it ends");
        let said = said(&out);
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains("do both ends have the same keys?"), "{said}");
        assert!(said.contains("nothing authentic was received for 5."), "{said}");
        let summary = &results(&out)["end"];
        assert!(summary["srtp"]["refused"].as_u64().is_some_and(|n| n > 0), "{summary}");
        assert_eq!(summary["srtp"]["accepted"], 0);
    }
}

#[cfg(feature = "onnx")]
#[test]
fn a_learned_policy_controls_calls_and_its_file_is_not_told() {
    let policy = concat!("onnx:", env!("CARGO_MANIFEST_DIR"), "/../../examples/python/policy.onnx");
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    let way = format!("file:{}", at("call").display());
    let rates =
        ["--controller", policy, "--start-rate", "150kbps", "--max-rate", "1500kbps", "--duration", "3", "--json"];
    let pictures = ["live", "call", "connect", "--signal", &way, "--size", "320x240"];
    let model = ["live", "call", "loopback", "--codec", "model"];
    let calling = weir(&[&pictures[..], &rates].concat()).spawn().expect("weir starts");
    let alone = weir(&[&model[..], &rates].concat()).spawn().expect("weir starts");
    // The listener takes the offer away as soon as it has read it.
    let offer = wait_for(&at("call.offer"));
    let listening = weir(&["live", "call", "listen", "--signal", &way, "--json"]).spawn().expect("weir starts");
    assert!(offer.contains("x-weir-controller:scream2") && !offer.contains("onnx"), "{offer}");
    let [listening, calling, alone] = [listening, calling, alone].map(|c| c.wait_with_output().expect("it ends"));
    assert_eq!(results(&listening)["end"]["ended"]["why"], "goodbye", "{}", said(&listening));
    for end in [&results(&calling)["end"], &results(&alone)["sender"]] {
        assert_eq!(end["ended"]["why"], "duration", "{end}");
        // Up from its start, and within its bounds.
        let target = end["target_bps"].as_u64().expect("it sends");
        assert!((500_000..=1_500_000).contains(&target), "{end}");
    }
    for (arguments, fault) in [
        (&["live", "call", "loopback", "--controller", "onnx:absent.onnx"][..], "absent.onnx"),
        (&["live", "webrtc", "--controller", "onnx:absent.onnx"], "absent.onnx"),
        (&["run", "quick", "--controller", "onnx:Cargo.toml"], "Cargo.toml"),
    ] {
        let out = weir(arguments).output().expect("weir runs");
        assert!(!out.status.success() && said(&out).contains(fault), "{}", said(&out));
    }
}
