//! Many calls in a few numbers: by controller, and by cause.

use super::dataset::{CONTROLLERS, CallsDataset, FITS, unreadable};
use super::plan::CallsPlan;
use super::row::{BETTER, CAUSES, NO_EPISODE, OUTSIDE, WORSE};
use crate::sweep::rows::{self, Values};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Calls in which a controller is better or worse than what was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CallsVerdicts"))]
pub struct Verdicts {
    /// Its whole interval is better, by more than 15 % (of a delay also 5 ms): a fit that explains a call can be as far off.
    pub better: usize,
    /// Its whole interval is worse by as much.
    pub worse: usize,
    /// Neither.
    pub undecided: usize,
}

impl Verdicts {
    fn add(&mut self, verdict: &str) {
        match verdict {
            BETTER => self.better += 1,
            WORSE => self.worse += 1,
            _ => self.undecided += 1,
        }
    }
}

/// Medians over calls; null where no call has the number.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CallsMedians"))]
pub struct Medians {
    /// Rate that arrived, in kbit/s.
    pub received_kbps: Option<f64>,
    /// 95th percentile of the one-way delay, in ms.
    pub delay_p95_ms: Option<f64>,
    /// Share of the frames that are late or lost, in percent; of recorded calls, share of the packets that are lost.
    pub lost_percent: Option<f64>,
    /// Time in which the picture stands still, in s; of recorded calls, of those whose freezes are known.
    pub frozen_s: Option<f64>,
}

/// A controller over the links of the calls.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CallsController"))]
pub struct ControllerCount {
    /// The controller.
    pub controller: String,
    /// Calls that it has been run for.
    pub calls: usize,
    /// Calls that are compared with what was recorded: all, but those that the fit does not explain, where that is known.
    pub compared: usize,
    /// By the rate that arrived.
    pub rate: Verdicts,
    /// By the 95th percentile of the delay.
    pub delay: Verdicts,
    /// Over all its calls.
    pub medians: Medians,
}

/// Calls with an episode of a cause.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CallsCause"))]
pub struct CauseCount {
    /// The first cause, or `no-episode` of calls without one.
    pub cause: String,
    /// Calls. One with episodes of several causes counts at each.
    pub calls: usize,
    /// Episodes.
    pub episodes: u64,
    /// By controller, in the order of `controllers`: the rate that arrived beside the recorded one.
    pub rate: Vec<Verdicts>,
    /// By controller: the 95th percentile of the delay.
    pub delay: Vec<Verdicts>,
}

/// How many calls the fit explains: the recorded controller over the links has the recorded numbers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CallsExplained"))]
pub struct Explained {
    /// The recorded controller.
    pub controller: String,
    /// Calls that are explained.
    pub explained: usize,
    /// Calls that are not.
    pub not_explained: usize,
    /// The first of these, by name.
    pub examples: Vec<String>,
}

/// Calls that are named where several are meant.
const EXAMPLES: usize = 3;

/// Many calls in a few numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallsSummary {
    /// Calls that have a fit.
    pub calls: usize,
    /// Of these calls, those without a fit.
    pub without_fit: usize,
    /// Calls with the same recordings as another, which are made once.
    pub copies: usize,
    /// Median over calls of the median capacity, in kbit/s, of those whose capacity is known at all.
    pub capacity_kbps: Option<f64>,
    /// Median over calls of the share of the time in which the capacity is known.
    pub capacity_known_share: Option<f64>,
    /// The recorded calls.
    pub recorded: Medians,
    /// Whether the fits explain the calls, where the recorded controller is named.
    pub explained: Option<Explained>,
    /// The controllers.
    pub controllers: Vec<ControllerCount>,
    /// The causes, the commonest first.
    pub causes: Vec<CauseCount>,
}

/// Values of a median.
#[derive(Default)]
struct Middle {
    received: Vec<f64>,
    delay: Vec<f64>,
    lost: Vec<f64>,
    frozen: Vec<f64>,
}

