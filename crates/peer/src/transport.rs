//! Layers between a call's session and its socket: ICE, DTLS and SRTP, without I/O. One address of this end.

use crate::dtls::{Dtls, DtlsError, Fingerprint, Identity, Progress};
use crate::ice::{CONSENT, Credentials, IceCounters, IceLite};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_live::srtp::{SrtpCounters, SrtpError, SrtpSession};
use weir_units::{TimeDelta, Timestamp};

/// Time from the answer to the keys.
const SETUP: TimeDelta = TimeDelta::from_secs(20);
/// Datagrams that wait to be sent, at most: answers to checks and a flight of DTLS.
const MAX_WAITING: usize = 64;

/// Why a transport ended.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// DTLS.
    #[error(transparent)]
    Dtls(#[from] DtlsError),
    /// No handshake in time.
    #[error("the other end has not connected within {} s", SETUP.as_secs_f64())]
    NotConnected,
    /// Consent has expired (RFC 7675).
    #[error("the other end has not consented to receive for {} s", CONSENT.as_secs_f64())]
    NoConsent,
    /// The other end has closed.
    #[error("the other end has closed the connection")]
    Closed,
}

/// Kind of a datagram.
#[derive(Debug)]
pub enum Received {
    /// RTP or RTCP of the call, opened.
    Media(bytes::BytesMut),
    /// The keys are there: media may be sent.
    Connected,
    /// Something else, handled or refused.
    Nothing,
}

/// Counters of what was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransportCounters {
    /// Datagrams of no protocol of a call.
    pub unknown: u64,
    /// DTLS or media from addresses without an authenticated check.
    pub strangers: u64,
    /// Media before there were keys.
    pub early: u64,
    /// Records that DTLS refused after the handshake.
    pub bad_records: u64,
}

/// A call's ICE, DTLS and SRTP.
pub struct Transport {
    ice: IceLite,
    dtls: Dtls,
    srtp: Option<Box<SrtpSession>>,
    out: VecDeque<(SocketAddr, Vec<u8>)>,
    began: Timestamp,
    /// The library's time at [`Timestamp::ZERO`].
    zero: Instant,
    counters: TransportCounters,
}

impl Transport {
    /// Waits for the other end. `zero` is the library's time at [`Timestamp::ZERO`].
    ///
    /// # Errors
    /// The library's.
    pub fn new(
        identity: &Identity,
        own: Credentials,
        remote_name: &str,
        remote: Fingerprint,
        zero: Instant,
        now: Timestamp,
    ) -> Result<Self, TransportError> {
        Ok(Self {
            ice: IceLite::new(own, remote_name, identity.crypto()),
            dtls: Dtls::new(identity, remote).map_err(DtlsError::from)?,
            srtp: None,
            out: VecDeque::new(),
            began: now,
            zero,
            counters: TransportCounters::default(),
        })
    }

