//! TLS of the signalling connection: the listener's certificate, and its verification by the connecting end.
//!
//! The certificate is self-signed. The connecting end compares its SHA-256 fingerprint with one obtained from the
//! listener's operator, as RFC 8122 does for media.

use super::{SignalError, io_error, write_whole};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, ServerConfig, SignatureScheme};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use weir_files::ReadError;

/// The name in certificates and handshakes. It identifies no host: the fingerprint does.
const NAME: &str = "weir";
/// Maximum length of an identity file, in bytes.
const MAX_FILE: u64 = 65_536;

/// The SHA-256 hash of a certificate in DER, written as in RFC 8122: `AB:CD:…`, 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02X}", if i == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = SignalError;

    /// 64 hexadecimal digits; colons between bytes are optional.
    fn from_str(text: &str) -> Result<Self, SignalError> {
        let digits: Vec<u8> = text.bytes().filter(|b| *b != b':').collect();
        let byte = |pair: &[u8]| {
            let digit = |b: u8| char::from(b).to_digit(16);
            Some((digit(*pair.first()?)? * 16 + digit(*pair.get(1)?)?) as u8)
        };
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        let bytes = bytes.and_then(|b| <[u8; 32]>::try_from(b).ok());
        bytes.map(Self).ok_or_else(|| SignalError::Fingerprint(text.chars().take(120).collect()))
    }
}

/// A listener's certificate with its private key.
#[derive(Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// A new one, in memory alone.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn generate() -> Result<Self, SignalError> {
        Self::from_pem(&pem()?).map_err(SignalError::Identity)
    }

    /// Reads an identity from a PEM file. If the file does not exist, generates an identity and writes it there,
    /// readable by its owner only.
    ///
    /// # Errors
    /// The file cannot be read or written, or contains no certificate with its key.
    pub fn load_or_generate(path: &Path) -> Result<Self, SignalError> {
        let what = |doing: &str| format!("{doing} the identity {}", path.display());
        let refused = |why: String| SignalError::Identity(format!("{}: {why}", path.display()));
        match weir_files::read(path, MAX_FILE) {
            Ok(text) => return Self::from_pem(&text).map_err(refused),
            Err(e) if e.is_missing() => {}
            Err(ReadError::Io(e)) => return Err(io_error(what("reading"))(e)),
            Err(e) => return Err(refused(e.to_string())),
        }
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(io_error(what("making a folder for")))?;
        }
        let text = pem()?;
        write_whole(path, &String::from_utf8_lossy(&text))?;
        Self::from_pem(&text).map_err(SignalError::Identity)
    }

    fn from_pem(text: &[u8]) -> Result<Self, String> {
        let certificate = CertificateDer::from_pem_slice(text).map_err(|e| format!("no certificate in PEM: {e}"))?;
        let key = PrivateKeyDer::from_pem_slice(text).map_err(|e| format!("no private key in PEM: {e}"))?;
        let identity = Self { certificate, key };
        identity.config().map_err(|e| format!("certificate and key cannot be used: {e}"))?;
        Ok(identity)
    }

    /// Identifies this identity to the connecting end.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// How a listener speaks TLS as this.
    pub(super) fn config(&self) -> Result<Arc<ServerConfig>, rustls::Error> {
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        Ok(Arc::new(config))
    }
}

/// A certificate and its key, as PEM.
fn pem() -> Result<Vec<u8>, SignalError> {
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]);
    let made = made.map_err(|e| SignalError::Identity(format!("making a certificate: {e}")))?;
    Ok((made.cert.pem() + &made.signing_key.serialize_pem()).into_bytes())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Compares the listener's certificate with an expected fingerprint.
#[derive(Debug)]
pub(super) struct Pinned {
    /// `None` accepts any certificate.
    expected: Option<Fingerprint>,
    seen: OnceLock<Fingerprint>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    /// The fingerprint that was presented, if it is not the expected one.
    pub(super) fn mismatch(&self) -> Option<SignalError> {
        let (expected, seen) = (self.expected?, *self.seen.get()?);
        (seen != expected).then_some(SignalError::WrongFingerprint { seen, expected })
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let seen = *self.seen.get_or_init(|| Fingerprint::of(end_entity));
        if self.expected.is_some_and(|expected| expected != seen) {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not offered".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The connecting end's side; `None` for `expected` accepts any certificate.
pub(super) fn connect(expected: Option<Fingerprint>) -> Result<(ClientConnection, Arc<Pinned>), SignalError> {
    let fault = |e: rustls::Error| SignalError::Tls(e.to_string());
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let pinned = Arc::new(Pinned { expected, seen: OnceLock::new(), algorithms });
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(fault)?
        .dangerous()
        .with_custom_certificate_verifier(pinned.clone())
        .with_no_client_auth();
    let name = ServerName::try_from(NAME).map_err(|e| SignalError::Tls(e.to_string()))?;
    Ok((ClientConnection::new(Arc::new(config), name).map_err(fault)?, pinned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_they_are_written() {
        let f = Identity::generate().unwrap().fingerprint();
        let text = f.to_string();
        assert_eq!((text.len(), text.parse::<Fingerprint>().unwrap()), (95, f));
        assert_eq!(text.replace(':', "").to_lowercase().parse::<Fingerprint>().unwrap(), f);
        for odd in ["", "AB", &text[..94], &format!("{text}:00"), &"g".repeat(64)] {
            assert!(odd.parse::<Fingerprint>().unwrap_err().to_string().contains("64 hexadecimal digits"), "{odd}");
        }
    }

    #[test]
    fn an_identity_is_kept_in_a_file_of_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weir").join("identity.pem");
        let made = Identity::load_or_generate(&path).unwrap().fingerprint();
        assert_eq!(Identity::load_or_generate(&path).unwrap().fingerprint(), made);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for (content, why) in [(Vec::new(), "no certificate"), (vec![b'x'; 70_000], "69 KiB")] {
            fs::write(&path, content).unwrap();
            let e = Identity::load_or_generate(&path).unwrap_err().to_string();
            assert!(e.contains(why) && e.contains("identity.pem"), "{e}");
        }
    }
}
