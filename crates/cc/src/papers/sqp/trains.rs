//! Frames as packet trains: what arrived of each, how long it took, and the least delay.

use super::config::Config;
use crate::cue::{PacketResult, QueueState, SentPacket};
use crate::parts::frame_interval::{FrameInterval, GROUP};
use crate::parts::recent_least::RecentLeast;
use crate::parts::rtt;
use crate::parts::sent_frames::{Frame, SentFrames};
use std::collections::VecDeque;
use weir_units::{RemoteTimestamp, TimeDelta, Timestamp};

/// Age up to which the least delay counts for single packets.
const LONG_WINDOW: TimeDelta = TimeDelta::from_secs(10);
/// The window of the least delay before the first round trip (the program's `MinRttFilter`).
const FIRST_WINDOW: TimeDelta = TimeDelta::from_secs(1);
/// Weight of a new round trip in the smoothed one (RFC 6298, section 2).
const RTT_WEIGHT: f64 = 0.125;
/// Most trains that wait to be read.
const MAX_TRAINS: usize = 64;

/// The finding of a train; times in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Train {
    /// A frame of which packets arrived.
    Arrived {
        interval: f64,
        /// Bytes that arrived.
        received: u64,
        /// R_end - S_start - Δ_min.
        span: f64,
        /// R_end - R_start.
        receive: f64,
    },
    /// Single packets of about one frame interval.
    Single {
        interval: f64,
        /// Share of their bytes that arrived.
        arrived: f64,
        /// Delay of the last one above the least.
        queue: f64,
    },
    /// A frame of which nothing arrived.
    Lost,
}

/// Single packets that count as one train.
#[derive(Clone, Copy, Debug)]
struct Group {
    departure: Timestamp,
    sent: u64,
    received: u64,
    /// The one-way delay of its newest packet to arrive.
    delay: Option<TimeDelta>,
}

#[derive(Clone, Debug)]
pub(super) struct Trains {
    frames: SentFrames,
    least: RecentLeast,
    long_least: RecentLeast,
    smoothed_rtt: Option<TimeDelta>,
    interval: FrameInterval,
    group: Option<Group>,
    done: VecDeque<Train>,
}

impl Trains {
    pub(super) fn new() -> Self {
        Self {
            frames: SentFrames::new(),
            least: RecentLeast::default(),
            long_least: RecentLeast::default(),
            smoothed_rtt: None,
            interval: FrameInterval::new(),
            group: None,
            done: VecDeque::with_capacity(MAX_TRAINS),
        }
    }

    /// The mean frame interval, in seconds.
    pub(super) fn interval(&self) -> f64 {
        self.interval.seconds()
    }

    /// Age up to which a one-way delay counts for the least.
    pub(super) fn window(&self, config: &Config) -> TimeDelta {
        let round_trip = |rtt: TimeDelta| TimeDelta::from_secs_f64(config.delay_window * rtt.as_secs_f64());
        self.smoothed_rtt.map_or(FIRST_WINDOW, round_trip)
    }

    pub(super) fn on_queued(&mut self, q: &QueueState) {
        self.frames.on_queued(q.added, q.now);
    }

    pub(super) fn on_sent(&mut self, p: &SentPacket) {
        let Some(queued_at) = self.frames.on_sent(p) else { return };
        self.interval.on_frame(queued_at, p.now);
    }

    pub(super) fn on_report(&mut self, rtt: Option<TimeDelta>) {
        let Some(rtt) = rtt.map(rtt::bounded) else { return };
        let smoothed = self.smoothed_rtt.get_or_insert(rtt);
        *smoothed += TimeDelta::from_secs_f64(RTT_WEIGHT * (rtt - *smoothed).as_secs_f64());
    }

    /// A packet is reported; read [`Self::take`] after each.
    pub(super) fn on_fate(&mut self, config: &Config, p: &PacketResult, now: Timestamp) {
        if let Some(arrival) = p.arrival {
            let delay = one_way(p.departure, arrival);
            self.least.observe(delay, now, self.window(config));
            self.long_least.observe(delay, now, LONG_WINDOW);
        }
        while let Some(frame) = self.frames.take_before(p.sequence) {
            self.on_frame(&frame, now);
        }
        self.frames.on_fate(p);
    }

    /// All packets of a report have been read.
    pub(super) fn on_report_end(&mut self, now: Timestamp) {
        if let Some(frame) = self.frames.take_reported() {
            self.on_frame(&frame, now);
        }
    }

    /// The next train that is measured.
    pub(super) fn take(&mut self) -> Option<Train> {
        self.done.pop_front()
    }

    fn finish(&mut self, train: Train) {
        if self.done.len() == MAX_TRAINS {
            self.done.pop_front();
        }
        self.done.push_back(train);
    }

    /// All packets of a frame are reported, or one of a later frame is.
    fn on_frame(&mut self, f: &Frame, now: Timestamp) {
        if f.packets < 2 {
            if !self.interval.has_frames(now) {
                self.on_single(f);
            }
            return;
        }
        self.group = None;
        let (Some(end), Some(least)) = (f.newest_arrival, self.least.get()) else {
            self.finish(Train::Lost);
            return;
        };
        let span = (one_way(f.departure, end) - least).as_secs_f64();
        let receive = f.first_arrival.map_or(span, |start| (end - start).as_secs_f64()).max(0.0);
        self.finish(Train::Arrived { interval: self.interval.seconds(), received: f.received, span, receive });
    }

    /// A frame of one packet where all are: those of [`GROUP`] count as one.
    fn on_single(&mut self, f: &Frame) {
        let before = self.group.filter(|g| f.departure.saturating_since(g.departure).as_secs_f64() < GROUP);
        if let (None, Some(g)) = (before, self.group) {
            let passed = f.departure.saturating_since(g.departure).as_secs_f64();
            self.interval.on_group(passed);
            let train = match (g.delay, self.long_least.get()) {
                (Some(delay), Some(least)) => Train::Single {
                    interval: self.interval.seconds(),
                    arrived: g.received as f64 / g.sent.max(1) as f64,
                    queue: (delay - least).as_secs_f64().max(0.0),
                },
                _ => Train::Lost,
            };
            self.finish(train);
        }
        let mut g = before.unwrap_or(Group { departure: f.departure, sent: 0, received: 0, delay: None });
        g.sent = g.sent.saturating_add(f.bytes);
        g.received = g.received.saturating_add(f.received);
        g.delay = f.newest_arrival.map(|arrival| one_way(f.departure, arrival)).or(g.delay);
        self.group = Some(g);
    }
}

/// A packet's one-way delay, with the difference of the clocks.
fn one_way(departure: Timestamp, arrival: RemoteTimestamp) -> TimeDelta {
    TimeDelta::from_nanos(arrival.as_nanos().saturating_sub(departure.as_nanos()))
}
