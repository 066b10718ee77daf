//! The registry's entry.

use super::{Config, Sluice};
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, Setup, Spec};
use crate::tunable::SetupError;
use weir_units::{Ecn, TimeDelta};

/// Reports of RFC 8888, as often as 5 % of the media rate allow.
const FEEDBACK: FeedbackPlan = FeedbackPlan {
    format: FeedbackFormat::CongestionControl,
    min_interval: TimeDelta::from_millis(25),
    max_interval: TimeDelta::from_millis(100),
    bandwidth_share: 0.05,
};

impl Algorithm for Sluice {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            ecn: Ecn::Ect1,
            feedback: Some(FEEDBACK),
            params: Config::params(),
            ..Spec::new(
                "sluice",
                "capacity by dispersion, a short queue held on purpose, growth by doubling where there is room",
                "Weir's own: docs/sluice.md",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}
