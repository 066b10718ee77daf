//! Series and totals of a call.

use super::browser::{BrowserLog, BrowserNumbers, BrowserSample};
use super::{LinkChange, LinkSample, Settings};
use crate::room::RoomView;
use crate::sdp::Negotiated;
use serde::Serialize;
use std::collections::VecDeque;
use std::net::SocketAddr;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Interval of samples.
pub(super) const INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// Samples kept: twenty minutes.
const MAX_SAMPLES: usize = 12_000;
/// Samples in one answer.
const MAX_AT_ONCE: usize = 2_000;

/// Measurements of a tenth of a second, units in the names.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// Since the call began.
    pub t_s: f64,
    /// The controller's media rate.
    pub target_bps: Option<f64>,
    /// RTP sent, as UDP payload.
    pub sent_bps: f64,
    /// RTP received, as UDP payload.
    pub received_bps: f64,
    /// Newest round-trip time.
    pub rtt_ms: Option<f64>,
    /// Mean one-way delay of packets reported, above the least of the call.
    pub delay_ms: Option<f64>,
    /// Share of packets reported lost.
    pub loss: Option<f64>,
    /// Age of the oldest packet that waits for the pacer.
    pub queue_ms: f64,
    /// The emulated link to the browser, if there is one.
    pub link: Option<LinkSample>,
    /// That from the browser.
    pub link_back: Option<LinkSample>,
}

/// Sums of a call.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Totals {
    /// RTP packets sent.
    pub packets_sent: u64,
    /// Bytes of RTP sent, as UDP payload.
    pub bytes_sent: u64,
    /// RTP packets received.
    pub packets_received: u64,
    /// Bytes of RTP received, as UDP payload.
    pub bytes_received: u64,
    /// Frames coded and sent.
    pub frames_sent: u64,
    /// Frames received and decoded without damage.
    pub frames_decoded: u64,
    /// Frames decoded with damage.
    pub frames_damaged: u64,
    /// Packets of audio sent.
    pub audio_sent: u64,
    /// Packets of audio received and decoded, or recovered from in-band FEC.
    pub audio_decoded: u64,
    /// Packets of audio that were missing when they were due.
    pub audio_concealed: u64,
    /// Slots of audio that were decoded and not silent.
    pub audio_audible: u64,
    /// Packets that the other end reported lost.
    pub reported_lost: u64,
    /// Packets that it reported received.
    pub reported_received: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Packets recovered by retransmissions of the other end.
    pub recovered: u64,
    /// Repair packets sent (FlexFEC-03).
    pub fec_sent: u64,
    /// Their bytes, as RTP.
    pub fec_bytes_sent: u64,
    /// Repair packets received.
    pub fec_received: u64,
    /// Packets recovered by them.
    pub fec_recovered: u64,
    /// Requests for key frames received.
    pub key_frame_requests: u64,
    /// Times that the circuit breaker (RFC 8083) has stopped the media for a while.
    pub media_stops: u64,
    /// Packets that SRTP refused.
    pub refused: u64,
    /// Datagrams of strangers and of no protocol.
    pub strangers: u64,
    /// CPU time of the call's thread, without encoder and decoder, which have threads of their own.
    pub cpu_ms: Option<u64>,
}

/// Changes of the settings that are kept; later ones replace the last.
const MAX_CHANGES: usize = 200;

/// Settings from an instant on.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Since the call began.
    pub t_s: f64,
    /// The controller.
    pub controller: String,
    /// Maximum media rate.
    pub max_bps: u64,
    /// The link between the ends.
    pub link: LinkChange,
}

/// Statistics of a call.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// `waiting`, `connected` or `ended`.
    pub state: &'static str,
    /// Why it ended.
    pub reason: Option<String>,
    /// The controller.
    pub controller: String,
    /// Maximum media rate.
    pub max_bps: u64,
    /// The codec.
    pub codec: String,
    /// This end's direction.
    pub direction: &'static str,
    /// This end's address.
    pub local: String,
    /// From the answer to the keys.
    pub setup_ms: Option<f64>,
    /// Sums.
    pub totals: Totals,
    /// The browser's own numbers, if its page has passed them on.
    pub browser: Option<BrowserNumbers>,
    /// The controller's internal values.
    pub internals: Vec<(&'static str, f64)>,
    /// Media from and to the other members, in a room.
    pub room: Option<RoomView>,
    /// Number of the first sample.
    pub first: u64,
    /// Samples.
    pub samples: Vec<Sample>,
    /// Number of the first sample of the browser.
    pub browser_first: u64,
    /// The browser's reports, about once a second.
    pub browser_samples: Vec<BrowserSample>,
}

