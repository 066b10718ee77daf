//! X, the allowed sending rate, and its updates by feedback and by the nofeedback timer (RFC 5348, sections 4.3 and
//! 4.4).

use super::receive_rate::ReceiveRateSet;
use crate::tcp::throughput::{Equation, TcpFlow};
use weir_units::{TimeDelta, Timestamp};

/// Upper bound of all rates, in bit/s, which keeps sums finite.
pub const MAX_RATE: f64 = 1e13;

/// The inputs of the rate at one time. Rates in bit/s.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The flow of the throughput equation.
    pub tcp: TcpFlow,
    /// R: round-trip time.
    pub rtt: TimeDelta,
    /// initial_rate (RFC 5348, section 4.2), also recover_rate (section 4.4).
    pub initial_rate: f64,
    /// s / t_mbi.
    pub least: f64,
}

/// The content of a feedback packet. Rates in bit/s.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// X_recv.
    pub receive_rate: f64,
    /// p: loss events per packet, 0 to 1.
    pub loss_event_rate: f64,
    /// Whether it reports a new loss event.
    pub new_event: bool,
    /// Whether the interval that it covers was entirely data-limited.
    pub data_limited: bool,
}

/// The allowed sending rate. Rates in bit/s.
#[derive(Clone, Debug)]
pub struct AllowedRate {
    x: f64,
    x_calc: f64,
    p: f64,
    /// tld: when the rate was last doubled.
    doubled_at: Timestamp,
    receive_set: ReceiveRateSet,
    /// Factor on the throughput equation and the initial rate: the share of a group of coupled flows.
    share: f64,
}

impl AllowedRate {
    /// An initial rate, kept until there is a round-trip time.
    pub fn new(x: f64, now: Timestamp) -> Self {
        let x = x.min(MAX_RATE);
        Self { x, x_calc: f64::NAN, p: 0.0, doubled_at: now, receive_set: ReceiveRateSet::new(now), share: 1.0 }
    }

    /// X.
    pub fn get(&self) -> f64 {
        self.x
    }
    /// X_Bps, by the throughput equation; NaN before the first loss event.
    pub fn by_equation(&self) -> f64 {
        self.x_calc
    }
    /// p at the last feedback.
    pub fn loss_event_rate(&self) -> f64 {
        self.p
    }
    /// The greatest of X_recv_set; initially infinite.
    pub fn max_receive_rate(&self) -> f64 {
        self.receive_set.max()
    }

    /// Coupling with other flows has set the rate, which the equation gives this share of from now on.
    pub fn couple(&mut self, x: Option<f64>, share: f64) {
        self.share = share;
        self.x = x.unwrap_or(self.x).min(MAX_RATE);
    }

    /// The first round-trip time is known (RFC 5348, section 4.2).
    pub fn start(&mut self, now: Timestamp, initial_rate: f64) {
        self.x = initial_rate.min(MAX_RATE);
        self.doubled_at = now;
        self.receive_set = ReceiveRateSet::new(now);
    }

    /// Step (4) of RFC 5348, section 4.3.
    pub fn on_feedback(&mut self, now: Timestamp, feedback: &Feedback, terms: &Terms) {
        let limit = self.receive_limit(now, feedback, terms.rtt);
        self.set(now, limit, terms);
    }

    /// p and recv_limit of step (4).
    pub fn receive_limit(&mut self, now: Timestamp, feedback: &Feedback, rtt: TimeDelta) -> f64 {
        let worse = feedback.new_event || feedback.loss_event_rate > self.p;
        self.p = feedback.loss_event_rate;
        let x_recv = feedback.receive_rate;
        if !feedback.data_limited {
            self.receive_set.update(x_recv, now, rtt);
            2.0 * self.receive_set.max()
        } else if worse {
            self.receive_set.halve();
            self.receive_set.maximize(0.85 * x_recv, now);
            self.receive_set.max()
        } else {
            self.receive_set.maximize(x_recv, now);
            2.0 * self.receive_set.max()
        }
    }

    /// The rest of step (4): X.
    pub fn set(&mut self, now: Timestamp, receive_limit: f64, terms: &Terms) {
        if self.p > 0.0 {
            let by_equation = terms.tcp.throughput(Equation::Full, self.p);
            self.x_calc = by_equation.map_or(MAX_RATE, |rate| rate.as_bps_f64() * self.share);
            self.x = self.x_calc.min(receive_limit).max(terms.least).min(MAX_RATE);
        } else if now - self.doubled_at >= terms.rtt {
            self.x = (2.0 * self.x).min(receive_limit).max(terms.initial_rate * self.share).min(MAX_RATE);
            self.doubled_at = now;
        }
    }

    /// Expiration of the nofeedback timer (RFC 5348, section 4.4); `idle` is whether nothing was sent since it was set.
    /// Returns `false` if nothing was halved, in which case nothing will be until the next packet sets the timer again.
    pub fn on_nofeedback(&mut self, now: Timestamp, idle: bool, has_rtt: bool, terms: &Terms) -> bool {
        let recover_rate = terms.initial_rate;
        let x_recv = self.receive_set.max();
        let recovered = if self.p > 0.0 { x_recv < recover_rate } else { self.x < 2.0 * recover_rate };
        if idle && (!has_rtt || recovered) {
            return false;
        }
        if self.p <= 0.0 {
            self.x = (self.x / 2.0).max(terms.least);
        } else if self.x_calc > 2.0 * x_recv {
            self.limit(x_recv, now, terms);
        } else {
            self.limit(self.x_calc / 2.0, now, terms);
        }
        true
    }

    /// Update_Limits().
    fn limit(&mut self, timer_limit: f64, now: Timestamp, terms: &Terms) {
        let limit = timer_limit.max(terms.least);
        self.receive_set.replace(limit / 2.0, now);
        self.set(now, limit, terms);
    }
}
