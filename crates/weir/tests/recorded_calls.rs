//! `weir whatif` with changes and a check, and `weir search calls`: every row once, damaged recordings beside the others, whole
//! files at a stop.
#![cfg(unix)]

mod support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::files;

fn weir(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).args(args).env("NO_COLOR", "1").env("COLUMNS", "80").output().expect("starts")
}

/// Both outputs, without line breaks.
fn said(out: &Output) -> String {
    let text = [&out.stdout[..], &out.stderr].map(String::from_utf8_lossy).concat();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn good(folder: &Path, args: &[&str]) -> String {
    let out = weir(folder, args);
    assert!(out.status.success(), "{args:?}: {}", said(&out));
    said(&out)
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let out = weir(folder, args);
    assert!(out.status.success(), "{args:?}: {}", said(&out));
    serde_json::from_slice(&out.stdout).expect("JSON")
}

/// A call of some seconds over a link, recorded at both ends in a folder of its own.
fn record(folder: &Path, name: &str, link: &str, seconds: u32, seed: u32) {
    let call = folder.join(name);
    fs::create_dir_all(&call).expect("writable");
    let scenario = format!(
        "title = \"A call\"\nduration = \"{seconds} s\"\n[links.path]\n{link}\ndelay = \"20 ms\"\nqueue = \"300 ms\"\n\
         [rtp.video]\ncontroller = \"gcc\"\nfloor = \"50 kbps\"\nceiling = \"2500 kbps\"\nstart_rate = \"300 kbps\"\n\
         source = {{ model = \"perfect-frames\", fps = 30 }}\n"
    );
    let file = folder.join("link.toml");
    fs::write(&file, scenario).expect("writable");
    for end in ["sender", "receiver"] {
        let to = call.join(format!("{end}.pcapng"));
        let args = ["run", "link.toml", "-q", "--seed", &seed.to_string(), "--pcap-at", end, "--pcap"];
        good(folder, &[&args[..], &[to.to_str().expect("UTF-8")]].concat());
    }
    fs::remove_file(file).expect("there");
}

#[test]
fn changes_and_the_check_of_the_recorded_controller_are_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    record(path, "plain", "rate = \"1 Mbps\"", 20, 1);
    let call =
        ["whatif", "plain/sender.pcapng", "plain/receiver.pcapng", "--draws", "4", "-q", "--controllers", "gcc,nada"];
    fn with<'a>(call: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
        [call, more].concat()
    }
    // Of a controller that filled the link, the fit takes for the application's limit what it sent.
    let unstated = with(&call, &["--controller", "gcc"]);
    assert!(good(path, &unstated).contains("--ceiling states the application's limit"), "{}", good(path, &unstated));
    let low = weir(path, &with(&call, &["--ceiling", "30kbps"]));
    assert!(low.status.success(), "a ceiling below the usual floor: {}", said(&low));
    let call = with(&call, &["--ceiling", "2500kbps"]);
    let without = good(path, &call);
    let unchecked = "Whether the fit explains the call is not checked: --controller NAME says";
    assert_eq!(without.matches(unchecked).count(), 1, "{without}");
    assert!(!without.contains("Set:"), "{without}");
    let checked = json(path, &with(&call, &["--controller", "gcc", "--json"]));
    let (check, gcc) = (&checked["check"], &checked["whatif"]["controllers"][0]);
    assert_eq!((check["controller"].as_str(), check["explained"].as_bool()), (Some("gcc"), Some(true)), "{check}");
    assert_eq!(check["received_kbps"], gcc["received_kbps"], "it is the same prediction");
    assert!(checked["set"].as_object().is_some_and(serde_json::Map::is_empty), "{}", checked["set"]);
    // Half of the ceiling: half of the rate, and the same check.
    let less = ["--set", "ceiling=500kbps", "--set", "repair=nack", "--set", "queue=codel", "--controller", "gcc"];
    let set = json(path, &with(&call, &[&less[..], &["--json", "--report", "page.html", "--save", "call"]].concat()));
    assert_eq!(set["set"]["repair"], "nack");
    assert_eq!(set["check"], *check, "changes are none of the recorded call");
    let rate = |v: &Value| v["whatif"]["controllers"][1]["goodput_kbps"]["likely"].as_f64().expect("a rate");
    assert!((200.0..510.0).contains(&rate(&set)) && rate(&checked) > 600.0, "{} {}", rate(&set), rate(&checked));
    let text = good(path, &with(&call, &less));
    for part in ["Set: ceiling 500kbps; queue codel; repair nack.", "Repair by nack", "over its links"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = fs::read_to_string(path.join("page.html")).expect("a page");
    assert!(page.contains("The fit explains this call") || page.contains("The fit nearly explains"), "the check");
    assert!(page.contains("ceiling 500kbps"), "the changes");
    let saved = fs::read_to_string(path.join("call/scenario.toml")).expect("a scenario");
    for part in ["ceiling = \"500000 bps\"", "error_resilience = [\"nack\"]", "discipline = \"codel\""] {
        assert!(saved.contains(part), "{part}: {saved}");
    }
    assert_eq!(
        json(path, &with(&call, &["--jobs", "1", "--json"])),
        json(path, &with(&call, &["--jobs", "2", "--json"]))
    );
    let crossed = weir(path, &with(&call, &["--set", "floor=2Mbps", "--set", "ceiling=1Mbps"]));
    assert!(crossed.status.code() == Some(2) && said(&crossed).contains("above the ceiling"), "{}", said(&crossed));
}

