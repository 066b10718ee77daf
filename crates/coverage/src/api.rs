//! Messages between client and service.

use crate::{Refusal, Update, WallTime};
use serde::{Deserialize, Serialize};

/// Updates of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// When the batch was sent, on the reporter's clock: its difference from the service's clock is added to the updates'
    /// times. More than five minutes are refused.
    pub sent_ms: WallTime,
    /// The fleet's device that it is from: 1 to 64 bytes, a pseudonym. Keys of one device have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The updates, 1,000 at most.
    pub updates: Vec<Update>,
}

/// Outcome of a batch. All that is counted here is durable.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Accepted {
    /// Updates that are new.
    pub accepted: usize,
    /// Updates that were there already.
    pub duplicates: usize,
    /// Updates that are not acceptable, and never will be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedUpdate>,
}

/// An update that is not acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct RefusedUpdate {
    /// Its id.
    pub id: u64,
    /// Why.
    pub reason: Refusal,
}
