//! DCCP as a file writes it.

use crate::choice::RawNumber;
use crate::quantity::{Rate, Size, Time};
use crate::raw::any_flow::{RawDirection, flow};
use crate::spanned::{At, Named};
use serde::Deserialize;

/// Settings of a DCCP connection.
#[derive(Deserialize, Default, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { ecn = true }")]
#[cfg_attr(feature = "schema", schemars(rename = "DccpSettings"))]
pub(crate) struct RawDccpSettings {
    /// Parameters of the CCID by name: numbers in the parameter's unit, or strings with a unit. `weir show ccids` lists them.
    #[serde(default)]
    pub(crate) params: Named<RawNumber>,
    /// Whether packets are sent as ECN-capable; false if absent.
    #[serde(default)]
    pub(crate) ecn: bool,
    /// Whether data and acknowledgements have 24-bit sequence numbers (RFC 4340, section 7.6); false if absent.
    #[serde(default)]
    pub(crate) short_sequence_numbers: bool,
    /// Sequence Window (RFC 4340, section 7.5.2), 32 to 1,000,000; 10,000 if absent.
    pub(crate) sequence_window: Option<At<u64>>,
    /// Maximum packets waiting for congestion control, before frames show how many are needed; 5, the Linux kernel's,
    /// if absent.
    pub(crate) queue: Option<At<u32>>,
    /// Packets that are dropped when that queue is full; "refuse" if absent.
    #[serde(default)]
    pub(crate) when_full: RawQueuePolicy,
    /// Whether a frame that does not fit that queue doubles its capacity, which later becomes that of the largest of a
    /// thousand frames (Jero, 2013, section 3.2.1), under RTP; true if absent.
    pub(crate) sized_by_frames: Option<bool>,
    /// Maximum age of a frame's packets when they leave the queue, under RTP; unlimited if absent.
    pub(crate) max_wait: Option<At<Time>>,
}

/// Packets that are dropped when a send queue is full.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "QueuePolicy"))]
pub(crate) enum RawQueuePolicy {
    /// New packets are refused.
    #[default]
    Refuse,
    /// The packet that has waited longest and matters least is dropped.
    DropOldest,
}

flow! {
    /// A DCCP flow without RTP: as much as congestion control permits, or a live source's data (`rate`).
    RawDccp as "DccpFlow" {
        /// Congestion control by its number, both ways; `weir show ccids` lists them.
        ccid: At<u8>,
        /// Rate of a live source's data, without headers; data for which the send queue has no room is refused.
        rate: Option<At<Rate>>,
        /// Application data of a packet; "1400 B" if absent.
        payload: Option<At<Size>>,
        /// UDP and IP headers around each packet; "28 B" (IPv4) if absent.
        header_overhead: Option<At<Size>>,
        /// The connection.
        #[serde(default)]
        connection: RawDccpSettings,
    }
}