    /// Agrees on a restart of ICE.
    pub fn restart(&mut self, own: Credentials, remote_name: &str) {
        self.ice.restart(own, remote_name);
    }
    fn instant(&self, now: Timestamp) -> Instant {
        self.zero + Duration::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(0))
    }
    /// Where media goes, if something may be sent now.
    pub fn destination(&self, now: Timestamp) -> Option<SocketAddr> {
        self.ice.selected().filter(|_| self.ice.may_send(now))
    }
    /// Whether the keys are there.
    pub fn is_connected(&self) -> bool {
        self.srtp.is_some()
    }
    /// Counters of ICE, of protected packets, and of what was refused.
    pub fn counters(&self) -> (IceCounters, SrtpCounters, TransportCounters) {
        (self.ice.counters(), self.srtp.as_ref().map(|s| s.counters()).unwrap_or_default(), self.counters)
    }

    /// A datagram was received.
    ///
    /// # Errors
    /// The handshake failed, or the other end has closed.
    pub fn handle(&mut self, now: Timestamp, from: SocketAddr, bytes: &[u8]) -> Result<Received, TransportError> {
        // RFC 7983, section 7.
        match bytes.first() {
            Some(0..=3) => {
                if let Some(answer) = self.ice.handle(now, from, bytes) {
                    self.send(from, answer);
                    self.begin(now)?;
                }
                Ok(Received::Nothing)
            }
            Some(20..=63) => self.handle_record(now, from, bytes),
            Some(128..=191) => Ok(self.open(from, bytes)),
            _ => {
                self.counters.unknown += 1;
                Ok(Received::Nothing)
            }
        }
    }

    fn begin(&mut self, now: Timestamp) -> Result<(), TransportError> {
        if self.ice.selected().is_some() {
            self.dtls.begin(self.instant(now))?;
            self.collect(now);
        }
        Ok(())
    }

    fn handle_record(&mut self, now: Timestamp, from: SocketAddr, bytes: &[u8]) -> Result<Received, TransportError> {
        if !self.ice.knows(from) {
            self.counters.strangers += 1;
            return Ok(Received::Nothing);
        }
        let progress = self.dtls.handle(self.instant(now), bytes);
        self.collect(now);
        match progress {
            Ok(Progress::Keys(srtp)) => {
                self.srtp = Some(srtp);
                Ok(Received::Connected)
            }
            Ok(Progress::Closed) => Err(TransportError::Closed),
            Ok(Progress::Continues) => Ok(Received::Nothing),
            Err(_) if self.srtp.is_some() => {
                self.counters.bad_records += 1;
                Ok(Received::Nothing)
            }
            Err(e) => Err(e.into()),
        }
    }

    fn open(&mut self, from: SocketAddr, bytes: &[u8]) -> Received {
        if !self.ice.knows(from) {
            self.counters.strangers += 1;
            return Received::Nothing;
        }
        let Some(srtp) = &mut self.srtp else {
            self.counters.early += 1;
            return Received::Nothing;
        };
        match srtp.open(bytes) {
            Some(opened) => Received::Media(bytes::BytesMut::from(&*opened)),
            None => Received::Nothing,
        }
    }

    /// Protects RTP or RTCP.
    ///
    /// # Errors
    /// There are no keys, or no more packets may be protected.
    pub fn protect(&mut self, packet: &[u8]) -> Result<impl std::ops::Deref<Target = [u8]> + use<>, SrtpError> {
        match &mut self.srtp {
            Some(srtp) => srtp.protect(packet),
            None => Err(SrtpError::Library("no keys yet".into())),
        }
    }

    /// When the last authenticated check of the other end came.
    pub fn last_consent(&self) -> Option<Timestamp> {
        self.ice.last_consent()
    }

    /// Runs timers.
    ///
    /// # Errors
    /// The other end has not connected in time, or does not consent any more.
    pub fn handle_timeout(&mut self, now: Timestamp) -> Result<(), TransportError> {
        if self.srtp.is_none() && now >= self.began + SETUP {
            return Err(TransportError::NotConnected);
        }
        if self.ice.last_consent().is_some_and(|at| now >= at + CONSENT) {
            return Err(TransportError::NoConsent);
        }
        self.dtls.handle_timeout(self.instant(now))?;
        self.collect(now);
        Ok(())
    }
    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Timestamp {
        let dtls = self.dtls.poll_timeout().map(|at| {
            let since = at.saturating_duration_since(self.zero).as_nanos();
            Timestamp::from_nanos(i64::try_from(since).unwrap_or(i64::MAX))
        });
        let consent = self.ice.last_consent().map(|at| at + CONSENT);
        let setup = self.srtp.is_none().then(|| self.began + SETUP);
        dtls.into_iter().chain(consent).chain(setup).min().unwrap_or(Timestamp::MAX)
    }
    /// The next datagram of ICE or DTLS.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.out.pop_front()
    }
    /// Closes: the other end is notified.
    pub fn close(&mut self, now: Timestamp) {
        self.dtls.close(self.instant(now));
        self.collect(now);
    }

    fn collect(&mut self, now: Timestamp) {
        while let Some(record) = self.dtls.poll_transmit() {
            if let Some(to) = self.destination(now) {
                self.send(to, record.to_vec());
            }
        }
    }
    fn send(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        if self.out.len() < MAX_WAITING {
            self.out.push_back((to, bytes));
        }
    }
}
