//! A run over time in few numbers.

use crate::results::RatesOverTime;

/// Maximum rows; at this number, pairs are merged, so that memory does not grow with time.
const ROWS: usize = 1_024;
/// Shortest row, in s.
const ROW_S: f64 = 1.0;

/// Sums rows of the recorder to rows of a second or more.
#[derive(Debug, Default)]
pub(super) struct RatesOverTimeMeter {
    rates_over_time: RatesOverTime,
    /// Times that rows were joined.
    joined: u32,
    rows: f64,
    media: Sum,
    tcp: Sum,
}

/// Goodput of the flows of a kind in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowGoodput {
    pub(super) flows: u64,
    pub(super) bytes: u64,
}

impl RowGoodput {
    pub(super) fn add_flow(&mut self, bytes: u64) {
        self.flows += 1;
        self.bytes += bytes;
    }
    /// Bytes per flow; `None` without a flow.
    pub(super) fn mean(self) -> Option<f64> {
        (self.flows > 0).then(|| self.bytes as f64 / self.flows as f64)
    }
}

#[derive(Debug, Default)]
struct Sum {
    bytes: f64,
    rows: f64,
}

impl Sum {
    /// Adds the mean of a row's flows; nothing if there are none.
    fn add(&mut self, row: RowGoodput) {
        if let Some(mean) = row.mean() {
            self.bytes += mean;
            self.rows += 1.0;
        }
    }
    fn take(&mut self, row_s: f64) -> Option<f32> {
        let Self { bytes, rows } = std::mem::take(self);
        (rows > 0.0).then(|| (bytes * 8.0 / (rows * row_s)) as f32)
    }
}

impl RatesOverTimeMeter {
    /// A row of the recorder has ended: goodput of flows of each kind, and a target.
    pub(super) fn on_row(&mut self, row_s: f64, media: RowGoodput, tcp: RowGoodput, target_bps: Option<f64>) {
        self.rows += 1.0;
        self.media.add(media);
        self.tcp.add(tcp);
        // Rows may add up to slightly less than a second.
        if self.rows * row_s < ROW_S * f64::from(1u32 << self.joined.min(31)) - row_s / 2.0 {
            return;
        }
        self.rates_over_time.interval_s = self.rows * row_s;
        self.rows = 0.0;
        let (media, tcp) = (self.media.take(row_s), self.tcp.take(row_s));
        self.rates_over_time.media_bps.push(media);
        self.rates_over_time.tcp_bps.push(tcp);
        self.rates_over_time.target_bps.push(target_bps.map(|t| t as f32));
        if self.rates_over_time.media_bps.len() >= ROWS {
            join(&mut self.rates_over_time.media_bps, mean);
            join(&mut self.rates_over_time.tcp_bps, mean);
            join(&mut self.rates_over_time.target_bps, |_, later| later);
            self.rates_over_time.interval_s *= 2.0;
            self.joined += 1;
        }
    }

    pub(super) fn finish(self) -> RatesOverTime {
        self.rates_over_time
    }
}

/// Merges pairs of rows.
fn join(rows: &mut Vec<Option<f32>>, both: impl Fn(Option<f32>, Option<f32>) -> Option<f32>) {
    for i in 0..rows.len() / 2 {
        rows[i] = both(rows[2 * i], rows[2 * i + 1]);
    }
    rows.truncate(rows.len() / 2);
}

/// The mean of the values present.
fn mean(a: Option<f32>, b: Option<f32>) -> Option<f32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(f32::midpoint(a, b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(flows: u64, bytes: u64) -> RowGoodput {
        RowGoodput { flows, bytes }
    }

    #[test]
    fn a_long_run_has_longer_rows_and_not_more() {
        let mut m = RatesOverTimeMeter::default();
        // The rate of the second: 1,000 bytes in the first, 2,000 in the second ...
        let seconds = 3 * ROWS as u64;
        for i in 1..=seconds {
            let tcp = if i % 2 == 0 { row(1, 500) } else { row(0, 0) };
            m.on_row(1.0, row(1, 1_000 * i), tcp, Some(i as f64));
        }
        let c = m.finish();
        // Joined at 1,024 rows of 1 s and at 1,024 of 2 s; then rows of 4 s.
        assert_eq!((c.interval_s, c.media_bps.len()), (4.0, 3 * ROWS / 4));
        // Seconds 1 to 4 have 2,500 bytes on average, and seconds 3,069 to 3,072 have 3,070,500.
        assert_eq!((c.media_bps[0], c.media_bps[767]), (Some(20e3), Some(24_564e3)));
        assert_eq!((c.tcp_bps[0], c.target_bps[0], c.target_bps[767]), (Some(4e3), Some(4.0), Some(3_072.0)));
    }

    #[test]
    fn rows_add_up_to_seconds_and_say_where_nothing_was() {
        let mut m = RatesOverTimeMeter::default();
        for i in 0..40 {
            // 1,000 bytes for each of two flows in rows of 100 ms; TCP is active only in the second and third second,
            // and for half of the latter.
            let tcp = if (10..25).contains(&i) { row(1, 500) } else { row(0, 0) };
            m.on_row(0.1, row(2, 2_000), tcp, Some(f64::from(i)));
        }
        let c = m.finish();
        assert!((c.interval_s - 1.0).abs() < 1e-9);
        assert_eq!(c.media_bps, [Some(80e3); 4]);
        assert_eq!(c.tcp_bps, [None, Some(40e3), Some(40e3), None]);
        assert_eq!(c.target_bps, [9.0, 19.0, 29.0, 39.0].map(Some));
        let mut slow = RatesOverTimeMeter::default();
        slow.on_row(5.0, row(1, 1_000), row(0, 0), None);
        let slow = slow.finish();
        assert_eq!((slow.interval_s, slow.media_bps, slow.target_bps), (5.0, vec![Some(1_600.0)], vec![None]));
    }
}
