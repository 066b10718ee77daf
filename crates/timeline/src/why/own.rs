//! Rules of users beside the built-in ones: a TOML file of bounds on the numbers over time around an episode.
//!
//! ```toml
//! [[rules]]
//! name = "satellite"
//! kinds = ["fall"]
//! confidence = 0.7
//! text = "the way leads over a satellite"
//! [[rules.when]]
//! quantity = "rtt_ms"
//! statistic = "least"
//! of = "around"
//! above = 500
//! ```
//!
//! A rule holds where all of its conditions do. A condition whose quantity a recording does not have does not hold.

use super::curves::Curves;
use super::{Cause, Episode, EpisodeKind, ranked};
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

/// Names of the numbers over time that rules may bound, as [`Curves`] has them.
pub const QUANTITIES: [&str; 21] = [
    "sent_kbps",
    "arrived_kbps",
    "received_kbps",
    "passing_kbps",
    "goodput_kbps",
    "other_kbps",
    "estimate_delay_kbps",
    "estimate_loss_kbps",
    "target_kbps",
    "available_kbps",
    "delay_ms",
    "delay_max_ms",
    "rtt_ms",
    "stun_rtt_ms",
    "jitter_ms",
    "loss_percent",
    "feedback_per_s",
    "answers_per_s",
    "frames_per_s",
    "encoded_per_s",
    "source_per_s",
];

/// Most rules of a file, most conditions of a rule, and longest name and text.
const MAX_RULES: usize = 200;
const MAX_CONDITIONS: usize = 20;
const MAX_NAME: usize = 40;
const MAX_TEXT: usize = 200;
/// Times around an episode's begin, in s: those of the built-in rules.
const PAST: f64 = 12.0;
const EARLY: f64 = 3.0;
const LATE: f64 = 4.0;

/// Number that a condition takes of the values in its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum Statistic {
    /// Least value.
    Least,
    /// Mean.
    Mean,
    /// Median.
    Median,
    /// Largest value.
    Largest,
}

/// Time around an episode that a condition looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum Of {
    /// From 12 to 3 s before the begin.
    Before,
    /// From 3 s before the begin to 4 s behind it.
    Around,
    /// From begin to end.
    In,
    /// The number around the begin less that before.
    Change,
    /// The number around the begin as a multiple of that before.
    Ratio,
}

/// A condition: a number of a quantity that lies within bounds.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Condition {
    /// Name of a quantity over time, such as `rtt_ms` or `loss_percent`; docs/open.md lists them.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    quantity: Spanned<String>,
    statistic: Statistic,
    of: Of,
    /// The number is larger than this.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    above: Option<Spanned<f64>>,
    /// The number is less than this.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    below: Option<Spanned<f64>>,
}

/// A rule: a cause that is named where all conditions hold.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Rule {
    /// Name of the cause: small letters, digits and hyphens.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    name: Spanned<String>,
    /// Kinds of episodes that it is looked for in; all without it.
    #[serde(default)]
    kinds: Vec<EpisodeKind>,
    /// Confidence, above 0 and at most 1. Built-in rules say 0.85 where signs match well.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    confidence: Spanned<f64>,
    /// Shown before the numbers.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    text: Option<Spanned<String>>,
    /// Conditions, all of which hold.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Condition>"))]
    when: Spanned<Vec<Condition>>,
}

/// A file of rules.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// The rules.
    rules: Vec<Rule>,
}

/// A fault in a file of rules.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct RuleError {
    /// Bytes of the file that it is in.
    pub span: Range<usize>,
    /// Path of the field, such as `rules[0].confidence`; empty where the text is no TOML.
    pub field: String,
    /// The fault, with the value.
    pub message: String,
    /// A remedy, where there is one.
    pub help: Option<String>,
}

fn fault(span: Range<usize>, field: String, message: String, help: &str) -> RuleError {
    RuleError { span, field, message, help: Some(help.into()) }
}

impl Rules {
    /// Rules of a TOML text.
    ///
    /// # Errors
    /// The text is no TOML, has an unknown field, or a value out of its range; with its place and a remedy.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let parsed: Self = toml::from_str(text).map_err(|e| RuleError {
            span: e.span().unwrap_or(0..0),
            field: String::new(),
            message: e.message().to_owned(),
            help: Some("docs/open.md has a rule with all fields".into()),
        })?;
        if parsed.rules.len() > MAX_RULES {
            let message = format!("{} rules: at most {MAX_RULES}", parsed.rules.len());
            return Err(fault(0..0, "rules".into(), message, "name several files of rules apart, one a call"));
        }
        for (i, rule) in parsed.rules.iter().enumerate() {
            rule.check(&format!("rules[{i}]"))?;
        }
        Ok(parsed)
    }

    /// Adds the causes that these rules find to the episodes of a call with these numbers over time.
    pub fn apply(&self, episodes: &mut [Episode], curves: &Curves) {
        for episode in episodes {
            let found: Vec<Cause> = self.rules.iter().filter_map(|rule| rule.cause(episode, curves)).collect();
            if found.is_empty() {
                continue;
            }
            episode.causes.retain(|c| c.name != "not-known");
            episode.causes.extend(found);
            episode.causes = ranked(std::mem::take(&mut episode.causes));
        }
    }
}

