//! Readings of the runs, and the sums over all of them.

use super::links::{Kind, Link};
use super::{JUDGED, LENGTH, MOST_LOST};
use serde::Serialize;
use weir_lab::results::RunResult;

/// Rate and losses of the judged flow in a time of [`LENGTH`](super::LENGTH).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "HarmWindow"))]
pub struct Window {
    /// Its begin in s.
    pub from_s: f64,
    /// Mean rate sent in bit/s.
    pub sent_bps: f64,
    /// Share of the packets sent that the path lost, 0 to 1.
    pub lost: f64,
}

impl Window {
    /// All of a run with its series.
    pub(super) fn all(run: &RunResult) -> Vec<Self> {
        let Some(series) = &run.series else { return Vec::new() };
        let Some(flow) = series.flows.iter().find(|f| f.name == JUDGED) else { return Vec::new() };
        let rows = ((LENGTH / series.interval_s).round() as usize).max(1);
        let (sent, lost) = (flow.sent_bps.windows(rows), flow.loss.windows(rows));
        let read = |(row, (sent, lost)): (usize, (&[f64], &[f64]))| {
            let sum: f64 = sent.iter().sum();
            let product: f64 = sent.iter().zip(lost).map(|(s, l)| if l.is_nan() { 0.0 } else { s * l }).sum();
            Self {
                from_s: row as f64 * series.interval_s,
                sent_bps: sum / rows as f64,
                lost: if sum > 0.0 { product / sum } else { 0.0 },
            }
        };
        sent.zip(lost).enumerate().map(read).collect()
    }

    /// The one in which most was lost.
    pub(super) fn worst(run: &RunResult) -> Option<Self> {
        Self::all(run).into_iter().max_by(|a, b| a.lost.total_cmp(&b.lost))
    }

    /// The one that begins at a time.
    pub(super) fn at(run: &RunResult, from_s: f64) -> Option<Self> {
        Self::all(run).into_iter().find(|w| w.from_s == from_s)
    }
}

/// A controller's worst window on a link, beside half of its rate.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "HarmVerdict"))]
pub struct Verdict {
    /// The window.
    #[serde(flatten)]
    pub window: Window,
    /// Share lost of half of the rate: on radio links in the same time, else in its worst; 0 where so little was lost that it was not run.
    pub lost_of_half: f64,
}

impl Verdict {
    /// Share lost beyond what half of the rate loses.
    pub fn own(&self) -> f64 {
        self.window.lost - self.lost_of_half
    }

    /// Whether that is too much.
    pub fn is_harm(&self) -> bool {
        self.own() > MOST_LOST
    }
}

/// A link on which a controller did harm.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "HarmFinding"))]
pub struct Finding {
    /// The link.
    #[serde(flatten)]
    pub link: Link,
    /// The worst window.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A controller's account.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "HarmAccount"))]
pub struct Account {
    /// The controller.
    pub controller: String,
    /// Links run, by kind.
    pub links: Vec<(Kind, u64)>,
    /// Links on which it did harm, the worst first.
    pub harm: Vec<Finding>,
}

impl Account {
    fn new(controller: &str) -> Self {
        Self { controller: controller.into(), links: Kind::ALL.map(|k| (k, 0)).to_vec(), harm: Vec::new() }
    }

    /// Links run.
    pub fn runs(&self) -> u64 {
        self.links.iter().map(|(_, n)| n).sum()
    }

    /// Links of a kind on which it did harm.
    pub fn harm_on(&self, kind: Kind) -> usize {
        self.harm.iter().filter(|f| f.link.kind == kind).count()
    }

    pub(super) fn enter(&mut self, link: &Link, verdict: Verdict) {
        self.links.iter_mut().filter(|(kind, _)| *kind == link.kind).for_each(|(_, n)| *n += 1);
        if verdict.is_harm() {
            self.harm.push(Finding { link: link.clone(), verdict });
        }
    }
}

/// Accounts of all controllers.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "HarmLedger"))]
pub struct Ledger {
    /// In the order in which they were named.
    pub accounts: Vec<Account>,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
    /// Runs that a stop left undone.
    pub undone: usize,
}

impl Ledger {
    pub(super) fn of(controllers: &[String]) -> Self {
        Self { accounts: controllers.iter().map(|c| Account::new(c)).collect(), ..Self::default() }
    }

    pub(super) fn enter(&mut self, controller: &str, link: &Link, verdict: Verdict) {
        let account = self.accounts.iter_mut().find(|a| a.controller == controller);
        if let Some(account) = account {
            account.enter(link, verdict);
        }
    }

    /// Puts each account's worst links first.
    pub(super) fn sort(&mut self) {
        for account in &mut self.accounts {
            account.harm.sort_by(|a, b| b.verdict.own().total_cmp(&a.verdict.own()));
        }
    }
}
