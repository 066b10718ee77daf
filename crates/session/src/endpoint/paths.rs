//! The part of an end that calls over several paths have: one path pays for nothing here but a pointer.

use super::address_check::AddressChecks;
use super::handover::Handovers;
use super::interfaces::Interfaces;
use super::path_checks::PathChecks;
use super::subflow_times::SubflowTimes;
use super::subflows::PacketCopy;
use weir_units::Timestamp;

/// Checks, reports and copies of several paths.
pub(super) struct Paths {
    /// When checks and regular reports of any of them are due; [`Timestamp::MAX`] for never.
    pub(super) due: Timestamp,
    /// A packet of which copies are to be sent on other paths.
    pub(super) copy: Option<PacketCopy>,
    /// When reports on each of them are due.
    pub(super) times: SubflowTimes,
    /// Paths added and removed.
    pub(super) handovers: Handovers,
    /// Checks of paths that have failed, once one has.
    pub(super) checks: Option<Box<PathChecks>>,
    pub(super) address_checks: AddressChecks,
    /// Addresses offered for further paths.
    pub(super) interfaces: Interfaces,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            due: Timestamp::MAX,
            copy: None,
            times: SubflowTimes::default(),
            handovers: Handovers::default(),
            checks: None,
            address_checks: AddressChecks::default(),
            interfaces: Interfaces::default(),
        }
    }
}

impl Paths {
    /// When checks or regular reports on a path are due has changed.
    pub(super) fn note_due(&mut self) {
        let (reports, checks) = (self.times.next(), self.handovers.next());
        let failed = self.checks.as_ref().and_then(|c| c.next());
        self.due = reports.into_iter().chain(checks).chain(failed).min().unwrap_or(Timestamp::MAX);
    }
}
