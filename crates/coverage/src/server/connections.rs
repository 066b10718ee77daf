//! The places of connections, and who gives way for a new one.

use super::shared::Shared;
use std::sync::Arc;
use tokio::sync::watch;
use weir_admission::{Guest, Hall, Source};

/// The place of a connection. Requests carry it, so that a WebSocket has it as long as it is open.
#[derive(Debug)]
pub(super) struct Place {
    guest: Guest,
    pub(super) peer: Source,
    pub(super) shared: Arc<Shared>,
    closed: watch::Receiver<bool>,
}

impl Place {
    /// A place for another connection; somebody else may have to give way for it.
    pub(super) fn enter(hall: &Hall, peer: Source, shared: &Arc<Shared>) -> Self {
        let (close, closed) = watch::channel(false);
        let refused = shared.metrics.refused_connections.clone();
        let guest = hall.enter(shared.clock.elapsed(), peer, move || {
            refused.inc();
            close.send_replace(true);
        });
        shared.metrics.connections.inc();
        Self { guest, peer, shared: Arc::clone(shared), closed }
    }

    /// A request's head is complete, or a subscriber was heard.
    pub(super) fn progress(&self) {
        self.guest.progress(self.shared.clock.elapsed());
    }

    /// It has presented a valid key.
    pub(super) fn prove(&self) {
        self.guest.prove(self.shared.clock.elapsed());
    }

    /// Returns once it has to give way.
    pub(super) async fn gives_way(&self) {
        let mut closed = self.closed.clone();
        if closed.wait_for(|closed| *closed).await.is_err() {
            // Nobody is left who could want it.
            std::future::pending().await
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.metrics.connections.dec();
    }
}

/// Returns once the service stops.
pub(super) async fn stopped(mut stopping: watch::Receiver<bool>) {
    // If the sender is gone, so is the service.
    let _ = stopping.wait_for(|stop| *stop).await;
}
