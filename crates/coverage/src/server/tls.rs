//! Certificates.

use super::config::TlsConfig;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Greatest size of a file with certificates or keys, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// A listener's configuration of TLS, and the certificate's SHA-256 fingerprint as RFC 8122 writes it.
pub(super) struct Identity {
    pub(super) config: Arc<ServerConfig>,
    pub(super) fingerprint: String,
}

fn at(path: &Path, e: impl std::fmt::Display) -> String {
    format!("{}: {e}", path.display())
}

/// Loads or makes what the configuration names; `None` for plain connections.
pub(super) fn identity(tls: &TlsConfig) -> Result<Option<Identity>, String> {
    let (certificate, key) = match tls {
        TlsConfig::None => return Ok(None),
        TlsConfig::Files { certificate, key } => {
            let chain = weir_files::read(certificate, MAX_FILE).map_err(|e| at(certificate, e))?;
            (chain, weir_files::read(key, MAX_FILE).map_err(|e| at(key, e))?)
        }
        TlsConfig::SelfSigned { file, names } => {
            let text = match weir_files::read(file, MAX_FILE) {
                Ok(text) => text,
                Err(e) if e.is_missing() => make(file, names)?,
                Err(e) => return Err(at(file, e)),
            };
            (text.clone(), text)
        }
    };
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
    let chain = chain.map_err(|e| format!("the certificate: {e}"))?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|e| format!("the certificate's key: {e}"))?;
    let first = chain.first().ok_or("the file holds no certificate")?;
    let mut fingerprint = String::new();
    for (i, byte) in Sha256::digest(first).iter().enumerate() {
        let _ = write!(fingerprint, "{}{byte:02X}", if i == 0 { "" } else { ":" });
    }
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(|e| e.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| format!("certificate and key cannot be used: {e}"))?;
    Ok(Some(Identity { config: Arc::new(config), fingerprint }))
}

/// Makes a certificate with its key in one file, readable by its owner alone.
fn make(file: &Path, names: &[String]) -> Result<Vec<u8>, String> {
    let made = rcgen::generate_simple_self_signed(names.to_vec()).map_err(|e| format!("making a certificate: {e}"))?;
    let text = made.cert.pem() + &made.signing_key.serialize_pem();
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut to = options.open(file).map_err(|e| at(file, e))?;
    to.write_all(text.as_bytes()).map_err(|e| at(file, e))?;
    Ok(text.into_bytes())
}
