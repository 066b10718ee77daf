//! Options (RFC 4340, section 5.8) and the numbers of features (section 6.4).

use crate::packet::PacketType;

/// What can be negotiated, by number (RFC 4340, table 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FeatureNumber(pub u8);

impl FeatureNumber {
    /// Congestion Control ID.
    pub const CCID: Self = Self(1);
    /// Allow Short Sequence Numbers.
    pub const ALLOW_SHORT_SEQUENCE_NUMBERS: Self = Self(2);
    /// Sequence Window.
    pub const SEQUENCE_WINDOW: Self = Self(3);
    /// ECN Incapable.
    pub const ECN_INCAPABLE: Self = Self(4);
    /// Ack Ratio.
    pub const ACK_RATIO: Self = Self(5);
    /// Send Ack Vector.
    pub const SEND_ACK_VECTOR: Self = Self(6);
    /// Send NDP Count.
    pub const SEND_NDP_COUNT: Self = Self(7);
    /// Minimum Checksum Coverage.
    pub const MINIMUM_CHECKSUM_COVERAGE: Self = Self(8);
    /// Check Data Checksum.
    pub const CHECK_DATA_CHECKSUM: Self = Self(9);
    /// Send Loss Event Rate, of CCID 3 (RFC 4342, section 8.4).
    pub const SEND_LOSS_EVENT_RATE: Self = Self(192);
}

