//! Causes found in recorded calls beside the true ones, as tables.
//!
//!     cargo run --release -p weir-timeline --example causes -- FOLDER... [--calls NAMES] [--list] [packets|log|stats]...
//!
//! A FOLDER holds one folder a call, as `tools/record-calls` writes them: `truth.json` with `cause`, captures `left.pcap.gz` and
//! `right.pcap.gz`, the sender's event log `left-event_log.log`, and `left-stats.jsonl.gz` and `right-stats.jsonl.gz`. `--calls`
//! takes names with commas, and a file of them behind `@`. `--list` prints a line a call.
//!
//! An answer is the first cause of the first episode near the true one's begin. It is wrong where it is another cause with a confidence of one
//! half and more. A call whose cause had no effect in statistics (no fall by a fifth over 3 s, no freeze) and of which nothing
//! is said is not judged.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use weir_timeline::why::{Episode, explain};
use weir_timeline::{Call, Recording, Series, read};

type Failure = Box<dyn Error>;

const SURE: f64 = 0.5;
/// Time behind a cause's begin in which its effect begins, and before it in which an episode may end, in ms.
const BEHIND: i64 = 12_000;
const BEFORE: i64 = 1_000;

/// Answers that are right for a cause of `truth.json`.
fn right(cause: &str) -> &'static [&'static str] {
    match cause {
        "capacity fell" => &["capacity-fell"],
        "capacity fell into a deep queue" => &["capacity-fell", "deep-queue"],
        "capacity varies" => &["capacity-varies", "capacity-fell"],
        "cross traffic" => &["cross-traffic"],
        "random loss" => &["random-loss"],
        "burst loss" => &["burst-loss"],
        "delay step" => &["delay-step", "route-change"],
        "jitter" => &["jitter"],
        "stalls (Wi-Fi)" => &["stalls", "jitter"],
        "outage" => &["outage"],
        "policer" => &["policer"],
        "feedback lost" => &["feedback-lost"],
        "feedback late" => &["feedback-late"],
        "sender limited (maxBitrate)" | "sender limited (scale)" => &["sender-limited"],
        "source paused" => &["source-paused"],
        "other end asked (b=AS)" => &["other-end-asked"],
        "keyframe requests" => &["keyframe-requests"],
        "layer paused" => &["layer-paused"],
        "route change" => &["route-change"],
        "CPU limited sender" => &["cpu-limited", "sender-limited"],
        _ => &[],
    }
}

/// Causes that statistics of one second cannot tell apart.
const ALIKE: [&[&str]; 5] = [
    &["capacity-fell", "cross-traffic", "deep-queue", "capacity-varies"],
    &["random-loss", "burst-loss", "policer"],
    &["jitter", "stalls"],
    &["feedback-lost", "feedback-late"],
    &["sender-limited", "other-end-asked", "source-paused"],
];

/// A recorded call and its truth.
struct Recorded {
    folder: PathBuf,
    name: String,
    cause: String,
    /// Unix time in ms at which the cause begins; none where it is there from the start, and in healthy calls.
    begin: Option<i64>,
    connected: i64,
}

fn main() -> Result<(), Failure> {
    let (mut folders, mut levels, mut only, mut list) = (vec![], vec![], None, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "packets" | "log" | "stats" => levels.push(arg),
            "--list" => list = true,
            "--calls" => {
                let names = args.next().ok_or("--calls needs names")?;
                let names = names.strip_prefix('@').map_or(Ok(names.clone()), std::fs::read_to_string)?;
                only = Some(names.split([',', '\n', ' ']).map(str::to_owned).collect::<BTreeSet<String>>());
            }
            _ => folders.push(arg),
        }
    }
    if folders.is_empty() {
        return Err("usage: causes FOLDER... [--calls NAMES] [--list] [packets|log|stats]...".into());
    }
    if levels.is_empty() {
        levels = ["packets", "log", "stats"].map(String::from).to_vec();
    }
    let mut calls = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(folder)? {
            let call = entry?.path();
            if call.join("truth.json").is_file() {
                calls.push(recorded(call)?);
            }
        }
    }
    calls.retain(|c| only.as_ref().is_none_or(|names| names.contains(&c.name)));
    calls.sort_by(|a, b| (&a.cause, &a.name).cmp(&(&b.cause, &b.name)));
    table(&calls, &levels, list)
}

fn recorded(folder: PathBuf) -> Result<Recorded, Failure> {
    let truth: serde_json::Value = serde_json::from_reader(File::open(folder.join("truth.json"))?)?;
    let cause = truth["cause"].as_str().unwrap_or("?").to_owned();
    let mut begin = truth["onset_epoch_ms"].as_i64().filter(|_| truth["onset_emulation_s"] != 0);
    let actions = folder.join("left-actions.json");
    if begin.is_none() && cause != "healthy" && actions.is_file() {
        let done: serde_json::Value = serde_json::from_reader(File::open(actions)?)?;
        begin = done[0]["epoch_ms"].as_i64();
    }
    let connected = truth["connected_epoch_ms"].as_i64().unwrap_or(0);
    let name = folder.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    Ok(Recorded { folder, name, cause, begin, connected })
}

fn recordings(call: &Path, names: &[&str]) -> Result<Vec<Recording>, Failure> {
    names.iter().map(|n| Ok(read(n, File::open(call.join(n))?)?)).collect()
}

