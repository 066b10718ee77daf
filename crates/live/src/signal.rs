//! Exchange of descriptions between two ends: by a TCP connection, with or without TLS, or by two files.
//!
//! Descriptions contain SRTP keys. TLS protects them: the listener has its own certificate, and the connecting end
//! compares its fingerprint with one obtained from the listener's operator. Plain TCP is for the loopback device;
//! between machines it has to be allowed by [`Trust::insecure`]. With files the offer is PREFIX.offer and the answer
//! PREFIX.answer, readable by their owner only.
//!
//! On TCP each end writes its description and an empty line, which SDP does not contain. A listener that refuses an
//! offer writes a line `refused: REASON` instead of an answer. A fingerprint identifies the listener to the caller, and a
//! [`Token`], in a line `token: TOKEN` before the offer, the caller to a listener that has one. A listener without answers
//! anybody.

mod incoming;
mod listener;
mod tls;
mod token;
mod wire;

pub use listener::{Listener, MAX_PENDING, OFFER_DEADLINE};
pub use tls::{Fingerprint, Identity};
pub use token::Token;

use crate::sdp::{Description, MAX_LENGTH, SdpError};
use incoming::Incoming;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use weir_files::ReadError;
use wire::{Patience, Wire};

/// Interval at which a flag is checked while waiting for the other end.
const LOOK: Duration = Duration::from_millis(50);
/// A TCP connection has to be there within this time.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Time for the listener to answer an offer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(15);
/// Time for writing an answer.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);
/// Sent instead of an answer, followed by the reason.
const REFUSED: &str = "refused: ";
/// Sent before an offer, followed by the token.
const PRESENTED: &str = "token: ";

/// A means to exchange descriptions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Signalling {
    /// A TCP connection under TLS to, or at, this address: HOST:PORT.
    Tls(String),
    /// A plain TCP connection: between machines, the keys can be read on the path.
    Tcp(String),
    /// Files of this prefix.
    File(PathBuf),
}

impl FromStr for Signalling {
    type Err = SignalError;

    /// `tls:HOST:PORT`, `tcp:HOST:PORT` or `file:PREFIX`.
    fn from_str(text: &str) -> Result<Self, SignalError> {
        let is_address = |text: &str| {
            text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        match text.split_once(':') {
            Some(("tls", address)) if is_address(address) => Ok(Self::Tls(address.into())),
            Some(("tcp", address)) if is_address(address) => Ok(Self::Tcp(address.into())),
            Some(("file", prefix)) if !prefix.is_empty() => Ok(Self::File(prefix.into())),
            _ => Err(SignalError::Name(text.into())),
        }
    }
}

/// The expected peer of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trust {
    /// The expected certificate of the listener, if this end connects under TLS.
    pub fingerprint: Option<Fingerprint>,
    /// Allow unprotected means: plain TCP between machines, and TLS with any certificate.
    pub insecure: bool,
}

/// A connection or file without a usable offer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Address or path.
    pub who: String,
    /// Why, with the address or path in it.
    pub why: String,
}

