//! DTLS-SRTP (RFC 5764), by rtc-dtls: the keys of a call, from a handshake with the holder of the certificate that the offer or answer names.
//! A call's end is its client.

use bytes::BytesMut;
use rtc_crypto::{HashAlgorithm, RTCCryptoProvider};
use rtc_dtls::config::{ClientAuthType, ConfigBuilder, ExtendedMasterSecretType, HandshakeConfig};
use rtc_dtls::crypto::Certificate;
use rtc_dtls::endpoint::{Endpoint, EndpointEvent};
use rtc_dtls::extension::extension_use_srtp::SrtpProtectionProfile;
use rtc_shared::TransportProtocol;
use rtc_shared::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_live::srtp::{SrtpError, SrtpKey, SrtpSession, Suite};

/// Label of the exported keys (RFC 5764, section 4.2).
const LABEL: &str = "EXTRACTOR-dtls_srtp";
/// Time after which a flight is repeated. RFC 6347, section 4.2.4.1, recommends 1 s; browsers begin with 50 ms.
const FLIGHT: Duration = Duration::from_millis(200);
/// Stands for the other end, wherever it is: ICE decides where records go to.
const REMOTE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 1);

/// A SHA-256 fingerprint of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint(pub [u8; 32]);

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02X}", if n == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Fingerprint {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut bytes = [0; 32];
        let mut pairs = text.split(':');
        for byte in &mut bytes {
            let pair = pairs.next().filter(|p| p.len() == 2 && p.bytes().all(|c| c.is_ascii_hexdigit())).ok_or(())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| ())?;
        }
        if pairs.next().is_none() { Ok(Self(bytes)) } else { Err(()) }
    }
}

/// This end's certificate, for all calls of a run.
#[derive(Clone)]
pub struct Identity {
    certificate: Certificate,
    crypto: Arc<dyn RTCCryptoProvider>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// A new one, signed by itself (RFC 8827, section 6.5).
    ///
    /// # Errors
    /// The library's.
    pub fn new() -> Result<Self, Error> {
        let crypto = rtc_crypto::default_provider().map_err(|e| Error::Crypto(e.to_string()))?;
        let certificate = Certificate::generate_self_signed(vec!["weir".to_owned()], crypto.crypto())?;
        let fingerprint = fingerprint(&*crypto, certificate.certificate.first().map_or(&[][..], |c| c.as_ref()))?;
        Ok(Self { certificate, crypto, fingerprint })
    }
    /// For the answer.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
    /// The library's cryptography.
    pub fn crypto(&self) -> Arc<dyn RTCCryptoProvider> {
        self.crypto.clone()
    }
}

fn fingerprint(crypto: &dyn RTCCryptoProvider, der: &[u8]) -> Result<Fingerprint, Error> {
    let hash = crypto.crypto().hash(HashAlgorithm::Sha256, der).map_err(|e| Error::Crypto(e.to_string()))?;
    Ok(Fingerprint(hash.as_slice().try_into().map_err(|_| Error::Crypto("a hash of another length".into()))?))
}

/// Effect of a record.
#[derive(Debug)]
pub enum Progress {
    /// The handshake continues, or nothing was to be done.
    Continues,
    /// The handshake is complete; these protect the call.
    Keys(Box<SrtpSession>),
    /// The other end has closed.
    Closed,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DtlsError {
    /// The handshake failed.
    #[error("DTLS: {0}")]
    Handshake(#[from] Error),
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] SrtpError),
    /// No protection profile in common.
    #[error("DTLS: the other end chose no SRTP protection profile of those offered")]
    Profile,
}

/// A connection.
pub struct Dtls {
    endpoint: Endpoint,
    is_client: bool,
    /// Of a client that has not begun.
    config: Option<Arc<HandshakeConfig>>,
}

/// The handshake with the holder of the certificate with this fingerprint.
fn config(identity: &Identity, remote: Fingerprint, is_client: bool) -> Result<HandshakeConfig, Error> {
    let crypto = identity.crypto();
    let hasher = identity.crypto();
    let verify = move |chain: &[Vec<u8>], _: &[_]| match chain.first() {
        Some(der) if fingerprint(&*hasher, der)? == remote => Ok(()),
        Some(_) => Err(Error::ErrNoMatchingCertificateFingerprint),
        None => Err(Error::ErrNonCertificate),
    };
    let profiles = vec![
        SrtpProtectionProfile::Srtp_Aead_Aes_128_Gcm,
        SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80,
        SrtpProtectionProfile::Srtp_Aead_Aes_256_Gcm,
    ];
    ConfigBuilder::default()
        .with_crypto_provider(crypto)
        .with_certificates(vec![identity.certificate.clone()])
        .with_srtp_protection_profiles(profiles)
        .with_client_auth(ClientAuthType::RequireAnyClientCert)
        // Certificates of WebRTC are signed by themselves: the fingerprint is what is verified, here above.
        .with_insecure_skip_verify(true)
        .with_verify_peer_certificate(Some(Arc::new(verify)))
        .with_extended_master_secret(ExtendedMasterSecretType::Require)
        .with_flight_interval(FLIGHT)
        .build(is_client, None)
}

