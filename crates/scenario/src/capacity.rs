//! Capacities: a rate, steps of rates, a trace file or a 3G pattern.

use super::choice::{Choice, choice};
use super::error::InputError;
use super::quantity::{Rate, Time};
use super::spanned::At;
use super::steps;
use super::traces::Traces;
use super::tree::Text;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
#[cfg(feature = "schema")]
use std::borrow::Cow;
use weir_path::{Capacity, Schedule, Step};

/// A capacity.
#[derive(Clone, Debug)]
pub(super) enum RawCapacity {
    Unlimited,
    Rate(Rate),
    Table(RawCapacityTable),
}

/// A capacity that changes: exactly one of `steps`, `trace` and `pattern`.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { steps = [{ at = \"0 s\", rate = \"1 Mbps\" }] }")]
#[cfg_attr(feature = "schema", schemars(rename = "CapacityTable"))]
pub(super) struct RawCapacityTable {
    /// Rates from given times on; the first at "0 s".
    pub(super) steps: Option<At<Vec<At<RawStep>>>>,
    /// Time at which the steps repeat; never if absent.
    pub(super) repeat: Option<At<Time>>,
    /// A trace file, searched beside the scenario file. Unlike `steps` it repeats from its end on: a table's last row lasts as
    /// long as the one before it, and the last time of a mahimahi file ends a cycle.
    pub(super) trace: Option<At<String>>,
    /// The trace's format; by the file's name and first line if absent: csv for `.csv`, mahimahi if neither shows it.
    pub(super) format: Option<At<RawTraceFormat>>,
    /// 3G patterns of 60 s each, joined by `-`, such as "good-good-poor": excellent, good, fair, poor, elevator.
    pub(super) pattern: Option<At<String>>,
}

/// A rate from an instant on.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { at = \"10 s\", rate = \"1 Mbps\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Step"))]
pub(super) struct RawStep {
    /// The instant.
    pub(super) at: Time,
    /// The rate.
    pub(super) rate: Rate,
}

/// Format of a capacity trace.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "TraceFormat"))]
pub(super) enum RawTraceFormat {
    /// One integer per line: the millisecond in which another packet of 1,500 bytes may be sent.
    Mahimahi,
    /// Two columns, `time` and `rate`: seconds and kbit/s, or the units of a header such as `time_s,rate_bps`.
    Csv,
    /// Two columns, seconds and Mbit/s: Norwegian HSDPA logs by the second, or re-sampled.
    SecondsMbps,
    /// Norwegian HSDPA logs as recorded: six columns with positions and bytes.
    NorwayRaw,
    /// Belgian 4G logs: a JSON list of `duration_ms` and `bandwidth_kbps`.
    #[serde(rename = "belgium-4g")]
    Belgium4g,
    /// Irish 5G logs, the column `DL_bitrate`.
    #[serde(rename = "ireland-5g")]
    Ireland5g,
    /// Irish 5G logs, the column `UL_bitrate`.
    #[serde(rename = "ireland-5g-uplink")]
    Ireland5gUplink,
}

impl RawTraceFormat {
    pub(super) fn format(self) -> weir_path::TraceFormat {
        use weir_path::TraceFormat;
        match self {
            Self::Mahimahi => TraceFormat::Mahimahi,
            Self::Csv => TraceFormat::Table,
            Self::SecondsMbps => TraceFormat::SecondsMbps,
            Self::NorwayRaw => TraceFormat::NorwayRaw,
            Self::Belgium4g => TraceFormat::Belgium4g,
            Self::Ireland5g => TraceFormat::Ireland5g,
            Self::Ireland5gUplink => TraceFormat::Ireland5gUplink,
        }
    }
}

impl Choice for RawCapacity {
    type Fields = RawCapacityTable;
    const EXPECTED: &'static str =
        "a rate such as \"2 Mbps\", \"unlimited\", or a table with `steps`, `trace` or `pattern`";
    fn from_text(text: &str) -> Result<Self, String> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        Rate::read(text).map(Self::Rate)
    }
    fn from_table(table: Self::Fields) -> Self {
        Self::Table(table)
    }
}
choice!(RawCapacity);

