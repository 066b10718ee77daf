//! Init Cookies and initial sequence numbers, which only the listener can generate (RFC 4340, sections 7.2 and 8.1.4).
//!
//! A cookie contains the parts of the Request on which the connection depends: its number, its service code and its
//! Changes. The connection is created again from them when the cookie returns. It is not secret, only authenticated: an
//! HMAC (RFC 2104) over it, the other end's address and the ports, with SHA-256, truncated to 128 bits.

use crate::connection::Datagram;
use crate::option::DccpOption;
use crate::packet::{Header, Packet, PacketType, PacketWriter, ServiceCode, WireSequence};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::VecDeque;
use weir_units::{Ecn, Seq48, TimeDelta, Timestamp};

/// Bytes of the authentication code that are sent.
const TAG: usize = 16;
/// Bytes in front of the options: code, seconds, number, service code.
const FIXED: usize = TAG + 4 + 6 + 4;
/// Maximum bytes of one option's data.
const MAX: usize = 253;
/// Maximum used cookies remembered.
const MAX_USED: usize = 4_096;

/// Identifies a connection: the caller's number for the other end's address, its port, this end's port.
pub(super) type Flow = (u64, u16, u16);

/// The keeper of the secret.
#[derive(Clone, Debug)]
pub(super) struct Secret {
    mac: Hmac<Sha256>,
}

/// Purpose of a MAC.
#[derive(Clone, Copy)]
enum Purpose {
    Cookie = 1,
    InitialSequence = 2,
    Seed = 3,
}

/// The start of a Request's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Start {
    pub(super) iss: Seq48,
    pub(super) seed: u64,
}

/// Why a cookie is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BadCookie {
    /// This listener did not make it for this other end.
    Forged,
    /// It is too old.
    Stale,
}

impl Secret {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
        Self { mac }
    }

    fn mac(&self, purpose: Purpose, flow: Flow, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(&[purpose as u8]);
        mac.update(&flow.0.to_be_bytes());
        mac.update(&flow.1.to_be_bytes());
        mac.update(&flow.2.to_be_bytes());
        parts.iter().for_each(|p| mac.update(p));
        mac
    }

    fn number(&self, purpose: Purpose, flow: Flow, parts: &[&[u8]]) -> u64 {
        let bytes = self.mac(purpose, flow, parts).finalize().into_bytes();
        bytes.iter().take(8).fold(0, |n, &b| n << 8 | u64::from(b))
    }

    /// Each flow has its own sequence numbers, which no other end can guess (RFC 4340, section 7.2, after RFC 1948).
    /// Those of each Request are far from the others': of two Responses without state the client accepts one, and the
    /// numbers of the connection created from its cookie are not those of the other.
    pub(super) fn start(&self, flow: Flow, request: Seq48) -> Start {
        let request = request.get().to_be_bytes();
        let iss = Seq48::new(self.number(Purpose::InitialSequence, flow, &[&request]));
        Start { iss, seed: self.number(Purpose::Seed, flow, &[&request]) }
    }

    /// Writes the cookie of a Request; `None` if its Changes do not fit one option.
    pub(super) fn seal(&self, now: Timestamp, flow: Flow, request: &Packet<'_>, cookie: &mut Vec<u8>) -> Option<()> {
        cookie.clear();
        cookie.resize(TAG, 0);
        cookie.extend_from_slice(&seconds(now).to_be_bytes());
        let sequence = request.header.sequence.extend(Seq48::default());
        cookie.extend_from_slice(&sequence.get().to_be_bytes()[2..]);
        cookie.extend_from_slice(&request.service_code?.0.to_be_bytes());
        let mut mandatory = false;
        for option in request.options.iter().map_while(Result::ok) {
            if matches!(option, DccpOption::ChangeL(..) | DccpOption::ChangeR(..)) {
                if mandatory {
                    DccpOption::Mandatory.write_into(cookie);
                }
                option.write_into(cookie);
            }
            mandatory = option == DccpOption::Mandatory;
        }
        if cookie.len() > MAX {
            return None;
        }
        let tag = self.mac(Purpose::Cookie, flow, &[&cookie[TAG..]]).finalize().into_bytes();
        cookie[..TAG].copy_from_slice(&tag[..TAG]);
        Some(())
    }

    /// The Request from which a cookie was made, as a packet.
    pub(super) fn open(
        &self,
        now: Timestamp,
        lifetime: TimeDelta,
        flow: Flow,
        cookie: &[u8],
    ) -> Result<Vec<u8>, BadCookie> {
        let (tag, content) = cookie.split_at_checked(TAG).ok_or(BadCookie::Forged)?;
        if cookie.len() < FIXED || self.mac(Purpose::Cookie, flow, &[content]).verify_truncated_left(tag).is_err() {
            return Err(BadCookie::Forged);
        }
        let number = |b: &[u8]| b.iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
        let age = seconds(now).wrapping_sub(number(&content[..4]) as u32);
        if i64::from(age) > lifetime.as_nanos() / 1_000_000_000 {
            return Err(BadCookie::Stale);
        }
        let sequence = Seq48::new(number(&content[4..10]));
        let header = Header {
            source_port: flow.1,
            destination_port: flow.2,
            ccval: 0,
            checksum_coverage: 0,
            packet_type: PacketType::Request,
            sequence: WireSequence::Long(sequence),
            acknowledgement: None,
        };
        let mut request = Vec::with_capacity(cookie.len() + 24);
        let mut writer = PacketWriter::new(&mut request, &header);
        writer.service_code(ServiceCode(number(&content[10..14]) as u32));
        writer.finish();
        // The options are the content's last part, unchanged from the Request.
        request.extend_from_slice(&content[14..]);
        request.resize(request.len().next_multiple_of(4), 0);
        request[4] = u8::try_from(request.len() / 4).map_err(|_| BadCookie::Forged)?;
        Ok(request)
    }
}

fn seconds(now: Timestamp) -> u32 {
    (now.as_nanos() / 1_000_000_000) as u32
}

/// A received Request.
pub(super) fn datagram(bytes: &[u8]) -> Datagram<'_> {
    Datagram { bytes, payload: 0, ecn: Ecn::NotEct }
}

/// Cookies that have returned: each is accepted once, so that a copy of a packet does not open the connection again
/// after it has ended. The oldest are removed, but not before they expire unless there are too many.
#[derive(Clone, Debug, Default)]
pub(super) struct Used {
    tags: VecDeque<[u8; 8]>,
}

impl Used {
    pub(super) fn contains(&self, cookie: &[u8]) -> bool {
        cookie.first_chunk().is_some_and(|tag| self.tags.contains(tag))
    }
    pub(super) fn insert(&mut self, cookie: &[u8]) {
        let Some(&tag) = cookie.first_chunk() else { return };
        if self.tags.len() == MAX_USED {
            self.tags.pop_front();
        }
        self.tags.push_back(tag);
    }
}
