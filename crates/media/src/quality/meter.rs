//! The quality of a call: shown pictures compared with captured ones, aligned by RTP timestamps.

use super::{Comparer, Comparison, Distribution, Measures, PlaneErrors};
use crate::{Decoded, Picture, RTP_CLOCK_HZ};
use core::fmt;
use std::collections::VecDeque;
use weir_units::TimeDelta;

/// Number of intervals between shown pictures from which freezes are detected.
const RECENT: usize = 30;

/// Configuration of a [`QualityMeter`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeterConfig {
    /// Metrics in addition to PSNR.
    pub measures: Measures,
    /// Most references awaiting their outcome, at least 1; beyond that the oldest counts as missing. It should cover
    /// the longest time from capture to display: 90 are 3 s at 30 a second.
    pub pending: usize,
    /// Most scores waiting for [`QualityMeter::poll_score`]; beyond that the oldest are dropped.
    pub scores: usize,
}

impl Default for MeterConfig {
    fn default() -> Self {
        Self { measures: Measures::ALL, pending: 90, scores: 0 }
    }
}

/// Outcome of a reference.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// It was shown as decoded.
    Shown,
    /// Shown with parts concealed by the decoder.
    Concealed,
    /// Received but not decodable: the previous picture stayed.
    Undecodable,
    /// Not shown: the previous picture stayed.
    Missing,
}

/// The score of one reference picture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FrameScore {
    /// Number of the reference from 0.
    pub number: u64,
    /// The reference's RTP timestamp.
    pub rtp_timestamp: u32,
    /// Its outcome.
    pub outcome: Outcome,
    /// Comparison with the picture on the screen at its time; `None` if there was none yet, or one of another size.
    pub comparison: Option<Comparison>,
}

/// Counts and distributions over all pictures scored so far. Pictures that stayed in place of a missing one count like
/// others.
#[derive(Clone, PartialEq, Debug)]
pub struct QualityReport {
    /// References with a known outcome: the sum of the four kinds of [`Outcome`].
    pub references: u64,
    /// Shown as decoded.
    pub shown: u64,
    /// Shown with concealed parts.
    pub concealed: u64,
    /// Received but not decodable.
    pub undecodable: u64,
    /// Not shown for other reasons: lost, late, dropped by the encoder.
    pub missing: u64,
    /// Of these, before the first picture was shown, without a score.
    pub before_first: u64,
    /// Not scored because a picture of another size was shown.
    pub other_size: u64,
    /// Reported as received after their outcome was settled.
    pub late: u64,
    /// Reported as received with a timestamp that matches no pending reference.
    pub unknown: u64,
    /// Reordered or duplicate references, which are ignored.
    pub disordered: u64,
    /// Freezes as in W3C's webrtc-stats: the time from one shown picture to the next exceeds both three times the mean
    /// of the last 30 such times, and that mean plus 150 ms. Times are capture times. Until the first picture is shown, the call is
    /// frozen from its first captured one on.
    pub freezes: u64,
    /// Their total time (totalFreezesDuration).
    pub freeze_time: TimeDelta,
    /// The longest of them.
    pub longest_freeze: TimeDelta,
    /// Squared errors of all pictures: their PSNR follows from the mean squared error.
    pub errors: PlaneErrors,
    /// PSNR of luma, in dB; equal pictures have [`PSNR_CAP`](super::PSNR_CAP).
    pub psnr_y: Distribution,
    /// PSNR of all samples, in dB.
    pub psnr_average: Distribution,
    /// (6 Y + U + V) / 8, in dB.
    pub psnr_weighted: Distribution,
    /// SSIM over 8 x 8 windows side by side.
    pub ssim_tiled: Distribution,
    /// SSIM over Gaussian windows.
    pub ssim_gaussian: Distribution,
}

impl Default for QualityReport {
    fn default() -> Self {
        let (psnr, ssim) = (Distribution::of_decibels(), Distribution::of_similarity());
        Self {
            references: 0,
            shown: 0,
            concealed: 0,
            undecodable: 0,
            missing: 0,
            before_first: 0,
            other_size: 0,
            late: 0,
            unknown: 0,
            disordered: 0,
            freezes: 0,
            freeze_time: TimeDelta::ZERO,
            longest_freeze: TimeDelta::ZERO,
            errors: PlaneErrors::default(),
            psnr_y: psnr.clone(),
            psnr_average: psnr.clone(),
            psnr_weighted: psnr,
            ssim_tiled: ssim.clone(),
            ssim_gaussian: ssim,
        }
    }
}

