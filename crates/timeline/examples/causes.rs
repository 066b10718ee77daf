//! Causes found in recorded calls beside the true ones, as a table.
//!
//!     cargo run --release -p weir-timeline --example causes -- FOLDER [packets|log|stats]
//!
//! FOLDER holds one folder a call: `truth.json` with `cause`, captures `left.pcap.gz` and `right.pcap.gz`, the sender's
//! event log `left-event_log.log`, and `left-stats.jsonl.gz` and `right-stats.jsonl.gz`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::path::Path;
use weir_timeline::why::{Episode, explain};
use weir_timeline::{Call, read};

type Failure = Box<dyn Error>;

fn episodes(files: &[String]) -> Result<Vec<Episode>, Failure> {
    let recordings: Result<Vec<_>, Failure> = files.iter().map(|f| Ok(read(f, File::open(f)?)?)).collect();
    Ok(explain(&Call::new(recordings?)).episodes)
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((folder, level)) => table(Path::new(folder), level.first().map_or("stats", String::as_str)),
        None => Err("usage: causes FOLDER [packets|log|stats]".into()),
    }
}

fn table(folder: &Path, level: &str) -> Result<(), Failure> {
    let names: &[&str] = match level {
        "packets" => &["left.pcap.gz", "right.pcap.gz"],
        "log" => &["left-event_log.log"],
        "stats" => &["left-stats.jsonl.gz", "right-stats.jsonl.gz"],
        _ => return Err(format!("{level}: not packets, log or stats").into()),
    };
    // By true cause: the first episode's first answer, and how often.
    let mut table: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    let mut calls: Vec<_> = std::fs::read_dir(folder)?.filter_map(Result::ok).map(|e| e.path()).collect();
    calls.sort();
    for call in calls.iter().filter(|c| c.join("truth.json").is_file()) {
        let truth: serde_json::Value = serde_json::from_reader(File::open(call.join("truth.json"))?)?;
        let cause = truth["cause"].as_str().unwrap_or("?").to_owned();
        let begin = truth["onset_epoch_ms"].as_i64().filter(|_| truth["onset_emulation_s"] != 0).unwrap_or(i64::MIN);
        let files: Vec<String> = names.iter().map(|n| call.join(n).display().to_string()).collect();
        let found = episodes(&files)?;
        let near = found.iter().find(|e| e.to_ms >= begin.saturating_sub(1000));
        let said = near.and_then(|e| e.causes.first()).map_or("no episode", |c| &c.name).to_owned();
        *table.entry(cause).or_default().entry(said).or_default() += 1;
    }
    println!("{level}");
    for (cause, answers) in table {
        let answers: Vec<String> = answers.iter().map(|(name, n)| format!("{name} {n}")).collect();
        println!("{cause:34} {}", answers.join(", "));
    }
    Ok(())
}
