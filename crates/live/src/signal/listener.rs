//! Waits for offers, from any number of strangers at once.

use super::incoming::Incoming;
use super::tls::Identity;
use super::wire::Wire;
use super::{
    Exchange, LOOK, Refused, SignalError, Signalling, Token, Trust, checked_plain, io_error, pause, wait_for_file,
    with_ending,
};
use crate::clock::Clock;
use crate::sdp::Description;
use nix::poll::{PollFd, PollFlags, poll};
use rustls::ServerConfig;
use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_admission::{Doors, Limits, Source, Ticket};
use weir_units::{TimeDelta, Timestamp};

/// A connection has this long to deliver its whole offer.
pub const OFFER_DEADLINE: Duration = Duration::from_secs(5);
/// Connections that may deliver an offer at the same time; for one more, the one that is next by [`weir_admission`] is
/// closed. At 1,000 connections a second from one address each has 256 ms, enough for TLS over a path of 100 ms.
pub const MAX_PENDING: usize = 256;
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
    /// Of TLS.
    tls: Option<Arc<ServerConfig>>,
    token: Option<Token>,
    clock: Clock,
    pending: Doors<Pending>,
}

/// A connection whose offer is not complete yet.
#[derive(Debug)]
struct Pending {
    from: SocketAddr,
    wire: Wire,
    incoming: Incoming,
    until: Timestamp,
    /// Its TLS handshake was complete when it was last read.
    is_open: bool,
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
        let tls = identity.as_ref().map(Identity::config).transpose().map_err(|e| SignalError::Tls(e.to_string()))?;
        let limits = Limits {
            strangers: MAX_PENDING,
            usual: 1,
            // Nobody stays once its offer is complete.
            proven: 1,
            per_source: 1,
            kept: 0,
            quiet: TimeDelta::ZERO,
        };
        let (clock, pending) = (Clock::starting_now(), Doors::new(limits));
        Ok(Self(Kind::Tcp(Box::new(Door { listener, tls, token: None, clock, pending }))))
    }

    /// The same, taking only offers that present this token, if there is one.
    ///
    /// # Errors
    /// It listens to files, which have owners instead.
    pub fn with_token(mut self, token: Option<Token>) -> Result<Self, SignalError> {
        match &mut self.0 {
            Kind::Tcp(door) => door.token = token,
            Kind::File(_) if token.is_some() => return Err(SignalError::FileToken),
            Kind::File(_) => {}
        }
        Ok(self)
    }

    /// Whether strangers reach it: not with files.
    pub(crate) fn is_open_to_strangers(&self) -> bool {
        matches!(self.0, Kind::Tcp(_))
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
        loop {
            if let Some(found) = self.turn(stop, &[], refused)? {
                return Ok(found);
            }
        }
    }

    /// As [`Self::next`], for a short while at most, or until one of these others is readable.
    pub(crate) fn turn(
        &mut self,
        stop: &AtomicBool,
        others: &[BorrowedFd<'_>],
        refused: &mut dyn FnMut(&Refused),
    ) -> Result<Option<(Exchange, Description)>, SignalError> {
        let prefix = match &mut self.0 {
            Kind::Tcp(door) => {
                let found = door.turn(stop, others, refused)?;
                let is_stopped = found.is_none() && stop.load(Ordering::Relaxed);
                return if is_stopped { Err(SignalError::Stopped) } else { Ok(found) };
            }
            Kind::File(prefix) => prefix,
        };
        let path = with_ending(prefix, ".offer");
        let offer = wait_for_file(&path, stop);
        if matches!(offer, Err(SignalError::Stopped | SignalError::Io { .. })) {
            return Err(offer.err().unwrap_or(SignalError::Stopped));
        }
        // The next caller finds its own.
        fs::remove_file(&path).map_err(io_error(format!("removing {}", path.display())))?;
        match offer {
            Ok(offer) => return Ok(Some((Exchange::file(prefix), offer))),
            Err(e) => refused(&Refused { who: path.display().to_string(), why: e.to_string() }),
        }
        pause(stop).map(|()| None)
    }
}

