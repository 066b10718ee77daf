use super::{RTPFB, RawPacket, frame};
use crate::{Entry, Error};

pub(super) const FMT: u8 = 5;

/// Rapid resynchronisation request, RTCP-SR-REQ: requests an early sender report (RFC 6051, section 3.2).
///
/// A message with content, which the RFC forbids, stays in [`Packet::Other`](super::Packet::Other).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SrRequest {
    /// The receiver that cannot synchronise.
    pub sender_ssrc: u32,
    /// The source whose sender report is requested.
    pub media_ssrc: u32,
}

impl SrRequest {
    /// Whether a packet of this format has no content.
    pub(super) fn is_in(raw: &RawPacket<'_>) -> bool {
        raw.body().len() <= 8
    }
    /// Reads a message.
    pub fn parse(raw: &RawPacket<'_>) -> Result<Self, Error> {
        let mut r = raw.reader();
        Ok(Self { sender_ssrc: r.u32("RTCP-SR-REQ sender SSRC")?, media_ssrc: r.u32("RTCP-SR-REQ media SSRC")? })
    }
    /// Appends the message.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, FMT, RTPFB, |out| {
            self.sender_ssrc.write_into(out);
            self.media_ssrc.write_into(out);
        });
    }
}