#[test]
fn jitter_that_ends_is_said_with_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let steps = "[{ at = \"0 s\", max = \"40 ms\" }, { at = \"20 s\", max = \"0 ms\" }]";
    record(path, "jitter", &format!("rate = \"4 Mbps\"\njitter.steps = {steps}"), 40, 1);
    let call = ["fit", "jitter/sender.pcapng", "jitter/receiver.pcapng"];
    let found = json(path, &[&call[..], &["--json"]].concat())["fit"]["jitter"].clone();
    let from = |i: usize| found[i]["from_s"].as_f64().expect("a time");
    assert!(found[0]["max_ms"].as_f64() > Some(30.0) && found[1]["max_ms"] == 0.0, "{found}");
    assert!((19.0..26.0).contains(&from(1)), "{found}");
    let text = good(path, &call);
    assert!(text.contains(&format!("ms from {:.0} s to {:.0} s", from(0), from(1))), "{text}");
    assert!(text.contains("0 packets by chance, 0 by the queue"), "{text}");
}

#[test]
fn a_call_that_the_fit_does_not_explain_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    // Losses by chance cost nada most of its rate and gcc little, so a call of gcc is none of nada.
    record(path, "lossy", "rate = \"4 Mbps\"\nloss = 0.05", 36, 1);
    let call =
        ["whatif", "lossy/sender.pcapng", "lossy/receiver.pcapng", "--draws", "6", "-q", "--controllers", "nada"];
    let args = [&call[..], &["--controller", "nada"]].concat();
    let text = good(path, &args);
    let words = "The fit does not explain this call: recorded ";
    assert!(text.contains(words) && text.contains(", nada over its links "), "{text}");
    let check = json(path, &[&args[..], &["--json"]].concat())["check"].clone();
    assert_eq!(check["explained"], false, "{check}");
    assert!(check["received"] == "outside" || check["delay"] == "outside", "{check}");
}

