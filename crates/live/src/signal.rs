//! How two ends hand each other their descriptions: by a TCP connection, or by two files.
//!
//! On TCP each end writes its description and an empty line behind it, which SDP has nowhere. With files the offer is
//! PREFIX.offer and the answer PREFIX.answer. Neither is secret by itself, and descriptions hold keys.

use crate::sdp::{Description, MAX_LENGTH, SdpError};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a flag is looked at while the other end is waited for.
const LOOK: Duration = Duration::from_millis(50);
/// Looks without a byte before a connected peer is given up: 15 s.
const PATIENCE: u32 = 300;

/// A way to hand over descriptions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Signalling {
    /// A TCP connection to, or at, this address: HOST:PORT.
    Tcp(String),
    /// Files of this prefix.
    File(PathBuf),
}

impl FromStr for Signalling {
    type Err = SignalError;

    /// `tcp:HOST:PORT` or `file:PREFIX`.
    fn from_str(text: &str) -> Result<Self, SignalError> {
        match text.split_once(':') {
            Some(("tcp", address)) if address.contains(':') => Ok(Self::Tcp(address.into())),
            Some(("file", prefix)) if !prefix.is_empty() => Ok(Self::File(prefix.into())),
            _ => Err(SignalError::Name(text.into())),
        }
    }
}

/// Why descriptions could not be exchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignalError {
    /// It names no way.
    #[error("signalling is {0:?}: expected tcp:HOST:PORT or file:PREFIX")]
    Name(String),
    /// A file or connection fails.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// The other end says nothing, or too much.
    #[error("{who}: {what}")]
    Peer {
        /// The other end.
        who: String,
        /// What it does.
        what: String,
    },
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

/// An offer has been made or taken, and the answer is still to go the other way.
#[derive(Debug)]
pub enum Exchange {
    /// Over a connection.
    Tcp(TcpStream),
    /// By files of this prefix.
    File(PathBuf),
}

fn with_ending(prefix: &Path, ending: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Nobody reads half of it, and only the owner reads it at all: it holds keys.
fn write_whole(path: &Path, text: &str) -> Result<(), SignalError> {
    use std::os::unix::fs::OpenOptionsExt;
    let half = with_ending(path, ".part");
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&half, path)
    };
    write().map_err(io_error(format!("writing {}", path.display())))
}

fn wait_for_file(path: &Path, stop: &AtomicBool) -> Result<Description, SignalError> {
    loop {
        match fs::metadata(path) {
            Ok(m) if m.len() > MAX_LENGTH as u64 => {
                let what = format!("{} bytes: expected {MAX_LENGTH} at most", m.len());
                return Err(SignalError::Peer { who: path.display().to_string(), what });
            }
            Ok(_) => {
                let text = fs::read_to_string(path).map_err(io_error(format!("reading {}", path.display())))?;
                return Ok(Description::parse(&text)?);
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(io_error(format!("reading {}", path.display()))(e)),
        }
        pause(stop)?;
    }
}

fn pause(stop: &AtomicBool) -> Result<(), SignalError> {
    std::thread::sleep(LOOK);
    if stop.load(Ordering::Relaxed) { Err(SignalError::Stopped) } else { Ok(()) }
}

fn read_description(stream: &mut TcpStream, stop: &AtomicBool) -> Result<Description, SignalError> {
    let who = stream.peer_addr().map_or("the other end".into(), |a| a.to_string());
    stream.set_read_timeout(Some(LOOK)).map_err(io_error("preparing the connection"))?;
    let (mut text, mut silent) = (Vec::new(), 0);
    let mut part = [0; 4_096];
    loop {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(n) => {
                silent = 0;
                text.extend_from_slice(&part[..n]);
                if text.len() > MAX_LENGTH {
                    let what = format!("it sends more than {MAX_LENGTH} bytes: that is no session description");
                    return Err(SignalError::Peer { who, what });
                }
                if text.ends_with(b"\n\r\n") || text.ends_with(b"\n\n") {
                    break;
                }
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                silent += 1;
                if silent > PATIENCE {
                    return Err(SignalError::Peer { who, what: "it has connected and says nothing for 15 s".into() });
                }
            }
            Err(e) => return Err(io_error(format!("reading from {who}"))(e)),
        }
        if stop.load(Ordering::Relaxed) {
            return Err(SignalError::Stopped);
        }
    }
    if text.is_empty() {
        return Err(SignalError::Peer { who, what: "it has hung up without a description".into() });
    }
    let text = String::from_utf8(text)
        .map_err(|_| SignalError::Peer { who, what: "it sends bytes that are no text".into() })?;
    Ok(Description::parse(text.trim_end_matches(['\r', '\n']))?)
}

