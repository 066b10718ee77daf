//! Key frames of an outgoing stream, and the identification of its pictures.
//!
//! A key frame costs as much as many other frames, and where it does not get through, another request follows: on a slow link they
//! could take all of its rate and be late all the same. They are therefore spaced by their cost ([`Budget`]) and limited in size
//! ([`largest`]).

use crate::picture::{FirId, PictureCounters, PictureFeedback, Pictures};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Share of the rate that key frames at the other end's request may take, and the time over which they may take it at once. Chosen
/// here: a second's bits in ten seconds.
const SHARE: f64 = 0.1;
const PERIOD: TimeDelta = TimeDelta::from_secs(10);
/// Time after the last key frame from which the other end's request is granted whatever key frames have taken: `LONGEST` over `SHARE`.
/// Those of a higher rate, or of an outage, would else be owed for longer than it takes to see that nothing is decoded. An end that asks
/// without need gets one each 2 s: of a source that heeds [`largest`] `SHARE` of the rate, of another as much as its key frames take.
const MOST_WAIT: TimeDelta = TimeDelta::from_secs(2);
/// Time that a key frame may take at the stream's rate. Chosen here: with the path's own delay it then arrives within the playout
/// delay of an interactive call, 400 ms.
const LONGEST: TimeDelta = TimeDelta::from_millis(200);
/// The same at the beginning of a stream, while the rate is a guess, and how long that lasts.
const LONGEST_FIRST: TimeDelta = TimeDelta::from_millis(50);
const FIRST: TimeDelta = TimeDelta::from_secs(2);
/// No limit is below this. Chosen here: what a picture of 640x480 without any detail takes.
const LEAST: DataSize = DataSize::from_bytes(2_500);

/// Greatest size of a stream's key frames at this rate; `age` is the time since its first frame.
pub(super) fn largest(rate: DataRate, age: TimeDelta) -> DataSize {
    let time = if age < FIRST { LONGEST_FIRST } else { LONGEST };
    rate.size_in(time).max(LEAST)
}

/// Bytes that key frames at the other end's request may take: they accrue with [`SHARE`] of the rate, up to those of [`PERIOD`].
#[derive(Debug)]
pub(super) struct Budget {
    rate: DataRate,
    /// Below zero after a key frame that took more than there was.
    left: f64,
    at: Option<Timestamp>,
}

impl Budget {
    const fn new() -> Self {
        Self { rate: DataRate::ZERO, left: 0.0, at: None }
    }
    fn most(&self) -> f64 {
        self.rate.as_bps_f64() / 8.0 * SHARE * PERIOD.as_secs_f64()
    }
    fn accrue(&mut self, now: Timestamp) {
        // All of it is there with the first rate.
        if self.rate == DataRate::ZERO {
            return;
        }
        let time = self.at.map_or(PERIOD, |at| now.saturating_since(at)).as_secs_f64();
        self.at = Some(now);
        self.left = (self.left + self.rate.as_bps_f64() / 8.0 * SHARE * time).min(self.most());
    }
    /// The stream has another rate. Without one, nothing can be requested either.
    pub(super) fn set_rate(&mut self, rate: DataRate, now: Timestamp) {
        if self.at.is_some() {
            self.accrue(now);
        }
        if rate > DataRate::ZERO {
            self.rate = rate;
        }
        if self.at.is_none() {
            self.accrue(now);
        }
        self.left = self.left.min(self.most());
    }
    fn spend(&mut self, size: DataSize, now: Timestamp) {
        self.accrue(now);
        self.left -= size.as_bytes() as f64;
    }
    fn is_open(&mut self, now: Timestamp) -> bool {
        self.accrue(now);
        self.left > 0.0
    }
}

