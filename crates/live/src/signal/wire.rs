//! A signalling connection, plain or under TLS.

use super::tls::{self, Fingerprint, Pinned};
use super::{LOOK, SignalError, io_error};
use rustls::{ClientConnection, ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A connection that carries descriptions.
#[derive(Debug)]
pub(super) enum Wire {
    Plain(TcpStream),
    Server(Box<StreamOwned<ServerConnection, TcpStream>>),
    Client(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// Whether an error of a read or write only means that it would block.
pub(super) fn is_early(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// When waiting ends: at a deadline, or by a flag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'a> {
    until: Instant,
    pub(super) total: Duration,
    stop: &'a AtomicBool,
}

#[expect(clippy::disallowed_methods, reason = "signalling waits for a person's machine, not for a session's clock")]
pub(super) fn instant() -> Instant {
    Instant::now()
}

impl<'a> Patience<'a> {
    pub(super) fn new(total: Duration, stop: &'a AtomicBool) -> Self {
        Self { until: instant() + total, total, stop }
    }

    /// # Errors
    /// The flag is raised, or the deadline has passed.
    pub(super) fn check(&self, who: &str) -> Result<(), SignalError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(SignalError::Stopped);
        }
        if instant() >= self.until {
            let what = format!("no complete description within {} s", self.total.as_secs());
            return Err(SignalError::Peer { who: who.into(), what });
        }
        Ok(())
    }
}

impl Wire {
    /// An accepted non-blocking connection.
    pub(super) fn accepted(stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> Result<Self, SignalError> {
        stream.set_nonblocking(true).map_err(io_error("preparing the connection"))?;
        let Some(tls) = tls else { return Ok(Self::Plain(stream)) };
        let connection = ServerConnection::new(Arc::clone(tls)).map_err(|e| SignalError::Tls(e.to_string()))?;
        Ok(Self::Server(Box::new(StreamOwned::new(connection, stream))))
    }

    /// A connection to a listener under TLS, its certificate compared with `expected`.
    pub(super) fn secured(
        stream: TcpStream,
        expected: Option<Fingerprint>,
        who: &str,
        patience: &Patience<'_>,
    ) -> Result<Self, SignalError> {
        let (connection, pinned) = tls::connect(expected)?;
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            match stream.conn.complete_io(&mut stream.sock) {
                Ok(_) => {}
                Err(e) if is_early(&e) => patience.check(who)?,
                Err(e) => return Err(refused(&pinned, who, &e)),
            }
        }
        Ok(Self::Client(Box::new(stream)))
    }

    /// Whether it carries text by now: a TLS handshake is complete, or there is none.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Server(s) => !s.conn.is_handshaking(),
            Self::Client(s) => !s.conn.is_handshaking(),
        }
    }

    pub(super) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(s) => s,
            Self::Server(s) => &s.sock,
            Self::Client(s) => &s.sock,
        }
    }

    /// Makes reads and writes wait for a short time each, so that flags and deadlines are checked in between.
    pub(super) fn wait_shortly(&self) -> io::Result<()> {
        let socket = self.socket();
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(LOOK))?;
        socket.set_write_timeout(Some(LOOK))
    }

    /// This machine's address on the connection.
    pub(super) fn local_ip(&self) -> Option<IpAddr> {
        self.socket().local_addr().ok().map(|a| a.ip())
    }

    /// Writes all of it, then shuts down the sending direction.
    pub(super) fn write_within(&mut self, mut bytes: &[u8], patience: &Patience<'_>) -> Result<(), SignalError> {
        let who = self.socket().peer_addr().map_or("the other end".into(), |a| a.to_string());
        let failed = |e| io_error(format!("writing to {who}"))(e);
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(0) => return Err(failed(ErrorKind::WriteZero.into())),
                Ok(n) => bytes = &bytes[n..],
                Err(e) if is_early(&e) => patience.check(&who)?,
                Err(e) => return Err(failed(e)),
            }
        }
        loop {
            match self.flush() {
                Ok(()) => return Ok(()),
                Err(e) if is_early(&e) => patience.check(&who)?,
                Err(e) => return Err(failed(e)),
            }
        }
    }
}

fn refused(pinned: &Arc<Pinned>, who: &str, e: &io::Error) -> SignalError {
    let what = || format!("no TLS with it: {e}; does it listen with tls:?");
    pinned.mismatch().unwrap_or_else(|| SignalError::Peer { who: who.into(), what: what() })
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(s) => s.read(into),
            Self::Server(s) => s.read(into),
            Self::Client(s) => s.read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(s) => s.write(bytes),
            Self::Server(s) => s.write(bytes),
            Self::Client(s) => s.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(s) => s.flush(),
            Self::Server(s) => s.flush(),
            Self::Client(s) => s.flush(),
        }
    }
}
