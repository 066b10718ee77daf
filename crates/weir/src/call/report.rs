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
}