fn write_description(stream: &mut TcpStream, d: &Description) -> Result<(), SignalError> {
    let text = d.to_sdp() + "\r\n";
    stream.write_all(text.as_bytes()).map_err(io_error("writing to the other end"))
}

impl Exchange {
    /// Reaches for the other end, as the one that offers.
    ///
    /// # Errors
    /// Where it cannot be reached.
    pub fn connect(by: &Signalling) -> Result<Self, SignalError> {
        match by {
            Signalling::Tcp(address) => {
                let what = || format!("connecting to {address}");
                let addresses = address.to_socket_addrs().map_err(io_error(what()))?;
                let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
                for a in addresses {
                    match TcpStream::connect_timeout(&a, Duration::from_secs(10)) {
                        Ok(stream) => return Ok(Self::Tcp(stream)),
                        Err(e) => last = e,
                    }
                }
                Err(io_error(what())(last))
            }
            Signalling::File(prefix) => {
                // An old answer is none to this offer.
                match fs::remove_file(with_ending(prefix, ".answer")) {
                    Err(e) if e.kind() != ErrorKind::NotFound => Err(io_error("removing an old answer")(e)),
                    _ => Ok(Self::File(prefix.clone())),
                }
            }
        }
    }

    /// Waits for the other end's offer.
    ///
    /// # Errors
    /// Where nobody can come, what comes is no offer, or the flag is raised. Who connects and sends something else than a
    /// description is turned away with the error; the caller may listen again.
    pub fn listen(by: &Signalling, stop: &AtomicBool) -> Result<(Self, Description), SignalError> {
        match by {
            Signalling::Tcp(address) => {
                let what = format!("listening at {address}");
                let listener = TcpListener::bind(address).map_err(io_error(what.clone()))?;
                listener.set_nonblocking(true).map_err(io_error(what.clone()))?;
                loop {
                    match listener.accept() {
                        Ok((mut stream, _)) => {
                            stream.set_nonblocking(false).map_err(io_error(what))?;
                            let offer = read_description(&mut stream, stop)?;
                            return Ok((Self::Tcp(stream), offer));
                        }
                        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => pause(stop)?,
                        Err(e) => return Err(io_error(what)(e)),
                    }
                }
            }
            Signalling::File(prefix) => {
                let path = with_ending(prefix, ".offer");
                let offer = wait_for_file(&path, stop)?;
                // The next call is to find its own.
                fs::remove_file(&path).map_err(io_error(format!("removing {}", path.display())))?;
                Ok((Self::File(prefix.clone()), offer))
            }
        }
    }

    /// The address of this machine that the other end reaches; `None` where files do not tell.
    pub fn local_ip(&self) -> Option<IpAddr> {
        if let Self::Tcp(stream) = self { stream.local_addr().ok().map(|a: SocketAddr| a.ip()) } else { None }
    }

    /// Hands over the offer and waits for the answer.
    ///
    /// # Errors
    /// Where the other end fails, what comes is no answer, or the flag is raised.
    pub fn offer(self, offer: &Description, stop: &AtomicBool) -> Result<Description, SignalError> {
        match self {
            Self::Tcp(mut stream) => {
                write_description(&mut stream, offer)?;
                read_description(&mut stream, stop)
            }
            Self::File(prefix) => {
                write_whole(&with_ending(&prefix, ".offer"), &offer.to_sdp())?;
                let path = with_ending(&prefix, ".answer");
                let answer = wait_for_file(&path, stop)?;
                fs::remove_file(&path).map_err(io_error(format!("removing {}", path.display())))?;
                Ok(answer)
            }
        }
    }