/// Requests for key frames, and key frames made.
#[derive(Debug)]
pub(crate) struct PictureState {
    pub(super) config: PictureFeedback,
    /// When a key frame was last requested from the source, and when it last made one.
    pub(super) asked: Option<Timestamp>,
    pub(super) made: Option<Timestamp>,
    pub(super) budget: Budget,
    /// Whether to request a key frame as soon as another one is allowed.
    pub(super) wanted: bool,
    /// Whether the other end's command waits until it can be granted.
    pub(super) requested: bool,
    /// The last FIR.
    pub(super) fir: Option<FirId>,
    /// The last acknowledged picture.
    pub(super) decoded: Option<u32>,
    /// Pictures by the source's timestamps.
    pub(super) pictures: Pictures,
    pub counters: PictureCounters,
}

impl PictureState {
    pub(super) fn new(config: PictureFeedback) -> Self {
        Self {
            config,
            asked: None,
            made: None,
            budget: Budget::new(),
            wanted: false,
            requested: false,
            fir: None,
            decoded: None,
            pictures: Pictures::default(),
            counters: PictureCounters::default(),
        }
    }

    pub(super) fn on_key_frame(&mut self, size: DataSize, now: Timestamp) {
        (self.made, self.wanted, self.requested) = (Some(now), false, false);
        self.budget.spend(size, now);
    }
    /// A picture has been made from these payloads.
    pub(super) fn on_picture(&mut self, rtp_timestamp: u32, payload: Option<&[u8]>) {
        self.pictures.note(self.config.name, rtp_timestamp, payload);
    }

    fn has_passed(&self, time: TimeDelta, now: Timestamp) -> bool {
        self.asked.max(self.made).is_none_or(|t| now.saturating_since(t) >= time)
    }
    pub(super) fn may_ask(&self, now: Timestamp) -> bool {
        self.has_passed(self.config.min_key_frame_interval, now)
    }
    /// Whether the other end's request can be granted: it costs no more than key frames may take, or the last one was long ago.
    pub(super) fn may_grant(&mut self, now: Timestamp) -> bool {
        self.may_ask(now) && (self.budget.is_open(now) || self.has_passed(MOST_WAIT, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_frames_at_request_take_a_tenth_of_the_rate() {
        let mut budget = Budget::new();
        budget.set_rate(DataRate::from_kbps(100), Timestamp::ZERO);
        // 2,500 bytes each: a second's bits at once, and then one in two seconds.
        let granted = (0..900).filter(|&n| {
            let now = Timestamp::from_millis(n * 100);
            let is_open = budget.is_open(now);
            if is_open {
                budget.spend(DataSize::from_bytes(2_500), now);
            }
            is_open
        });
        let granted = granted.count();
        assert!((45..=51).contains(&granted), "{granted}");
    }

    #[test]
    fn a_higher_rate_opens_the_budget_and_none_keeps_it() {
        let mut budget = Budget::new();
        assert!(!budget.is_open(Timestamp::ZERO));
        budget.set_rate(DataRate::from_kbps(100), Timestamp::ZERO);
        budget.spend(DataSize::from_bytes(30_000), Timestamp::ZERO);
        budget.set_rate(DataRate::ZERO, Timestamp::ZERO);
        // 17,500 bytes are owed, at 1,250 a second.
        assert!(!budget.is_open(Timestamp::from_secs(13)));
        budget.set_rate(DataRate::from_kbps(1_000), Timestamp::from_secs(13));
        assert!(budget.is_open(Timestamp::from_millis(13_200)));
    }

    #[test]
    fn what_key_frames_have_taken_delays_the_next_one_by_two_seconds_at_most() {
        let mut p = PictureState::new(PictureFeedback::default());
        p.budget.set_rate(DataRate::from_kbps(100), Timestamp::ZERO);
        // Made at a higher rate: at 1,250 bytes a second it would be owed for 40 s.
        p.on_key_frame(DataSize::from_bytes(62_500), Timestamp::from_secs(1));
        assert!(!p.may_grant(Timestamp::from_millis(2_900)));
        assert!(p.may_grant(Timestamp::from_secs(3)));
    }

    #[test]
    fn the_first_key_frames_are_the_smallest() {
        let size = |kbps, ms| largest(DataRate::from_kbps(kbps), TimeDelta::from_millis(ms)).as_bytes();
        assert_eq!((size(800, 0), size(800, 2_000), size(40, 2_000)), (5_000, 20_000, 2_500));
    }
}
