//! Event logs: RTCP has texts; unknown records are left out.

use super::{Redacted, rtcp, take};
use crate::input::Input;
use crate::varint::varint;
use std::io::{self, Write};

/// Longest record.
const MAX_RECORD: u64 = 64 << 20;

pub(super) fn redact(input: &mut Input<'_>, out: &mut dyn Write, done: &mut Redacted) -> io::Result<()> {
    let (mut head, mut body) = (Vec::new(), Vec::new());
    loop {
        let ahead = input.peek(20)?;
        if ahead.is_empty() {
            return Ok(());
        }
        let parsed =
            varint(ahead).and_then(|(key, rest)| varint(rest).map(|(n, rest)| (key, n, ahead.len() - rest.len())));
        let Some((key, length, used)) = parsed.filter(|(key, n, _)| key & 7 == 2 && *n <= MAX_RECORD) else {
            done.stop = Some("no record begins here".into());
            return Ok(());
        };
        if !take(input, used, &mut head, done) || !take(input, length as usize, &mut body, done) {
            done.stop.get_or_insert("the file ends within a record".into());
            return Ok(());
        }
        let keep = match key >> 3 {
            4 | 5 => packets(&mut body),
            2 | 3 | 6 | 7 | 16..=19 | 21..=25 | 27 | 32..=34 | 101..=104 => numbers(&body),
            _ => false,
        };
        if keep {
            out.write_all(&head)?;
            out.write_all(&body)?;
        } else {
            done.left_out += 1;
        }
    }
}

/// Fields of a message: number, kind, and the range of its bytes if it has any.
fn fields(body: &[u8]) -> Option<Vec<(u64, u64, std::ops::Range<usize>)>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < body.len() {
        let (key, rest) = varint(&body[at..])?;
        let mut from = body.len() - rest.len();
        let to = match key & 7 {
            0 => body.len() - varint(rest)?.1.len(),
            1 => from.checked_add(8)?,
            2 => {
                let (length, rest) = varint(rest)?;
                from = body.len() - rest.len();
                from.checked_add(usize::try_from(length).ok()?)?
            }
            5 => from.checked_add(4)?,
            _ => return None,
        };
        if to > body.len() {
            return None;
        }
        found.push((key >> 3, key & 7, from..to));
        at = to;
    }
    Some(found)
}

/// Whether a record is numbers and their deltas alone. Batches keep deltas 100 above the field; others have no bytes but
/// the extensions of a stream (101 to 104), which are numbers too.
fn numbers(body: &[u8]) -> bool {
    fields(body).is_some_and(|all| all.iter().all(|(field, kind, _)| *kind != 2 || *field > 100 || *field <= 6))
}

/// Replaces texts in the RTCP packets of a record; false where it cannot be read.
fn packets(body: &mut [u8]) -> bool {
    let Some(all) = fields(body) else { return false };
    for (field, kind, range) in all {
        match (field, kind) {
            (2, 2) => rtcp::compound(&mut body[range]),
            (102, 2) => {
                // Lengths of all packets, then their bytes: as many lengths as fill the rest.
                let Some((lengths, first)) = lengths(&body[range.clone()]) else { return false };
                let mut at = range.start + first;
                for length in lengths {
                    rtcp::compound(&mut body[at..at + length]);
                    at += length;
                }
            }
            (101, _) | (_, 0) => {}
            _ => return false,
        }
    }
    true
}

/// Lengths of the blobs in a list, and where the first one begins.
fn lengths(list: &[u8]) -> Option<(Vec<usize>, usize)> {
    let (mut all, mut sum, mut rest) = (Vec::new(), 0usize, list);
    // Another field has the count. The blobs begin where the lengths read so far add up to the bytes that are left.
    while sum != rest.len() || all.is_empty() {
        let (length, after) = varint(rest)?;
        let length = usize::try_from(length).ok()?;
        (sum, rest) = (sum.checked_add(length)?, after);
        if sum > rest.len() {
            return None;
        }
        all.push(length);
    }
    Some((all, list.len() - rest.len()))
}
