//! The other half of a call, without I/O: it makes an offer, sends ICE's checks, answers the handshake, opens and protects media, as a browser
//! does. Tests call with it.

mod room;

pub use room::{EXTENSIONS, OPUS, RoomOffer, RoomStream, streams};

use crate::dtls::{Dtls, DtlsError, Fingerprint, Identity, Progress};
use crate::ice::{Credentials, check};
use crate::sdp::Direction;
use rtc_shared::error::Error;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_live::srtp::{SrtpError, SrtpSession};
use weir_media::VideoCodec;
use weir_units::{TimeDelta, Timestamp};

/// Interval of checks before the keys are there (Ta of RFC 8445, section 14.2) ...
const CHECKS: TimeDelta = TimeDelta::from_millis(50);
/// ... and afterwards, for consent (RFC 7675, section 5.1, recommends 5 s; libwebrtc has half of it).
const CONSENT_CHECKS: TimeDelta = TimeDelta::from_millis(2_500);
/// Datagrams that wait to be sent, at most.
const MAX_WAITING: usize = 64;
/// Payload types and the number of the header extension in its offers.
const MEDIA: u8 = 96;
const RTX: u8 = 97;
const TRANSPORT: u8 = 3;

/// Why there is no call.
#[derive(Debug, thiserror::Error)]
pub enum CallerError {
    /// The system provides no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    /// DTLS.
    #[error(transparent)]
    Dtls(#[from] DtlsError),
    /// STUN, or the certificate.
    #[error("the library: {0}")]
    Library(#[from] Error),
    /// The answer.
    #[error("the answer has no usable {0}")]
    Answer(&'static str),
}

/// Content of its offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The only video codec.
    pub codec: VideoCodec,
    /// Its own direction.
    pub direction: Direction,
    /// Its synchronisation source, and that of its retransmissions.
    pub ssrc: (u32, u32),
    /// Whether it sends transport-wide feedback and has its numbers; otherwise RFC 8888's.
    pub transport_wide: bool,
}

/// Content of the answer.
struct Remote {
    address: SocketAddr,
    username: String,
    password: String,
    dtls: Dtls,
}

/// An end that calls.
pub struct Caller {
    identity: Identity,
    own: Credentials,
    remote: Option<Remote>,
    srtp: Option<Box<SrtpSession>>,
    next_check: Timestamp,
    /// The library's time at [`Timestamp::ZERO`].
    zero: Instant,
    out: VecDeque<Vec<u8>>,
}

impl Caller {
    /// An end that has not called yet. `zero` is the library's time at [`Timestamp::ZERO`].
    ///
    /// # Errors
    /// The library's, or there is no randomness.
    pub fn new(zero: Instant) -> Result<Self, CallerError> {
        let (identity, own) = (Identity::new()?, Credentials::random()?);
        Ok(Self { identity, own, remote: None, srtp: None, next_check: Timestamp::ZERO, zero, out: VecDeque::new() })
    }

    /// Its offer.
    pub fn offer(&self, o: &Offer) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.compose(&mut out, o);
        out
    }

    fn compose(&self, out: &mut String, o: &Offer) -> std::fmt::Result {
        let name = if o.codec == VideoCodec::H264 { "H264" } else { "VP8" };
        let (ssrc, rtx) = o.ssrc;
        write!(out, "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n")?;
        write!(out, "m=video 9 UDP/TLS/RTP/SAVPF {MEDIA} {RTX}\r\nc=IN IP4 0.0.0.0\r\na=rtcp-mux\r\na=mid:0\r\n")?;
        write!(out, "a=ice-ufrag:{}\r\na=ice-pwd:{}\r\n", self.own.name, self.own.password)?;
        write!(out, "a=fingerprint:sha-256 {}\r\na=setup:actpass\r\n", self.identity.fingerprint())?;
        write!(out, "a={}\r\na=rtpmap:{MEDIA} {name}/90000\r\n", o.direction.name())?;
        if o.codec == VideoCodec::H264 {
            write!(out, "a=fmtp:{MEDIA} packetization-mode=1;profile-level-id=42e01f\r\n")?;
        }
        let feedback = if o.transport_wide { "transport-cc" } else { "ack ccfb" };
        for feedback in [feedback, "nack", "nack pli", "ccm fir"] {
            write!(out, "a=rtcp-fb:{MEDIA} {feedback}\r\n")?;
        }
        write!(out, "a=rtpmap:{RTX} rtx/90000\r\na=fmtp:{RTX} apt={MEDIA}\r\n")?;
        if o.transport_wide {
            write!(out, "a=extmap:{TRANSPORT} {}\r\n", crate::sdp::TRANSPORT_CC)?;
        }
        write!(out, "a=ssrc:{ssrc} cname:c\r\na=ssrc:{rtx} cname:c\r\na=ssrc-group:FID {ssrc} {rtx}\r\n")
    }

    /// Takes the answer; returns the other end's address.
    ///
    /// # Errors
    /// It lacks something, or the library's.
    pub fn accept(&mut self, answer: &str) -> Result<SocketAddr, CallerError> {
        let value = |name: &'static str| {
            let found = answer.lines().find_map(|l| l.strip_prefix("a=")?.strip_prefix(name)?.strip_prefix(':'));
            found.ok_or(CallerError::Answer(name))
        };
        let mut candidate = value("candidate")?.split(' ').skip(4);
        let address = candidate
            .next()
            .zip(candidate.next())
            .and_then(|(ip, port)| Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?)));
        let address = address.ok_or(CallerError::Answer("candidate"))?;
        let fingerprint: Option<Fingerprint> =
            value("fingerprint")?.strip_prefix("sha-256 ").and_then(|f| f.trim().parse().ok());
        let fingerprint = fingerprint.ok_or(CallerError::Answer("fingerprint"))?;
        let username = format!("{}:{}", value("ice-ufrag")?, self.own.name);
        let password = value("ice-pwd")?.to_owned();
        let dtls = Dtls::server(&self.identity, fingerprint)?;
        self.remote = Some(Remote { address, username, password, dtls });
        Ok(address)
    }

    /// Restarts ICE: its fragment, for the other end, with a new name and password.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn restart(&mut self) -> Result<String, CallerError> {
        self.own = Credentials::random()?;
        Ok(format!(
            "m=video 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\na=ice-ufrag:{}\r\na=ice-pwd:{}\r\n",
            self.own.name, self.own.password
        ))
    }
    /// Takes the other end's fragment: checks go on with its credentials.
    ///
    /// # Errors
    /// It lacks something.
    pub fn accept_restart(&mut self, fragment: &str) -> Result<(), CallerError> {
        let value = |name: &'static str| {
            let found = fragment.lines().find_map(|l| l.strip_prefix("a=")?.strip_prefix(name)?.strip_prefix(':'));
            found.map(str::trim_end).ok_or(CallerError::Answer(name))
        };
        let username = format!("{}:{}", value("ice-ufrag")?, self.own.name);
        let remote = self.remote.as_mut().ok_or(CallerError::Answer("candidate"))?;
        (remote.username, remote.password) = (username, value("ice-pwd")?.to_owned());
        self.next_check = Timestamp::ZERO;
        Ok(())
    }

    fn instant(&self, now: Timestamp) -> Instant {
        self.zero + Duration::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(0))
    }
    /// Whether the keys are there.
    pub fn is_connected(&self) -> bool {
        self.srtp.is_some()
    }

    /// A datagram was received from the other end; returns media, opened.
    ///
    /// # Errors
    /// The handshake failed, or the other end has closed.
    pub fn handle(&mut self, now: Timestamp, bytes: &[u8]) -> Result<Option<Vec<u8>>, CallerError> {
        let instant = self.instant(now);
        let Some(remote) = &mut self.remote else { return Ok(None) };
        match bytes.first() {
            Some(20..=63) => match remote.dtls.handle(instant, bytes)? {
                Progress::Keys(srtp) => self.srtp = Some(srtp),
                Progress::Closed => return Err(CallerError::Dtls(DtlsError::Handshake(Error::ErrConnClosed))),
                Progress::Continues => {}
            },
            Some(128..=191) => {
                return Ok(self.srtp.as_mut().and_then(|s| s.open(bytes)).map(|opened| opened.to_vec()));
            }
            // Answers to checks: the other end shows itself by its certificate.
            _ => {}
        }
        self.collect();
        Ok(None)
    }

    /// Protects RTP or RTCP.
    ///
    /// # Errors
    /// There are no keys, or no more packets may be protected.
    pub fn protect(&mut self, packet: &[u8]) -> Result<Vec<u8>, SrtpError> {
        let srtp = self.srtp.as_mut().ok_or_else(|| SrtpError::Library("no keys yet".into()))?;
        srtp.protect(packet).map(|p| p.to_vec())
    }

    /// Sends checks, and repeats flights of the handshake.
    ///
    /// # Errors
    /// The library's.
    pub fn handle_timeout(&mut self, now: Timestamp) -> Result<(), CallerError> {
        let (instant, connected) = (self.instant(now), self.is_connected());
        let Some(remote) = &mut self.remote else { return Ok(()) };
        if now >= self.next_check {
            let check = check(&remote.username, &remote.password, true, &*self.identity.crypto())?;
            self.next_check = now + if connected { CONSENT_CHECKS } else { CHECKS };
            self.out.push_back(check);
        }
        remote.dtls.handle_timeout(instant)?;
        self.collect();
        Ok(())
    }
    /// When to send the next check. Flights of the handshake wait for it.
    pub fn poll_timeout(&self) -> Timestamp {
        self.next_check
    }
    /// The next datagram.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }
    /// Where to.
    pub fn remote(&self) -> Option<SocketAddr> {
        self.remote.as_ref().map(|r| r.address)
    }

    fn collect(&mut self) {
        let Some(remote) = &mut self.remote else { return };
        while let Some(record) = remote.dtls.poll_transmit() {
            if self.out.len() < MAX_WAITING {
                self.out.push_back(record.to_vec());
            }
        }
    }
}

#[cfg(test)]
mod tests;
