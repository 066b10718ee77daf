//! `weir live dccp` as users run it: two processes over an emulated link, and alone. Tests that need namespaces and
//! /dev/net/tun print that and are skipped if these are missing.
//!
//! Each transfer is of 20 MB; WEIR_DCCP_SIZE=1GB makes it longer.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

fn weir(args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_weir"));
    c.args(args).env("NO_COLOR", "1").stdin(Stdio::null());
    c
}

fn lacks(out: &Output) -> bool {
    let text = String::from_utf8_lossy(&out.stderr);
    let wants = ["not permitted", "/dev/net/tun", "Debian package"];
    let lacks = !out.status.success() && wants.iter().any(|w| text.contains(w));
    if lacks {
        println!("skipped: {}", text.trim());
    }
    lacks
}

fn json(path: &std::path::Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}: {text}", path.display()))
}

/// A transfer between two processes in namespaces joined by a lossy link, counted at both ends.
fn transfer(ccid: &str) {
    let size = std::env::var("WEIR_DCCP_SIZE").unwrap_or_else(|_| "20MB".into());
    let dir = tempfile::tempdir().expect("a folder");
    let (sent, received) = (dir.path().join("sent.json"), dir.path().join("received.json"));
    let exe = env!("CARGO_BIN_EXE_weir");
    let server = format!("{exe} dccp serve --listen 0.0.0.0 --once --json --quiet > {}", received.display());
    // The server has slightly more time to start, and to write its counters.
    let client = format!(
        "sleep 1; {exe} dccp send $WEIR_PEER --size {size} --ccid {ccid} --json --quiet > {}; status=$?; sleep 1; exit $status",
        sent.display()
    );
    let link = ["--rate", "200mbps", "--delay", "5ms", "--queue", "20ms", "--loss", "0.1%"];
    let args =
        [&["live", "emulate", "--quiet", "--json", "--seed", "7"], &link[..], &["--right", &server, "--left", &client]];
    let out = weir(&args.concat()).output().expect("weir runs");
    if lacks(&out) {
        return;
    }
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let (sent, received) = (json(&sent), json(&received));
    let received = &received["connections"][0];
    println!("sent {sent}\nreceived {received}");
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap_or_else(|| panic!("{name} in {of}"));
    for end in [&sent, received] {
        assert_eq!((end["closed"].as_bool(), end["ccid"].to_string()), (Some(true), ccid.to_owned()), "{end}");
    }
    // Received datagrams are intact and unique; missing ones are known, except those lost after the last one received.
    assert_eq!((number(received, "damaged"), number(received, "duplicates")), (0.0, 0.0));
    let datagrams = number(&sent, "datagrams");
    let known = number(received, "datagrams") + number(received, "lost");
    assert!(known <= datagrams && datagrams - known < 50.0, "{known} of {datagrams}");
    // The link loses 0.1 %; doubling the rate into a full queue at the start costs some hundred datagrams once. Those that arrived
    // while a busy machine's receiver was too slow to take them are counted apart.
    let dropped = number(received, "dropped");
    let loss = (number(received, "lost") - dropped).max(0.0) / known;
    assert!((0.0..0.1).contains(&loss), "{loss}");
    let share = (number(received, "datagrams") + dropped) / datagrams;
    assert!((0.9..=1.0).contains(&share), "{share} of {datagrams}");
    assert!(number(received, "bytes") / number(&sent, "bytes") > 0.5);
    let rate = number(received, "rate_bps");
    assert!((0.2e6..200e6).contains(&rate), "{rate}");
}

#[test]
fn ccid_2_carries_data_over_a_lossy_link_and_all_of_it_is_counted() {
    transfer("2");
}

#[test]
fn ccid_3_carries_data_over_a_lossy_link_and_all_of_it_is_counted() {
    transfer("3");
}

