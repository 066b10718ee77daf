//! A gate's answer in SARIF 2.1.0, which hosts of repositories show beside the lines of a file.
//!
//! A result for each budget that does not pass, at its line of the gate's file. The rule is the kind of the outcome: those who look for one budget
//! find it by the fingerprint, which does not change with the values.

use super::output::is_failure;
use super::report::{Check, Report};
use super::sprt::Verdict;
use serde_json::{Value, json};
use std::path::{Component, Path};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Rules, in the order of their numbers in results.
const RULES: [(&str, &str); 3] = [
    ("budget-fails", "A controller does not keep a budget."),
    ("budget-undecided", "Time, seeds or a baseline did not suffice for a verdict."),
    ("no-result", "A program died, or a scenario could not run."),
];

/// The path of a file as a reference: relative ones stay so, with what a URI cannot have escaped.
fn uri(file: &str) -> String {
    let mut out = String::new();
    for byte in file.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            b'\\' if cfg!(windows) => out.push('/'),
            _ => out += &format!("%{byte:02X}"),
        }
    }
    // A colon in the first segment would be a scheme's, which the escape avoids; an absolute path needs one.
    if Path::new(file).is_absolute() {
        format!("file://{}{out}", if out.starts_with('/') { "" } else { "/" })
    } else {
        out
    }
}

/// Whether a path stays below the folder that it is relative to.
fn is_below(file: &str) -> bool {
    Path::new(file).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir))
}

impl Report {
    /// As SARIF 2.1.0: an error for each budget that fails, a warning for one that is undecided, an error too where the gate is `strict`.
    pub fn sarif(&self, strict: bool) -> String {
        let rules: Vec<Value> =
            RULES.iter().map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } })).collect();
        let results: Vec<Value> =
            self.checks.iter().filter(|c| c.verdict != Verdict::Passes).map(|c| self.result(c, strict)).collect();
        let log = json!({
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "weir gate",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                } },
                "columnKind": "unicodeCodePoints",
                "results": results,
            }],
        });
        let mut text = serde_json::to_string_pretty(&log).unwrap_or_default();
        text.push('\n');
        text
    }

    fn result(&self, check: &Check, strict: bool) -> Value {
        let rule = match (check.verdict, &check.broken) {
            (_, Some(_)) => 2,
            (Verdict::Undecided, _) => 1,
            _ => 0,
        };
        let why = check.why.as_ref().map_or_else(String::new, |why| format!(". Its worst run, {why}"));
        let mut artifact = json!({ "uri": uri(&self.file) });
        if is_below(&self.file) {
            // The root of the repository, by the convention of those who show results.
            artifact["uriBaseId"] = "%SRCROOT%".into();
        }
        json!({
            "ruleId": RULES[rule].0,
            "ruleIndex": rule,
            "level": if is_failure(check, strict) { "error" } else { "warning" },
            "message": { "text": format!("{}{why}", check.sentence()) },
            "locations": [{ "physicalLocation": {
                "artifactLocation": artifact,
                "region": { "startLine": check.line.max(1) },
            } }],
            "partialFingerprints": { "weirGateBudget/v1": check.title() },
            "properties": {
                "suite": check.suite,
                "scenario": check.scenario,
                "controller": check.controller,
                "budget": check.budget,
                "hits": check.hits,
                "misses": check.misses,
                "median": check.median,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::output::tests::report;

    /// Values that the published schema (sarif-schema-2.1.0.json) permits for `level`.
    const LEVELS: [&str; 4] = ["none", "note", "warning", "error"];

    /// The fields that the schema requires, and those without which a host does not show a result.
    fn is_sound(log: &Value) {
        // sarifLog: version, runs.
        assert_eq!(log["version"], "2.1.0");
        assert!(log["$schema"].as_str().is_some_and(|s| s.starts_with("https://")));
        for run in log["runs"].as_array().expect("runs") {
            // run: tool; tool: driver; toolComponent: name.
            let driver = &run["tool"]["driver"];
            assert!(driver["name"].is_string());
            let rules = driver["rules"].as_array().expect("rules");
            for (i, rule) in rules.iter().enumerate() {
                // reportingDescriptor: id; ids are unique.
                let id = rule["id"].as_str().expect("an id");
                assert!(rules[..i].iter().all(|other| other["id"] != id));
                assert!(rule["shortDescription"]["text"].is_string());
            }
            assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&run["columnKind"].as_str().expect("a kind")));
            for result in run["results"].as_array().expect("results") {
                // result: message; message: text or id.
                assert!(result["message"]["text"].as_str().is_some_and(|t| !t.is_empty()));
                assert!(LEVELS.contains(&result["level"].as_str().expect("a level")));
                let index = result["ruleIndex"].as_u64().expect("a number") as usize;
                assert_eq!(rules[index]["id"], result["ruleId"]);
                for location in result["locations"].as_array().expect("locations") {
                    let place = &location["physicalLocation"];
                    let uri = place["artifactLocation"]["uri"].as_str().expect("a reference");
                    assert!(uri.bytes().all(|b| b.is_ascii_graphic() && !b"<>\"{}|\\^`".contains(&b)), "{uri}");
                    assert!(place["region"]["startLine"].as_u64().is_some_and(|l| l >= 1));
                }
                assert!(result["partialFingerprints"].as_object().is_some_and(|f| f.values().all(Value::is_string)));
            }
        }
    }

    fn log(strict: bool) -> Value {
        let log = serde_json::from_str(&report().sarif(strict)).expect("JSON");
        is_sound(&log);
        log
    }

    #[test]
    fn each_budget_that_does_not_pass_is_a_result_at_its_line() {
        let log = log(false);
        let results = log["runs"][0]["results"].as_array().expect("results");
        let of = |key: &str| results.iter().map(|r| r[key].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>();
        assert_eq!(of("ruleId"), ["budget-fails", "budget-undecided", "no-result"]);
        assert_eq!(of("level"), ["error", "warning", "error"]);
        let place = &results[0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "dir/weir-gate.toml");
        assert_eq!((&place["region"]["startLine"], &results[0]["properties"]["misses"]), (&7.into(), &4.into()));
        let said = results[0]["message"]["text"].as_str().expect("text");
        assert!(
            said.contains("use|d >= 0.9 fails")
                && said.ends_with(". Its worst run, seed 3: the rate fell\nby 50 % <at once>"),
            "{said}"
        );
        let strict = super::tests::log(true);
        let results = strict["runs"][0]["results"].as_array().expect("results");
        assert!(results.iter().all(|r| r["level"] == "error"));
    }

    #[test]
    fn references_are_relative_to_the_repository_where_they_can_be() {
        for (file, expected, is_relative) in [
            ("weir-gate.toml", "weir-gate.toml", true),
            ("a b/ü%.toml", "a%20b/%C3%BC%25.toml", true),
            ("c:x.toml", "c%3Ax.toml", true),
            ("../weir-gate.toml", "../weir-gate.toml", false),
            ("/tmp/gate.toml", "file:///tmp/gate.toml", false),
        ] {
            if cfg!(windows) && file.contains(':') {
                continue;
            }
            assert_eq!(uri(file), expected);
            assert_eq!(is_below(file), is_relative, "{file}");
        }
    }

    #[test]
    fn a_gate_that_passes_has_no_results() {
        let mut report = report();
        report.checks.truncate(1);
        let log: Value = serde_json::from_str(&report.sarif(true)).expect("JSON");
        is_sound(&log);
        assert_eq!(log["runs"][0]["results"], json!([]));
    }
}
