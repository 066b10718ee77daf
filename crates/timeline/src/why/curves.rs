//! Numbers of a call at equal distances of time, for plots and tables.

use super::bins::{BIN, Bin, bins};
use super::frames::frames;
use super::passage::{Passages, passages};
use super::statistics::{Second, seconds};
use crate::schema::{Direction, EstimateKind, RtcpKind};
use crate::{Call, Format, Recording, scream, weir};
use weir_units::Timestamp;

/// Longest call that is looked at, in rows: two days.
const MAX_ROWS: usize = 345_600;
/// Distance of rows of calls that have statistics alone, in s, as these come about once a second.
const STATISTICS_S: f64 = 1.0;
/// Time for which an estimate holds without another, in s: libwebrtc logs one only where it changes.
const HOLD_S: f64 = 10.0;

/// A quantity over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Its name with its unit, such as `sent_kbps`.
    pub name: &'static str,
    /// A value a row, NaN where there is none.
    pub values: Vec<f64>,
}

/// A call's numbers at equal distances of time. Quantities that the recordings do not have are absent.
#[derive(Clone, PartialEq, Debug)]
pub struct Curves {
    /// Begin of the first row: Unix time in ms where the recordings know it.
    pub start_ms: i64,
    /// Distance of rows, in s. A row covers the time from its begin to that of the next one.
    pub interval_s: f64,
    /// Quantities, each as long as the others.
    pub columns: Vec<Column>,
}

impl Curves {
    /// The values of one quantity.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|c| c.name == name).map(|c| c.values.as_slice())
    }
}

/// The grid of rows.
struct Grid {
    start_ms: f64,
    interval_s: f64,
    rows: usize,
    columns: Vec<Column>,
}

impl Grid {
    fn row(&self, at_s: f64) -> Option<usize> {
        let row = at_s / self.interval_s;
        (row >= 0.0 && row < self.rows as f64).then_some(row as usize)
    }

    fn seconds(&self, at: Timestamp) -> f64 {
        (at.as_nanos() as f64 * 1e-6 - self.start_ms) * 1e-3
    }

    fn add(&mut self, name: &'static str, values: Vec<f64>) {
        let new = self.columns.iter().all(|c| c.name != name);
        if new && values.iter().any(|v| v.is_finite()) {
            self.columns.push(Column { name, values });
        }
    }

    /// Sums a second of what happens at times; zero between the first and the last of them.
    fn sums(&mut self, name: &'static str, points: impl Iterator<Item = (f64, f64)>) {
        let mut values = vec![f64::NAN; self.rows];
        let mut ends: Option<(usize, usize)> = None;
        for (row, value) in points.filter_map(|(at, value)| Some((self.row(at)?, value))) {
            ends = Some(ends.map_or((row, row), |(a, b)| (a.min(row), b.max(row))));
            values[row] = if values[row].is_nan() { 0.0 } else { values[row] } + value / self.interval_s;
        }
        if let Some((first, last)) = ends {
            values[first..=last].iter_mut().filter(|v| v.is_nan()).for_each(|v| *v = 0.0);
        }
        self.add(name, values);
    }

    /// Means of rows, of values that are each the mean of a time as long as the least distance of two. A value's own time is the end of
    /// its time: the first one is the begin of the rows, and so the end of what is in the first row is its end.
    fn means(&mut self, name: &'static str, points: &[(f64, f64)]) {
        let apart = points.windows(2).map(|p| p[1].0 - p[0].0).filter(|d| *d > 0.0).fold(f64::INFINITY, f64::min);
        let apart = if apart.is_finite() { apart } else { self.interval_s };
        let mut sums = vec![(0.0, 0u32); self.rows];
        // A microsecond: the ends of rows are no whole binary fractions.
        let within = 1e-6;
        for (at, value) in points {
            let Some(first) = self.row(at + within) else { continue };
            let last = self.row(at + apart - within).unwrap_or(self.rows - 1);
            sums.get_mut(first..=last).into_iter().flatten().for_each(|s| *s = (s.0 + value, s.1 + 1));
        }
        let mean = |(sum, n): (f64, u32)| if n > 0 { sum / f64::from(n) } else { f64::NAN };
        self.add(name, sums.into_iter().map(mean).collect());
    }

