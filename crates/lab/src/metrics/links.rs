//! Metrics of one link.

use super::{LinkInfo, seconds};
use crate::histogram::Histogram;
use crate::series::LinkSeries;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// A change of capacity must last this long for a flow to be able to settle after it.
const LASTING: TimeDelta = TimeDelta::from_secs(5);

#[derive(Debug)]
pub(super) struct LinkMeter {
    pub(super) delay: Histogram,
    pub(super) bytes: Histogram,
    now: Option<(Timestamp, DataSize, TimeDelta)>,
    /// Duration of the current values, in ns, not yet included in the histograms.
    unrecorded: u64,
    /// Integral of the delay in ms times s, and the time it covers in s: that in which the queue had an end in sight.
    pub(super) area: (f64, f64),
    /// Integral of the bytes times s, and the time it covers in s.
    bytes_area: (f64, f64),
    row_area: (f64, f64),
    row_bytes_area: (f64, f64),
    pub(super) changes: Vec<(Timestamp, DataRate)>,
    pub(super) series: Option<LinkSeries>,
}

impl LinkMeter {
    pub(super) fn new(l: &LinkInfo, series: bool) -> Self {
        Self {
            delay: Histogram::new(),
            bytes: Histogram::new(),
            now: None,
            unrecorded: 0,
            area: (0.0, 0.0),
            bytes_area: (0.0, 0.0),
            row_area: (0.0, 0.0),
            row_bytes_area: (0.0, 0.0),
            changes: l.capacity.lasting_changes(LASTING),
            series: series.then(|| LinkSeries { name: l.name.clone(), ..<_>::default() }),
        }
    }
    /// The queue's bytes and delay from `now` on; [`TimeDelta::MAX`] is no delay, but a capacity that stays zero.
    #[inline]
    pub(super) fn set(&mut self, now: Timestamp, bytes: DataSize, delay: TimeDelta) {
        self.hold(now);
        if self.now.is_none_or(|(_, b, d)| b != bytes || d != delay) {
            self.record();
        }
        self.now = Some((now, bytes, delay));
    }
    /// As `count` samples of an empty queue, the last one at `now`, each `step` after the one before.
    pub(super) fn set_empty(&mut self, now: Timestamp, count: u64, step: TimeDelta) {
        if self.now.is_some_and(|(_, bytes, delay)| bytes.is_zero() && delay == TimeDelta::ZERO) {
            // One by one, so that the sums have the same rounding as with every sample.
            for _ in 1..count {
                self.bytes_area.1 += seconds(step);
                self.area.1 += seconds(step);
            }
            let before = step * (count.max(1) - 1) as i64;
            self.unrecorded += before.as_nanos().unsigned_abs();
            self.now = self.now.map(|(since, bytes, delay)| (since + before, bytes, delay));
            return self.set(now, DataSize::ZERO, TimeDelta::ZERO);
        }
        for k in (0..count as i64).rev() {
            self.set(now - step * k, DataSize::ZERO, TimeDelta::ZERO);
        }
    }
    /// Adds the current values to the histograms, weighted by their duration.
    pub(super) fn record(&mut self) {
        let weight = std::mem::take(&mut self.unrecorded);
        if let Some((_, bytes, delay)) = self.now {
            if delay < TimeDelta::MAX {
                self.delay.record_weighted(delay.as_nanos().max(0).unsigned_abs(), weight);
            }
            self.bytes.record_weighted(bytes.as_bytes(), weight);
        }
    }
    /// Adds to the duration of the current values.
    #[inline]
    pub(super) fn hold(&mut self, now: Timestamp) {
        let Some((since, bytes, delay)) = self.now else { return };
        let held = now.saturating_since(since);
        if held <= TimeDelta::ZERO {
            return;
        }
        self.unrecorded += held.as_nanos().unsigned_abs();
        let held_s = seconds(held);
        self.bytes_area.1 += held_s;
        if delay < TimeDelta::MAX {
            self.area.1 += held_s;
        }
        // An empty queue adds nothing.
        if !bytes.is_zero() || delay != TimeDelta::ZERO {
            self.bytes_area.0 += bytes.as_bytes() as f64 * held_s;
            if delay < TimeDelta::MAX {
                self.area.0 += delay.as_millis_f64() * held_s;
            }
        }
        self.now = Some((now, bytes, delay));
    }
    /// Mean delay in the row that ends now, in ms, NaN where it is not known; call before [`Self::end_row`].
    pub(super) fn row_delay_ms(&mut self, end: Timestamp) -> f64 {
        self.hold(end);
        mean(self.area, self.row_area)
    }
    pub(super) fn end_row(&mut self, info: &LinkInfo, start: Timestamp, end: Timestamp) {
        self.hold(end);
        let delay = mean(self.area, self.row_area);
        let bytes = mean(self.bytes_area, self.row_bytes_area);
        if let Some(series) = &mut self.series {
            series.capacity_bps.push(info.capacity.bits(start, end) / seconds(end - start));
            series.queue_delay_ms.push(delay);
            series.queue_bytes.push(bytes);
        }
        (self.row_area, self.row_bytes_area) = (self.area, self.bytes_area);
    }
}

/// The mean between two readings of an integral and the time that it covers; NaN where that is none.
fn mean(now: (f64, f64), before: (f64, f64)) -> f64 {
    let covered = now.1 - before.1;
    if covered > 0.0 { (now.0 - before.0) / covered } else { f64::NAN }
}
