//! A flow's forecast, looked up and checked.

use crate::capacity::{self, RawCapacity};
use crate::error::InputError;
use crate::forecast::{Forecast, Foreknown, MOST_RIDES};
use crate::quantity::Time;
use crate::raw::RawRtp;
use crate::raw::forecast::RawDrawn;
use crate::resolve::flow::Flows;
use crate::spanned::At;
use crate::traces::Traces;
use std::ops::RangeInclusive;
use weir_cc::{Spec, Transport};
use weir_units::TimeDelta;

const DEFAULT_SEGMENT: TimeDelta = TimeDelta::from_secs(5);
const DEFAULT_LOOK_AHEAD: TimeDelta = TimeDelta::from_secs(60);
const DEFAULT_INTERVAL: TimeDelta = TimeDelta::from_secs(10);
const SHORTEST: TimeDelta = TimeDelta::from_millis(100);
/// Most segments of one forecast: `weir_cc::wrappers::MapGuided` keeps as many.
const MOST_SEGMENTS: i64 = 256;

impl Flows<'_> {
    /// The forecast of a flow, if the file has one.
    pub(crate) fn forecast(
        &self,
        f: &RawRtp,
        spec: &Spec,
        traces: &mut Traces,
    ) -> Result<Option<Forecast>, InputError> {
        let Some(raw) = &f.forecast else { return Ok(None) };
        let (at, raw) = (&raw.span, &raw.value);
        if matches!(spec.transport, Transport::Dccp { .. }) {
            let message = "a forecast is of a call over UDP";
            return Err(self
                .text
                .error(at.clone(), message)
                .help("leave out `forecast`, or take a controller over UDP"));
        }
        let time = |name: &str, given: &Option<At<Time>>, default: TimeDelta, range: RangeInclusive<TimeDelta>| {
            let Some(t) = given else { return Ok(default.min(*range.end()).max(*range.start())) };
            if range.contains(&t.value.0) {
                return Ok(t.value.0);
            }
            let (least, most) = (range.start(), range.end());
            let message = format!("expected a `{name}` from {least} to {most}, found {}", t.value.0);
            Err(self.text.error(t.span.clone(), message))
        };
        let hour = TimeDelta::from_secs(3_600);
        let segment = time("segment", &raw.segment, DEFAULT_SEGMENT, SHORTEST..=hour)?;
        let most = (segment * (MOST_SEGMENTS - 1)).min(hour);
        let look_ahead = time("look_ahead", &raw.look_ahead, DEFAULT_LOOK_AHEAD, segment.min(most)..=most)?;
        let interval = time("interval", &raw.interval, DEFAULT_INTERVAL, SHORTEST..=hour)?;
        let factor = self.bounded(&raw.factor, 1.0, 0.001..=1_000.0)?;
        let in_band = raw.in_band.as_ref().is_some_and(|b| b.value);
        if let (Some(format), None) = (&raw.format, &raw.folder) {
            return Err(self.text.error(format.span.clone(), "`format` belongs to `folder`"));
        }
        let source = match (&raw.rides, &raw.folder, &raw.drawn, &raw.file) {
            (None, None, None, None) => Foreknown::Driven,
            (Some(rides), None, None, None) => {
                if !(1..=MOST_RIDES).contains(&rides.value.len()) {
                    let message = format!("expected one to {MOST_RIDES} rides, found {}", rides.value.len());
                    return Err(self.text.error(rides.span.clone(), message));
                }
                let rides = rides.value.iter().map(|r| Ok(capacity::resolve(self.text, r, traces)?.capacity));
                Foreknown::Rides(rides.collect::<Result<_, InputError>>()?)
            }
            (None, Some(folder), None, None) => {
                let format = raw.format.as_ref().map(|f| f.value.format());
                Foreknown::Rides(traces.rides(self.text, folder, format, &self.driven())?)
            }
            (None, None, Some(drawn), None) => self.drawn(&drawn.value)?,
            (None, None, None, Some(file)) => Foreknown::Foretold(traces.foretold(self.text, file)?),
            _ => {
                let message = "expected at most one of `rides`, `folder`, `drawn` and `file`";
                return Err(self.text.error(at.clone(), message).help("none of them: the link's own capacity"));
            }
        };
        Ok(Some(Forecast { source, segment, look_ahead, interval, factor, in_band }))
    }

    /// The traces of the scenario's links.
    fn driven(&self) -> Vec<&str> {
        fn trace(rate: &At<RawCapacity>) -> Option<&str> {
            match &rate.value {
                RawCapacity::Table(table) => Some(table.trace.as_ref()?.value.as_str()),
                _ => None,
            }
        }
        self.raw.links.iter().filter_map(|(_, link)| trace(link.value.rate.as_ref()?)).collect()
    }

    fn drawn(&self, raw: &RawDrawn) -> Result<Foreknown, InputError> {
        let rides = raw.rides.value as usize;
        if !(1..=MOST_RIDES).contains(&rides) {
            let message = format!("expected one to {MOST_RIDES} rides, found {rides}");
            return Err(self.text.error(raw.rides.span.clone(), message));
        }
        let shift = raw.shift.as_ref().map_or(TimeDelta::ZERO, |t| t.value.0);
        let most = TimeDelta::from_secs(600);
        if let Some(t) = raw.shift.as_ref().filter(|_| !(TimeDelta::ZERO..=most).contains(&shift)) {
            let message = format!("expected a `shift` from 0 s to {most}, found {shift}");
            return Err(self.text.error(t.span.clone(), message));
        }
        Ok(Foreknown::Drawn { rides, shift, spread: self.bounded(&raw.spread, 0.0, 0.0..=3.0)? })
    }
}
