//! State that a store keeps from one connection to the next.

use std::collections::BTreeMap;

/// Devices whose numbers are remembered.
const MAX_KNOWN_DEVICES: usize = 100_000;
/// Devices of deletions without an answer that are remembered.
const MAX_UNANSWERED: usize = 100_000;

/// Where an update is: its device, its id and the cell that decides its partition.
pub(super) type Place = (i32, i64, i64);

/// A transaction that was committed, but the answer did not come.
#[derive(Debug)]
pub(super) struct Unknown {
    /// Its number, as text.
    pub(super) transaction: String,
    /// The server's process for it.
    pub(super) process: i32,
    /// The updates that it added.
    pub(super) added: Vec<Place>,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    devices: BTreeMap<(String, String), i32>,
    pub(super) unknown: Option<Unknown>,
    /// Devices, by key and name, whose deletion may have been done without an answer.
    unanswered: Vec<(String, String, i32)>,
}

impl Memory {
    pub(super) fn device(&self, key: &str, name: &str) -> Option<i32> {
        self.devices.get(&(key.to_owned(), name.to_owned())).copied()
    }

    pub(super) fn add_devices(&mut self, devices: impl IntoIterator<Item = ((String, String), i32)>) {
        if self.devices.len() > MAX_KNOWN_DEVICES {
            self.devices.clear();
        }
        self.devices.extend(devices);
    }

    /// Before the deletion of devices is committed: from now on they may be gone.
    pub(super) fn begin_forgetting(&mut self, devices: &[(String, String, i32)]) {
        self.devices.retain(|_, number| !devices.iter().any(|(_, _, gone)| gone == number));
        self.unanswered.truncate(MAX_UNANSWERED.saturating_sub(devices.len()));
        self.unanswered.extend_from_slice(devices);
    }

    /// The numbers of devices that this deletion, or one before that had no answer, took.
    pub(super) fn end_forgetting(&mut self, key: &str, name: Option<&str>) -> Vec<u32> {
        let is_it = |device: &(String, String, i32)| device.0 == key && name.is_none_or(|name| device.1 == name);
        let mut numbers: Vec<u32> =
            self.unanswered.iter().filter(|d| is_it(d)).filter_map(|d| u32::try_from(d.2).ok()).collect();
        self.unanswered.retain(|d| !is_it(d));
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}
