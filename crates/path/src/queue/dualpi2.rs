//! DualPI2, the coupled dual-queue AQM of RFC 9332, appendix A: a queue with low delay for scalable flows (L4S) and a
//! classic one, whose marking and dropping are coupled so that flows of both kinds get about the same rate. With the
//! overload protection of appendix A.2.

use super::discipline::{self, Definition, Setup};
use super::fifo::{Backlog, Fifo, Room};
use super::parameter::parameters;
use super::queued::{Ledger, Queued};
use crate::stats::DropReason;
use weir_units::{TimeDelta, Timestamp};

/// The coupled marking probability at which the L queue is overloaded (`p_Lmax`; RFC 9332, figure 2, line 21).
const P_L_MAX: f64 = 1.0;
/// Size of the packet for which the scheduler's initial credit is (`MTU`; RFC 9332 has no value): Ethernet's.
const MTU: f64 = 1_500.0;
/// Most updates caught up at once for a queue that is not empty. After a longer pause more would have no effect: the
/// delay then exceeds 80 s at the standard period, and the probability is 1 after a few.
const MAX_MISSED: i64 = 5_000;

parameters! {
    /// Parameters of DualPI2.
    pub struct Config {
        /// Queuing delay of the classic queue to which the base probability converges (target; RFC 9332, figure 2).
        target: TimeDelta = TimeDelta::from_millis(15), TimeDelta::from_micros(10) => TimeDelta::from_secs(10);
        /// Time between updates of the base probability (Tupdate; RFC 9332, appendix A.1).
        t_update: TimeDelta = TimeDelta::from_millis(16), TimeDelta::from_micros(100) => TimeDelta::from_secs(1);
        /// Weight of the delay's distance from the target, in Hz (alpha; RFC 9332, appendix A.1).
        alpha: f64 = 0.16, 0.0 => 1_000.0;
        /// Weight of the delay's change between two updates, in Hz (beta; RFC 9332, appendix A.1).
        beta: f64 = 3.2, 0.0 => 1_000.0;
        /// Coupling factor: the L queue marks with this times the base probability, the classic queue drops with the
        /// base probability's square (k; RFC 9332, sections 2.1 and 2.5.1). The classic probability at which it is
        /// overloaded follows from it (p_Cmax, 1/k^2 and at most 1; figure 2).
        k: f64 = 2.0, 0.1 => 100.0;
        /// Queuing delay above which the L queue marks by its own ramp (minTh; RFC 9332, figure 2).
        min_th: TimeDelta = TimeDelta::from_micros(800), TimeDelta::ZERO => TimeDelta::from_secs(10);
        /// Delay beyond that over which the ramp rises from no packet to all; 0 makes it a step (range; RFC 9332,
        /// figure 2 and note c of appendix A.1).
        range: TimeDelta = TimeDelta::from_micros(400), TimeDelta::ZERO => TimeDelta::from_secs(10);
        /// Packets in the L queue up to which the ramp marks none (Th_len; RFC 9332, figure 2).
        th_len: f64 = 1.0, 0.0 => 1_000.0;
        /// Least share of the link for the classic queue while both have packets: the weight of the round robin
        /// between them (RFC 9332, section 4.2.2).
        classic_weight: f64 = 0.0625, 0.001 => 0.999;
        /// If above 0, the round robin is replaced by a time-shifted FIFO, in which classic packets wait longer than
        /// L4S ones by at most this; 50 ms suits the Internet (tshift; RFC 9332, appendix A.2).
        tshift: TimeDelta = TimeDelta::ZERO, TimeDelta::ZERO => TimeDelta::from_secs(10);
    }
}

impl Definition for Config {
    const NAME: &'static str = "dualpi2";
    const SUMMARY: &'static str = "one queue for L4S flows and one for others, with coupled marks and drops";
    const SOURCE: &'static str = "RFC 9332, appendix A";
    type Queue<P> = Queue<P>;
    fn queue<P>(&self, setup: Setup) -> Queue<P> {
        let mut queue = Queue {
            room: setup.room,
            l4s: Part::default(),
            classic: Part::default(),
            base: 0.0,
            delay_before: TimeDelta::ZERO,
            next_update: Timestamp::ZERO + self.t_update,
            credit: 0.0,
            now: Timestamp::ZERO,
            config: Box::new(*self),
        };
        queue.favour_l4s();
        queue
    }
}