impl Rule {
    fn check(&self, path: &str) -> Result<(), RuleError> {
        let name = self.name.get_ref();
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(good) {
            let message = format!("name = {name:?}: expected 1 to {MAX_NAME} small letters, digits and hyphens");
            return Err(fault(self.name.span(), format!("{path}.name"), message, "for example \"satellite\""));
        }
        let sure = *self.confidence.get_ref();
        if !(sure > 0.0 && sure <= 1.0) {
            let message = format!("confidence = {sure}: expected more than 0 and at most 1");
            let help = "built-in rules say 0.85 where signs match well";
            return Err(fault(self.confidence.span(), format!("{path}.confidence"), message, help));
        }
        if let Some(text) = self.text.as_ref().filter(|t| t.get_ref().len() > MAX_TEXT) {
            let message = format!("text of {} bytes: expected at most {MAX_TEXT}", text.get_ref().len());
            return Err(fault(text.span(), format!("{path}.text"), message, "a sentence is enough"));
        }
        let conditions = self.when.get_ref();
        if conditions.is_empty() || conditions.len() > MAX_CONDITIONS {
            let message = format!("{} conditions: expected 1 to {MAX_CONDITIONS}", conditions.len());
            let help = "add a table [[rules.when]] below the rule";
            return Err(fault(self.when.span(), format!("{path}.when"), message, help));
        }
        conditions.iter().enumerate().try_for_each(|(i, c)| c.check(&format!("{path}.when[{i}]")))
    }

    fn cause(&self, episode: &Episode, curves: &Curves) -> Option<Cause> {
        if !self.kinds.is_empty() && !self.kinds.contains(&episode.kind) {
            return None;
        }
        let numbers: Option<Vec<String>> = self.when.get_ref().iter().map(|c| c.holds(episode, curves)).collect();
        let evidence = self.text.iter().map(|t| t.get_ref().clone()).chain(numbers?).collect();
        let (name, confidence) = (self.name.get_ref().clone().into(), *self.confidence.get_ref());
        Some(Cause { name, confidence, evidence })
    }
}

impl Condition {
    fn check(&self, path: &str) -> Result<(), RuleError> {
        let name = self.quantity.get_ref();
        if !QUANTITIES.contains(&name.as_str()) {
            let message = format!("quantity = {name:?}: there is no such quantity");
            let help = format!("there are {}", QUANTITIES.join(", "));
            return Err(fault(self.quantity.span(), format!("{path}.quantity"), message, &help));
        }
        for (bound, field) in [(&self.above, "above"), (&self.below, "below")] {
            if let Some(bound) = bound.as_ref().filter(|b| !b.get_ref().is_finite()) {
                let message = format!("{field} = {}: expected a number", bound.get_ref());
                return Err(fault(bound.span(), format!("{path}.{field}"), message, "leave out a bound that is none"));
            }
        }
        if let (Some(above), Some(below)) = (&self.above, &self.below)
            && above.get_ref() >= below.get_ref()
        {
            let message = format!("above = {}, below = {}: no number is both", above.get_ref(), below.get_ref());
            let help = "give a lower bound that is less than the upper one";
            return Err(fault(below.span(), format!("{path}.below"), message, help));
        }
        if self.above.is_none() && self.below.is_none() {
            let message = format!("{name} without a bound");
            let help = "add above = NUMBER, below = NUMBER or both";
            return Err(fault(self.quantity.span(), path.into(), message, help));
        }
        Ok(())
    }

    /// The number in words, if it is there and within the bounds.
    fn holds(&self, episode: &Episode, curves: &Curves) -> Option<String> {
        let values = curves.column(self.quantity.get_ref())?;
        let (from, to) = [episode.from_ms, episode.to_ms].map(|ms| (ms - curves.start_ms) as f64 * 1e-3).into();
        let number = |from: f64, to: f64| self.statistic.of(within(values, curves.interval_s, from, to));
        let (before, around) = (|| number(from - PAST, from - EARLY), || number(from - EARLY, from + LATE));
        let (value, time) = match self.of {
            Of::Before => (before()?, "before"),
            Of::Around => (around()?, "around the begin"),
            Of::In => (number(from, to)?, "in it"),
            Of::Change => (around()? - before()?, "more than before"),
            Of::Ratio => (before().filter(|b| *b != 0.0).and_then(|b| Some(around()? / b))?, "times that before"),
        };
        let inside = self.above.as_ref().is_none_or(|a| value > *a.get_ref())
            && self.below.as_ref().is_none_or(|b| value < *b.get_ref());
        let statistic = match self.statistic {
            Statistic::Least => "least",
            Statistic::Mean => "mean",
            Statistic::Median => "median",
            Statistic::Largest => "largest",
        };
        inside.then(|| format!("{statistic} {}: {value:.1} {time}", self.quantity.get_ref()))
    }
}

