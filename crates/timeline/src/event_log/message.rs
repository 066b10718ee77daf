//! Protobuf's encoding of one message, without a schema.

use crate::varint::varint;

/// Value of a field.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, in order.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    fields: Vec<(u32, Value<'a>)>,
    length: usize,
}

impl<'a> Message<'a> {
    /// Splits a message into its fields.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let cut = "a field is cut";
        let mut fields = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (key, after) = varint(rest).ok_or(cut)?;
            let field = u32::try_from(key >> 3).map_err(|_| "a field's number is too large")?;
            let (value, after) = match key & 7 {
                0 => varint(after).map(|(v, after)| (Value::Number(v), after)).ok_or(cut)?,
                1 => {
                    let (v, after) = after.split_first_chunk().ok_or(cut)?;
                    (Value::Number(u64::from_le_bytes(*v)), after)
                }
                2 => {
                    let (length, after) = varint(after).ok_or(cut)?;
                    let length = usize::try_from(length).ok().filter(|l| *l <= after.len()).ok_or(cut)?;
                    let (v, after) = after.split_at(length);
                    (Value::Bytes(v), after)
                }
                5 => {
                    let (v, after) = after.split_first_chunk().ok_or(cut)?;
                    (Value::Number(u32::from_le_bytes(*v).into()), after)
                }
                _ => return Err("a field of an unknown kind"),
            };
            fields.push((field, value));
            rest = after;
        }
        Ok(Self { fields, length: bytes.len() })
    }

    /// Bytes of the whole message.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// A number; the last counts, as protobuf has it.
    pub(super) fn number(&self, field: u32) -> Option<u64> {
        self.fields.iter().rev().find_map(|(f, v)| match v {
            Value::Number(n) if *f == field => Some(*n),
            _ => None,
        })
    }

    /// A number that fits 32 bits, else its lower ones.
    pub(super) fn small(&self, field: u32) -> Option<u32> {
        self.number(field).map(|n| n as u32)
    }

    /// Bytes.
    pub(super) fn bytes(&self, field: u32) -> Option<&'a [u8]> {
        self.fields.iter().rev().find_map(|(f, v)| match v {
            Value::Bytes(b) if *f == field => Some(*b),
            _ => None,
        })
    }
}
