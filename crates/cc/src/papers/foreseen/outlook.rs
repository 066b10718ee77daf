//! The forecast in force, by the clock.

use crate::cue::{CapacityForecast, ForecastSegment};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Segments that are kept.
const MAX_SEGMENTS: usize = 256;

/// The latest forecast.
#[derive(Clone, Debug, Default)]
pub(super) struct Outlook {
    segments: Vec<ForecastSegment>,
    since: Timestamp,
}

/// Consecutive segments below a rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Hole {
    pub begin: Timestamp,
    pub end: Timestamp,
    /// The least of its rates.
    pub least: DataRate,
}

impl Outlook {
    pub(super) fn set(&mut self, forecast: &CapacityForecast<'_>) {
        self.segments.clear();
        self.segments.extend(forecast.segments.iter().filter(|s| s.from < s.to).take(MAX_SEGMENTS));
        self.since = forecast.now;
    }

    /// The segment of a time.
    pub(super) fn at(&self, now: Timestamp) -> Option<&ForecastSegment> {
        self.segments.iter().find(|s| self.since + s.from <= now && self.since + s.to > now)
    }

    /// The holes that have not ended, in order: where the lower quartile is below a rate. Between segments nothing is known, and so
    /// there is no hole.
    pub(super) fn holes(&self, rate: DataRate, now: Timestamp) -> impl Iterator<Item = Hole> + '_ {
        let mut rest = self.segments.iter().filter(move |s| self.since + s.to > now).peekable();
        core::iter::from_fn(move || {
            let first = rest.find(|s| s.low < rate)?;
            let (mut to, mut least) = (first.to, first.low);
            while let Some(s) = rest.next_if(|s| s.low < rate && s.from <= to) {
                (to, least) = (s.to.max(to), s.low.min(least));
            }
            Some(Hole { begin: self.since + first.from, end: self.since + to, least })
        })
    }

    /// The next time after `now` at which a segment begins or ends, `early` before it included.
    pub(super) fn next_change(&self, now: Timestamp, early: TimeDelta) -> Option<Timestamp> {
        let edges = self.segments.iter().flat_map(|s| [self.since + s.from, self.since + s.to]);
        edges.flat_map(|at| [at - early, at]).filter(|at| *at > now).min()
    }
}
