//! RtcEventLog of version 2.
//!
//! A file is one protobuf message without a header, and its records may come in any order of time. It is read field by
//! field instead of as one message, so that a file that breaks off yields all whole records before. Numbers of fields
//! are those of libwebrtc's `logging/rtc_event_log/rtc_event_log2.proto`; unknown ones are skipped.

mod batch;
mod message;
mod records;

use crate::ReadError;
use crate::input::{Input, Taken};
use crate::recording::Recording;
use crate::schema::{Clock, Stop};
use crate::varint::varint;
use records::Reader;
use weir_units::TimeDelta;

/// Longest record. A batch holds a few seconds of packets, some 100 kB.
const MAX_RECORD: u64 = 64 << 20;

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Result<Option<Stop>, ReadError> {
    let mut reader = Reader::default();
    let mut body = Vec::new();
    let mut records = 0u64;
    let stop = loop {
        let (offset, cost) = (input.offset(), out.cost());
        let stop = |why: String| Some(Stop { offset, why });
        let (field, length) = match header(input) {
            Ok(Some(header)) => header,
            Ok(None) => break None,
            Err(why) => break stop(why),
        };
        if length > MAX_RECORD {
            break stop(format!("a record of {length} bytes"));
        }
        match input.take(length as usize, &mut body) {
            Taken::Whole => {}
            Taken::End if length == 0 => {}
            Taken::End => break stop("the file ends before a record's content".into()),
            Taken::Cut(why) => break stop(why),
        }
        records += 1;
        if let Err(why) = reader.record(out, field, &body) {
            // Fields are any number in a damaged file.
            let name = if field < 128 { format!("records of field {field}: {why}") } else { "unknown records".into() };
            out.damage(offset, &name, || format!("a record of field {field}: {why}"));
        }
        out.charge(cost);
        if let Some(why) = out.full() {
            break stop(why);
        }
    };
    if records == 0 {
        let why = stop.map_or("no record".into(), |s| s.why);
        return Err(ReadError::Unknown(format!("an event log without a whole record: {why}")));
    }
    if let Some(offset) = reader.utc_offset() {
        out.clock = Clock::Utc;
        out.shift(TimeDelta::from_millis(offset));
    }
    reader.rtcp(out);
    Ok(stop)
}

/// Number and length of the next record; `None` at the end of the file.
fn header(input: &mut Input<'_>) -> Result<Option<(u64, u64)>, String> {
    let head = input.peek(20).map_err(|e| e.to_string())?;
    if head.is_empty() {
        return Ok(None);
    }
    let cut = || "the file ends within the head of a record".to_owned();
    let (key, rest) = varint(head).ok_or_else(cut)?;
    let (field, kind) = (key >> 3, key & 7);
    if kind != 2 || field == 0 {
        return Err(format!("no record begins here: key {key}"));
    }
    let (length, rest) = varint(rest).ok_or_else(cut)?;
    let used = head.len() - rest.len();
    let mut skipped = Vec::new();
    match input.take(used, &mut skipped) {
        Taken::Whole => Ok(Some((field, length))),
        _ => Err(cut()),
    }
}

#[cfg(test)]
mod tests;
