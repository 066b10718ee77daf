//! The receiving direction: streams, and the paths on which they arrive.

mod align;
mod lips;
mod path;
mod planned;
mod playing;
mod repair;
mod resent;
mod restart;
mod retransmission;
mod skewed;
pub(crate) mod source;
mod strangers;
mod stream;
mod subflow;

pub(crate) use path::ReceivePath;
pub use stream::ReceiveCounters;
pub(crate) use stream::{IncomingStream, SenderReports, Shared};
pub(crate) use subflow::Subflow;

use crate::arrivals::ArrivalLog;
use crate::config::{IncomingConfig, ReceivingPath};
use crate::feedback::{CcfbContext, CcfbWriter, MAX_FEEDBACK, MAX_SUBFLOW_FEEDBACK, TwccWriter};
use crate::frames::RecoveryStats;
use crate::identity::FeedbackSsrcs;
use crate::ids::IncomingId;
use crate::recovery::RepairReceiveCounters;
use crate::session_params::SessionParams;
use crate::timers::earliest;
use weir_cc::{FeedbackFormat, ReceiverController, Report};
use weir_units::cold_path;
use weir_units::{DataSize, PathId, TimeDelta, Timestamp};
use weir_wire::ntp::NtpTime;

/// The sequence numbers after the last packets of a stream reported in feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Reported {
    pub media: u64,
    pub repair: u64,
    pub retransmission: u64,
}

/// Incoming streams, and the paths on which they arrive.
#[repr(C)]
pub(crate) struct Receiver {
    pub streams: Vec<IncomingStream>,
    pub path: ReceivePath,
    /// The paths after the first; empty with one.
    pub others: Vec<ReceivePath>,
    /// State of each stream as reported in the feedback that is being written; strangers after them.
    reported: Vec<Reported>,
    /// Sources of no stream.
    strangers: Vec<strangers::Stranger>,
    /// Whether adaptive delays follow each other, and when they are next compared.
    pub aligns: bool,
    /// How far the clock of arrivals that feedback states is ahead of the endpoint's.
    pub clock_offset: TimeDelta,
    align_at: Timestamp,
}

impl Receiver {
    pub(crate) fn new(stream: IncomingConfig, path: ReceivePath, shared: Shared<'_>, now: Timestamp) -> Self {
        let stream = IncomingStream::new(IncomingId::FIRST, stream, &path, shared, now);
        Self {
            streams: vec![stream],
            path,
            others: Vec::new(),
            reported: Vec::new(),
            strangers: Vec::new(),
            aligns: false,
            clock_offset: TimeDelta::ZERO,
            align_at: now,
        }
    }