#[cfg(feature = "schema")]
impl JsonSchema for RawCapacity {
    fn schema_name() -> Cow<'static, str> {
        "Capacity".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A rate, \"unlimited\", or a table with `steps`, `trace` or `pattern`.",
            "anyOf": [
                { "const": "unlimited" },
                g.subschema_for::<Rate>(),
                g.subschema_for::<RawCapacityTable>(),
            ]
        })
    }
}

/// A capacity, and its source.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    pub(super) capacity: Capacity,
    /// The trace file, or the 3G pattern; none if the file states rates.
    pub(super) trace: Option<String>,
}

impl From<Capacity> for Resolved {
    fn from(capacity: Capacity) -> Self {
        Self { capacity, trace: None }
    }
}

/// A capacity as written, with its trace read.
pub(super) fn resolve(text: &Text, raw: &At<RawCapacity>, traces: &mut Traces) -> Result<Resolved, InputError> {
    let table = match &raw.value {
        RawCapacity::Unlimited => return Ok(Capacity::Unlimited.into()),
        RawCapacity::Rate(r) if r.0.as_bps() == 0 => {
            return Err(text.error(raw.span.clone(), "a constant rate must be above zero"));
        }
        RawCapacity::Rate(r) => return Ok(Capacity::Constant(r.0).into()),
        RawCapacity::Table(t) => t,
    };
    if let (Some(pattern), None, None) = (&table.pattern, &table.steps, &table.trace) {
        if let Some(at) = table.repeat.as_ref().map(|r| &r.span).or(table.format.as_ref().map(|f| &f.span)) {
            return Err(text.error(at.clone(), "a pattern has neither `format` nor `repeat`: it repeats from its end"));
        }
        let schedule = weir_path::presets::umts::patterns(&pattern.value).map_err(|e| {
            text.error(pattern.span.clone(), format!("no pattern is named \"{}\": expected {}", e.value, e.expected))
        })?;
        return Ok(Resolved { capacity: Capacity::Schedule(schedule), trace: Some(pattern.value.clone()) });
    }
    match (&table.steps, &table.trace) {
        _ if table.pattern.is_some() => {
            Err(text.error(raw.span.clone(), "expected exactly one of `steps`, `trace` and `pattern`"))
        }
        (Some(steps), None) => {
            if let Some(f) = &table.format {
                return Err(text.error(f.span.clone(), "`format` belongs to `trace`, not to `steps`"));
            }
            resolve_steps(text, steps, table.repeat.as_ref()).map(Resolved::from)
        }
        (None, Some(trace)) => {
            if let Some(r) = &table.repeat {
                return Err(text.error(r.span.clone(), "`repeat` belongs to `steps`: a trace repeats from its end"));
            }
            let capacity = traces.capacity(text, trace, table.format.as_ref().map(|f| f.value.format()))?;
            Ok(Resolved { capacity, trace: Some(trace.value.clone()) })
        }
        _ => Err(text.error(raw.span.clone(), "expected exactly one of `steps`, `trace` and `pattern`")),
    }
}

fn resolve_steps(text: &Text, raw: &At<Vec<At<RawStep>>>, repeat: Option<&At<Time>>) -> Result<Capacity, InputError> {
    let starts: Vec<_> = raw.value.iter().map(|s| At { value: s.value.at, span: s.span.clone() }).collect();
    let period = steps::check(text, &raw.span, &starts, repeat)?;
    let steps: Vec<Step> = raw.value.iter().map(|s| Step { at: s.value.at.0, rate: s.value.rate.0 }).collect();
    if steps.iter().all(|s| s.rate.as_bps() == 0) {
        return Err(text.error(raw.span.clone(), "at least one step must have a rate above zero"));
    }
    let schedule = Schedule::new(steps, period);
    schedule.map(Capacity::Schedule).map_err(|e| text.error(raw.span.clone(), e.to_string()))
}
