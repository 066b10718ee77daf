//! Places of connections that are served by threads or tasks of their own.

use crate::{Doors, Limits, Proof, Source, Ticket};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_units::Timestamp;

/// Closes a connection.
type Close = Box<dyn FnOnce() + Send>;

/// [`Doors`] that several threads use. Each place is left when its [`Guest`] is dropped.
#[derive(Clone)]
pub struct Hall(Arc<Mutex<Doors<Close>>>);

impl fmt::Debug for Hall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doors = self.doors();
        f.debug_struct("Hall").field("strangers", &doors.strangers()).field("proven", &doors.proven()).finish()
    }
}

impl Hall {
    /// Nobody is there.
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(Doors::new(limits))))
    }

    /// A place for a newcomer. `close` is called when it has to give way to another; it must not block, nor drop a guest.
    pub fn enter(&self, now: Timestamp, source: Source, close: impl FnOnce() + Send + 'static) -> Guest {
        let (ticket, gone) = self.doors().enter(now, source, Box::new(close));
        gone.into_iter().for_each(|close| close());
        Guest { hall: self.clone(), ticket }
    }

    /// Closes the connection of the stranger that is the next to give way: there are too few descriptors, for example.
    pub fn shed(&self) {
        let gone = self.doors().shed();
        gone.into_iter().for_each(|close| close());
    }

    fn doors(&self) -> MutexGuard<'_, Doors<Close>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a [`Hall`].
#[derive(Debug)]
pub struct Guest {
    hall: Hall,
    ticket: Ticket,
}

impl Guest {
    /// A request or a handshake of its is complete.
    pub fn progress(&self, now: Timestamp) {
        self.hall.doors().progress(now, self.ticket);
    }

    /// It has proved something. Where all proven places are in use it stays a stranger, and the next proof tries again.
    pub fn prove(&self, now: Timestamp) {
        let proof = self.hall.doors().prove(now, self.ticket);
        if let Proof::Admitted(Some(close)) = proof {
            close();
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.hall.doors().leave(self.ticket);
    }
}
