//! A call's controller: which there can be, and how it is made.

use weir_cc::tunable::SetupError;
use weir_cc::{Limits, Receiver as Estimator, Registry, Sender as Controller, Setup, Spec, Transport as Carrier};
use weir_units::{DataRate, Timestamp};

/// Settings that can be changed while a call runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The controller's name.
    pub controller: String,
    /// Bounds on the media rate.
    pub limits: Limits,
}

/// Why a controller cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// Its name or a parameter.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A browser sends transport-wide feedback alone.
    #[error(
        "controller `{0}` needs more than transport-wide feedback, which is all that browsers send and calls have; these do not: {1}"
    )]
    NeedsMore(String, String),
    /// The other end of this call has no per-packet feedback.
    #[error(
        "controller `{0}` needs per-packet feedback; this call's other end has the receiver's estimate alone, which `{REMB}` follows"
    )]
    Remb(String),
}

/// The controller of calls whose other end has no feedback but its estimate.
pub(super) const REMB: &str = "gcc-remb";

/// Whether transport-wide feedback suffices for a controller. A forecast of capacity is no part of a call with a browser.
pub fn suits(spec: &Spec) -> bool {
    let suffices = spec.feedback.is_some() || !spec.adapts;
    spec.transport == Carrier::Udp && spec.reports.is_none() && suffices && !spec.foresees
}

/// A controller by name, beginning with this rate.
///
/// # Errors
/// It is unknown, or transport-wide feedback does not suffice.
pub fn controller(
    registry: &Registry,
    settings: &Settings,
    start_rate: DataRate,
    now: Timestamp,
) -> Result<Controller, ControllerError> {
    let setup = Setup { limits: settings.limits, start_rate, now, seed: 1, params: Vec::new() };
    let pair = registry.make(&settings.controller, &setup)?;
    if pair.receiver.is_some() || !registry.get(&settings.controller).is_some_and(suits) {
        let names: Vec<_> = registry.specs().filter(|s| suits(s)).map(|s| s.name.clone()).collect();
        return Err(ControllerError::NeedsMore(settings.controller.clone(), names.join(", ")));
    }
    Ok(pair.sender)
}

/// The controller that follows the other end's estimate, and its half that estimates what that end may send.
pub(super) fn by_estimate(
    registry: &Registry,
    settings: &Settings,
    start_rate: DataRate,
    now: Timestamp,
) -> Result<(Controller, Option<Estimator>), ControllerError> {
    if settings.controller != REMB {
        return Err(ControllerError::Remb(settings.controller.clone()));
    }
    let setup = Setup { limits: settings.limits, start_rate, now, seed: 1, params: Vec::new() };
    let pair = registry.make(REMB, &setup)?;
    Ok((pair.sender, pair.receiver))
}
