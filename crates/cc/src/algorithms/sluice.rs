//! Sluice: capacity from the packets' own dispersion, a short queue held on purpose, and growth by doubling while both
//! show room.
//!
//! Per feedback message: `arrivals` (queueing delay, busy time) → `service` (the rate at which the link served this flow)
//! → `assembly` here: where the link is busy, the rate is that service rate, corrected by the queue expected now against
//! the queue wanted; where it is not, the rate grows.

mod arrivals;
mod competition;
mod config;
mod controller;
mod doing;
mod entry;
mod jitter;
mod known;
mod notice;
mod rates;
mod residual;
mod scalable;
mod sent;
mod service;
mod stalls;
mod usage;

use crate::controller::Limits;
use crate::cue::TransportFeedback;
use crate::spec::Start;
use crate::tunable::SetupError;
use arrivals::Arrivals;
use competition::{Competition, Pressure};
pub use config::Config;
use doing::Doing;
use jitter::Jitter;
use known::Known;
use notice::Notice;
use residual::Residual;
use scalable::{Marks, Scalable};
use sent::RateHistory;
use service::{Served, Service};
use stalls::Stalls;
use usage::Usage;
use weir_units::{TimeDelta, Timestamp};

/// Bits of a usual packet.
const PACKET_BITS: f64 = 9_600.0;
/// Least time over which a queue is standing for competitive mode, s.
const PRESSED: f64 = 0.07;
/// Share of busy time from which the link counts as saturated.
const SATURATED: f64 = 0.6;

/// Times as long the least delay counts in competitive mode.
const COMPETING_WINDOW: i64 = 6;
/// Deviation of the delay by stalls, in mean stalls.
const STALL_JITTER: f64 = 0.4;
/// The same where more of it counts as noise: stalls of aggregates and radio schedulers have about half of their length.
const STALL_NOISE: f64 = 0.6;
/// A queue below this is empty, s.
const EMPTY: f64 = 0.002;
/// Standing queue from which marks are a classic AQM's, s: CoDel's target (RFC 8289) is the least of those in use, and L4S marks
/// from 1 ms on (RFC 9332).
const CLASSIC: f64 = 0.005;
/// Queue beyond the one wanted that shows that a capacity announced is too high, s.
const OVERFULL: f64 = 0.05;
/// Feedback interval from which this flow's own corrections alternate as jitter does, s.
const SELDOM: f64 = 0.12;
/// The rate is steady if it is within this factor of ...
const STEADY: f64 = 1.25;
/// ... its mean over this time before, s.
const STEADY_TIME: f64 = 0.15;
/// Share of the feedback interval within which a message continues the one before.
const CONTINUED: f64 = 0.1;

/// Sluice, sender side.
#[derive(Clone, Debug)]
pub struct Sluice {
    config: Config,
    limits: Limits,
    start: Timestamp,
    arrivals: Arrivals,
    service: Service,
    stalls: Stalls,
    jitter: Jitter,
    residual: Residual,
    known: Known,
    notice: Notice,
    /// What the receiver asks not to exceed, bit/s.
    requested: f64,
    /// Share of one flow's rate that this flow is coupled to take.
    weight: f64,
    competition: Competition,
    sent: RateHistory,
    /// The rate in bit/s, within the limits.
    rate: f64,
    reference: f64,
    starting: bool,
    /// Rounds of growth since the rate was held.
    rounds: u32,
    /// Packets sent after this time show the effect of the last growth.
    grown_at: f64,
    /// Departure of the newest packet reported.
    newest: f64,
    /// Departure of the first packet that is not reported.
    waiting_since: Option<f64>,
    reported_at: f64,
    interval: f64,
    rtt: f64,
    rtt_least: f64,
    capacity: f64,
    queue: f64,
    expected: f64,
    wanted: f64,
    busy: f64,
    usage: Usage,
    drained_at: f64,
    draining_until: f64,
    after_drain: f64,
    stall: f64,
    /// Mean share of packets marked.
    marked: f64,
    /// Mean share of packets lost.
    lost: f64,
    /// Packets sent after this time show the effect of the last classic mark.
    eased_at: f64,
    scalable: Scalable,
    doing: Doing,
    due: Option<Timestamp>,
}

