//! Playout of audio, with a fixed or an adaptive delay.

mod filling;
mod time;
mod types;

use filling::Step;
pub use types::{AudioDelay, AudioPacket, AudioPlayoutStats, AudioSlot, AudioSlotContent};

use crate::audio::PacketTime;
use crate::playout::{BaseDelay, Delays, Drift, TimeBase};
use crate::{AUDIO_CLOCK_HZ, Verdict};
use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// Most packets waiting: 10 s of 20 ms.
const MAX_WAITING: usize = 500;
/// Playout stops this long after the last packet.
const IDLE_TICKS: u64 = 10 * AUDIO_CLOCK_HZ as u64;
/// A packet at or below this level is quiet: skipping it, or inserting time before it, is hardly audible (-dBov,
/// RFC 6464).
const QUIET: u8 = 50;
/// A smaller deficit against the least delay waits for the next pause, since audio leading video by this is not noticed
/// (ITU-R BT.1359-1: viewers detect 45 ms).
const UNNOTICED: TimeDelta = TimeDelta::from_millis(20);
/// Packets played between two insertions outside pauses.
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

/// The packet last played.
#[derive(Clone, Copy, Debug)]
struct Last {
    sequence: u64,
    silence: bool,
}

/// Orders packets and determines what is played at each time.
///
/// With a fixed delay each packet is played that long after the capture of its first sample; a missing one is recovered
/// from the next packet, if that has arrived and includes a copy, or concealed.
///
/// An adaptive delay aims at the delay that nineteen of twenty recent packets need. It changes where that is hardly
/// audible: in pauses, and by inserting time before quiet packets or skipping them. If no packet is left, concealment
/// fills the time until the next one, which is played later instead of being lost; the delay has then grown. It shrinks
/// at a lost packet, which is then skipped, and without pauses by a packet a second, which is dropped.
///
/// Capture times are by the receiver's clock. They are relative to [`Self::set_capture_time`], or until that is called,
/// to the fastest packet of the last minute; with a fixed delay to the first packet, and follow clocks that differ by
/// packets that are dropped or concealed. Packets that are all late for a while, or come after a silence with a timestamp
/// of its beginning, are played from then on ([`Self::follow_lateness`]). Memory is bounded for any input.
#[derive(Clone, Debug)]
pub struct AudioPlayout {
    config: AudioDelay,
    /// A timestamp in ticks and its capture time.
    anchor: Option<(i64, Timestamp)>,
    synchronised: bool,
    base: BaseDelay,
    delays: Delays,
    delay: TimeDelta,
    /// Least delay requested for streams beside it.
    floor: TimeDelta,
    /// Packets played since the last insertion.
    apart: u32,
    /// Ticks of the next sample to play; `None` while nothing is playing.
    next: Option<i64>,
    /// Where playing ended, in ticks and time.
    over: Option<i64>,
    end: Option<Timestamp>,
    /// Ordered by timestamp.
    waiting: VecDeque<Waiting>,
    last: Option<Last>,
    /// End of the packet last played.
    heard: Option<Timestamp>,
    /// The highest sequence number and its ticks, which give the packets' length and identify new packets.
    newest: Option<(u64, i64)>,
    /// Samples per packet, as far as known.
    step: u32,
    /// Samples concealed, recovered or silent since the last packet: in total, those inserted to lengthen the delay,
    /// and those counted as silence.
    filled: u64,
    put_in: u64,
    silent: u64,
    /// Reasons to move the anchor.
    time_base: TimeBase,
    drift: Drift,
    /// When a packet was last dropped to shorten the delay outside pauses.
    dropped: Option<Timestamp>,
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
            heard: None,
            newest: None,
            step: PacketTime::default().samples(),
            filled: 0,
            put_in: 0,
            silent: 0,
            time_base: TimeBase::default(),
            drift: Drift::default(),
            dropped: None,
            stats: AudioPlayoutStats::default(),
        }
    }

    /// The statistics.
    pub const fn stats(&self) -> &AudioPlayoutStats {
        &self.stats
    }
    /// Current delay from capture to playout.
    pub const fn delay(&self) -> TimeDelta {
        self.delay
    }

    /// Sets a lower bound of the delay from capture to playout, up to the longest delay, regardless of the stream's own
    /// jitter: so video with a longer delay stays in synchrony. The delay grows in pauses, or otherwise by concealment
    /// of one packet time every hundred milliseconds. No effect with a fixed delay.
    pub const fn set_least_delay(&mut self, least: TimeDelta) {
        self.floor = least;
    }
    /// Delay from capture to playout required by this stream's own jitter, without [`Self::set_least_delay`].
    pub fn own_delay(&self) -> TimeDelta {
        if self.is_fixed() { self.config.min } else { self.delays.quantile().max(self.config.min).min(self.config.max) }
    }

    /// Takes a packet and returns its outcome.
    pub fn on_packet(&mut self, now: Timestamp, p: &AudioPacket<'_>) -> Verdict {
        let ticks = self.unwrap(p.rtp_timestamp);
        let Some(ticks) = self.believe(now, ticks) else {
            self.stats.unusable += 1;
            return Verdict::Unusable;
        };
        let (anchor_ticks, captured) = *self.anchor.get_or_insert((ticks, now));
        let is_newest = self.newest.is_none_or(|n| p.sequence > n.0);
        self.learn_step(p, ticks);
        if is_newest {
            self.follow(now, now - (captured + ticks_to_time(ticks - anchor_ticks)), ticks);
        }
        let (anchor_ticks, captured) = self.anchor.unwrap_or((ticks, now));
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

    /// The slot that begins by `now`; call it until it returns `None`.
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

    /// When the sample at these ticks is played.
    fn time_of(&self, ticks: i64) -> Timestamp {
        self.anchor.map_or(Timestamp::MAX, |(t, at)| at + ticks_to_time(ticks - t) + self.delay)
    }

    fn count(&mut self, p: &AudioPacket<'_>) {
        self.stats.packets += 1;
        self.stats.size += p.size;
    }

    /// Learns the packets' length from adjacent timestamps if the packets do not state it.
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

    /// The target delay.
    fn wanted(&self) -> TimeDelta {
        if self.is_fixed() { self.config.min } else { self.own_delay().max(self.floor).min(self.config.max) }
    }

    /// Starts playing with the first waiting packet.
    fn start(&mut self, now: Timestamp) {
        let Some(first) = self.waiting.front() else { return };
        let ticks = first.ticks;
        self.delay = self.wanted();
        let late = now - self.time_of(ticks);
        if late > TimeDelta::ZERO {
            self.delay = (self.delay + late).min(self.config.max);
        }
        // After a silence the media clock may have stood still: nothing is played in the past.
        let late = now - self.time_of(ticks);
        if late > TimeDelta::ZERO
            && self.over.is_some()
            && let Some((from, captured)) = &mut self.anchor
        {
            // As where lateness has lasted, the packet has no delay.
            *captured = now - ticks_to_time(ticks - *from);
            (self.base, self.delays, self.drift) = (BaseDelay::default(), Delays::EMPTY, Drift::default());
            self.synchronised = false;
            self.delay = self.wanted();
        }
        let overlap = self.end.map_or(TimeDelta::ZERO, |end| end - self.time_of(ticks));
        if overlap > TimeDelta::ZERO
            && let Some((_, captured)) = &mut self.anchor
        {
            *captured += overlap;
        }
        (self.next, self.over) = (Some(ticks), None);
    }

    /// Plays the first waiting packet, or skips it, or first inserts time.
    fn play(&mut self, at: Timestamp) -> Option<AudioSlot> {
        let w = self.waiting.front()?;
        let (ticks, samples) = (w.ticks, w.samples.unwrap_or(self.step));
        let length = ticks_to_time(samples.into());
        let excess = self.delay - self.wanted();
        let begins = w.quiet || self.silent > 0;
        if begins && excess < TimeDelta::ZERO && !self.is_fixed() {
            // Lengthens a pause.
            let more = u32::try_from(time_to_ticks(-excess)).unwrap_or(0).min(self.step);
            if more > 0 {
                self.delay += ticks_to_time(more.into());
                (self.filled, self.silent) = (self.filled + u64::from(more), self.silent + u64::from(more));
                self.stats.silent_samples += u64::from(more);
                return Some(self.slot(at, ticks, more, AudioSlotContent::Silence));
            }
        }
        if self.floor.min(self.config.max) - self.delay > UNNOTICED && self.apart >= APART && !self.is_fixed() {
            // There is no pause, and video waits.
            self.apart = 0;
            return Some(self.put_in(at, ticks, self.step));
        }
        if self.is_fixed() && -excess >= length {
            // The sender's clock is the slower one.
            return Some(self.put_in(at, ticks, samples));
        }
        let drops = self.drops(at, excess, length);
        self.apart = self.apart.saturating_add(1);
        self.settle();
        let w = self.waiting.pop_front()?;
        self.last = Some(Last { sequence: w.sequence, silence: w.silence });
        let next = ticks + i64::from(samples);
        self.next = Some(next);
        while self.waiting.front().is_some_and(|w| w.ticks < next) {
            self.waiting.pop_front();
            // It overlaps, which does not occur with packets of one encoder.
            self.stats.late += 1;
        }
        if drops || (w.quiet && excess >= length && !self.is_fixed()) {
            self.dropped = self.dropped.filter(|_| !drops).or(Some(at));
            self.delay -= length;
            self.stats.skipped_samples += u64::from(samples);
            return None;
        }
        let silence = self.heard.map_or(TimeDelta::ZERO, |end| at - end);
        self.stats.longest_silence = self.stats.longest_silence.max(silence);
        self.heard = Some(at + length);
        self.stats.played += 1;
        self.stats.played_samples += u64::from(samples);
        self.stats.delay.add(self.delay);
        Some(self.slot(at, ticks, samples, AudioSlotContent::Packet(w.payload)))
    }

    /// Corrects the counts since the last packet now that the next one is known: without a gap in sequence numbers
    /// nothing was lost.
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
