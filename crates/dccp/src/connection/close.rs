//! Closing (RFC 4340, section 8.3).

use super::outgoing::ResetOut;
use super::{Connection, End, EndReason, Role, State};
use crate::option::FeatureNumber;
use crate::packet::ResetCode;
use weir_units::{TimeDelta, Timestamp};

/// Minimum interval of Close or CloseReq; the RFC has two round trips, which are almost nothing on a link within a
/// host.
const MIN_CLOSE_INTERVAL: TimeDelta = TimeDelta::from_millis(10);

/// Maximum bytes kept of a Reset's error text.
const MAX_TEXT: usize = 256;

/// The end reason for a Reset with this code. Two ends without a common CCID both end by a Reset that names an option
/// of the feature.
pub(super) fn reason(code: ResetCode, data: [u8; 3], by_peer: bool) -> EndReason {
    match (code, data) {
        (ResetCode::CLOSED, _) => EndReason::Closed,
        (ResetCode::MANDATORY_ERROR | ResetCode::OPTION_ERROR, [32..=35, number, _])
            if number == FeatureNumber::CCID.0 =>
        {
            EndReason::NoCommonCcid
        }
        _ if by_peer => EndReason::ResetByPeer(code, data),
        _ => EndReason::Reset(code, data),
    }
}

impl Connection {
    /// Closes. Data in the send queue is sent first; then a client sends Close, a server CloseReq. No more data is
    /// accepted in either direction. [`Self::end`] shows when both ends have closed.
    pub fn close(&mut self, now: Timestamp) {
        self.deaf = true;
        match self.state {
            // The other end does not know of the connection, or it is half open: a Reset ends it.
            State::Request | State::Respond => {
                self.reset_with(now, ResetCode::ABORTED, [0; 3], EndReason::Closed);
            }
            State::PartOpen | State::Open if self.timers.linger.is_none() => {
                self.timers.linger = Some(now + self.config.give_up_after);
                self.close_if_emptied(now);
            }
            _ => {}
        }
    }

    /// Ends the connection at once by a Reset; data in the send queue is lost.
    pub fn abort(&mut self, now: Timestamp) {
        if !matches!(self.state, State::Closed | State::TimeWait) {
            self.reset_with(now, ResetCode::ABORTED, [0; 3], EndReason::Reset(ResetCode::ABORTED, [0; 3]));
        }
    }

    /// Closes once the send queue is empty, if the application has closed. It waits for the connection to open.
    pub(super) fn close_if_emptied(&mut self, now: Timestamp) {
        if self.timers.linger.is_some()
            && self.state == State::Open
            && (self.queue.front(now).is_none() || self.peer_deaf)
        {
            self.start_closing(now);
        }
    }

    /// Sends Close or CloseReq, also with data in the queue.
    pub(super) fn start_closing(&mut self, now: Timestamp) {
        self.timers.linger = None;
        match self.state {
            State::PartOpen | State::Open if self.role == Role::Client => self.enter_closing(now),
            State::Open => {
                self.state = State::CloseReq;
                self.begin_close_timer(now);
            }
            _ => {}
        }
    }

    /// To CLOSING (step 13, or by the application).
    pub(super) fn enter_closing(&mut self, now: Timestamp) {
        self.state = State::Closing;
        self.begin_close_timer(now);
    }

    fn begin_close_timer(&mut self, now: Timestamp) {
        self.due.close = true;
        self.timers.linger = None;
        self.timers.retransmit.start(now, (self.rtt_or_default() * 2).max(MIN_CLOSE_INTERVAL));
        self.timers.give_up = Some(now + self.config.give_up_after);
    }

    /// Step 9: the other end has reset the connection.
    pub(super) fn on_reset(&mut self, now: Timestamp, code: ResetCode, data: [u8; 3], text: &[u8]) {
        // If this end was closing anyway, the other one may have closed and dropped its state.
        let closing = matches!(self.state, State::CloseReq | State::Closing);
        let closed = closing && code == ResetCode::NO_CONNECTION;
        self.tear_down(State::TimeWait, if closed { EndReason::Closed } else { reason(code, data, true) });
        self.reset_text = String::from_utf8_lossy(&text[..text.len().min(MAX_TEXT)]).into();
        self.timers.time_wait = Some(now + self.config.time_wait);
    }

    /// Sends a Reset and ends.
    pub(super) fn reset_with(&mut self, _now: Timestamp, code: ResetCode, data: [u8; 3], reason: EndReason) {
        self.tear_down(State::Closed, reason);
        self.due.reset = Some(ResetOut::Own { code, data, unanswered: !self.sequences.has_begun() });
    }

    fn tear_down(&mut self, state: State, reason: EndReason) {
        self.state = state;
        self.end.get_or_insert(End { reason });
        self.timers.stop();
        self.due = super::outgoing::Due::default();
        self.cookies = Vec::new();
        self.sending = super::outgoing::Sending::default();
        self.queue.clear();
    }
}