#[test]
fn every_row_is_made_once_and_damage_does_not_end_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for (i, rate) in [600, 1_000, 1_500].into_iter().enumerate() {
        record(path, &format!("all/good-{i}"), &format!("rate = \"{rate} kbps\""), 8, i as u32);
    }
    record(path, "all/lossy", "rate = \"2 Mbps\"\nloss = 0.05", 8, 9);
    record(path, "all/cut", "rate = \"1 Mbps\"", 8, 5);
    let cut = path.join("all/cut/receiver.pcapng");
    let whole = fs::read(&cut).expect("there");
    fs::write(&cut, &whole[..whole.len() * 2 / 3]).expect("writable");
    fs::create_dir(path.join("all/one")).expect("writable");
    fs::write(path.join("all/one/targets.log"), "1747225741356, 100000\n1747225741456, 200000\n").expect("writable");
    fs::write(path.join("all/README.md"), "# Calls\n").expect("writable");
    fs::create_dir(path.join("all/copy")).expect("writable");
    for end in ["sender.pcapng", "receiver.pcapng"] {
        fs::copy(path.join("all/good-1").join(end), path.join("all/copy").join(end)).expect("writable");
    }
    let run = |more: &[&str]| weir(path, &[&["search", "calls", "all", "--draws", "2"], more].concat());
    assert!(
        said(&run(&["--dry-run"])).contains("6 calls: 0 kept in weir-calls, 6 to make"),
        "{}",
        said(&run(&["--dry-run"]))
    );
    assert!(!path.join("weir-calls").exists());
    let two = ["--controllers", "gcc,nada", "--controller", "gcc"];
    let first = run(&[&two[..], &["--out", "a", "--jobs", "1"]].concat());
    let text = said(&first);
    assert_eq!(first.status.code(), Some(1), "{text}");
    for part in [
        "6 calls: 0 kept before, 6 made, 2 failed; a",
        "1 call with the recordings of another",
        "4 calls fitted",
        "passed over: 1 file, which no reader recognises: all/",
        "all/cut: all/cut/receiver.pcapng: stopped at byte",
        "--take-damaged",
        "all/one: no recording has sent packets and their fates",
        "recorded",
        "first cause",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let widest = String::from_utf8_lossy(&first.stdout).lines().map(|l| l.chars().count()).max();
    assert!(widest.is_some_and(|w| w <= 80), "{}", String::from_utf8_lossy(&first.stdout));
    let second = run(&[&two[..], &["--out", "b", "--jobs", "3", "-q"]].concat());
    assert!(!String::from_utf8_lossy(&second.stderr).contains("passed over"), "{}", said(&second));
    let (a, b) = (files(&path.join("a")), files(&path.join("b")));
    assert_eq!(a, b, "the bytes do not depend on jobs");
    assert_eq!(a.len(), 5, "fits, two controllers, failures and the mark");
    // Nothing is made again; another controller adds its rows alone, and damage can be taken.
    let again = run(&[&two[..], &["--out", "a"]].concat());
    assert!(again.status.success() && said(&again).contains("6 kept before, 0 made, 0 failed"), "{}", said(&again));
    assert!(said(&again).contains("of those kept, 2 rows failed"), "{}", said(&again));
    assert_eq!(files(&path.join("a")), a);
    let fit = weir(path, &["fit", "all/cut/sender.pcapng", "all/cut/receiver.pcapng", "--json"]);
    assert!(fit.status.code() == Some(3) && said(&fit).contains("receiver.pcapng: stopped at byte"), "{}", said(&fit));
    let wider = run(&["--controllers", "gcc,nada,sluice", "--out", "a"]);
    assert!(said(&wider).contains("2 kept before, 4 made, 0 failed"), "{}", said(&wider));
    assert_eq!(files(&path.join("a")).len(), a.len() + 1);
    let retried = run(&["--controllers", "gcc", "--out", "a", "--retry-failures"]);
    assert!(said(&retried).contains("4 kept before, 2 made, 2 failed"), "{}", said(&retried));
    let taken = run(&["--controllers", "gcc", "--out", "c", "--take-damaged"]);
    assert!(said(&taken).contains("6 made, 1 failed"), "{}", said(&taken));
    // A file that is named is a call of its own, for which one end is too little.
    let alone = weir(path, &["search", "calls", "all/good-0/sender.pcapng", "--out", "d"]);
    assert!(alone.status.code() == Some(1) && said(&alone).contains("No call has a fit"), "{}", said(&alone));
    let summary = json(
        path,
        &[
            "search",
            "calls",
            "all/good-0",
            "all/lossy",
            "--out",
            "a",
            "--draws",
            "2",
            "--json",
            "-q",
            "--controllers",
            "nada",
        ],
    );
    let summary = &summary["summary"];
    assert_eq!(
        (summary["calls"].as_u64(), summary["controllers"][0]["calls"].as_u64()),
        (Some(2), Some(2)),
        "{summary}"
    );
    let v = &summary["controllers"][0]["rate"];
    assert_eq!(
        ["better", "worse", "undecided"].map(|k| v[k].as_u64().unwrap_or(0)).iter().sum::<u64>(),
        2,
        "{summary}"
    );
}

