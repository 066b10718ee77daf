//! Values of an earlier run, to compare with.

use super::sprt::Verdict;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use weir_lab::scenario::{InputError, read_text};
use weir_report::atomic_write::write_atomically;

/// Greatest size of a baseline, in bytes.
pub const MAX_BASELINE: u64 = 64 << 20;
/// The layout's name.
const SCHEMA: &str = "weir:gate-baseline:1";

/// Values by scenario, controller and metric, each seed's.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    schema: String,
    /// The first seed.
    seed: u64,
    pub(super) entries: Vec<Entry>,
}

/// Values of one metric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The scenario with its variant, or the row.
    pub(super) scenario: String,
    pub(super) controller: String,
    /// The metric, behind the flow's name where the budget has one.
    pub(super) metric: String,
    /// From the first seed on; null for "never".
    pub(super) values: Vec<Option<f64>>,
    /// Verdict on the worst of its budgets, and shares of seeds that missed it.
    pub(super) verdict: Verdict,
    pub(super) missed: f64,
}

impl Baseline {
    pub(super) fn new(seed: u64, entries: Vec<Entry>) -> Self {
        Self { schema: SCHEMA.into(), seed, entries }
    }

    /// A baseline from a file that [`Self::write`] wrote.
    ///
    /// # Errors
    /// It cannot be read, or is no baseline; with its line.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let file = path.display().to_string();
        let help = "--save-baseline FILE writes one";
        let text = read_text(path, MAX_BASELINE).map_err(|why| InputError::whole(&file, why).help(help))?;
        let read: Self = serde_json::from_str(&text)
            .map_err(|e| InputError::at_line(&file, e.line().max(1), format!("this is no baseline: {e}")).help(help))?;
        if read.schema != SCHEMA {
            let message = format!("the schema is `{}`: this version reads {SCHEMA}", read.schema.escape_debug());
            return Err(InputError::whole(&file, message).field("schema").help(help));
        }
        Ok(read)
    }

    /// Writes it, completely or not at all. Errors are those of the file system.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        write_atomically(path, |out| out.write_all(&text))
    }

    /// A metric's value with a seed; `None` if the baseline has no run with it.
    pub(super) fn value(&self, scenario: &str, controller: &str, metric: &str, seed: u64) -> Option<Option<f64>> {
        let is = |e: &&Entry| e.scenario == scenario && e.controller == controller && e.metric == metric;
        let at = usize::try_from(seed.checked_sub(self.seed)?).ok()?;
        self.entries.iter().find(is)?.values.get(at).copied()
    }

    /// How bad a controller was in a scenario, from 0: budgets that failed first, then undecided ones, then by the share missed.
    pub(super) fn badness(&self, scenario: &str, controller: &str) -> f64 {
        let of = |e: &Entry| {
            let verdict = match e.verdict {
                Verdict::Fails => 2.0,
                Verdict::Undecided => 1.0,
                Verdict::Passes => 0.0,
            };
            verdict + e.missed.clamp(0.0, 1.0)
        };
        let is = |e: &&Entry| e.scenario == scenario && e.controller == controller;
        self.entries.iter().filter(is).map(of).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline() -> Baseline {
        let entry = |scenario: &str, verdict, missed| Entry {
            scenario: scenario.into(),
            controller: "gcc".into(),
            metric: "loss".into(),
            values: vec![Some(0.1), None, Some(0.3)],
            verdict,
            missed,
        };
        Baseline::new(5, vec![entry("a", Verdict::Passes, 0.2), entry("b", Verdict::Fails, 1.0)])
    }

    #[test]
    fn a_baseline_is_written_and_read_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("baseline.json");
        baseline().write(&path).expect("written");
        let read = Baseline::read(&path).expect("read");
        assert_eq!(read, baseline());
        let value = |seed| read.value("a", "gcc", "loss", seed);
        assert_eq!([4, 5, 6, 7, 8].map(value), [None, Some(Some(0.1)), Some(None), Some(Some(0.3)), None]);
        assert_eq!((read.value("a", "nada", "loss", 5), read.value("c", "gcc", "loss", 5)), (None, None));
        assert!(read.badness("b", "gcc") > read.badness("a", "gcc") && read.badness("a", "gcc") > 0.0);
        assert!(read.badness("c", "gcc").abs() < 1e-12);
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_file_that_is_no_baseline_is_named_with_its_line_and_a_way_out() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("baseline.json");
        let fault = |text: &str| {
            std::fs::write(&path, text).expect("written");
            Baseline::read(&path).expect_err(text)
        };
        let broken = fault("{\"schema\": \"weir:gate-baseline:1\",\n\"seed\": -1, \"entries\": []}");
        assert_eq!(broken.position(), Some((2, 1)), "{broken}");
        assert!(broken.help_text().is_some_and(|h| h.contains("--save-baseline")), "{broken}");
        let other = fault("{\"schema\": \"weir:gate:9\", \"seed\": 1, \"entries\": []}");
        assert!(other.message().contains("weir:gate:9") && other.field_path() == Some("schema"), "{other}");
        assert!(Baseline::read(&dir.path().join("none")).expect_err("missing").message().contains("no such file"));
    }
}
