use crate::frame::Numbering;
use crate::{Frame, FrameKind, FrameSource, MediaError};
use std::sync::Arc;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// The smallest and the largest frame (RFC 8593, section 6.2.1, `fs_min` and `fs_max`).
const FRAME_RANGE: (f64, f64) = (10.0, 1e6);
/// Frames skipped when a trace restarts, so that its large first frame is not repeated (RFC 8593, section 6.2.1,
/// `SkipFrames`: 20).
const SKIP_FRAMES: usize = 20;

/// Frame sizes of one video, coded at several rates. Cheap to clone.
#[derive(Clone, PartialEq, Debug)]
pub struct FrameTraces(Arc<Table>);

#[derive(PartialEq, Debug)]
struct Table {
    rates: Vec<DataRate>,
    /// Row by row: the sizes of one frame at each rate.
    sizes: Vec<u32>,
}

impl FrameTraces {
    /// Two minutes of a real video chat, 1280x720 at 30 frames a second, at 0.2 to 1.75 Mbit/s (Firefox with OpenH264, from
    /// Cisco's syncodecs, Apache License 2.0).
    pub fn chat_720p() -> Self {
        Self::parse(include_str!("../data/chat_720p.txt"), "chat_720p.txt").expect("the bundled traces are sound")
    }

    /// Parses a table: the first line has the rates in bit/s, ascending; each further line the sizes of a frame in
    /// bytes at these rates. Columns are separated by spaces, tabs or commas; blank lines and those that begin with `#`
    /// are skipped. `file` names the text in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, MediaError> {
        let mut rates: Vec<DataRate> = Vec::new();
        let mut sizes = Vec::new();
        let lines = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim()));
        for (number, line) in lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#')) {
            let place = &format!("{file}:{number}");
            let cells = line.split(|c: char| c == ',' || c.is_whitespace()).filter(|c| !c.is_empty());
            if rates.is_empty() {
                for cell in cells {
                    let rate =
                        cell.parse().ok().map(DataRate::from_bps).filter(|r| Some(r) > rates.last() && r.as_bps() > 0);
                    let expected = "whole numbers of bits a second, rising: the rates of the columns";
                    rates.push(rate.ok_or_else(|| MediaError::new(place, "rate", cell, expected))?);
                }
                continue;
            }
            let before = sizes.len();
            for cell in cells {
                let expected = "a whole number of bytes";
                sizes.push(cell.parse().map_err(|_| MediaError::new(place, "frame size", cell, expected))?);
            }
            if sizes.len() - before != rates.len() {
                let expected = format!("{}, one for each rate in the first line", rates.len());
                return Err(MediaError::new(place, "number of columns", sizes.len() - before, expected));
            }
        }
        let frames = sizes.len().checked_div(rates.len()).unwrap_or(0);
        if frames <= SKIP_FRAMES {
            let expected = format!("a line of rates and more than {SKIP_FRAMES} frames");
            return Err(MediaError::new(file, "number of frames", frames, expected));
        }
        Ok(Self(Arc::new(Table { rates, sizes })))
    }

    /// The rates, ascending.
    pub fn rates(&self) -> &[DataRate] {
        &self.0.rates
    }
    /// Number of frames at each rate.
    pub fn frames(&self) -> usize {
        self.0.sizes.len() / self.0.rates.len()
    }

    /// The size of a frame at a rate: linear interpolation between recorded rates, and proportional to the nearest
    /// outside their range (RFC 8593, section 6.2.1, cases a to c).
    pub fn size_at(&self, frame: usize, rate: DataRate) -> DataSize {
        let (rates, n) = (&self.0.rates, self.0.rates.len());
        let row = &self.0.sizes[frame * n..(frame + 1) * n];
        let (r, last) = (rate.as_bps_f64(), n - 1);
        let size = match rates.partition_point(|&k| k <= rate) {
            0 => f64::from(row[0]) * r / rates[0].as_bps_f64(),
            above if above == n => f64::from(row[last]) * r / rates[last].as_bps_f64(),
            above => {
                let (low, high) = (rates[above - 1].as_bps_f64(), rates[above].as_bps_f64());
                let distance = (r - low) / (high - low);
                f64::from(row[above]) * distance + f64::from(row[above - 1]) * (1.0 - distance)
            }
        };
        DataSize::from_bytes((size.clamp(FRAME_RANGE.0, FRAME_RANGE.1) + 0.5) as u64)
    }
}

/// A model of a live encoder by recorded traces: the trace-driven model of RFC 8593, section 6.
///
/// A new target applies from the next frame. A key frame request restarts the traces, whose first frame is one
/// (section 6.2.2).
#[derive(Clone, Debug)]
pub struct TraceSource {
    traces: FrameTraces,
    interval: TimeDelta,
    numbering: Numbering,
    rate: DataRate,
    due: Timestamp,
    frame: usize,
}

impl TraceSource {
    /// A source at this frame interval (at least 1 ms) whose first frame is due at `start`, once it has a target.
    pub fn new(traces: FrameTraces, interval: TimeDelta, start: Timestamp) -> Self {
        let interval = interval.max(TimeDelta::from_millis(1));
        Self { traces, interval, numbering: Numbering::default(), rate: DataRate::ZERO, due: start, frame: 0 }
    }
}

