use super::avoidance::{Acked, Avoidance, Congestion};
use super::Config;
use crate::ccid::Setup;
use weir_units::{TimeDelta, Timestamp};

/// Bytes of the initial window, within the bounds of 2 to 4 packets (RFC 3390, equation 1).
const INITIAL_BYTES: u64 = 4_380;
/// Minimum slow-start threshold (RFC 4341, section 5).
const MIN_SSTHRESH: u32 = 2;

/// Congestion window and slow-start threshold, in packets, and how long the window has not been full.
#[derive(Clone, Debug)]
pub(super) struct Window<A> {
    cwnd: u32,
    /// `u32::MAX` until the first congestion event.
    ssthresh: u32,
    initial: u32,
    max: u32,
    avoidance: A,
    /// Packets acknowledged in slow start that have not yet increased the window.
    acked: u32,
    validates: bool,
    /// When the last data packet was sent, when the window was last full, and the maximum outstanding since (RFC 2861).
    last_sent: Timestamp,
    last_full: Timestamp,
    used: u32,
}

impl<A: Avoidance> Window<A> {
    pub(super) fn new(config: &Config, setup: &Setup, avoidance: A) -> Self {
        let now = setup.now;
        let packets = (INITIAL_BYTES / setup.max_packet_size.as_bytes().max(1)).clamp(2, 4) as u32;
        Self {
            cwnd: packets,
            ssthresh: u32::MAX,
            initial: packets,
            max: config.max_window,
            avoidance,
            acked: 0,
            validates: config.window_validation,
            last_sent: now,
            last_full: now,
            used: 0,
        }
    }
    pub(super) const fn get(&self) -> u32 {
        self.cwnd
    }
    pub(super) const fn ssthresh(&self) -> Option<u32> {
        if self.ssthresh == u32::MAX { None } else { Some(self.ssthresh) }
    }

    /// Packets are acknowledged without a reason against growth.
    pub(super) fn grow(&mut self, acked: &Acked, ack_ratio: u16) {
        if self.cwnd < self.ssthresh {
            // One for every two, at most Ack Ratio / 2 per acknowledgement (RFC 4341, section 5).
            self.acked += acked.packets;
            let half = self.acked / 2;
            let by = half.min(u32::from(ack_ratio / 2).max(1));
            self.acked = if by == half { self.acked % 2 } else { 0 };
            self.cwnd = self.cwnd.saturating_add(by).min(self.ssthresh);
        } else {
            self.acked = 0;
            self.cwnd = self.avoidance.grow(self.cwnd, acked).max(self.cwnd);
        }
        self.cwnd = self.cwnd.min(self.max);
    }
    pub(super) fn on_application_limited(&mut self, now: Timestamp) {
        self.avoidance.on_application_limited(now);
    }
    pub(super) fn on_congestion(&mut self, why: Congestion) {
        let reduced = self.avoidance.on_congestion(self.cwnd, why);
        self.ssthresh = reduced.max(MIN_SSTHRESH);
        self.cwnd = if why == Congestion::Timeout { 1 } else { reduced.max(1) };
        self.acked = 0;
    }
    /// Packets were dropped in the receive buffer (RFC 4341, section 5.2).
    pub(super) fn on_receive_buffer_drops(&mut self, packets: u32) {
        self.cwnd = self.cwnd.saturating_sub(packets).max(1);
    }
    pub(super) fn leave_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.cwnd.max(MIN_SSTHRESH));
    }

    /// A data packet is about to be sent with `pipe` outstanding (RFC 2861, section 3.1, an idle period: the window is
    /// halved per timeout).
    pub(super) fn before_sending(&mut self, now: Timestamp, pipe: u32, timeout: TimeDelta) {
        let idle = now.saturating_since(self.last_sent);
        self.last_sent = now;
        if !self.validates || pipe > 0 || idle < timeout {
            return;
        }
        self.keep_in_mind();
        let halvings = idle.as_nanos() / timeout.as_nanos().max(1);
        let shrunk = self.cwnd >> halvings.min(31);
        self.cwnd = shrunk.max(self.initial.min(self.cwnd));
        (self.last_full, self.used) = (now, 0);
    }
    /// It was sent; `pipe` includes it (RFC 2861, section 3.1, application-limited periods). Returns whether the window
    /// is full.
    pub(super) fn after_sending(&mut self, now: Timestamp, pipe: u32, has_more: bool, timeout: TimeDelta) -> bool {
        if pipe >= self.cwnd {
            (self.last_full, self.used) = (now, 0);
            return true;
        }
        if self.validates && !has_more {
            self.used = self.used.max(pipe);
            let used = self.used.max(self.initial);
            if now.saturating_since(self.last_full) >= timeout {
                if used < self.cwnd {
                    self.keep_in_mind();
                    self.cwnd = u32::midpoint(self.cwnd, used);
                }
                (self.last_full, self.used) = (now, 0);
            }
        }
        false
    }
    /// The threshold remembers the window that there was.
    fn keep_in_mind(&mut self) {
        self.ssthresh = self.ssthresh.max((u64::from(self.cwnd) * 3 / 4) as u32);
    }
}
