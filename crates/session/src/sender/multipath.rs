//! Several paths in the sending direction: the scheduler, what it knows of each path, and copies of packets.

use super::coupling::Coupler;
use super::liveness::Liveness;
use super::{NextPacket, PathConfig, SendPath, Sender};
use crate::datagram::Kind;
use crate::feedback::ccfb_packets;
use crate::multipath::{AnyScheduler, Coupling, MAX_PATHS, PathReport, PathSet, PathView, Scheduled, Scheduler};
use crate::sent::nearest;
use weir_cc::cue::{QueueState, ReportBlock, SentPacket};
use weir_cc::{Controller, PacerDecision, Target};
use weir_fec::Importance;
use weir_units::{DataRate, DataSize, PathId, RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::rtcp::ccfb;

/// Weight of a new sample in the smoothed round-trip time (RFC 6298, section 2).
const RTT_WEIGHT: f64 = 1.0 / 8.0;

/// The scheduler and the state of each path.
pub(crate) struct Multipath {
    scheduler: AnyScheduler,
    states: Vec<PathState>,
    views: Vec<PathView>,
    chosen: Option<Chosen>,
    /// Paths on which a copy of the outgoing packet is to be sent.
    copies: PathSet,
    /// What a copy is counted as.
    copied: Option<SentPacket>,
    /// Paths that could be used at the last decision.
    usable: PathSet,
    /// Paths that carry nothing: not checked yet, or removed; and those removed once another can carry media.
    closed: PathSet,
    leaving: PathSet,
    by_packet: bool,
    /// Groups of coupled paths; `None` without coupling.
    pub(super) coupler: Option<Box<Coupler>>,
}

/// The paths of the packet to be sent next.
#[derive(Clone, Copy)]
struct Chosen {
    stream: usize,
    kind: Kind,
    paths: PathSet,
}

/// One path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathState {
    /// RTP packets and bytes sent on it.
    pub packets: u64,
    pub bytes: u64,
    pub rtt: Option<TimeDelta>,
    /// Share of packets lost by the last report.
    pub loss: f64,
    liveness: Liveness,
    prior_highest: Option<u32>,
    /// The sender report that the last report block refers to.
    prior_report: u32,
    /// Packets and bytes at the last report.
    reported: (u64, u64),
}

/// A report block on a subflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubflowBlock {
    pub fraction_lost: f64,
    pub cumulative_lost: i64,
    pub highest_sequence: u32,
    pub jitter: TimeDelta,
    pub rtt: Option<TimeDelta>,
    /// The sender report that it refers to: the middle of its NTP timestamp, 0 without one.
    pub last_report: u32,
    /// Packets too late to be played since the report before.
    pub discarded: u64,
}

impl Multipath {
    pub(super) fn new(scheduler: AnyScheduler, paths: usize, by_packet: bool) -> Self {
        Self {
            scheduler,
            states: vec![PathState { liveness: Liveness::new(by_packet), ..PathState::default() }; paths],
            views: Vec::with_capacity(paths),
            chosen: None,
            copies: PathSet::NONE,
            copied: None,
            usable: PathSet::NONE,
            closed: PathSet::NONE,
            leaving: PathSet::NONE,
            by_packet,
            coupler: None,
        }
    }
    pub(super) fn set_ceiling(&mut self, ceiling: DataRate) {
        if let Some(c) = &mut self.coupler {
            c.set_ceiling(ceiling);
        }
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

fn without(set: PathSet, path: PathId) -> PathSet {
    set.iter().filter(|p| *p != path).fold(PathSet::NONE, PathSet::with)
}

impl PathState {
    fn on_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = Some(self.rtt.map_or(rtt, |smoothed| smoothed + (rtt - smoothed).mul_f64(RTT_WEIGHT)));
    }
}

impl Sender {
    /// Uses several paths from now on: packets have numbers of their own on each.
    pub(crate) fn use_paths(&mut self, scheduler: AnyScheduler, coupling: Coupling, ceiling: DataRate, now: Timestamp) {
        let mut m = Multipath::new(scheduler, self.paths.len(), self.paths[0].has_packet_feedback());
        m.coupler = Coupler::new(coupling, MAX_PATHS, ceiling, now).map(Box::new);
        self.multipath = Some(Box::new(m));
        self.streams.iter_mut().for_each(|s| s.media.keep());
        self.share_out(now);
    }