fn median(values: &mut Vec<f64>) -> Option<f64> {
    values.retain(|v| v.is_finite());
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

impl Middle {
    fn medians(&mut self) -> Medians {
        Medians {
            received_kbps: median(&mut self.received),
            delay_p95_ms: median(&mut self.delay),
            lost_percent: median(&mut self.lost),
            frozen_s: median(&mut self.frozen),
        }
    }
}

/// First causes of a row with the number of their episodes.
fn causes(row: &Values) -> Vec<(String, u64)> {
    let all = row.numbers.iter().filter_map(|(name, n)| Some((name.strip_prefix(CAUSES)?.to_owned(), *n as u64)));
    let all: Vec<_> = all.collect();
    if all.is_empty() { vec![(NO_EPISODE.into(), 0)] } else { all }
}

/// The columns that are read: all others stay in the files.
fn is_wanted(name: &str) -> bool {
    const COLUMNS: [&str; 16] = [
        "key",
        "call",
        "fit",
        "set",
        "than_recorded.rate",
        "than_recorded.delay",
        "recorded_is.rate",
        "recorded_is.delay",
        "received_kbps.likely",
        "delay_p95_ms.likely",
        "late_percent.likely",
        "frozen_s.likely",
        "recorded.received_kbps",
        "recorded.delay_p95_ms",
        "recorded.lost_percent",
        "recorded.frozen_s",
    ];
    COLUMNS.contains(&name) || name.starts_with(CAUSES) || name.starts_with("capacity_")
}

impl CallsSummary {
    /// Of a plan's calls, as far as a dataset has them. `controllers` are those that are counted, and `recorded` the one that was recorded.
    /// Errors, in words: a file that cannot be read.
    pub fn of(
        dataset: &CallsDataset,
        plan: &CallsPlan,
        controllers: &[String],
        recorded: Option<&str>,
    ) -> Result<Self, String> {
        let each = |part: &str, take: &mut dyn FnMut(Values)| -> Result<(), String> {
            for path in dataset.files(part)? {
                rows::each(&path, is_wanted, &mut *take).map_err(|e| unreadable(&path, &e))?;
            }
            Ok(())
        };
        let (mut all, mut capacity, mut known) = (Middle::default(), Vec::new(), Vec::new());
        let mut by_cause: BTreeMap<String, CauseCount> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let none = vec![Verdicts::default(); controllers.len()];
        each(FITS, &mut |row| {
            if !plan.fits.contains(row.text("key")) || !seen.insert(row.text("key").to_owned()) {
                return;
            }
            all.received.push(row.number("recorded.received_kbps"));
            all.delay.push(row.number("recorded.delay_p95_ms"));
            all.lost.push(row.number("recorded.lost_percent"));
            all.frozen.push(row.number("recorded.frozen_s"));
            capacity.push(row.number("capacity_kbps.median"));
            known.push(row.number("capacity_known_share"));
            for (cause, episodes) in causes(&row) {
                let count = by_cause.entry(cause.clone()).or_insert_with(|| CauseCount {
                    cause,
                    calls: 0,
                    episodes: 0,
                    rate: none.clone(),
                    delay: none.clone(),
                });
                (count.calls, count.episodes) = (count.calls + 1, count.episodes + episodes);
            }
        })?;
        let calls = seen.len();
        let mut not_explained = BTreeMap::new();
        let mut explained = recorded.map(|name| Explained {
            controller: name.into(),
            explained: 0,
            not_explained: 0,
            examples: Vec::new(),
        });
        if let Some(count) = &mut explained {
            let mut seen = BTreeSet::new();
            let part = part_of(&count.controller);
            each(&part, &mut |row| {
                let is_counted = plan.controllers.contains(row.text("key")) && row.text("set") == "{}";
                if !is_counted || !seen.insert(row.text("key").to_owned()) {
                    return;
                }
                if row.text("recorded_is.rate") == OUTSIDE || row.text("recorded_is.delay") == OUTSIDE {
                    count.not_explained += 1;
                    not_explained.insert(row.text("fit").to_owned(), row.text("call").to_owned());
                } else {
                    count.explained += 1;
                }
            })?;
            let mut names: Vec<&String> = not_explained.values().collect();
            names.sort();
            count.examples = names.into_iter().take(EXAMPLES).cloned().collect();
        }
        let set = serde_json::to_string(&plan.set).unwrap_or_default();
        let mut counts = Vec::new();
        for (at, name) in controllers.iter().enumerate() {
            let (mut middle, mut seen) = (Middle::default(), BTreeSet::new());
            let mut count = ControllerCount {
                controller: name.clone(),
                calls: 0,
                compared: 0,
                rate: Verdicts::default(),
                delay: Verdicts::default(),
                medians: Medians::default(),
            };
            each(&part_of(name), &mut |row| {
                let is_counted = plan.controllers.contains(row.text("key")) && row.text("set") == set;
                if !is_counted || !seen.insert(row.text("key").to_owned()) {
                    return;
                }
                count.calls += 1;
                middle.received.push(row.number("received_kbps.likely"));
                middle.delay.push(row.number("delay_p95_ms.likely"));
                middle.lost.push(row.number("late_percent.likely"));
                middle.frozen.push(row.number("frozen_s.likely"));
                if not_explained.contains_key(row.text("fit")) {
                    return;
                }
                count.compared += 1;
                count.rate.add(row.text("than_recorded.rate"));
                count.delay.add(row.text("than_recorded.delay"));
                for (cause, _) in causes(&row) {
                    if let Some(of) = by_cause.get_mut(&cause) {
                        of.rate[at].add(row.text("than_recorded.rate"));
                        of.delay[at].add(row.text("than_recorded.delay"));
                    }
                }
            })?;
            count.medians = middle.medians();
            counts.push(count);
        }
        let mut causes: Vec<CauseCount> = by_cause.into_values().collect();
        causes.sort_by_key(|c| std::cmp::Reverse(c.calls));
        Ok(Self {
            calls,
            without_fit: plan.calls - calls.min(plan.calls),
            copies: plan.copies,
            capacity_kbps: median(&mut capacity),
            capacity_known_share: median(&mut known),
            recorded: all.medians(),
            explained,
            controllers: counts,
            causes,
        })
    }
}

/// The folder of a controller's rows.
fn part_of(controller: &str) -> String {
    format!("{CONTROLLERS}/controller={}", crate::sweep::folder::quoted(controller))
}
