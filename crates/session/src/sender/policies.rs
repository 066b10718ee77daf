//! The application's policies for paths, applied to what the scheduler sees.

use super::{Multipath, Sender};
use crate::multipath::{PathPolicy, Policies};
use weir_units::{DataRate, PathId, Timestamp};

impl Multipath {
    /// Leaves out usable paths that the application does not want to be used now, and parts of the rates of others.
    #[inline]
    pub(super) fn apply_policies(&mut self, now: Timestamp) {
        let Some(mut policies) = self.policies.take() else { return };
        self.views.iter_mut().for_each(|v| v.rate = policies.rate(v.id, v.rate));
        let sent = |path: PathId| self.states.get(path.index()).map_or(0, |s| s.bytes);
        let wanted = policies.select(&self.views, self.usable, sent, now);
        self.use_only(wanted);
        self.policies = Some(policies);
    }
}

impl Sender {
    /// Another controller takes over a path; `false` if there is no such path.
    pub(crate) fn set_controller(&mut self, path: PathId, controller: weir_cc::Sender, now: Timestamp) -> bool {
        let Some(p) = self.paths.get_mut(path.index()) else { return false };
        p.controller = controller;
        self.follow_controller(path.index(), now);
        true
    }

    /// Sets the application's policy for a path; `false` if there is no such path.
    pub(crate) fn set_policy(&mut self, path: PathId, policy: PathPolicy, now: Timestamp) -> bool {
        let Some(m) = &mut self.multipath else { return false };
        let Some(sent) = m.state(path.index()).map(|s| s.bytes) else { return false };
        self.change_policies(now, |p| p.set(path, policy, sent));
        true
    }
    pub(crate) fn set_sufficient_rate(&mut self, rate: Option<DataRate>, now: Timestamp) {
        self.change_policies(now, |p| p.set_sufficient(rate));
    }
    pub(crate) fn policy(&self, path: PathId) -> Option<PathPolicy> {
        let m = self.multipath.as_ref()?;
        let sent = m.state(path.index())?.bytes;
        Some(m.policies.as_ref().map_or_else(PathPolicy::default, |p| p.get(path, sent)))
    }

    /// Paths are chosen again with the next packet, and the media rate at once.
    fn change_policies(&mut self, now: Timestamp, change: impl FnOnce(&mut Policies)) {
        let Some(m) = &mut self.multipath else { return };
        change(m.policies.get_or_insert_default());
        m.usable_until = Timestamp::ZERO;
        self.share_out(now);
    }
}
