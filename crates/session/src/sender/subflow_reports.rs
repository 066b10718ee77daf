//! Reports of the other end on single paths.

use super::Sender;
use super::liveness::Response;
use crate::feedback::ccfb_packets;
use crate::multipath::{PathReport, Scheduler};
use crate::sent::nearest;
use weir_cc::cue::ReportBlock;
use weir_units::{DataSize, RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::rtcp::ccfb;

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

impl Sender {
    /// The other end has reported packets received on a path, and thereby the round-trip time.
    pub(crate) fn on_path_rtt(&mut self, path: usize, rtt: TimeDelta, now: Timestamp) {
        let Some(m) = &mut self.multipath else { return };
        if let Some(state) = m.states.get_mut(path) {
            state.on_rtt(rtt, now);
            if state.liveness.on_response(Response::Report, now) {
                m.usable_until = Timestamp::ZERO;
            }
            self.leave_backlog(path, now);
        }
    }

    /// The other end has answered a check of a path that had failed.
    pub(crate) fn on_path_answered(&mut self, path: usize, rtt: TimeDelta, now: Timestamp) {
        let Some(m) = &mut self.multipath else { return };
        if let Some(state) = m.states.get_mut(path) {
            state.on_rtt(rtt, now);
            if state.liveness.on_response(Response::Check, now) {
                m.usable_until = Timestamp::ZERO;
            }
            m.note_failed();
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
        if (expected > 0 || answers) && state.liveness.on_response(Response::Report, now) {
            m.usable_until = Timestamp::ZERO;
        }
        state.loss = b.fraction_lost;
        let (packets, bytes) = (state.packets - state.reported.0, state.bytes - state.reported.1);
        state.reported = (state.packets, state.bytes);
        let lost = (b.fraction_lost * expected as f64 + 0.5) as u64;
        let mean_size = DataSize::from_bytes(bytes.checked_div(packets).unwrap_or(0));
        let id = self.paths[path].id;
        m.scheduler.on_report(id, &PathReport { now, expected, lost, discarded: b.discarded, mean_size });
        if let Some(rtt) = b.rtt {
            state.on_rtt(rtt, now);
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
