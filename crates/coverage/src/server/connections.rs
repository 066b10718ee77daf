//! How many connections are open, by address.

use super::shared::{Peer, Shared};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Connections by address.
#[derive(Debug, Default)]
pub(super) struct Open(Mutex<BTreeMap<Peer, usize>>);

/// One of the connections of an address. Requests carry it, so that a WebSocket counts as long as it is open.
#[derive(Debug)]
pub(super) struct Place {
    open: Arc<Open>,
    pub(super) peer: Peer,
    pub(super) shared: Arc<Shared>,
}

impl Open {
    /// A place for another connection, unless there are too many.
    pub(super) fn enter(self: &Arc<Self>, peer: Peer, shared: &Arc<Shared>) -> Option<Place> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let count = open.entry(peer).or_default();
        let admitted = all < shared.config.max_connections && *count < shared.config.max_connections_per_address;
        if admitted {
            *count += 1;
            shared.metrics.connections.inc();
        } else {
            shared.metrics.refused_connections.inc();
            if *count == 0 {
                open.remove(&peer);
            }
        }
        admitted.then(|| Place { open: Arc::clone(self), peer, shared: Arc::clone(shared) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
        self.shared.metrics.connections.dec();
    }
}

/// Returns once the service stops.
pub(super) async fn stopped(mut stopping: watch::Receiver<bool>) {
    // If the sender is gone, so is the service.
    let _ = stopping.wait_for(|stop| *stop).await;
}
