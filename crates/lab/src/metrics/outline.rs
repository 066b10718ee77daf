//! A run in few numbers, from the recorder's rows.

use crate::histogram::Histogram;
use crate::results::{FlowOutline, FlowRow, OUTLINE_QUANTILES, Outline};

/// Flows that are kept.
pub(super) const FLOWS: usize = 12;
/// Rows at most; when there are as many, two each become one, so that memory does not grow with time.
const ROWS: usize = 512;
/// Shortest row, in s.
const ROW_S: f64 = 1.0;

/// Sums rows of the recorder to rows of a second or more.
#[derive(Debug)]
pub(super) struct OutlineMeter {
    outline: Outline,
    /// Times that rows were joined.
    joined: u32,
    rows: u32,
    queue_delay_ms: f64,
    flows: Vec<Sum>,
}

/// Counts of a flow in one row of the recorder.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowCounts {
    pub(super) is_active: bool,
    pub(super) sent_bytes: u64,
    pub(super) sent: u64,
    pub(super) lost: u64,
    /// Mean one-way delay in ms; NaN where nothing arrived.
    pub(super) delay_ms: f64,
}

#[derive(Clone, Copy, Debug)]
struct Sum {
    active_rows: u32,
    bytes: u64,
    sent: u64,
    lost: u64,
    delay_ms: f64,
}

impl Sum {
    const EMPTY: Self = Self { active_rows: 0, bytes: 0, sent: 0, lost: 0, delay_ms: f64::NAN };

    fn add(&mut self, row: RowCounts) {
        self.active_rows += u32::from(row.is_active);
        self.bytes += row.sent_bytes;
        self.sent += row.sent;
        self.lost += row.lost;
        self.delay_ms = self.delay_ms.max(row.delay_ms);
    }

    fn take(&mut self, row_s: f64) -> FlowRow {
        let Self { active_rows, bytes, sent, lost, delay_ms } = std::mem::replace(self, Self::EMPTY);
        FlowRow {
            sent_bps: (active_rows > 0).then(|| (bytes as f64 * 8.0 / (f64::from(active_rows) * row_s)) as f32),
            delay_ms: some(delay_ms),
            loss: (sent > 0).then(|| (lost as f64 / sent as f64).min(1.0) as f32),
        }
    }
}

fn some(value: f64) -> Option<f32> {
    (!value.is_nan()).then_some(value as f32)
}

impl OutlineMeter {
    /// For a run of so many flows.
    pub(super) fn new(flows: usize) -> Self {
        let kept = flows.min(FLOWS);
        Self {
            outline: Outline { flows: vec![FlowOutline::default(); kept], ..Outline::default() },
            joined: 0,
            rows: 0,
            queue_delay_ms: f64::NAN,
            flows: vec![Sum::EMPTY; kept],
        }
    }

    /// A row of the recorder has ended: mean delay in the bottleneck's queue (NaN where unknown), and what the first flows did.
    pub(super) fn on_row(&mut self, row_s: f64, queue_delay_ms: f64, flows: impl Iterator<Item = RowCounts>) {
        self.rows += 1;
        self.queue_delay_ms = self.queue_delay_ms.max(queue_delay_ms);
        self.flows.iter_mut().zip(flows).for_each(|(sum, row)| sum.add(row));
        // Rows may add up to a second a little short of it.
        if f64::from(self.rows) * row_s < ROW_S * f64::from(1u32 << self.joined.min(31)) - row_s / 2.0 {
            return;
        }
        self.outline.interval_s = f64::from(self.rows) * row_s;
        self.rows = 0;
        self.outline.queue_delay_ms.push(some(std::mem::replace(&mut self.queue_delay_ms, f64::NAN)));
        for (flow, sum) in self.outline.flows.iter_mut().zip(&mut self.flows) {
            flow.rows.push(sum.take(row_s));
        }
        if self.outline.queue_delay_ms.len() >= ROWS {
            join(&mut self.outline.queue_delay_ms, |a, b| both(a, b, f32::max));
            for flow in &mut self.outline.flows {
                join(&mut flow.rows, |a, b| FlowRow {
                    sent_bps: both(a.sent_bps, b.sent_bps, f32::midpoint),
                    delay_ms: both(a.delay_ms, b.delay_ms, f32::max),
                    loss: both(a.loss, b.loss, f32::midpoint),
                });
            }
            self.outline.interval_s *= 2.0;
            self.joined += 1;
        }
    }

