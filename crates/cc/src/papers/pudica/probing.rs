//! Frames as probes (section 4.1): the utilisation that each has seen, with what the probe packets after it add.

use super::config::Config;
use super::equations::{pace, probe_delay, utilisation};
use crate::cue::{PacketResult, QueueState, SentPacket};
use crate::parts::frame_interval::{FrameInterval, GROUP};
use crate::parts::recent_least::RecentLeast;
use crate::parts::sent_frames::{Frame, SentFrames};
use std::collections::VecDeque;
use weir_units::{RemoteTimestamp, TimeDelta, Timestamp};

/// The pace multiplier before the first frame is reported: that of section 2.1's example.
const FIRST_PACE: f64 = 2.0;
/// Greatest pace multiplier: a frame's packets then follow each other at what an interval of 60 Hz sends in 1.3 ms.
const GREATEST_PACE: f64 = 12.5;
/// Bytes of a probe packet: RTP's header with an extension, and the count of padding (RFC 3550, RFC 8285).
const PROBE: f64 = 21.0;
/// Most frames whose probes are remembered, and most frames that wait to be read.
const MAX_FRAMES: usize = 64;
const MAX_PROBES: usize = 8;

/// The finding of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// When it entered the queue between encoder and pacer.
    pub(super) queued_at: Timestamp,
    /// When the last of its packets to arrive did so; `None` if none has.
    pub(super) arrival: Option<RemoteTimestamp>,
    /// Bytes sent, and those that arrived.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// L, in seconds.
    pub(super) interval: f64,
    /// R, corrected by the probes.
    pub(super) utilisation: f64,
}

/// The probes after a frame.
#[derive(Clone, Copy, Debug)]
struct Train {
    /// Number of the frame's last packet.
    last: u64,
    /// T_packet, in seconds.
    spacing: f64,
    planned: u32,
    next_at: Timestamp,
    sent: usize,
    numbers: [u64; MAX_PROBES],
}

/// A frame that waits for its probes' reports.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    measured: Measured,
    last: u64,
    planned: u32,
    reported: u32,
}

/// Single packets that count as one frame.
#[derive(Clone, Copy, Debug)]
struct Group {
    departure: Timestamp,
    queued_at: Timestamp,
    sent: u64,
    received: u64,
    /// The one-way delay of its newest packet to arrive, and when that was.
    delay: Option<(TimeDelta, RemoteTimestamp)>,
}

#[derive(Clone, Debug)]
pub(super) struct Probing {
    frames: SentFrames,
    least_delay: RecentLeast,
    /// L.
    interval: FrameInterval,
    group: Option<Group>,
    trains: VecDeque<Train>,
    waiting: Option<Waiting>,
    done: VecDeque<Measured>,
    /// Rho.
    pace: f64,
}

impl Probing {
    pub(super) fn new() -> Self {
        Self {
            frames: SentFrames::new(),
            least_delay: RecentLeast::default(),
            interval: FrameInterval::new(),
            group: None,
            trains: VecDeque::with_capacity(MAX_FRAMES),
            waiting: None,
            done: VecDeque::with_capacity(MAX_FRAMES),
            pace: FIRST_PACE,
        }
    }

    /// L, in seconds.
    pub(super) fn interval(&self) -> f64 {
        self.interval.seconds()
    }
    /// Rho.
    pub(super) fn pace(&self) -> f64 {
        self.pace
    }

    pub(super) fn on_queued(&mut self, q: &QueueState) {
        self.frames.on_queued(q.added, q.now);
    }

    pub(super) fn on_sent(&mut self, config: &Config, p: &SentPacket) {
        if p.is_padding
            && p.probe != 0
            && let Some(t) = self.trains.back_mut().filter(|t| t.sent < MAX_PROBES)
        {
            t.numbers[t.sent] = p.sequence;
            t.sent += 1;
        }
        if let Some(queued_at) = self.frames.on_sent(p) {
            self.interval.on_frame(queued_at, p.now);
        }
        let is_media = !(p.is_padding || p.is_repair || p.is_retransmission);
        if is_media && p.queued.is_zero() {
            self.plan_probes(config, p.now);
        }
    }

    /// A frame has left: its probes are spread over the rest of the interval.
    fn plan_probes(&mut self, config: &Config, now: Timestamp) {
        let Some(frame) = self.frames.newest().filter(|f| f.packets > 1) else { return };
        let most = config.probe_share * frame.bytes as f64 / PROBE;
        let planned = (most as u32).min(config.probes).min(MAX_PROBES as u32);
        let left = self.interval.seconds() - now.saturating_since(frame.departure).as_secs_f64();
        if planned == 0 || left <= 0.0 {
            return;
        }
        let spacing = left / f64::from(planned + 1);
        if self.trains.len() == MAX_FRAMES {
            self.trains.pop_front();
        }
        self.trains.push_back(Train {
            last: frame.last,
            spacing,
            planned,
            next_at: now + TimeDelta::from_secs_f64(spacing),
            sent: 0,
            numbers: [0; MAX_PROBES],
        });
    }

    /// When the next probe is to be sent.
    pub(super) fn next_probe(&self) -> Option<Timestamp> {
        let train = self.trains.back().filter(|t| t.planned > 0)?;
        Some(train.next_at)
    }

    /// Whether the time of [`Self::next_probe`] has come; then it is the next one's.
    pub(super) fn on_probe_due(&mut self, now: Timestamp) -> bool {
        let Some(train) = self.trains.back_mut().filter(|t| t.planned > 0 && t.next_at <= now) else { return false };
        train.planned -= 1;
        train.next_at = now + TimeDelta::from_secs_f64(train.spacing).max(TimeDelta::from_micros(1));
        true
    }

