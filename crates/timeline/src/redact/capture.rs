//! Captures: headers of IP, UDP, RTP and RTCP, and zeros where anything else was.

use super::{Pseudonyms, Redacted, rtcp, take};
use crate::input::{Input, Taken};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::io::{self, Write};

const MAX_BLOCK: u32 = 1 << 20;
/// Longest element of a header extension that is kept: transport-wide numbers, absolute send times, levels of sound.
const MAX_ELEMENT: usize = 3;

pub(super) fn pcap(
    input: &mut Input<'_>,
    out: &mut dyn Write,
    names: &mut Pseudonyms,
    done: &mut Redacted,
) -> io::Result<()> {
    let (mut head, mut bytes) = (Vec::new(), Vec::new());
    if !take(input, 24, &mut head, done) {
        return Ok(());
    }
    let little = matches!(head[0], 0xd4 | 0x4d);
    let link = number(little, &head[20..24]) as u16;
    out.write_all(&head)?;
    while take(input, 16, &mut head, done) {
        let length = number(little, &head[8..12]);
        if length > MAX_BLOCK || !take(input, length as usize, &mut bytes, done) {
            done.stop.get_or_insert("a packet that is cut or too long".into());
            break;
        }
        out.write_all(&head)?;
        out.write_all(&frame(link, &bytes, names))?;
    }
    Ok(())
}

fn number(little: bool, b: &[u8]) -> u32 {
    let b = [b[0], b[1], b[2], b[3]];
    if little { u32::from_le_bytes(b) } else { u32::from_be_bytes(b) }
}

pub(super) fn pcapng(
    input: &mut Input<'_>,
    out: &mut dyn Write,
    names: &mut Pseudonyms,
    done: &mut Redacted,
) -> io::Result<()> {
    let (mut head, mut body) = (Vec::new(), Vec::new());
    let mut little = true;
    let mut links: Vec<u16> = Vec::new();
    while take(input, 8, &mut head, done) {
        if head.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
            little = matches!(input.peek(4)?, [0x4d, 0x3c, 0x2b, 0x1a]);
            links.clear();
        }
        let length = number(little, &head[4..8]);
        let whole = (12..=MAX_BLOCK).contains(&length) && length.is_multiple_of(4);
        if !whole || !take(input, length as usize - 8, &mut body, done) || body.len() < 4 {
            done.stop.get_or_insert("a block that is cut or too long".into());
            break;
        }
        let body = &body[..body.len() - 4];
        let word = |n: u32| if little { n.to_le_bytes() } else { n.to_be_bytes() };
        // Options hold names and comments; of them only the units of times stay.
        let kept = match number(little, &head[..4]) {
            // Its length is not given: it has changed.
            0x0a0d_0d0a if body.len() >= 16 => [&body[..8], &[0xff; 8]].concat(),
            1 if body.len() >= 8 && links.len() < 1024 => {
                let link = number(little, &[body[0], body[1], 0, 0]);
                links.push(if little { link as u16 } else { (link >> 16) as u16 });
                [&body[..8], &units(little, &body[8..])].concat()
            }
            6 if body.len() >= 20 => {
                let captured = number(little, &body[12..16]) as usize;
                let link = links.get(number(little, &body[..4]) as usize);
                match (link, body[20..].get(..captured)) {
                    (Some(link), Some(bytes)) => {
                        let mut kept = [&body[..20], &frame(*link, bytes, names)].concat();
                        kept.resize(kept.len().next_multiple_of(4), 0);
                        kept
                    }
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        };
        if kept.is_empty() {
            done.left_out += 1;
            continue;
        }
        let length = word(kept.len() as u32 + 12);
        out.write_all(&head[..4])?;
        for part in [&length[..], &kept, &length] {
            out.write_all(part)?;
        }
    }
    Ok(())
}

/// The option of an interface that tells the units of its times, alone.
fn units(little: bool, mut options: &[u8]) -> Vec<u8> {
    let short = |b: &[u8]| if little { u16::from_le_bytes([b[0], b[1]]) } else { u16::from_be_bytes([b[0], b[1]]) };
    while options.len() >= 8 {
        let (code, length) = (short(options), usize::from(short(&options[2..])));
        if (code, length) == (9, 1) {
            return [&options[..5], &[0; 7]].concat();
        }
        if code == 0 {
            break;
        }
        options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
    }
    Vec::new()
}

/// Puts the same bytes at the same place.
fn keep(out: &mut [u8], bytes: &[u8], range: std::ops::Range<usize>) {
    let end = range.end.min(bytes.len());
    if range.start < end {
        out[range.start..end].copy_from_slice(&bytes[range.start..end]);
    }
}

fn frame(link: u16, bytes: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    let mut out = vec![0; bytes.len()];
    let at = match link {
        1 => {
            let mut at = 14;
            while bytes.len() > at && at < 22 && matches!(bytes[at - 2..at], [0x81, 0] | [0x88, 0xa8]) {
                at += 4;
            }
            keep(&mut out, bytes, 12..at);
            at
        }
        0 | 108 => {
            keep(&mut out, bytes, 0..4);
            4
        }
        12 | 14 | 101 | 228 | 229 => 0,
        // The hardware address is left out.
        113 => {
            keep(&mut out, bytes, 0..6);
            keep(&mut out, bytes, 14..16);
            16
        }
        276 => {
            keep(&mut out, bytes, 0..12);
            20
        }
        _ => return out,
    };
    if let (Some(to), Some(from)) = (out.get_mut(at..), bytes.get(at..)) {
        ip(to, from, names);
    }
    out
}

fn ip(out: &mut [u8], bytes: &[u8], names: &mut Pseudonyms) {
    let mut put = |out: &mut [u8], at: usize, address: IpAddr| match names.address(address) {
        IpAddr::V4(a) => out[at..at + 4].copy_from_slice(&a.octets()),
        IpAddr::V6(a) => out[at..at + 16].copy_from_slice(&a.octets()),
    };
    match bytes.first().map(|b| b >> 4) {
        Some(4) if bytes.len() >= 20 => {
            keep(out, bytes, 0..10);
            for at in [12, 16] {
                put(out, at, Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]).into());
            }
            let (header, first) = (usize::from(bytes[0] & 15) * 4, bytes[6] & 0x1f == 0 && bytes[7] == 0);
            if bytes[9] == 17 && first && header >= 20 {
                udp(out, bytes, header);
            }
        }
        Some(6) if bytes.len() >= 40 => {
            keep(out, bytes, 0..8);
            for at in [8, 24] {
                let octets: [u8; 16] = bytes[at..at + 16].try_into().unwrap_or_default();
                put(out, at, Ipv6Addr::from(octets).into());
            }
            let (mut next, mut at) = (bytes[6], 40);
            while matches!(next, 0 | 43 | 60) && at + 2 <= bytes.len() {
                keep(out, bytes, at..at + 2);
                (next, at) = (bytes[at], at + (usize::from(bytes[at + 1]) + 1) * 8);
            }
            if next == 17 {
                udp(out, bytes, at);
            }
        }
        _ => {}
    }
}

