//! Playout: which frames can be shown in time, with a fixed or an adaptive delay.

mod adaptive;
mod arrivals;
mod stats;
mod time_base;

pub use adaptive::AdaptivePlayout;
pub(crate) use adaptive::{BaseDelay, Delays};
pub use stats::{DelayStats, PlayoutStats};
pub(crate) use time_base::{Drift, Run, TimeBase};

use crate::RTP_CLOCK_HZ;
use adaptive::Adaptive;
use arrivals::{Arrival, Arrivals};
use stats::Stalls;
use std::collections::VecDeque;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Most frames kept, including played and missed ones still tracked; beyond that the oldest is dropped.
const MAX_FRAMES: usize = 4_096;
/// How long a missed frame is tracked for late packets; afterwards what is missing counts as lost.
const WATCHED: TimeDelta = TimeDelta::from_secs(1);
/// A packet's properties for playout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MediaPacket {
    /// Unwrapped sequence number.
    pub sequence: u64,
    /// RTP timestamp, the same in all packets of a frame.
    pub rtp_timestamp: u32,
    /// Whether it begins a frame, if the payload signals it. Otherwise a frame is known to start with it only if the
    /// previous packet has arrived too, since a lost one may have belonged to the frame.
    pub start: Option<bool>,
    /// Whether it ends a frame.
    pub marker: bool,
    /// Size of the payload.
    pub size: DataSize,
}

/// Outcome of a frame at its playout time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlayoutEvent {
    /// The frame's RTP timestamp.
    pub rtp_timestamp: u32,
    /// When it is played or given up; with a fixed delay its deadline.
    pub at: Timestamp,
    /// Payload bytes received.
    pub size: DataSize,
    /// Delay from capture to its last packet's arrival if it was complete and is played; `None` otherwise.
    pub delay: Option<TimeDelta>,
    /// Whether the capture time is the sender's, by its reports. Otherwise `delay` is relative to the fastest frame.
    pub is_from_capture: bool,
}

/// Outcome of a packet on arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Its frame has not been played yet.
    InTime,
    /// It arrived after its frame's deadline.
    Discarded {
        /// Late packets of that frame so far, including this one.
        of_frame: u32,
    },
    /// It had already arrived.
    Duplicate,
    /// Rejected: older than the packets remembered, or with an implausible timestamp.
    Unusable,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    Played,
    Missed,
}

#[derive(Clone, Debug)]
struct FrameInPlayout {
    ticks: i64,
    deadline: Timestamp,
    /// When it was played or given up, once decided.
    at: Timestamp,
    last_arrival: Timestamp,
    lowest: u64,
    start: Option<u64>,
    end: Option<u64>,
    packets: u64,
    size: DataSize,
    /// Packets received after the deadline.
    late: u32,
    /// Whether the deadline is relative to a known capture time.
    is_from_capture: bool,
    state: State,
}

impl FrameInPlayout {
    fn add(&mut self, now: Timestamp, p: &MediaPacket) {
        self.last_arrival = self.last_arrival.max(now);
        self.lowest = self.lowest.min(p.sequence);
        if p.start == Some(true) {
            self.start = Some(p.sequence);
        }
        if p.marker {
            self.end = Some(p.sequence);
        }
        self.packets += 1;
        self.size += p.size;
    }

    fn is_whole(&self, arrivals: &Arrivals) -> bool {
        let start = self.start.or_else(|| arrivals.follows_a_packet(self.lowest).then_some(self.lowest));
        start.zip(self.end).is_some_and(|(s, e)| e.checked_sub(s).is_some_and(|d| d + 1 == self.packets))
    }
}

/// Plays each frame a fixed time after its capture if all of its packets have arrived, and skips it otherwise.
///
/// Capture times are by the receiver's clock. They are relative to [`Self::set_capture_time`]; until that is called,
/// the first packet is assumed to arrive when it was captured, and capture times follow clocks that differ. Packets that
/// are all late for a while have a sender whose clock stood still or jumped, or a longer path: they are then played
/// later ([`Self::follow_lateness`]). A packet exactly at the deadline is in time. Later
/// packets are discarded, and counted separately from lost ones. Memory is bounded for any input. A frame without any
/// received packet is unknown here: compare with the frames sent.
#[derive(Clone, Debug)]
pub struct Playout {
    /// Delay from capture to the deadline.
    delay: TimeDelta,
    /// State for playing frames before their deadline.
    adaptive: Option<Box<Adaptive>>,
    /// A timestamp in ticks and its capture time.
    anchor: Option<(i64, Timestamp)>,
    /// The last accepted timestamp, unwrapped.
    ticks: i64,
    /// Reasons to move the anchor, and the number of its moves.
    base: TimeBase,
    drift: Drift,
    moved: u64,
    arrivals: Arrivals,
    /// Ordered by timestamp: first announced frames, then decided ones, then open ones.
    frames: VecDeque<FrameInPlayout>,
    announced: usize,
    decided: usize,
    /// Padding-only packets among the arrivals.
    padding: u64,
    stalls: Stalls,
    stats: PlayoutStats,
}

