//! Recordings that can be handed on: what can name a person, a place or a machine is replaced.
//!
//! Only what is known to be harmless is kept: numbers of RTP, RTCP and statistics, names of codecs, states and kinds. All
//! else - addresses, names, URLs, labels of devices, keys, credentials, payloads - is replaced, the same by the same over
//! all files that share [`Pseudonyms`]; what has no place in the timeline is left out. Ports, times and SSRCs stay.

mod capture;
mod event_log;
mod json;
mod rtcp;
mod sdp;
mod weir;

use crate::input::{Input, Taken};
use crate::stats::{MAX_DOCUMENT, document};
use crate::{Format, Limits, ReadError, format};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

/// Most replaced texts, and addresses (of 198.18.0.0/15); beyond it all others have one pseudonym.
const MOST: usize = 1_000_000;
const MOST_ADDRESSES: usize = (1 << 17) - 1;

/// Replacements, the same by the same.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pseudonyms {
    texts: BTreeMap<String, usize>,
    addresses: BTreeMap<IpAddr, u32>,
}

impl Pseudonyms {
    fn text(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let next = self.texts.len() + 1;
        if next > MOST && !self.texts.contains_key(text) {
            return "x0".into();
        }
        format!("x{}", self.texts.entry(text.to_owned()).or_insert(next))
    }

    /// An address of the same family that no host has: of 198.18.0.0/15 (RFC 2544), or of 2001:db8::/32 (RFC 3849).
    fn address(&mut self, address: IpAddr) -> IpAddr {
        let next = self.addresses.len() as u32 + 1;
        let full = next as usize > MOST_ADDRESSES && !self.addresses.contains_key(&address);
        let n = if full { 0 } else { *self.addresses.entry(address).or_insert(next) };
        match address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(0xc612_0000 | n)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(n))),
        }
    }
}

/// Result of a redaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redacted {
    /// Recognised format, which the output has too, uncompressed.
    pub format: Format,
    /// Records that were left out, since they have no place in the timeline or cannot be read.
    pub left_out: u64,
    /// Why the input ended early, if it did.
    pub stop: Option<String>,
}

/// Copies a recording with all private details replaced.
///
/// # Errors
/// The format is not known, or reading or writing fails.
pub fn redact(source: impl Read, out: &mut dyn Write, names: &mut Pseudonyms) -> Result<Redacted, ReadError> {
    let mut input = Input::new(source, Limits::default().bytes)?;
    input.skip_mark()?;
    let format = Format::recognise(input.peek(format::PEEK)?)?;
    let mut done = Redacted { format, left_out: 0, stop: None };
    match format {
        Format::EventLog => event_log::redact(&mut input, out, &mut done)?,
        Format::Pcap => capture::pcap(&mut input, out, names, &mut done)?,
        Format::Pcapng => capture::pcapng(&mut input, out, names, &mut done)?,
        Format::InternalsDump => json::document(&mut input, out, names, &mut done)?,
        Format::GetStats | Format::RtcStats => json::lines(&mut input, out, names, &mut done)?,
        Format::PionRtp | Format::PionRtcp | Format::PionTarget => numbers(&mut input, out, &mut done)?,
        Format::WeirSeries => weir::series(&mut input, out, names, &mut done)?,
        Format::WeirResult => weir::result(&mut input, out, names, &mut done)?,
        Format::WeirPage => weir::page(&mut input, out, names, &mut done)?,
        Format::Scream => numbers(&mut input, out, &mut done)?,
        Format::RtpDump => capture::rtpdump(&mut input, out, &mut done)?,
        Format::Observed => return Err(ReadError::Unknown("such packets are in no file".into())),
    }
    out.flush()?;
    Ok(done)
}

/// Whether the next `n` bytes are there; else says why not.
fn take(input: &mut Input<'_>, n: usize, bytes: &mut Vec<u8>, done: &mut Redacted) -> bool {
    match input.take(n, bytes) {
        Taken::Whole => true,
        Taken::End => n == 0,
        Taken::Cut(why) => {
            done.stop = Some(why);
            false
        }
    }
}

/// The next line; `false` behind the last one, or where reading stopped, which is then in `done`.
fn line(input: &mut Input<'_>, most: usize, line: &mut Vec<u8>, done: &mut Redacted) -> bool {
    match input.line(most, line) {
        Taken::Whole => true,
        Taken::End => false,
        Taken::Cut(why) => {
            done.stop = Some(why);
            false
        }
    }
}

/// The document in what is left of a file, found by `part`, as far as it can be read; where that stopped, or that there is none, is then in `done`.
fn whole(input: &mut Input<'_>, done: &mut Redacted, part: impl Fn(Vec<u8>) -> Option<Vec<u8>>) -> Option<Value> {
    let (bytes, broken) = input.rest(MAX_DOCUMENT);
    let (document, damage) = part(bytes).map(document).unwrap_or_default();
    done.stop = broken.or(damage.map(|(_, why)| why));
    done.left_out += u64::from(document.is_none());
    document
}

/// Lines of numbers and truth values; others are left out.
fn numbers(input: &mut Input<'_>, out: &mut dyn Write, done: &mut Redacted) -> io::Result<()> {
    let mut line = Vec::new();
    while matches!(input.line(4096, &mut line), Taken::Whole) {
        let text = String::from_utf8_lossy(&line);
        let plain = |f: &str| {
            let digits = |b: u8| b.is_ascii_digit() || (done.format == Format::Scream && matches!(b, b'.' | b'-'));
            matches!(f, "true" | "false") || (f.len() <= 20 && f.bytes().all(digits) && !f.is_empty())
        };
        if text.split([',', ' ']).map(str::trim).filter(|f| !f.is_empty()).all(plain) {
            writeln!(out, "{}", text.trim_end())?;
        } else {
            done.left_out += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
