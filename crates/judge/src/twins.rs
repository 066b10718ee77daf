//! Twins: what the authors' own programs do on plain links, and how near Weir's controllers come on the same links.
//!
//! A twin is a scenario and a recording of the same name in a folder of `twins/`; `program.toml` beside them describes
//! the program that was recorded. A recording of several flows is one draw; where `NAME.starts.csv` has the program's ten
//! starts, Weir's are judged by their mean.

mod score;
mod starts;

pub use score::{Change, Delays, FlowScore, Score};

use serde::Deserialize;
use std::collections::BTreeMap;
use weir_cc::Registry;
use weir_lab::embedded::TWINS as FILES;
use weir_lab::results::RunResult;
use weir_lab::scenario::{InputError, Scenario, ScenarioFile};
use weir_units::TimeDelta;

/// File that describes a folder's program.
const PROGRAM: &str = "program.toml";
/// Starts of a twin with several flows. Which of them is the first to detect congestion decides the shares for long, and a
/// change of the starts by a frame is enough to make it another.
const STARTS: u32 = 10;
/// Shift of the starts where the source makes no frames: the recorded programs' frames at 25 a second.
const SHIFT: TimeDelta = TimeDelta::from_millis(40);
/// End of the name, before `.csv`, of the recording of a program's own ten starts.
const SUFFIX: &str = ".starts";
const HEADER: &str = "time_s,flow,target_bps,goodput_bps,delay_ms,delay_max_ms";

/// The program that made a folder's recordings.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name.
    pub title: String,
    /// Its version or commit.
    pub version: String,
    /// The settings that it ran with.
    pub settings: String,
    /// Weir's controller.
    pub controller: String,
    /// The rate that is compared.
    pub column: Column,
    /// Factor of Weir's rate, where it counts headers that the recording does not.
    pub factor: f64,
}

/// A rate of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum Column {
    /// The controller's target.
    #[serde(rename = "target_bps")]
    Target,
    /// The payload received.
    #[serde(rename = "goodput_bps")]
    Goodput,
}

/// One row of a recording: a flow's means over the half second before `time_s`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    /// End of the half second, in s.
    pub time_s: f64,
    /// The flow's number, from 0.
    pub flow: usize,
    /// The controller's target in bit/s; NaN before the flow starts.
    pub target_bps: f64,
    /// Payload received in bit/s.
    pub goodput_bps: f64,
    /// Mean one-way delay in ms; NaN if nothing arrived.
    pub delay_ms: f64,
}

/// A recording, and the scenario that repeats it.
#[derive(Clone, PartialEq, Debug)]
pub struct Twin {
    /// Folder and file, as in `gcc/three`.
    pub name: String,
    /// Events on the link.
    pub title: String,
    /// The program recorded.
    pub program: Program,
    /// The recording, by time and flow.
    pub rows: Vec<Row>,
    /// The program's own runs of [`Self::starts`], if they were recorded: by start, each flow's rate in each second.
    pub program_starts: Option<Vec<Vec<Vec<f64>>>>,
    scenario: Scenario,
}

/// Names of all twins, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(|(path, _)| path.strip_suffix(".csv")).filter(|name| !name.ends_with(SUFFIX))
}

fn text(path: &str) -> Result<&'static str, InputError> {
    let file = FILES.iter().find(|f| f.0 == path);
    file.map(|f| f.1).ok_or_else(|| InputError::whole(path, "no file of the twins has this name"))
}

impl Twin {
    /// A twin by name. Errors: no twin has this name, or a file of it is not what it should be.
    pub fn by_name(name: &str, registry: &Registry) -> Result<Self, InputError> {
        if !names().any(|n| n == name) {
            let known: Vec<_> = names().collect();
            let error = InputError::whole(name, "no twin has this name");
            return Err(error.help(format!("one of {}", known.join(", "))));
        }
        let folder = name.split('/').next().unwrap_or_default();
        let path = format!("{folder}/{PROGRAM}");
        let program: Program = toml::from_str(text(&path)?).map_err(|e| InputError::whole(&path, e.to_string()))?;
        let file = ScenarioFile::parse_with_files(
            &format!("twins/{name}"),
            text(&format!("{name}.toml"))?,
            BTreeMap::new(),
            registry,
        )?;
        let mut scenarios = file.scenarios(None, registry)?;
        let title = file.title().to_owned();
        let rows = rows(name, text(&format!("{name}.csv"))?)?;
        let scenario = scenarios.remove(0);
        let own = format!("{name}{SUFFIX}.csv");
        let program_starts = match FILES.iter().find(|f| f.0 == own) {
            Some((_, text)) => Some(starts::read(&own, text, scenario.flows.len(), scenario.duration, STARTS)?),
            None => None,
        };
        Ok(Self { name: name.into(), title, program, rows, program_starts, scenario })
    }

