//! Helpers for tests of controllers: setups in kbit/s, cues with default fields, metrics by name.

pub(crate) mod link;

use crate::cue::{Cue, EstimateKind, ReceiverEstimate, ReportBlock};
use crate::spec::{Algorithm, Setup, Start};
use crate::{Controller, Limits};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Limits and start rate in kbit/s. Controllers start at time zero.
#[derive(Clone, Copy)]
pub(crate) struct Kbps {
    pub(crate) floor: u64,
    pub(crate) start: u64,
    pub(crate) ceiling: u64,
}

impl Kbps {
    pub(crate) fn limits(self) -> Limits {
        Limits { floor: DataRate::from_kbps(self.floor), ceiling: DataRate::from_kbps(self.ceiling) }
    }
    pub(crate) fn start(self) -> Start {
        Start { limits: self.limits(), rate: DataRate::from_kbps(self.start), now: Timestamp::ZERO }
    }
    pub(crate) fn setup(self, params: &[(&str, f64)]) -> Setup {
        let Start { limits, rate, now } = self.start();
        let params = params.iter().map(|&(name, value)| (name.into(), value)).collect();
        Setup { limits, start_rate: rate, now, seed: 1, params }
    }
    /// The sender half under the algorithm's first name.
    pub(crate) fn sender<A: Algorithm>(self, params: &[(&str, f64)]) -> A {
        A::make(&A::specs()[0].name, &self.setup(params)).expect("valid").sender
    }
    /// The receiver half under the algorithm's first name.
    pub(crate) fn receiver<A: Algorithm>(self, params: &[(&str, f64)]) -> A::Receiver {
        A::make(&A::specs()[0].name, &self.setup(params)).expect("valid").receiver.expect("it has one")
    }
}

/// A report of 100 packets without loss and without a round-trip time.
pub(crate) const REPORT: ReportBlock = ReportBlock {
    now: Timestamp::ZERO,
    fraction_lost: 0.0,
    cumulative_lost: 0,
    highest_sequence: 0,
    expected: 100,
    jitter: TimeDelta::ZERO,
    rtt: None,
};

/// A receiver's estimate at time zero.
pub(crate) fn estimate(kbps: u64, kind: EstimateKind) -> Cue<'static> {
    Cue::ReceiverEstimate(ReceiverEstimate { now: Timestamp::ZERO, rate: DataRate::from_kbps(kbps), kind })
}

/// The controller's media rate in kbit/s.
pub(crate) fn kbps(controller: &impl Controller) -> f64 {
    controller.target().media_rate.as_kbps_f64()
}

/// One of a controller's metrics by name.
#[track_caller]
pub(crate) fn metric(controller: &impl Controller, wanted: &str) -> f64 {
    let mut found = None;
    controller.metrics(&mut |name, value| {
        if name == wanted {
            found = Some(value);
        }
    });
    found.unwrap_or_else(|| panic!("no metric is named {wanted}"))
}
