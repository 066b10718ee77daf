//! Playout of audio: what is heard at each moment, with a fixed delay or one that follows jitter.

mod filling;
mod types;

use filling::Step;
pub use types::{AudioDelay, AudioPacket, AudioPlayoutStats, AudioSlot, AudioSlotContent};

use crate::audio::PacketTime;
use crate::playout::{BaseDelay, Delays};
use crate::{AUDIO_CLOCK_HZ, Verdict};
use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// Packets that wait at most: 10 s of 20 ms.
const MAX_WAITING: usize = 500;
/// A timestamp further than this from where playout is is not believed.
const PLAUSIBLE_TICKS: i64 = 10 * AUDIO_CLOCK_HZ as i64;
/// So many packets in a row that are not believed are a new stream.
const NEW_STREAM: u32 = 50;
/// Nothing is played any more so long after the last packet.
const IDLE_TICKS: u64 = 10 * AUDIO_CLOCK_HZ as u64;
/// A packet whose level is this or lower is quiet: leaving it out or waiting before it is hardly heard (-dBov, RFC 6464).
const QUIET: u8 = 50;
/// So much less than the least delay is left to the next pause: sound that much ahead of pictures goes unnoticed (ITU-R
/// BT.1359-1 has viewers detect 45 ms).
const UNNOTICED: TimeDelta = TimeDelta::from_millis(20);
/// Packets played from one that is put in, where there is no pause, to the next.
const APART: u32 = 4;

#[derive(Clone, Debug)]
struct Waiting {
    sequence: u64,
    ticks: i64,
    samples: Option<u32>,
    quiet: bool,
    silence: bool,
    has_fec: bool,
    payload: Vec<u8>,
}

/// The packet that was played last.
#[derive(Clone, Copy, Debug)]
struct Last {
    sequence: u64,
    silence: bool,
}

/// Orders packets and says what is heard when.
///
/// With a fixed delay each packet is heard that long after the capture of its first sample; what is not there by then is
/// recovered from the next packet, if that is there and holds a copy, or concealed.
///
/// With one that follows jitter, the delay aims at that of nineteen of twenty of the last packets. It changes where it is
/// hardly heard: in pauses, before quiet packets and by leaving these out. Where no packet is left, concealment fills the
/// time until the next one, which so comes later and is not lost; the delay has grown by that then. It shrinks where a
/// packet is lost, which then is passed over.
///
/// Capture times are on the receiver's own clock. They count from [`Self::set_capture_time`]; until it is called, from the
/// fastest packet of the last minute. Memory is bounded whatever arrives.
#[derive(Clone, Debug)]
pub struct AudioPlayout {
    config: AudioDelay,
    /// A timestamp in ticks and the capture time it stands for.
    anchor: Option<(i64, Timestamp)>,
    synchronised: bool,
    base: BaseDelay,
    delays: Delays,
    delay: TimeDelta,
    /// What streams beside it ask for.
    floor: TimeDelta,
    /// Packets played since one was put in.
    apart: u32,
    /// Ticks of what is heard next; `None` where nothing is playing.
    next: Option<i64>,
    /// Where playing ended, in ticks and time.
    over: Option<i64>,
    end: Option<Timestamp>,
    /// In order of timestamps.
    waiting: VecDeque<Waiting>,
    last: Option<Last>,
    /// The highest sequence number and its ticks, for the length of packets and to tell new ones.
    newest: Option<(u64, i64)>,
    /// Samples of a packet, as known.
    step: u32,
    /// Samples concealed, recovered or silent since the last packet was played: all, those that stand for time that was put
    /// in, those counted as silence.
    filled: u64,
    put_in: u64,
    silent: u64,
    unbelieved: u32,
    stats: AudioPlayoutStats,
}

fn ticks_to_time(ticks: i64) -> TimeDelta {
    // 10^9 / 48,000 in lowest terms.
    const { assert!(AUDIO_CLOCK_HZ == 48_000) };
    TimeDelta::from_nanos(ticks.saturating_mul(62_500).div_euclid(3))
}

