//! RED, random early detection (Floyd and Jacobson, IEEE/ACM Transactions on Networking, 1993): drops or marks arriving
//! packets at random, with a probability that follows the average queue length. With ECN (RFC 3168) and, as an option,
//! the gentle variant (Floyd, 2000).

use super::discipline::{self, Definition, Setup};
use super::fifo::{Fifo, Room, held_in_fifo};
use super::parameter::parameters;
use super::queued::{Ledger, Queued};
use crate::limit::Limit;
use crate::random::Random;
use crate::stats::DropReason;
use weir_units::Timestamp;

parameters! {
    /// Parameters of RED. A threshold in packets is compared with the average number of packets, any other with the
    /// average number of bytes.
    pub struct Config {
        /// Average queue length from which packets are dropped or marked at random (min_th; section 6 of the paper).
        min_th: Limit = Limit::Packets(5);
        /// Average queue length from which all packets are dropped; at least twice `min_th` is recommended (max_th;
        /// section 6 of the paper).
        max_th: Limit = Limit::Packets(15);
        /// Probability at `max_th` (max_p; section 6 of the paper: 1/50).
        max_p: f64 = 0.02, 0.0 => 1.0;
        /// Weight of the current queue length in its average, for each packet (w_q; section 6 of the paper).
        w_q: f64 = 0.002, 0.000_001 => 1.0;
        /// Packet size in bytes for which an idle time counts as one packet sent (section 4 of the paper: a typical
        /// small one, without a value).
        mean_packet: f64 = 1_000.0, 1.0 => 65_536.0;
        /// Whether the probability rises on from `max_p` at `max_th` to 1 at twice `max_th`, instead of jumping to 1
        /// (Floyd, "Recommendation on using the gentle_ variant of RED", 2000).
        gentle: bool = false;
        /// Whether packets of ECN-capable flows are marked rather than dropped while the average is below `max_th`
        /// (RFC 3168, sections 5 and 7).
        ecn: bool = true;
    }
}

impl Definition for Config {
    const NAME: &'static str = "red";
    const SUMMARY: &'static str = "drops arriving packets at random, with a probability that follows the average queue";
    const SOURCE: &'static str = "Floyd and Jacobson, 1993";
    type Queue<P> = Queue<P>;
    fn queue<P>(&self, setup: Setup) -> Queue<P> {
        Queue {
            config: *self,
            room: setup.room,
            random: setup.random,
            fifo: Fifo::default(),
            packets: Average::default(),
            bytes: Average::default(),
            count: None,
            idle_since: Timestamp::ZERO,
        }
    }
}

/// An average queue length (`avg`).
#[derive(Clone, Copy, Default, Debug)]
struct Average(f64);

impl Average {
    fn add(&mut self, w_q: f64, length: f64) {
        self.0 += w_q * (length - self.0);
    }
}

/// A queue under RED. Its state has the names of figure 2 of the paper.
#[derive(Clone, Debug)]
pub struct Queue<P> {
    config: Config,
    room: Room,
    random: Random,
    fifo: Fifo<P>,
    /// `avg` in packets and in bytes.
    packets: Average,
    bytes: Average,
    /// Packets since the last one chosen (`count`); `None` while the average is below `min_th`.
    count: Option<u32>,
    /// When the queue became empty (`q_time`).
    idle_since: Timestamp,
}

/// Decision on an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    Pass,
    Notify,
    Drop,
}

impl<P> Queue<P> {
    /// Updates the average at an arrival. Without a queue, as many packets of `mean_packet` count as were sent in the
    /// idle time.
    fn average(&mut self, now: Timestamp) {
        let w_q = self.config.w_q;
        if self.fifo.packets() > 0 {
            self.packets.add(w_q, self.fifo.packets() as f64);
            self.bytes.add(w_q, self.fifo.bytes() as f64);
            return;
        }
        let rate = self.room.capacity_at(now).as_bps_f64() / 8.0;
        let sent = (now - self.idle_since).as_secs_f64() * rate / self.config.mean_packet;
        let kept = libm::pow(1.0 - w_q, sent.max(0.0));
        self.packets.0 *= kept;
        self.bytes.0 *= kept;
        // Idle times add up to the next arrival.
        self.idle_since = now;
    }

    /// The average over a threshold, in the threshold's unit.
    fn over(&self, threshold: Limit, now: Timestamp) -> f64 {
        match threshold {
            Limit::Unlimited => 0.0,
            Limit::Packets(n) => self.packets.0 / f64::from(n),
            Limit::Size(s) => self.bytes.0 / s.as_bytes() as f64,
            Limit::Time(t) => self.bytes.0 / self.room.capacity_at(now).size_in(t).as_bytes().max(1) as f64,
        }
    }

    /// Decides on an arriving packet (figure 2 of the paper).
    fn choose(&mut self, now: Timestamp) -> Choice {
        let Config { min_th, max_th, max_p, gentle, .. } = self.config;
        let (over_min, over_max) = (self.over(min_th, now), self.over(max_th, now));
        // `p_b`: the probability for the average, before packets chosen are spread.
        let p_b = if over_max >= 2.0 || (over_max >= 1.0 && !gentle) {
            self.count = Some(0);
            return Choice::Drop;
        } else if over_max >= 1.0 {
            max_p + (1.0 - max_p) * (over_max - 1.0)
        } else if over_min < 1.0 {
            self.count = None;
            return Choice::Pass;
        } else {
            // (avg - min_th) / (max_th - min_th), divided by avg.
            let (min, max) = (1.0 / over_min, if over_max > 0.0 { 1.0 / over_max } else { f64::INFINITY });
            max_p * (1.0 - min) / (max - min)
        };
        let count = self.count.map_or(0, |n| n.saturating_add(1));
        // p_a = p_b / (1 - count * p_b).
        let left = 1.0 - f64::from(count) * p_b;
        if p_b > 0.0 && (left <= p_b || self.random.uniform() < p_b / left) {
            self.count = Some(0);
            return if over_max >= 1.0 { Choice::Drop } else { Choice::Notify };
        }
        self.count = Some(count);
        Choice::Pass
    }
}

impl<P> Queue<P> {
    /// Compares the average with other thresholds from here on, for packets that have a count of their own.
    pub(super) fn use_profile(&mut self, config: Config, count: Option<u32>) {
        (self.config, self.count) = (config, count);
    }
    /// Packets since the last one chosen.
    pub(super) const fn count(&self) -> Option<u32> {
        self.count
    }
}

impl<P> discipline::Queue<P> for Queue<P> {
    #[inline(never)]
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, ledger: &mut Ledger<P>) -> Result<(), DropReason> {
        self.average(now);
        let choice = self.choose(now);
        if self.room.is_exceeded(now, &self.fifo, packet) {
            return Err(DropReason::Queue);
        }
        match choice {
            Choice::Pass => Ok(()),
            Choice::Notify if self.config.ecn && ledger.mark(packet) => Ok(()),
            Choice::Notify | Choice::Drop => Err(DropReason::Aqm),
        }
    }

    #[inline]
    fn put(&mut self, packet: Queued<P>) {
        self.fifo.push(packet);
    }

    // Out of line, so that it does not burden links under drop tail.
    #[inline(never)]
    fn dequeue(&mut self, now: Timestamp, _: &mut Ledger<P>) -> Option<Queued<P>> {
        let packet = self.fifo.pop();
        if self.fifo.packets() == 0 {
            self.idle_since = now;
        }
        packet
    }

    held_in_fifo!();
}

#[cfg(test)]
mod tests;