/// Why descriptions could not be exchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignalError {
    /// It names no known means.
    #[error("signalling is {0:?}: expected tls:HOST:PORT, tcp:HOST:PORT or file:PREFIX, with a port of 0 to 65535")]
    Name(String),
    /// It is no fingerprint.
    #[error("{0:?} is no SHA-256 fingerprint: expected 64 hexadecimal digits, as `weir live call listen` prints them")]
    Fingerprint(String),
    /// Plain TCP to another machine.
    #[error(
        "{0} is reached by plain TCP, which exposes the SRTP keys on the path: use tls:HOST:PORT, or allow it by \
         --insecure"
    )]
    Plain(String),
    /// TLS without anything to recognise the listener by.
    #[error(
        "the listener at {0} cannot be verified: give --fingerprint as `weir live call listen` prints it there, or allow \
         any certificate by --insecure"
    )]
    Unpinned(String),
    /// Another certificate than expected: another listener, or a man in the middle.
    #[error(
        "the listener's certificate has the fingerprint {seen}, and {expected} was expected: it is another listener, or a man in the middle"
    )]
    WrongFingerprint {
        /// The listener's.
        seen: Fingerprint,
        /// The expected one.
        expected: Fingerprint,
    },
    /// The listener's identity cannot be used.
    #[error("identity: {0}")]
    Identity(String),
    /// TLS cannot be set up.
    #[error("TLS: {0}")]
    Tls(String),
    /// A file or connection fails.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The other end sends nothing, or something other than a description.
    #[error("{who}: {what}")]
    Peer {
        /// The other end.
        who: String,
        /// Its action.
        what: String,
    },
    /// The listener refuses the call.
    #[error("{who} refused the call: {reason}")]
    Refused {
        /// The listener.
        who: String,
        /// Its reason, in its words.
        reason: String,
    },
    /// The caller does not present the listener's token.
    #[error("the offer does not present this listener's token (--token)")]
    WrongToken,
    /// A token that anybody could guess, or that a line cannot hold.
    #[error("a token has {LEAST} letters and digits or more, that nobody can guess", LEAST = token::LEAST)]
    Token,
    /// Files have owners and modes instead.
    #[error("a token is for tls: and tcp:; with file:, who may write the folder may call")]
    FileToken,
    /// The other end's description cannot be used.
    #[error(transparent)]
    Sdp(#[from] SdpError),
    /// The flag was raised.
    #[error("stopped while waiting for the other end")]
    Stopped,
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> SignalError {
    let what = what.into();
    move |source| SignalError::Io { what, source }
}

fn checked_plain(at: SocketAddr, address: &str, trust: &Trust) -> Result<(), SignalError> {
    if at.ip().to_canonical().is_loopback() || trust.insecure {
        return Ok(());
    }
    Err(SignalError::Plain(address.into()))
}

fn with_ending(prefix: &Path, ending: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Readers see all of it or nothing, and only the owner can read it: it contains keys.
fn write_whole(path: &Path, text: &str) -> Result<(), SignalError> {
    use std::os::unix::fs::OpenOptionsExt;
    let half = with_ending(path, ".part");
    let write = || {
        // A file left there by another user could be open in that user's process.
        match fs::remove_file(&half) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&half, path)
    };
    write().map_err(io_error(format!("writing {}", path.display())))
}

/// # Errors
/// As [`SignalError::Io`] if the file cannot be read at all.
fn wait_for_file(path: &Path, stop: &AtomicBool) -> Result<Description, SignalError> {
    loop {
        match weir_files::read(path, MAX_LENGTH as u64) {
            Ok(text) => return incoming::parse(&text, &path.display().to_string()),
            Err(e) if e.is_missing() => {}
            Err(ReadError::Io(e)) => return Err(io_error(format!("reading {}", path.display()))(e)),
            Err(e) => return Err(SignalError::Peer { who: path.display().to_string(), what: e.to_string() }),
        }
        pause(stop)?;
    }
}

fn pause(stop: &AtomicBool) -> Result<(), SignalError> {
    std::thread::sleep(LOOK);
    if stop.load(Ordering::Relaxed) { Err(SignalError::Stopped) } else { Ok(()) }
}

/// Connects on its own thread, which the flag cannot end; it ends at the deadline.
fn reach(address: SocketAddr, stop: &AtomicBool) -> Result<TcpStream, io::Error> {
    let (done, wait) = mpsc::channel();
    std::thread::Builder::new().name("connect".into()).spawn(move || {
        let _ = done.send(TcpStream::connect_timeout(&address, CONNECT_DEADLINE));
    })?;
    loop {
        match wait.recv_timeout(LOOK) {
            Ok(connected) => return connected,
            Err(mpsc::RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
            Err(_) => return Err(ErrorKind::Interrupted.into()),
        }
    }
}

/// An offer was sent or received, and the answer is still to be sent in the other direction.
#[derive(Debug)]
pub struct Exchange(Channel);

#[derive(Debug)]
enum Channel {
    Wire { wire: Wire, who: String },
    File(PathBuf),
}

impl Exchange {
    fn wire(wire: Wire, who: String) -> Self {
        Self(Channel::Wire { wire, who })
    }
    fn file(prefix: &Path) -> Self {
        Self(Channel::File(prefix.into()))
    }

    /// Connects to the other end, as the offerer.
    ///
    /// # Errors
    /// It cannot be reached, is not the one expected by `trust`, or the flag is raised.
    pub fn connect(by: &Signalling, trust: &Trust, stop: &AtomicBool) -> Result<Self, SignalError> {
        let address = match by {
            Signalling::Tls(address) | Signalling::Tcp(address) => address,
            Signalling::File(prefix) => {
                // An old answer does not answer this offer.
                return match fs::remove_file(with_ending(prefix, ".answer")) {
                    Err(e) if e.kind() != ErrorKind::NotFound => Err(io_error("removing an old answer")(e)),
                    _ => Ok(Self::file(prefix)),
                };
            }
        };
        let secured = matches!(by, Signalling::Tls(_));
        if secured && trust.fingerprint.is_none() && !trust.insecure {
            return Err(SignalError::Unpinned(address.clone()));
        }
        let what = || format!("connecting to {address}");
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for a in address.to_socket_addrs().map_err(io_error(what()))? {
            if !secured {
                checked_plain(a, address, trust)?;
            }
            let stream = match reach(a, stop) {
                Ok(stream) => stream,
                Err(_) if stop.load(Ordering::Relaxed) => return Err(SignalError::Stopped),
                Err(e) => {
                    last = e;
                    continue;
                }
            };
            let who = a.to_string();
            let plain = Wire::Plain(stream);
            plain.wait_shortly().map_err(io_error("preparing the connection"))?;
            let wire = match plain {
                Wire::Plain(stream) if secured => {
                    Wire::secured(stream, trust.fingerprint, &who, &Patience::new(CONNECT_DEADLINE, stop))?
                }
                plain => plain,
            };
            return Ok(Self::wire(wire, who));
        }
        Err(io_error(what())(last))
    }

    /// The address of this machine that the other end reaches; `None` with files.
    pub fn local_ip(&self) -> Option<IpAddr> {
        if let Channel::Wire { wire, .. } = &self.0 { wire.local_ip() } else { None }
    }

    /// The other end's IP address; `None` with files, and once it is gone.
    pub(crate) fn peer_ip(&self) -> Option<IpAddr> {
        let Channel::Wire { wire, .. } = &self.0 else { return None };
        wire.socket().peer_addr().ok().map(|a| a.ip())
    }

    /// The other end's address, or the prefix of the files.
    pub fn who(&self) -> String {
        match &self.0 {
            Channel::Wire { who, .. } => who.clone(),
            Channel::File(prefix) => prefix.display().to_string(),
        }
    }

    /// Sends the offer, with the token that the listener expects, and waits for the answer.
    ///
    /// # Errors
    /// The other end fails, refuses, sends no answer, or the flag is raised.
    pub fn offer(
        self,
        offer: &Description,
        token: Option<&Token>,
        stop: &AtomicBool,
    ) -> Result<Description, SignalError> {
        match self.0 {
            Channel::File(_) if token.is_some() => Err(SignalError::FileToken),
            Channel::Wire { mut wire, who } => {
                let patience = Patience::new(ANSWER_DEADLINE, stop);
                let presented = token.map_or(String::new(), |token| format!("{PRESENTED}{}\r\n", token.text()));
                wire.write_within((presented + &offer.to_sdp() + "\r\n").as_bytes(), &patience)?;
                let mut incoming = Incoming::default();
                loop {
                    if let Some(answer) = incoming.read(&mut wire, &who, None)? {
                        return Ok(answer);
                    }
                    patience.check(&who)?;
                }
            }
            Channel::File(prefix) => {
                write_whole(&with_ending(&prefix, ".offer"), &offer.to_sdp())?;
                let path = with_ending(&prefix, ".answer");
                let answer = wait_for_file(&path, stop)?;
                fs::remove_file(&path).map_err(io_error(format!("removing {}", path.display())))?;
                Ok(answer)
            }
        }
    }

    /// Sends the answer.
    ///
    /// # Errors
    /// The other end fails, or the flag is raised.
    pub fn answer(self, answer: &Description, stop: &AtomicBool) -> Result<(), SignalError> {
        self.hand_over(&(answer.to_sdp() + "\r\n"), Some(&answer.to_sdp()), stop)
    }

    /// Sends the reason why the offer is refused to the other end.
    pub fn refuse(self, reason: &str, stop: &AtomicBool) {
        // It may have left, and has no call here either way.
        let _ = self.hand_over(&format!("{REFUSED}{}\r\n\r\n", reason.replace(['\r', '\n'], " ")), None, stop);
    }

    fn hand_over(self, text: &str, file: Option<&str>, stop: &AtomicBool) -> Result<(), SignalError> {
        match self.0 {
            Channel::Wire { mut wire, .. } => {
                wire.wait_shortly().map_err(io_error("preparing the connection"))?;
                wire.write_within(text.as_bytes(), &Patience::new(WRITE_DEADLINE, stop))
            }
            Channel::File(prefix) => write_whole(&with_ending(&prefix, ".answer"), file.unwrap_or(text)),
        }
    }
}

#[cfg(test)]
mod tests;