    /// How long ago the first packet of the oldest frame that is not reported was sent (*next delay*, section 4.3).
    pub(super) fn next_delay(&self, now: Timestamp) -> Option<TimeDelta> {
        Some(now.saturating_since(self.frames.oldest()?.departure))
    }

    /// A packet is reported; read [`Self::take`] after each.
    pub(super) fn on_fate(&mut self, config: &Config, p: &PacketResult, now: Timestamp) {
        if let Some(arrival) = p.arrival {
            self.least_delay.observe(one_way(p.departure, arrival), now, config.delay_window);
        }
        while let Some(frame) = self.frames.take_before(p.sequence) {
            self.on_frame(&frame, now);
        }
        self.on_probe_fate(p);
        self.frames.on_fate(p);
    }

    /// All packets of a report have been read.
    pub(super) fn on_report_end(&mut self, now: Timestamp) {
        if let Some(frame) = self.frames.take_reported() {
            self.on_frame(&frame, now);
        }
    }

    /// The next frame that is measured.
    pub(super) fn take(&mut self, config: &Config) -> Option<Measured> {
        let measured = self.done.pop_front()?;
        if measured.arrival.is_some() {
            self.pace = pace(config, measured.utilisation, GREATEST_PACE);
        }
        Some(measured)
    }

    fn finish(&mut self, measured: Measured) {
        if self.done.len() == MAX_FRAMES {
            self.done.pop_front();
        }
        self.done.push_back(measured);
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
        if let Some(waiting) = self.waiting.take() {
            self.finish(waiting.measured);
        }
        let measured = self.measure(f.queued_at, f.departure, f.newest_arrival, [f.bytes, f.received]);
        while self.trains.front().is_some_and(|t| t.last < f.last) {
            self.trains.pop_front();
        }
        let train = self.trains.front().filter(|t| t.last == f.last);
        match train {
            // A queue that lasts until the next frame leaves nothing for probes to find.
            Some(t) if measured.utilisation < 1.0 && measured.arrival.is_some() => {
                let planned = t.planned + t.sent as u32;
                self.waiting = Some(Waiting { measured, last: f.last, planned, reported: 0 });
            }
            _ => self.finish(measured),
        }
    }

    fn measure(
        &self,
        queued_at: Timestamp,
        departure: Timestamp,
        arrival: Option<RemoteTimestamp>,
        [sent, received]: [u64; 2],
    ) -> Measured {
        let interval = self.interval.seconds();
        let utilisation = match (arrival, self.least_delay.get()) {
            (Some(arrival), Some(least)) => {
                utilisation(one_way(departure, arrival).as_secs_f64(), least.as_secs_f64(), interval)
            }
            // Nothing of it has arrived: more than the link takes.
            _ => f64::INFINITY,
        };
        Measured { queued_at, arrival, sent, received, interval, utilisation }
    }

    /// A frame of one packet where all are: those of [`GROUP`] count as one, whose delay is that of its last packet.
    fn on_single(&mut self, f: &Frame) {
        let before = self.group.filter(|g| f.departure.saturating_since(g.departure).as_secs_f64() < GROUP);
        if let (None, Some(g)) = (before, self.group) {
            let passed = f.departure.saturating_since(g.departure).as_secs_f64();
            self.interval.on_group(passed);
            let departure = g.delay.map_or(g.departure, |(delay, at)| sent_at(at, delay));
            let measured = self.measure(g.queued_at, departure, g.delay.map(|d| d.1), [g.sent, g.received]);
            self.finish(measured);
        }
        let mut g = before.unwrap_or(Group {
            departure: f.departure,
            queued_at: f.queued_at,
            sent: 0,
            received: 0,
            delay: None,
        });
        g.sent = g.sent.saturating_add(f.bytes);
        g.received = g.received.saturating_add(f.received);
        if let Some(arrival) = f.newest_arrival {
            g.delay = Some((one_way(f.departure, arrival), arrival));
        }
        self.group = Some(g);
    }

    /// A packet may be a probe after the frame that waits (equations 3 to 5).
    fn on_probe_fate(&mut self, p: &PacketResult) {
        let Some(w) = &mut self.waiting else { return };
        let train = self.trains.front().filter(|t| t.last == w.last && t.numbers[..t.sent].contains(&p.sequence));
        let (Some(train), Some(least), Some(frame)) = (train, self.least_delay.get(), w.measured.arrival) else {
            return;
        };
        if p.was_lost {
            return;
        }
        w.reported += 1;
        if let Some(arrival) = p.arrival {
            let queueing = (one_way(p.departure, arrival) - least).as_secs_f64();
            let since = TimeDelta::from_nanos(arrival.as_nanos().saturating_sub(frame.as_nanos())).as_secs_f64();
            w.measured.utilisation += probe_delay(queueing, since, train.spacing) / w.measured.interval;
        }
        if w.reported >= w.planned {
            let measured = w.measured;
            self.waiting = None;
            self.finish(measured);
        }
    }
}

/// A packet's one-way delay, with the difference of the clocks.
fn one_way(departure: Timestamp, arrival: RemoteTimestamp) -> TimeDelta {
    TimeDelta::from_nanos(arrival.as_nanos().saturating_sub(departure.as_nanos()))
}

/// The departure of a packet with this one-way delay.
fn sent_at(arrival: RemoteTimestamp, delay: TimeDelta) -> Timestamp {
    Timestamp::from_nanos(arrival.as_nanos().saturating_sub(delay.as_nanos()))
}
