use super::{APP, RawPacket, frame};
use crate::ntp::{compact_to_delta, delta_to_compact};
use crate::read::{Reader, be16, be32};
use crate::{Entry, Error, List};
use weir_units::{DataRate, DataSize, TimeDelta};

/// Application-defined packet (RFC 3550, section 6.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct App<'a> {
    /// Subtype, 5 bits.
    pub subtype: u8,
    /// SSRC of the sender.
    pub ssrc: u32,
    /// The owner of the format, in ASCII.
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

/// A NADA receiver's report (RFC 8698, section 5.3), in an APP packet with name "NADA" and subtype 0.
///
/// The RFC lists the values and does not specify the packet. Weir's is:
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
/// R is rmode. `x_curr` has 31 bits in microseconds; the RFC suggests 15 bits in units of 100 us, which is one per cent
/// of a 10 ms signal, whereas a word is available in any case. Values out of range saturate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NadaReport {
    /// SSRC of the sender.
    pub sender_ssrc: u32,
    /// The stream that it concerns.
    pub media_ssrc: u32,
    /// rmode: gradual update (1) rather than accelerated ramp-up (0).
    pub gradual: bool,
    /// Aggregated congestion signal, from 0 to 2,147 s, to the nearest microsecond.
    pub x_curr: TimeDelta,
    /// Receiving rate, up to 4.29 Gbit/s.
    pub r_recv: DataRate,
}

impl NadaReport {
    /// The report in an APP packet; `None` if name, subtype or length differ.
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

/// Name of the APP packet that carries a [`OneWayDelayReport`].
pub const OWD_NAME: [u8; 4] = *b"OWD ";

/// One-way delay over a range of packets, in an APP packet with name "OWD " and subtype 0.
///
/// The packet is Weir's own. Controllers with one-way delay as a cue were described with an Internet-Draft of an
/// extended report block ("RTCP XR Report Block for One Way Delay metric Reporting", R. van Brandenburg and others,
/// 2012), which expired before a block type was assigned; the delay block of RFC 6843 has the round-trip time. It is
/// therefore not an extended report and uses no block type:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |V=2|P| subtype |  PT=APP=204   |           length = 7          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                 SSRC of the report's sender                   |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                            "OWD "                             |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                  SSRC of the media source                     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |          begin_seq            |             end_seq           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                   least delay, 1/65,536 s                     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                    mean delay, 1/65,536 s                     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                   latest delay, 1/65,536 s                    |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
///
/// `begin_seq` and `end_seq` are as in extended reports (RFC 3611, section 4.1). If the clocks of both ends are not
/// synchronised the delays are the receiver's estimates, relative to the minimum so far, which is the queuing delay.
/// Negative delays are written as 0, those over 18.2 hours as the maximum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OneWayDelayReport {
    /// SSRC of the sender.
    pub sender_ssrc: u32,
    /// The stream that it concerns.
    pub media_ssrc: u32,
    /// The first sequence number of the range.
    pub begin: u16,
    /// The one after the last.
    pub end: u16,
    /// The least delay of the range's packets, to the nearest 15.3 us, as are the others.
    pub min: TimeDelta,
    /// Their mean delay.
    pub mean: TimeDelta,
    /// The delay of the last packet received.
    pub latest: TimeDelta,
}

impl OneWayDelayReport {
    /// The report in an APP packet; `None` if name, subtype or length differ.
    pub fn from_app(app: &App<'_>) -> Option<Self> {
        if app.name != OWD_NAME || app.subtype != 0 || app.data.len() != 20 {
            return None;
        }
        let delay = |at| compact_to_delta(be32(app.data, at));
        Some(Self {
            sender_ssrc: app.ssrc,
            media_ssrc: be32(app.data, 0),
            begin: be16(app.data, 4),
            end: be16(app.data, 6),
            min: delay(8),
            mean: delay(12),
            latest: delay(16),
        })
    }
    /// Appends the packet.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, 0, APP, |out| {
            self.sender_ssrc.write_into(out);
            out.extend_from_slice(&OWD_NAME);
            self.media_ssrc.write_into(out);
            out.extend_from_slice(&self.begin.to_be_bytes());
            out.extend_from_slice(&self.end.to_be_bytes());
            [self.min, self.mean, self.latest].iter().for_each(|d| delta_to_compact(*d).write_into(out));
        });
    }
}

/// Name of the APP packet that carries a [`Nadu`].
pub const NADU_NAME: [u8; 4] = *b"PSS0";

/// Next application data unit: the state of a receiver's buffer, by source (3GPP TS 26.234, "PSS buffer feedback"), in
/// an APP packet with name "PSS0" and subtype 0.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                             SSRC                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |         playout delay         |              NSN              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |      reserved       |   NUN   |       free buffer space       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
///
/// once for each source. The text of TS 26.234 was not available: the layout is that of two implementations, a
/// streaming server and a set-top box, which agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nadu<'a> {
    /// SSRC of the sender.
    pub sender_ssrc: u32,
    /// The buffers, at least one.
    pub entries: List<'a, NaduEntry>,
}

/// One source's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NaduEntry {
    /// The source.
    pub ssrc: u32,
    /// Time until the next unit is played, 0 to 65,534 ms to the nearest; `None` if unknown.
    pub playout_delay: Option<TimeDelta>,
    /// NSN: sequence number of the packet with the next unit to be decoded.
    pub next_sequence: u16,
    /// NUN: the number of that unit inside the packet, from 0, 5 bits.
    pub next_unit: u8,
    /// Free space in the buffer, in units of 64 bytes (rounded down) up to 4,194,240 bytes.
    pub free_buffer: DataSize,
}

/// The value of an unknown playout delay.
const NO_DELAY: u16 = 0xffff;

impl Entry for NaduEntry {
    const SIZE: usize = 12;
    fn read(b: &[u8]) -> Self {
        let delay = be16(b, 4);
        Self {
            ssrc: be32(b, 0),
            playout_delay: (delay != NO_DELAY).then(|| TimeDelta::from_millis(delay.into())),
            next_sequence: be16(b, 6),
            next_unit: be16(b, 8) as u8 & 0x1f,
            free_buffer: DataSize::from_bytes(u64::from(be16(b, 10)) * 64),
        }
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        let millis = |d: TimeDelta| (d.as_nanos().saturating_add(500_000) / 1_000_000).clamp(0, 65_534) as u16;
        let space = (self.free_buffer.as_bytes() / 64).min(0xffff) as u16;
        self.ssrc.write_into(out);
        for field in [
            self.playout_delay.map_or(NO_DELAY, millis),
            self.next_sequence,
            u16::from(self.next_unit.min(0x1f)),
            space,
        ] {
            out.extend_from_slice(&field.to_be_bytes());
        }
    }
}

impl<'a> Nadu<'a> {
    /// The message in an APP packet; `None` if name or subtype differ, or there are no complete entries.
    pub fn from_app(app: &App<'a>) -> Option<Self> {
        let fits = !app.data.is_empty() && app.data.len().is_multiple_of(NaduEntry::SIZE);
        (app.name == NADU_NAME && app.subtype == 0 && fits)
            .then(|| Self { sender_ssrc: app.ssrc, entries: List::from_wire(app.data) })
    }
    /// Appends the packet.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, 0, APP, |out| {
            self.sender_ssrc.write_into(out);
            out.extend_from_slice(&NADU_NAME);
            self.entries.write_into(out);
        });
    }
}