/// Growth of a number of all objects of video of a kind, from each report to the next, with the later one's Unix time in ms.
fn growth(of: &Recording, kind: &str, number: &str) -> BTreeMap<i64, f64> {
    let is_sound = |id: &str| {
        let key = (kind.to_owned(), id.to_owned(), "kind".to_owned());
        of.series.get(&key).is_some_and(|s: &Series| s.texts.iter().any(|t| t.1 == "audio"))
    };
    let mut out = BTreeMap::new();
    for ((_, _, _), series) in of.series.iter().filter(|((k, id, n), _)| k == kind && n == number && !is_sound(id)) {
        for pair in series.points.windows(2) {
            *out.entry(pair[1].0.as_nanos() / 1_000_000).or_default() += pair[1].1 - pair[0].1;
        }
    }
    out
}

/// Whether the sender's rate fell by a fifth over 3 s within 12 s of the cause, or a picture froze at the receiver.
fn had_effect(call: &Recorded) -> Result<bool, Failure> {
    let begin = call.begin.unwrap_or(call.connected);
    let ends = recordings(&call.folder, &["left-stats.jsonl.gz", "right-stats.jsonl.gz"])?;
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
    let sent = growth(&ends[0], "outbound-rtp", "bytesSent");
    let mut before: Vec<f64> = sent.range(begin - 6_000..begin).map(|s| *s.1).collect();
    if before.is_empty() {
        before = sent.values().skip(2).take(6).copied().collect();
    }
    let after: Vec<f64> = sent.range(begin..begin + BEHIND).map(|s| *s.1).collect();
    let fell = after.windows(3).any(|w| mean(w) < 0.8 * mean(&before));
    let froze = growth(&ends[1], "inbound-rtp", "freezeCount").range(begin..begin + BEHIND).any(|f| *f.1 > 0.0);
    Ok(fell || froze)
}

/// The first answer with its confidence, and the judgement.
fn judged(call: &Recorded, episodes: &[Episode], level: &str, effect: bool) -> (String, f64, &'static str) {
    let first = |e: &Episode| e.causes.first().map(|c| (c.name.to_string(), c.confidence));
    let sure = |(name, sure): &(String, f64)| name != "not-known" && *sure >= SURE;
    if call.cause == "healthy" {
        let alarm = episodes.iter().filter_map(first).find(sure);
        return alarm.map_or(("-".into(), 0.0, "quiet"), |a| (a.0, a.1, "alarm"));
    }
    let mut accepted = right(&call.cause).to_vec();
    if level == "stats" {
        for group in ALIKE.iter().filter(|g| right(&call.cause).iter().any(|a| g.contains(a))) {
            accepted.extend(*group);
        }
    }
    let near = |e: &&Episode| call.begin.is_none_or(|b| e.to_ms >= b - BEFORE && e.from_ms <= b + BEHIND);
    let answer = episodes.iter().filter(near).find_map(first);
    let verdict = match &answer {
        Some(a) if accepted.contains(&a.0.as_str()) => "right",
        Some(a) if sure(a) => "wrong",
        Some(a) if effect || a.0 != "not-known" => "unsure",
        None if effect => "silent",
        _ => "no effect",
    };
    let (name, sure) = answer.unwrap_or(("-".into(), 0.0));
    (name, sure, verdict)
}

fn table(calls: &[Recorded], levels: &[String], list: bool) -> Result<(), Failure> {
    // By true cause and level: answers, and how often each.
    let mut rows: BTreeMap<&str, BTreeMap<usize, BTreeMap<String, u32>>> = BTreeMap::new();
    let mut verdicts: Vec<BTreeMap<&str, u32>> = vec![BTreeMap::new(); levels.len()];
    for call in calls {
        let effect = call.cause != "healthy" && had_effect(call)?;
        for (i, level) in levels.iter().enumerate() {
            let names: &[&str] = match level.as_str() {
                "packets" => &["left.pcap.gz", "right.pcap.gz"],
                "log" => &["left-event_log.log"],
                _ => &["left-stats.jsonl.gz", "right-stats.jsonl.gz"],
            };
            let found = explain(&Call::new(recordings(&call.folder, names)?)).episodes;
            let (said, sure, verdict) = judged(call, &found, level, effect);
            if list {
                println!("{:20} {level:8} {verdict:10} {said} {sure:.2}", call.name);
            }
            *verdicts[i].entry(verdict).or_default() += 1;
            let said = if verdict == "no effect" { "(no effect)".into() } else { said };
            *rows.entry(&call.cause).or_default().entry(i).or_default().entry(said).or_default() += 1;
        }
    }
    println!("| cause | {} |\n|---|{}", levels.join(" | "), "---|".repeat(levels.len()));
    for (cause, row) in rows {
        let cell = |i: usize| {
            let mut answers: Vec<(&String, &u32)> = row.get(&i).into_iter().flatten().collect();
            answers.sort_by(|a, b| b.1.cmp(a.1));
            answers.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
        };
        println!("| {cause} | {} |", (0..levels.len()).map(cell).collect::<Vec<_>>().join(" | "));
    }
    for (level, verdicts) in levels.iter().zip(verdicts) {
        let n = |name: &str| f64::from(verdicts.get(name).copied().unwrap_or(0));
        let judged = n("right") + n("wrong") + n("unsure") + n("silent");
        let healthy = n("quiet") + n("alarm");
        let percent = |part: f64, whole: f64| 100.0 * part / whole.max(1.0);
        println!(
            "- {level}: {:.0} % of {judged} right, {:.1} % of {} wrong, {} of {healthy} healthy ones alarmed",
            percent(n("right"), judged),
            percent(n("wrong") + n("alarm"), judged + healthy + n("no effect")),
            judged + healthy + n("no effect"),
            n("alarm"),
        );
    }
    Ok(())
}