/// Values of the rows that begin in a time; of a time without any, of the row that it is in.
fn within(values: &[f64], interval_s: f64, from: f64, to: f64) -> &[f64] {
    let row = |s: f64| ((s / interval_s).max(0.0) as usize).min(values.len());
    let first = row(from);
    values.get(first..row(to).max(first + 1).min(values.len())).unwrap_or_default()
}

impl Statistic {
    fn of(self, values: &[f64]) -> Option<f64> {
        let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let last = *values.last()?;
        Some(match self {
            Self::Least => values[0],
            Self::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Self::Median => values[values.len() / 2],
            Self::Largest => last,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::Column;

    const SATELLITE: &str = "[[rules]]\nname = \"satellite\"\nkinds = [\"fall\"]\nconfidence = 0.7\ntext = \"far\"\n\
        [[rules.when]]\nquantity = \"rtt_ms\"\nstatistic = \"least\"\nof = \"around\"\nabove = 500\n";

    fn applied(rules: &str, kind: EpisodeKind, rtt: impl Fn(usize) -> f64) -> Vec<Cause> {
        let curves = Curves {
            start_ms: 1_000,
            interval_s: 0.5,
            columns: vec![Column { name: "rtt_ms", values: (0..80).map(rtt).collect() }],
        };
        let causes = vec![Cause { name: "not-known".into(), confidence: 0.0, evidence: vec![] }];
        let mut episodes = [Episode { from_ms: 21_000, to_ms: 26_000, kind, freezes: None, frozen_ms: None, causes }];
        Rules::parse(rules).expect("rules").apply(&mut episodes, &curves);
        let [episode] = episodes;
        episode.causes
    }

    #[test]
    fn a_rule_holds_within_its_bounds_and_kinds() {
        let found = applied(SATELLITE, EpisodeKind::Fall, |_| 510.0);
        assert_eq!((found.len(), found[0].name.as_ref(), found[0].confidence), (1, "satellite", 0.7));
        assert_eq!(found[0].evidence, ["far", "least rtt_ms: 510.0 around the begin"]);
        for other in [
            applied(SATELLITE, EpisodeKind::Fall, |_| 490.0),
            applied(SATELLITE, EpisodeKind::Freeze, |_| 510.0),
            applied(SATELLITE, EpisodeKind::Fall, |_| f64::NAN),
            applied(&SATELLITE.replace("rtt_ms", "loss_percent"), EpisodeKind::Fall, |_| 510.0),
        ] {
            assert_eq!(other[0].name, "not-known");
        }
        // Rows 34 to 47 are around the begin at 20 s, and 16 to 33 before.
        let change = SATELLITE.replace("around", "change").replace("500", "90\nbelow = 110");
        assert_eq!(applied(&change, EpisodeKind::Fall, |i| if i < 34 { 50.0 } else { 150.0 })[0].name, "satellite");
        assert_eq!(applied(&change, EpisodeKind::Fall, |i| if i < 34 { 50.0 } else { 170.0 })[0].name, "not-known");
        let ratio = SATELLITE.replace("around", "ratio").replace("500", "2.5");
        assert_eq!(applied(&ratio, EpisodeKind::Fall, |i| if i < 34 { 50.0 } else { 150.0 })[0].name, "satellite");
        assert_eq!(applied(&ratio, EpisodeKind::Fall, |i| if i < 34 { 0.0 } else { 150.0 })[0].name, "not-known");
    }

    #[test]
    fn faults_name_field_value_place_and_remedy() {
        for (from, to, field, words, remedy) in [
            ("rtt_ms", "rtt", "rules[0].when[0].quantity", "\"rtt\"", "jitter_ms"),
            ("0.7", "1.5", "rules[0].confidence", "1.5", "0.85"),
            ("satellite", "Over There", "rules[0].name", "Over There", "satellite"),
            ("above = 500", "", "rules[0].when[0]", "rtt_ms without a bound", "above"),
            ("500", "nan", "rules[0].when[0].above", "NaN", "leave out"),
            ("above = 500", "above = 500\nbelow = 100", "rules[0].when[0].below", "no number is both", "lower bound"),
            ("least", "lowest", "", "lowest", "docs/open.md"),
            ("kinds", "kind", "", "kind", "docs/open.md"),
        ] {
            let text = SATELLITE.replace(from, to);
            let e = Rules::parse(&text).expect_err(to);
            assert!(e.field == field && e.message.contains(words), "{to}: {e:?}");
            assert!(e.help.as_deref().is_some_and(|h| h.contains(remedy)), "{to}: {e:?}");
            assert!(e.span.start < e.span.end && e.span.end <= text.len(), "{to}: {e:?}");
        }
        let many = SATELLITE.split("[[rules.when]]").next().expect("a part").to_owned() + "when = []\n";
        assert_eq!(Rules::parse(&many).expect_err("no conditions").field, "rules[0].when");
    }
}
