//! Strict priority: a queue for each class of code points, the highest class with packets first. Expedited forwarding may
//! be limited to a share of the capacity, so that it cannot starve the others (RFC 8837, section 5: excess EF traffic is dropped).

use super::classes::ClassQueues;
use super::discipline::{self, Definition, Setup};
use super::parameter::parameters;
use super::queued::{Ledger, Queued};
use crate::dscp::Class;
use crate::stats::DropReason;
use weir_units::Timestamp;

parameters! {
    /// Parameters of strict priority.
    pub struct Config {
        /// Part of the queue's room for EF, VA and CS5 to CS7. Chosen here: a quarter for each class.
        ef_room: f64 = 0.25, 0.0 => 1.0;
        /// Part of the queue's room for AF3x, AF4x, CS3 and CS4.
        af_room: f64 = 0.25, 0.0 => 1.0;
        /// Part of the queue's room for the default and all other code points.
        df_room: f64 = 0.25, 0.0 => 1.0;
        /// Part of the queue's room for LE and CS1.
        le_room: f64 = 0.25, 0.0 => 1.0;
        /// Share of the capacity that EF may use; its packets beyond are dropped (RFC 8837, section 5: excess EF traffic is dropped). 1 limits nothing.
        ef_share: f64 = 1.0, 0.01 => 1.0;
        /// Bytes that EF may send at once above its share.
        ef_burst: f64 = 15_000.0, 1_500.0 => 10_000_000.0;
    }
}

impl Definition for Config {
    const NAME: &'static str = "strict-priority";
    const SUMMARY: &'static str = "a queue for each class of DSCPs, the highest class first";
    const SOURCE: &'static str = "RFC 2474, RFC 3246, RFC 8837";
    type Queue<P> = Queue<P>;
    fn queue<P>(&self, setup: Setup) -> Queue<P> {
        let rooms = [self.ef_room, self.af_room, self.df_room, self.le_room];
        Queue(Box::new(State {
            classes: ClassQueues::new(setup, rooms),
            config: *self,
            tokens: self.ef_burst,
            filled: Timestamp::ZERO,
        }))
    }
}

/// A queue under strict priority.
// Boxed, so that links under other disciplines are not larger because of this one.
#[derive(Clone, Debug)]
pub struct Queue<P>(Box<State<P>>);

#[derive(Clone, Debug)]
struct State<P> {
    classes: ClassQueues<P>,
    config: Config,
    /// Bytes that EF may send at `filled`.
    tokens: f64,
    filled: Timestamp,
}

impl<P> State<P> {
    /// Whether a packet of the highest class exceeds the class's share.
    fn exceeds_share(&mut self, now: Timestamp, bytes: u32) -> bool {
        if self.config.ef_share >= 1.0 {
            return false;
        }
        let rate = self.classes.room().capacity_at(now).as_bps_f64() / 8.0 * self.config.ef_share;
        let passed = now.saturating_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + rate * passed).min(self.config.ef_burst);
        self.filled = self.filled.max(now);
        self.tokens < f64::from(bytes)
    }
}

impl<P> discipline::Queue<P> for Queue<P> {
    #[inline(never)]
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, _: &mut Ledger<P>) -> Result<(), DropReason> {
        let state = &mut *self.0;
        let is_expedited = state.classes.class(packet) == Class::Expedited.index();
        if is_expedited && state.exceeds_share(now, packet.bytes()) {
            return Err(DropReason::Policer);
        }
        state.classes.admit(now, packet)?;
        if is_expedited {
            state.tokens -= f64::from(packet.bytes());
        }
        Ok(())
    }
    #[inline(never)]
    fn put(&mut self, packet: Queued<P>) {
        self.0.classes.put(packet);
    }
    // Out of line, so that it does not burden links under drop tail.
    #[inline(never)]
    fn dequeue(&mut self, _: Timestamp, _: &mut Ledger<P>) -> Option<Queued<P>> {
        let class = self.0.classes.first()?;
        self.0.classes.pop(class)
    }
    fn head_arrival(&self) -> Option<Timestamp> {
        self.0.classes.head_arrival()
    }
    fn packets(&self) -> usize {
        self.0.classes.waiting().packets
    }
    fn bytes(&self) -> u64 {
        self.0.classes.waiting().bytes
    }
}

#[cfg(test)]
mod tests;