#[test]
fn a_stop_or_a_kill_loses_no_row_and_makes_none_twice() {
    const CALLS: u32 = 40;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    record(path, "call", "rate = \"1 Mbps\"", 8, 1);
    // The same packets under other names: a comment more makes each its own file.
    for i in 0..CALLS {
        let to = path.join(format!("all/{i:02}"));
        fs::create_dir_all(&to).expect("writable");
        for end in ["sender.pcapng", "receiver.pcapng"] {
            let mut bytes = fs::read(path.join("call").join(end)).expect("there");
            // An unknown block (draft-ietf-opsawg-pcapng, section 3.1), which readers skip, with a number.
            for word in [0x0bad_0000_u32, 16, i, 16] {
                bytes.extend(word.to_le_bytes());
            }
            fs::write(to.join(end), bytes).expect("writable");
        }
    }
    let args = ["search", "calls", "all", "--controllers", "gcc,nada", "--draws", "60", "--jobs", "2", "--out", "kept"];
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.current_dir(path).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
    };
    let fits = path.join("kept/fits");
    // A file that is being written has another ending.
    let is_whole = |path: PathBuf| path.extension().is_some_and(|e| e == "parquet");
    let parts = || fs::read_dir(&fits).map_or(0, |files| files.flatten().filter(|f| is_whole(f.path())).count());
    let wait_for = |n: usize| {
        for _ in (0..6_000).take_while(|_| parts() < n) {
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let mut killed = start();
    wait_for(1);
    killed.kill().expect("killed");
    killed.wait().expect("ends");
    let stopped = start();
    std::thread::sleep(Duration::from_millis(2_000));
    assert!(Command::new("kill").args(["-INT", &stopped.id().to_string()]).status().expect("kill").success());
    let out = stopped.wait_with_output().expect("ends");
    assert_eq!(out.status.code(), Some(130), "{}", said(&out));
    let rest = weir(path, &args);
    assert!(rest.status.success(), "{}", said(&rest));
    let text = said(&rest);
    assert!(!text.contains(" 0 kept before") && text.contains("40 calls: "), "{text}");
    let again = json(path, &[&args[..], &["--json", "-q"]].concat());
    assert_eq!((again["kept"].as_u64(), again["made"].as_u64()), (Some(40), Some(0)), "{again}");
    let unbroken = [&args[..10], &["whole", "--json", "-q"]].concat();
    let whole = json(path, &unbroken);
    assert_eq!(again["summary"], whole["summary"]);
    assert_eq!(whole["summary"]["calls"].as_u64(), Some(40));
    // A kill can leave a file that was not whole under its other name, and no more than the one.
    let parts = files(&path.join("kept")).into_iter().filter(|(p, _)| p.extension().is_some_and(|e| e == "part"));
    assert!(parts.count() <= 1);
}

#[test]
fn what_a_run_and_a_call_have_written_is_opened_with_the_same_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let scenario = "title = \"A call\"\nduration = \"10 s\"\n[links.path]\nrate = \"1 Mbps\"\ndelay = \"20 ms\"\nloss = 0.02\n\
        [rtp.video]\ncontroller = \"gcc\"\n[udp.other]\nrate = \"100 kbps\"\n";
    fs::write(path.join("link.toml"), scenario).expect("writable");
    let made = weir(path, &["run", "link.toml", "-q", "--json", "--series", "series"]);
    fs::write(path.join("run.json"), &made.stdout).expect("writable");
    let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    let source = |file: &str| json(path, &["open", file, "--json"])["sources"][0].clone();
    let (run, flow) = (source("run.json"), &made["flows"][0]);
    let lost = ["dropped_queue", "dropped_aqm", "dropped_channel"].map(|n| flow["packets"][n].as_u64().unwrap_or(0));
    assert_eq!(run["format"], "weir-result");
    assert_eq!(
        (&run["packets"]["sent"], &run["packets"]["received"]),
        (&flow["packets"]["sent"], &flow["packets"]["received"])
    );
    assert_eq!(run["packets"]["lost"].as_u64(), Some(lost.iter().sum()));
    assert!(lost[2] > 0 && run["to_ms"] == 10_000, "{run}");
    let series = source("series/link.flows.csv");
    assert_eq!(
        (&series["format"], &series["stopped"], &series["faults"]),
        (&"weir-series".into(), &Value::Null, &serde_json::json!({}))
    );
    assert!(series["series"].as_u64() > Some(20) && series["estimates"].as_u64() > Some(3), "{series}");
    // A file that was cut within a row is read up to it.
    let whole = fs::read(path.join("series/link.flows.csv")).expect("written");
    fs::write(path.join("cut.csv"), &whole[..whole.len() / 2]).expect("writable");
    let cut = weir(path, &["open", "cut.csv"]);
    assert_eq!(cut.status.code(), Some(3), "{}", said(&cut));
    let parquet = weir(path, &["open", "series/link.flows.parquet"]);
    assert!(said(&parquet).contains(".csv beside it"), "{}", said(&parquet));

    let call = json(path, &["live", "call", "loopback", "--codec", "model", "--duration", "1", "-q", "--json"]);
    fs::write(path.join("call.json"), call.to_string()).expect("writable");
    let opened = source("call.json");
    assert_eq!(opened["packets"]["sent"], call["sender"]["sent"]["rtp_packets"]);
    assert_eq!(opened["packets"]["received"], call["receiver"]["received"]["rtp_packets"]);
    assert!(opened["packets"]["received"].as_u64() > Some(10), "{opened}");
}
