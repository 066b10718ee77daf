//! Several paths in the sending direction: the scheduler, what it knows of each path, and copies of packets.

use super::coupling::Coupler;
use super::liveness::{LEAST_MARGIN, Liveness};
use super::waiting::{self, LeastRtt, backlog};
use super::{NextPacket, SendPath, Sender};
use crate::config::GroupConfig;
use crate::datagram::Kind;
use crate::multipath::{AnyScheduler, MAX_PATHS, PathPolicy, PathSet, PathView, Policies, Scheduled, Scheduler};
use weir_cc::cue::{QueueState, SentPacket};
use weir_cc::{Controller, PacerDecision, Target};
use weir_fec::Importance;
use weir_units::{DataRate, DataSize, PathId, TimeDelta, Timestamp};

/// Weight of a new sample in the smoothed round-trip time (RFC 6298, section 2).
const RTT_WEIGHT: f64 = 1.0 / 8.0;

/// Rates that differ by less than this part are the same: the share of headers moves with each packet's size.
const SAME_RATE: u64 = 200;

/// The scheduler and the state of each path.
pub(crate) struct Multipath {
    pub(super) scheduler: AnyScheduler,
    pub(super) states: Vec<PathState>,
    pub(super) views: Vec<PathView>,
    pub(super) chosen: Option<Chosen>,
    /// Paths on which a copy of the outgoing packet is to be sent.
    copies: PathSet,
    /// The rate that the streams share.
    shared: DataRate,
    /// The packet as which a copy is counted.
    copied: Option<SentPacket>,
    /// Paths that could be used at the last decision, and until when that holds if nothing is heard.
    pub(super) usable: PathSet,
    pub(super) usable_until: Timestamp,
    /// Paths that have failed, which are to be checked, and whether they have changed.
    failed: PathSet,
    failed_changed: bool,
    /// Paths that carry nothing: not checked yet, or removed; and those removed once another can carry media.
    closed: PathSet,
    leaving: PathSet,
    by_packet: bool,
    /// The application's policies, if it has set any.
    pub(super) policies: Option<Box<Policies>>,
    /// Groups of coupled paths; `None` without coupling.
    pub(super) coupler: Option<Box<Coupler>>,
}

/// The paths of the packet to be sent next.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    stream: usize,
    kind: Kind,
    pub(super) paths: PathSet,
}

/// One path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathState {
    /// RTP packets and bytes sent on it.
    pub packets: u64,
    pub bytes: u64,
    pub rtt: Option<TimeDelta>,
    pub(super) least_rtt: LeastRtt,
    /// Since when it has had a backlog.
    pub(super) behind_since: Option<Timestamp>,
    /// Share of packets lost by the last report.
    pub loss: f64,
    pub(super) liveness: Liveness,
    pub(super) prior_highest: Option<u32>,
    /// The sender report that the last report block refers to.
    pub(super) prior_report: u32,
    /// Packets and bytes at the last report.
    pub(super) reported: (u64, u64),
}

impl Multipath {
    pub(super) fn new(scheduler: AnyScheduler, paths: usize, by_packet: bool) -> Self {
        Self {
            scheduler,
            states: vec![PathState { liveness: Liveness::new(by_packet), ..PathState::default() }; paths],
            views: Vec::with_capacity(paths),
            chosen: None,
            copies: PathSet::NONE,
            shared: DataRate::ZERO,
            copied: None,
            usable: PathSet::NONE,
            usable_until: Timestamp::ZERO,
            failed: PathSet::NONE,
            failed_changed: false,
            closed: PathSet::NONE,
            leaving: PathSet::NONE,
            by_packet,
            policies: None,
            coupler: None,
        }
    }
    pub(super) fn set_ceiling(&mut self, ceiling: DataRate) {
        if let Some(c) = &mut self.coupler {
            c.set_ceiling(ceiling);
        }
    }
    /// Paths that have failed and are to be checked.
    pub(crate) const fn failed(&self) -> PathSet {
        self.failed
    }
    /// Whether they have changed since the last call.
    #[inline]
    pub(crate) fn take_failed_changed(&mut self) -> bool {
        core::mem::take(&mut self.failed_changed)
    }
    /// The state of a path may have changed.
    pub(super) fn note_failed(&mut self) {
        let states = (0..).map(PathId::new).zip(&self.states);
        let failed = states.filter(|(id, s)| !self.closed.contains(*id) && s.liveness.has_failed());
        let failed = failed.fold(PathSet::NONE, |set, (id, _)| set.with(id));
        self.failed_changed |= failed != self.failed;
        self.failed = failed;
    }
    pub(super) fn use_only(&mut self, paths: PathSet) {
        self.usable = paths;
        self.views.iter_mut().for_each(|v| v.is_usable = paths.contains(v.id));
    }
    /// Whether the paths chosen last are those of this packet.
    fn is_for(&self, head: Option<(usize, NextPacket)>) -> bool {
        self.chosen.zip(head).is_some_and(|(c, (stream, next))| (c.stream, c.kind) == (stream, next.kind))
    }
    /// Whether the scheduler would have the streams share quite another rate, by the paths as seen last.
    fn has_other_rate(&self) -> bool {
        if self.views.is_empty() {
            return false;
        }
        let (rate, shared) = (self.scheduler.media_rate(&self.views).as_bps(), self.shared.as_bps());
        rate.abs_diff(shared) > shared / SAME_RATE
    }
    /// Whether the packet to be sent next waits for this path.
    pub(super) fn is_chosen(&self, path: PathId) -> bool {
        self.chosen.is_some_and(|c| c.paths.contains(path))
    }
    /// Paths that could be used at the last decision.
    pub(crate) const fn usable(&self) -> PathSet {
        self.usable
    }
    pub(crate) fn state(&self, path: usize) -> Option<&PathState> {
        self.states.get(path)
    }
}