    /// The distributions of a flow, in ns.
    pub(super) fn on_flow_end(&mut self, flow: usize, packets: &Histogram, frames: Option<&Histogram>) {
        let Some(outline) = self.outline.flows.get_mut(flow) else { return };
        outline.packet_delay_ms = quantiles_ms(packets);
        outline.frame_delay_ms = frames.map_or(vec![], quantiles_ms);
    }

    pub(super) fn finish(self) -> Outline {
        self.outline
    }
}

fn quantiles_ms(h: &Histogram) -> Vec<f32> {
    OUTLINE_QUANTILES.iter().filter_map(|&q| Some((h.quantile(q)? * 1e-6) as f32)).collect()
}

/// Makes one row of two.
fn join<T: Copy>(rows: &mut Vec<T>, of_two: impl Fn(T, T) -> T) {
    for i in 0..rows.len() / 2 {
        rows[i] = of_two(rows[2 * i], rows[2 * i + 1]);
    }
    rows.truncate(rows.len() / 2);
}

fn both(a: Option<f32>, b: Option<f32>, of_two: impl Fn(f32, f32) -> f32) -> Option<f32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(of_two(a, b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: u64, delay_ms: f64) -> RowCounts {
        RowCounts { is_active: true, sent_bytes: bytes, sent: 10, lost: 1, delay_ms }
    }

    #[test]
    fn rows_are_seconds_with_the_largest_delay() {
        let mut m = OutlineMeter::new(2);
        for i in 0..20 {
            let other = if i < 10 { RowCounts { delay_ms: f64::NAN, ..RowCounts::default() } } else { row(100, 5.0) };
            let delay = if i == 3 { 80.0 } else { 20.0 };
            m.on_row(0.1, delay - 10.0, [row(1_000, delay), other].into_iter());
        }
        m.on_flow_end(1, &Histogram::new(), None);
        let o = m.finish();
        assert!((o.interval_s - 1.0).abs() < 1e-9);
        assert_eq!(o.queue_delay_ms, [Some(70.0), Some(10.0)]);
        let first = FlowRow { sent_bps: Some(80e3), delay_ms: Some(80.0), loss: Some(0.1) };
        assert_eq!(o.flows[0].rows, [first, FlowRow { delay_ms: Some(20.0), ..first }]);
        assert_eq!(o.flows[1].rows[0], FlowRow::default());
        assert_eq!(o.flows[1].rows[1], FlowRow { sent_bps: Some(8e3), delay_ms: Some(5.0), loss: Some(0.1) });
        assert!(o.flows[1].packet_delay_ms.is_empty());
    }

    #[test]
    fn a_long_run_of_many_flows_has_bounded_rows_and_flows() {
        let mut m = OutlineMeter::new(5_000);
        for i in 0..3 * ROWS as u64 {
            m.on_row(1.0, i as f64, (0..5_000).map(|_| row(1_000, 1.0)));
        }
        let o = m.finish();
        // Joined at 512 rows of 1 s and of 2 s; then rows of 4 s.
        assert_eq!((o.flows.len(), o.interval_s, o.queue_delay_ms.len()), (FLOWS, 4.0, 3 * ROWS / 4));
        assert_eq!((o.queue_delay_ms[0], o.flows[11].rows.len()), (Some(3.0), 3 * ROWS / 4));
        assert_eq!(o.flows[0].rows[0].sent_bps, Some(8e3));
    }

    #[test]
    fn distributions_are_kept_in_ms() {
        let mut delays = Histogram::new();
        (1..=1_000).for_each(|ms| delays.record(ms * 1_000_000));
        let mut m = OutlineMeter::new(1);
        m.on_flow_end(0, &delays, Some(&delays));
        let o = m.finish();
        let median = OUTLINE_QUANTILES.iter().position(|q| *q == 0.5).expect("a median");
        assert!((o.flows[0].packet_delay_ms[median] - 500.0).abs() < 3.0);
        assert_eq!(o.flows[0].packet_delay_ms.last(), Some(&1_000.0));
        assert_eq!(o.flows[0].frame_delay_ms.len(), OUTLINE_QUANTILES.len());
    }
}
