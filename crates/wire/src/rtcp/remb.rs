use super::control::ScaledRate;
use super::{PSFB, RawPacket, frame};
use crate::{Entry, Error, List};

/// FMT of application layer feedback (RFC 4585, section 6.4).
pub(super) const FMT: u8 = 15;
const IDENTIFIER: [u8; 4] = *b"REMB";

/// Receiver estimated maximum bit rate (draft-alvestrand-rmcat-remb-03, section 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Remb<'a> {
    /// SSRC of the sender.
    pub sender_ssrc: u32,
    /// The "media source" field, 0 by the draft.
    pub media_ssrc: u32,
    /// The estimate for all streams together, without packet overhead.
    pub rate: ScaledRate<18>,
    /// The streams; at most 255 are written.
    pub sources: List<'a, u32>,
}

impl<'a> Remb<'a> {
    /// Whether application layer feedback is a REMB.
    pub(super) fn is_in(raw: &RawPacket<'_>) -> bool {
        raw.body().get(8..12) == Some(&IDENTIFIER)
    }
    /// Reads a message.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let (sender_ssrc, media_ssrc) = (r.u32("REMB sender SSRC")?, r.u32("REMB media SSRC")?);
        let offset = r.offset();
        let identifier = r.u32("REMB identifier")?;
        if identifier.to_be_bytes() != IDENTIFIER {
            let value = identifier.into();
            return Err(Error::Value { field: "REMB identifier", offset, value, expected: "\"REMB\"" });
        }
        let bits = r.u32("REMB number of SSRCs and rate")?;
        let sources = r.take("REMB SSRCs", (bits >> 24) as usize * 4)?;
        Ok(Self { sender_ssrc, media_ssrc, rate: ScaledRate::from_bits(bits), sources: List::from_wire(sources) })
    }
    /// Appends the message.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, FMT, PSFB, |out| {
            self.sender_ssrc.write_into(out);
            self.media_ssrc.write_into(out);
            out.extend_from_slice(&IDENTIFIER);
            ((self.sources.len().min(255) as u32) << 24 | self.rate.bits()).write_into(out);
            self.sources.write_up_to(255, out);
        });
    }
}