fn udp(out: &mut [u8], bytes: &[u8], at: usize) {
    keep(out, bytes, at..at + 6);
    let (Some(out), Some(bytes)) = (out.get_mut(at + 8..), bytes.get(at + 8..)) else { return };
    match bytes {
        [128..=191, 192..=223, ..] if bytes.len() >= 8 => {
            out.copy_from_slice(bytes);
            if weir_wire::rtcp::raw_packets(bytes).all(|p| p.is_ok()) {
                rtcp::compound(out);
            } else {
                rtcp::encrypted(out);
            }
        }
        [128..=191, ..] => rtp(out, bytes),
        // STUN: its kind, length and cookie, which tell it from others' traffic. DTLS: its kind and version.
        [0..=3, ..] if bytes.get(4..8) == Some(&[0x21, 0x12, 0xa4, 0x42]) => keep(out, bytes, 0..8),
        [20..=63, ..] => keep(out, bytes, 0..3),
        _ => {}
    }
}

/// The header without its contributing sources, which may be text of another protocol (a query of DNS begins like RTP),
/// and the short elements of its extension (RFC 8285).
fn rtp(out: &mut [u8], bytes: &[u8]) {
    keep(out, bytes, 0..12);
    let at = 12 + usize::from(bytes[0] & 15) * 4;
    if bytes[0] & 0x10 == 0 || bytes.len() < at + 4 {
        return;
    }
    keep(out, bytes, at..at + 4);
    let words = usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]));
    let end = (at + 4 + words * 4).min(bytes.len());
    let one = bytes[at..at + 2] == [0xbe, 0xde];
    let two = bytes[at] == 0x10 && bytes[at + 1] >> 4 == 0;
    let mut i = at + 4;
    while i < end && (one || two) {
        if bytes[i] == 0 {
            i += 1;
            continue;
        }
        let (head, length) = if one {
            (1, usize::from(bytes[i] & 15) + 1)
        } else {
            (2, bytes.get(i + 1).copied().map_or(0, usize::from))
        };
        if one && bytes[i] >> 4 == 15 {
            return;
        }
        let kept = head + if length <= MAX_ELEMENT { length } else { 0 };
        keep(out, bytes, i..(i + kept).min(end));
        i += head + length;
    }
}

/// Records of `rtpdump`; its first line and its header name the source.
pub(super) fn rtpdump(input: &mut Input<'_>, out: &mut dyn Write, done: &mut Redacted) -> io::Result<()> {
    let mut bytes = Vec::new();
    if !matches!(input.line(256, &mut bytes), Taken::Whole) || !take(input, 16, &mut bytes, done) {
        done.stop.get_or_insert("the file ends within its header".into());
        return Ok(());
    }
    out.write_all(b"#!rtpplay1.0 0.0.0.0/0\n")?;
    out.write_all(&bytes[..8])?;
    out.write_all(&[0; 8])?;
    let mut head = Vec::new();
    while take(input, 8, &mut head, done) {
        let (length, packet) = (u16::from_be_bytes([head[0], head[1]]), u16::from_be_bytes([head[2], head[3]]));
        let Some(length) = length.checked_sub(8).filter(|n| take(input, (*n).into(), &mut bytes, done)) else {
            done.stop.get_or_insert("a record that is cut".into());
            break;
        };
        let mut kept = vec![0; length.into()];
        if packet == 0 {
            kept.copy_from_slice(&bytes);
            rtcp::compound(&mut kept);
        } else if bytes.len() >= 12 {
            rtp(&mut kept, &bytes);
        }
        out.write_all(&head)?;
        out.write_all(&kept)?;
    }
    Ok(())
}
