//! How bursty a flow is: of the chunks of data that its source makes, and of the packets that leave.

use crate::histogram::Histogram;
use crate::results::{BurstWindow, Burstiness, ChunkSizes, Distribution};
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Lengths of the windows in which packets are counted: a queue at a router, a frame or two, the time over which rates are
/// compared. Own choice.
const WINDOWS: [TimeDelta; 3] = [TimeDelta::from_millis(10), TimeDelta::from_millis(100), TimeDelta::from_secs(1)];
/// Greatest time between two packets of a burst: 1,250 bytes at 10 Mbit/s. Own choice.
const BURST_GAP: TimeDelta = TimeDelta::from_millis(1);

/// Packets of one flow in windows of one length; sums are exact, so that the result does not depend on rounding.
#[derive(Debug, Default)]
struct Windows {
    /// Number of the current window after the flow's start, and what is in it.
    current: u64,
    packets: u64,
    bytes: u64,
    /// Of complete windows.
    sum: u64,
    squares: u128,
    all_bytes: u64,
    most_bytes: u64,
}

impl Windows {
    fn on_packet(&mut self, window: u64, bytes: u64) {
        if window > self.current {
            self.close();
            self.current = window;
        }
        self.packets += 1;
        self.bytes += bytes;
    }
    fn close(&mut self) {
        self.sum += self.packets;
        self.squares += u128::from(self.packets) * u128::from(self.packets);
        self.all_bytes += self.bytes;
        self.most_bytes = self.most_bytes.max(self.bytes);
        (self.packets, self.bytes) = (0, 0);
    }
    /// Over the `count` windows that the flow's time holds whole; a last one that is cut is left out.
    fn finish(mut self, length: TimeDelta, count: u64) -> Option<BurstWindow> {
        if self.current < count {
            self.close();
        }
        if count < 2 || self.sum == 0 {
            return None;
        }
        let (n, sum) = (count as f64, self.sum as f64);
        // The numerator is exact: squares are at most (2^64 - 1)^2, and counts of packets far below.
        let spread = (self.squares.saturating_mul(u128::from(count)))
            .saturating_sub(u128::from(self.sum) * u128::from(self.sum)) as f64;
        Some(BurstWindow {
            window_ms: length.as_millis_f64(),
            dispersion: spread / ((n - 1.0) * sum),
            peak_to_mean: (self.all_bytes > 0).then(|| self.most_bytes as f64 * n / self.all_bytes as f64)?,
        })
    }
}

/// Welford's mean and variance of the chunks' sizes.
#[derive(Debug, Default)]
struct Chunks {
    n: f64,
    mean: f64,
    m2: f64,
    most: u64,
}

/// Measures one flow in fixed memory.
#[derive(Debug, Default)]
pub(super) struct BurstMeter {
    windows: [Windows; WINDOWS.len()],
    last: Option<Timestamp>,
    /// Packets of the current burst.
    burst: u64,
    bursts: Histogram,
    chunks: Chunks,
}