fn time_to_ticks(time: TimeDelta) -> i64 {
    crate::frame::ticks_of(time.as_nanos(), AUDIO_CLOCK_HZ)
}

impl AudioPlayout {
    /// Playout with this delay.
    pub fn new(config: AudioDelay) -> Self {
        let config = AudioDelay { min: config.min.max(TimeDelta::ZERO).min(config.max), ..config };
        Self {
            config,
            anchor: None,
            synchronised: false,
            base: BaseDelay::default(),
            delays: Delays::EMPTY,
            delay: config.min,
            floor: TimeDelta::ZERO,
            apart: APART,
            next: None,
            over: None,
            end: None,
            waiting: VecDeque::new(),
            last: None,
            newest: None,
            step: PacketTime::default().samples(),
            filled: 0,
            put_in: 0,
            silent: 0,
            unbelieved: 0,
            stats: AudioPlayoutStats::default(),
        }
    }

    /// What has happened so far.
    pub const fn stats(&self) -> &AudioPlayoutStats {
        &self.stats
    }
    /// Time from capture to playout as it is now.
    pub const fn delay(&self) -> TimeDelta {
        self.delay
    }

    /// Aims at no less than this from capture to playout, up to the longest delay, whatever the stream's own jitter allows: so
    /// pictures that need longer come out with it. The delay grows in pauses, and without one by concealment, a packet's time
    /// in a hundred milliseconds. Does nothing with a fixed delay.
    pub const fn set_least_delay(&mut self, least: TimeDelta) {
        self.floor = least;
    }
    /// Time from capture to playout that this stream's own jitter asks for, without [`Self::set_least_delay`].
    pub fn own_delay(&self) -> TimeDelta {
        if self.is_fixed() { self.config.min } else { self.delays.quantile().max(self.config.min).min(self.config.max) }
    }

    /// Tells when the sample of this timestamp was captured, on the receiver's clock. What is playing goes on as it is, with
    /// another delay; a fixed one holds from now on.
    pub fn set_capture_time(&mut self, rtp_timestamp: u32, captured: Timestamp) {
        let ticks = self.unwrap(rtp_timestamp);
        let before = self.anchor.map_or(captured, |(t, at)| at + ticks_to_time(ticks - t));
        self.delays.shift(before - captured);
        if !self.is_fixed() {
            self.delay += before - captured;
        }
        self.anchor = Some((ticks, captured));
        self.synchronised = true;
    }

    /// Takes a packet and tells what became of it.
    pub fn on_packet(&mut self, now: Timestamp, p: &AudioPacket<'_>) -> Verdict {
        let ticks = self.unwrap(p.rtp_timestamp);
        let Some(ticks) = self.believe(ticks) else {
            self.stats.unusable += 1;
            return Verdict::Unusable;
        };
        let (anchor_ticks, captured) = *self.anchor.get_or_insert((ticks, now));
        self.learn_step(p, ticks);
        if self.next.or(self.over).is_some_and(|next| ticks < next) {
            let again = self.last.is_some_and(|l| l.sequence == p.sequence);
            *if again { &mut self.stats.duplicates } else { &mut self.stats.late } += 1;
            if again {
                return Verdict::Duplicate;
            }
            self.count(p);
            self.measure(now, now - (captured + ticks_to_time(ticks - anchor_ticks)));
            return Verdict::Discarded { of_frame: 1 };
        }
        let index = self.waiting.partition_point(|w| w.ticks < ticks);
        if self.waiting.get(index).is_some_and(|w| w.ticks == ticks) {
            self.stats.duplicates += 1;
            return Verdict::Duplicate;
        }
        if self.waiting.len() == MAX_WAITING {
            self.stats.unusable += 1;
            return Verdict::Unusable;
        }
        self.count(p);
        let waiting = Waiting {
            sequence: p.sequence,
            ticks,
            samples: p.samples.filter(|s| *s > 0),
            quiet: p.silence || p.level.is_some_and(|l| l >= QUIET),
            silence: p.silence,
            has_fec: p.has_fec,
            payload: p.payload.to_vec(),
        };
        self.waiting.insert(index, waiting);
        self.measure(now, now - (captured + ticks_to_time(ticks - anchor_ticks)));
        if self.next.is_none() {
            self.start(now);
        }
        Verdict::InTime
    }