impl QualityReport {
    /// References for which the previous picture stayed.
    pub const fn frozen(&self) -> u64 {
        self.undecodable + self.missing
    }

    fn add(&mut self, c: &Comparison) {
        let psnr = c.errors.psnr();
        self.errors.add(&c.errors);
        self.psnr_y.add(psnr.y);
        self.psnr_average.add(psnr.average);
        self.psnr_weighted.add(psnr.weighted);
        if let Some(s) = c.ssim {
            self.ssim_tiled.add(s.tiled);
        }
        if let Some(s) = c.gaussian {
            self.ssim_gaussian.add(s);
        }
    }
}

/// Receives each reference and the picture on the screen at its time, in order: those that the meter compares.
pub type PairTap = Box<dyn FnMut(&Picture, &Picture) + Send>;

/// One that prints as nothing.
#[derive(Default)]
struct Tap(Option<PairTap>);

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Tap" } else { "None" })
    }
}

/// A reference awaiting its outcome.
#[derive(Clone, Debug)]
struct Pending {
    number: u64,
    /// Ticks since the first reference.
    ticks: i64,
    rtp_timestamp: u32,
    picture: Picture,
}

/// Times between shown pictures, in ticks.
#[derive(Clone, Debug, Default)]
struct Freezes {
    intervals: VecDeque<i64>,
    sum: i64,
    shown: Option<i64>,
}

impl Freezes {
    /// The time since the last shown picture if that is a freeze; `reference` is the time between references.
    fn freeze(&self, until: i64, reference: i64) -> Option<TimeDelta> {
        // The first reference is at zero.
        let gap = until - self.shown.unwrap_or(0);
        let n = self.intervals.len() as i64;
        let mean = if n == 0 { reference } else { self.sum / n };
        let limit = (3 * mean).max(mean + i64::from(RTP_CLOCK_HZ) * 150 / 1_000);
        (gap > limit).then(|| TimeDelta::from_nanos(gap.saturating_mul(1_000_000_000) / i64::from(RTP_CLOCK_HZ)))
    }

    fn shown(&mut self, at: i64) {
        if let Some(before) = self.shown.replace(at) {
            self.intervals.push_back(at - before);
            self.sum += at - before;
            if self.intervals.len() > RECENT {
                self.sum -= self.intervals.pop_front().unwrap_or(0);
            }
        }
    }
}

/// Scores a call.
///
/// Pass every captured picture in order, and every received one in display order. A reference is settled when it or a
/// later one is reported as received, when too many are pending, or at the end.
#[derive(Debug)]
pub struct QualityMeter {
    config: MeterConfig,
    comparer: Comparer,
    pending: VecDeque<Pending>,
    /// Pictures for reuse.
    spare: Vec<Picture>,
    /// The picture on the screen.
    screen: Option<Picture>,
    /// Number, ticks and RTP timestamp of the newest reference.
    newest: Option<(u64, i64, u32)>,
    /// Ticks between the two newest references.
    interval: i64,
    freezes: Freezes,
    finished: bool,
    scores: VecDeque<FrameScore>,
    report: QualityReport,
    tap: Tap,
}

impl QualityMeter {
    /// Before the first picture.
    pub fn new(config: MeterConfig) -> Self {
        let config = MeterConfig { pending: config.pending.max(1), ..config };
        Self {
            config,
            comparer: Comparer::new(config.measures),
            pending: VecDeque::new(),
            spare: Vec::new(),
            screen: None,
            newest: None,
            interval: 0,
            freezes: Freezes::default(),
            finished: false,
            scores: VecDeque::new(),
            report: QualityReport::default(),
            tap: Tap::default(),
        }
    }

    /// Passes compared pictures on, for measures of other libraries.
    pub fn set_tap(&mut self, tap: PairTap) {
        self.tap = Tap(Some(tap));
    }