/// One of the two queues.
#[derive(Clone, Debug)]
struct Part<P> {
    fifo: Fifo<P>,
    /// `count` of the function `recur` (figure 4).
    count: f64,
}

impl<P> Default for Part<P> {
    fn default() -> Self {
        Self { fifo: Fifo::default(), count: 0.0 }
    }
}

impl<P> Part<P> {
    /// Chooses packets with this likelihood, evenly spaced rather than at random (`recur`).
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let chosen = self.count > 1.0;
        if chosen {
            self.count -= 1.0;
        }
        chosen
    }
    /// How long the packet at the head has waited (`time`); 0 for an empty queue.
    fn delay(&self, now: Timestamp) -> TimeDelta {
        self.fifo.head_arrival().map_or(TimeDelta::ZERO, |arrived| now - arrived)
    }
}

/// A queue under DualPI2. Its state has the names of RFC 9332, appendix A.
#[derive(Clone, Debug)]
pub struct Queue<P> {
    // Boxed, so that links under other disciplines are not larger because of this one.
    config: Box<Config>,
    room: Room,
    /// `lq`: packets with ECT(1) and CE.
    l4s: Part<P>,
    /// `cq`: all others.
    classic: Part<P>,
    /// `p'`.
    base: f64,
    /// `prevq`: the delay at the last update.
    delay_before: TimeDelta,
    next_update: Timestamp,
    /// Bytes that the round robin owes to the classic queue, times its weight; it is served while this is above zero.
    credit: f64,
    /// Time of the last call.
    now: Timestamp,
}

impl<P> Queue<P> {
    fn backlog(&self) -> Backlog {
        let (l, c) = (self.l4s.fifo.backlog(), self.classic.fifo.backlog());
        Backlog { packets: l.packets + c.packets, bytes: l.bytes + c.bytes }
    }
    /// Arrival of the packet that has waited longest.
    fn oldest(&self) -> Option<Timestamp> {
        match (self.l4s.fifo.head_arrival(), self.classic.fifo.head_arrival()) {
            (Some(l), Some(c)) => Some(l.min(c)),
            (l, c) => l.or(c),
        }
    }
    /// `p_CL`, at which the L queue marks at least.
    fn coupled(&self) -> f64 {
        (self.config.k * self.base).min(1.0)
    }
    /// `p_C`, with which the classic queue drops and marks.
    fn classic(&self) -> f64 {
        self.base * self.base
    }
    /// `p_Cmax`.
    fn classic_max(&self) -> f64 {
        (1.0 / (self.config.k * self.config.k)).min(1.0)
    }

    /// Performs the updates due by `now`.
    fn catch_up(&mut self, now: Timestamp) {
        self.now = now;
        if now < self.next_update {
            return;
        }
        let Config { t_update, alpha, target, .. } = *self.config;
        let further = (now - self.next_update).as_nanos() / t_update.as_nanos();
        let last = self.next_update + t_update * further;
        if self.backlog().packets == 0 {
            // Only the first finds a delay that has changed.
            self.update(last);
            self.base = (self.base - further as f64 * alpha * target.as_secs_f64()).max(0.0);
        } else {
            let few = further.min(MAX_MISSED);
            if few < further {
                self.delay_before = self.greatest_delay(last - t_update * (few + 1));
            }
            for i in (0..=few).rev() {
                self.update(last - t_update * i);
            }
        }
        self.next_update = last + t_update;
    }

    fn greatest_delay(&self, at: Timestamp) -> TimeDelta {
        self.l4s.delay(at).max(self.classic.delay(at)).max(TimeDelta::ZERO)
    }

    /// One update of the base probability (`dualpi2_update`, figure 8).
    fn update(&mut self, at: Timestamp) {
        let Config { target, alpha, beta, .. } = *self.config;
        let delay = self.greatest_delay(at);
        let change = alpha * (delay - target).as_secs_f64() + beta * (delay - self.delay_before).as_secs_f64();
        self.base = (self.base + change).clamp(0.0, 1.0);
        self.delay_before = delay;
    }

