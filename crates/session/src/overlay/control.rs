//! The congestion controllers of hops.

use crate::config::{ReceivingPath, SendingPath};
use crate::feedback::TwccWriter;
use crate::receiver::ReceivePath;
use crate::sender::SendPath;
use std::sync::Arc;
use weir_cc::tunable::SetupError;
use weir_cc::{FeedbackPlan, Limits, Registry, Setup};
use weir_units::{DataRate, Ecn, PathId, Timestamp};

/// Makes the controller of each hop to a child. Cheap to clone, so that many nodes can share it.
#[derive(Clone)]
pub struct HopControl {
    registry: Arc<Registry>,
    name: Arc<str>,
    params: Arc<[(String, f64)]>,
    plan: FeedbackPlan,
    ecn: Ecn,
}

/// Why a controller cannot be that of hops.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HopControlError {
    /// There is no such controller, or it rejects the parameters.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// It needs more than feedback on single packets, which is all that hops have.
    #[error("{0} needs reports, a receiver half or a transport of its own; hops have feedback on single packets alone")]
    NotPerPacket(Arc<str>),
}

impl core::fmt::Debug for HopControl {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HopControl").field("name", &self.name).field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// Bounds of a hop's rate and where it starts, as multiples of the tree's rate and as a share of the upper bound (calibrated
/// with 300 nodes of which a fifth vanishes). No relay can adapt the stream: below the tree's rate packets would only be
/// late. A hop that cannot carry it shows losses, and the child asks for another parent. What is above the tree's rate serves
/// repeated packets; more of it than this overloads an uplink with many hops.
const FLOOR: f64 = 1.1;
const CEILING: f64 = 2.0;
const START_SHARE: f64 = 0.625;

fn times(rate: DataRate, factor: f64) -> DataRate {
    DataRate::from_bps_f64(rate.as_bps_f64() * factor)
}

impl HopControl {
    /// The controller of this name, with these parameters.
    ///
    /// # Errors
    /// An unknown controller, parameters that it rejects, or one that needs more than per-packet feedback.
    pub fn new(registry: Arc<Registry>, name: &str, params: &[(String, f64)]) -> Result<Self, HopControlError> {
        let spec = registry.get(name).ok_or_else(|| SetupError::UnknownController { name: name.into() })?;
        let name: Arc<str> = name.into();
        let plan = spec.feedback.filter(|_| spec.reports.is_none() && spec.transport == weir_cc::Transport::Udp);
        let (Some(plan), ecn) = (plan, spec.ecn) else { return Err(HopControlError::NotPerPacket(name)) };
        let control = Self { registry, name, params: params.into(), plan, ecn };
        let limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_mbps(10) };
        match control.make(limits, 0, Timestamp::ZERO)? {
            (_, true) => Err(HopControlError::NotPerPacket(control.name)),
            _ => Ok(control),
        }
    }

    /// The controller's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sender half, and whether there is a receiver half.
    fn make(&self, limits: Limits, seed: u64, now: Timestamp) -> Result<(weir_cc::Sender, bool), SetupError> {
        let setup =
            Setup { limits, start_rate: times(limits.ceiling, START_SHARE), now, seed, params: self.params.to_vec() };
        let pair = self.registry.make(&self.name, &setup)?;
        Ok((pair.sender, pair.receiver.is_some()))
    }

    /// The path to a child that is to carry `rate`.
    ///
    /// # Errors
    /// The rate contradicts the controller's parameters.
    pub(super) fn path(&self, tree: u8, rate: DataRate, seed: u64, now: Timestamp) -> Result<SendPath, SetupError> {
        let limits = Limits { floor: times(rate, FLOOR), ceiling: times(rate, CEILING) };
        let (controller, _) = self.make(limits, seed, now)?;
        let config = SendingPath { per_packet_feedback: true, ecn: self.ecn, ..SendingPath::new(controller) };
        Ok(SendPath::new(PathId::new(tree), config, 65_536 + (seed & 0xffff), now))
    }

    /// The path from a parent.
    pub(super) fn receive_path(&self, tree: u8, clock_rate: u32, ssrcs: [u32; 2], now: Timestamp) -> ReceivePath {
        let [own, media] = ssrcs;
        let twcc = TwccWriter::with_max_size(own, media, crate::feedback::MAX_SUBFLOW_FEEDBACK);
        let config = ReceivingPath { feedback: Some(self.plan), ..ReceivingPath::default() };
        let mut path = ReceivePath::new(config, twcc, now);
        path.make_subflow(PathId::new(tree), clock_rate);
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_controllers_of_per_packet_feedback_serve_hops() {
        let registry = Arc::new(Registry::builtin());
        for name in ["gcc", "scream"] {
            let control = HopControl::new(registry.clone(), name, &[]).expect(name);
            assert_eq!(control.name(), name);
            let rate = DataRate::from_kbps(200);
            let path = control.path(1, rate, 7, Timestamp::ZERO).expect("made");
            assert!(path.target().media_rate >= rate, "{name} starts above the rate that it has to carry");
        }
        let refused = |name| HopControl::new(registry.clone(), name, &[]).err();
        assert_eq!(refused("gcc-remb"), Some(HopControlError::NotPerPacket("gcc-remb".into())));
        assert!(matches!(refused("none"), Some(HopControlError::Setup(_))));
        let unknown = HopControl::new(registry, "gcc", &[("none".into(), 1.0)]).err();
        assert!(matches!(unknown, Some(HopControlError::Setup(_))));
    }
}
