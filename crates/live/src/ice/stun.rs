//! Binding requests without credentials, and their answers: what a client of a STUN server needs (RFC 8489, sections 5
//! and 14). Connectivity checks are the library's.

use std::net::{IpAddr, SocketAddr};

/// The magic cookie (section 5).
pub const MAGIC: [u8; 4] = 0x2112_a442_u32.to_be_bytes();
/// Bytes of the header.
pub const HEADER: usize = 20;
/// Longest message that is read. Checks have about 120 bytes.
pub const MAX_MESSAGE: usize = 1_280;

const REQUEST: u16 = 0x0001;
const SUCCESS: u16 = 0x0101;
const ERROR: u16 = 0x0111;

const MAPPED_ADDRESS: u16 = 0x0001;
const ERROR_CODE: u16 = 0x0009;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
/// The other attributes of the first half that an answer may have and that are not needed here: username, integrity,
/// unknown attributes, realm, nonce, integrity by SHA-256, password algorithm, username hash.
const KNOWN: [u16; 8] = [0x0006, 0x0008, 0x000a, 0x0014, 0x0015, 0x001c, 0x001d, 0x001e];

/// Identifies a request and its answer.
pub type TransactionId = [u8; 12];

/// The content of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The requester's address as the server sees it.
    Mapped(SocketAddr),
    /// The server refuses, with this code.
    Refused(u16),
}

/// Whether a datagram is STUN: neither RTP, RTCP nor DTLS (RFC 7983), and with the magic cookie.
pub fn is_stun(datagram: &[u8]) -> bool {
    datagram.len() >= HEADER && datagram[0] < 4 && datagram[4..8] == MAGIC
}

/// The transaction of a message; `None` if it is no STUN.
pub fn transaction_of(datagram: &[u8]) -> Option<TransactionId> {
    is_stun(datagram).then(|| datagram.get(8..HEADER)?.try_into().ok())?
}

/// Whether a datagram is a binding request.
pub fn is_binding_request(datagram: &[u8]) -> bool {
    is_stun(datagram) && be16(datagram, 0) == Some(REQUEST)
}

/// A binding request.
pub fn binding_request(id: TransactionId) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    out[..2].copy_from_slice(&REQUEST.to_be_bytes());
    out[4..8].copy_from_slice(&MAGIC);
    out[8..].copy_from_slice(&id);
    out
}

/// The answer to a binding request with this identifier. `None` if the message is no such answer, is cut short, or has
/// an attribute that would have to be understood (section 6.3.3).
pub fn read_answer(message: &[u8], id: TransactionId) -> Option<Answer> {
    if transaction_of(message)? != id || message.len() > MAX_MESSAGE {
        return None;
    }
    let body = message.get(HEADER..)?;
    if usize::from(be16(message, 2)?) != body.len() {
        return None;
    }
    let kind = be16(message, 0)?;
    let (mut mapped, mut xored, mut code) = (None, None, None);
    for attribute in attributes(body) {
        let (name, value) = attribute?;
        match name {
            XOR_MAPPED_ADDRESS => xored = xored.or(Some(xor(read_address(value)?, id))),
            MAPPED_ADDRESS => mapped = mapped.or(Some(read_address(value)?)),
            ERROR_CODE => code = code.or(Some(u16::from(*value.get(2)? & 7) * 100 + u16::from(*value.get(3)?))),
            0x8000.. => {}
            _ if KNOWN.contains(&name) => {}
            _ => return None,
        }
    }
    match kind {
        SUCCESS => xored.or(mapped).map(Answer::Mapped),
        ERROR => code.map(Answer::Refused),
        _ => None,
    }
}

/// A server's answer to a binding request from this address; `None` if it is no request.
pub fn answer(request: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
    let id = transaction_of(request).filter(|_| is_binding_request(request) && request.len() <= MAX_MESSAGE)?;
    let (octets, seen) = match xor(from, id) {
        SocketAddr::V4(v4) => (v4.ip().octets().to_vec(), v4.port()),
        SocketAddr::V6(v6) => (v6.ip().octets().to_vec(), v6.port()),
    };
    let length = octets.len() as u16 + 4;
    let mut out = Vec::with_capacity(HEADER + 8 + octets.len());
    out.extend(SUCCESS.to_be_bytes());
    out.extend((length + 4).to_be_bytes());
    out.extend(MAGIC);
    out.extend(id);
    out.extend(XOR_MAPPED_ADDRESS.to_be_bytes());
    out.extend(length.to_be_bytes());
    out.extend([0, if from.is_ipv4() { 1 } else { 2 }]);
    out.extend(seen.to_be_bytes());
    out.extend(octets);
    Some(out)
}