    /// Whether there are, or can be, several paths.
    #[inline]
    pub(crate) fn is_multipath(&self) -> bool {
        self.path.subflow.is_some()
    }
    /// All paths, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &ReceivePath> {
        core::iter::once(&self.path).chain(&self.others)
    }
    pub(crate) fn path_mut(&mut self, index: usize) -> Option<&mut ReceivePath> {
        match index.checked_sub(1) {
            None => Some(&mut self.path),
            Some(other) => self.others.get_mut(other),
        }
    }

    /// Adds the path after the last one, or replaces the one with this number.
    pub(crate) fn put_path(
        &mut self,
        id: PathId,
        path: ReceivingPath,
        twcc: TwccWriter,
        params: &SessionParams,
        now: Timestamp,
    ) {
        let mut path = ReceivePath::new(path, twcc, now);
        path.make_subflow(id, self.streams[0].identity.clock_rate);
        path.set_params(params);
        match self.path_mut(id.index()) {
            Some(old) => *old = path,
            None => self.others.push(path),
        }
    }

    /// The index of the stream with this media source.
    #[inline]
    pub(crate) fn index_of_media(&self, ssrc: u32) -> Option<usize> {
        self.streams.iter().position(|s| s.identity.ssrc == ssrc)
    }
    /// The index of the stream with this media, repair or retransmission source.
    pub(crate) fn index_of_source(&self, ssrc: u32) -> Option<usize> {
        self.index_of_media(ssrc).or_else(|| self.streams.iter().position(|s| s.identity.has(ssrc)))
    }
    pub(crate) fn index_of(&self, id: IncomingId) -> Option<usize> {
        self.streams.iter().position(|s| s.id == id)
    }
    /// The stream and its path.
    #[inline]
    pub(crate) fn with_path(&mut self, index: usize) -> (&mut IncomingStream, &mut ReceivePath) {
        (&mut self.streams[index], &mut self.path)
    }
    /// The stream and the path of this index; the first if there is none.
    #[inline]
    pub(crate) fn with_path_at(&mut self, index: usize, path: usize) -> (&mut IncomingStream, &mut ReceivePath) {
        let other = path.checked_sub(1).and_then(|other| self.others.get_mut(other));
        (&mut self.streams[index], other.unwrap_or(&mut self.path))
    }

    pub(crate) fn add(&mut self, id: IncomingId, config: IncomingConfig, shared: Shared<'_>, now: Timestamp) {
        self.streams.push(IncomingStream::new(id, config, &self.path, shared, now));
        self.count();
    }
    pub(crate) fn remove(&mut self, index: usize) {
        self.streams.remove(index);
        self.count();
    }
    fn count(&mut self) {
        let is_single = self.streams.len() == 1;
        self.streams.iter_mut().for_each(|s| s.is_single = is_single);
    }

    pub(crate) fn set_params(&mut self, params: &SessionParams) {
        self.path.set_params(params);
        self.others.iter_mut().for_each(|p| p.set_params(params));
        for s in &mut self.streams {
            s.set_params(params, self.path.reports.as_ref());
        }
    }

    /// Plays all streams by the clock in their sender reports. Its offset from this end's clock is unknown; the fastest
    /// packet of any stream is assumed to have had no delay.
    pub(crate) fn synchronise(&mut self) {
        let Some(least) = self.streams.iter().filter_map(|s| s.clock.least_lag()).min() else { return };
        for s in &mut self.streams {
            if let Some((rtp_timestamp, wall)) = s.clock.report() {
                s.set_capture_time(rtp_timestamp, wall + least);
            }
        }
    }

    pub(crate) fn counters(&self) -> ReceiveCounters {
        let mut sum = ReceiveCounters::default();
        self.streams.iter().for_each(|s| sum += s.counters);
        sum
    }
    /// Recovery statistics of the first stream.
    pub(crate) fn recovery(&self) -> RecoveryStats {
        self.streams[0].recovery()
    }
    /// Repair counters of the first stream.
    pub(crate) fn repair_counters(&self) -> RepairReceiveCounters {
        self.streams[0].repair_counters()
    }

    pub(crate) fn on_rtt(&mut self, rtt: TimeDelta, now: Timestamp) {
        for c in core::iter::once(&mut self.path).chain(&mut self.others).filter_map(|p| p.controller.as_mut()) {
            c.on_rtt(rtt, now);
        }
        self.streams.iter_mut().for_each(|s| s.on_rtt(rtt));
    }

    /// Runs playout if it is automatic; returns the report of the controller's receiver half, if any.
    pub(crate) fn on_timeout(&mut self, now: Timestamp) -> Option<Report> {
        self.align(now);
        for s in &mut self.streams {
            s.run_playout(&mut self.path, now);
        }
        for p in &mut self.others {
            if let Some(report) = p.poll_report(now) {
                p.report = Some(report);
            }
        }
        let report = self.path.poll_report(now);
        if report.is_some() && self.is_multipath() {
            self.path.report = report;
            return None;
        }
        report
    }

    /// The earliest deadline, and when picture feedback of any stream is due; [`Timestamp::MAX`] for none.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> (Timestamp, Timestamp) {
        let mut at = self.path.feedback_due.unwrap_or(Timestamp::MAX);
        if let Some(c) = &self.path.controller {
            earliest(&mut at, c.poll_timeout());
        }
        for p in &self.others {
            earliest(&mut at, p.feedback_due);
            earliest(&mut at, p.controller.as_ref().and_then(|c| c.poll_timeout()));
        }
        let mut picture = Timestamp::MAX;
        for s in &self.streams {
            at = at.min(s.poll_timeout(self.path.controller.is_some()));
            earliest(&mut picture, s.picture.due());
        }
        (at, picture)
    }

    /// The first of several paths on which feedback or a controller's report is to be sent now.
    #[inline]
    pub(crate) fn due_path(&self, now: Timestamp) -> Option<PathId> {
        let is_due = |p: &&ReceivePath| p.is_feedback_due(now) || p.report.is_some();
        if is_due(&&self.path) {
            return Some(self.path.id);
        }
        self.others.iter().find(is_due).map(|p| p.id)
    }

    /// Whether a loss or discard since the last report warrants an early report.
    pub(crate) fn is_urgent(&self) -> bool {
        self.path.reports.is_some_and(|p| p.early) && self.streams.iter().any(IncomingStream::is_urgent)
    }
    /// Whether anything beside a regular report is to be sent now.
    #[inline]
    pub(crate) fn is_rtcp_due(&self, now: Timestamp) -> bool {
        let early = self.path.reports.is_some_and(|p| p.early);
        let is_due = |s: &IncomingStream| (early && s.is_urgent()) || s.is_nack_due(now) || s.picture.is_due(now);
        self.path.is_feedback_due(now) || self.streams.iter().any(is_due)
    }
    /// Whether any stream waits for a picture that it has asked for or will ask for, or acknowledges pictures.
    pub(crate) fn has_picture_feedback(&self) -> bool {
        self.streams.iter().any(|s| s.picture.due().is_some())
    }
    pub(crate) fn is_picture_due(&self, now: Timestamp) -> bool {
        self.streams.iter().any(|s| s.picture.is_due(now))
    }
    /// Prepares the packets to request now; returns whether there are any.
    pub(crate) fn prepare_nacks(&mut self, now: Timestamp) -> bool {
        self.streams.iter_mut().fold(false, |any, s| s.prepare_nack(now) | any)
    }
    pub(crate) fn write_nacks(&mut self, ssrc: u32, now: Timestamp, out: &mut Vec<u8>) {
        for s in &mut self.streams {
            if let Some(n) = s.nack.as_mut().filter(|n| n.is_prepared()) {
                n.write(FeedbackSsrcs { sender: ssrc, media: s.identity.ssrc }, now, out);
            }
        }
    }
    /// Whether this end needs the round-trip time.
    pub(crate) fn wants_round_trip(&self) -> bool {
        self.path.controller.is_some() || self.streams.iter().any(IncomingStream::wants_round_trip)
    }
    /// Packets that have arrived since the last feedback.
    pub(crate) fn news(&self) -> u32 {
        let own: u32 = self.streams.iter().map(IncomingStream::news).sum();
        let strangers: u32 = self.strangers.iter().map(|s| s.log.news()).sum();
        own + strangers + self.path.log.as_ref().map_or(0, ArrivalLog::news)
    }

    /// Whether packets are logged for feedback at all.
    pub(crate) fn has_feedback(&self) -> bool {
        self.path.format().is_some() && !self.is_multipath()
    }

    /// Feedback on one of several paths, by the subflow's numbers. Appends the message and returns the number after the
    /// last packet reported.
    pub(crate) fn write_subflow_feedback(
        &mut self,
        index: usize,
        ssrc: u32,
        zero: NtpTime,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Option<u64> {
        let media = self.streams[0].identity.ssrc;
        let offset = self.clock_offset;
        let path = self.path_mut(index)?;
        let format = path.format()?;
        let log = path.log.as_ref()?;
        if format == FeedbackFormat::TransportWide {
            return Some(path.twcc.write(log, offset, out));
        }
        let context = CcfbContext { ssrc, zero, now, max_size: MAX_SUBFLOW_FEEDBACK };
        let mut message = CcfbWriter::new(context, out);
        let upto = message.add(media, log);
        message.finish();
        Some(upto)
    }

    /// Feedback on a path, up to this number if it has any, is sent in a datagram of `size`.
    pub(crate) fn on_subflow_feedback_sent(&mut self, index: usize, upto: Option<u64>, size: DataSize, now: Timestamp) {
        let Some(path) = self.path_mut(index) else { return };
        path.on_report_sent(size, upto, now);
    }

    /// Appends feedback on received packets; [`Self::on_feedback_sent`] must follow.
    pub(crate) fn write_feedback(&mut self, ssrc: u32, zero: NtpTime, now: Timestamp, out: &mut Vec<u8>) {
        self.reported.clear();
        if self.path.format() == Some(FeedbackFormat::TransportWide) {
            let (path, offset) = (&mut self.path, self.clock_offset);
            let upto = path.log.as_ref().map_or(0, |log| path.twcc.write(log, offset, out));
            self.reported.push(Reported { media: upto, ..Reported::default() });
            return;
        }
        if !self.strangers.is_empty() {
            cold_path();
            self.forget_known_strangers();
        }
        let count = self.streams.len();
        let mut all = core::mem::take(&mut self.reported);
        all.resize(count + self.strangers.len(), Reported::default());
        let mut message = CcfbWriter::new(CcfbContext { ssrc, zero, now, max_size: MAX_FEEDBACK }, out);
        for (s, upto) in self.streams.iter().zip(&mut all) {
            // A stream without received packets has nothing to report, unless it is the only one.
            if let Some(log) = s.log.as_ref().filter(|_| s.is_single || s.stats.is_started()) {
                upto.media = message.add(s.identity.ssrc, log);
            }
            if let Some(log) = s.repair_log() {
                cold_path();
                upto.repair = message.add(s.identity.repair(), log);
            }
            if let Some(log) = s.retransmission_log() {
                cold_path();
                upto.retransmission = message.add(s.identity.retransmission(), log);
            }
        }
        for (s, upto) in self.strangers.iter().zip(&mut all[count..]) {
            upto.media = message.add(s.ssrc, &s.log);
        }
        message.finish();
        self.reported = all;
    }

    /// Feedback written by [`Self::write_feedback`] is sent in a datagram of `size`.
    pub(crate) fn on_feedback_sent(&mut self, size: DataSize, now: Timestamp) {
        let mut progress = false;
        if self.path.format() == Some(FeedbackFormat::TransportWide) {
            if let (Some(log), Some(upto)) = (&mut self.path.log, self.reported.first()) {
                progress |= log.on_reported(upto.media);
            }
        } else {
            for (s, upto) in self.streams.iter_mut().zip(&self.reported) {
                progress |= s.on_reported(*upto);
            }
            for (s, upto) in self.strangers.iter_mut().zip(self.reported.iter().skip(self.streams.len())) {
                progress |= s.log.on_reported(upto.media);
            }
        }
        let left = self.news() > 0;
        self.path.on_feedback_sent(size, progress, left, now);
    }

    /// The first stream's source has restarted: resets the path's state.
    pub(crate) fn restart_path(&mut self, twcc: TwccWriter, silence: TimeDelta, now: Timestamp) {
        self.path.restart(twcc, silence, now);
    }
}