impl TraceSource {
    /// Sets the frame interval (at least 1 ms) from the next frame on.
    pub fn set_interval(&mut self, interval: TimeDelta) {
        self.interval = interval.max(TimeDelta::from_millis(1));
    }
}

impl FrameSource for TraceSource {
    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        if self.rate == DataRate::ZERO {
            self.due = self.due.max(now);
        }
        self.rate = rate;
    }

    /// `None` while the target is zero: a rate of zero pauses the source.
    fn next_frame_at(&self) -> Option<Timestamp> {
        (self.rate > DataRate::ZERO).then_some(self.due)
    }

    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let at = self.next_frame_at().filter(|&at| at <= now)?;
        // A source not polled for long continues from now.
        let at = if now - at > TimeDelta::from_secs(1) { now } else { at };
        let kind = if self.frame == 0 { FrameKind::Key } else { FrameKind::Delta };
        let size = self.traces.size_at(self.frame, self.rate);
        self.frame += 1;
        if self.frame == self.traces.frames() {
            self.frame = SKIP_FRAMES;
        }
        self.due = at + self.interval;
        Some(self.numbering.frame(at, size, kind))
    }

    fn request_key_frame(&mut self, _: Timestamp) {
        self.frame = 0;
    }

    fn generated_rate(&self) -> DataRate {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const T0: TimeDelta = TimeDelta::from_nanos(33_333_333);

    fn kbps(n: u64) -> DataRate {
        DataRate::from_kbps(n)
    }
    /// 100 and 200 kbit/s; frame n has 100 + n and 300 + n bytes.
    fn ramp(frames: usize) -> FrameTraces {
        let rows: String = (0..frames).map(|n| format!("{} {}\n", 100 + n, 300 + n)).collect();
        FrameTraces::parse(&format!("100000,200000\n{rows}"), "ramp").expect("sound")
    }

    #[test]
    fn sizes_are_interpolated_and_scaled() {
        let t = ramp(30);
        let size = |k| t.size_at(10, kbps(k)).as_bytes();
        // Rows 110 and 310: at, between, below and above the recorded rates.
        assert_eq!([100, 150, 175, 200, 50, 400, 1].map(size), [110, 210, 260, 310, 55, 620, 10]);
        assert_eq!(t.size_at(10, kbps(10_000_000)).as_bytes(), 1_000_000);
    }

    #[test]
    fn a_trace_starts_over_behind_its_first_frames() {
        let mut s = TraceSource::new(ramp(25), T0, Timestamp::ZERO);
        assert_eq!(s.next_frame_at(), None);
        s.on_target(kbps(100), Timestamp::ZERO);
        let mut next = || s.poll_frame(s.next_frame_at().expect("running")).map(|f| (f.size.as_bytes(), f.kind));
        let sizes: Vec<_> = (0..35).map(|_| next().expect("due")).collect();
        let expected = (0..25).chain((20..25).cycle()).map(|n| 100 + n);
        assert!(sizes.iter().map(|s| s.0).eq(expected.take(35)));
        assert!(sizes.iter().enumerate().all(|(i, s)| (s.1 == FrameKind::Key) == (i == 0)));
        s.request_key_frame(Timestamp::ZERO);
        assert_eq!(s.poll_frame(s.due).map(|f| (f.size.as_bytes(), f.kind)), Some((100, FrameKind::Key)));
    }

    #[test]
    fn the_bundled_chat_gives_the_rate_it_is_asked_for() {
        let traces = FrameTraces::chat_720p();
        assert_eq!((traces.rates().len(), traces.frames()), (4, 3_600));
        for target in [100, 201, 400, 900, 1_500, 3_000] {
            let mut s = TraceSource::new(traces.clone(), T0, Timestamp::ZERO);
            s.on_target(kbps(target), Timestamp::ZERO);
            let frames: Vec<_> = (0..3_600).filter_map(|_| s.poll_frame(s.due)).collect();
            let sizes: Vec<_> = frames.iter().map(|f| f.size.as_bytes() as f64).collect();
            let mean = sizes.iter().sum::<f64>() / 3_600.0;
            let rate = mean * 8.0 * 30.0;
            assert!((rate / (target as f64 * 1e3) - 1.0).abs() < 0.02, "{rate} at {target}");
            let spread = (sizes.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / 3_600.0).sqrt() / mean;
            assert!((0.1..0.35).contains(&spread), "{spread} at {target}");
            assert!(sizes[0] > 2.0 * mean, "the first frame is a key frame");
        }
    }

    #[test]
    fn errors_name_file_line_and_way_out() {
        let err = |t: &str| FrameTraces::parse(t, "a.txt").expect_err("unsound").to_string();
        assert!(err("1000 500\n").starts_with("a.txt:1: rate is 500: expected whole numbers of bits a second, rising"));
        assert!(err("1000\n\n5\nx\n").starts_with("a.txt:4: frame size is x: expected a whole number of bytes"));
        assert!(err("1000 2000\n5\n").starts_with("a.txt:2: number of columns is 1: expected 2"));
        assert!(
            err("1000\n5\n").starts_with("a.txt: number of frames is 1: expected a line of rates and more than 20")
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9a-z,#\\-\t\n ]{0,200}") {
            let _ = FrameTraces::parse(&text, "x");
        }
    }
}