    /// When the next slot begins; `None` while nothing is playing.
    pub fn next_event(&self) -> Option<Timestamp> {
        self.next.map(|ticks| self.time_of(ticks))
    }

    /// The slot that begins by `now`; ask again until there is none.
    pub fn poll(&mut self, now: Timestamp) -> Option<AudioSlot> {
        loop {
            let ticks = self.next?;
            let at = self.time_of(ticks);
            if at > now {
                return None;
            }
            match self.waiting.front() {
                Some(w) if w.ticks == ticks => {
                    if let Some(slot) = self.play(at) {
                        return Some(slot);
                    }
                }
                _ => match self.fill(at, ticks) {
                    Step::Slot(slot) => return Some(slot),
                    Step::Again => {}
                    Step::Idle => return None,
                },
            }
        }
    }

    const fn is_fixed(&self) -> bool {
        self.config.min.as_nanos() == self.config.max.as_nanos()
    }

    fn unwrap(&self, rtp_timestamp: u32) -> i64 {
        match self.newest {
            Some((_, t)) => t + i64::from(rtp_timestamp.wrapping_sub(t as u32) as i32),
            None => i64::from(rtp_timestamp),
        }
    }

    /// When the sample of these ticks is heard.
    fn time_of(&self, ticks: i64) -> Timestamp {
        self.anchor.map_or(Timestamp::MAX, |(t, at)| at + ticks_to_time(ticks - t) + self.delay)
    }

    fn count(&mut self, p: &AudioPacket<'_>) {
        self.stats.packets += 1;
        self.stats.size += p.size;
    }

    /// Accepts a timestamp, or begins again after many that could not be believed.
    fn believe(&mut self, ticks: i64) -> Option<i64> {
        let playing = self.next.is_some_and(|next| (ticks - next).abs() > PLAUSIBLE_TICKS);
        // While nothing plays time passes, but not back.
        let idle = self.over.is_some_and(|over| over - ticks > PLAUSIBLE_TICKS);
        if playing || idle {
            self.unbelieved += 1;
            if self.unbelieved < NEW_STREAM {
                return None;
            }
            let (stats, step, end, floor) = (self.stats, self.step, self.end, self.floor);
            *self = Self { stats, step, end, floor, ..Self::new(self.config) };
        }
        self.unbelieved = 0;
        Some(ticks)
    }

    /// How long packets are, from neighbours where they do not tell.
    fn learn_step(&mut self, p: &AudioPacket<'_>, ticks: i64) {
        if let Some(samples) = p.samples.filter(|s| (1..=super::opus::MAX_SAMPLES).contains(s)) {
            self.step = samples;
        } else if let Some((sequence, before)) = self.newest
            && p.sequence == sequence + 1
            && let Some(time) = u32::try_from(ticks - before).ok().and_then(PacketTime::of_samples)
        {
            self.step = time.samples();
        }
        if self.newest.is_none_or(|n| p.sequence > n.0) {
            self.newest = Some((p.sequence, ticks));
        }
    }

    /// Looks at how long a packet took.
    fn measure(&mut self, now: Timestamp, delay: TimeDelta) {
        if self.is_fixed() {
            return;
        }
        let later = if self.synchronised { TimeDelta::ZERO } else { self.base.update(now, delay) };
        if later != TimeDelta::ZERO {
            // Captures count from the fastest packet: times at which samples are heard stay.
            self.delays.shift(-later);
            self.base.shift(-later);
            self.delay -= later;
            if let Some((_, at)) = &mut self.anchor {
                *at += later;
            }
        }
        self.delays.push((delay - later).min(self.config.max));
    }

