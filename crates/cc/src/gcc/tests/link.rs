//! A model of one link in steps of a millisecond: drop-tail, delay both ways, feedback, and a loss-based flow beside the call.

use super::PACKET;
use crate::controller::Controller;
use crate::cue::{Cue, SentPacket, TransportFeedback};
use crate::gcc::Gcc;
use crate::history::{ReportedPacket, SentHistory};
use crate::pacer::{Pacer, PacerDecision};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_units::{DataSize, Ecn, RemoteTimestamp, Timestamp};

/// A loss-based flow on the same link: slow start, one packet more per round trip, halved on loss.
#[derive(Default)]
pub(super) struct Reno {
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
    pub(super) fn between(from_ms: i64, until_ms: i64) -> Self {
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

pub(super) struct Link {
    /// Capacity in kbit/s at a time in ms.
    pub(super) capacity: fn(i64) -> u64,
    pub(super) buffer: u64,
    pub(super) loss: f64,
    /// Feedback messages are lost in this span of ms.
    pub(super) silent: (i64, i64),
    /// Ratio of the encoder's rate to the target.
    pub(super) encoder: fn(i64) -> f64,
}
impl Default for Link {
    fn default() -> Self {
        Self { capacity: |_| 1_000, buffer: 75_000, loss: 0.0, silent: (0, 0), encoder: |_| 1.0 }
    }
}

#[derive(Default, Clone, Copy)]
pub(super) struct Second {
    /// Mean target in kbit/s.
    pub(super) target: f64,
    /// Rate of bytes that arrived, in kbit/s.
    pub(super) received: f64,
    /// Mean and maximum queueing delay, in ms.
    pub(super) queue: f64,
    pub(super) max_queue: f64,
    pub(super) probes: u32,
}

/// Runs in steps of 1 ms: 100 ms one way, feedback every 100 ms, an ideal codec at 50 frames per second.
pub(super) fn run_with(c: &mut Gcc, link: &Link, seconds: i64, cross: &mut Reno) -> Vec<Second> {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let mut history = SentHistory::new();
    let mut pacer = Pacer::new(&c.target(), Timestamp::ZERO);
    let mut waiting = 0u64;
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
            waiting += (made / PACKET as f64) as u64;
            made %= PACKET as f64;
        }
        loop {
            let (probe, is_padding) = match pacer.poll(now, waiting > 0) {
                PacerDecision::Media { probe } => (probe, false),
                PacerDecision::Padding { probe } => (probe, true),
                PacerDecision::Wait(_) | PacerDecision::Idle => break,
            };
            waiting -= u64::from(!is_padding);
            let size = DataSize::from_bytes(PACKET);
            pacer.on_sent(now, size, is_padding, probe);
            let mut p = SentPacket {
                is_padding,
                probe,
                queued: DataSize::from_bytes(waiting * PACKET),
                ..SentPacket::media(now, next_sequence, size)
            };
            history.on_sent(&p);
            p.bytes_in_flight = history.bytes_in_flight();
            c.on_packet_sent(&p);
            if queued + PACKET <= link.buffer {
                queue.push_back((Some(next_sequence), PACKET));
                queued += PACKET;
            }
            next_sequence += 1;
        }
        cross.tick(ms);
        while cross.sends(ms) {
            cross.in_flight += 1.0;
            if queued + PACKET <= link.buffer {
                queue.push_back((None, PACKET));
                queued += PACKET;
            } else {
                cross.losses.push_back(ms + 200 + (queued * 8 / (link.capacity)(ms)) as i64);
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
                    let arrival = Some(RemoteTimestamp::from_millis(77_000 + ms + 100));
                    arrived.push(ReportedPacket { sequence, arrival, ecn: Ecn::NotEct });
                }
            } else {
                cross.acks.push_back(ms + 200);
            }
        }
        if queue.is_empty() {
            credit = credit.min(0.0);
        }
        let wait = queued as f64 * 8.0 / capacity;
        s.queue += wait / 1e3;
        s.max_queue = s.max_queue.max(wait);
        if ms % 100 == 99 && !arrived.is_empty() {
            let lost = (reported..=highest)
                .filter(|&q| !arrived.iter().any(|a| a.sequence == q))
                .map(|sequence| ReportedPacket { sequence, arrival: None, ecn: Ecn::NotEct })
                .collect::<Vec<_>>();
            reported = highest + 1;
            let mut all = std::mem::take(&mut arrived);
            all.extend(lost);
            all.sort_by_key(|r| r.sequence);
            if ms < link.silent.0 || ms >= link.silent.1 {
                on_way_back.push_back((ms + 200, all));
            }
        }
    }
    seconds_seen
}
