//! Packets in flight on a path that has fallen, sent again on another one, as Multipath TCP does with what blocks its receive window
//! (C. Raiciu and others, "How Hard Can It Be? Designing and Implementing a Deployable Multipath TCP", NSDI 2012).

use super::multipath::{Multipath, PathState};
use super::waiting::{MAX_BACKLOG, PATIENCE, backlog};
use super::{SendPath, Sender};
use crate::multipath::PathView;
use crate::sent::Sent;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Whether a packet is in flight on a path that delivers. A receiver that requests it has received later ones, on other paths.
pub(super) fn is_on_its_way(m: &Multipath, paths: &[SendPath], sent: Option<&Sent>) -> bool {
    let Some(sent) = sent.filter(|sent| m.usable().contains(sent.path)) else { return false };
    paths.iter().any(|p| p.id == sent.path && p.history.is_in_flight(sent.transport))
}

impl Sender {
    /// Whether every path chosen for the next packet holds it back for longer than it waits.
    pub(super) fn is_held_back(&self, m: &Multipath, now: Timestamp) -> bool {
        let Some(chosen) = m.chosen else { return false };
        let held = |(p, state): (&SendPath, &PathState)| {
            p.open_at() > now + PATIENCE || p.is_window_closed() || backlog(p, &state.least_rtt) > TimeDelta::ZERO
        };
        self.paths.iter().zip(&m.states).filter(|(p, _)| chosen.paths.contains(p.id)).all(held)
    }

    /// Reports of a path have arrived: if it has a backlog, sends packets again that another path would deliver earlier than this one, on
    /// which they are in flight.
    pub(super) fn leave_backlog(&mut self, path: usize, now: Timestamp) {
        let Some(mut m) = self.multipath.take() else { return };
        let before = m.usable();
        if let (Some(p), Some(state)) = (self.paths.get(path), m.states.get_mut(path)) {
            if backlog(p, &state.least_rtt) > TimeDelta::ZERO {
                // Later packets are sent in spite of the backlog.
                let began = *state.behind_since.get_or_insert(now);
                self.view_paths(&mut m, now);
                self.send_elsewhere(path, &m.views, began, now);
            } else {
                state.behind_since = None;
            }
        }
        let changed = m.usable() != before;
        self.multipath = Some(m);
        if changed {
            self.regroup(now);
            self.share_out(now);
        }
    }

    fn send_elsewhere(&mut self, path: usize, views: &[PathView], began: Timestamp, now: Timestamp) {
        let p = &self.paths[path];
        let usable = || views.iter().filter(|v| v.is_usable);
        let others = usable().filter(|v| v.id != p.id && v.backlog <= TimeDelta::ZERO);
        let Some(other) = others.min_by_key(|v| v.arrival(DataSize::ZERO, now)) else { return };
        let takes = |size, rate: DataRate| rate.time_for(size).unwrap_or(MAX_BACKLOG).min(MAX_BACKLOG);
        let latency = other.arrival(DataSize::ZERO, now).saturating_since(now) + PATIENCE;
        let joint = usable().fold(DataRate::ZERO, |sum, v| sum + v.rate);
        // Bytes in flight here up to the packet, and bytes that the other path has to send before it.
        let mut here = DataSize::ZERO;
        let mut there = self.streams.iter().fold(DataSize::ZERO, |sum, s| sum + s.waiting_size());
        for s in &mut self.streams {
            let Some(r) = &mut s.retransmitter else { continue };
            r.renew_budget(joint, now);
            let media = &s.media;
            r.resend(|sequence, size| {
                let sent = media.get(sequence).filter(|sent| sent.path == p.id && !sent.is_padding);
                let Some(sent) = sent.filter(|sent| p.history.is_in_flight(sent.transport)) else { return false };
                here += size;
                let is_earlier = latency + takes(there + size, other.rate) < takes(here, p.payload_rate());
                let is_moved = is_earlier && sent.departure < began;
                there += if is_moved { size } else { DataSize::ZERO };
                is_moved
            });
        }
    }
}
