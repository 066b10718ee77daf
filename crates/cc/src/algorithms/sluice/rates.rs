//! The rate on a busy link, on one with room, and during a drain; what follows from it for pacing and the queue.

use super::doing::Doing;
use super::service::Served;
use super::{PACKET_BITS, SATURATED, Sluice};

/// Rate at which the queue wanted is `queue_target`, bit/s.
const REFERENCE: f64 = 4e6;
/// Packets that may leave in the burst time.
const BURST_PACKETS: f64 = 5.0;
/// Stalls below this are none, s: no other traffic interferes.
const SETTLED_STALL: f64 = 0.001;
/// Stalls from which clumps of packets show a rate that is too low or too high, s.
const UNEVEN: f64 = 0.003;
/// Share of the pacing rate from which a train of packets has not been slowed.
const UNSLOWED: f64 = 0.85;
/// Mean share of packets lost from which the rate does not exceed what the link is seen to serve.
const LOSING: f64 = 0.02;
/// Mean share of marks from which they hold the queue.
const MARKED: f64 = 0.2;
/// Share of the bound by marks from which it holds the rate.
const BOUND_NEAR: f64 = 0.95;
/// Share of the service rate that is sent during a drain.
const DRAIN_SHARE: f64 = 0.5;
/// Part of the interval between drains after which the first one follows where the delay is uneven.
const FIRST_DRAIN: f64 = 0.125;
/// Ratio of rate and reference up to which what is served is taken as the share.
const SIMILAR: f64 = 1.25;

impl Sluice {
    /// The pacing rate in bit/s.
    pub(super) fn pacing(&self) -> f64 {
        let c = &self.config;
        // A source's bursts in the queue look like a lower capacity, to this flow and to others.
        if !self.starting && self.usage.burst() > c.burst_least.as_secs_f64() {
            return self.rate * c.pacing_bursts;
        }
        self.pacing_of_trains()
    }

    /// The pacing rate of a source without bursts: faster where trains of packets have something to show.
    fn pacing_of_trains(&self) -> f64 {
        let c = &self.config;
        let is_settled = !self.starting && self.rounds == 0 && self.stall < SETTLED_STALL;
        let (factor, burst) = match (self.starting, is_settled) {
            (true, _) => (c.pacing_start, c.burst_time),
            (_, true) => (c.pacing_settled, c.burst_time_settled),
            _ => (c.pacing_factor, c.burst_time),
        };
        // Where marks hold the queue short, a train that the link spreads is a queue of its own.
        if (is_settled && self.marked > MARKED) || self.rate > BOUND_NEAR * self.scalable.bound() {
            return self.rate * c.pacing_marked;
        }
        (self.rate * factor).max(BURST_PACKETS * PACKET_BITS / burst.as_secs_f64())
    }

    /// The queueing delay wanted at a rate, s.
    pub(super) fn queue_wanted(&self, rate: f64) -> f64 {
        let c = &self.config;
        // A coupled flow wants the queue of one with a higher rate: it meets others at its share of theirs. The power is measured.
        let weight = self.weight * self.weight;
        let slope = c.queue_slope.as_secs_f64() * libm::log(REFERENCE * weight / rate.max(1e3));
        let wanted = c.queue_target.as_secs_f64() + slope;
        let packet = 0.75 * PACKET_BITS / rate.max(1e3);
        wanted.min(c.queue_most.as_secs_f64()).max(c.queue_least.as_secs_f64()).max(packet.min(0.15))
    }

    /// Empties the queue from time to time, beyond what is known of it, so that the least delay is seen again. Whether it
    /// does so now.
    pub(super) fn drain(&mut self, served: f64, now: f64) -> bool {
        if now < self.draining_until {
            return true;
        }
        let interval = self.config.drain_interval.as_secs_f64();
        let interval = if self.residual.is_unknown() { interval * FIRST_DRAIN } else { interval };
        if self.starting || now - self.drained_at < interval {
            return false;
        }
        self.drained_at = now;
        let depth = self.expected.min(0.2) + self.config.drain_depth.as_secs_f64();
        self.draining_until = now + depth / (1.0 - DRAIN_SHARE);
        self.residual.drain(self.draining_until);
        self.grown_at = self.draining_until;
        self.set_rate(served * DRAIN_SHARE, served, now);
        self.after_drain = served;
        true
    }

