//! Output of `weir live call --json`.

use serde::Serialize;
use weir_live::call::{LoopbackSummary, PartyStreamsSummary, PartySummary, StreamsSummary};

/// The report of a call.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum Report<'a> {
    /// `weir live call loopback`: both ends of a call of one stream.
    Loopback(&'a LoopbackSummary),
    /// `weir live call loopback --streams`: both ends of a call of several streams.
    LoopbackStreams(&'a StreamsSummary),
    /// `weir live call listen` and `weir live call connect`: one end of a call of one stream.
    Party(&'a PartySummary),
    /// The same with `--streams`: one end of a call of several streams.
    PartyStreams(&'a PartyStreamsSummary),
    /// `weir live webrtc`: the calls of browsers.
    #[cfg(feature = "webrtc")]
    Webrtc(&'a WebrtcReport),
}

/// The calls of browsers.
#[cfg(feature = "webrtc")]
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WebrtcReport {
    /// Those that there were, the oldest first; a service keeps the last that have ended.
    pub(in crate::live) calls: Vec<weir_peer::call::Snapshot>,
}