    /// The L queue's own marking probability (`laqm`, figure 5).
    fn ramp(&self, delay: TimeDelta) -> f64 {
        let Config { min_th, range, .. } = *self.config;
        match delay - min_th {
            above if above >= range => 1.0,
            above if above > TimeDelta::ZERO => above.ratio(range).unwrap_or(1.0),
            _ => 0.0,
        }
    }

    /// Resets the round robin in favour of the L queue, as for a link that has been idle (appendix A.1).
    fn favour_l4s(&mut self) {
        self.credit = MTU * (2.0 * self.config.classic_weight - 1.0);
    }

    /// Choice of the queue that sends (`scheduler`): weighted round robin, or a time-shifted FIFO (figure 10).
    fn is_l4s_next(&self, now: Timestamp) -> bool {
        let tshift = self.config.tshift;
        match (self.l4s.fifo.packets(), self.classic.fifo.packets()) {
            (0, _) => false,
            (_, 0) => true,
            _ if tshift > TimeDelta::ZERO => self.l4s.delay(now) + tshift >= self.classic.delay(now),
            _ => self.credit <= 0.0,
        }
    }

    /// The next packet of the L queue, unless it is dropped (figure 7, lines 4 to 8).
    fn take_l4s(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        let mut packet = self.l4s.fifo.pop()?;
        let coupled = self.coupled();
        let likelihood = if coupled < P_L_MAX {
            let few = self.l4s.fifo.packets() as f64 <= self.config.th_len;
            let native = if few { 0.0 } else { self.ramp(now - packet.arrived()) };
            native.max(coupled)
        } else {
            let classic = self.classic();
            if self.l4s.recur(classic) {
                ledger.discard(now, DropReason::Aqm, packet);
                return None;
            }
            coupled
        };
        if self.l4s.recur(likelihood) {
            ledger.mark(&mut packet);
        }
        if self.classic.fifo.packets() > 0 {
            self.credit += self.config.classic_weight * f64::from(packet.bytes());
        }
        Some(packet)
    }

    /// The next packet of the classic queue, unless it is dropped (figure 7, lines 10 to 17).
    fn take_classic(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        let mut packet = self.classic.fifo.pop()?;
        let classic = self.classic();
        if self.classic.recur(classic) && (classic >= self.classic_max() || !ledger.mark(&mut packet)) {
            ledger.discard(now, DropReason::Aqm, packet);
            return None;
        }
        if self.l4s.fifo.packets() > 0 {
            self.credit -= (1.0 - self.config.classic_weight) * f64::from(packet.bytes());
        }
        Some(packet)
    }
}

impl<P> discipline::Queue<P> for Queue<P> {
    #[inline(never)]
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, _: &mut Ledger<P>) -> Result<(), DropReason> {
        self.catch_up(now);
        if self.room.is_exceeded_behind(now, self.backlog(), packet) { Err(DropReason::Queue) } else { Ok(()) }
    }

    #[inline(never)]
    fn put(&mut self, packet: Queued<P>) {
        // ECT(1) and CE (figure 3, line 6).
        let part = if packet.ecn().bits() % 2 == 1 { &mut self.l4s } else { &mut self.classic };
        part.fifo.push(packet);
    }

    // Out of line, so that it does not burden links under drop tail.
    #[inline(never)]
    fn dequeue(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        self.catch_up(now);
        if self.backlog().packets == 1 && self.oldest() == Some(now) {
            // Sent on arrival: the link was idle.
            self.favour_l4s();
        }
        while self.backlog().packets > 0 {
            let sent = if self.is_l4s_next(now) { self.take_l4s(now, ledger) } else { self.take_classic(now, ledger) };
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    fn head_arrival(&self) -> Option<Timestamp> {
        self.oldest()
    }
    fn packets(&self) -> usize {
        self.backlog().packets
    }
    fn bytes(&self) -> u64 {
        self.backlog().bytes
    }

    fn next_drop(&self) -> Option<Timestamp> {
        let from_classic = self.base > 0.0 && self.classic.fifo.packets() > 0;
        let from_l4s = self.coupled() >= P_L_MAX && self.l4s.fifo.packets() > 0;
        // Without a probability to drop, none before the next update.
        Some(if from_classic || from_l4s { self.now } else { self.next_update })
    }
}

#[cfg(test)]
mod tests;