impl PathState {
    pub(super) fn on_rtt(&mut self, rtt: TimeDelta, now: Timestamp) {
        self.least_rtt.update(rtt, now);
        self.rtt = Some(self.rtt.map_or(rtt, |smoothed| smoothed + (rtt - smoothed).mul_f64(RTT_WEIGHT)));
    }
}

impl Sender {
    /// Uses several paths from now on: packets have numbers of their own on each.
    pub(crate) fn use_paths(&mut self, group: &GroupConfig, now: Timestamp) {
        let mut m = Multipath::new(group.scheduler.clone(), self.paths.len(), self.paths[0].has_packet_feedback());
        m.coupler = Coupler::new(group, MAX_PATHS, now).map(Box::new);
        self.multipath = Some(Box::new(m));
        self.streams.iter_mut().for_each(|s| s.media.keep());
        self.share_out(now);
    }

    /// Adds a path, or replaces a removed one with this number. It carries nothing until it is opened.
    pub(crate) fn add_path(&mut self, path: SendPath) {
        let (id, index) = (path.id, path.id.index());
        let Some(m) = self.multipath.as_mut().filter(|_| index <= self.paths.len()) else { return };
        let state = PathState { liveness: Liveness::new(m.by_packet), ..PathState::default() };
        m.closed = m.closed.with(id);
        if index < self.paths.len() {
            (self.paths[index], m.states[index]) = (path, state);
            if let Some(policies) = &mut m.policies {
                policies.set(id, PathPolicy::default(), 0);
            }
        } else {
            self.paths.push(path);
            m.states.push(state);
        }
    }
    /// The other end has answered on a path.
    pub(crate) fn open_path(&mut self, path: PathId) {
        if let Some(m) = &mut self.multipath {
            m.closed = m.closed.without(path);
            m.usable_until = Timestamp::ZERO;
        }
    }
    /// A path carries media no more, or only until another one can.
    pub(crate) fn remove_path(&mut self, path: PathId, once_another_can: bool) {
        let Some(m) = &mut self.multipath else { return };
        if once_another_can {
            m.leaving = m.leaving.with(path);
        } else {
            m.closed = m.closed.with(path);
        }
        m.copies = m.copies.without(path);
        (m.chosen, m.usable_until) = (None, Timestamp::ZERO);
        m.note_failed();
    }

    /// Whether paths may be coupled.
    #[inline]
    pub(super) fn is_coupled(&self) -> bool {
        self.multipath.as_ref().is_some_and(|m| m.coupler.is_some())
    }

