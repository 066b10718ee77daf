//! A model of one link in steps of a millisecond: drop-tail, delay both ways, feedback, and a loss-based flow beside the call.

use crate::controller::Controller;
use crate::cue::{Cue, QueueState, SentPacket, TransportFeedback};
use crate::flow::history::{ReportedPacket, SentHistory};
use crate::flow::pacer::{Pacer, PacerDecision};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_units::{DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Bytes of every packet, but for probes without payload.
pub(crate) const PACKET: u64 = 1_000;
/// Bytes of those: RTP's header, an extension and the count.
const LITTLE: u64 = 21;
const STEP: TimeDelta = TimeDelta::from_millis(1);

/// A loss-based flow on the same link: slow start, one packet more per round trip, halved on loss.
#[derive(Default)]
pub(crate) struct Reno {
    from_ms: i64,
    until_ms: i64,
    window: f64,
    threshold: f64,
    in_flight: f64,
    /// Times at which each packet's arrival or loss is known.
    acks: std::collections::VecDeque<i64>,
    losses: std::collections::VecDeque<i64>,
    recovers_at: i64,
}
impl Reno {
    pub(crate) fn between(from_ms: i64, until_ms: i64) -> Self {
        Self { from_ms, until_ms, window: 2.0, threshold: f64::MAX, ..Self::default() }
    }
    fn tick(&mut self, ms: i64) {
        while self.acks.front().is_some_and(|&t| t <= ms) {
            self.acks.pop_front();
            self.in_flight -= 1.0;
            self.window += if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
        }
        while self.losses.front().is_some_and(|&t| t <= ms) {
            self.losses.pop_front();
            self.in_flight -= 1.0;
            if ms >= self.recovers_at {
                self.window = (self.window / 2.0).max(2.0);
                self.threshold = self.window;
                self.recovers_at = ms + 500;
            }
        }
    }
    fn sends(&self, ms: i64) -> bool {
        ms >= self.from_ms && ms < self.until_ms && self.in_flight + 1.0 <= self.window
    }
}

pub(crate) struct Link {
    /// Capacity in kbit/s at a time in ms.
    pub(crate) capacity: fn(i64) -> u64,
    pub(crate) buffer: u64,
    pub(crate) loss: f64,
    /// Feedback messages are lost in this span of ms.
    pub(crate) silent: (i64, i64),
    /// Ratio of the encoder's rate to the target.
    pub(crate) encoder: fn(i64) -> f64,
    /// One way, in ms; feedback takes twice that.
    pub(crate) one_way: i64,
    /// Interval of feedback, in ms.
    pub(crate) feedback: i64,
    /// Whether the pacer's times are exact rather than those of the steps, which are too coarse for a pacing rate near
    /// the target.
    pub(crate) is_exact: bool,
    /// Queueing delay above which packets are marked CE, in ms.
    pub(crate) marks_above_ms: f64,
}
impl Link {
    pub(crate) const DEFAULT: Self = Self {
        capacity: |_| 1_000,
        buffer: 75_000,
        loss: 0.0,
        silent: (0, 0),
        encoder: |_| 1.0,
        one_way: 100,
        feedback: 100,
        is_exact: false,
        marks_above_ms: f64::INFINITY,
    };
}
impl Default for Link {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[derive(Default, Clone, Copy, PartialEq, Debug)]
pub(crate) struct Second {
    /// Mean target in kbit/s.
    pub(crate) target: f64,
    /// Rate of bytes that arrived, in kbit/s.
    pub(crate) received: f64,
    /// Mean and maximum queueing delay, in ms.
    pub(crate) queue: f64,
    pub(crate) max_queue: f64,
    /// Mean age of the oldest packet between encoder and pacer, in ms.
    pub(crate) waiting: f64,
    pub(crate) probes: u32,
    /// Packets sent, and those of padding among them.
    pub(crate) sent: u32,
    pub(crate) padded: u32,
}

fn bytes(packets: usize) -> DataSize {
    DataSize::from_bytes(packets as u64 * PACKET)
}

/// Runs in steps of 1 ms, with an ideal codec at 50 frames per second.
pub(crate) fn run_with(c: &mut dyn Controller, link: &Link, seconds: i64, cross: &mut Reno) -> Vec<Second> {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let mut history = SentHistory::new();
    let mut pacer = Pacer::new(&c.target(), Timestamp::ZERO);
    // When each packet entered the queue between encoder and pacer.
    let mut waiting = std::collections::VecDeque::<i64>::new();
    let mut made = 0.0;
    let mut next_sequence = 0;
    // (sequence, size) in the queue; no sequence number for the other flow's packets.
    let mut queue = std::collections::VecDeque::<(Option<u64>, u64)>::new();
    let (mut queued, mut credit) = (0u64, 0.0);
    let mut arrived: Vec<ReportedPacket> = vec![];
    let mut highest = 0;
    let mut reported = 0;
    let mut on_way_back: std::collections::VecDeque<(i64, Vec<ReportedPacket>)> = Default::default();
    let mut results = vec![];
    let mut seconds_seen = vec![Second::default(); seconds as usize];
    for ms in 0..seconds * 1_000 {
        let now = Timestamp::from_millis(ms);
        let s = &mut seconds_seen[(ms / 1_000) as usize];
        if let Some((t, _)) = c.poll_timeout()
            && t <= now
        {
            c.on_timeout(now);
            assert!(c.poll_timeout().is_none_or(|(t, _)| t > now));
        }
        if on_way_back.front().is_some_and(|(t, _)| *t <= ms) {
            let (_, reports) = on_way_back.pop_front().expect("seen");
            history.resolve(reports, &mut results);
            let rtt = results.iter().rfind(|p| p.arrival.is_some()).map(|p| now - p.departure);
            let f = TransportFeedback { now, packets: &results, bytes_in_flight: history.bytes_in_flight(), rtt };
            c.on_cue(&Cue::TransportFeedback(f));
        }
        while let Some(p) = c.poll_probe(now) {
            s.probes += 1;
            pacer.add_probe(p, now);
        }
        let target = c.target();
        pacer.set_target(&target, now);
        s.target += target.media_rate.as_kbps_f64() / 1e3;
        if ms % 20 == 0 {
            made += target.media_rate.as_bps_f64() / 8.0 * 0.02 * (link.encoder)(ms);
            let packets = (made / PACKET as f64) as usize;
            waiting.extend(std::iter::repeat_n(ms, packets));
            made %= PACKET as f64;
            let oldest_age = TimeDelta::from_millis(ms - waiting.front().unwrap_or(&ms));
            c.on_queue(&QueueState { now, added: bytes(packets), queued: bytes(waiting.len()), oldest_age });
        }
        let target = c.target();
        pacer.set_target(&target, now);
        s.waiting += (ms - waiting.front().unwrap_or(&ms)) as f64 / 1e3;
        let (mut at, mut sent, mut padded) = (now, 0u32, 0u32);
        loop {
            let (probe, is_padding) = match pacer.poll(at, !waiting.is_empty()) {
                PacerDecision::Media { probe } => (probe, false),
                PacerDecision::Padding { probe } => (probe, true),
                PacerDecision::Wait(t) if link.is_exact && t < now + STEP => {
                    at = t;
                    continue;
                }
                PacerDecision::Wait(_) | PacerDecision::Idle => break,
            };
            let bytes_sent = if is_padding && pacer.pads_little() { LITTLE } else { PACKET };
            let size = DataSize::from_bytes(bytes_sent);
            let flight = history.bytes_in_flight();
            if target.window.is_some_and(|w| flight + size > w && !flight.is_zero()) {
                pacer.stop_waiting();
                break;
            }
            (sent, padded) = (sent + 1, padded + u32::from(is_padding));
            if !is_padding {
                waiting.pop_front();
            }
            pacer.on_sent(at, size, is_padding, probe);
            let mut p = SentPacket {
                is_padding,
                probe,
                queued: bytes(waiting.len()),
                ..SentPacket::media(at, next_sequence, size)
            };
            history.on_sent(&p);
            p.bytes_in_flight = history.bytes_in_flight();
            c.on_packet_sent(&p);
            if queued + bytes_sent <= link.buffer {
                queue.push_back((Some(next_sequence), bytes_sent));
                queued += bytes_sent;
            }
            next_sequence += 1;
        }
        s.sent += sent;
        s.padded += padded;
        cross.tick(ms);
        while cross.sends(ms) {
            cross.in_flight += 1.0;
            if queued + PACKET <= link.buffer {
                queue.push_back((None, PACKET));
                queued += PACKET;
            } else {
                cross.losses.push_back(ms + 2 * link.one_way + (queued * 8 / (link.capacity)(ms)) as i64);
            }
        }
        let capacity = (link.capacity)(ms) as f64;
        credit += capacity;
        while let Some(&(sequence, size)) = queue.front() {
            if credit < size as f64 * 8.0 {
                break;
            }
            credit -= size as f64 * 8.0;
            queue.pop_front();
            queued -= size;
            if let Some(sequence) = sequence {
                highest = sequence;
                if rng.random::<f64>() >= link.loss {
                    s.received += size as f64 * 8.0 / 1e3;
                    let arrival = Some(RemoteTimestamp::from_millis(77_000 + ms + link.one_way));
                    let is_marked = queued as f64 * 8.0 / capacity > link.marks_above_ms;
                    let ecn = if is_marked { Ecn::Ce } else { Ecn::NotEct };
                    arrived.push(ReportedPacket { sequence, arrival, ecn });
                }
            } else {
                cross.acks.push_back(ms + 2 * link.one_way);
            }
        }
        if queue.is_empty() {
            credit = credit.min(0.0);
        }
        let wait = queued as f64 * 8.0 / capacity;
        s.queue += wait / 1e3;
        s.max_queue = s.max_queue.max(wait);
        if ms % link.feedback == link.feedback - 1 && !arrived.is_empty() {
            let lost = (reported..=highest)
                .filter(|&q| !arrived.iter().any(|a| a.sequence == q))
                .map(|sequence| ReportedPacket { sequence, arrival: None, ecn: Ecn::NotEct })
                .collect::<Vec<_>>();
            reported = highest + 1;
            let mut all = std::mem::take(&mut arrived);
            all.extend(lost);
            all.sort_by_key(|r| r.sequence);
            if ms < link.silent.0 || ms >= link.silent.1 {
                on_way_back.push_back((ms + 2 * link.one_way, all));
            }
        }
    }
    seconds_seen
}

pub(crate) fn mean(s: &[Second], f: fn(&Second) -> f64) -> f64 {
    s.iter().map(f).sum::<f64>() / s.len() as f64
}

#[track_caller]
pub(crate) fn assert_between(what: &str, got: f64, low: f64, high: f64) {
    assert!(got >= low && got <= high, "{what}: {got:.1} is not in {low} to {high}");
}