    /// The classic response to classic marks (RFC 3168): a cut once per round trip, from which the flow grows again.
    pub(super) fn ease(&mut self, served: f64, is_marked: bool, now: f64) -> f64 {
        if !is_marked || self.newest < self.eased_at {
            return served;
        }
        self.eased_at = now;
        served * self.config.mark_decrease
    }

    /// This flow's share of a busy link, given what was served of a rate that was `ratio` times the reference.
    ///
    /// Alone on the link, what is served is its capacity, whatever was sent. Beside others it follows what was sent, so
    /// that each change of the rate would come back a round trip later as a change of the share.
    pub(super) fn share(&self, served: f64, ratio: f64) -> f64 {
        if (1.0 / SIMILAR..=SIMILAR).contains(&ratio) {
            return served / libm::sqrt(ratio);
        }
        let proportional = served / ratio.max(1e-3);
        self.reference.max(served.min(proportional)).min(served.max(proportional))
    }

    /// The rate on a busy link: what it serves, corrected by the queue.
    pub(super) fn hold(&mut self, served: f64, now: f64) {
        let time = self.config.drain_time.as_secs_f64() + self.config.drain_stalls * self.stall.max(self.jitter.mean());
        // The rate holds until the next message: a faster correction goes too far.
        let time = time.max(self.interval);
        let gain = (self.wanted - self.expected) / time;
        let rate = served * (1.0 + gain.clamp(-1.0, 0.2));
        // A source that does not use the rate has not measured more than it sent.
        if self.usage.sent() < 0.7 && rate > 0.5 * self.rate {
            self.doing = Doing::Unused;
            return;
        }
        self.known.observe(served, now);
        self.rounds = 0;
        self.doing = Doing::Hold;
        self.grown_at = now;
        let most = self.scalable.bound();
        self.set_rate(rate.min(most), served.min(most), now);
    }

    /// The rate on a link with room: one step per round of feedback.
    pub(super) fn grow(&mut self, service: Option<Served>, now: f64) {
        let growing = if self.starting { Doing::Start } else { Doing::Grow };
        self.doing = if self.usage.sent() < 0.6 { Doing::Unused } else { growing };
        if self.newest < self.grown_at || self.usage.sent() < 0.6 {
            return;
        }
        let c = &self.config;
        let bursts = service.filter(|s| s.busy > 0.003).map(|s| s.rate);
        let fast = self.starting || self.rounds > 0 || bursts.is_some_and(|b| b > 1.8 * self.rate);
        let factor = if fast { c.growth } else { c.growth_first };
        let busy_clumps = self.stall > UNEVEN && self.busy >= SATURATED;
        let factor = if busy_clumps { factor.min(c.growth_clumps) } else { factor };
        // Clumps of packets show a rate that is too low or too high.
        let least = if self.stall > UNEVEN { c.growth_uneven } else { 1.03 };
        let pacing = self.pacing_of_trains();
        let most = bursts.map_or(f64::INFINITY, |b| {
            let shown = if b > UNSLOWED * pacing { b.max(pacing) } else { b };
            // What is dropped of each frame leaves no queue: beyond the service rate, losses are of this rate.
            let least = if self.lost > LOSING { self.capacity.max(0.5 * self.rate) } else { self.rate * least };
            (c.growth_share * shown).max(least)
        });
        self.rounds += 1;
        self.grown_at = now;
        // What a device announces is known without dispersion.
        let hint = self.notice.hint(now);
        let rate =
            (self.rate * factor).max(self.known.towards(self.rate)).min(most).max(hint).min(self.scalable.bound());
        self.set_rate(rate, rate, now);
    }
}