/// All of it.
pub(super) struct Log {
    settings: Settings,
    codec: String,
    direction: &'static str,
    local: SocketAddr,
    began: Timestamp,
    connected: Option<Timestamp>,
    ended: Option<String>,
    pub(super) totals: Totals,
    browser: BrowserLog,
    pub(super) internals: Vec<(&'static str, f64)>,
    pub(super) room: Option<RoomView>,
    /// Number of the first sample kept.
    first: u64,
    samples: VecDeque<Sample>,
    link: LinkChange,
    changes: Vec<Change>,
}

impl Log {
    pub(super) fn new(n: &Negotiated, settings: &Settings, local: SocketAddr, now: Timestamp) -> Self {
        let link = LinkChange { is_on: true, loss: 0.0 };
        Self {
            settings: settings.clone(),
            codec: n.codec.to_string(),
            direction: n.direction.name(),
            local,
            began: now,
            connected: None,
            ended: None,
            totals: Totals::default(),
            browser: BrowserLog::default(),
            internals: Vec::new(),
            room: None,
            first: 0,
            samples: VecDeque::new(),
            link,
            changes: vec![change(0.0, settings, link)],
        }
    }
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }
    pub(super) fn set_settings(&mut self, settings: Settings, now: Timestamp) {
        self.settings = settings;
        self.note_change(now);
    }
    pub(super) fn note_link(&mut self, link: LinkChange, now: Timestamp) {
        self.link = link;
        self.note_change(now);
    }
    pub(super) fn link(&self) -> LinkChange {
        self.link
    }
    fn note_change(&mut self, now: Timestamp) {
        let change = change((now - self.began).as_secs_f64(), &self.settings, self.link);
        if self.changes.last().is_some_and(|last| Change { t_s: change.t_s, ..last.clone() } == change) {
            return;
        }
        self.changes.truncate(MAX_CHANGES - 1);
        self.changes.push(change);
    }
    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }
    /// The browser's reports.
    pub(super) fn note_browser(&mut self, numbers: BrowserNumbers, now: Timestamp) {
        self.browser.push(numbers, self.began, now);
    }
    pub(super) fn connect(&mut self, now: Timestamp) {
        self.connected.get_or_insert(now);
    }
    pub(super) fn end(&mut self, why: String) {
        self.ended.get_or_insert(why);
    }
    pub(super) fn ended(&self) -> bool {
        self.ended.is_some()
    }
    /// The last target.
    pub(super) fn target(&self) -> Option<DataRate> {
        self.samples.back().and_then(|s| s.target_bps).map(DataRate::from_bps_f64)
    }
    pub(super) fn push(&mut self, now: Timestamp, sample: Sample) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
            self.first += 1;
        }
        self.samples.push_back(Sample { t_s: (now - self.began).as_secs_f64(), ..sample });
    }

    /// Returns the statistics of the call, with this end's samples and the browser's from these on, as many as fit into an answer.
    pub(super) fn snapshot(&self, from: u64, browser_from: u64) -> Snapshot {
        let skip = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.samples.len());
        let (browser_first, browser_samples) = self.browser.since(browser_from);
        let samples = self.samples.range(skip..).take(MAX_AT_ONCE).copied().collect();
        self.seen((self.first + skip as u64, samples), (browser_first, browser_samples))
    }
    /// Returns the statistics of the call, with all samples.
    pub(super) fn whole(&self) -> (Snapshot, Vec<BrowserSample>) {
        let samples = self.samples.iter().copied().collect();
        (self.seen((self.first, samples), self.browser.since(u64::MAX)), self.browser.all())
    }

    fn seen(&self, (first, samples): (u64, Vec<Sample>), browser: (u64, Vec<BrowserSample>)) -> Snapshot {
        let state = match (&self.ended, self.connected) {
            (Some(_), _) => "ended",
            (None, Some(_)) => "connected",
            (None, None) => "waiting",
        };
        Snapshot {
            state,
            reason: self.ended.clone(),
            controller: self.settings.controller.clone(),
            max_bps: self.settings.limits.ceiling.as_bps(),
            codec: self.codec.clone(),
            direction: self.direction,
            local: self.local.to_string(),
            setup_ms: self.connected.map(|at| (at - self.began).as_millis_f64()),
            totals: self.totals,
            browser: self.browser.last(),
            internals: self.internals.clone(),
            room: self.room.clone(),
            first,
            samples,
            browser_first: browser.0,
            browser_samples: browser.1,
        }
    }
}

fn change(t_s: f64, settings: &Settings, link: LinkChange) -> Change {
    Change { t_s, controller: settings.controller.clone(), max_bps: settings.limits.ceiling.as_bps(), link }
}
