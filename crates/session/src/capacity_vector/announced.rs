//! The vector of a path that an end announces, and when.

use weir_cc::cue::ForecastSegment;
use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtcp::{CapacityEntry, CapacityVector, ShortRate, Tenths};

/// Least spacing of vectors, and spacing of the first repetition; RTCP may be lost.
const SPACING: TimeDelta = TimeDelta::from_secs(1);
/// Most spacing of repetitions, to which it doubles.
const MOST_SPACING: TimeDelta = TimeDelta::from_secs(8);
/// A datagram with more bytes than this carries no vector beside its reports.
const MOST_DATAGRAM: usize = 1_200;

/// The last vector that the application has given.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    serial: u16,
    made: Timestamp,
    validity: Tenths,
    entries: Vec<CapacityEntry>,
    /// When it may be sent for the first time, or again; `None` without one.
    next: Option<Timestamp>,
    spacing: TimeDelta,
    sent: Option<Timestamp>,
}

impl Announced {
    /// Replaces the vector.
    pub(crate) fn set(&mut self, segments: &[ForecastSegment], valid_for: TimeDelta, now: Timestamp) {
        self.serial = self.serial.wrapping_add(1);
        self.made = now;
        // One unit at least: a vector that is never valid says nothing.
        self.validity = Tenths::new(valid_for).max(Tenths::from_units(1));
        fill(&mut self.entries, segments);
        self.spacing = SPACING;
        self.next = Some(self.sent.map_or(now, |at| now.max(at + SPACING)));
    }

    /// Its path is gone: nothing of it is sent any more. The serial number goes on, should the path's number be used again.
    pub(crate) fn forget(&mut self) {
        self.next = None;
    }

    /// Whether it has to be sent, for the first time or again.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.next.is_some_and(|at| at <= now)
    }

    /// Appends the vector to a datagram if it is due, holds still and has room there; returns whether it does so.
    pub(crate) fn write(&mut self, ssrcs: (u32, u32), now: Timestamp, out: &mut Vec<u8>) -> bool {
        if !self.is_due(now) {
            return false;
        }
        let (sender_ssrc, media_ssrc) = ssrcs;
        let age = Tenths::new(now.saturating_since(self.made));
        if age >= self.validity {
            self.next = None;
            return false;
        }
        let vector = CapacityVector {
            sender_ssrc,
            media_ssrc,
            serial: self.serial,
            validity: self.validity,
            age,
            entries: (&self.entries).into(),
        };
        let begin = out.len();
        vector.write_into(out);
        if begin > 0 && out.len() > MOST_DATAGRAM {
            out.truncate(begin);
            return false;
        }
        self.sent = Some(now);
        self.next = Some(now + self.spacing);
        self.spacing = (self.spacing * 2).min(MOST_SPACING);
        true
    }
}

/// The stretches of a forecast as entries: in order and without gaps, equal neighbours joined. What is beyond the most
/// entries is left out.
fn fill(entries: &mut Vec<CapacityEntry>, segments: &[ForecastSegment]) {
    entries.clear();
    let mut end = 0;
    for s in segments {
        let (from, to) = (Tenths::new(s.from).units().max(end), Tenths::new(s.to).units());
        if to <= from {
            continue;
        }
        let gap = from == end || add(entries, from - end, CapacityEntry::default());
        if !gap || !add(entries, to - from, entry(s)) {
            break;
        }
        end = to;
    }
    // Time of which nothing is known needs no entry at the end.
    if entries.last().is_some_and(|e| e.confidence == 0) {
        entries.pop();
    }
}

/// Adds a stretch of so many units, or lengthens the one before; returns whether there was room.
fn add(entries: &mut Vec<CapacityEntry>, units: u16, entry: CapacityEntry) -> bool {
    if let Some(last) = entries.last_mut()
        && *last == (CapacityEntry { duration: last.duration, ..entry })
    {
        last.duration = Tenths::from_units(last.duration.units() + units);
        return true;
    }
    if entries.len() == CapacityVector::MAX_ENTRIES {
        return false;
    }
    entries.push(CapacityEntry { duration: Tenths::from_units(units), ..entry });
    true
}

