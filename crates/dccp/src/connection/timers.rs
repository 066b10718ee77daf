//! A connection's timers.

use super::{Config, Connection, EndReason, State};
use crate::ccid::{CcidReceiver, CcidSender, Permission};
use crate::packet::ResetCode;
use weir_units::{TimeDelta, Timestamp};

/// The longest that retransmissions back off to (RFC 4340, sections 8.1.1 and 8.3).
const MAX_BACKOFF: TimeDelta = TimeDelta::from_secs(64);
/// After this time without packets, buffers filled by a burst are released.
const IDLE: TimeDelta = TimeDelta::from_secs(2);

/// A timer whose interval doubles.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    at: Option<Timestamp>,
    interval: TimeDelta,
}

impl Backoff {
    pub(super) fn start(&mut self, now: Timestamp, interval: TimeDelta) {
        *self = Self { at: Some(now + interval), interval };
    }
    pub(super) fn stop(&mut self) {
        self.at = None;
    }
    /// Restarts the wait.
    pub(super) fn restart(&mut self, now: Timestamp) {
        self.at = self.at.map(|_| now + self.interval);
    }
    fn fires(&mut self, now: Timestamp) -> bool {
        let due = self.at.is_some_and(|t| t <= now);
        if due {
            self.interval = (self.interval * 2).min(MAX_BACKOFF);
            self.at = Some(now + self.interval);
        }
        due
    }
}

/// All timers except those of the CCIDs, of feature negotiation and of path MTU.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    /// Request, PARTOPEN's Ack, CloseReq and Close.
    pub(super) retransmit: Backoff,
    pub(super) give_up: Option<Timestamp>,
    pub(super) time_wait: Option<Timestamp>,
    /// Until when the send queue may drain before the connection closes.
    pub(super) linger: Option<Timestamp>,
    keep_alive: Option<Timestamp>,
    silent_until: Option<Timestamp>,
    idle: Option<Timestamp>,
}

impl Timers {
    /// A valid packet has arrived.
    pub(super) fn heard(&mut self, now: Timestamp, config: &Config) {
        if let Some(interval) = config.keep_alive {
            self.keep_alive = Some(now + interval);
            self.silent_until = Some(now + interval + config.give_up_after);
        }
    }
    /// A packet was received or sent.
    pub(super) fn busy(&mut self, now: Timestamp) {
        self.idle = Some(now + IDLE);
    }
    /// The connection has ended; only TIMEWAIT remains.
    pub(super) fn stop(&mut self) {
        *self = Self { time_wait: self.time_wait, ..Self::default() };
    }
    fn next(&self) -> Option<Timestamp> {
        let all = [
            self.retransmit.at,
            self.give_up,
            self.time_wait,
            self.linger,
            self.keep_alive,
            self.silent_until,
            self.idle,
        ];
        all.into_iter().flatten().min()
    }
}

impl Connection {
    /// When to call [`Self::handle_timeout`], if no event occurs before.
    pub fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut next = self.timers.next();
        let mut earlier = |t: Option<Timestamp>| next = next.into_iter().chain(t).min();
        if matches!(self.state, State::Closed | State::TimeWait) {
            return next;
        }
        if matches!(self.state, State::PartOpen | State::Open) {
            earlier(self.featured_ack_due());
            earlier(self.halves.receiver.as_ref().and_then(CcidReceiver::poll_timeout));
        }
        if let Some(sender) = &self.halves.sender {
            earlier(sender.poll_timeout());
            earlier(self.sending.constrained.map(|c| c.1).filter(|t| *t > now));
            if self.data_may_leave(now)
                && let Some(front) = self.queue.front(now)
                && let Permission::At(t) = sender.may_send(now, front.size())
            {
                earlier(Some(t));
            }
        }
        if self.state == State::Open {
            earlier(self.mtu.poll_timeout());
        }
        next
    }

    /// The deadline has passed.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let due = |t: &mut Option<Timestamp>| t.is_some_and(|at| at <= now) && t.take().is_some();
        if due(&mut self.timers.idle) {
            self.received.shrink();
            self.sending.log.shrink();
            self.halves.vector.shrink();
            if let Some(sender) = &mut self.halves.sender {
                sender.on_idle();
            }
            self.queue.shrink();
        }
        if due(&mut self.timers.time_wait) {
            self.state = State::Closed;
        }
        if due(&mut self.timers.give_up) || due(&mut self.timers.silent_until) {
            self.give_up(now);
            return;
        }
        if due(&mut self.timers.linger) {
            self.start_closing(now);
        }
        if self.timers.retransmit.fires(now) {
            match self.state {
                State::Request => self.due.request = true,
                State::PartOpen => self.due.ack = true,
                State::CloseReq | State::Closing => self.due.close = true,
                _ => self.timers.retransmit.stop(),
            }
        }
        if due(&mut self.timers.keep_alive) {
            self.due.sync.get_or_insert(self.sequences.gsr);
            self.timers.keep_alive = self.config.keep_alive.map(|i| now + i);
        }
        if matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        if let Some(sender) = &mut self.halves.sender
            && sender.poll_timeout().is_some_and(|t| t <= now)
        {
            sender.on_timeout(now);
        }
        self.follow_ack_ratio();
        if self.state == State::Open {
            self.mtu.on_timeout(now);
        }
    }

    /// The other end is silent: nothing more is expected of it.
    fn give_up(&mut self, now: Timestamp) {
        // Sections 8.1.1, 8.1.3 and 8.1.5: a Reset removes any state of the other end.
        self.reset_with(now, ResetCode::ABORTED, [0; 3], EndReason::TimedOut);
    }
}
