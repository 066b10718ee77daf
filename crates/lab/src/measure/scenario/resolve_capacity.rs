//! Capacities: rates, steps, patterns and traces.

use super::error::InputError;
use super::model::{Capacity, Trace};
use super::quantity::Time;
use super::raw_choice::*;
use super::spanned::At;
use super::traces::Traces;
use super::tree::Text;
use weir_units::TimeDelta;

/// A capacity as written, with its trace read.
pub(super) fn capacity(text: &Text, raw: &At<RawCapacity>, traces: &mut Traces) -> Result<Capacity, InputError> {
    let table = match &raw.value {
        RawCapacity::Unlimited => return Ok(Capacity::Unlimited),
        RawCapacity::Rate(r) if r.0.as_bps() == 0 => {
            return Err(text.error(raw.span.clone(), "a constant rate must be above zero"));
        }
        RawCapacity::Rate(r) => return Ok(Capacity::Constant(r.0)),
        RawCapacity::Table(t) => t,
    };
    if let (Some(pattern), None, None) = (&table.pattern, &table.steps, &table.trace) {
        if let Some(at) = table.repeat.as_ref().map(|r| &r.span).or(table.format.as_ref().map(|f| &f.span)) {
            return Err(text.error(at.clone(), "a pattern has neither `format` nor `repeat`: it repeats from its end"));
        }
        let schedule = weir_path::presets::umts::patterns(&pattern.value).map_err(|e| {
            text.error(pattern.span.clone(), format!("no pattern is named \"{}\": expected {}", e.value, e.expected))
        })?;
        let capacity = weir_path::Capacity::Schedule(schedule);
        return Ok(Capacity::Trace(Trace { file: pattern.value.clone(), capacity }));
    }
    match (&table.steps, &table.trace) {
        _ if table.pattern.is_some() => {
            Err(text.error(raw.span.clone(), "expected exactly one of `steps`, `trace` and `pattern`"))
        }
        (Some(steps), None) => {
            if let Some(f) = &table.format {
                return Err(text.error(f.span.clone(), "`format` belongs to `trace`, not to `steps`"));
            }
            resolve_steps(text, steps, table.repeat.as_ref())
        }
        (None, Some(trace)) => {
            if let Some(r) = &table.repeat {
                return Err(text.error(r.span.clone(), "`repeat` belongs to `steps`: a trace repeats from its end"));
            }
            traces.capacity(text, trace, table.format.as_ref().map(|f| f.value))
        }
        _ => Err(text.error(raw.span.clone(), "expected exactly one of `steps`, `trace` and `pattern`")),
    }
}

fn resolve_steps(text: &Text, raw: &At<Vec<At<RawStep>>>, repeat: Option<&At<Time>>) -> Result<Capacity, InputError> {
    let Some(first) = raw.value.first() else {
        return Err(text.error(raw.span.clone(), "expected at least one step"));
    };
    if first.value.at.0 != TimeDelta::ZERO {
        return Err(text.error(first.span.clone(), "the first step must be at \"0 s\""));
    }
    let mut steps: Vec<(TimeDelta, _)> = Vec::with_capacity(raw.value.len());
    for step in &raw.value {
        if steps.last().is_some_and(|last| last.0 >= step.value.at.0) {
            return Err(text.error(step.span.clone(), "every step must come later than the one before"));
        }
        steps.push((step.value.at.0, step.value.rate.0));
    }
    if steps.iter().all(|s| s.1.as_bps() == 0) {
        return Err(text.error(raw.span.clone(), "at least one step must have a rate above zero"));
    }
    let end = steps[steps.len() - 1].0;
    match repeat {
        Some(r) if r.value.0 <= end => {
            Err(text.error(r.span.clone(), format!("expected a time after the last step, which is at {end}")))
        }
        _ => Ok(Capacity::Steps { steps, repeat: repeat.map(|r| r.value.0) }),
    }
}