/// A stretch without its duration.
fn entry(s: &ForecastSegment) -> CapacityEntry {
    // The conversion saturates, and takes NaN for 0.
    let confidence = (s.confidence * 255.0 + 0.5) as u8;
    if confidence == 0 {
        return CapacityEntry::default();
    }
    let rate = |rate: weir_units::DataRate| ShortRate::new(rate.min(CapacityVector::MAX_RATE));
    let (low, median) = (rate(s.low.min(s.median)), rate(s.median));
    CapacityEntry { duration: Tenths::default(), confidence, low, median }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::DataRate;

    fn segment(from: f64, to: f64, kbps: u64, confidence: f64) -> ForecastSegment {
        let (from, to) = (TimeDelta::from_secs_f64(from), TimeDelta::from_secs_f64(to));
        let median = DataRate::from_kbps(kbps);
        ForecastSegment { from, to, low: median, median, confidence }
    }
    fn filled(segments: &[ForecastSegment]) -> Vec<(u16, u8, u64)> {
        let mut entries = Vec::new();
        fill(&mut entries, segments);
        entries.iter().map(|e| (e.duration.units(), e.confidence, e.median.rate().as_bps() / 1_000)).collect()
    }

    #[test]
    fn entries_follow_each_other_without_gaps() {
        let segments = [
            segment(-5.0, 2.0, 1_024, 1.0),
            segment(2.0, 4.04, 1_024, 1.0),
            segment(4.04, 4.04, 9, 1.0),
            segment(6.0, 7.0, 64, 0.5),
            segment(6.5, 8.0, 128, 1.0),
            segment(8.0, 9.0, 128, 0.0),
        ];
        assert_eq!(filled(&segments), [(40, 255, 1_024), (20, 0, 0), (10, 128, 64), (10, 255, 128)]);
        let odd = [segment(0.0, 1.0, 7, f64::NAN), segment(1.0, 2.0, 8, f64::INFINITY)];
        assert_eq!(filled(&odd), [(10, 0, 0), (10, 255, 8)]);
    }

    #[test]
    fn what_is_too_long_is_cut() {
        let many: Vec<_> =
            (0..1_000).map(|n| segment(f64::from(n), f64::from(n + 1), 64 + n as u64 % 2, 1.0)).collect();
        assert_eq!(filled(&many).len(), CapacityVector::MAX_ENTRIES);
        let gaps: Vec<_> = (0..1_000).map(|n| segment(f64::from(2 * n + 1), f64::from(2 * n + 2), 64, 1.0)).collect();
        assert!((63..=64).contains(&filled(&gaps).len()));
        assert_eq!(filled(&[segment(0.0, 1e6, 64, 1.0), segment(1e6, 2e6, 65, 1.0)]), [(65_535, 255, 64)]);
    }

    #[test]
    fn it_is_repeated_ever_less_often_until_it_is_old() {
        let mut a = Announced::default();
        let mut sent = Vec::new();
        a.set(&[segment(0.0, 60.0, 64, 1.0)], TimeDelta::from_secs(30), Timestamp::ZERO);
        for tenths in 0..600 {
            let (now, mut out) = (Timestamp::from_millis(tenths * 100), Vec::new());
            if a.write((1, 2), now, &mut out) {
                sent.push(tenths / 10);
                assert_eq!(out.len(), 32);
            }
        }
        assert_eq!(sent, [0, 1, 3, 7, 15, 23]);
        // The next one waits for a second after the last.
        let now = Timestamp::from_millis(23_500);
        let mut a = Announced { sent: Some(Timestamp::from_secs(23)), ..Announced::default() };
        a.set(&[], TimeDelta::from_secs(30), now);
        assert!(!a.is_due(now) && a.is_due(Timestamp::from_secs(24)));
    }

    #[test]
    fn a_long_datagram_carries_none() {
        let mut a = Announced::default();
        let many: Vec<_> = (0..64).map(|n| segment(f64::from(n), f64::from(n + 1), 64 + n as u64, 1.0)).collect();
        a.set(&many, TimeDelta::from_secs(64), Timestamp::ZERO);
        for (beside, expected) in [(700, 700), (600, 1_136)] {
            let mut out = vec![0; beside];
            assert_eq!(a.write((1, 2), Timestamp::ZERO, &mut out), expected > beside);
            assert_eq!(out.len(), expected);
        }
    }
}