/// The attributes of a message's body; `None` as the last one if the body is cut short.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = Option<(u16, &[u8])>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (Some(name), Some(length)) = (be16(rest, 0), be16(rest, 2)) else {
            rest = &[];
            return Some(None);
        };
        let length = usize::from(length);
        let (Some(value), Some(after)) = (rest.get(4..4 + length), rest.get(4 + length.next_multiple_of(4)..)) else {
            rest = &[];
            return Some(None);
        };
        rest = after;
        Some(Some((name, value)))
    })
}

fn read_address(value: &[u8]) -> Option<SocketAddr> {
    let (family, port) = (*value.get(1)?, be16(value, 2)?);
    let ip: IpAddr = match family {
        1 => <[u8; 4]>::try_from(value.get(4..)?).ok()?.into(),
        2 => <[u8; 16]>::try_from(value.get(4..)?).ok()?.into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// The address of `XOR-MAPPED-ADDRESS` (section 14.2), in either direction.
fn xor(address: SocketAddr, id: TransactionId) -> SocketAddr {
    let mask = MAGIC.into_iter().chain(id);
    let ip: IpAddr = match address.ip() {
        IpAddr::V4(ip) => {
            let mut octets = ip.octets();
            octets.iter_mut().zip(mask).for_each(|(o, m)| *o ^= m);
            octets.into()
        }
        IpAddr::V6(ip) => {
            let mut octets = ip.octets();
            octets.iter_mut().zip(mask).for_each(|(o, m)| *o ^= m);
            octets.into()
        }
    };
    SocketAddr::new(ip, address.port() ^ 0x2112)
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
    }

    /// The samples of RFC 5769, sections 2.2 and 2.3.
    const V4: &str = "0101003c 2112a442 b7e7a701bc34d686fa87dfae 8022000b 7465737420766563746f7220 00200008 0001a147 \
                      e112a643 00080014 2b91f599fd9e90c38c7489f92af9ba53f06be7d7 80280004 c07d4c96";
    const V6: &str = "01010048 2112a442 b7e7a701bc34d686fa87dfae 8022000b 7465737420766563746f7220 00200014 0002a147 \
                      0113a9faa5d3f179bc25f4b5bed2b9d9 00080014 a382954e4be67bf11784c97c8292c275bfe3ed41 80280004 \
                      c8fb0b4c";

    #[test]
    fn answers_are_those_of_the_samples() {
        for (sample, address) in [(V4, "192.0.2.1:32853"), (V6, "[2001:db8:1234:5678:11:2233:4455:6677]:32853")] {
            let bytes = hex(sample);
            let id = transaction_of(&bytes).expect("STUN");
            assert_eq!(read_answer(&bytes, id), Some(Answer::Mapped(address.parse().unwrap())));
            assert_eq!(read_answer(&bytes, [0; 12]), None, "of another request");
            for length in 0..bytes.len() {
                assert_eq!(read_answer(&bytes[..length], id), None, "{length}");
            }
        }
    }

    #[test]
    fn a_server_answers_what_a_client_reads() {
        let id = *b"twelve bytes";
        let request = binding_request(id);
        assert!(is_stun(&request) && is_binding_request(&request));
        for from in ["198.51.100.7:40000", "[2001:db8::9]:1"] {
            let from = from.parse().unwrap();
            let answered = answer(&request, from).expect("a request");
            assert_eq!(read_answer(&answered, id), Some(Answer::Mapped(from)));
            assert_eq!(answer(&answered, from), None, "an answer is not answered");
        }
    }

    #[test]
    fn an_unknown_attribute_is_ignored_only_where_it_may_be() {
        let id = [7; 12];
        let with = |name: u16| {
            let mut message = answer(&binding_request(id), "192.0.2.9:9".parse().unwrap()).expect("a request");
            message.extend(name.to_be_bytes());
            message.extend([0, 1, 9, 0, 0, 0]);
            let length = (message.len() - HEADER) as u16;
            message[2..4].copy_from_slice(&length.to_be_bytes());
            read_answer(&message, id)
        };
        assert!(with(0x8044).is_some());
        assert_eq!(with(0x0044), None);
    }

    #[test]
    fn a_refusal_has_its_code() {
        let id = [1; 12];
        let mut message = binding_request(id).to_vec();
        message[..4].copy_from_slice(&hex("01110008"));
        message.extend(hex("00090004 00000414"));
        assert_eq!(read_answer(&message, id), Some(Answer::Refused(420)));
    }

    proptest::proptest! {
        #[test]
        fn no_datagram_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let id = transaction_of(&bytes).unwrap_or_default();
            let _ = (read_answer(&bytes, id), answer(&bytes, "192.0.2.9:9".parse().unwrap()));
        }
    }
}
