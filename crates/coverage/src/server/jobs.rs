//! Work that requests leave to the thread that writes.

use super::store::{KeyRecord, StoreError};
use crate::Update;
use tokio::sync::oneshot;

/// Outcome of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Appended {
    Stored { new: usize, duplicates: usize },
    TooManyDevices,
}

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Updates of one device.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) key: String,
    pub(super) device: String,
    pub(super) updates: Vec<Update>,
    pub(super) reply: Reply<Appended>,
}

#[derive(Debug)]
pub(super) enum Job {
    Append(Append),
    Forget { key: String, device: Option<String>, reply: Reply<u64> },
    AddKey { record: KeyRecord, reply: Reply<()> },
    RevokeKey { id: String, reply: Reply<bool> },
    Tick,
    Stop,
}