fn ticks_to_time(ticks: i64) -> TimeDelta {
    // 10^9 / 90,000 in lowest terms, so that the product fits for 30 years of ticks.
    const { assert!(RTP_CLOCK_HZ == 90_000) };
    TimeDelta::from_nanos(ticks.saturating_mul(100_000).div_euclid(9))
}

impl Playout {
    /// Playout this long after capture.
    pub fn new(delay: TimeDelta) -> Self {
        Self {
            delay,
            adaptive: None,
            anchor: None,
            ticks: 0,
            base: TimeBase::default(),
            drift: Drift::default(),
            moved: 0,
            arrivals: Arrivals::default(),
            frames: VecDeque::new(),
            announced: 0,
            decided: 0,
            padding: 0,
            stalls: Stalls::default(),
            stats: PlayoutStats::default(),
        }
    }

    /// Takes a packet and returns its outcome.
    #[inline]
    pub fn on_packet(&mut self, now: Timestamp, p: &MediaPacket) -> Verdict {
        self.decide(now, false);
        let ticks = match self.anchor {
            Some(_) => self.unwrap(p.rtp_timestamp),
            None => self.begin(now, p.rtp_timestamp),
        };
        // Most packets belong to the newest frame, which needs no search.
        let newest = self.frames.len().wrapping_sub(1);
        let known = self.frames.back().is_some_and(|f| f.ticks == ticks);
        let index = if known {
            newest
        } else {
            let Some(ticks) = self.believe(now, ticks, p.rtp_timestamp) else { return Verdict::Unusable };
            if self.arrivals.is_highest(p.sequence) {
                self.follow(now, ticks);
            }
            match self.find_or_open(now, ticks, p.sequence) {
                Some(index) => index,
                None => return Verdict::Unusable,
            }
        };
        match self.arrivals.insert(p.sequence) {
            Arrival::New => {}
            Arrival::Again => {
                self.stats.duplicates += 1;
                return Verdict::Duplicate;
            }
            Arrival::Old => {
                self.stats.unusable += 1;
                return Verdict::Unusable;
            }
        }
        self.stats.packets += 1;
        self.stats.size += p.size;
        let f = &mut self.frames[index];
        f.add(now, p);
        let open = f.state == State::Open;
        if self.adaptive.is_some() {
            self.measure(now, index);
        }
        if open {
            return Verdict::InTime;
        }
        let f = &mut self.frames[index];
        self.stats.discarded += 1;
        self.stats.discarded_size += p.size;
        f.late += 1;
        Verdict::Discarded { of_frame: f.late }
    }

    /// Takes a padding-only packet, so that it is not missed at the beginning of the next frame.
    pub fn on_padding(&mut self, sequence: u64) {
        self.padding += u64::from(self.arrivals.insert(sequence) == Arrival::New);
    }

    /// The first known packet of the next frame to be played, and its current playout time; `None` while no frame is
    /// waiting.
    pub fn next_to_play(&self) -> Option<(u64, Timestamp)> {
        let f = self.frames.get(self.decided)?;
        Some((f.lowest, self.adaptive.as_ref().map_or(f.deadline, |a| self.due(a, f))))
    }
    /// The playout time of the frame with this timestamp; `None` before the first packet.
    pub fn deadline_of(&self, rtp_timestamp: u32) -> Option<Timestamp> {
        self.anchor.map(|_| self.deadline(self.unwrap(rtp_timestamp)))
    }
    /// Delay from capture to playout; if adaptive, the current one.
    pub fn delay(&self) -> TimeDelta {
        self.adaptive.as_ref().map_or(self.delay, |a| a.delay())
    }
    /// Delay from capture to the deadline, after which packets are discarded.
    pub fn max_delay(&self) -> TimeDelta {
        self.delay
    }

    /// When the first open frame is played or given up, or an earlier one not yet polled. With adaptive playout each
    /// packet may change it.
    #[inline]
    pub fn next_event(&self) -> Option<Timestamp> {
        let f = self.frames.get(self.announced)?;
        match &self.adaptive {
            None => Some(f.deadline),
            Some(_) if self.announced < self.decided => Some(f.at),
            Some(adaptive) => Some(self.due(adaptive, f)),
        }
    }