/// One option, borrowed from its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DccpOption<'a> {
    /// The option behind it has to be understood.
    Mandatory,
    /// The receiver cannot keep up (RFC 4340, section 11.6).
    SlowReceiver,
    /// A feature located at its sender is to change; values in order of preference.
    ChangeL(FeatureNumber, &'a [u8]),
    /// A feature located at its sender has changed; the value, then preferences. Empty where the feature is unknown.
    ConfirmL(FeatureNumber, &'a [u8]),
    /// A feature located at its receiver is to change.
    ChangeR(FeatureNumber, &'a [u8]),
    /// A feature located at its receiver has changed.
    ConfirmR(FeatureNumber, &'a [u8]),
    /// A server's state for a client to give back (RFC 4340, section 8.1.4), 1 to 253 bytes.
    InitCookie(&'a [u8]),
    /// Packets without data just before this one, below 2^48 (RFC 4340, section 7.7).
    NdpCount(u64),
    /// What became of packets, newest first, one byte a run (RFC 4340, section 11.4), and the ECN nonce echo.
    AckVector {
        /// The nonce echo.
        nonce: bool,
        /// The runs.
        runs: &'a [u8],
    },
    /// Packets whose data was dropped after their headers were taken (RFC 4340, section 11.7).
    DataDropped(&'a [u8]),
    /// The sender's time in units of 10 us (RFC 4340, section 13.1).
    Timestamp(u32),
    /// A timestamp back, and how long it was held in units of 10 us (section 13.3).
    TimestampEcho {
        /// The timestamp.
        echo: u32,
        /// The time held; zero where it is not there.
        elapsed: u32,
    },
    /// Time from the packet acknowledged to this one, in units of 10 us (section 13.2).
    ElapsedTime(u32),
    /// CRC-32c of the application data (RFC 4340, section 9.3).
    DataChecksum(u32),
    /// An option of a CCID: 128 to 191 go to the half-connection's receiver, 192 to 255 to its sender.
    Ccid {
        /// Its number, 128 and above.
        number: u8,
        /// Its data.
        data: &'a [u8],
    },
    /// One that has no meaning here, Mobility's among them (RFC 4340, section 5.8: ignored).
    Unknown {
        /// Its number.
        number: u8,
        /// Its data.
        data: &'a [u8],
    },
}

const PADDING: u8 = 0;
const MANDATORY: u8 = 1;
const SLOW_RECEIVER: u8 = 2;
const CHANGE_L: u8 = 32;
const CONFIRM_L: u8 = 33;
const CHANGE_R: u8 = 34;
const CONFIRM_R: u8 = 35;
const INIT_COOKIE: u8 = 36;
const NDP_COUNT: u8 = 37;
const ACK_VECTOR_0: u8 = 38;
const ACK_VECTOR_1: u8 = 39;
const DATA_DROPPED: u8 = 40;
const TIMESTAMP: u8 = 41;
const TIMESTAMP_ECHO: u8 = 42;
const ELAPSED_TIME: u8 = 43;
const DATA_CHECKSUM: u8 = 44;
/// Numbers below it are one byte long.
const FIRST_LONG: u8 = 32;
const FIRST_CCID: u8 = 128;

impl DccpOption<'_> {
    /// Its number in the packet.
    pub const fn number(&self) -> u8 {
        match *self {
            Self::Mandatory => MANDATORY,
            Self::SlowReceiver => SLOW_RECEIVER,
            Self::ChangeL(..) => CHANGE_L,
            Self::ConfirmL(..) => CONFIRM_L,
            Self::ChangeR(..) => CHANGE_R,
            Self::ConfirmR(..) => CONFIRM_R,
            Self::InitCookie(_) => INIT_COOKIE,
            Self::NdpCount(_) => NDP_COUNT,
            Self::AckVector { nonce: false, .. } => ACK_VECTOR_0,
            Self::AckVector { nonce: true, .. } => ACK_VECTOR_1,
            Self::DataDropped(_) => DATA_DROPPED,
            Self::Timestamp(_) => TIMESTAMP,
            Self::TimestampEcho { .. } => TIMESTAMP_ECHO,
            Self::ElapsedTime(_) => ELAPSED_TIME,
            Self::DataChecksum(_) => DATA_CHECKSUM,
            Self::Ccid { number, .. } | Self::Unknown { number, .. } => number,
        }
    }

    /// Appends it to a header. Data past 253 bytes is cut: see [`crate::ack_vector`] for splitting.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        let number = self.number();
        let mut put = |parts: &[&[u8]]| {
            let len = parts.iter().map(|p| p.len()).sum::<usize>().min(253);
            out.extend_from_slice(&[number, len as u8 + 2]);
            out.extend(parts.iter().flat_map(|p| p.iter()).take(253));
        };
        match *self {
            Self::Mandatory | Self::SlowReceiver => out.push(number),
            Self::ChangeL(f, v) | Self::ConfirmL(f, v) | Self::ChangeR(f, v) | Self::ConfirmR(f, v) => {
                put(&[&[f.0], v])
            }
            Self::InitCookie(d) | Self::DataDropped(d) | Self::AckVector { runs: d, .. } => put(&[d]),
            Self::Ccid { data, .. } | Self::Unknown { data, .. } => put(&[data]),
            Self::NdpCount(n) => {
                let bytes = n.to_be_bytes();
                let zeros = bytes.iter().take(7).take_while(|&&b| b == 0).count();
                put(&[&bytes[zeros.max(2)..]]);
            }
            Self::Timestamp(t) | Self::DataChecksum(t) => put(&[&t.to_be_bytes()]),
            Self::TimestampEcho { echo, elapsed } => {
                let e = elapsed.to_be_bytes();
                let e = if elapsed == 0 {
                    &e[..0]
                } else if elapsed <= 0xffff {
                    &e[2..]
                } else {
                    &e[..]
                };
                put(&[&echo.to_be_bytes(), e]);
            }
            Self::ElapsedTime(t) => {
                let e = t.to_be_bytes();
                put(&[if t <= 0xffff { &e[2..] } else { &e[..] }]);
            }
        }
    }
}

/// An option that cannot be read (RFC 4340, section 5.8): its length is wrong for it, or reaches past the options. The rest
/// of the options is not looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadOption {
    /// Its number.
    pub number: u8,
    /// First bytes of its data, zero where there are none.
    pub data: [u8; 2],
}

/// A packet's options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
    packet_type: PacketType,
}

impl<'a> Options<'a> {
    /// The options of a packet of this type.
    pub const fn new(bytes: &'a [u8], packet_type: PacketType) -> Self {
        Self { bytes, packet_type }
    }
    /// Whether there are none, nor padding.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// The type of the packet that they stand in.
    pub const fn packet_type(&self) -> PacketType {
        self.packet_type
    }
    /// One after the other, without padding; ends with the first that cannot be read.
    pub fn iter(&self) -> OptionIter<'a> {
        OptionIter { rest: self.bytes }
    }
}

