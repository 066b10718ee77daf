use super::{APP, App, frame};
use crate::read::{Reader, be16};
use crate::{Entry, List};
use weir_units::{DataRate, TimeDelta};

/// Name of the APP packet that carries a [`CapacityVector`].
pub const CAPACITY_NAME: [u8; 4] = *b"CAPV";

/// Unit of times: 100 ms, so that 16 bits reach 109 minutes.
const UNIT: TimeDelta = TimeDelta::from_millis(100);
/// Bits of a rate's mantissa; five bits of exponent are above them.
const MANTISSA: u32 = 11;

/// Capacity that the sender of the packet expects over time on the way to it, in an APP packet with name "CAPV" and
/// subtype 0.
///
/// The packet is Weir's own; `docs/wire/capacity-vector.md` specifies it. V. Singh's dissertation ("Protocols and
/// Algorithms for Adaptive Multimedia Systems", 2015, section 7.2) has the receiver of a coverage map's answer send such
/// a vector to the sender of the media, and gives no format.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |V=2|P| subtype |  PT=APP=204   |        length = 5 + 2 n       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                 SSRC of the vector's sender                   |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                            "CAPV"                             |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                  SSRC of the media source                     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |            serial             |           validity            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |              age              |           reserved            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |           duration            |  confidence   |   reserved    |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |        lower quartile         |            median             |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                              ...                              |
/// ```
///
/// Times are in units of 100 ms. Reserved fields are written as zero and not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CapacityVector<'a> {
    /// SSRC of the sender.
    pub sender_ssrc: u32,
    /// The stream that it concerns.
    pub media_ssrc: u32,
    /// Number of the vector, modulo 2^16; repetitions keep it.
    pub serial: u16,
    /// Time from the making of the vector after which it no longer holds.
    pub validity: Tenths,
    /// Time from the making of the vector to this packet.
    pub age: Tenths,
    /// Consecutive stretches from the making of the vector on; none withdraws the vector before.
    pub entries: List<'a, CapacityEntry>,
}

/// A time in units of 100 ms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Tenths(u16);

impl Tenths {
    /// From the units in a packet.
    pub const fn from_units(units: u16) -> Self {
        Self(units)
    }
    /// The units in a packet.
    pub const fn units(self) -> u16 {
        self.0
    }
    /// The nearest to a time; negative times give 0, those over 6,553.5 s the maximum.
    pub fn new(time: TimeDelta) -> Self {
        let units = time.as_nanos().saturating_add(UNIT.as_nanos() / 2) / UNIT.as_nanos();
        Self(units.clamp(0, u16::MAX.into()) as u16)
    }
    /// As a time.
    pub fn time(self) -> TimeDelta {
        UNIT * i64::from(self.0)
    }
}

/// A bit rate as mantissa * 2^exponent, in 5 bits of exponent and 11 of mantissa: up to 4.39 Tbit/s, with an error of less
/// than 0.1 %.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShortRate(u16);

impl ShortRate {
    /// The greatest rate.
    pub const MAX: Self = Self(u16::MAX);

    /// A rate, rounded down to the mantissa's precision; greater ones than [`Self::MAX`] saturate.
    pub const fn new(rate: DataRate) -> Self {
        let bps = rate.as_bps();
        let exponent = (64 - bps.leading_zeros()).saturating_sub(MANTISSA);
        if exponent > 31 {
            return Self::MAX;
        }
        Self((exponent << MANTISSA) as u16 | (bps >> exponent) as u16)
    }
    /// The rate.
    pub const fn rate(self) -> DataRate {
        let mantissa = (self.0 & ((1 << MANTISSA) - 1)) as u64;
        DataRate::from_bps(mantissa << (self.0 >> MANTISSA))
    }
    /// Both fields.
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// From both fields.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

/// A stretch of time with one expected capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CapacityEntry {
    /// Its length; it begins where the entry before it ends.
    pub duration: Tenths,
    /// How far the capacity is trusted, 255 for fully; 0 if nothing is known of this time.
    pub confidence: u8,
    /// Lower quartile of the capacity.
    pub low: ShortRate,
    /// Median of the capacity.
    pub median: ShortRate,
}

