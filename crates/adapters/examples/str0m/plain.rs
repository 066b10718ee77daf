//! No cryptography at all, in the shape that str0m asks for: both ends of a simulated link are in one program, and what is measured is the
//! rate. Never for a network.

use std::time::{Duration, Instant};
use str0m::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, DtlsVersion, KeyingMaterial, ProtocolVersion,
    SrtpProfile,
};
use str0m::crypto::{
    AeadAes128GcmCipher, AeadAes256GcmCipher, Aes128CmSha1_80Cipher, CryptoError, CryptoProvider, Sha1HmacProvider,
    Sha1Provider, Sha256Provider, SrtpProvider, SupportedAeadAes128Gcm, SupportedAeadAes256Gcm,
    SupportedAes128CmSha1_80,
};

/// Keys and salts of both directions (RFC 5764, section 4.2): all zero.
const KEYS: [u8; 60] = [0; 60];
const AGAIN: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Plain;

/// FNV-1a (Fowler, Noll, Vo), repeated to a length: tells messages apart, and proves nothing.
fn sum<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    for (byte, n) in out.iter_mut().zip(0u64..) {
        let bytes = parts.iter().flat_map(|p| p.iter());
        let hash = bytes.fold(0xCBF2_9CE4_8422_2325 ^ n, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01B3));
        *byte = (hash >> 32) as u8;
    }
    out
}

fn copy(input: &[u8], output: &mut [u8]) {
    let len = input.len().min(output.len());
    output[..len].copy_from_slice(&input[..len]);
}

impl Sha1HmacProvider for Plain {
    fn sha1_hmac(&self, key: &[u8], payloads: &[&[u8]]) -> [u8; 20] {
        sum(&[&[key], payloads].concat())
    }
}
impl Sha1Provider for Plain {
    fn sha1(&self, data: &[u8]) -> [u8; 20] {
        sum(&[data])
    }
}
impl Sha256Provider for Plain {
    fn sha256(&self, data: &[u8]) -> [u8; 32] {
        sum(&[data])
    }
}
impl SrtpProvider for Plain {
    fn aes_128_cm_sha1_80(&self) -> &'static dyn SupportedAes128CmSha1_80 {
        &Plain
    }
    fn aead_aes_128_gcm(&self) -> &'static dyn SupportedAeadAes128Gcm {
        &Plain
    }
    fn aead_aes_256_gcm(&self) -> &'static dyn SupportedAeadAes256Gcm {
        &Plain
    }
    fn srtp_aes_128_ecb_round(&self, _: &[u8], input: &[u8], output: &mut [u8]) {
        copy(input, output);
    }
    fn srtp_aes_256_ecb_round(&self, _: &[u8], input: &[u8], output: &mut [u8]) {
        copy(input, output);
    }
}
impl SupportedAes128CmSha1_80 for Plain {
    fn create_cipher(&self, _: [u8; 16], _: bool) -> Box<dyn Aes128CmSha1_80Cipher> {
        Box::new(Plain)
    }
}
impl Aes128CmSha1_80Cipher for Plain {
    fn encrypt(&mut self, _: &[u8; 16], input: &[u8], output: &mut [u8]) -> Result<(), CryptoError> {
        copy(input, output);
        Ok(())
    }
    fn decrypt(&mut self, _: &[u8; 16], input: &[u8], output: &mut [u8]) -> Result<(), CryptoError> {
        copy(input, output);
        Ok(())
    }
}

/// The profile with AES in counter mode is agreed on, so that these are not used.
const UNUSED: &str = "a profile that was not agreed on";

impl SupportedAeadAes128Gcm for Plain {
    fn create_cipher(&self, _: [u8; 16], _: bool) -> Box<dyn AeadAes128GcmCipher> {
        unreachable!("{UNUSED}")
    }
}
impl SupportedAeadAes256Gcm for Plain {
    fn create_cipher(&self, _: [u8; 32], _: bool) -> Box<dyn AeadAes256GcmCipher> {
        unreachable!("{UNUSED}")
    }
}

/// A handshake of one record each way, which has the certificate.
#[derive(Debug)]
struct Hello {
    cert: Vec<u8>,
    active: bool,
    now: Instant,
    next: Option<Instant>,
    peer: Option<Vec<u8>>,
    /// Events not yet passed to str0m.
    said: u8,
    answer: bool,
}

impl DtlsProvider for Plain {
    fn generate_certificate(&self) -> Option<DtlsCert> {
        Some(DtlsCert { certificate: b"no certificate".to_vec(), private_key: Vec::new() })
    }
    fn new_dtls(
        &self,
        cert: &DtlsCert,
        now: Instant,
        _: DtlsVersion,
        _: Option<usize>,
    ) -> Result<Box<dyn DtlsInstance>, CryptoError> {
        let cert = cert.certificate.clone();
        Ok(Box::new(Hello { cert, active: false, now, next: None, peer: None, said: 0, answer: false }))
    }
}

impl DtlsInstance for Hello {
    fn set_active(&mut self, active: bool) {
        self.active = active;
        self.next = active.then_some(self.now);
    }
    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        self.peer = packet.get(1..).map(<[u8]>::to_vec);
        self.answer = !self.active;
        Ok(())
    }
    fn poll_output<'a>(&mut self, buf: &'a mut [u8]) -> DtlsOutput<'a> {
        let due = self.active && self.peer.is_none() && self.next.is_some_and(|at| at <= self.now);
        if due || self.answer {
            (self.answer, self.next) = (false, Some(self.now + AGAIN));
            buf[0] = 22;
            copy(&self.cert, &mut buf[1..]);
            return DtlsOutput::Packet(&buf[..1 + self.cert.len()]);
        }
        if let Some(peer) = &self.peer {
            self.said += 1;
            match self.said {
                1 => {
                    copy(peer, buf);
                    return DtlsOutput::PeerCert(&buf[..peer.len()]);
                }
                2 => return DtlsOutput::KeyingMaterial(KeyingMaterial::new(&KEYS), SrtpProfile::AES128_CM_SHA1_80),
                3 => return DtlsOutput::Connected,
                _ => self.said = 3,
            }
        }
        let later = self.now + Duration::from_secs(3_600);
        DtlsOutput::Timeout(self.next.filter(|_| self.active && self.peer.is_none()).unwrap_or(later))
    }
    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.now = now;
        Ok(())
    }
    fn send_application_data(&mut self, data: &[u8]) -> Result<usize, DtlsImplError> {
        Ok(data.len())
    }
    fn is_active(&self) -> bool {
        self.active
    }
    fn protocol_version(&self) -> Option<ProtocolVersion> {
        None
    }
    fn close(&mut self) -> Result<(), DtlsImplError> {
        Ok(())
    }
}

pub(crate) fn provider() -> CryptoProvider {
    CryptoProvider {
        srtp_provider: &Plain,
        sha1_hmac_provider: &Plain,
        sha1_provider: &Plain,
        sha256_provider: &Plain,
        dtls_provider: &Plain,
    }
}