    /// The next frame whose deadline is at most `now`; call it until it returns `None`.
    #[inline]
    pub fn poll(&mut self, now: Timestamp) -> Option<PlayoutEvent> {
        self.decide(now, true);
        if self.announced == self.decided {
            return None;
        }
        let f = &self.frames[self.announced];
        self.announced += 1;
        let event = PlayoutEvent {
            rtp_timestamp: f.ticks as u32,
            at: f.at,
            size: f.size,
            delay: (f.state == State::Played).then(|| f.last_arrival - (f.deadline - self.delay)),
            is_from_capture: f.is_from_capture,
        };
        self.forget(now);
        Some(event)
    }

    /// The statistics. A missed frame moves from incomplete to late when its last packet arrives, while it is tracked.
    pub fn stats(&self) -> PlayoutStats {
        let mut stats = self.stats;
        for f in self.frames.iter().filter(|f| f.state == State::Missed) {
            stats.count_missed(f.is_whole(&self.arrivals));
        }
        stats.expected = self.arrivals.expected().saturating_sub(self.padding);
        (stats.stalls, stats.stall_time, stats.last_played) = self.stalls.read();
        stats
    }

    /// Packets received after their frame's deadline, and their payload, as in [`Self::stats`], which looks at each frame.
    pub fn discarded(&self) -> (u64, DataSize) {
        (self.stats.discarded, self.stats.discarded_size)
    }

    fn unwrap(&self, rtp_timestamp: u32) -> i64 {
        self.ticks + i64::from(rtp_timestamp.wrapping_sub(self.ticks as u32) as i32)
    }

    fn deadline(&self, ticks: i64) -> Timestamp {
        self.anchor.map_or(Timestamp::MAX, |(t, at)| at + ticks_to_time(ticks - t) + self.delay)
    }

    /// The index of the frame with this timestamp, which is opened if new.
    fn find_or_open(&mut self, now: Timestamp, ticks: i64, sequence: u64) -> Option<usize> {
        let index = match self.frames.back() {
            Some(f) if f.ticks >= ticks => self.frames.partition_point(|f| f.ticks < ticks),
            _ => self.frames.len(),
        };
        if self.frames.get(index).is_some_and(|f| f.ticks == ticks) {
            return Some(index);
        }
        if !self.arrivals.is_new(sequence) {
            // A duplicate or late packet of a forgotten frame does not open one.
            self.stats.unusable += 1;
            return None;
        }
        let deadline = self.deadline(ticks);
        let over = self.adaptive.as_ref().is_some_and(|a| a.is_over(ticks));
        let missed = deadline < now || index < self.decided || over;
        let given_up =
            if missed && self.adaptive.is_some() { self.give_up_at_once(index, ticks, deadline) } else { deadline };
        let frame = FrameInPlayout {
            ticks,
            deadline,
            at: given_up,
            last_arrival: now,
            lowest: sequence,
            start: None,
            end: None,
            packets: 0,
            size: DataSize::ZERO,
            late: 0,
            is_from_capture: self.base.is_known,
            state: if missed { State::Missed } else { State::Open },
        };
        if index == self.frames.len() {
            self.frames.push_back(frame);
        } else {
            self.frames.insert(index, frame);
        }
        // A frame without packets in time is counted, but not announced after its playout time.
        self.announced += usize::from(missed && index <= self.announced);
        self.decided += usize::from(missed && index <= self.decided);
        if self.frames.len() > MAX_FRAMES {
            self.drop_oldest();
            return index.checked_sub(1);
        }
        Some(index)
    }

    /// Settles the frames whose deadline has passed, and with `at_deadline` those exactly at it.
    #[inline]
    fn decide(&mut self, now: Timestamp, at_deadline: bool) {
        if self.adaptive.is_some() {
            return self.decide_adaptive(now, at_deadline);
        }
        while let Some(f) = self.frames.get(self.decided) {
            if f.deadline > now || (f.deadline == now && !at_deadline) {
                break;
            }
            self.settle(f.deadline, f.is_whole(&self.arrivals));
        }
    }

    /// Plays the first undecided frame at `at` if it is complete, and gives it up otherwise.
    #[inline]
    fn settle(&mut self, at: Timestamp, whole: bool) {
        let f = &mut self.frames[self.decided];
        self.decided += 1;
        f.at = at;
        if f.state != State::Open {
            return;
        }
        f.state = State::Missed;
        if whole {
            f.state = State::Played;
            self.stats.played += 1;
            self.stats.played_size += f.size;
            self.stats.delay.add(f.last_arrival - (f.deadline - self.delay));
            self.stalls.on_played(at);
        }
    }

    /// Drops announced frames whose outcome can no longer change.
    fn forget(&mut self, now: Timestamp) {
        while self.announced > 0
            && self.frames.front().is_some_and(|f| f.state == State::Played || f.deadline + WATCHED < now)
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(f) = self.frames.front()
            && f.state != State::Played
        {
            self.stats.count_missed(f.is_whole(&self.arrivals));
        }
        self.frames.pop_front();
        self.announced = self.announced.saturating_sub(1);
        self.decided = self.decided.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests;
