//! PIE, proportional integral controller enhanced (RFC 8033): drops or marks arriving packets at random, with a
//! probability that follows the queuing delay. The basic scheme of appendix A, with ECN (section 5.1).

use super::discipline::{self, Definition, Setup};
use super::fifo::{Fifo, Room, held_in_fifo};
use super::parameter::parameters;
use super::queued::{Ledger, Queued};
use crate::random::Random;
use crate::stats::DropReason;
use weir_units::{TimeDelta, Timestamp};

/// Mean packet size; a queue of two such packets accepts all arrivals (`MEAN_PKTSIZE`, RFC 8033, section 4.1). The RFC
/// gives no value: this one is chosen here.
const MEAN_PACKET: u64 = 1_024;
/// Factor of the probability at each update without delay (RFC 8033, section 4.2).
const DECAY: f64 = 0.98;
/// Probability below which the safeguard of low delay applies (RFC 8033, section 4.1).
const SAFEGUARD_BELOW: f64 = 0.2;
/// Most updates caught up at once. After a longer pause more would have no effect: at the standard period these are 75
/// s, and a probability decays to nothing in a few.
const MAX_MISSED: i64 = 5_000;

parameters! {
    /// Parameters of PIE.
    pub struct Config {
        /// Queuing delay to which the probability converges (QDELAY_REF; RFC 8033, section 4.2).
        target: TimeDelta = TimeDelta::from_millis(15), TimeDelta::from_micros(10) => TimeDelta::from_secs(10);
        /// Time between updates of the probability (T_UPDATE; RFC 8033, section 4.2).
        t_update: TimeDelta = TimeDelta::from_millis(15), TimeDelta::from_micros(100) => TimeDelta::from_secs(1);
        /// Length of a burst that passes without drops (MAX_BURST; RFC 8033, section 4.4).
        max_burst: TimeDelta = TimeDelta::from_millis(150), TimeDelta::ZERO => TimeDelta::from_secs(10);
        /// Weight of the delay's distance from the target, in Hz (RFC 8033, appendix A).
        alpha: f64 = 0.125, 0.0 => 1_000.0;
        /// Weight of the delay's change between two updates, in Hz (RFC 8033, appendix A).
        beta: f64 = 1.25, 0.0 => 1_000.0;
        /// Probability up to which packets of ECN-capable flows are marked rather than dropped; 0 marks none
        /// (mark_ecnth; RFC 8033, section 5.1).
        mark_ecnth: f64 = 0.1, 0.0 => 1.0;
    }
}

impl Definition for Config {
    const NAME: &'static str = "pie";
    const SUMMARY: &'static str = "drops arriving packets at random, with a probability that controls the delay";
    const SOURCE: &'static str = "RFC 8033";
    type Queue<P> = Queue<P>;
    fn queue<P>(&self, setup: Setup) -> Queue<P> {
        Queue {
            config: *self,
            room: setup.room,
            random: setup.random,
            fifo: Fifo::default(),
            probability: 0.0,
            burst_allowance: self.max_burst,
            delay: TimeDelta::ZERO,
            delay_before: TimeDelta::ZERO,
            next_update: Timestamp::ZERO + self.t_update,
        }
    }
}

/// A queue under PIE. Its state has the names of RFC 8033, appendix A.
#[derive(Clone, Debug)]
pub struct Queue<P> {
    config: Config,
    room: Room,
    random: Random,
    fifo: Fifo<P>,
    /// `drop_prob_`.
    probability: f64,
    /// `burst_allowance_`.
    burst_allowance: TimeDelta,
    /// `current_qdelay`: waiting time of the last dequeued packet; zero while the queue is empty.
    delay: TimeDelta,
    /// `qdelay_old_`: its value at the last update.
    delay_before: TimeDelta,
    next_update: Timestamp,
}

impl<P> Queue<P> {
    /// Performs the updates due by `now`.
    fn catch_up(&mut self, now: Timestamp) {
        let late = now - self.next_update;
        if late > self.config.t_update * MAX_MISSED {
            // All but the last few are skipped; update times stay multiples of the period.
            let periods = late.as_nanos() / self.config.t_update.as_nanos() - MAX_MISSED;
            self.next_update += self.config.t_update * periods;
        }
        while self.next_update <= now && self.next_update < Timestamp::MAX {
            self.update();
            self.next_update += self.config.t_update;
        }
    }

    /// One update of the probability (`calculate_drop_prob`).
    fn update(&mut self) {
        let Config { target, t_update, alpha, beta, .. } = self.config;
        let change =
            alpha * (self.delay - target).as_secs_f64() + beta * (self.delay - self.delay_before).as_secs_f64();
        let scale = match self.probability {
            p if p < 1e-6 => 2_048.0,
            p if p < 1e-5 => 512.0,
            p if p < 1e-4 => 128.0,
            p if p < 1e-3 => 32.0,
            p if p < 1e-2 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        self.probability += change / scale;
        if self.delay == TimeDelta::ZERO && self.delay_before == TimeDelta::ZERO {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.delay_before = self.delay;
        self.burst_allowance = (self.burst_allowance - t_update).max(TimeDelta::ZERO);
    }

    /// Whether to drop or mark the arriving packet (`enque` and `drop_early`).
    fn is_chosen(&mut self) -> bool {
        let is_low = |delay: TimeDelta| delay < self.config.target / 2;
        if self.probability == 0.0 && is_low(self.delay) && is_low(self.delay_before) {
            self.burst_allowance = self.config.max_burst;
        }
        let is_safe =
            (is_low(self.delay_before) && self.probability < SAFEGUARD_BELOW) || self.fifo.bytes() <= 2 * MEAN_PACKET;
        self.burst_allowance == TimeDelta::ZERO && !is_safe && self.random.uniform() < self.probability
    }
}

impl<P> discipline::Queue<P> for Queue<P> {
    #[inline(never)]
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, ledger: &mut Ledger<P>) -> Result<(), DropReason> {
        self.catch_up(now);
        if self.room.is_exceeded(now, &self.fifo, packet) {
            return Err(DropReason::Queue);
        }
        if self.is_chosen() && !(self.probability < self.config.mark_ecnth && ledger.mark(packet)) {
            return Err(DropReason::Aqm);
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, packet: Queued<P>) {
        self.fifo.push(packet);
    }

    // Out of line, so that it does not burden links under drop tail.
    #[inline(never)]
    fn dequeue(&mut self, now: Timestamp, _: &mut Ledger<P>) -> Option<Queued<P>> {
        self.catch_up(now);
        let packet = self.fifo.pop()?;
        self.delay = if self.fifo.packets() == 0 { TimeDelta::ZERO } else { now - packet.arrived() };
        Some(packet)
    }

    held_in_fifo!();
}

#[cfg(test)]
mod tests;