impl Entry for CapacityEntry {
    const SIZE: usize = 8;
    fn read(b: &[u8]) -> Self {
        Self {
            duration: Tenths(be16(b, 0)),
            confidence: b.get(2).copied().unwrap_or(0),
            low: ShortRate(be16(b, 4)),
            median: ShortRate(be16(b, 6)),
        }
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.duration.0.to_be_bytes());
        out.extend_from_slice(&[self.confidence, 0]);
        out.extend_from_slice(&self.low.0.to_be_bytes());
        out.extend_from_slice(&self.median.0.to_be_bytes());
    }
}

/// Why a vector that can be read may not be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CapacityFault {
    /// It has more than [`CapacityVector::MAX_ENTRIES`].
    TooLong,
    /// An entry has no duration.
    Empty,
    /// An entry's lower quartile is above its median.
    OutOfOrder,
    /// An entry's median is above [`CapacityVector::MAX_RATE`].
    TooHigh,
    /// It is older than it is valid.
    Expired,
}

impl<'a> CapacityVector<'a> {
    /// Most entries that may be sent: a packet has 536 bytes then, which fit into a datagram with the reports of a compound.
    pub const MAX_ENTRIES: usize = 64;
    /// Greatest rate that may be sent: more than any path of one call has.
    pub const MAX_RATE: DataRate = DataRate::from_mbps(100_000);
    /// Bytes before the entries: media source, serial and times.
    const HEAD: usize = 12;

    /// The vector in an APP packet; `None` if name, subtype or length differ. It may break the rules on values:
    /// see [`Self::check`].
    pub fn from_app(app: &App<'a>) -> Option<Self> {
        let entries = app.data.len().checked_sub(Self::HEAD)?;
        if app.name != CAPACITY_NAME || app.subtype != 0 || !entries.is_multiple_of(CapacityEntry::SIZE) {
            return None;
        }
        let mut r = Reader::new(app.data, 0);
        let media_ssrc = r.u32("capacity vector").ok()?;
        let mut word = || r.u16("capacity vector").ok();
        let (serial, validity, age, _) = (word()?, word()?, word()?, word()?);
        Some(Self {
            sender_ssrc: app.ssrc,
            media_ssrc,
            serial,
            validity: Tenths(validity),
            age: Tenths(age),
            entries: List::from_wire(r.rest()),
        })
    }

    /// Appends the packet.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, 0, APP, |out| {
            self.sender_ssrc.write_into(out);
            out.extend_from_slice(&CAPACITY_NAME);
            self.media_ssrc.write_into(out);
            for word in [self.serial, self.validity.0, self.age.0, 0] {
                out.extend_from_slice(&word.to_be_bytes());
            }
            self.entries.write_into(out);
        });
    }

    /// Whether its values follow the rules. The work is bounded by [`Self::MAX_ENTRIES`].
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self) -> Result<(), CapacityFault> {
        if self.entries.len() > Self::MAX_ENTRIES {
            return Err(CapacityFault::TooLong);
        }
        for e in self.entries {
            let (low, median) = (e.low.rate(), e.median.rate());
            if e.duration == Tenths::default() {
                return Err(CapacityFault::Empty);
            }
            if e.confidence > 0 && low > median {
                return Err(CapacityFault::OutOfOrder);
            }
            if e.confidence > 0 && median > Self::MAX_RATE {
                return Err(CapacityFault::TooHigh);
            }
        }
        if self.age >= self.validity { Err(CapacityFault::Expired) } else { Ok(()) }
    }

    /// Whether its serial number is later than that of another vector of the same sender (RFC 1982).
    pub const fn is_newer_than(&self, serial: u16) -> bool {
        (self.serial.wrapping_sub(serial) as i16) > 0
    }
}