    /// Hands over the answer.
    ///
    /// # Errors
    /// Where the other end fails.
    pub fn answer(self, answer: &Description) -> Result<(), SignalError> {
        match self {
            Self::Tcp(mut stream) => write_description(&mut stream, answer),
            Self::File(prefix) => write_whole(&with_ending(&prefix, ".answer"), &answer.to_sdp()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sdp::{Direction, MediaSection, MediaTransport, Payload, Section, Sources};
    use std::thread;
    use weir_media::VideoCodec;
    use weir_session::allocation::MediaKind;

    fn description(port: u16) -> Description {
        let address = ([127, 0, 0, 1], port).into();
        let section = MediaSection {
            kind: MediaKind::Video,
            mid: None,
            transport: Some(MediaTransport { address, keys: vec![], dccp: None, rtcp_mux: true }),
            direction: Direction::SendReceive,
            payloads: vec![(96, Payload::Video(VideoCodec::Vp8, None))],
            feedback: vec![],
            extensions: vec![],
            sources: Sources::default(),
            send: vec![],
            receive: vec![],
        };
        let sections = vec![Section::Media(Box::new(section))];
        Description { session: 1, cname: None, controller: None, bundle: vec![], is_bundle_only: false, sections }
    }

    /// An address that is free now.
    fn free() -> String {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
    }

    fn connect(by: &Signalling) -> Exchange {
        let tries = (0..100).find_map(|_| {
            thread::sleep(Duration::from_millis(20));
            Exchange::connect(by).ok()
        });
        tries.unwrap()
    }

    #[test]
    fn offers_and_answers_go_both_ways() {
        let dir = std::env::temp_dir().join(format!("weir-signal-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let ways = [Signalling::Tcp(free()), Signalling::File(dir.join("call"))];
        for by in &ways {
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let (exchange, offer) = Exchange::listen(by, &stop).unwrap();
                    assert_eq!(offer, description(1));
                    exchange.answer(&description(2)).unwrap();
                });
                let exchange = connect(by);
                assert_eq!(exchange.local_ip().is_some(), matches!(by, Signalling::Tcp(_)));
                assert_eq!(exchange.offer(&description(1), &stop).unwrap(), description(2));
            });
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "nothing is left behind");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn strangers_are_turned_away_with_a_reason() {
        for (says, told) in [
            (&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], "SDP"),
            (&[0xff, 0xfe, b'\n', b'\n'], "no text"),
            (&[b'v'; MAX_LENGTH + 10], "65536"),
            (b"", "hung up"),
        ] {
            let by = Signalling::Tcp(free());
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    if let Exchange::Tcp(mut stream) = connect(&by) {
                        let _ = stream.write_all(says);
                    }
                });
                let e = Exchange::listen(&by, &stop).unwrap_err().to_string();
                assert!(e.contains(told), "{e}");
            });
        }
    }

    #[test]
    fn a_raised_flag_ends_the_wait() {
        let stop = AtomicBool::new(true);
        for by in [Signalling::Tcp(free()), Signalling::File("/nonexistent/call".into())] {
            assert!(matches!(Exchange::listen(&by, &stop), Err(SignalError::Stopped)));
        }
    }

    #[test]
    fn ways_are_named() {
        assert_eq!("tcp:[::1]:9".parse::<Signalling>().unwrap(), Signalling::Tcp("[::1]:9".into()));
        assert_eq!("file:a:b".parse::<Signalling>().unwrap(), Signalling::File("a:b".into()));
        for odd in ["", "tcp:", "tcp:host", "file:", "udp:1:2"] {
            assert!(odd.parse::<Signalling>().unwrap_err().to_string().contains("tcp:HOST:PORT"));
        }
    }
}
