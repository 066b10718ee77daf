//! The binary form of the protocol: the fields of [`protocol`](crate::protocol) at fixed places, for estimators without a JSON library.
//!
//! It begins after the answer to turn 0, which asks for it (`"form":"binary"`). Numbers are little-endian, and every field is at a multiple of
//! its size, so that a C program may read them as structures. Both messages begin with a head of 16 bytes: the bytes that follow it
//! (`u32`), a count (`u32`), and the turn (`u64`). `docs/estimators.md` has the places of all fields.
//!
//! ```
//! use weir_estimator::binary::{read_answer, read_turn, write_answer, write_turn};
//! use weir_estimator::protocol::{Answer, Event};
//!
//! let mut out = Vec::new();
//! write_turn(7, &[Event::Timer { now_ns: 5 }], &mut out);
//! assert_eq!(out, [&[16, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0][..], &[7, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]].concat());
//! assert_eq!(read_turn(&out)?.events, [Event::Timer { now_ns: 5 }]);
//! out.clear();
//! write_answer(&Answer { turn: 7, media_bps: 5e5, ..Answer::default() }, &mut out);
//! assert_eq!(read_answer(&out)?.media_bps, 5e5);
//! # Ok::<(), String>(())
//! ```

mod turn;

pub use turn::{read_turn, write_turn};

use crate::protocol::{Answer, Message, Probe, Repair};

/// Bytes of the head of a message.
pub const HEAD: usize = 16;
/// Bytes of an answer after its head, without probes.
pub const ANSWER: usize = 56;
/// Bytes of a probe.
pub const PROBE: usize = 24;

const PACING: u32 = 1;
const PACES_PAYLOAD: u32 = 1 << 1;
const PADDING: u32 = 1 << 2;
const WINDOW: u32 = 1 << 3;
const QUEUE_AGE: u32 = 1 << 4;
const OVERHEAD: u32 = 1 << 5;
const TIMER: u32 = 1 << 6;
const REMB: u32 = 1 << 7;
const TMMBR: u32 = 1 << 8;
const PARITY: u32 = 1 << 9;
const STANDBY: u32 = 1 << 10;
const REED_SOLOMON: u32 = 1 << 11;
const KNOWN: u32 = (1 << 12) - 1;

/// The head of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    /// Bytes after it.
    pub(crate) length: u32,
    /// Events of a turn, probes of an answer.
    pub(crate) count: u32,
    pub(crate) turn: u64,
}

impl Head {
    /// The head that a message begins with.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut from = Fields(bytes);
        Ok(Self { length: from.u32()?, count: from.u32()?, turn: from.u64()? })
    }

    /// Why no answer has this head.
    pub(crate) fn fault(self, most_probes: usize) -> Option<String> {
        let probes = self.count as usize;
        if probes > most_probes {
            return Some(format!("its head has {probes} probes; expected at most {most_probes}"));
        }
        let expected = ANSWER + PROBE * probes;
        let is_right = self.length as usize == expected;
        (!is_right)
            .then(|| format!("its head has a length of {}; expected {expected} with {probes} probes", self.length))
    }
}

/// Fields one after another.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("it ends within a field")?;
        self.0 = rest;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.try_into().unwrap_or([0; N]))
    }
    fn u8(&mut self) -> Result<u8, String> {
        Ok(self.array::<1>()?[0])
    }
    fn u16(&mut self) -> Result<u16, String> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    fn i64(&mut self) -> Result<i64, String> {
        Ok(i64::from_le_bytes(self.array()?))
    }
    fn f64(&mut self) -> Result<f64, String> {
        Ok(f64::from_le_bytes(self.array()?))
    }
    /// A value that is there where a bit says so.
    fn where_set<T>(&self, is_set: bool, value: T) -> Option<T> {
        is_set.then_some(value)
    }
}

/// Leaves room for a head, writes what follows it, and then the head.
fn framed(count: usize, turn: u64, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend([0; HEAD]);
    body(out);
    // Batches are bounded far below.
    let length = u32::try_from(out.len() - begin - HEAD).unwrap_or(u32::MAX);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
    out[begin + 4..begin + 8].copy_from_slice(&count.to_le_bytes());
    out[begin + 8..begin + HEAD].copy_from_slice(&turn.to_le_bytes());
}

