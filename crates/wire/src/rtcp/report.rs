use super::{MAX_COUNT, RR, RawPacket, SR, frame};
use crate::ntp::NtpTime;
use crate::read::be32;
use crate::{Entry, Error, List};

/// Reception of one source (RFC 3550, section 6.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReportBlock {
    /// The source reported on.
    pub ssrc: u32,
    /// Share of packets lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the start, 24 bits signed; clamped when written.
    pub cumulative_lost: i32,
    /// Extended highest sequence number received: cycles in the upper half.
    pub highest_sequence: u32,
    /// Interarrival jitter, in units of the RTP clock.
    pub jitter: u32,
    /// Middle 32 bits of the last SR's NTP time, 0 for none yet.
    pub last_sr: u32,
    /// Time since that SR was received, in units of 2^-16 s.
    pub delay_since_last_sr: u32,
}

impl Entry for ReportBlock {
    const SIZE: usize = 24;
    fn read(b: &[u8]) -> Self {
        let loss = be32(b, 4);
        Self {
            ssrc: be32(b, 0),
            fraction_lost: (loss >> 24) as u8,
            cumulative_lost: (loss << 8) as i32 >> 8,
            highest_sequence: be32(b, 8),
            jitter: be32(b, 12),
            last_sr: be32(b, 16),
            delay_since_last_sr: be32(b, 20),
        }
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        let lost = self.cumulative_lost.clamp(-0x80_0000, 0x7f_ffff) as u32 & 0xff_ffff;
        let words = [
            self.ssrc,
            u32::from(self.fraction_lost) << 24 | lost,
            self.highest_sequence,
            self.jitter,
            self.last_sr,
            self.delay_since_last_sr,
        ];
        words.iter().for_each(|w| w.write_into(out));
    }
}

/// A sender's information about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderInfo {
    /// When the report was sent.
    pub ntp: NtpTime,
    /// The same time by the RTP clock.
    pub rtp_timestamp: u32,
    /// Packets sent since the start.
    pub packets: u32,
    /// Payload octets sent since the start.
    pub octets: u32,
}

/// Sender report (RFC 3550, section 6.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderReport<'a> {
    /// SSRC of the sender.
    pub ssrc: u32,
    /// Its information about itself.
    pub info: SenderInfo,
    /// Reception reports; at most 31 blocks are written.
    pub blocks: List<'a, ReportBlock>,
    /// Profile-specific extension, in whole words.
    pub extension: &'a [u8],
}

impl<'a> SenderReport<'a> {
    /// Reads a report.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let ssrc = r.u32("SR SSRC")?;
        let ntp = NtpTime::from_bits(r.u64("SR NTP timestamp")?);
        let info = SenderInfo {
            ntp,
            rtp_timestamp: r.u32("SR RTP timestamp")?,
            packets: r.u32("SR packet count")?,
            octets: r.u32("SR octet count")?,
        };
        let blocks = r.take("SR report blocks", usize::from(raw.count()) * ReportBlock::SIZE)?;
        Ok(Self { ssrc, info, blocks: List::from_wire(blocks), extension: r.rest() })
    }
    /// Appends the report.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, self.blocks.len().min(MAX_COUNT) as u8, SR, |out| {
            self.ssrc.write_into(out);
            out.extend_from_slice(&self.info.ntp.bits().to_be_bytes());
            [self.info.rtp_timestamp, self.info.packets, self.info.octets].iter().for_each(|w| w.write_into(out));
            self.blocks.write_up_to(MAX_COUNT, out);
            out.extend_from_slice(self.extension);
        });
    }
}

/// Receiver report (RFC 3550, section 6.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiverReport<'a> {
    /// SSRC of the sender.
    pub ssrc: u32,
    /// Reception reports; at most 31 blocks are written.
    pub blocks: List<'a, ReportBlock>,
    /// Profile-specific extension, in whole words.
    pub extension: &'a [u8],
}

impl<'a> ReceiverReport<'a> {
    /// Reads a report.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let ssrc = r.u32("RR SSRC")?;
        let blocks = r.take("RR report blocks", usize::from(raw.count()) * ReportBlock::SIZE)?;
        Ok(Self { ssrc, blocks: List::from_wire(blocks), extension: r.rest() })
    }
    /// Appends the report.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, self.blocks.len().min(MAX_COUNT) as u8, RR, |out| {
            self.ssrc.write_into(out);
            self.blocks.write_up_to(MAX_COUNT, out);
            out.extend_from_slice(self.extension);
        });
    }
}
