//! A part of a call.

use crate::why::Curves;
use crate::{Call, Recording, Report};
use weir_units::Timestamp;

/// A time of a call, of which the end is not part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Its begin.
    pub from: Timestamp,
    /// Its end.
    pub to: Timestamp,
}

impl Window {
    /// From and to so many seconds after the first time in any of a call's files; without an end, to the last one.
    /// `None`: no file has a time.
    pub fn of(call: &Call, from_s: f64, to_s: Option<f64>) -> Option<Self> {
        let spans = call.recordings.iter().filter_map(Recording::span);
        let (first, last) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        let after = |s: f64| first + weir_units::TimeDelta::from_secs_f64(s);
        // The last row is in.
        let end = last + weir_units::TimeDelta::from_nanos(1);
        Some(Self { from: after(from_s), to: to_s.map_or(end, after) })
    }

    fn has(&self, at: Timestamp) -> bool {
        at >= self.from && at < self.to
    }

    /// Leaves the rows of this time. The totals of `getStats()` stay those since the call's begin.
    pub fn cut(&self, call: &mut Call) {
        for r in &mut call.recordings {
            r.packets.retain(|r| self.has(r.at));
            r.rtcp.retain(|r| self.has(r.at));
            r.reported.retain(|r| self.has(r.at));
            r.blocks.retain(|r| self.has(r.at));
            r.estimates.retain(|r| self.has(r.at));
            r.probes.retain(|r| self.has(r.at));
            r.limited.retain(|r| self.has(r.at));
            r.frames.retain(|r| self.has(r.at));
            r.pairs.retain(|r| self.has(r.at));
            r.streams.retain(|r| self.has(r.at));
            r.events.retain(|r| self.has(r.at));
            r.other.retain(|r| self.has(r.at));
            r.repairs.retain(|r| self.has(r.at));
            for series in r.series.values_mut() {
                series.points.retain(|p| self.has(p.0));
                series.texts.retain(|t| self.has(t.0));
            }
            r.series.retain(|_, s| !s.points.is_empty() || !s.texts.is_empty());
        }
    }

    /// Leaves the episodes that reach into this time, and the targets in it.
    pub fn cut_report(&self, report: &mut Report) {
        let (from, to) = (self.from.as_millis(), self.to.as_millis());
        report.episodes.retain(|e| e.to_ms >= from && e.from_ms < to);
        report.replays.iter_mut().for_each(|r| r.targets.retain(|t| t.0 >= from && t.0 < to));
    }

    /// Leaves the rows that begin in this time.
    pub fn cut_curves(&self, curves: &mut Curves) {
        let rows = curves.columns.first().map_or(0, |c| c.values.len());
        let row_ms = curves.interval_s * 1e3;
        let row =
            |at: Timestamp| (((at.as_millis() - curves.start_ms) as f64 / row_ms).max(0.0).ceil() as usize).min(rows);
        let (first, end) = (row(self.from), row(self.to));
        for column in &mut curves.columns {
            column.values.truncate(end);
            column.values.drain(..first.min(end));
        }
        curves.start_ms += (first as f64 * row_ms) as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;
    use crate::why::Column;

    #[test]
    fn a_window_has_what_is_in_it_and_not_its_end() {
        let line = |i: u64| format!("{},102,7,{i},0,false,1200,0,{i},1\n", 1_700_000_000_000 + i * 100);
        let text: String = (0..100).map(line).collect();
        let mut call = Call::new(vec![read("log", text.as_bytes()).expect("a log")]);
        let window = Window::of(&call, 2.0, Some(5.0)).expect("times");
        window.cut(&mut call);
        let numbers: Vec<u32> = call.recordings[0].packets.iter().map(|p| p.number).collect();
        assert_eq!((numbers.len(), numbers.first(), numbers.last()), (30, Some(&21), Some(&50)));
        // Without an end the last packet is in.
        let mut whole = Call::new(vec![read("log", text.as_bytes()).expect("a log")]);
        Window::of(&whole, 9.0, None).expect("times").cut(&mut whole);
        assert_eq!(whole.recordings[0].packets.len(), 10);
        let values = (0..20).map(f64::from).collect();
        let columns = vec![Column { name: "sent_kbps", values }];
        let mut curves = Curves { start_ms: 1_700_000_000_000, interval_s: 0.5, columns };
        window.cut_curves(&mut curves);
        assert_eq!(
            (curves.start_ms, curves.columns[0].values.as_slice()),
            (1_700_000_002_000, &[4.0, 5.0, 6.0, 7.0, 8.0, 9.0][..])
        );
    }
}