    /// Values that hold until the next one, for so long.
    fn held(&mut self, name: &'static str, hold_s: f64, points: impl Iterator<Item = (f64, f64)>) {
        let mut values = vec![f64::NAN; self.rows];
        let mut points = points.peekable();
        let mut last: Option<(f64, f64)> = None;
        for (row, value) in values.iter_mut().enumerate() {
            let end = (row + 1) as f64 * self.interval_s;
            while let Some(point) = points.next_if(|p| p.0 < end) {
                last = Some(point);
            }
            if let Some((_, held)) = last.filter(|(at, _)| end - at <= hold_s + self.interval_s) {
                *value = held;
            }
        }
        self.add(name, values);
    }
}

/// The numbers of a call over time; `None` where no recording has a time.
pub fn curves(call: &Call) -> Option<Curves> {
    let spans = call.recordings.iter().filter_map(Recording::span);
    let (from, to) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let fine = call.recordings.iter().any(|r| !r.packets.is_empty() || !r.estimates.is_empty());
    let interval_s = if fine { BIN } else { STATISTICS_S };
    let rows = (((to - from).as_secs_f64() / interval_s) as usize + 1).min(MAX_ROWS);
    let mut grid = Grid { start_ms: from.as_millis() as f64, interval_s, rows, columns: Vec::new() };
    if let Some(found) = passages(call) {
        by_packet(&mut grid, call, &found);
    }
    each_way(&mut grid, call);
    estimates(&mut grid, call);
    statistics(&mut grid, call);
    scream(&mut grid, call);
    written(&mut grid, call);
    Some(Curves { start_ms: from.as_millis(), interval_s, columns: grid.columns })
}

/// Packets whose fates are known.
fn by_packet(grid: &mut Grid, call: &Call, found: &Passages) {
    let offset = (found.zero - grid.start_ms) * 1e-3;
    let all = bins(found);
    let mut of = |name, value: &dyn Fn(&Bin) -> Option<f64>| {
        let mut values = vec![f64::NAN; grid.rows];
        for bin in &all {
            if let (Some(row), Some(value)) = (grid.row(bin.at + offset), value(bin)) {
                values[row] = value;
            }
        }
        grid.add(name, values);
    };
    of("sent_kbps", &|b| Some(b.sent_kbps));
    of("arrived_kbps", &|b| Some(b.arrived_kbps));
    of("loss_percent", &|b| (b.known > 0).then(|| 100.0 * f64::from(b.lost) / f64::from(b.known)));
    of("delay_ms", &|b| b.delay.map(|d| d[1]));
    of("delay_max_ms", &|b| b.delay.map(|d| d[2]));
    if !found.answers.is_empty() {
        of("feedback_per_s", &|b| Some(f64::from(b.answers) / BIN));
    }
    if !found.other.is_empty() {
        of("other_kbps", &|b| Some(b.other_kbps));
    }
    if let Some(times) = frames(call, found).into_iter().max_by_key(Vec::len) {
        grid.sums("frames_per_s", times.into_iter().map(|at| (at + offset, 1.0)));
    }
}

/// Rates and feedback of the recording with most packets, whatever became of them.
fn each_way(grid: &mut Grid, call: &Call) {
    let Some(most) = call.recordings.iter().max_by_key(|r| r.packets.len()).filter(|r| !r.packets.is_empty()) else {
        return;
    };
    for (name, direction) in
        [("sent_kbps", Direction::Sent), ("received_kbps", Direction::Received), ("passing_kbps", Direction::Passing)]
    {
        let kbit = |p: &crate::Packet| (p.at, f64::from(p.size) * 8e-3);
        let points: Vec<_> = most.packets.iter().filter(|p| p.direction == direction).map(kbit).collect();
        let points: Vec<_> = points.into_iter().map(|(at, v)| (grid.seconds(at), v)).collect();
        grid.sums(name, points.into_iter());
    }
    let feedback = |k: &RtcpKind| matches!(k, RtcpKind::Twcc { .. } | RtcpKind::Ccfb | RtcpKind::Unread(_));
    let times: Vec<_> = most.rtcp.iter().filter(|r| feedback(&r.kind)).map(|r| (grid.seconds(r.at), 1.0)).collect();
    grid.sums("feedback_per_s", times.into_iter());
}