impl BurstMeter {
    /// A packet of the flow, which began at `start`, has left.
    pub(super) fn on_sent(&mut self, start: Timestamp, now: Timestamp, size: DataSize) {
        let passed = now.saturating_since(start).as_nanos().unsigned_abs();
        for (windows, length) in self.windows.iter_mut().zip(WINDOWS) {
            windows.on_packet(passed / length.as_nanos().unsigned_abs(), size.as_bytes());
        }
        if self.last.is_some_and(|last| now.saturating_since(last) > BURST_GAP) {
            self.end_burst();
        }
        self.burst += 1;
        self.last = Some(now);
    }
    /// The source has made a chunk: what it makes at one time, mostly a frame.
    pub(super) fn on_chunk(&mut self, size: DataSize) {
        let (c, x) = (&mut self.chunks, size.as_bytes() as f64);
        c.n += 1.0;
        let d = x - c.mean;
        c.mean += d / c.n;
        c.m2 += d * (x - c.mean);
        c.most = c.most.max(size.as_bytes());
    }
    fn end_burst(&mut self) {
        if self.burst > 0 {
            self.bursts.record(core::mem::take(&mut self.burst));
        }
    }
    /// The metrics of a flow that was active for this long; `None` if it sent nothing.
    pub(super) fn finish(mut self, active: TimeDelta) -> Option<Burstiness> {
        self.end_burst();
        let burst_packets = Distribution::of(&self.bursts, 1.0)?;
        let whole = |length: TimeDelta| (active.as_nanos() / length.as_nanos()).max(0).unsigned_abs();
        let c = self.chunks;
        Some(Burstiness {
            windows: (self.windows.into_iter().zip(WINDOWS))
                .filter_map(|(w, length)| w.finish(length, whole(length)))
                .collect(),
            burst_packets,
            chunks: (c.n >= 2.0 && c.mean > 0.0).then(|| ChunkSizes {
                chunks: c.n as u64,
                mean_bytes: c.mean,
                variation: (c.m2 / (c.n - 1.0)).sqrt() / c.mean,
                peak_to_mean: c.most as f64 / c.mean,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_us(us: i64) -> Timestamp {
        Timestamp::from_micros(us)
    }
    fn measured(sent: impl IntoIterator<Item = (i64, u64)>, active: TimeDelta) -> Burstiness {
        let mut m = BurstMeter::default();
        sent.into_iter().for_each(|(us, bytes)| m.on_sent(at_us(0), at_us(us), DataSize::from_bytes(bytes)));
        m.finish(active).expect("packets were sent")
    }

    #[test]
    fn an_even_flow_has_no_dispersion() {
        // A packet each 2 ms for 4 s: 5, 50 and 500 in each window.
        let b = measured((0..2_000).map(|k| (2_000 * k, 1_000)), TimeDelta::from_secs(4));
        let windows: Vec<_> = b.windows.iter().map(|w| (w.window_ms, w.dispersion, w.peak_to_mean)).collect();
        assert_eq!(windows, [(10.0, 0.0, 1.0), (100.0, 0.0, 1.0), (1_000.0, 0.0, 1.0)]);
        assert_eq!((b.burst_packets.max, b.burst_packets.mean), (1.0, 1.0));
        assert_eq!(b.chunks, None);
    }

    #[test]
    fn a_flow_of_frames_is_bursty_below_a_frames_time_only() {
        // 8 packets at once each 40 ms for 4 s: of four windows of 10 ms one has them.
        let sent = (0..100).flat_map(|frame| (0..8).map(move |_| (40_000 * frame, 500)));
        let b = measured(sent, TimeDelta::from_secs(4));
        // n = 400, sum 800, squares 6,400: (400 6,400 - 800^2) / (399 800) = 6.015.
        assert!((b.windows[0].dispersion - 1_920_000.0 / 319_200.0).abs() < 1e-12, "{b:?}");
        assert_eq!(b.windows[0].peak_to_mean, 4.0);
        // Windows of 100 ms have 3 or 2 frames in turn: mean 20, 20 of 24 and 20 of 16.
        assert!((b.windows[1].dispersion - 16.0 * 40.0 / 39.0 / 20.0).abs() < 1e-12, "{b:?}");
        assert_eq!((b.windows[1].peak_to_mean, b.windows[2].dispersion), (1.2, 0.0));
        assert_eq!((b.burst_packets.min, b.burst_packets.max), (8.0, 8.0));
    }

    #[test]
    fn empty_windows_count_and_a_cut_one_does_not() {
        // 2 packets in the first of 100 windows of 10 ms, nothing afterwards: (100 4 - 4) / (99 2) = 2.
        let b = measured([(0, 100), (100, 100)], TimeDelta::from_secs(1));
        assert_eq!((b.windows[0].dispersion, b.windows[0].peak_to_mean), (2.0, 100.0));
        assert_eq!(b.windows.len(), 2, "there is only one window of a second");
        // In the second and a half that ends at 1,005 ms one window of 10 ms is cut.
        let b = measured([(0, 100), (1_004_000, 900)], TimeDelta::from_millis(1_005));
        assert_eq!(b.windows[0].peak_to_mean, 100.0);
    }

    #[test]
    fn chunks_have_their_variation() {
        let mut m = BurstMeter::default();
        for bytes in [1_000, 1_000, 1_000, 5_000] {
            m.on_chunk(DataSize::from_bytes(bytes));
        }
        m.on_sent(at_us(0), at_us(0), DataSize::from_bytes(100));
        let chunks = m.finish(TimeDelta::from_secs(1)).and_then(|b| b.chunks).expect("four chunks");
        assert_eq!((chunks.chunks, chunks.mean_bytes, chunks.peak_to_mean), (4, 2_000.0, 2.5));
        // Standard deviation of 1, 1, 1, 5: 2.
        assert!((chunks.variation - 1.0).abs() < 1e-12, "{chunks:?}");
        assert_eq!(BurstMeter::default().finish(TimeDelta::from_secs(1)), None);
    }
}