/// Appends an answer, without its `about`, which is JSON in any case.
pub fn write_answer(a: &Answer, out: &mut Vec<u8>) {
    let flag = |is: bool, bit: u32| if is { bit } else { 0 };
    let flags = flag(a.pacing_bps.is_some(), PACING)
        | flag(a.paces_payload, PACES_PAYLOAD)
        | flag(a.padding_bps.is_some(), PADDING)
        | flag(a.window_bytes.is_some(), WINDOW)
        | flag(a.max_queue_age_ns.is_some(), QUEUE_AGE)
        | flag(a.overhead_bytes.is_some(), OVERHEAD)
        | flag(a.timer_ns.is_some(), TIMER)
        | flag(a.report == Some(Message::Remb), REMB)
        | flag(a.report == Some(Message::Tmmbr), TMMBR);
    let (scheme, repair) = match a.repair {
        None => (0, [0, 0]),
        Some(Repair::Parity { interval }) => (PARITY, [interval, 0]),
        Some(Repair::Standby { interval }) => (STANDBY, [interval, 0]),
        Some(Repair::ReedSolomon { block, repair }) => (REED_SOLOMON, [block, repair]),
    };
    let flags = flags | scheme;
    let overhead = u16::try_from(a.overhead_bytes.unwrap_or_default()).unwrap_or(u16::MAX);
    framed(a.probes.len(), a.turn, out, |out| {
        out.extend(flags.to_le_bytes());
        out.extend(overhead.to_le_bytes());
        out.extend(repair);
        for rate in [Some(a.media_bps), a.pacing_bps, a.padding_bps] {
            out.extend(rate.unwrap_or_default().to_le_bytes());
        }
        out.extend(a.window_bytes.unwrap_or_default().to_le_bytes());
        out.extend(a.max_queue_age_ns.unwrap_or_default().to_le_bytes());
        out.extend(a.timer_ns.unwrap_or_default().to_le_bytes());
        for p in &a.probes {
            out.extend(p.id.to_le_bytes());
            out.extend(p.min_packets.to_le_bytes());
            out.extend(p.rate_bps.to_le_bytes());
            out.extend(p.min_bytes.to_le_bytes());
        }
    });
}

/// An answer from its bytes.
///
/// # Errors
/// It has another length than its head says, bits without a meaning, or a rate that is no number.
pub fn read_answer(bytes: &[u8]) -> Result<Answer, String> {
    let head = Head::read(bytes)?;
    if let Some(fault) = head.fault(bytes.len() / PROBE) {
        return Err(fault);
    }
    let mut from = Fields(&bytes[HEAD..]);
    if from.0.len() != head.length as usize {
        return Err(format!("{} bytes follow its head, which has a length of {}", from.0.len(), head.length));
    }
    let flags = from.u32()?;
    if flags & !KNOWN != 0 {
        return Err(format!("its flags are {flags:#x}; bits above {KNOWN:#x} have no meaning"));
    }
    let has = |bit: u32| flags & bit != 0;
    let report = match (has(REMB), has(TMMBR)) {
        (false, false) => None,
        (true, false) => Some(Message::Remb),
        (false, true) => Some(Message::Tmmbr),
        (true, true) => return Err(format!("its flags are {flags:#x}: one of REMB and TMMBR can be sent")),
    };
    let overhead = from.u16()?;
    let (first, second) = (from.u8()?, from.u8()?);
    let repair = match (flags & (PARITY | STANDBY | REED_SOLOMON), first, second) {
        (0, 0, 0) => None,
        (PARITY, interval, 0) => Some(Repair::Parity { interval }),
        (STANDBY, interval, 0) => Some(Repair::Standby { interval }),
        (REED_SOLOMON, block, repair) => Some(Repair::ReedSolomon { block, repair }),
        _ => {
            return Err(format!(
                "its flags are {flags:#x}, and its repair is {first} and {second}: no scheme has both"
            ));
        }
    };
    let rate = |field: &str, bps: f64| {
        if bps.is_finite() { Ok(bps) } else { Err(format!("{field} = {bps}; expected a number")) }
    };
    let media_bps = rate("media_bps", from.f64()?)?;
    let [pacing, padding] = [rate("pacing_bps", from.f64()?)?, rate("padding_bps", from.f64()?)?];
    let (window, age, timer) = (from.u64()?, from.i64()?, from.i64()?);
    let mut probes = Vec::new();
    for _ in 0..head.count {
        let (id, min_packets) = (from.u32()?, from.u32()?);
        let rate_bps = rate("probes.rate_bps", from.f64()?)?;
        probes.push(Probe { id, rate_bps, min_packets, min_bytes: from.u64()? });
    }
    Ok(Answer {
        turn: head.turn,
        media_bps,
        pacing_bps: from.where_set(has(PACING), pacing),
        paces_payload: has(PACES_PAYLOAD),
        padding_bps: from.where_set(has(PADDING), padding),
        window_bytes: from.where_set(has(WINDOW), window),
        max_queue_age_ns: from.where_set(has(QUEUE_AGE), age),
        overhead_bytes: from.where_set(has(OVERHEAD), u64::from(overhead)),
        timer_ns: from.where_set(has(TIMER), timer),
        repair,
        probes,
        report,
        about: None,
    })
}

#[cfg(test)]
mod tests;
