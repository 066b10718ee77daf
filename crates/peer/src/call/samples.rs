//! Series and totals of a call.

use super::{LinkSample, Settings};
use crate::room::RoomView;
use crate::sdp::Negotiated;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::net::SocketAddr;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Interval of samples.
pub(super) const INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// Samples kept: twenty minutes.
const MAX_SAMPLES: usize = 12_000;
/// Samples in one answer.
const MAX_AT_ONCE: usize = 2_000;

/// What was measured in a tenth of a second, units in the names.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, JsonSchema)]
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
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, JsonSchema)]
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
    /// Slots of audio that were not silent.
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

/// What the browser says of the call (`getStats`), as its page passes it on: not to be relied upon.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BrowserNumbers {
    /// `packetsReceived` of `inbound-rtp`.
    pub packets_received: u64,
    /// `packetsLost`.
    pub packets_lost: i64,
    /// `bytesReceived`: of payload.
    pub bytes_received: u64,
    /// `framesDecoded`.
    pub frames_decoded: u64,
    /// `freezeCount`.
    pub freezes: u64,
    /// `packetsSent` of `outbound-rtp`.
    pub packets_sent: u64,
    /// `bytesSent`: of payload.
    pub bytes_sent: u64,
    /// `framesEncoded`.
    pub frames_encoded: u64,
    /// `packetsReceived` of audio.
    pub audio_packets_received: u64,
    /// `packetsSent` of audio.
    pub audio_packets_sent: u64,
    /// `currentRoundTripTime` of the candidate pair.
    pub round_trip_ms: Option<f64>,
}

/// What is seen of a call.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
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
    /// What goes from and to the other members, in a room.
    pub room: Option<RoomView>,
    /// Number of the first sample.
    pub first: u64,
    /// Samples.
    pub samples: Vec<Sample>,
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
    pub(super) browser: Option<BrowserNumbers>,
    pub(super) internals: Vec<(&'static str, f64)>,
    pub(super) room: Option<RoomView>,
    /// Number of the first sample kept.
    first: u64,
    samples: VecDeque<Sample>,
}

impl Log {
    pub(super) fn new(n: &Negotiated, settings: &Settings, local: SocketAddr, now: Timestamp) -> Self {
        Self {
            settings: settings.clone(),
            codec: n.codec.to_string(),
            direction: n.direction.name(),
            local,
            began: now,
            connected: None,
            ended: None,
            totals: Totals::default(),
            browser: None,
            internals: Vec::new(),
            room: None,
            first: 0,
            samples: VecDeque::new(),
        }
    }
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }
    pub(super) fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
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

    pub(super) fn snapshot(&self, from: u64) -> Snapshot {
        let skip = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.samples.len());
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
            browser: self.browser,
            internals: self.internals.clone(),
            room: self.room.clone(),
            first: self.first + skip as u64,
            samples: self.samples.range(skip..).take(MAX_AT_ONCE).copied().collect(),
        }
    }
}