    /// The delay that is wanted.
    fn wanted(&self) -> TimeDelta {
        if self.is_fixed() { self.config.min } else { self.own_delay().max(self.floor).min(self.config.max) }
    }

    /// Begins to play with the first packet that waits.
    fn start(&mut self, now: Timestamp) {
        let Some(first) = self.waiting.front() else { return };
        let ticks = first.ticks;
        self.delay = self.wanted();
        let late = now - self.time_of(ticks);
        if late > TimeDelta::ZERO {
            self.delay = (self.delay + late).min(self.config.max);
        }
        let overlap = self.end.map_or(TimeDelta::ZERO, |end| end - self.time_of(ticks));
        if overlap > TimeDelta::ZERO
            && let Some((_, captured)) = &mut self.anchor
        {
            *captured += overlap;
        }
        (self.next, self.over) = (Some(ticks), None);
    }

    /// Plays the packet that waits in front, or leaves it out, or first waits a little.
    fn play(&mut self, at: Timestamp) -> Option<AudioSlot> {
        let w = self.waiting.front()?;
        let (ticks, samples) = (w.ticks, w.samples.unwrap_or(self.step));
        let length = ticks_to_time(samples.into());
        let excess = self.delay - self.wanted();
        let begins = w.quiet || self.silent > 0;
        if begins && excess < TimeDelta::ZERO && !self.is_fixed() {
            // A longer pause.
            let more = u32::try_from(time_to_ticks(-excess)).unwrap_or(0).min(self.step);
            if more > 0 {
                self.delay += ticks_to_time(more.into());
                (self.filled, self.silent) = (self.filled + u64::from(more), self.silent + u64::from(more));
                self.stats.silent_samples += u64::from(more);
                return Some(self.slot(at, ticks, more, AudioSlotContent::Silence));
            }
        }
        if self.floor.min(self.config.max) - self.delay > UNNOTICED && self.apart >= APART && !self.is_fixed() {
            // No pause comes, and pictures wait.
            self.apart = 0;
            return Some(self.put_in(at, ticks, self.step));
        }
        self.apart = self.apart.saturating_add(1);
        self.settle();
        let w = self.waiting.pop_front()?;
        self.last = Some(Last { sequence: w.sequence, silence: w.silence });
        let next = ticks + i64::from(samples);
        self.next = Some(next);
        while self.waiting.pop_front_if(|w| w.ticks < next).is_some() {
            // It overlaps, which packets of one encoder do not.
            self.stats.late += 1;
        }
        if w.quiet && excess >= length && !self.is_fixed() {
            self.delay -= length;
            self.stats.skipped_samples += u64::from(samples);
            return None;
        }
        self.stats.played += 1;
        self.stats.played_samples += u64::from(samples);
        self.stats.delay.add(self.delay);
        Some(self.slot(at, ticks, samples, AudioSlotContent::Packet(w.payload)))
    }

    /// Corrects what was counted since the last packet, now that the one behind it is there: without a gap in sequence
    /// numbers nothing was lost.
    fn settle(&mut self) {
        if let (Some(last), Some(w)) = (self.last, self.waiting.front()) {
            let lost = w.sequence.saturating_sub(last.sequence + 1);
            let audible = self.filled - self.silent;
            if lost == 0 && self.put_in == 0 {
                self.stats.concealed_samples -= audible.min(self.stats.concealed_samples);
                self.stats.silent_samples += audible;
            } else if lost > 0 {
                let heard = (lost * u64::from(self.step)).saturating_sub(audible).min(self.silent);
                self.stats.silent_samples -= heard.min(self.stats.silent_samples);
                self.stats.concealed_samples += heard;
            }
        }
        (self.filled, self.put_in, self.silent) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests;