impl Door {
    fn turn(
        &mut self,
        stop: &AtomicBool,
        others: &[BorrowedFd<'_>],
        refused: &mut dyn FnMut(&Refused),
    ) -> Result<Option<(Exchange, Description)>, SignalError> {
        let (comes, ready) = self.wait(others);
        if comes {
            self.accept(refused)?;
        }
        let now = self.clock.now();
        for ticket in ready {
            let Some(p) = self.pending.get_mut(ticket) else { continue };
            let who = p.from.to_string();
            let read = p.incoming.read(&mut p.wire, &who, self.token.as_ref());
            let has_opened = !p.is_open && p.wire.is_open();
            p.is_open |= has_opened;
            let why = match read {
                Ok(None) => {
                    if has_opened {
                        self.pending.progress(now, ticket);
                    }
                    continue;
                }
                Ok(Some(offer)) => {
                    let Some(p) = self.pending.leave(ticket) else { continue };
                    return Ok(Some((Exchange::wire(p.wire, who), offer)));
                }
                Err(e @ SignalError::WrongToken) => {
                    if let Some(p) = self.pending.leave(ticket) {
                        Exchange::wire(p.wire, who.clone()).refuse(&e.to_string(), stop);
                    }
                    format!("{who}: {e}")
                }
                Err(SignalError::Sdp(e)) => format!("{who}: {e}"),
                Err(e) => e.to_string(),
            };
            self.pending.leave(ticket);
            refused(&Refused { who, why });
        }
        let late: Vec<Ticket> = self.pending.iter().filter(|(_, p)| now >= p.until).map(|(ticket, _)| ticket).collect();
        for p in late.into_iter().filter_map(|ticket| self.pending.leave(ticket)) {
            let who = p.from.to_string();
            let why = format!("{who}: no complete offer within {} s", OFFER_DEADLINE.as_secs());
            refused(&Refused { who, why });
        }
        Ok(None)
    }

    fn accept(&mut self, refused: &mut dyn FnMut(&Refused)) -> Result<(), SignalError> {
        let given_up = |p: Pending| {
            let who = p.from.to_string();
            let why = format!("{who}: closed for newer connections before its offer was complete");
            Refused { who, why }
        };
        for _ in 0..MAX_ACCEPTS {
            let (stream, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                // That connection alone, or a shortage: of descriptors, or memory.
                Err(e) if is_passing(&e) => {
                    match if is_shortage(&e) { self.pending.shed() } else { None } {
                        Some(p) => refused(&given_up(p)),
                        None => std::thread::sleep(LOOK),
                    }
                    return Ok(());
                }
                Err(e) => return Err(io_error("accepting a connection")(e)),
            };
            let now = self.clock.now();
            match Wire::accepted(stream, self.tls.as_ref()) {
                Ok(wire) => {
                    let until = now + TimeDelta::from_secs_f64(OFFER_DEADLINE.as_secs_f64());
                    let is_open = self.tls.is_none();
                    let pending = Pending { from, wire, incoming: Incoming::default(), until, is_open };
                    if let (_, Some(p)) = self.pending.enter(now, Source::from(from.ip()), pending) {
                        refused(&given_up(p));
                    }
                }
                Err(e) => refused(&Refused { who: from.to_string(), why: e.to_string() }),
            }
        }
        Ok(())
    }

    /// Waits shortly; returns whether there are connections to accept, and those to be read.
    fn wait(&self, others: &[BorrowedFd<'_>]) -> (bool, Vec<Ticket>) {
        let ready = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds: Vec<PollFd<'_>> = self.pending.iter().map(|(_, p)| ready(p.wire.socket().as_fd())).collect();
        let count = fds.len();
        fds.push(ready(self.listener.as_fd()));
        fds.extend(others.iter().map(|fd| ready(*fd)));
        // A signal ends the wait early, which does no harm.
        let _ = poll(&mut fds, LOOK.as_millis() as u16);
        let is_ready = |fd: &PollFd<'_>| fd.any().unwrap_or(true);
        let tickets = self.pending.iter().zip(&fds).filter(|(_, fd)| is_ready(fd)).map(|((ticket, _), _)| ticket);
        (fds.get(count).is_some_and(is_ready), tickets.collect())
    }
}

fn is_passing(e: &std::io::Error) -> bool {
    use nix::errno::Errno::{ECONNABORTED, EINTR, EPERM, EPROTO};
    is_shortage(e)
        || e.raw_os_error().is_some_and(|n| [ECONNABORTED, EINTR, EPERM, EPROTO].iter().any(|p| *p as i32 == n))
}

/// Whether something has to end before another connection can be accepted.
fn is_shortage(e: &std::io::Error) -> bool {
    use nix::errno::Errno::{EMFILE, ENFILE, ENOBUFS, ENOMEM};
    e.raw_os_error().is_some_and(|n| [EMFILE, ENFILE, ENOBUFS, ENOMEM].iter().any(|p| *p as i32 == n))
}
