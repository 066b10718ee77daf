//! Framing of pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng).

use crate::input::{Input, Taken};
use crate::recording::Recording;
use crate::schema::Stop;
use weir_units::Timestamp;

/// Longest packet or block that is read.
const MAX_BLOCK: u32 = 1 << 20;
/// Most interfaces of a section.
const MAX_INTERFACES: usize = 1024;

/// A captured packet.
#[derive(Debug)]
pub(super) struct Captured<'a> {
    pub(super) at: Timestamp,
    /// Link type (LINKTYPE_ of tcpdump.org).
    pub(super) link: u16,
    pub(super) bytes: &'a [u8],
}

/// Receiver of packets.
type Sink<'s> = dyn FnMut(&mut Recording, &Captured<'_>) + 's;

pub(super) fn read(input: &mut Input<'_>, out: &mut Recording, sink: &mut Sink<'_>) -> Option<Stop> {
    let mut offset = 0;
    let why = match input.peek(4) {
        Ok([0x0a, 0x0d, 0x0d, 0x0a]) => pcapng(input, out, sink, &mut offset),
        Ok(_) => pcap(input, out, sink, &mut offset),
        Err(e) => Err(e.to_string()),
    };
    why.err().map(|why| Stop { offset, why })
}

/// Numbers in the byte order of the file.
#[derive(Clone, Copy)]
struct Order {
    little: bool,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let b = [bytes[at], bytes[at + 1]];
        if self.little { u16::from_le_bytes(b) } else { u16::from_be_bytes(b) }
    }
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let b = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.little { u32::from_le_bytes(b) } else { u32::from_be_bytes(b) }
    }
}

/// Takes `n` bytes; false at the end of the file.
fn take(input: &mut Input<'_>, n: usize, out: &mut Vec<u8>) -> Result<bool, String> {
    match input.take(n, out) {
        Taken::Whole => Ok(true),
        Taken::End => Ok(n == 0),
        Taken::Cut(why) => Err(why),
    }
}

fn pcap(input: &mut Input<'_>, out: &mut Recording, sink: &mut Sink<'_>, offset: &mut u64) -> Result<(), String> {
    let (mut head, mut bytes) = (Vec::new(), Vec::new());
    if !take(input, 24, &mut head)? {
        return Err("no header".into());
    }
    let order = Order { little: matches!(head[0], 0xd4 | 0x4d) };
    let nanos = head.contains(&0x4d);
    let link = order.u32(&head, 20) as u16;
    loop {
        *offset = input.offset();
        if !take(input, 16, &mut head)? {
            return Ok(());
        }
        let captured = order.u32(&head, 8);
        if captured > MAX_BLOCK {
            return Err(format!("a packet of {captured} bytes"));
        }
        if !take(input, captured as usize, &mut bytes)? {
            return Err("the file ends before a packet's bytes".into());
        }
        let fraction = i64::from(order.u32(&head, 4));
        let ns = i64::from(order.u32(&head, 0)) * 1_000_000_000 + if nanos { fraction } else { fraction * 1000 };
        sink(out, &Captured { at: Timestamp::from_nanos(ns), link, bytes: &bytes });
        if let Some(why) = out.full() {
            return Err(why);
        }
    }
}

/// An interface of a pcapng section.
#[derive(Clone, Copy)]
struct Interface {
    link: u16,
    /// Units of its times in a second.
    per_second: u64,
}

/// Units in a second of `if_tsresol`.
fn per_second(resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(exponent).unwrap_or(1_000_000)
}

fn pcapng(input: &mut Input<'_>, out: &mut Recording, sink: &mut Sink<'_>, offset: &mut u64) -> Result<(), String> {
    let (mut head, mut body) = (Vec::new(), Vec::new());
    let mut order = Order { little: true };
    let mut interfaces: Vec<Interface> = Vec::new();
    loop {
        *offset = input.offset();
        if !take(input, 8, &mut head)? {
            return Ok(());
        }
        let section = head.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
        if section {
            let magic = input.peek(4).map_err(|e| e.to_string())?;
            order = match magic {
                [0x4d, 0x3c, 0x2b, 0x1a] => Order { little: true },
                [0x1a, 0x2b, 0x3c, 0x4d] => Order { little: false },
                _ => return Err("a section without its byte order".into()),
            };
            interfaces.clear();
        }
        let length = order.u32(&head, 4);
        if !(12..=MAX_BLOCK).contains(&length) || !length.is_multiple_of(4) {
            return Err(format!("a block of {length} bytes"));
        }
        if !take(input, length as usize - 8, &mut body)? {
            return Err("the file ends before a block's content".into());
        }
        let body = &body[..body.len() - 4];
        match order.u32(&head, 0) {
            1 if body.len() >= 8 => {
                if interfaces.len() == MAX_INTERFACES {
                    return Err(format!("more than {MAX_INTERFACES} interfaces"));
                }
                interfaces.push(Interface { link: order.u16(body, 0), per_second: resolution(order, &body[8..]) });
            }
            // Enhanced packet; simple ones have no time and are passed over.
            6 if body.len() >= 20 => {
                match (interfaces.get(order.u32(body, 0) as usize), body[20..].get(..order.u32(body, 12) as usize)) {
                    (Some(interface), Some(bytes)) => {
                        let ticks = u64::from(order.u32(body, 4)) << 32 | u64::from(order.u32(body, 8));
                        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(interface.per_second);
                        let at = Timestamp::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX));
                        sink(out, &Captured { at, link: interface.link, bytes });
                    }
                    (None, _) => empty(out, "packets of an interface that is not described"),
                    (_, None) => empty(out, "packets longer than their block"),
                }
            }
            3 => empty(out, "packets without a time"),
            _ => _ = out.room(1),
        }
        if let Some(why) = out.full() {
            return Err(why);
        }
    }
}

/// A block that has no packet: it costs as much as one, since a small file expands to billions of them.
fn empty(out: &mut Recording, what: &str) {
    out.room(1);
    out.fault(what);
}

/// Units in a second, of an interface's options; microseconds without one.
fn resolution(order: Order, mut options: &[u8]) -> u64 {
    while options.len() >= 4 {
        let (code, length) = (order.u16(options, 0), usize::from(order.u16(options, 2)));
        let Some(value) = options[4..].get(..length) else { break };
        match (code, value) {
            (0, _) => break,
            (9, [resolution, ..]) => return per_second(*resolution),
            _ => {}
        }
        let padded = length.div_ceil(4) * 4;
        options = options[4..].get(padded..).unwrap_or_default();
    }
    1_000_000
}
