//! Rows of a fit and of a prediction.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_fit::{Check, Discipline, Estimate, Fit, NEAR, NEAR_MS, Prediction, Standing};
use weir_timeline::why::{Explanation, Level};

/// A row: of a call's fit, or of a controller over its links.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CallRow {
    /// Its content address.
    pub key: String,
    /// The controller; none for a fit.
    pub controller: Option<String>,
    /// Texts by column.
    pub texts: BTreeMap<String, String>,
    /// Numbers by column; those that are not known are there too, so that files have the same columns.
    pub numbers: BTreeMap<String, Option<f64>>,
}

/// A row that could not be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallFailure {
    /// Content address of the row.
    pub key: String,
    /// The call.
    pub call: String,
    /// The controller; none where the call has no fit.
    pub controller: Option<String>,
    /// The reason.
    pub error: String,
}

/// Rows that were made of one call, and those that could not be made.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CallResult {
    /// The rows.
    pub rows: Vec<CallRow>,
    /// The failures.
    pub failures: Vec<CallFailure>,
}

/// Prefix of the columns that count first causes of episodes.
pub(super) const CAUSES: &str = "causes.";
/// The cause of a call without an episode.
pub(super) const NO_EPISODE: &str = "no-episode";

impl CallRow {
    fn text(&mut self, name: &str, value: impl Into<String>) {
        self.texts.insert(name.into(), value.into());
    }

    /// A number; NaN where it is not known. It is rounded to six decimals, with which it is the same after a way through JSON.
    fn number(&mut self, name: &str, value: f64) {
        let rounded = (value * 1e6).round() / 1e6;
        self.numbers.insert(name.into(), Some(rounded).filter(|v| v.is_finite()));
    }

    fn estimate(&mut self, name: &str, value: &Estimate) {
        for (part, number) in [("likely", value.likely), ("low", value.low), ("high", value.high)] {
            self.number(&format!("{name}.{part}"), number);
        }
    }

    /// The recorded numbers and the causes, which rows of fits and of controllers have both.
    fn recorded(&mut self, call: &str, fit: &Fit, why: &Explanation) {
        self.text("call", call);
        self.number("recorded.received_kbps", fit.measured.received_kbps);
        self.number("recorded.delay_p95_ms", fit.measured.delay_p95_ms);
        self.number("recorded.lost_percent", fit.measured.lost_percent);
        let mut causes: BTreeMap<&str, u32> = BTreeMap::new();
        for cause in why.episodes.iter().filter_map(|e| e.causes.first()) {
            *causes.entry(&cause.name).or_default() += 1;
        }
        self.number("episodes", why.episodes.len() as f64);
        // Of equals the first by name.
        let most = causes.iter().max_by_key(|(name, n)| (**n, std::cmp::Reverse(**name)));
        self.text("cause", most.map_or(NO_EPISODE, |(name, _)| name));
        causes.iter().for_each(|(name, n)| self.number(&format!("{CAUSES}{name}"), f64::from(*n)));
    }

