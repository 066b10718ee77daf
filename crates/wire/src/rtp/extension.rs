//! Header extension elements (RFC 8285), with support for some of them.
//!
//! Identifiers of elements are signalled, so every reader and writer takes them as arguments. The two elements on the
//! hot path are fields of [`Header`](super::Header). Any other is an [`Element`]: a new one only needs a function here
//! that makes or parses its bytes.

use crate::ntp::NtpTime;
use crate::read::be16;
use weir_units::{TimeDelta, Timestamp};

/// The "defined by profile" field of the one-byte form (RFC 8285, section 4.2).
pub(super) const ONE_BYTE: u16 = 0xbede;
/// The same of the two-byte form, whose lower four bits are free (RFC 8285, section 4.3).
pub(super) const TWO_BYTE: u16 = 0x1000;
/// Local identifier that ends a one-byte extension (RFC 8285, section 4.2).
const STOP: u8 = 15;

/// One extension element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element<'a> {
    id: u8,
    data: &'a [u8],
}

impl<'a> Element<'a> {
    /// An element with local identifier `id` (1 to 255) and up to 255 bytes; `None` out of range.
    pub const fn new(id: u8, data: &'a [u8]) -> Option<Self> {
        if id == 0 || data.len() > 255 { None } else { Some(Self { id, data }) }
    }
    /// The local identifier.
    pub const fn id(&self) -> u8 {
        self.id
    }
    /// The data.
    pub const fn data(&self) -> &'a [u8] {
        self.data
    }
    /// Whether the one-byte form can carry it.
    pub(super) const fn is_short(&self) -> bool {
        self.id < STOP && !self.data.is_empty() && self.data.len() <= 16
    }
}

/// Iterator over the elements of a header extension, in either form.
///
/// It ends at identifier 15, or 0 with a length, of the one-byte form, at an element that exceeds the extension, and at
/// once for an extension that is not of RFC 8285.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    form: Form,
    rest: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
enum Form {
    OneByte,
    TwoByte,
}

impl<'a> Elements<'a> {
    pub(super) const fn new(profile: u16, data: &'a [u8]) -> Self {
        if profile == ONE_BYTE {
            Self { form: Form::OneByte, rest: data }
        } else {
            Self { form: Form::TwoByte, rest: if profile & 0xfff0 == TWO_BYTE { data } else { &[] } }
        }
    }
    /// Bytes after the last element returned.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;
    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        loop {
            let (&first, rest) = self.rest.split_first()?;
            if first == 0 {
                self.rest = rest;
                continue;
            }
            let (id, length, rest) = match self.form {
                Form::OneByte => (first >> 4, usize::from(first & 0xf) + 1, rest),
                Form::TwoByte => {
                    let (&length, rest) = rest.split_first()?;
                    (first, usize::from(length), rest)
                }
            };
            // Identifier 0 with a length ends the extension as well (RFC 8285, section 4.1.2).
            if matches!(self.form, Form::OneByte) && (id == 0 || id == STOP) {
                self.rest = &[];
                return None;
            }
            let Some((data, rest)) = rest.split_at_checked(length) else {
                self.rest = &[];
                return None;
            };
            self.rest = rest;
            return Some(Element { id, data });
        }
    }
}

/// The transport-wide sequence number in `data` (draft-holmer, section 2.2).
///
/// Four bytes are also accepted: version 2 of the element, whose second half requests feedback.
pub fn read_transport_sequence(data: &[u8]) -> Option<u16> {
    matches!(data.len(), 2 | 4).then(|| be16(data, 0))
}

/// The absolute send time in `data`: 24 bits, unsigned 6.18 fixed-point seconds, wrapping every 64 s
/// (draft-alvestrand-rmcat-remb-03, section 4).
pub fn read_abs_send_time(data: &[u8]) -> Option<u32> {
    match data {
        &[a, b, c] => Some(u32::from_be_bytes([0, a, b, c])),
        _ => None,
    }
}

/// The absolute send time of a local time, to the nearest 2^-18 s (3.8 us).
///
/// The draft uses the middle of the NTP time; a clock with another zero shifts all values equally, and receivers only
/// use differences.
pub const fn abs_send_time(t: Timestamp) -> u32 {
    const SECOND: i64 = 1_000_000_000;
    let ns = t.as_nanos().rem_euclid(64 * SECOND);
    (((ns << 18) + SECOND / 2) / SECOND) as u32 & 0xff_ffff
}

/// Signed time from `earlier` to `later`, each an absolute send time of 24 bits, in -32 s to 32 s.
pub const fn abs_send_time_since(later: u32, earlier: u32) -> TimeDelta {
    // Shifting left drops bits above 24 and makes the sign bit handle the wrap.
    let units = ((later.wrapping_sub(earlier) << 8) as i32 >> 8) as i64;
    TimeDelta::from_nanos((units * 1_000_000_000 + (1 << 17)) >> 18)
}

/// URI that signals [`ntp_64`] (RFC 6051, section 3.3).
pub const NTP_64_URI: &str = "urn:ietf:params:rtp-hdrext:ntp-64";
/// URI that signals [`ntp_56`] (RFC 6051, section 3.3).
pub const NTP_56_URI: &str = "urn:ietf:params:rtp-hdrext:ntp-56";

/// The data of a 64-bit NTP timestamp: the time represented by the RTP timestamp, by the clock of the sender's reports
/// (RFC 6051, section 3.3, variant A).
pub const fn ntp_64(t: NtpTime) -> [u8; 8] {
    t.bits().to_be_bytes()
}

/// Parses a 64-bit NTP timestamp.
pub fn read_ntp_64(data: &[u8]) -> Option<NtpTime> {
    data.try_into().ok().map(|bytes| NtpTime::from_bits(u64::from_be_bytes(bytes)))
}

/// The data of a 56-bit NTP timestamp, without the upper 8 bits (RFC 6051, section 3.3, variant B).
pub const fn ntp_56(t: NtpTime) -> [u8; 7] {
    let [_, a, b, c, d, e, f, g] = t.bits().to_be_bytes();
    [a, b, c, d, e, f, g]
}

/// Parses a 56-bit NTP timestamp: the one nearest to `near`, the time of a sender report, within 97 days.
pub fn read_ntp_56(data: &[u8], near: NtpTime) -> Option<NtpTime> {
    let &[a, b, c, d, e, f, g] = data else { return None };
    let low = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
    // As in abs_send_time_since: the sign bit handles the wrap.
    let ahead = (low.wrapping_sub(near.bits()) << 8) as i64 >> 8;
    Some(NtpTime::from_bits(near.bits().wrapping_add_signed(ahead)))
}