    /// Updates the scheduler's view of the paths, and the set of those that can be used.
    pub(super) fn view_paths(&mut self, m: &mut Multipath, now: Timestamp) {
        m.usable = PathSet::NONE;
        m.usable_until = now + LEAST_MARGIN;
        m.views.resize(self.paths.len(), PathView::NEW);
        for ((p, state), view) in self.paths.iter_mut().zip(&mut m.states).zip(&mut m.views) {
            let is_usable = !m.closed.contains(p.id) && p.breaker.tripped().is_none() && state.liveness.is_live(now);
            if is_usable {
                m.usable = m.usable.with(p.id);
                m.usable_until = m.usable_until.min(state.liveness.suspected_at());
            }
            *view = PathView {
                id: p.id,
                is_usable,
                rate: p.payload_rate(),
                open_at: p.open_at(),
                backlog: backlog(p, &state.least_rtt),
                queueing: state.least_rtt.queueing(state.rtt),
                rtt: state.rtt,
                loss: state.loss,
                in_flight: p.history.bytes_in_flight(),
                window: p.target().window,
            };
        }
        if m.usable.len() < self.paths.len() || !m.failed.is_empty() {
            m.note_failed();
        }
        let others = m.usable.minus(m.leaving);
        if !m.leaving.is_empty() && !others.is_empty() {
            m.closed = m.closed.or(m.leaving);
            m.leaving = PathSet::NONE;
            m.use_only(others);
        }
        if m.usable.is_empty() {
            // Nothing is better than the paths that there are.
            let open = self.paths.iter().filter(|p| !m.closed.contains(p.id) && p.breaker.tripped().is_none());
            let open = open.fold(PathSet::NONE, |set, p| set.with(p.id));
            m.use_only(open);
        }
        m.apply_policies(now);
    }

    /// The media rate of all paths together.
    pub(super) fn joint_rate(&mut self) -> DataRate {
        let Some(m) = &mut self.multipath else { return DataRate::ZERO };
        for (view, p) in m.views.iter_mut().zip(&self.paths) {
            let rate = p.payload_rate();
            view.rate = m.policies.as_ref().map_or(rate, |policies| policies.rate(p.id, rate));
        }
        m.shared = if m.views.is_empty() {
            self.paths.iter().fold(DataRate::ZERO, |sum, p| sum + p.payload_rate())
        } else {
            m.scheduler.media_rate(&m.views)
        };
        m.shared
    }

    /// The target of all paths together: the first one's, with the joint media rate.
    #[inline]
    pub(crate) fn joint_target(&self) -> Target {
        let target = *self.target();
        match &self.multipath {
            None => target,
            Some(m) => self.target_of_all(m, target),
        }
    }

    #[cold]
    fn target_of_all(&self, m: &Multipath, target: Target) -> Target {
        let media_rate = if m.views.is_empty() {
            self.paths.iter().fold(DataRate::ZERO, |sum, p| sum + p.target().media_rate)
        } else {
            m.scheduler.media_rate(&m.views)
        };
        Target { media_rate, ..target }
    }

    /// Bytes in flight on all paths.
    pub(crate) fn bytes_in_flight(&self) -> DataSize {
        self.paths.iter().map(|p| p.history.bytes_in_flight()).fold(DataSize::ZERO, |sum, size| sum + size)
    }

    /// As [`Self::poll_packet`], with several paths.
    #[inline(never)]
    pub(super) fn poll_packet_on_paths(&mut self, now: Timestamp) -> bool {
        let head = self.next_stream();
        if head.is_none() && !self.paths.iter().any(SendPath::may_pad) {
            if let Some(m) = &mut self.multipath {
                m.chosen = None;
            }
            return false;
        }
        let Some(mut m) = self.multipath.take() else { return false };
        let before = m.usable;
        let sent = self.send_on_a_path(&mut m, head, now);
        let (changed, has_other_rate) = (m.usable != before, m.has_other_rate());
        self.multipath = Some(m);
        if changed {
            self.regroup(now);
        }
        if changed || has_other_rate {
            self.share_out(now);
        }
        sent
    }

    fn send_on_a_path(&mut self, m: &mut Multipath, head: Option<(usize, NextPacket)>, now: Timestamp) -> bool {
        self.choose(m, head, now);
        // Padding has the media's sequence numbers. Inside a frame, of which other paths may hold packets back, a receiver
        // could not distinguish it from a missing packet.
        let padding_stream = self.padding_stream();
        let pads = !self.streams[padding_stream].is_amid_a_frame();
        for i in 0..self.paths.len() {
            let p = &mut self.paths[i];
            let is_chosen = m.is_chosen(p.id);
            if !(is_chosen || p.may_pad()) || p.breaker.tripped().is_some() {
                continue;
            }
            let (next, probe) = match (p.poll_pacer(now, is_chosen), head) {
                (PacerDecision::Media { probe }, Some(head)) if is_chosen => (head, probe),
                (PacerDecision::Padding { probe }, _) if pads && m.usable.contains(p.id) => {
                    ((padding_stream, NextPacket::padding(p.pads_little())), probe)
                }
                _ => continue,
            };
            let (stream, next) = next;
            let size = DataSize::from_bytes(u64::from(self.streams[stream].overhead) + next.payload);
            if self.send(i, stream, next, probe, now) {
                self.on_sent_on(m, i, next.kind, size, now);
                return true;
            }
        }
        false
    }