fn estimates(grid: &mut Grid, call: &Call) {
    for (name, kind) in [
        ("estimate_delay_kbps", EstimateKind::Delay),
        ("estimate_loss_kbps", EstimateKind::Loss),
        ("target_kbps", EstimateKind::Target),
    ] {
        let of = |r: &&Recording| r.estimates.iter().filter(|e| e.kind == kind).count();
        let Some(most) = call.recordings.iter().max_by_key(of) else { continue };
        let points: Vec<_> = (most.estimates.iter().filter(|e| e.kind == kind))
            .map(|e| (grid.seconds(e.at), e.rate.as_bps() as f64 * 1e-3))
            .collect();
        grid.held(name, HOLD_S, points.into_iter());
    }
}

/// Numbers of a trace of SCReAM's programs; of several streams those of the first one, but for the rate sent by all.
fn scream(grid: &mut Grid, call: &Call) {
    let Some(trace) = call.recordings.iter().find(|r| r.format == Format::Scream) else { return };
    let of = |name| trace.series_of(scream::KIND, name).next().map(|s| s.points.as_slice()).unwrap_or_default();
    for (column, name, unit) in [
        ("sent_kbps", "rateTransmittedAll", 1e-3),
        ("arrived_kbps", "rateAcked", 1e-3),
        ("rtt_ms", "rtt", 1e3),
        ("delay_ms", "queueDelay", 1e3),
    ] {
        let points: Vec<_> = of(name).iter().map(|(at, v)| (grid.seconds(*at), v * unit)).collect();
        grid.held(column, STATISTICS_S, points.into_iter());
    }
    let shares = of("rateLost").iter().zip(of("rateTransmitted")).filter(|(_, all)| all.1 > 0.0);
    let points: Vec<_> = shares.map(|(lost, all)| (grid.seconds(lost.0), 100.0 * lost.1 / all.1)).collect();
    grid.held("loss_percent", STATISTICS_S, points.into_iter());
}

/// Series and pages of Weir: the first flow, or call, of each.
fn written(grid: &mut Grid, call: &Call) {
    for recording in &call.recordings {
        for (name, points, unit) in weir::over_time(recording) {
            let points: Vec<_> = points.iter().map(|(at, v)| (grid.seconds(*at), v * unit)).collect();
            grid.means(name, &points);
        }
    }
}

/// Numbers of `getStats()`; of both ends' statistics those of the sender.
fn statistics(grid: &mut Grid, call: &Call) {
    let Some((found, sends)) = seconds(call) else { return };
    let offset = (found.zero - grid.start_ms) * 1e-3;
    let hold = STATISTICS_S;
    let mut of = |name, value: &dyn Fn(&Second) -> Option<f64>| {
        let rows = found.rows.iter().enumerate();
        let points: Vec<_> = rows.filter_map(|(i, s)| Some((i as f64 + offset, value(s)?))).collect();
        grid.held(name, hold, points.into_iter());
    };
    let rate = if sends { "sent_kbps" } else { "received_kbps" };
    of(rate, &|s| Some(s.kbps));
    of("available_kbps", &|s| s.available);
    of("loss_percent", &|s| {
        let of = s.sent.max(s.arrived.unwrap_or(0.0));
        s.lost.filter(|_| of > 0.0).map(|lost| (100.0 * lost / of).clamp(0.0, 100.0))
    });
    of("rtt_ms", &|s| s.rtt);
    of("stun_rtt_ms", &|s| s.stun_rtt);
    of("jitter_ms", &|s| s.jitter);
    of("answers_per_s", &|s| s.answers);
    of("encoded_per_s", &|s| sends.then_some(s.encoded));
    of("source_per_s", &|s| s.source);
}