impl Sluice {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("sluice")?;
        let rate = start.limits.clamp(start.rate).as_bps_f64();
        Ok(Self {
            config,
            limits: start.limits,
            start: start.now,
            arrivals: Arrivals::default(),
            service: Service::default(),
            stalls: Stalls::default(),
            jitter: Jitter::default(),
            residual: Residual::default(),
            known: Known::default(),
            notice: Notice::default(),
            requested: f64::INFINITY,
            weight: 1.0,
            competition: Competition::default(),
            sent: RateHistory::new(rate),
            rate,
            reference: rate,
            starting: true,
            rounds: 0,
            grown_at: 0.0,
            newest: 0.0,
            waiting_since: None,
            reported_at: 0.0,
            interval: 0.05,
            rtt: 0.1,
            rtt_least: f64::INFINITY,
            capacity: f64::NAN,
            queue: 0.0,
            expected: 0.0,
            wanted: 0.0,
            busy: 0.0,
            usage: Usage::default(),
            drained_at: 0.0,
            draining_until: 0.0,
            after_drain: 0.0,
            stall: 0.0,
            marked: 0.0,
            lost: 0.0,
            eased_at: 0.0,
            scalable: Scalable::default(),
            doing: Doing::Start,
            due: None,
        })
    }

    fn seconds(&self, now: Timestamp) -> f64 {
        (now - self.start).as_secs_f64()
    }

    /// Sets the rate, and the reference that it is derived from.
    fn set_rate(&mut self, rate: f64, reference: f64, now: f64) {
        let most = self.limits.ceiling.as_bps_f64().min(self.requested).min(self.notice.bound(now));
        self.rate = rate.min(most).max(self.limits.floor.as_bps_f64());
        self.reference = reference;
        self.sent.set(self.rate, reference, now);
    }

    fn on_feedback(&mut self, f: &TransportFeedback<'_>) {
        let now = self.seconds(f.now);
        // A queue that others keep full hides the least delay for as long as they last.
        let window = self.config.base_window;
        let window = if self.competition.is_on() { window * COMPETING_WINDOW } else { window };
        let Some(d) = self.arrivals.digest(f.packets, self.start, window) else { return };
        let gap = (now - self.reported_at).clamp(0.0, 1.0);
        // What does not fit into a message follows at once in others, which say nothing of the interval.
        if gap > CONTINUED * self.interval {
            self.interval += 0.125 * (gap.min(2.0 * self.interval + 0.01) - self.interval);
            self.reported_at = now;
        }
        if let Some(rtt) = f.rtt {
            let rtt = crate::parts::rtt::bounded(rtt).as_secs_f64();
            self.rtt = rtt.max(self.rtt + 0.125 * (rtt - self.rtt));
            self.rtt_least = self.rtt_least.min(rtt);
        }
        // The share of the rate that the source and the pacer use.
        let allowed = self.sent.bits(d.last_departure) - self.sent.bits(self.newest);
        if allowed > 0.0 && d.last_departure > self.newest {
            let arrived = d.bytes * 8.0;
            let sent = arrived + f64::from(d.lost) * PACKET_BITS;
            let time = d.last_departure - self.newest;
            // Frames coded at another rate are no bursts of the source.
            let before = self.sent.mean(self.newest - STEADY_TIME, self.newest) * time;
            let is_steady = (before / STEADY..before * STEADY).contains(&allowed);
            self.usage.observe(time, sent, arrived, allowed, is_steady);
        }
        self.newest = self.newest.max(d.last_departure);
        self.waiting_since = (!f.bytes_in_flight.is_zero()).then_some(self.newest);
        self.service.push(d);
        self.stalls.observe(d.even_time, d.even_squares, d.even_packets);
        self.stall = self.stalls.mean();
        self.jitter.observe(d.queue_least);
        self.busy = self.service.busy_share();
        let c = &self.config;
        // Stalls make the delay alternate too.
        let noise = (self.jitter.mean() - STALL_JITTER * self.stall).max(0.0);
        if self.competition.is_on() {
            self.residual = Residual::default();
        } else {
            let uneven = self.jitter.mean() - STALL_NOISE * self.stall;
            let uneven = if self.interval < SELDOM { uneven.max(0.0) } else { 0.0 };
            self.residual.observe(&d, uneven, c.noise_memory.as_secs_f64());
        }
        let residual = self.residual.delay(c.residual_share, c.residual_most.as_secs_f64());
        let window = (c.stall_window * self.stall).max(c.jitter_window * noise).min(0.2);
        let (queue, least_departure) = self.service.standing(window).unwrap_or((d.queue_least, d.least_departure));
        self.queue = queue;
        let mut service = self.service.rate(c.service_time.as_secs_f64().max(window));
        // A fall of the capacity shows in both at once, and then only the newest counts.
        let long = service;
        let marked = f64::from(d.marked) / f64::from(d.received);
        self.marked += c.mark_weight * (marked - self.marked);
        let lost = f64::from(d.lost) / f64::from(d.received + d.lost);
        self.lost += c.mark_weight * (lost - self.lost);
        let is_classic = d.queue_least > CLASSIC.max(3.0 * PACKET_BITS / self.rate.max(1e3));
        self.scalable.update(Marks {
            now,
            marked: if is_classic { 0 } else { d.marked },
            received: d.received,
            newest: self.newest,
            rate: self.rate,
            shown: self.capacity,
            rtt: self.rtt,
            weight: self.weight,
        });
        let rise = self.service.standing(0.15).map_or(0.0, |s| s.0)
            + c.fall_rise.as_secs_f64()
            + c.fall_noise * self.residual.noise();
        let fall = c.service_time_fall.as_secs_f64().max(c.fall_stalls * self.stall);
        if let (Some(long), Some(short)) = (service, self.service.rate_of(fall, c.fall_packets))
            && short.rate < c.fall_share * long.rate
            && (marked > 0.5 || (d.queue_least > self.wanted.max(window) && d.queue_last > rise))
        {
            // What was sent as slowly as it arrived shows no fall, however little it was.
            let rate = short.rate.max(long.rate * (short.sent / short.busy).min(1.0));
            service = Some(Served { rate, ..short });
        }
        let served = service.map_or(self.rate, |s| self.share(s.rate, self.sent.ratio(s.since, d.last_departure)));
        self.capacity = service.map_or(f64::NAN, |s| s.rate);
        self.notice.compare(self.capacity, self.queue > self.wanted + OVERFULL, self.rate, now);
        // What has been sent since that packet, less what the link has served since.
        let served = self.ease(served, d.marked > 0 && is_classic, now);
        let share = self.usage.arrived().min(1.1);
        let since = (now - least_departure).max(0.0);
        let bits = (self.sent.bits(now) - self.sent.bits(least_departure)) * share;
        self.expected = (self.queue + bits / served.max(1e3) - since).max(0.0);
        self.wanted =
            self.queue_wanted(served) + (self.config.stall_share * self.stall).max(self.config.jitter_share * noise);
        self.wanted *= libm::pow(1.0 - self.marked, self.config.mark_power);
        // Queue management that cannot mark drops instead; loss that has another cause stays, and costs little by this.
        self.wanted *= libm::pow(1.0 - self.lost, self.config.loss_power);
        self.wanted += residual;
        let saturated = self.busy >= SATURATED;
        if self.starting && saturated && self.queue > self.wanted {
            self.starting = false;
            // What was added at the start is measured soon.
            self.drained_at = now - self.config.drain_interval.as_secs_f64() + 0.5;
        }
        if self.queue < EMPTY {
            self.drained_at = now;
        }
        let pressure = Pressure {
            now,
            // At low rates a message reports one packet of a frame's train.
            queue: self.service.standing(PRESSED).map_or(self.queue, |s| s.0.min(self.queue)),
            wanted: self.wanted,
            rtt: f.rtt.map_or(self.rtt, |r| crate::parts::rtt::bounded(r).as_secs_f64()),
            reference: served,
            rate: self.rate,
            served: long.map_or(f64::NAN, |s| s.rate),
            sent: long.map_or(f64::NAN, |s| self.sent.mean(s.since, d.last_departure)),
            departure: d.last_departure,
            lost: d.lost > 0,
        };
        let was_competing = self.competition.is_on();
        if let Some(rate) = self.competition.update(pressure, &self.config) {
            self.rounds = 1;
            self.grown_at = now;
            self.drained_at = now;
            self.doing = Doing::Compete;
            self.set_rate(rate, rate, now);
            self.arm(f.now, !f.bytes_in_flight.is_zero());
            return;
        }
        if was_competing {
            self.set_rate(self.rate, self.rate, now);
            // The queue has been short for a while: there is room now.
            self.grown_at = self.newest;
        }
        if self.drain(served, now) {
            self.doing = Doing::Drain;
            self.arm(f.now, !f.bytes_in_flight.is_zero());
            return;
        }
        if (saturated && self.queue > 0.5 * self.wanted) || self.queue > self.wanted {
            self.hold(served, now);
        } else {
            let newest = self.service.rate(self.config.service_time_fall.as_secs_f64());
            self.grow(newest, now);
        }
        self.arm(f.now, !f.bytes_in_flight.is_zero());
    }

    /// Sets the time at which feedback counts as missing.
    fn arm(&mut self, now: Timestamp, in_flight: bool) {
        self.due = in_flight.then(|| {
            let since = self.waiting_since.unwrap_or(self.newest);
            let late = since + self.rtt + 2.0 * self.interval + 0.05 - self.seconds(now);
            now + TimeDelta::from_secs_f64(late.clamp(0.025, 10.0))
        });
    }
}

#[cfg(test)]
mod tests;
