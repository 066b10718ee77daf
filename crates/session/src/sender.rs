//! The sending direction: streams, the paths that they use, and the connection of the two.

mod breaker;
mod counters;
mod coupling;
mod elsewhere;
mod key_frames;
mod list;
mod liveness;
mod multipath;
mod packets;
mod padding;
mod path;
mod picture;
mod policies;
mod resilience;
mod shape;
mod stream;
mod subflow_reports;
mod timeouts;
mod waiting;

pub use counters::SendCounters;
pub(crate) use multipath::Multipath;
pub(crate) use packets::Outgoing;
pub(crate) use path::SendPath;
pub(crate) use stream::{FirstNumbers, NextPacket, OutgoingStream};
pub(crate) use subflow_reports::SubflowBlock;

use crate::allocation::{self, Demand, Hysteresis, MediaKind, Share};
use crate::feedback::ccfb_packets;
use crate::sender_model::SenderModel;
use crate::sent::Traces;
use weir_cc::cue::{Cue, IntervalPacket, IntervalReport, OneWayDelay, ReportBlock};
use weir_cc::{Controller, RepairPlan, Target};
use weir_units::{DataRate, PathId, RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::rtcp::ccfb;

/// Payload of a padding packet: the maximum of RTP's one-byte padding count (RFC 3550, section 5.1).
pub(crate) const PADDING_SIZE: u8 = 255;
/// The same of probes for delay alone: the count, which padding cannot be without.
pub(crate) const LEAST_PADDING: u8 = 1;

/// Outgoing streams and paths. All streams use the first path, or those that a scheduler chooses.
// Field order: data used by each packet is adjacent, so that few cache lines are touched with many calls.
#[repr(C)]
pub(crate) struct Sender {
    pub streams: Vec<OutgoingStream>,
    pub paths: Vec<SendPath>,
    /// When to allocate the target again.
    share_again: Option<Timestamp>,
    /// The search for room for streams that are off.
    search: padding::Search,
    /// The packet being sent. It is kept in place: moving it would wait for its fields to be stored.
    pub outgoing: Outgoing,
    hysteresis: Hysteresis,
    /// The target at which the application would send more than its sources give.
    pub(crate) wanted_target: Option<DataRate>,
    /// For [`allocation::share_out`]; both are empty while there is one stream without bounds.
    demands: Vec<Demand>,
    shares: Vec<Share>,
    /// Run lengths of several streams, joined.
    interval: Vec<IntervalPacket>,
    /// With several paths: the scheduler and the state of each.
    pub multipath: Option<Box<Multipath>>,
}

impl Sender {
    pub(crate) fn new(stream: OutgoingStream, mut path: SendPath, now: Timestamp) -> Self {
        path.pace_as(stream.model);
        let mut s = Self {
            streams: vec![stream],
            paths: vec![path],
            hysteresis: Hysteresis::default(),
            search: padding::Search::new(),
            wanted_target: None,
            demands: Vec::new(),
            shares: Vec::new(),
            share_again: None,
            interval: Vec::new(),
            outgoing: Outgoing::default(),
            multipath: None,
        };
        let target = *s.path().target();
        s.share_out(now);
        for stream in &mut s.streams {
            stream.repair.follow(target.repair);
            if target.repair != RepairPlan::Off {
                stream.yield_protection(now);
            }
            stream.follow_resilience(now);
        }
        s
    }

    /// The path that all streams use.
    #[inline]
    pub(crate) fn path(&self) -> &SendPath {
        &self.paths[0]
    }
    #[inline]
    pub(crate) fn path_mut(&mut self) -> &mut SendPath {
        &mut self.paths[0]
    }
    /// The index of the path on which a datagram arrived; the first if its id is unknown.
    pub(crate) fn path_index(&self, id: PathId) -> usize {
        self.paths.iter().position(|p| p.id == id).unwrap_or(0)
    }
    pub(crate) fn target(&self) -> &Target {
        self.path().target()
    }
    /// The stream with this media synchronisation source.
    pub(crate) fn by_ssrc(&mut self, ssrc: u32) -> Option<&mut OutgoingStream> {
        self.streams.iter_mut().find(|s| s.identity.ssrc == ssrc)
    }
    /// Whether one of the streams has this media source.
    pub(crate) fn has(&self, ssrc: u32) -> bool {
        self.streams.iter().any(|s| s.identity.ssrc == ssrc)
    }
    pub(crate) fn counters(&self) -> SendCounters {
        if let [only] = &self.streams[..] {
            return only.counters();
        }
        let mut sum = SendCounters::default();
        self.streams.iter().for_each(|s| sum += s.counters());
        sum
    }
    /// Packets in run-length reports that were never sent, or are no longer remembered.
    pub(crate) fn unknown_reports(&self) -> u64 {
        self.streams.iter().map(OutgoingStream::unknown_reports).sum()
    }
    /// The transport-wide number of a stream's packet, sent or to be sent next.
    pub(crate) fn number_of_next(&self, stream: usize, sequence: u64) -> Option<u64> {
        let media = &self.streams[stream].media;
        let next = (sequence == media.next()).then_some(self.path().next_transport());
        next.or_else(|| media.transport(sequence))
    }

    /// Applies the controller's target after an event that may have changed it.
    #[inline]
    pub(crate) fn follow_controller(&mut self, path: usize, now: Timestamp) {
        if let Some(wanted) = self.paths[path].wants_news() {
            if self.is_coupled() {
                self.follow_group(path, now);
            } else {
                self.apply_target(path, wanted, now);
            }
        }
        self.paths[path].take_probes(now);
    }

    /// As [`Self::follow_controller`], with paths that are coupled.
    #[inline(never)]
    fn follow_group(&mut self, path: usize, now: Timestamp) {
        for id in self.couple(path, now).iter() {
            let index = self.path_index(id);
            if let Some(wanted) = self.paths[index].wants_news() {
                self.apply_target(index, wanted, now);
            }
        }
    }

    /// Applies a target within the bounds of the application and the circuit breaker.
    #[inline(never)]
    fn apply_target(&mut self, path: usize, wanted: Target, now: Timestamp) {
        // A single stream's fixed rate replaces the controller's, if there is one controller.
        let held = if let ([only], None) = (&self.streams[..], &self.multipath) { only.held } else { None };
        let media_rate = held.unwrap_or(wanted.media_rate);
        let Some(before) = self.paths[path].apply(wanted, media_rate, now) else { return };
        let target = *self.paths[path].target();
        if target.media_rate != before.media_rate {
            self.leave_out_frames(path, now);
            self.share_out(now);
        }
        for stream in &mut self.streams {
            stream.follow_plan(target.repair, now);
        }
    }

    /// Leaves out frames that the path's controller leaves out, where the modelled sender does so.
    fn leave_out_frames(&mut self, path: usize, now: Timestamp) {
        let one_of = self.paths[path].controller.left_out_frames();
        for s in self.streams.iter_mut().filter(|s| s.model == SenderModel::Chromium) {
            s.source.leave_out(one_of, now);
        }
    }

    /// Allocates the target to the streams, and sets the rate of each source whose share has changed.
    pub(crate) fn share_out(&mut self, now: Timestamp) {
        let target = if self.multipath.is_some() { self.joint_rate() } else { self.paths[0].payload_rate() };
        if let [only] = &mut self.streams[..]
            && only.demand == Demand::default()
        {
            // It may have been off, or waited to be switched on, beside streams that have been removed since.
            if !only.share.is_on {
                only.share = Share::new();
                only.want_key_frame(now);
            }
            only.share.rate = target;
            only.set_rate(target, now);
            self.share_again = None;
            self.pad_up_to(self.wanted_target, target, now);
            return;
        }
        self.demands.clear();
        self.shares.clear();
        let preference = self.streams.iter().find_map(|s| s.shape.as_ref().map(|c| c.utility().preference));
        for s in &self.streams {
            // A stream paused by the application has no demand.
            let nothing = Demand { least: DataRate::ZERO, most: DataRate::ZERO, ..s.demand };
            self.demands.push(match preference {
                _ if s.is_paused => nothing,
                Some(preference) if s.demand.media == MediaKind::Audio => {
                    let (least, most) = preference.sound(target, s.demand.least, s.demand.most);
                    Demand { least, most, ..s.demand }
                }
                _ => s.demand,
            });
            self.shares.push(s.share);
        }
        let next = allocation::share_out(target, &self.demands, &self.hysteresis, &mut self.shares, now);
        self.share_again = next.again;
        let wanted = [next.needed, self.wanted_target].into_iter().flatten().min();
        self.pad_up_to(wanted, target, now);
        for (stream, share) in self.streams.iter_mut().zip(&self.shares) {
            stream.follow_share(*share, now);
        }
    }

    pub(crate) fn hold_media_rate(&mut self, stream: usize, rate: Option<DataRate>, now: Timestamp) {
        self.streams[stream].held = rate;
        if self.streams.len() == 1 {
            let wanted = self.path().wanted();
            self.apply_target(0, wanted, now);
        } else {
            let rate = self.streams[stream].rate();
            self.streams[stream].set_rate(rate, now);
        }
    }

    /// Reports will have run lengths.
    pub(crate) fn expect_traces(&mut self, expected: bool) {
        self.path_mut().has_traces |= expected;
        if expected {
            self.streams.iter_mut().for_each(|s| s.media.keep());
        }
    }

    /// A requested rate holds no longer, which is no sign of life.
    pub(crate) fn withdraw_estimate(&mut self, path: usize, estimate: weir_cc::cue::ReceiverEstimate) {
        self.paths[path].controller.on_cue(&Cue::ReceiverEstimate(estimate));
        self.follow_controller(path, estimate.now);
    }

    pub(crate) fn on_cue(&mut self, path: usize, cue: &Cue<'_>) {
        if let Cue::NadaReport(_) | Cue::ReceiverEstimate(_) = cue {
            self.paths[path].breaker.on_estimate(cue.now());
        }
        self.paths[path].controller.on_cue(cue);
        self.follow_controller(path, cue.now());
    }

    /// A datagram of RTCP, before it is parsed: a controller that parses it itself may have another target then.
    pub(crate) fn on_rtcp(&mut self, path: usize, datagram: &[u8], now: Timestamp) {
        if self.paths[path].controller.on_rtcp(datagram, now) {
            self.follow_controller(path, now);
        }
    }

    /// A report block on one of this end's streams. With one stream it is passed to the controller at once; with
    /// several, all blocks of a compound are passed together: see [`Self::end_compound`].
    pub(crate) fn on_block(&mut self, path: usize, block: ReportBlock) {
        // With several paths each has reports of its own.
        if self.multipath.is_some() {
            return;
        }
        if self.streams.len() > 1 {
            self.paths[path].add_block(block);
            return;
        }
        self.paths[path].on_block(block);
        self.follow_controller(path, block.now);
    }

    /// All packets of a compound except run lengths have been parsed.
    pub(crate) fn end_compound(&mut self, path: usize) {
        if let Some(block) = self.paths[path].take_blocks() {
            self.paths[path].on_block(block);
            self.follow_controller(path, block.now);
        }
    }

    pub(crate) fn on_limits(&mut self, limits: weir_cc::Limits, now: Timestamp) {
        if let Some(m) = &mut self.multipath {
            m.set_ceiling(limits.ceiling);
        }
        for path in 0..self.paths.len() {
            self.paths[path].controller.on_limits(limits, now);
            self.follow_controller(path, now);
        }
    }

    /// Matches transport-wide feedback to sent packets; returns the round-trip time.
    pub(crate) fn on_twcc(
        &mut self,
        path: usize,
        feedback: &weir_wire::rtcp::twcc::Feedback<'_>,
        now: Timestamp,
    ) -> Option<TimeDelta> {
        let p = &mut self.paths[path];
        p.breaker.on_feedback(now);
        let last = p.last_transport();
        let reports = p.reader.twcc(feedback, move |s| crate::sent::nearest(last, s), now);
        let rtt = p.on_reports(reports, |_| TimeDelta::ZERO, now);
        self.tell_repair(path);
        if self.is_coupled() {
            self.on_results(path, now);
        }
        self.follow_controller(path, now);
        rtt
    }

    /// Passes the last per-packet feedback to the policies that decide on repair by frames.
    fn tell_repair(&mut self, path: usize) {
        let (results, streams) = (self.paths[path].results(), &mut self.streams);
        streams.iter_mut().filter(|s| s.repair.is_by_frames()).for_each(|s| s.repair.on_results(results));
    }

    /// The same for RFC 8888, which uses the streams' own numbers.
    pub(crate) fn on_ccfb(&mut self, path: usize, feedback: &ccfb::Feedback<'_>, now: Timestamp) -> Option<TimeDelta> {
        let (p, streams) = (&mut self.paths[path], &self.streams);
        p.breaker.on_feedback(now);
        let report = p.reader.ccfb_report_time(feedback, now);
        let stream = |ssrc| {
            streams.iter().find_map(|s| match s.identity.sources() {
                [media, ..] if ssrc == media => Some(&s.media),
                [_, repair, _] if ssrc == repair => Some(&s.repair.stream),
                [.., resent] if ssrc == resent => s.retransmitter.as_ref().map(|r| &r.stream),
                _ => None,
            })
        };
        let reports = feedback.streams().filter_map(|s| Some((stream(s.ssrc)?, s))).flat_map(|(sent, s)| {
            // A packet never sent keeps a number that the history does not know.
            let number = |s| sent.transport(sent.nearest(s)).unwrap_or(u64::MAX);
            ccfb_packets(&s, report, number)
        });
        let holding =
            |p: &weir_cc::cue::PacketResult| p.arrival.map_or(TimeDelta::ZERO, |a: RemoteTimestamp| report - a);
        let rtt = p.on_reports(reports, holding, now);
        self.tell_repair(path);
        self.follow_controller(path, now);
        rtt
    }

    /// Matches a compound's run lengths to sent packets, for all streams that it covers.
    pub(crate) fn on_traces(
        &mut self,
        path: usize,
        traces: &[(u32, Traces<'_>)],
        one_way_delay: Option<OneWayDelay>,
        rtt: Option<TimeDelta>,
        now: Timestamp,
    ) {
        let (streams, p) = (&mut self.streams, &mut self.paths[path]);
        self.interval.clear();
        let single = streams.len() == 1;
        for s in streams.iter_mut() {
            let Some((_, traces)) = traces.iter().find(|(ssrc, _)| *ssrc == s.identity.ssrc) else { continue };
            let packets = s.intervals.resolve(&s.media, traces);
            if let Some(r) = &mut s.resilience {
                r.on_interval(packets);
            }
            if single {
                p.controller.on_cue(&Cue::IntervalReport(IntervalReport { now, packets, one_way_delay, rtt }));
            } else {
                self.interval.extend_from_slice(packets);
            }
        }
        if !single {
            self.interval.sort_unstable_by_key(|p| p.sequence);
            let packets = &self.interval[..];
            p.controller.on_cue(&Cue::IntervalReport(IntervalReport { now, packets, one_way_delay, rtt }));
        }
        self.follow_controller(path, now);
    }

    /// The circuit breaker has tripped: discards queued packets.
    pub(crate) fn cease(&mut self) {
        self.streams.iter_mut().for_each(OutgoingStream::discard_all);
    }
}