fn stderr_of(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn errors_are_reported_with_the_remedy() {
    let run = |args: &[&str]| weir(&[&["live", "dccp"], args].concat()).output().expect("weir runs");
    let cases: [(&[&str], i32, &str); 9] = [
        (&["send", "127.0.0.1", "--ccid", "77"], 2, "there is no such CCID"),
        (&["send", "127.0.0.1", "--size", "3 apples"], 2, "no unit of data"),
        (&["send", "127.0.0.1", "--rate", "5"], 2, "has no unit"),
        (&["send", "127.0.0.1", "--packet-size", "5"], 2, "checksum"),
        (&["send", "127.0.0.1", "--param", "nonsense=1"], 2, "weir show ccids"),
        (&["send", "127.0.0.1", "--service", "toolong"], 2, "four letters"),
        (&["send", "no such host"], 2, "HOST:PORT"),
        (&["send", "127.0.0.1:9", "--size", "1MB"], 1, "nothing listens"),
        (&["serve", "--listen", "192.0.2.1:0"], 1, "192.0.2.1"),
    ];
    for (args, code, text) in cases {
        let out = run(args);
        assert!(out.status.code() == Some(code) && stderr_of(&out).contains(text), "{args:?}: {}", stderr_of(&out));
    }
    let show = |args: &[&str]| weir(&[&["show", "ccids"], args].concat()).output().expect("weir runs");
    let list: Value = serde_json::from_slice(&show(&["--json"]).stdout).expect("JSON");
    let numbers: Vec<u64> =
        list["ccids"].as_array().expect("a list").iter().filter_map(|c| c["ccid"].as_u64()).collect();
    assert!(numbers.starts_with(&[2, 3]), "{numbers:?}");
    assert!(String::from_utf8_lossy(&show(&[]).stdout).contains("RFC 4341"));
}

/// A server that receives already; its remarks are to be read on.
fn serve(port: u16) -> (Child, BufReader<ChildStderr>) {
    let listen = format!("127.0.0.1:{port}");
    let server = weir(&["live", "dccp", "serve", "--listen", &listen, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut server = server.expect("weir runs");
    let mut remarks = BufReader::new(server.stderr.take().expect("a pipe"));
    let mut line = String::new();
    remarks.read_line(&mut line).expect("a remark");
    assert!(line.contains(&listen), "{line}");
    (server, remarks)
}

fn free() -> u16 {
    std::net::UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

fn interrupt(child: &Child) {
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.is_ok_and(|s| s.success()));
}

#[test]
fn ctrl_c_closes_in_order_and_prints_the_summary() {
    let port = free();
    let (server, mut remarks) = serve(port);
    let stderr_reader = std::thread::spawn(move || {
        let mut rest = String::new();
        remarks.read_to_string(&mut rest).map(|_| rest)
    });
    let to = format!("127.0.0.1:{port}");
    let client = weir(&["live", "dccp", "send", &to, "--rate", "2Mbit", "--json", "--progress"]);
    let client = { client }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir runs");
    std::thread::sleep(Duration::from_millis(1_500));
    interrupt(&client);
    let out = client.wait_with_output().expect("its end");
    assert!(out.status.success(), "{}", stderr_of(&out));
    let sent: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert!(sent["closed"] == true && sent["datagrams"].as_u64().is_some_and(|n| n > 10), "{sent}");
    assert!(stderr_of(&out).contains("Mbit/s of"), "progress: {}", stderr_of(&out));
    // A second client is there when the server is stopped.
    let other = weir(&["live", "dccp", "send", &to, "--json", "--rate", "1Mbit", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    std::thread::sleep(Duration::from_millis(700));
    interrupt(&server);
    let served = server.wait_with_output().expect("its end");
    let remarks = stderr_reader.join().expect("no panic").expect("text");
    assert!(served.status.success() && remarks.contains("has connected"), "{remarks}");
    let all: Value = serde_json::from_slice(&served.stdout).expect("JSON alone");
    let first = &all["connections"][0];
    assert_eq!((first["damaged"].as_u64(), first["closed"].as_bool()), (Some(0), Some(true)), "{all}");
    assert_eq!(first["datagrams"].as_u64().zip(first["lost"].as_u64()).map(|(a, b)| a + b), sent["datagrams"].as_u64());
    assert_eq!(all["connections"].as_array().map(Vec::len), Some(2), "{all}");
    let out = other.expect("weir runs").wait_with_output().expect("its end");
    assert_eq!(out.status.code(), Some(1), "the server has closed");
    assert!(serde_json::from_slice::<Value>(&out.stdout).is_ok_and(|v| v["ended_by"].is_string()));
}
