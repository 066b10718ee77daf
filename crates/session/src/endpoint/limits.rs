//! Limits that the other end's sources have requested, and when they end.
//!
//! As in libwebrtc (read on 2026-11-25 in public copies of its source): a REMB holds until the next one (`GoogCcNetworkController::
//! OnRemoteBitrateReport` sets `receiver_limit_`, and nothing clears it), a TMMBR for 25 s (`kTmmbrTimeoutInterval` in
//! rtcp_receiver.cc). There a peer that leaves ends the call, and its limit with it. Here a call may go on with another source:
//! a limit ends when its source says goodbye, or has not been heard from for as long as RFC 3550 (section 6.3.5) keeps a
//! member: five reporting intervals.

use super::Endpoint;
use weir_cc::cue::{Cue, EstimateKind, ReceiverEstimate};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// How long a TMMBR holds (libwebrtc's `kTmmbrTimeoutInterval`).
const TMMBR_HOLDS: TimeDelta = TimeDelta::from_secs(25);
/// Reporting intervals after which a silent source has left (RFC 3550, section 6.3.5), of at least their usual 5 s.
const SILENT_INTERVALS: i64 = 5;
const INTERVAL: TimeDelta = TimeDelta::from_secs(5);

/// The last limit, and whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requested {
    ssrc: u32,
    kind: EstimateKind,
    path: usize,
    at: Timestamp,
    /// When RTCP of its source was received last.
    heard: Timestamp,
}

impl Endpoint {
    /// A source has requested this limit.
    pub(super) fn on_estimate(&mut self, ssrc: u32, rate: DataRate, kind: EstimateKind, path: usize, now: Timestamp) {
        self.requested = Some(Requested { ssrc, kind, path, at: now, heard: now });
        if let Some(s) = &mut self.sender {
            s.on_cue(path, &Cue::ReceiverEstimate(ReceiverEstimate { now, rate, kind }));
        }
    }

    /// RTCP of this source was received.
    pub(super) fn on_requester(&mut self, ssrc: u32, now: Timestamp) {
        if let Some(r) = self.requested.as_mut().filter(|r| r.ssrc == ssrc) {
            r.heard = now;
        }
    }

    /// This source has left.
    pub(super) fn on_requester_left(&mut self, ssrc: u32, now: Timestamp) {
        if let Some(r) = self.requested.take_if(|r| r.ssrc == ssrc) {
            self.withdraw(r, now);
        }
    }

    /// Ends a limit that has become too old; once in each reporting interval.
    pub(super) fn age_limit(&mut self, now: Timestamp) {
        let interval = self.timer.calculated_interval().max(INTERVAL);
        let is_over = |r: &mut Requested| {
            let aged = r.kind == EstimateKind::Tmmbr && now.saturating_since(r.at) > TMMBR_HOLDS;
            aged || now.saturating_since(r.heard) > interval * SILENT_INTERVALS
        };
        if let Some(r) = self.requested.take_if(is_over) {
            self.withdraw(r, now);
        }
    }

    fn withdraw(&mut self, requested: Requested, now: Timestamp) {
        let Requested { kind, path, .. } = requested;
        if let Some(s) = self.sender.as_mut().filter(|s| path < s.paths.len()) {
            s.withdraw_estimate(path, ReceiverEstimate::withdrawn(now, kind));
        }
    }
}