    /// The scenario that repeats the recording.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The scenarios of [`Self::score`]: [`Self::scenario`], and with several flows nine more in which those after the first
    /// begin whole frames later, the second one to nine, the third twice as many. So their frames stay at the same instants,
    /// as they are in the recordings.
    pub fn starts(&self) -> Vec<Scenario> {
        let starts = if self.scenario.flows.len() > 1 { STARTS } else { 1 };
        let later = |k: u32| {
            let mut scenario = self.scenario.clone();
            for (i, flow) in (0..).zip(&mut scenario.flows) {
                let rate = flow.rtp().and_then(|r| r.source.frame_rate());
                let frame = rate.map_or(SHIFT, |fps| TimeDelta::from_secs_f64(1.0 / fps));
                flow.start += frame * (i64::from(k) * i);
            }
            scenario
        };
        (0..starts).map(later).collect()
    }

    /// How near the runs of [`Self::starts`], with their time series, come to the recording; `None` without the series.
    pub fn score(&self, runs: &[RunResult]) -> Option<Score> {
        score::score(self, runs)
    }
}

fn rows(name: &str, text: &str) -> Result<Vec<Row>, InputError> {
    let bad = |line: usize, what: &str| InputError::whole(name, format!("line {} of the recording {what}", line + 1));
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, head)| head != HEADER) {
        return Err(bad(0, "is not the heading"));
    }
    lines
        .map(|(i, line)| {
            let cells: Vec<&str> = line.split(',').collect();
            let [time, flow, target, goodput, delay, _] = cells[..] else { return Err(bad(i, "has not six cells")) };
            // A flow has no values before it starts.
            let number = |cell: &str| match cell {
                "" => Ok(f64::NAN),
                _ => cell.parse::<f64>().map_err(|_| bad(i, "has a cell that is no number")),
            };
            Ok(Row {
                time_s: number(time)?,
                flow: flow.parse().map_err(|_| bad(i, "has no number of a flow"))?,
                target_bps: number(target)?,
                goodput_bps: number(goodput)?,
                delay_ms: number(delay)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_twin_can_be_read() {
        let registry = Registry::builtin();
        let all: Vec<_> = names().map(|n| Twin::by_name(n, &registry).expect("a sound twin")).collect();
        assert!(all.len() >= 16, "{}", all.len());
        for twin in &all {
            assert!(registry.get(&twin.program.controller).is_some(), "{}", twin.name);
            let last = twin.rows.last().expect("rows").time_s;
            assert!((last - twin.scenario().duration.as_secs_f64()).abs() < 1e-6, "{}", twin.name);
        }
    }

    #[test]
    fn several_flows_have_ten_starts_and_one_has_one() {
        let registry = Registry::builtin();
        let starts = |name: &str| Twin::by_name(name, &registry).expect("a sound twin").starts();
        assert_eq!(starts("gcc/steps-25ms").len(), 1);
        let three = starts("scream1/three");
        assert_eq!(three.len(), 10);
        let times = |s: &Scenario| -> Vec<i64> { s.flows.iter().map(|f| f.start.as_millis()).collect() };
        assert_eq!((times(&three[0]), times(&three[9])), (vec![0, 40_000, 80_000], vec![0, 40_360, 80_720]));
    }

    #[test]
    fn faults_are_named() {
        let error = Twin::by_name("gcc/none", &Registry::builtin()).expect_err("unknown").to_string();
        assert!(error.contains("no twin has this name"), "{error}");
        for (text, fault) in [
            ("", "line 1"),
            ("time_s,flow,target_bps,goodput_bps,delay_ms,delay_max_ms\n1,0,2", "line 2 of the recording has not six"),
            ("time_s,flow,target_bps,goodput_bps,delay_ms,delay_max_ms\n1,0,x,3,4,5", "no number"),
            ("time_s,flow,target_bps,goodput_bps,delay_ms,delay_max_ms\n1,-1,2,3,4,5", "number of a flow"),
        ] {
            let error = rows("x", text).expect_err(fault).to_string();
            assert!(error.contains(fault), "{error}");
        }
    }
}
