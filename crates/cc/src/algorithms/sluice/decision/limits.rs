//! Bounds on the rate by the application, the receiver and devices on the path.

use super::super::quantity::{Rate, Time};
use super::notice::Notice;
use crate::controller::Limits;
use weir_units::DataRate;

/// The bounds in force.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Bounds {
    /// The application's.
    pub(in super::super) limits: Limits,
    /// The rate that the receiver asks not to exceed.
    pub(in super::super) requested: Option<Rate>,
    pub(in super::super) notice: Notice,
}

impl Bounds {
    /// The bounds of an application.
    pub(in super::super) fn new(limits: Limits) -> Self {
        Self { limits, requested: None, notice: Notice::default() }
    }

    /// The rate within all bounds; the floor wins.
    pub(in super::super) fn apply(&self, rate: Rate, now: Time) -> Rate {
        let most = Rate::from(self.limits.ceiling).at_most(self.requested).at_most(self.notice.bound(now));
        rate.min(most).max(self.limits.floor.into())
    }

    /// The rate within the application's bounds.
    pub(in super::super) fn media_rate(&self, rate: Rate) -> DataRate {
        self.limits.clamp(rate.into())
    }
}
