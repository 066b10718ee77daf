//! A run over time in few numbers.

use crate::results::Course;

/// Rows at most: more than a day of seconds.
const ROWS: usize = 100_000;
/// Shortest row, in s.
const ROW_S: f64 = 1.0;

/// Sums rows of the recorder to rows of a second or more.
#[derive(Debug, Default)]
pub(super) struct CourseMeter {
    course: Course,
    rows: f64,
    media: Sum,
    tcp: Sum,
}

#[derive(Debug, Default)]
struct Sum {
    bytes: f64,
    rows: f64,
}

impl Sum {
    /// Adds bytes over so many flows; nothing where there are none.
    fn add(&mut self, (flows, bytes): (u64, u64)) {
        if flows > 0 {
            self.bytes += bytes as f64 / flows as f64;
            self.rows += 1.0;
        }
    }
    fn take(&mut self, row_s: f64) -> Option<f32> {
        let Self { bytes, rows } = std::mem::take(self);
        (rows > 0.0).then(|| (bytes * 8.0 / (rows * row_s)) as f32)
    }
}

impl CourseMeter {
    /// A row of the recorder has ended: flows of each kind, their goodput in bytes, and a target.
    pub(super) fn on_row(&mut self, row_s: f64, media: (u64, u64), tcp: (u64, u64), target_bps: Option<f64>) {
        self.rows += 1.0;
        self.media.add(media);
        self.tcp.add(tcp);
        // Rows may add up to a second a little short of it.
        if self.rows * row_s < ROW_S - row_s / 2.0 {
            return;
        }
        self.course.interval_s = self.rows * row_s;
        self.rows = 0.0;
        let (media, tcp) = (self.media.take(row_s), self.tcp.take(row_s));
        if self.course.media_bps.len() < ROWS {
            self.course.media_bps.push(media);
            self.course.tcp_bps.push(tcp);
            self.course.target_bps.push(target_bps.map(|t| t as f32));
        }
    }

    pub(super) fn finish(self) -> Course {
        self.course
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_to_seconds_and_say_where_nothing_was() {
        let mut m = CourseMeter::default();
        for i in 0..40 {
            // 1,000 bytes for each of two flows in rows of 100 ms; TCP is there in the second and third second alone, and for
            // half of the latter.
            let tcp = if (10..25).contains(&i) { (1, 500) } else { (0, 0) };
            m.on_row(0.1, (2, 2_000), tcp, Some(f64::from(i)));
        }
        let c = m.finish();
        assert!((c.interval_s - 1.0).abs() < 1e-9);
        assert_eq!(c.media_bps, [Some(80e3); 4]);
        assert_eq!(c.tcp_bps, [None, Some(40e3), Some(40e3), None]);
        assert_eq!(c.target_bps, [9.0, 19.0, 29.0, 39.0].map(Some));
        let mut slow = CourseMeter::default();
        slow.on_row(5.0, (1, 1_000), (0, 0), None);
        let slow = slow.finish();
        assert_eq!((slow.interval_s, slow.media_bps, slow.target_bps), (5.0, vec![Some(1_600.0)], vec![None]));
    }
}