    /// The row of a fit.
    pub(super) fn of_fit(key: &str, call: &str, files: usize, fit: &Fit, why: &Explanation) -> Self {
        let mut row = Self { key: key.into(), ..Self::default() };
        row.recorded(call, fit, why);
        let frozen: Vec<i64> = why.episodes.iter().filter_map(|e| e.frozen_ms).collect();
        let sum = frozen.iter().sum::<i64>() as f64 * 1e-3;
        row.number("recorded.frozen_s", if frozen.is_empty() { f64::NAN } else { sum });
        row.text("level", level(why.level));
        row.text("unknown", fit.unknown.join("; "));
        row.number("files", files as f64);
        row.number("length_s", fit.length_s);
        row.number("rtt_ms", fit.rtt_ms.unwrap_or(f64::NAN));
        row.number("longer_path_ms", fit.base.iter().map(|b| b.more_ms).fold(0.0, f64::max));
        let c = &fit.capacity;
        let mut known: Vec<f64> = c.served_bps.iter().flatten().map(|r| r * 1e-3).collect();
        known.sort_by(f64::total_cmp);
        let quantile = |q: f64| known.get((known.len().saturating_sub(1) as f64 * q + 0.5) as usize).copied();
        for (name, q) in [("low", 0.05), ("median", 0.5), ("high", 0.95)] {
            row.number(&format!("capacity_kbps.{name}"), quantile(q).unwrap_or(f64::NAN));
        }
        row.number("capacity_kbps.at_least", c.least_bps.iter().copied().fold(0.0, f64::max) * 1e-3);
        row.number("capacity_known_share", c.known_share());
        row.text(
            "queue",
            match fit.queue.discipline {
                Discipline::DropTail => "drop-tail",
                Discipline::Managed => "managed",
                Discipline::Unknown => "unknown",
            },
        );
        row.number("queue_bytes.room", fit.queue.limit_bytes.unwrap_or(f64::NAN));
        row.number("queue_bytes.at_least", fit.queue.at_least_bytes);
        row.number("queue_longest_ms", fit.queue.longest_ms);
        let policer = fit.policer.as_ref();
        row.number("policer_kbps", policer.map_or(f64::NAN, |p| p.rate_bps * 1e-3));
        row.number("policer_burst_bytes", policer.map_or(f64::NAN, |p| p.burst_bytes));
        let l = &fit.loss;
        for (name, n) in
            [("chance", l.by_chance), ("queue", l.by_queue), ("policer", l.by_policer), ("outage", l.by_outage)]
        {
            row.number(&format!("lost_packets.{name}"), f64::from(n));
        }
        row.number("lost_in_a_row", l.in_a_row);
        row.number("outages", l.outages.len() as f64);
        row.number("outages_s", l.outages.iter().map(|o| o.to_s - o.from_s).sum());
        row.number("jitter_ms", fit.jitter.iter().map(|j| j.max_ms).fold(0.0, f64::max));
        row.number("others_s", fit.cross.iter().map(|o| o.to_s - o.from_s).sum());
        row.number("reordered_share", fit.reordered);
        row.number("answers_lost_share", fit.answers_lost.unwrap_or(f64::NAN));
        row.number("source.fps", fit.source.fps);
        row.number("source.ceiling_kbps", fit.source.ceiling_bps * 1e-3);
        row.number("source.audio_kbps", fit.source.audio_bps * 1e-3);
        row
    }

    /// The row of a controller over the links; `set` are changes as JSON.
    pub(super) fn of_prediction(key: &str, about: &About<'_>, p: &Prediction, set: &str) -> Self {
        let mut row = Self { key: key.into(), controller: Some(p.controller.clone()), ..Self::default() };
        row.recorded(about.call, about.fit, about.why);
        row.text("fit", about.key);
        row.text("set", set);
        row.number("draws", about.draws as f64);
        row.estimate("goodput_kbps", &p.goodput_kbps);
        row.estimate("received_kbps", &p.received_kbps);
        row.estimate("delay_p95_ms", &p.delay_p95_ms);
        row.estimate("late_percent", &p.late_percent);
        row.estimate("frozen_s", &p.frozen_s);
        let recorded = &about.fit.measured;
        let (rate, delay) = (recorded.received_kbps, recorded.delay_p95_ms);
        row.text("than_recorded.rate", than(&p.received_kbps, rate, NEAR * rate, true));
        row.text("than_recorded.delay", than(&p.delay_p95_ms, delay, (NEAR * delay).max(NEAR_MS), false));
        let check = Check::of(p, *recorded);
        row.text("recorded_is.rate", standing(check.received));
        row.text("recorded_is.delay", standing(check.delay));
        row
    }
}

/// The call that predictions are of.
pub(super) struct About<'a> {
    pub(super) call: &'a str,
    /// Content address of the fit.
    pub(super) key: &'a str,
    pub(super) fit: &'a Fit,
    pub(super) why: &'a Explanation,
    pub(super) draws: u64,
}

/// Verdicts on a prediction beside what was recorded.
pub(super) const BETTER: &str = "better";
pub(super) const WORSE: &str = "worse";
pub(super) const UNDECIDED: &str = "undecided";

/// Decided where the whole interval is farther from the recorded number than a fit that explains a call can be.
fn than(over: &Estimate, recorded: f64, margin: f64, more_is_better: bool) -> &'static str {
    match () {
        () if over.low > recorded + margin => [WORSE, BETTER][usize::from(more_is_better)],
        () if over.high < recorded - margin => [BETTER, WORSE][usize::from(more_is_better)],
        () => UNDECIDED,
    }
}

/// A recorded number outside of the interval of the recorded controller.
pub(super) const OUTSIDE: &str = "outside";

fn standing(of: Standing) -> &'static str {
    match of {
        Standing::Inside => "inside",
        Standing::Near => "near",
        Standing::Outside => OUTSIDE,
    }
}

fn level(of: Level) -> &'static str {
    match of {
        Level::None => "none",
        Level::OneEnd => "one-end",
        Level::Statistics => "statistics",
        Level::Log => "log",
        Level::Packets => "packets",
    }
}
