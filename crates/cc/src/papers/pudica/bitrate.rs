//! The bitrate by the smoothed utilisation (section 4.2) and by that of single frames (section 4.3).

use super::config::Config;
use super::equations::{Sample, draining, increase, smoothed, step};
use super::probing::Measured;
use std::collections::VecDeque;
use weir_units::{RemoteTimestamp, TimeDelta, Timestamp};

/// Consecutive frames with a utilisation above one from which on the queue is drained (section 4.3).
const CONGESTED: u32 = 3;
/// Most frames in the window.
const MAX_SAMPLES: usize = 256;

/// A frame of the last window.
#[derive(Clone, Copy, Debug)]
struct Recent {
    at: Timestamp,
    arrival: RemoteTimestamp,
    sent: u64,
    received: u64,
    sample: Sample,
}

/// Bytes received since frames began to have a utilisation above one.
#[derive(Clone, Copy, Debug)]
struct Congestion {
    /// Arrival of the frame before the first of them.
    since: RemoteTimestamp,
    received: u64,
    frames: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Bitrate {
    /// B, in bit/s.
    bps: f64,
    recent: VecDeque<Recent>,
    /// The smoothed utilisation at the last frame.
    smoothed: Option<f64>,
    last_arrival: Option<RemoteTimestamp>,
    congestion: Option<Congestion>,
    is_draining: bool,
    /// When the bitrate was last set: frames that were encoded before say nothing of it.
    adjusted_at: Timestamp,
    /// Tau, and when it was last zero.
    frames: u32,
    restarted_at: Timestamp,
    /// Whether the next frame is to be smaller.
    falls_back: bool,
}

impl Bitrate {
    pub(super) fn new(bps: f64, now: Timestamp) -> Self {
        Self {
            bps,
            recent: VecDeque::with_capacity(MAX_SAMPLES),
            smoothed: None,
            last_arrival: None,
            congestion: None,
            is_draining: false,
            adjusted_at: now,
            frames: 0,
            restarted_at: now,
            falls_back: false,
        }
    }

    /// The bitrate for the next frame, in bit/s.
    pub(super) fn next(&self, config: &Config) -> f64 {
        if self.falls_back { self.bps * (1.0 - config.fallback) } else { self.bps }
    }
    pub(super) fn smoothed(&self) -> Option<f64> {
        self.smoothed
    }
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Keeps the bitrate within the application's bounds.
    pub(super) fn bound(&mut self, least: f64, most: f64) {
        self.bps = self.bps.min(most).max(least);
    }

    /// A frame has been encoded: a fallback is over. `is_late` if the next report has been awaited for too long.
    pub(super) fn on_encoded(&mut self, is_late: bool) {
        self.falls_back = is_late;
    }

    /// No reports come.
    pub(super) fn on_silence(&mut self, now: Timestamp) {
        self.bps /= 2.0;
        self.adjusted_at = now;
    }

    /// A frame is measured. `queued` gives the bytes in flight beyond what a receiving rate (bit/s) explains; `greatest` is B_max.
    pub(super) fn on_frame(
        &mut self,
        config: &Config,
        m: &Measured,
        queued: impl Fn(f64) -> f64,
        greatest: f64,
        now: Timestamp,
    ) {
        self.remember(config, m, now);
        self.frames = self.frames.saturating_add(1);
        self.smoothed = smoothed(self.recent.iter().map(|r| r.sample), self.bps);
        if self.smoothed.is_some_and(|r| r > 1.0) || now - self.restarted_at > config.restart {
            self.restart(now);
        }
        if m.utilisation > 1.0 {
            self.on_congested(config, m, queued, now);
        } else {
            self.congestion = None;
            if core::mem::take(&mut self.is_draining) {
                self.recover(now);
            } else if m.queued_at >= self.adjusted_at {
                self.adjust(config, greatest, now);
            }
        }
        if m.arrival.is_some() {
            self.last_arrival = m.arrival;
        }
    }

    fn remember(&mut self, config: &Config, m: &Measured, now: Timestamp) {
        while self.recent.front().is_some_and(|r| now - r.at > config.window) || self.recent.len() == MAX_SAMPLES {
            self.recent.pop_front();
        }
        let Some(arrival) = m.arrival.filter(|_| m.received > 0) else { return };
        let sample = Sample { utilisation: m.utilisation, bps: m.received as f64 * 8.0 / m.interval };
        self.recent.push_back(Recent { at: now, arrival, sent: m.sent, received: m.received, sample });
    }

    /// Share of the window's bytes that arrived.
    fn arrived(&self) -> f64 {
        let of = |bytes: fn(&Recent) -> u64| self.recent.iter().map(bytes).sum::<u64>() as f64;
        of(|r| r.received) / of(|r| r.sent).max(1.0)
    }

    /// The receiving rate of the window, in bit/s.
    fn receiving(&self) -> Option<f64> {
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        let bytes: u64 = self.recent.iter().skip(1).map(|r| r.received).sum();
        rate(bytes, first.arrival, last.arrival)
    }

    fn restart(&mut self, now: Timestamp) {
        (self.frames, self.restarted_at) = (0, now);
    }

    /// A frame with a utilisation above one.
    fn on_congested(&mut self, config: &Config, m: &Measured, queued: impl Fn(f64) -> f64, now: Timestamp) {
        let since = self.last_arrival.or(m.arrival);
        if let (None, Some(since)) = (self.congestion, since) {
            self.congestion = Some(Congestion { since, received: 0, frames: 0 });
        }
        let Some(c) = &mut self.congestion else {
            self.falls_back = true;
            return;
        };
        // The first frame of all is where the time begins.
        let counted = if self.last_arrival.is_some() { m.received } else { 0 };
        c.received = c.received.saturating_add(counted);
        c.frames = c.frames.saturating_add(1);
        if c.frames < CONGESTED {
            self.falls_back = true;
            return;
        }
        let newest = m.arrival.or(self.last_arrival).unwrap_or(c.since);
        let receiving = rate(c.received, c.since, newest).unwrap_or(0.0);
        self.bps = draining(config, receiving, queued(receiving));
        (self.is_draining, self.falls_back) = (true, false);
        self.adjusted_at = now;
    }

    /// The queue is gone: back to what was received, in one step.
    fn recover(&mut self, now: Timestamp) {
        self.bps = self.receiving().unwrap_or(self.bps).max(self.bps);
        self.adjusted_at = now;
        self.recent.clear();
        self.restart(now);
    }

    fn adjust(&mut self, config: &Config, greatest: f64, now: Timestamp) {
        let Some(r) = self.smoothed else { return };
        if r <= config.threshold {
            self.bps *= 1.0 + increase(config, r);
        } else if r > 1.0 && r * self.arrived() <= 1.0 {
            // Only losses bring it above one: the queue is too short to tell, and an increase would be lost too.
            self.bps *= 1.0 - config.decrease;
        } else {
            self.bps += step(config, self.bps, greatest, self.frames);
        }
        self.adjusted_at = now;
    }
}

/// `bytes` over the time between two arrivals, in bit/s.
fn rate(bytes: u64, from: RemoteTimestamp, to: RemoteTimestamp) -> Option<f64> {
    let passed = TimeDelta::from_nanos(to.as_nanos().saturating_sub(from.as_nanos()));
    (passed > TimeDelta::ZERO).then(|| bytes as f64 * 8.0 / passed.as_secs_f64())
}
