//! Clocks of the ends' own: drift, steps and granularity.

use super::checks::positive;
use super::choice::{Choice, NoTable, choice};
use super::error::InputError;
use super::quantity::Time;
use super::spanned::At;
use super::tree::Text;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
#[cfg(feature = "schema")]
use std::borrow::Cow;
use weir_units::TimeDelta;

/// Greatest drift: a hundredth, far above any oscillator (RFC 5905, section 7.3, assumes 15 ppm and tolerates 500).
const MAX_DRIFT_PPM: f64 = 10_000.0;
const MAX_STEPS: usize = 10_000;

/// The clocks of a flow's ends; an end without one follows the simulation's.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Clocks {
    /// Of the end that sends the media.
    pub sender: Option<Clock>,
    /// Of the end that receives it.
    pub receiver: Option<Clock>,
}

/// An end's own clock.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// How much faster it runs than the simulation's, in parts per billion.
    pub drift_ppb: i64,
    /// Step from one time that it shows to the next; zero for none.
    pub granularity: TimeDelta,
    /// Times at which it is set, in order.
    pub steps: Vec<ClockStep>,
}

/// A clock is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockStep {
    /// When, from the start of the run.
    pub at: TimeDelta,
    /// How far forwards; backwards if negative.
    pub by: TimeDelta,
}

/// Clocks of the ends' own. With them, playout derives capture times from arrivals, as between ends whose clocks are not synchronised.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "Clocks"))]
pub(crate) struct RawClocks {
    /// Clock of the end that sends the media; the simulation's if absent.
    sender: Option<RawClock>,
    /// Clock of the end that receives the media; the simulation's if absent.
    receiver: Option<RawClock>,
}

/// An end's own clock: its timers, departures and arrivals, and all timestamps that it sends, follow it.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "Clock"))]
pub(crate) struct RawClock {
    /// How much faster than the simulation's it runs, such as "80 ppm" or "-80 ppm"; "0 ppm" if absent.
    drift: Option<At<RawDrift>>,
    /// Time from one value that it shows to the next, such as "4 ms"; as fine as the simulation's if absent.
    granularity: Option<At<Time>>,
    /// Times at which it is set. This changes the timestamps in what the end sends (arrival times in feedback, absolute send times, NTP
    /// timestamps), neither its timers nor its media clock.
    #[serde(default)]
    steps: Vec<At<RawClockStep>>,
}

/// A clock is set.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "ClockStep"))]
pub(crate) struct RawClockStep {
    /// When.
    at: At<Time>,
    /// How far: forwards, such as "2 s", or backwards, such as "-2 s".
    by: RawSignedTime,
}

/// A signed number of parts per million, kept in parts per billion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawDrift(i64);

impl Choice for RawDrift {
    type Fields = NoTable;
    const EXPECTED: &'static str = "a drift of up to 10000 ppm, such as \"80 ppm\" or \"-80 ppm\"";
    fn from_text(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected {}, found \"{text}\"", Self::EXPECTED);
        let number = text.trim().strip_suffix("ppm").ok_or_else(wrong)?.trim_end();
        let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
        let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
        let ppm: f64 = number.parse().ok().filter(|_| is_plain).ok_or_else(wrong)?;
        if ppm.abs() > MAX_DRIFT_PPM {
            return Err(wrong());
        }
        Ok(Self(libm::round(ppm * 1e3) as i64))
    }
    fn from_table(NoTable {}: NoTable) -> Self {
        Self(0)
    }
}
choice!(RawDrift);

#[cfg(feature = "schema")]
impl JsonSchema for RawDrift {
    fn schema_name() -> Cow<'static, str> {
        "Drift".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": format!("Expected: {}.", Self::EXPECTED),
            "type": "string",
            "pattern": "^[-+]?[0-9]+(\\.[0-9]+)? ?ppm$",
            "examples": ["80 ppm", "-80 ppm"],
        })
    }
}

/// A time that may be negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSignedTime(TimeDelta);

impl Choice for RawSignedTime {
    type Fields = NoTable;
    const EXPECTED: &'static str = "a time with its unit and, if it goes back, a minus, such as \"2 s\" or \"-2 s\"";
    fn from_text(text: &str) -> Result<Self, String> {
        let (sign, plain) = match text.trim().strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        Time::read(plain).map(|t| Self(t.0 * sign))
    }
    fn from_table(NoTable {}: NoTable) -> Self {
        Self(TimeDelta::ZERO)
    }
}
choice!(RawSignedTime);

impl RawSignedTime {
    pub(crate) fn time(self) -> TimeDelta {
        self.0
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for RawSignedTime {
    fn schema_name() -> Cow<'static, str> {
        "SignedTime".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": format!("Expected: {}.", Self::EXPECTED),
            "type": "string",
            "pattern": "^-?[0-9]+(\\.[0-9]+)? ?(us|ms|s|min)$",
            "examples": ["2 s", "-2 s"],
        })
    }
}

/// Both clocks. Errors: a granularity of zero, or steps that are too many or not in order.
pub(crate) fn clocks(text: &Text, raw: &RawClocks) -> Result<Clocks, InputError> {
    let end = |raw: &Option<RawClock>| raw.as_ref().map(|c| clock(text, c)).transpose();
    Ok(Clocks { sender: end(&raw.sender)?, receiver: end(&raw.receiver)? })
}

fn clock(text: &Text, raw: &RawClock) -> Result<Clock, InputError> {
    if let Some(first) = raw.steps.get(MAX_STEPS) {
        return Err(text.error(first.span.clone(), format!("expected at most {MAX_STEPS} steps")));
    }
    if let Some(w) = raw.steps.windows(2).find(|w| w[1].value.at.value.0 <= w[0].value.at.value.0) {
        let at = w[1].value.at.span.clone();
        return Err(text.error(at, "every step must be later than the previous one"));
    }
    Ok(Clock {
        drift_ppb: raw.drift.as_ref().map_or(0, |d| d.value.0),
        granularity: raw.granularity.as_ref().map_or(Ok(TimeDelta::ZERO), |g| positive(text, g))?,
        steps: raw.steps.iter().map(|s| ClockStep { at: s.value.at.value.0, by: s.value.by.0 }).collect(),
    })
}
