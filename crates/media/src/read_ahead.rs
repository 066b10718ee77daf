//! Stored content: a source that can be read before its time.

use crate::forwarded::forwarded;
use crate::{Frame, FrameSource, Source};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Lead below which the content is made at the target's rate instead of the stream's (guess: half a second, so that the
/// smaller frames are there when the lead ends).
const SPENT: TimeDelta = TimeDelta::from_millis(500);

/// Content that is stored, as a streaming server has it. Its frames have one quality, that of the stream's rate, and leave as
/// fast as the target allows: before their time if it is above the stream's rate, until the lead is at its bound. At a lower target
/// frames leave more slowly and use up the lead; without lead they are made at the target's rate, as from a live source. At the stream's
/// rate the lead stays as it is.
///
/// [`Frame::captured`] is the time at which the content is due, and so may be later than when it is sent.
#[derive(Debug)]
pub struct ReadAhead {
    source: Source,
    stream: DataRate,
    most: TimeDelta,
    /// When the last of the content is due.
    end: Timestamp,
    target: DataRate,
    /// The rate that the source has.
    made_at: Option<DataRate>,
    /// Since when the target holds, and the lead then.
    since: Timestamp,
    lead: TimeDelta,
}

impl ReadAhead {
    /// Reads a source of this rate at most `most` ahead.
    pub fn new(source: Source, stream: DataRate, most: TimeDelta) -> Self {
        let (since, lead) = (Timestamp::ZERO, TimeDelta::ZERO);
        Self { source, stream, most, end: Timestamp::MAX, target: stream, made_at: None, since, lead }
    }

    /// The same with content that is due until `end` at the latest.
    #[must_use]
    pub fn until(self, end: Timestamp) -> Self {
        Self { end, ..self }
    }

    /// When the next of the content is due.
    fn due(&self) -> Option<Timestamp> {
        self.source.next_frame_at().filter(|due| *due <= self.end)
    }

    /// Seconds of content that leave in a second.
    fn speed(&self) -> f64 {
        self.target.as_bps_f64() / self.stream.as_bps_f64().max(1.0)
    }

    fn lead_at(&self, now: Timestamp) -> TimeDelta {
        let gained = (self.speed() - 1.0) * now.saturating_since(self.since).as_secs_f64();
        (self.lead + TimeDelta::from_secs_f64(gained)).clamp(TimeDelta::ZERO, self.most)
    }

    /// When the frame leaves whose content is due at `due`.
    fn leaves_at(&self, due: Timestamp) -> Timestamp {
        let left = (due - self.since - self.lead).max(TimeDelta::ZERO);
        let speed = self.speed();
        let free = if speed > 0.0 { self.since + TimeDelta::from_secs_f64(left.as_secs_f64() / speed) } else { due };
        free.max(due - self.most).min(due)
    }

    /// The rate at which content is made with this lead.
    fn rate(&self, lead: TimeDelta) -> DataRate {
        if lead > SPENT { self.stream } else { self.stream.min(self.target) }
    }

    fn make_at(&mut self, rate: DataRate, now: Timestamp) {
        if self.made_at.replace(rate) != Some(rate) {
            self.source.on_target(rate, now);
        }
    }
}

impl FrameSource for ReadAhead {
    forwarded!(source);

    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        (self.lead, self.since) = (self.lead_at(now), now);
        self.target = rate;
        self.make_at(self.rate(self.lead), now + self.lead);
    }
    fn next_frame_at(&self) -> Option<Timestamp> {
        self.due().map(|due| self.leaves_at(due))
    }
    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let due = self.due()?;
        if self.leaves_at(due) > now {
            return None;
        }
        // The source's clock is that of the content.
        let content = due.max(now);
        self.make_at(self.rate(due.saturating_since(now)), content);
        self.source.poll_frame(content)
    }
    fn generated_rate(&self) -> DataRate {
        self.target.min(self.source.generated_rate())
    }
}

impl From<ReadAhead> for Source {
    fn from(source: ReadAhead) -> Self {
        Self::Custom(Box::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PerfectCodec;

    const KBPS: fn(u64) -> DataRate = DataRate::from_kbps;

    /// Frames and bytes of each second, and the lead at its end in ms, with the target of each second.
    fn run(targets: &[u64]) -> Vec<(u64, u64, i64)> {
        let source = PerfectCodec::frames(TimeDelta::from_millis(40), Timestamp::ZERO).into();
        let mut s = ReadAhead::new(source, KBPS(1_000), TimeDelta::from_secs(4));
        let mut seconds = Vec::new();
        for (second, target) in targets.iter().enumerate() {
            let (begin, end) = (Timestamp::from_secs(second as i64), Timestamp::from_secs(second as i64 + 1));
            s.on_target(KBPS(*target), begin);
            let (mut frames, mut bytes, mut lead) = (0, 0, TimeDelta::ZERO);
            while let Some(at) = s.next_frame_at().map(|at| at.max(begin)).filter(|at| *at < end) {
                let frame = s.poll_frame(at).expect("due");
                frames += 1;
                bytes += frame.size.as_bytes();
                lead = frame.captured - at;
                assert!(lead >= TimeDelta::ZERO && lead <= TimeDelta::from_secs(4));
            }
            seconds.push((frames, bytes, lead.as_millis()));
        }
        seconds
    }

    #[test]
    fn content_ends() {
        let source = PerfectCodec::frames(TimeDelta::from_millis(40), Timestamp::ZERO).into();
        let mut s = ReadAhead::new(source, KBPS(1_000), TimeDelta::from_secs(4)).until(Timestamp::from_secs(1));
        s.on_target(KBPS(2_000), Timestamp::ZERO);
        let mut last = None;
        while let Some(frame) = s.next_frame_at().and_then(|at| s.poll_frame(at)) {
            last = Some(frame.captured);
        }
        assert_eq!((last, s.next_frame_at()), (Some(Timestamp::from_secs(1)), None));
        assert_eq!(s.poll_frame(Timestamp::from_secs(9)), None);
    }

    #[test]
    fn a_live_stream_at_its_rate() {
        assert!(run(&[1_000; 5]).iter().all(|s| *s == (25, 125_000, 0)));
    }

    #[test]
    fn a_higher_target_reads_ahead_up_to_the_bound_and_a_lower_one_uses_it_up() {
        let s = run(&[3_000, 3_000, 3_000, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500]);
        // Three times the rate: two seconds of lead in one, four at most.
        assert!((70..=75).contains(&s[0].0) && (1_850..=2_000).contains(&s[0].2), "{s:?}");
        assert_eq!((s[2].0, s[2].2), (25, 4_000), "{s:?}");
        // Half the rate: half the frames, of the same size, and half a second of lead less in each second.
        assert!(s[4].0.abs_diff(12) <= 1 && s[4].1 == s[4].0 * 5_000, "{s:?}");
        assert!((3_000 - s[4].2).abs() <= 60, "{s:?}");
        // Without lead all frames, of half the size.
        assert_eq!((s[12].0, s[12].1), (25, 62_500), "{s:?}");
    }
}
