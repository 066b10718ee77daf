use super::{BYE, MAX_COUNT, RawPacket, frame};
use crate::{Error, List};

/// Goodbye (RFC 3550, section 6.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bye<'a> {
    /// The sources that leave; at most 31 are written.
    pub sources: List<'a, u32>,
    /// The reason, UTF-8 by the RFC but not checked; truncated to 255 bytes.
    pub reason: Option<&'a [u8]>,
}

impl<'a> Bye<'a> {
    /// Reads a packet.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let sources = List::from_wire(r.take("BYE sources", usize::from(raw.count()) * 4)?);
        let reason = if r.is_empty() {
            None
        } else {
            let length = r.u8("BYE reason length")?;
            Some(r.take("BYE reason", length.into())?)
        };
        Ok(Self { sources, reason })
    }
    /// Appends the packet.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, self.sources.len().min(MAX_COUNT) as u8, BYE, |out| {
            self.sources.write_up_to(MAX_COUNT, out);
            if let Some(reason) = self.reason {
                let reason = &reason[..reason.len().min(255)];
                out.push(reason.len() as u8);
                out.extend_from_slice(reason);
            }
        });
    }
}
