//! The data sender: see the rules in [`super`].

use super::Config;
use crate::ccid::ccid3::{self, AnySize, Schedule, Smoothed};
use crate::ccid::{Acknowledgement, CcidSender, Chunk, Permission, SentPacket, Setup};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Weight of a chunk in the mean: one or two seconds of frames.
const MEMORY: f64 = 1.0 / 32.0;
/// A chunk of more than this multiple of the mean may take longer than its interval.
const LARGE: f64 = 2.0;

/// A busy period: data is waiting.
#[derive(Clone, Copy, Debug)]
struct Busy {
    /// t_0.
    since: Timestamp,
    /// T.
    ramp: TimeDelta,
}

/// The sender's half. Rates in bits per second.
#[derive(Clone, Debug)]
pub struct Sender {
    tfrc: ccid3::Sender,
    config: Config,
    /// By X_v (rule 3), and by evenness (rule 4).
    allowed: Schedule,
    even: Schedule,
    /// Deadline for the waiting data; none before the first chunk.
    deadline: Option<Timestamp>,
    /// Mean chunk in bytes; zero before the first.
    mean_chunk: f64,
    busy: Option<Busy>,
    /// Bytes waiting: as last reported by the connection, plus chunks since.
    waiting: u64,
    smoothed: Smoothed,
    has_rate: bool,
}

impl Sender {
    pub(super) fn new(base: ccid3::Config, config: Config, setup: &Setup) -> Self {
        let tfrc = ccid3::Sender::with(base, setup, AnySize);
        let mut smoothed = Smoothed::new(&base, setup.now);
        smoothed.start(setup.now, tfrc.allowed());
        Self {
            has_rate: tfrc.rtt().is_some(),
            tfrc,
            config,
            allowed: Schedule::new(setup.now),
            even: Schedule::new(setup.now),
            deadline: None,
            mean_chunk: 0.0,
            busy: None,
            waiting: 0,
            smoothed,
        }
    }

    /// X_v (rules 1 and 2).
    pub(super) fn ceiling(&self, now: Timestamp) -> f64 {
        let x = self.tfrc.allowed();
        let (Some(by_equation), Some(busy)) = (self.tfrc.by_equation(), self.busy) else { return x };
        let share = now.saturating_since(busy.since).ratio(busy.ramp).unwrap_or(1.0).min(1.0);
        x + (by_equation - x).max(0.0) * share
    }

    /// The rate that empties the queue in time (rule 4).
    fn needed(&self, now: Timestamp, waiting: u64) -> f64 {
        let left = self.deadline.map_or(TimeDelta::ZERO, |d| d - now);
        if left > TimeDelta::ZERO { waiting as f64 * 8.0 / left.as_secs_f64() } else { f64::INFINITY }
    }

    /// Intervals that a chunk may take.
    fn intervals(&self, size: f64) -> f64 {
        let many = if self.mean_chunk > 0.0 { size / (LARGE * self.mean_chunk) } else { 1.0 };
        self.config.spread * many.clamp(1.0, self.config.most_intervals)
    }

    /// The rate reachable if data keeps waiting.
    fn reachable(&self) -> f64 {
        let x = self.tfrc.allowed();
        if self.deadline.is_some() { self.tfrc.by_equation().map_or(x, |e| e.max(x)) } else { x }
    }

    /// Something may have changed X or X_Bps.
    fn follow(&mut self, now: Timestamp, before: (f64, f64)) {
        self.allowed.on_rate(now, before.0, self.ceiling(now));
        if !self.has_rate {
            self.has_rate = self.tfrc.rtt().is_some();
            return self.smoothed.start(now, self.reachable());
        }
        self.smoothed.update(now, before.1);
    }
}

impl CcidSender for Sender {
    fn may_send(&self, now: Timestamp, _: DataSize) -> Permission {
        let at = self.allowed.next().max(self.even.next()) - self.tfrc.early();
        if at <= now { Permission::Now } else { Permission::At(at) }
    }

    fn on_packet_sent(&mut self, packet: &SentPacket) {
        if !packet.packet_type.is_data() {
            return self.tfrc.take_sent(packet, false);
        }
        let now = packet.now;
        self.waiting = packet.queued.as_bytes();
        self.allowed.on_sent(now, packet.data, self.ceiling(now), self.tfrc.credit());
        self.even.on_sent(now, packet.data, self.needed(now, self.waiting + packet.data.as_bytes()), TimeDelta::ZERO);
        let used_up = self.allowed.next() > now;
        self.tfrc.take_sent(packet, used_up);
        if self.waiting == 0 {
            self.busy = None;
        }
    }

    fn on_acknowledgement(&mut self, ack: &Acknowledgement<'_>) {
        let before = (self.ceiling(ack.now), self.reachable());
        self.tfrc.on_acknowledgement(ack);
        self.follow(ack.now, before);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.tfrc.poll_timeout()
    }

    fn on_timeout(&mut self, now: Timestamp) {
        let before = (self.ceiling(now), self.reachable());
        self.tfrc.on_timeout(now);
        self.follow(now, before);
    }

    fn wants_ack_of_ack(&self, now: Timestamp) -> bool {
        self.tfrc.wants_ack_of_ack(now)
    }

    fn ccval(&mut self, now: Timestamp) -> u8 {
        self.tfrc.ccval(now)
    }

    fn on_chunk(&mut self, chunk: &Chunk) {
        let ramp = chunk.interval.min(self.tfrc.r()).mul_f64(self.config.ramp);
        if self.waiting == 0 || self.busy.is_none() {
            self.busy = Some(Busy { since: chunk.now, ramp });
        }
        self.waiting = self.waiting.saturating_add(chunk.size.as_bytes());
        let size = chunk.size.as_bytes() as f64;
        let deadline = chunk.now + chunk.interval.mul_f64(self.intervals(size));
        self.deadline = Some(self.deadline.map_or(deadline, |d| d.max(deadline)));
        self.mean_chunk =
            if self.mean_chunk > 0.0 { self.mean_chunk + MEMORY * (size - self.mean_chunk) } else { size };
    }

    fn rate(&self) -> Option<DataRate> {
        self.has_rate.then(|| DataRate::from_bps_f64(self.reachable()))
    }

    fn smoothed_rate(&self) -> Option<DataRate> {
        self.has_rate.then(|| DataRate::from_bps_f64(self.smoothed.get()))
    }

    fn rtt(&self) -> Option<TimeDelta> {
        self.tfrc.rtt()
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let smoothed = self.smoothed.get();
        self.tfrc.metrics(&mut |name, value| out(name, if name == "smoothed_bps" { smoothed } else { value }));
        out("reachable_bps", self.reachable());
        out("waiting_bytes", self.waiting as f64);
    }
}
