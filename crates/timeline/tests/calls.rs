//! The first answer for recorded calls of two Chromiums: a few of those that `tools/record-calls` makes, without private details.
//!
//! Each folder has the sender's event log, `getStats()` of both ends, and the true cause with its begin.

use std::fs::File;
use std::path::{Path, PathBuf};
use weir_timeline::why::{Episode, Level, explain};
use weir_timeline::{Call, read};

/// Confidence from which an answer counts, and times around a cause's begin in which its episode is, in ms.
const SURE: f64 = 0.5;
const BEFORE: i64 = 1_000;
const BEHIND: i64 = 12_000;

const LOG: [&str; 1] = ["left-event_log.log.gz"];
const STATISTICS: [&str; 2] = ["left-stats.jsonl.gz", "right-stats.jsonl.gz"];

/// Folder, and right answers by the log and by statistics; none: nothing is to be said.
const CALLS: [(&str, &[&str], &[&str]); 10] = [
    ("healthy-5", &[], &[]),
    ("capacity-300", &["capacity-fell"], &["capacity-fell", "cross-traffic"]),
    ("tcp-3", &["cross-traffic"], &["capacity-fell", "cross-traffic"]),
    ("loss-15", &["random-loss"], &["random-loss", "burst-loss", "policer"]),
    ("bursts-30", &["burst-loss"], &["random-loss", "burst-loss", "policer"]),
    ("policer-500", &["policer"], &["random-loss", "burst-loss", "policer"]),
    ("outage-5", &["outage"], &["outage"]),
    ("feedback-lost-3", &["feedback-lost"], &["feedback-lost"]),
    ("route", &["route-change"], &["route-change"]),
    ("paused-3", &["source-paused"], &["source-paused", "sender-limited"]),
];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calls").join(name)
}

fn call(name: &str, files: &[&str]) -> Call {
    let open = |file: &&str| read(file, File::open(folder(name).join(file)).expect("there")).expect("a recording");
    let recordings: Vec<_> = files.iter().map(open).collect();
    assert!(recordings.iter().all(|r| r.stop.is_none() && r.damaged.is_none()), "{name}");
    Call::new(recordings)
}

/// Answers of confidence, of episodes near the begin where there is one.
fn answers(episodes: &[Episode], begin: Option<i64>) -> Vec<&str> {
    let near = |e: &&Episode| begin.is_none_or(|b| e.to_ms >= b - BEFORE && e.from_ms <= b + BEHIND);
    let first = |e: &Episode| e.causes.first().is_some_and(|c| c.confidence >= SURE && c.name != "not-known");
    episodes.iter().filter(near).filter(|e| first(e)).map(|e| e.causes[0].name.as_ref()).collect()
}

#[test]
fn the_first_answer_is_the_true_cause() {
    for (name, by_log, by_statistics) in CALLS {
        let truth: serde_json::Value =
            serde_json::from_reader(File::open(folder(name).join("truth.json")).expect("there")).expect("JSON");
        let begin = truth["onset_epoch_ms"].as_i64();
        assert_eq!(begin.is_none(), by_log.is_empty(), "{name}");
        for (files, level, right) in
            [(&LOG[..], Level::Log, by_log), (&STATISTICS[..], Level::Statistics, by_statistics)]
        {
            let found = explain(&call(name, files));
            assert_eq!(found.level, level, "{name}");
            let said = answers(&found.episodes, begin);
            match said.first() {
                Some(first) => assert!(right.contains(first), "{name}, {level:?}: {said:?}"),
                None => assert!(right.is_empty(), "{name}, {level:?}: {:?}", found.episodes),
            }
        }
    }
}
