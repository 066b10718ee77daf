//! The sender half of both variants.

use super::config::Config;
use super::rate::ReferenceRate;
use super::receiver::NadaReceiver;
use super::signal::{Aggregator, Signal};
use super::window::Arrival;
use crate::controller::{Controller, Limits, Target, TimeoutReason};
use crate::cue::{Cue, NadaMode, NadaReport, QueueState, SentPacket, TransportFeedback};
use crate::registry::{BuiltIn, FeedbackFormat, FeedbackPlan, Pair, Setup, Spec};
use crate::tunable::SetupError;
use std::sync::Arc;
use weir_units::{DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

const SENDER_SIDE: &str = "nada";
const RECEIVER_SIDE: &str = "nada-receiver";

/// NADA's sender.
#[derive(Clone, Debug)]
pub struct Nada {
    config: Config,
    rate: ReferenceRate,
    /// `None` where the receiver computes the signal.
    aggregator: Option<Box<Aggregator>>,
    last: Signal,
    queued: DataSize,
    /// When the oldest packet left that no feedback has followed.
    waiting_since: Option<Timestamp>,
}

impl Nada {
    /// The variant that computes the signal here, from per-packet feedback. Errors: see [`Config::set_all`].
    pub fn sender_side(setup: &Setup) -> Result<Self, SetupError> {
        Self::new(SENDER_SIDE, setup, Some(Box::new(Aggregator::new())))
    }

    /// The variant that acts on the receiver's reports. Errors: see [`Config::set_all`].
    pub fn receiver_side(setup: &Setup) -> Result<Self, SetupError> {
        Self::new(RECEIVER_SIDE, setup, None)
    }

    fn new(name: &str, setup: &Setup, aggregator: Option<Box<Aggregator>>) -> Result<Self, SetupError> {
        let mut config = Config::default();
        config.set_all(name, &setup.params)?;
        Ok(Self {
            config,
            rate: ReferenceRate::new(setup.start_rate, setup.limits, setup.now),
            aggregator,
            last: Signal { receive_rate: f64::NAN, d_queue: f64::NAN, d_tilde: f64::NAN, ..Signal::default() },
            queued: DataSize::ZERO,
            waiting_since: None,
        })
    }

    fn on_feedback(&mut self, feedback: &TransportFeedback<'_>) {
        let Some(aggregator) = &mut self.aggregator else { return };
        if let Some(rtt) = feedback.rtt {
            self.rate.set_rtt(rtt);
            aggregator.set_rtt(rtt);
        }
        if feedback.packets.is_empty() {
            return;
        }
        self.waiting_since = None;
        for p in feedback.packets {
            match p.arrival {
                None => aggregator.on_lost(1),
                Some(arrival) => {
                    let at = arrival - RemoteTimestamp::ZERO;
                    let arrival = Arrival {
                        at,
                        delay: Some(at - (p.departure - Timestamp::ZERO)),
                        size: u32::try_from(p.size.as_bytes()).unwrap_or(u32::MAX),
                        lost_before: 0,
                        late: p.was_lost,
                        marked: p.ecn == Ecn::Ce,
                    };
                    aggregator.on_arrival(arrival, &self.config);
                }
            }
        }
        if self.rate.is_due(feedback.now, &self.config) {
            let s = *aggregator.report(&self.config);
            self.rate.update(feedback.now, s.mode, s.x_curr, s.receive_rate, &self.config);
            self.last = s;
        }
    }

    fn on_report(&mut self, report: &NadaReport) {
        if self.aggregator.is_some() {
            return;
        }
        if let Some(rtt) = report.rtt {
            self.rate.set_rtt(rtt);
        }
        self.waiting_since = None;
        if !self.rate.is_due(report.now, &self.config) {
            return;
        }
        self.last.mode = report.mode;
        self.last.x_curr = report.aggregate_delay.max(TimeDelta::ZERO).min(self.config.xmax).as_millis_f64();
        self.last.receive_rate = report.receive_rate.as_bps_f64();
        self.rate.update(report.now, report.mode, self.last.x_curr, self.last.receive_rate, &self.config);
    }

    fn patience(&self) -> Option<TimeDelta> {
        let timeout = self.config.feedback_timeout;
        (timeout > TimeDelta::ZERO).then(|| timeout + self.rate.rtt())
    }
}

impl BuiltIn for Nada {
    fn specs() -> Vec<Spec> {
        let interval = Config::default().delta;
        let spec = |name: &str, summary: &str, feedback, make| Spec {
            name: name.into(),
            summary: summary.into(),
            source: "RFC 8698".into(),
            feedback,
            params: Config::params(),
            make,
        };
        let plan = FeedbackPlan {
            format: FeedbackFormat::CongestionControl,
            min_interval: interval,
            max_interval: interval,
            bandwidth_share: 1.0,
        };
        vec![
            spec(
                SENDER_SIDE,
                "NADA, signal computed at the sender from per-packet feedback",
                Some(plan),
                Arc::new(|setup| Ok(Pair { sender: Self::sender_side(setup)?.into(), receiver: None })),
            ),
            spec(
                RECEIVER_SIDE,
                "NADA, signal computed at the receiver and reported every 100 ms",
                None,
                Arc::new(|setup| {
                    let receiver = NadaReceiver::new(setup)?;
                    Ok(Pair { sender: Self::receiver_side(setup)?.into(), receiver: Some(receiver.into()) })
                }),
            ),
        ]
    }
}

impl Controller for Nada {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.queued = packet.queued;
        if self.waiting_since.is_none() {
            self.waiting_since = Some(packet.now);
        }
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::TransportFeedback(feedback) => self.on_feedback(feedback),
            Cue::NadaReport(report) => self.on_report(report),
            _ => {}
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.rate.set_limits(limits);
    }
    fn on_queue(&mut self, queue: &QueueState) {
        self.queued = queue.queued;
    }
    fn on_timeout(&mut self, now: Timestamp) {
        let Some((at, _)) = self.poll_timeout() else { return };
        if at <= now {
            self.rate.halve();
            self.waiting_since = Some(now);
        }
    }
    fn target(&self) -> Target {
        self.rate.target(self.queued, &self.config)
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.waiting_since? + self.patience()?, TimeoutReason::FeedbackMissing))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let s = &self.last;
        let told_here = |v: f64| if self.aggregator.is_some() { v } else { f64::NAN };
        out("r_ref_bps", self.rate.bps());
        out("x_curr_ms", s.x_curr);
        out("rmode", mode_number(s.mode));
        out("r_recv_bps", s.receive_rate);
        out("rtt_ms", self.rate.rtt().as_millis_f64());
        out("d_queue_ms", told_here(s.d_queue));
        out("d_tilde_ms", told_here(s.d_tilde));
        out("p_loss", told_here(s.p_loss));
        out("p_mark", told_here(s.p_mark));
        out("loss_interval", told_here(s.loss_interval));
    }
}

/// rmode as the RFC numbers it.
pub(super) fn mode_number(mode: NadaMode) -> f64 {
    match mode {
        NadaMode::AcceleratedRampUp => 0.0,
        NadaMode::GradualUpdate => 1.0,
    }
}