    /// A picture was captured. Timestamps increase, and wrap as in RTP.
    pub fn on_reference(&mut self, rtp_timestamp: u32, picture: &Picture) {
        let (number, ticks) = match self.newest {
            None => (0, 0),
            Some((number, ticks, last)) => {
                let step = rtp_timestamp.wrapping_sub(last) as i32;
                if step <= 0 {
                    self.report.disordered += 1;
                    return;
                }
                self.interval = i64::from(step);
                (number + 1, ticks + i64::from(step))
            }
        };
        self.newest = Some((number, ticks, rtp_timestamp));
        if self.pending.len() >= self.config.pending {
            self.decide(None);
        }
        let mut copy = self.spare.pop();
        match &mut copy {
            Some(old) if (old.width(), old.height()) == (picture.width(), picture.height()) => {
                old.as_i420_mut().copy_from_slice(picture.as_i420());
            }
            other => *other = Some(picture.clone()),
        }
        let picture = copy.unwrap_or_else(|| picture.clone());
        self.pending.push_back(Pending { number, ticks, rtp_timestamp, picture });
    }

    /// The decoder's result for the frame with this timestamp; `picture` if there is output. Frames without any data
    /// are not reported.
    pub fn on_received(&mut self, rtp_timestamp: u32, decoded: Decoded, picture: &Picture) {
        let Some((_, newest, last)) = self.newest else {
            self.report.unknown += 1;
            return;
        };
        let ticks = newest + i64::from(rtp_timestamp.wrapping_sub(last) as i32);
        let Ok(place) = self.pending.binary_search_by_key(&ticks, |p| p.ticks) else {
            let oldest = self.pending.front().map_or(newest + 1, |p| p.ticks);
            *(if ticks < oldest { &mut self.report.late } else { &mut self.report.unknown }) += 1;
            return;
        };
        for _ in 0..place {
            self.decide(None);
        }
        self.decide(Some((decoded, picture)));
    }

    /// The call has ended: pending references are missing.
    pub fn finish(&mut self) {
        while !self.pending.is_empty() {
            self.decide(None);
        }
        if let Some((_, newest, _)) = self.newest.filter(|_| !self.finished) {
            self.freeze_until(newest);
        }
        self.finished = true;
    }

    /// Settles the oldest reference.
    fn decide(&mut self, received: Option<(Decoded, &Picture)>) {
        let Some(Pending { number, ticks, rtp_timestamp, picture: reference }) = self.pending.pop_front() else {
            return;
        };
        let outcome = match received {
            None => Outcome::Missing,
            Some((Decoded::Nothing, _)) => Outcome::Undecodable,
            Some((Decoded::Intact, _)) => Outcome::Shown,
            Some((Decoded::Concealed, _)) => Outcome::Concealed,
        };
        let r = &mut self.report;
        r.references += 1;
        *(match outcome {
            Outcome::Shown => &mut r.shown,
            Outcome::Concealed => &mut r.concealed,
            Outcome::Undecodable => &mut r.undecodable,
            Outcome::Missing => &mut r.missing,
        }) += 1;
        if let Some((Decoded::Intact | Decoded::Concealed, picture)) = received {
            self.freeze_until(ticks);
            self.freezes.shown(ticks);
            match &mut self.screen {
                Some(screen) => screen.clone_from(picture),
                none => *none = Some(picture.clone()),
            }
        }
        let comparison = match &self.screen {
            None => {
                self.report.before_first += 1;
                None
            }
            Some(screen) => {
                let comparison = self.comparer.compare(&reference, screen).ok();
                match (&comparison, &mut self.tap.0) {
                    (None, _) => self.report.other_size += 1,
                    (Some(c), tap) => {
                        self.report.add(c);
                        if let Some(tap) = tap {
                            tap(&reference, screen);
                        }
                    }
                }
                comparison
            }
        };
        self.spare.push(reference);
        if self.config.scores > 0 {
            if self.scores.len() >= self.config.scores {
                self.scores.pop_front();
            }
            self.scores.push_back(FrameScore { number, rtp_timestamp, outcome, comparison });
        }
    }

    fn freeze_until(&mut self, ticks: i64) {
        if let Some(time) = self.freezes.freeze(ticks, self.interval) {
            let r = &mut self.report;
            r.freezes += 1;
            r.freeze_time += time;
            r.longest_freeze = r.longest_freeze.max(time);
        }
    }

    /// The next score by number, if the configuration keeps them.
    pub fn poll_score(&mut self) -> Option<FrameScore> {
        self.scores.pop_front()
    }

    /// The results so far.
    pub fn report(&self) -> &QualityReport {
        &self.report
    }
}

#[cfg(test)]
mod tests;