impl Dtls {
    /// A connection to the holder of the certificate with this fingerprint, not begun yet.
    ///
    /// # Errors
    /// The library's.
    pub fn new(identity: &Identity, remote: Fingerprint) -> Result<Self, Error> {
        let config = Some(Arc::new(config(identity, remote, true)?));
        Ok(Self { endpoint: Endpoint::new(REMOTE, TransportProtocol::UDP, None), is_client: true, config })
    }

    /// A server, which waits for the holder of the certificate with this fingerprint.
    ///
    /// # Errors
    /// The library's.
    pub fn server(identity: &Identity, remote: Fingerprint) -> Result<Self, Error> {
        let config = Some(Arc::new(config(identity, remote, false)?));
        Ok(Self { endpoint: Endpoint::new(REMOTE, TransportProtocol::UDP, config), is_client: false, config: None })
    }

    /// Begins, if it has not.
    ///
    /// # Errors
    /// The library's.
    pub fn begin(&mut self, now: Instant) -> Result<(), DtlsError> {
        if let Some(config) = self.config.take() {
            self.endpoint.connect(now, REMOTE, config, None)?;
        }
        Ok(())
    }

    /// A record was received.
    ///
    /// # Errors
    /// The handshake failed, with another certificate for instance. A call that has its keys is not harmed.
    pub fn handle(&mut self, now: Instant, bytes: &[u8]) -> Result<Progress, DtlsError> {
        if self.is_client && (self.config.is_some() || self.endpoint.get_connection_state(REMOTE).is_none()) {
            return Ok(Progress::Continues);
        }
        let mut progress = Progress::Continues;
        for event in self.endpoint.read(now, REMOTE, None, BytesMut::from(bytes))? {
            match event {
                EndpointEvent::HandshakeComplete => progress = Progress::Keys(Box::new(self.keys()?)),
                EndpointEvent::PeerClosed => return Ok(Progress::Closed),
                _ => {}
            }
        }
        Ok(progress)
    }

    fn keys(&self) -> Result<SrtpSession, DtlsError> {
        let state = self.endpoint.get_connection_state(REMOTE).ok_or(Error::InvalidRemoteAddress(REMOTE))?;
        let (suite, key, salt) = match state.srtp_protection_profile() {
            SrtpProtectionProfile::Srtp_Aead_Aes_128_Gcm => (Suite::AeadAes128Gcm, 16, 12),
            SrtpProtectionProfile::Srtp_Aead_Aes_256_Gcm => (Suite::AeadAes256Gcm, 32, 12),
            SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80 => (Suite::AesCm128HmacSha1_80, 16, 14),
            _ => return Err(DtlsError::Profile),
        };
        let material = state.export_keying_material(LABEL, &[], 2 * (key + salt))?;
        // Client's key, server's key, client's salt, server's salt.
        let (keys, salts) = material.as_ref().split_at(2 * key);
        let half = |n: usize| [&keys[n * key..][..key], &salts[n * salt..][..salt]].concat();
        let (client, server) = (SrtpKey::new(suite, half(0))?, SrtpKey::new(suite, half(1))?);
        let (own, theirs) = if self.is_client { (client, server) } else { (server, client) };
        Ok(SrtpSession::new(&own, &theirs)?)
    }

    /// Closes: the other end is notified.
    pub fn close(&mut self, now: Instant) {
        let _ = self.endpoint.close(now);
    }
    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout(&REMOTE)
    }
    /// Repeats what was lost.
    ///
    /// # Errors
    /// The other end does not answer.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsError> {
        if self.endpoint.get_connection_state(REMOTE).is_some() {
            self.endpoint.handle_timeout(REMOTE, now)?;
        }
        Ok(())
    }
    /// The next record to send.
    pub fn poll_transmit(&mut self) -> Option<BytesMut> {
        self.endpoint.poll_transmit().map(|t| t.message)
    }
}
