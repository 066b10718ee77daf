use super::{APP, RawPacket, frame};
use crate::read::Reader;
use crate::{Entry, Error};
use weir_units::{DataRate, TimeDelta};

/// Application-defined packet (RFC 3550, section 6.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct App<'a> {
    /// Subtype, 5 bits.
    pub subtype: u8,
    /// Who sends it.
    pub ssrc: u32,
    /// Whose format it is, in ASCII.
    pub name: [u8; 4],
    /// The data, in whole words; zeros fill the last one.
    pub data: &'a [u8],
}

impl<'a> App<'a> {
    /// Reads a packet.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let (ssrc, name) = (r.u32("APP SSRC")?, r.u32("APP name")?);
        Ok(Self { subtype: raw.count(), ssrc, name: name.to_be_bytes(), data: r.rest() })
    }
    /// Appends the packet.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, self.subtype, APP, |out| {
            self.ssrc.write_into(out);
            out.extend_from_slice(&self.name);
            out.extend_from_slice(self.data);
        });
    }
}

/// Name of the APP packet that carries a [`NadaReport`].
pub const NADA_NAME: [u8; 4] = *b"NADA";

/// What a NADA receiver tells its sender (RFC 8698, section 5.3), in an APP packet of name "NADA" and subtype 0.
///
/// The RFC lists the values and leaves their packet open. Weir's is:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |V=2|P| subtype |  PT=APP=204   |           length = 5          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                 SSRC of the report's sender                   |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                            "NADA"                             |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                  SSRC of the media source                     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |R|                       x_curr, us                            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       r_recv, bit/s                           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
///
/// R is rmode. `x_curr` has 31 bits in microseconds where the RFC suggests 15 in 100 us: 100 us is one per cent of a
/// 10 ms signal, and a word is there anyway. Values past the fields saturate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NadaReport {
    /// Who sends it.
    pub sender_ssrc: u32,
    /// The stream that it is about.
    pub media_ssrc: u32,
    /// rmode: gradual update (1) rather than accelerated ramp-up (0).
    pub gradual: bool,
    /// Aggregated congestion signal, from 0 to 2,147 s, to the nearest microsecond.
    pub x_curr: TimeDelta,
    /// Receiving rate, up to 4.29 Gbit/s.
    pub r_recv: DataRate,
}

impl NadaReport {
    /// The report in an APP packet; `None` where name, subtype or length is another.
    pub fn from_app(app: &App<'_>) -> Option<Self> {
        if app.name != NADA_NAME || app.subtype != 0 || app.data.len() != 12 {
            return None;
        }
        let mut r = Reader::new(app.data, 0);
        let mut word = || r.u32("NADA report").ok();
        let (media_ssrc, mode_and_signal, r_recv) = (word()?, word()?, word()?);
        Some(Self {
            sender_ssrc: app.ssrc,
            media_ssrc,
            gradual: mode_and_signal >> 31 != 0,
            x_curr: TimeDelta::from_micros(i64::from(mode_and_signal & 0x7fff_ffff)),
            r_recv: DataRate::from_bps(r_recv.into()),
        })
    }
    /// Appends the packet.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        let us = (self.x_curr.as_nanos().saturating_add(500) / 1_000).clamp(0, 0x7fff_ffff) as u32;
        frame(out, 0, APP, |out| {
            self.sender_ssrc.write_into(out);
            out.extend_from_slice(&NADA_NAME);
            self.media_ssrc.write_into(out);
            (u32::from(self.gradual) << 31 | us).write_into(out);
            u32::try_from(self.r_recv.as_bps()).unwrap_or(u32::MAX).write_into(out);
        });
    }
}