/// See [`Options::iter`].
#[derive(Clone, Debug)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
}

fn big_endian(data: &[u8]) -> u64 {
    data.iter().fold(0, |n, &b| n << 8 | u64::from(b))
}

fn read(number: u8, data: &[u8]) -> Option<DccpOption<'_>> {
    use DccpOption as O;
    let feature = || data.split_first().map(|(&f, values)| (FeatureNumber(f), values));
    let time = |d: &[u8]| matches!(d.len(), 2 | 4).then(|| big_endian(d) as u32);
    Some(match number {
        CHANGE_L => feature().filter(|f| !f.1.is_empty()).map(|(f, v)| O::ChangeL(f, v))?,
        CONFIRM_L => feature().map(|(f, v)| O::ConfirmL(f, v))?,
        CHANGE_R => feature().filter(|f| !f.1.is_empty()).map(|(f, v)| O::ChangeR(f, v))?,
        CONFIRM_R => feature().map(|(f, v)| O::ConfirmR(f, v))?,
        INIT_COOKIE if !data.is_empty() => O::InitCookie(data),
        NDP_COUNT if (1..=6).contains(&data.len()) => O::NdpCount(big_endian(data)),
        ACK_VECTOR_0 => O::AckVector { nonce: false, runs: data },
        ACK_VECTOR_1 => O::AckVector { nonce: true, runs: data },
        DATA_DROPPED => O::DataDropped(data),
        TIMESTAMP if data.len() == 4 => O::Timestamp(big_endian(data) as u32),
        TIMESTAMP_ECHO => {
            let (echo, elapsed) = data.split_at_checked(4)?;
            let elapsed = if elapsed.is_empty() { 0 } else { time(elapsed)? };
            O::TimestampEcho { echo: big_endian(echo) as u32, elapsed }
        }
        ELAPSED_TIME => O::ElapsedTime(time(data)?),
        DATA_CHECKSUM if data.len() == 4 => O::DataChecksum(big_endian(data) as u32),
        INIT_COOKIE | NDP_COUNT | TIMESTAMP | DATA_CHECKSUM => return None,
        FIRST_CCID.. => O::Ccid { number, data },
        _ => O::Unknown { number, data },
    })
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = Result<DccpOption<'a>, BadOption>;
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (&number, rest) = self.rest.split_first()?;
            self.rest = rest;
            if number >= FIRST_LONG {
                let len = rest.first().map_or(0, |&l| usize::from(l));
                let data = len.checked_sub(1).and_then(|n| rest.split_at_checked(n)).filter(|_| len >= 2);
                let taken = data.and_then(|(d, rest)| Some((read(number, &d[1..])?, rest)));
                if let Some((option, rest)) = taken {
                    self.rest = rest;
                    return Some(Ok(option));
                }
                self.rest = &[];
                let byte = |i: usize| rest.get(i).copied().unwrap_or(0);
                return Some(Err(BadOption { number, data: [byte(1), byte(2)] }));
            }
            match number {
                PADDING => {}
                MANDATORY => return Some(Ok(DccpOption::Mandatory)),
                SLOW_RECEIVER => return Some(Ok(DccpOption::SlowReceiver)),
                _ => return Some(Ok(DccpOption::Unknown { number, data: &[] })),
            }
        }
    }
}
