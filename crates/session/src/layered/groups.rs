//! The groups of the layers: which are joined, what was received of them, and what is known of experiments with them.

use super::config::{LayeredConfig, MAX_LAYERS};
use weir_units::{TimeDelta, Timestamp};

/// Numbers that a packet may be ahead of the last: more is another stream's or a hostile one's, and counts as one lost.
const MOST_AHEAD: u16 = 1_000;

#[derive(Clone, Copy, Debug)]
struct Group {
    /// Mean time before it is tried.
    interval: TimeDelta,
    joined: Option<Timestamp>,
    /// Sequence number received last.
    last: Option<u16>,
    /// When it was last tried, by anyone.
    tried: Option<Timestamp>,
    /// When it was last tried while this receiver had fewer layers, or by itself: its loss may be ours.
    pending: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub(super) struct Groups {
    groups: [Group; MAX_LAYERS as usize],
    count: usize,
    level: usize,
    least: TimeDelta,
    most: TimeDelta,
    back_off: f64,
    relax: f64,
}

fn is_recent(at: Option<Timestamp>, now: Timestamp, recent: TimeDelta) -> bool {
    at.is_some_and(|at| now.saturating_since(at) < recent)
}

impl Groups {
    pub(super) fn new(config: &LayeredConfig) -> Self {
        let group = Group { interval: config.join_min, joined: None, last: None, tried: None, pending: None };
        Self {
            groups: [group; MAX_LAYERS as usize],
            count: usize::from(config.layers.clamp(1, MAX_LAYERS)),
            level: 0,
            least: config.join_min,
            most: config.join_max.max(config.join_min),
            back_off: config.back_off,
            relax: config.relax,
        }
    }
    pub(super) fn level(&self) -> u8 {
        self.level as u8
    }
    /// Joins the next layer, as an experiment if it is not the first; `None` if there is no other.
    pub(super) fn join(&mut self, now: Timestamp) -> Option<u8> {
        if self.level >= self.count {
            return None;
        }
        let group = &mut self.groups[self.level];
        (group.joined, group.last) = (Some(now), None);
        (group.tried, group.pending) = (Some(now), (self.level > 0).then_some(now));
        self.level += 1;
        Some(self.level())
    }
    /// Leaves the highest layer unless it is the first.
    pub(super) fn leave(&mut self) -> Option<u8> {
        if self.level < 2 {
            return None;
        }
        let layer = self.level();
        self.level -= 1;
        self.groups[self.level].joined = None;
        Some(layer)
    }
    /// Packets missing before this one; `None` if it is of no layer that is joined, or of the past.
    pub(super) fn on_packet(&mut self, layer: u8, sequence: u16) -> Option<u64> {
        let group = usize::from(layer).checked_sub(1).filter(|at| *at < self.level).map(|at| &mut self.groups[at])?;
        let ahead = group.last.map_or(1, |last| sequence.wrapping_sub(last));
        if ahead == 0 || ahead > u16::MAX / 2 {
            return None;
        }
        group.last = Some(sequence);
        Some(if ahead > MOST_AHEAD { 1 } else { u64::from(ahead - 1) })
    }
    /// Whether packets of the highest layer have arrived since it was joined.
    pub(super) fn receives_highest(&self) -> bool {
        self.level > 0 && self.groups[self.level - 1].last.is_some()
    }
    /// Another receiver tries this layer; whether there is such a layer to be tried.
    pub(super) fn on_announcement(&mut self, layer: u8, now: Timestamp) -> bool {
        let at = usize::from(layer);
        if at < 2 || at > self.count {
            return false;
        }
        self.groups[at - 1].tried = Some(now);
        if at > self.level {
            self.groups[at - 1].pending = Some(now);
        }
        true
    }
    /// Whether a layer up to the highest joined was tried of late: what comes of it would be taken for the next one's.
    pub(super) fn is_tried_up_to_own(&self, now: Timestamp, recent: TimeDelta) -> bool {
        self.groups[..self.level].iter().any(|g| is_recent(g.tried, now, recent))
    }
    /// The highest layer with an experiment that may have its effect now, and when it began.
    pub(super) fn highest_tried(&self, now: Timestamp, recent: TimeDelta) -> Option<(u8, Timestamp)> {
        let found = self.groups[..self.count].iter().rposition(|g| is_recent(g.pending, now, recent))?;
        Some((found as u8 + 1, self.groups[found].pending?))
    }
    /// Whether the highest layer was joined of late.
    pub(super) fn is_joined_since(&self, now: Timestamp, recent: TimeDelta) -> bool {
        self.level > 0 && is_recent(self.groups[self.level - 1].joined, now, recent)
    }
    /// An experiment with this layer has failed: it and those above are tried more rarely.
    pub(super) fn back_off(&mut self, layer: u8) {
        let at = usize::from(layer).clamp(1, self.count) - 1;
        let interval = self.groups[at].interval.mul_f64(self.back_off).min(self.most);
        self.groups[at].interval = interval;
        self.groups[at].pending = None;
        for above in &mut self.groups[at + 1..self.count] {
            above.interval = above.interval.max(interval);
        }
    }
    /// Time without a loss: the layer joined last would be tried earlier again.
    pub(super) fn relax(&mut self) {
        if let Some(group) = self.level.checked_sub(1).and_then(|at| self.groups.get_mut(at)) {
            group.interval = group.interval.mul_f64(self.relax).max(self.least);
        }
    }
    /// Mean time before the next layer is tried; `None` if all are joined.
    pub(super) fn join_interval(&self) -> Option<TimeDelta> {
        (self.level < self.count).then(|| self.groups[self.level].interval)
    }
}