    /// Adds a path, or replaces a removed one with this number. It carries nothing until it is opened.
    pub(crate) fn add_path(&mut self, config: PathConfig, now: Timestamp) {
        let (id, index) = (config.id, config.id.index());
        let Some(m) = self.multipath.as_mut().filter(|_| index <= self.paths.len()) else { return };
        let state = PathState { liveness: Liveness::new(m.by_packet), ..PathState::default() };
        m.closed = m.closed.with(id);
        if index < self.paths.len() {
            (self.paths[index], m.states[index]) = (SendPath::new(config, now), state);
        } else {
            self.paths.push(SendPath::new(config, now));
            m.states.push(state);
        }
    }
    /// The other end has answered on a path.
    pub(crate) fn open_path(&mut self, path: PathId) {
        if let Some(m) = &mut self.multipath {
            m.closed = without(m.closed, path);
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
        m.copies = without(m.copies, path);
        m.chosen = None;
    }

    /// Whether paths may be coupled.
    #[inline]
    pub(super) fn is_coupled(&self) -> bool {
        self.multipath.as_ref().is_some_and(|m| m.coupler.is_some())
    }

    /// What the scheduler sees of the paths.
    fn view_paths(&mut self, m: &mut Multipath, now: Timestamp) {
        m.views.clear();
        for (p, state) in self.paths.iter_mut().zip(&mut m.states) {
            m.views.push(PathView {
                id: p.id,
                is_usable: !m.closed.contains(p.id) && p.breaker.tripped().is_none() && state.liveness.is_live(now),
                rate: p.payload_rate(),
                rtt: state.rtt,
                loss: state.loss,
                in_flight: p.history.bytes_in_flight(),
                window: p.target().window,
            });
        }
        if !m.leaving.is_empty() && m.views.iter().any(|v| v.is_usable && !m.leaving.contains(v.id)) {
            m.closed = m.leaving.iter().fold(m.closed, PathSet::with);
            m.leaving = PathSet::NONE;
            m.views.iter_mut().for_each(|v| v.is_usable &= !m.closed.contains(v.id));
        }
        if m.views.iter().all(|v| !v.is_usable) {
            // Nothing is better than the paths that there are.
            for (view, p) in m.views.iter_mut().zip(&self.paths) {
                view.is_usable = !m.closed.contains(p.id) && p.breaker.tripped().is_none();
            }
        }
    }

    /// The media rate of all paths together.
    pub(super) fn joint_rate(&mut self) -> DataRate {
        let Some(m) = &mut self.multipath else { return DataRate::ZERO };
        for (view, p) in m.views.iter_mut().zip(&self.paths) {
            view.rate = p.payload_rate();
        }
        if m.views.is_empty() {
            return self.paths.iter().fold(DataRate::ZERO, |sum, p| sum + p.payload_rate());
        }
        m.scheduler.media_rate(&m.views)
    }

    /// The target of all paths together: the first one's, with the joint media rate.
    pub(crate) fn joint_target(&self) -> Target {
        let target = *self.target();
        let Some(m) = &self.multipath else { return target };
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
        let Some(mut m) = self.multipath.take() else { return false };
        let before = m.usable;
        let sent = self.send_on_a_path(&mut m, now);
        let changed = m.usable != before;
        self.multipath = Some(m);
        if changed {
            self.regroup(now);
            self.share_out(now);
        }
        sent
    }

    fn send_on_a_path(&mut self, m: &mut Multipath, now: Timestamp) -> bool {
        let head = self.next_stream();
        self.choose(m, head, now);
        for i in 0..self.paths.len() {
            let p = &mut self.paths[i];
            if p.breaker.tripped().is_some() {
                continue;
            }
            let is_chosen = m.is_chosen(p.id);
            let (next, probe) = match (p.poll_pacer(now, is_chosen), head) {
                (PacerDecision::Media { probe }, Some(head)) if is_chosen => (head, probe),
                (PacerDecision::Padding { probe }, _) if m.usable.contains(p.id) => {
                    ((self.padding_stream(), NextPacket::PADDING), probe)
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
        self.view_paths(m, now);
        m.usable = m.views.iter().filter(|v| v.is_usable).fold(PathSet::NONE, |set, v| set.with(v.id));
        let usable = m.usable;
        let stands = m.chosen.is_some_and(|c| {
            (c.stream, c.kind) == (stream, next.kind) && c.paths.iter().any(|path| usable.contains(path))
        });
        if stands {
            return;
        }
        let s = &self.streams[stream];
        let front = s.queue.front();
        let packet = Scheduled {
            now,
            kind: next.kind,
            is_key: front.is_some_and(|p| p.importance == Importance::Key),
            size: DataSize::from_bytes(u64::from(s.overhead) + next.payload),
            frame: (stream, front.map_or(s.last_rtp_timestamp, |p| p.rtp_timestamp)),
        };
        let paths = m.scheduler.choose(&packet, &m.views);
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
        let others = all.iter().filter(|id| *id != self.paths[path].id && m.usable.contains(*id));
        m.copies = others.fold(PathSet::NONE, PathSet::with);
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
    pub(crate) fn next_copy(&mut self) -> Option<(PathId, u64)> {
        let m = self.multipath.as_deref_mut()?;
        let (path, packet) = (m.copies.first()?, m.copied?);
        m.copies = m.copies.iter().filter(|id| *id != path).fold(PathSet::NONE, PathSet::with);
        let index = self.paths.iter().position(|p| p.id == path)?;
        let p = &mut self.paths[index];
        let sequence = p.take_number();
        p.on_sent(SentPacket { sequence, ..packet });
        let state = &mut m.states[index];
        state.packets += 1;
        state.bytes += packet.size.as_bytes();
        state.liveness.on_sent(packet.now);
        Some((path, sequence))
    }

    /// A frame was queued: each controller sees its path's share of the queue.
    pub(super) fn on_queue_of_paths(&mut self, state: &QueueState) {
        let sum: f64 = self.paths.iter().map(|p| p.target().media_rate.as_bps_f64()).sum();
        for path in 0..self.paths.len() {
            let rate = self.paths[path].target().media_rate.as_bps_f64();
            let share = if sum > 0.0 { rate / sum } else { 1.0 / self.paths.len() as f64 };
            let part = |size: DataSize| DataSize::from_bytes((size.as_bytes() as f64 * share) as u64);
            let own = QueueState { added: part(state.added), queued: part(state.queued), ..*state };
            self.paths[path].controller.on_queue(&own);
            self.follow_controller(path, state.now);
        }
    }

    /// The other end has reported packets received on a path, and thereby the round-trip time.
    pub(crate) fn on_path_rtt(&mut self, path: usize, rtt: TimeDelta, now: Timestamp) {
        if let Some(state) = self.multipath.as_mut().and_then(|m| m.states.get_mut(path)) {
            state.on_rtt(rtt);
            state.liveness.on_response(now);
        }
    }

    /// A report on a subflow.
    pub(crate) fn on_subflow_block(&mut self, path: usize, b: &SubflowBlock, now: Timestamp) {
        let Some(m) = &mut self.multipath else { return };
        let Some(state) = m.states.get_mut(path) else { return };
        let before = state.prior_highest.replace(b.highest_sequence);
        let expected = before.map_or(0, |p| u64::from(b.highest_sequence.wrapping_sub(p)));
        // A number that goes back, or jumps further than was sent, is no interval.
        let expected = if expected <= state.packets { expected } else { 0 };
        let answers = core::mem::replace(&mut state.prior_report, b.last_report) != b.last_report;
        if expected > 0 || answers {
            state.liveness.on_response(now);
        }
        state.loss = b.fraction_lost;
        let (packets, bytes) = (state.packets - state.reported.0, state.bytes - state.reported.1);
        state.reported = (state.packets, state.bytes);
        let lost = (b.fraction_lost * expected as f64 + 0.5) as u64;
        let mean_size = DataSize::from_bytes(bytes.checked_div(packets).unwrap_or(0));
        let id = self.paths[path].id;
        m.scheduler.on_report(id, &PathReport { now, expected, lost, discarded: b.discarded, mean_size });
        if let Some(rtt) = b.rtt {
            state.on_rtt(rtt);
        }
        self.paths[path].on_block(ReportBlock {
            now,
            fraction_lost: b.fraction_lost,
            cumulative_lost: b.cumulative_lost,
            highest_sequence: u64::from(b.highest_sequence),
            expected,
            jitter: b.jitter,
            rtt: b.rtt,
        });
        self.follow_controller(path, now);
    }

    /// RFC 8888 feedback on a subflow, by its numbers. Returns the round-trip time.
    pub(crate) fn on_subflow_ccfb(
        &mut self,
        path: usize,
        feedback: &ccfb::Feedback<'_>,
        now: Timestamp,
    ) -> Option<TimeDelta> {
        let p = &mut self.paths[path];
        p.breaker.on_feedback(now);
        let report = p.reader.ccfb_report_time(feedback, now);
        let last = p.last_transport();
        let reports = feedback.streams().take(1).flat_map(|s| ccfb_packets(&s, report, move |n| nearest(last, n)));
        let holding =
            |p: &weir_cc::cue::PacketResult| p.arrival.map_or(TimeDelta::ZERO, |a: RemoteTimestamp| report - a);
        let rtt = p.on_reports(reports, holding, now);
        if self.is_coupled() {
            self.on_results(path, now);
        }
        self.follow_controller(path, now);
        rtt
    }
}
