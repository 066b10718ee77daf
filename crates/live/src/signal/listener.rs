//! Waits for offers, from any number of strangers at once.

use super::incoming::Incoming;
use super::tls::Identity;
use super::wire::{Wire, instant};
use super::{
    Exchange, LOOK, Refused, SignalError, Signalling, Trust, checked_plain, io_error, pause, wait_for_file, with_ending,
};
use crate::sdp::Description;
use nix::poll::{PollFd, PollFlags, poll};
use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A connection has this long to deliver its whole offer.
pub const OFFER_DEADLINE: Duration = Duration::from_secs(10);
/// Connections that may deliver an offer at the same time. One more closes the oldest.
pub const MAX_PENDING: usize = 64;
/// Of these, the maximum from one address.
pub const MAX_PENDING_PER_SOURCE: usize = 8;
/// Maximum connections accepted before pending ones are read.
const MAX_ACCEPTS: usize = 32;

/// Waits for offers. Anything else is refused and reported, and does not end the wait.
#[derive(Debug)]
pub struct Listener(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(Box<Door>),
    File(PathBuf),
}

#[derive(Debug)]
struct Door {
    listener: TcpListener,
    identity: Option<Identity>,
    pending: Vec<Pending>,
}

/// A connection whose offer is not complete yet.
#[derive(Debug)]
struct Pending {
    from: SocketAddr,
    wire: Wire,
    incoming: Incoming,
    until: Instant,
}

impl Listener {
    /// Binds to the address. `identity` is presented by a listener with TLS.
    ///
    /// # Errors
    /// It cannot be bound, TLS has no identity, or plain TCP would be open to other machines and `trust` does
    /// not allow that.
    pub fn bind(by: &Signalling, identity: Option<Identity>, trust: &Trust) -> Result<Self, SignalError> {
        let (address, identity) = match by {
            Signalling::File(prefix) => return Ok(Self(Kind::File(prefix.clone()))),
            Signalling::Tcp(address) => (address, None),
            Signalling::Tls(address) => match identity {
                Some(identity) => (address, Some(identity)),
                None => return Err(SignalError::Identity("a listener with TLS needs one".into())),
            },
        };
        let what = || format!("listening at {address}");
        let listener = TcpListener::bind(address).map_err(io_error(what()))?;
        let at = listener.local_addr().map_err(io_error(what()))?;
        if identity.is_none() {
            checked_plain(at, address, trust)?;
        }
        listener.set_nonblocking(true).map_err(io_error(what()))?;
        Ok(Self(Kind::Tcp(Box::new(Door { listener, identity, pending: Vec::new() }))))
    }

    /// Its local address; `None` with files.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        if let Kind::Tcp(door) = &self.0 { door.listener.local_addr().ok() } else { None }
    }

    /// The next offer, with the means to answer it. `refused` receives each connection closed without one, with the
    /// reason.
    ///
    /// # Errors
    /// The listening socket fails, or the flag is raised.
    pub fn next(
        &mut self,
        stop: &AtomicBool,
        refused: &mut dyn FnMut(&Refused),
    ) -> Result<(Exchange, Description), SignalError> {
        match &mut self.0 {
            Kind::Tcp(door) => loop {
                if let Some(found) = door.turn(refused)? {
                    return Ok(found);
                }
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return Err(SignalError::Stopped);
                }
            },
            Kind::File(prefix) => loop {
                let path = with_ending(prefix, ".offer");
                let offer = wait_for_file(&path, stop);
                if matches!(offer, Err(SignalError::Stopped | SignalError::Io { .. })) {
                    return Err(offer.err().unwrap_or(SignalError::Stopped));
                }
                // The next caller finds its own.
                fs::remove_file(&path).map_err(io_error(format!("removing {}", path.display())))?;
                match offer {
                    Ok(offer) => return Ok((Exchange::file(prefix), offer)),
                    Err(e) => refused(&Refused { who: path.display().to_string(), why: e.to_string() }),
                }
                pause(stop)?;
            },
        }
    }
}

impl Door {
    /// Accepts connections and reads available bytes, and waits briefly if there are none.
    fn turn(&mut self, refused: &mut dyn FnMut(&Refused)) -> Result<Option<(Exchange, Description)>, SignalError> {
        self.accept(refused)?;
        let now = instant();
        let mut at = 0;
        while at < self.pending.len() {
            let p = &mut self.pending[at];
            let who = p.from.to_string();
            let why = match p.incoming.read(&mut p.wire, &who) {
                Ok(Some(offer)) => {
                    let p = self.pending.remove(at);
                    return Ok(Some((Exchange::wire(p.wire, who), offer)));
                }
                Ok(None) if now >= p.until => {
                    format!("{who}: no complete offer within {} s", OFFER_DEADLINE.as_secs())
                }
                Ok(None) => {
                    at += 1;
                    continue;
                }
                Err(SignalError::Sdp(e)) => format!("{who}: {e}"),
                Err(e) => e.to_string(),
            };
            self.pending.remove(at);
            refused(&Refused { who, why });
        }
        self.wait();
        Ok(None)
    }

    fn accept(&mut self, refused: &mut dyn FnMut(&Refused)) -> Result<(), SignalError> {
        for _ in 0..MAX_ACCEPTS {
            let (stream, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                // That connection alone, or a shortage that passes: descriptors, memory.
                Err(e) if is_passing(&e) => {
                    std::thread::sleep(LOOK);
                    return Ok(());
                }
                Err(e) => return Err(io_error("accepting a connection")(e)),
            };
            let same = |p: &Pending| p.from.ip() == from.ip();
            let crowded = self.pending.iter().filter(|p| same(p)).count() >= MAX_PENDING_PER_SOURCE;
            let oldest = if crowded { self.pending.iter().position(same) } else { None };
            if let Some(oldest) = oldest.or((self.pending.len() >= MAX_PENDING).then_some(0)) {
                let who = self.pending.remove(oldest).from.to_string();
                let why = format!("{who}: closed for newer connections before its offer was complete");
                refused(&Refused { who, why });
            }
            match Wire::accepted(stream, self.identity.as_ref()) {
                Ok(wire) => {
                    let until = instant() + OFFER_DEADLINE;
                    self.pending.push(Pending { from, wire, incoming: Incoming::default(), until });
                }
                Err(e) => refused(&Refused { who: from.to_string(), why: e.to_string() }),
            }
        }
        Ok(())
    }

    fn wait(&self) {
        let ready = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds: Vec<PollFd<'_>> = self.pending.iter().map(|p| ready(p.wire.socket().as_fd())).collect();
        fds.push(ready(self.listener.as_fd()));
        // A signal ends the wait early, which does no harm.
        let _ = poll(&mut fds, LOOK.as_millis() as u16);
    }
}

fn is_passing(e: &std::io::Error) -> bool {
    use nix::errno::Errno::{ECONNABORTED, EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EPROTO};
    let passing = [ECONNABORTED, EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EPROTO];
    e.raw_os_error().is_some_and(|n| passing.iter().any(|p| *p as i32 == n))
}