    /// Has the scheduler choose the paths of the next packet, unless it has and they can be used.
    fn choose(&mut self, m: &mut Multipath, head: Option<(usize, NextPacket)>, now: Timestamp) {
        let Some((stream, next)) = head else {
            m.chosen = None;
            return;
        };
        let s = &self.streams[stream];
        let size = DataSize::from_bytes(u64::from(s.overhead) + next.payload);
        let stands = m.is_for(head);
        if stands && now < m.usable_until && !self.is_held_back(m, now) {
            return;
        }
        self.view_paths(m, now);
        let s = &self.streams[stream];
        let queued = s.queue.size().saturating_sub(DataSize::from_bytes(next.payload));
        let prompt = waiting::prompt(&m.views, size, queued, now);
        if stands && m.chosen.is_some_and(|c| !c.paths.and(prompt).is_empty()) {
            return;
        }
        let s = &self.streams[stream];
        let front = s.queue.front();
        let packet = Scheduled {
            now,
            kind: next.kind,
            is_key: front.is_some_and(|p| p.importance == Importance::Key),
            size,
            queued,
            frame: (stream, front.map_or(s.last_rtp_timestamp, |p| p.rtp_timestamp)),
        };
        let usable = waiting::leave_only(&mut m.views, prompt);
        let paths = m.scheduler.choose(&packet, &m.views);
        waiting::leave_only(&mut m.views, usable);
        m.chosen = (!paths.is_empty()).then_some(Chosen { stream, kind: next.kind, paths });
    }

    fn on_sent_on(&self, m: &mut Multipath, path: usize, kind: Kind, size: DataSize, now: Timestamp) {
        let state = &mut m.states[path];
        state.packets += 1;
        state.bytes += size.as_bytes();
        state.liveness.on_sent(now);
        m.copies = PathSet::NONE;
        if kind == Kind::Padding {
            return;
        }
        let all = m.chosen.take().map_or(PathSet::NONE, |c| c.paths);
        m.copies = all.and(m.usable).without(self.paths[path].id);
        if m.copies.is_empty() {
            return;
        }
        m.copied = Some(SentPacket {
            now,
            sequence: 0,
            size,
            is_padding: false,
            is_repair: kind == Kind::Repair,
            is_retransmission: kind == Kind::Retransmission,
            probe: 0,
            queued: DataSize::ZERO,
            bytes_in_flight: DataSize::ZERO,
        });
    }

    /// Whether copies of the outgoing packet are to be sent.
    pub(crate) fn has_copies(&self) -> bool {
        self.multipath.as_ref().is_some_and(|m| !m.copies.is_empty())
    }
    /// The path and the number there of the next copy of the outgoing packet, which is then counted as sent.
    #[inline(never)]
    pub(crate) fn next_copy(&mut self) -> Option<(PathId, u64)> {
        let m = self.multipath.as_deref_mut()?;
        let (path, packet) = (m.copies.first()?, m.copied?);
        m.copies = m.copies.without(path);
        let index = self.paths.iter().position(|p| p.id == path)?;
        let p = &mut self.paths[index];
        let sequence = p.take_number();
        p.on_sent(SentPacket { sequence, ..packet }, self.streams[self.outgoing.stream].overhead);
        let state = &mut m.states[index];
        state.packets += 1;
        state.bytes += packet.size.as_bytes();
        state.liveness.on_sent(packet.now);
        Some((path, sequence))
    }

    /// A frame was queued: each controller sees its path's share of the queue.
    #[inline(never)]
    pub(super) fn on_queue_of_paths(&mut self, state: &QueueState) {
        let kbps = |p: &SendPath| p.target().media_rate.as_bps() / 1_000;
        let (sum, count) = (self.paths.iter().map(kbps).sum::<u64>(), self.paths.len() as u64);
        for path in 0..self.paths.len() {
            let p = &mut self.paths[path];
            let (share, whole) = if sum > 0 { (kbps(p), sum) } else { (1, count) };
            let part = |size: DataSize| DataSize::from_bytes(size.as_bytes().saturating_mul(share) / whole);
            let own = QueueState { added: part(state.added), queued: part(state.queued), ..*state };
            let may_have_news = p.controller.on_queue(&own) || p.breaker.is_on();
            if may_have_news {
                self.follow_controller(path, state.now);
            }
        }
    }
}
