//! Cookies, tokens and tickets: what shows that a message is from whom it claims to be.
//!
//! All are HMACs (RFC 2104) with SHA-256, truncated to 64 bits. They protect against those who cannot read the messages;
//! against those who can, messages have to be encrypted below RTCP, as by SRTP or DTLS.

use core::net::{IpAddr, SocketAddr};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

type Code = Hmac<Sha256>;

/// The focus's secret.
#[derive(Clone, Debug)]
pub(super) struct Secret(Code);

/// A parent's key, which the focus derives from its secret.
#[derive(Clone, Debug)]
pub(super) struct TicketKey(Code);

fn keyed(key: &[u8]) -> Code {
    Code::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn number(code: Code) -> u64 {
    code.finalize().into_bytes().iter().take(8).fold(0, |n, &b| n << 8 | u64::from(b))
}

fn add_address(code: &mut Code, address: SocketAddr) {
    match address.ip().to_canonical() {
        IpAddr::V4(a) => code.update(&a.to_ipv6_mapped().octets()),
        IpAddr::V6(a) => code.update(&a.octets()),
    }
    code.update(&address.port().to_be_bytes());
}

impl Secret {
    pub(super) fn new(secret: &[u8; 32]) -> Self {
        Self(keyed(secret))
    }

    fn code(&self, purpose: u8) -> Code {
        let mut code = self.0.clone();
        code.update(&[purpose]);
        code
    }

    /// Returns the number that a node has to repeat, to show that it receives at its address.
    pub(super) fn cookie(&self, address: SocketAddr, nonce: u64, period: i64) -> u64 {
        let mut code = self.code(1);
        add_address(&mut code, address);
        code.update(&nonce.to_be_bytes());
        code.update(&period.to_be_bytes());
        number(code)
    }
    /// By which the focus recognises a node.
    pub(super) fn token(&self, node: u32, nonce: u64) -> u64 {
        let mut code = self.code(2);
        code.update(&node.to_be_bytes());
        code.update(&nonce.to_be_bytes());
        number(code)
    }
    /// The key of the tickets of a node's children.
    pub(super) fn key(&self, node: u32) -> [u8; 16] {
        let mut code = self.code(3);
        code.update(&node.to_be_bytes());
        let mut key = [0; 16];
        key.iter_mut().zip(code.finalize().into_bytes()).for_each(|(k, b)| *k = b);
        key
    }
}

impl TicketKey {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        Self(keyed(key))
    }
    /// Returns the number that a child has to show to its parent. It is valid from one address only, so that no child can direct
    /// packets to another's.
    pub(super) fn ticket(&self, child: u32, tree: u8, address: SocketAddr) -> u64 {
        let mut code = self.0.clone();
        code.update(&child.to_be_bytes());
        code.update(&[tree]);
        add_address(&mut code, address);
        number(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_counts() {
        let (a, b): (SocketAddr, SocketAddr) =
            ("192.0.2.1:5000".parse().unwrap(), "[::ffff:192.0.2.1]:5000".parse().unwrap());
        let other: SocketAddr = "192.0.2.1:5001".parse().unwrap();
        let secret = Secret::new(&[7; 32]);
        assert_eq!(secret.cookie(a, 1, 2), secret.cookie(b, 1, 2));
        let cookies = [
            secret.cookie(a, 1, 2),
            secret.cookie(other, 1, 2),
            secret.cookie(a, 2, 2),
            secret.cookie(a, 1, 3),
            Secret::new(&[8; 32]).cookie(a, 1, 2),
            secret.token(1, 2),
            secret.token(2, 2),
        ];
        let key = TicketKey::new(&secret.key(5));
        let tickets = [
            key.ticket(1, 0, a),
            key.ticket(2, 0, a),
            key.ticket(1, 1, a),
            key.ticket(1, 0, other),
            TicketKey::new(&secret.key(6)).ticket(1, 0, a),
        ];
        let mut all: Vec<u64> = cookies.into_iter().chain(tickets).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 12);
    }
}
