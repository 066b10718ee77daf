//! What `weir call --json` prints.

use schemars::JsonSchema;
use serde::Serialize;
use weir_live::call::{LoopbackSummary, PartyStreamsSummary, PartySummary, StreamsSummary};

/// The report of a call.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Report<'a> {
    /// `weir call loopback`: both ends of a call of one stream.
    Loopback(&'a LoopbackSummary),
    /// `weir call loopback --streams`: both ends of a call of several streams.
    LoopbackStreams(&'a StreamsSummary),
    /// `weir call listen` and `weir call connect`: one end of a call of one stream.
    Party(&'a PartySummary),
    /// The same with `--streams`: one end of a call of several streams.
    PartyStreams(&'a PartyStreamsSummary),
    /// `weir call webrtc`: the calls of browsers.
    #[cfg(feature = "webrtc")]
    Webrtc(&'a WebrtcReport),
}

/// The calls of browsers.
#[cfg(feature = "webrtc")]
#[derive(Serialize, JsonSchema)]
pub(crate) struct WebrtcReport {
    /// Those that there were, the oldest first; a service keeps the last that have ended.
    pub(super) calls: Vec<weir_peer::call::Snapshot>,
}
