use super::{
    ACK_VECTOR_0, ACK_VECTOR_1, CHANGE_L, CHANGE_R, CONFIRM_L, CONFIRM_R, DATA_CHECKSUM, DATA_DROPPED, DccpOption,
    ELAPSED_TIME, FIRST_CCID, FIRST_LONG, FeatureNumber, INIT_COOKIE, MANDATORY, NDP_COUNT, PADDING, SLOW_RECEIVER,
    TIMESTAMP, TIMESTAMP_ECHO, is_permitted,
};
use crate::packet_type::PacketType;
use crate::reset_code::ResetCode;

/// The fault of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionFault {
    /// Its length is below two or exceeds the options: it and everything after it is ignored (RFC 4340, section 5.8).
    Length,
    /// Its data cannot be its number's: it alone is ignored (section 5.8).
    Value,
    /// It is not permitted in a packet of this type: only it is ignored (see [`is_permitted`]).
    NotPermitted,
    /// A Mandatory followed by another one or by nothing, which is a connection error (section 5.8.2). Only
    /// [`Options::entries`] reports it.
    Mandatory,
}

/// An option to be ignored. The iteration continues after it if the rest can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadOption {
    /// Its number.
    pub number: u8,
    /// First bytes of its data, zero if there are none.
    pub data: [u8; 2],
    /// Its fault.
    pub fault: OptionFault,
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
    /// Whether there are neither options nor padding.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// The bytes, padding among them.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// The type of their packet.
    pub const fn packet_type(&self) -> PacketType {
        self.packet_type
    }
    /// The options in order, without padding. A Mandatory precedes the option that it marks; one that marks padding is
    /// padding too (RFC 4340, section 5.8.2), and on Data it is ignored.
    pub fn iter(&self) -> OptionIter<'a> {
        OptionIter { rest: self.bytes, packet_type: self.packet_type }
    }
    /// Likewise, each with whether it is mandatory, for the end that processes them all.
    pub fn entries(&self) -> Entries<'a> {
        Entries { options: self.iter() }
    }
}

impl<'a> IntoIterator for Options<'a> {
    type Item = Result<DccpOption<'a>, BadOption>;
    type IntoIter = OptionIter<'a>;
    fn into_iter(self) -> OptionIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Options<'a> {
    type Item = Result<DccpOption<'a>, BadOption>;
    type IntoIter = OptionIter<'a>;
    fn into_iter(self) -> OptionIter<'a> {
        self.iter()
    }
}

/// See [`Options::iter`].
#[derive(Clone, Debug)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
    packet_type: PacketType,
}

fn big_endian(data: &[u8]) -> u64 {
    data.iter().fold(0, |n, &b| n << 8 | u64::from(b))
}

fn word(data: &[u8]) -> Option<u32> {
    data.try_into().ok().map(u32::from_be_bytes)
}

fn elapsed(data: &[u8]) -> Option<u32> {
    matches!(data.len(), 2 | 4).then(|| big_endian(data) as u32)
}

/// Reads the data of an option that is longer than a byte.
fn read(number: u8, data: &[u8]) -> Option<DccpOption<'_>> {
    use DccpOption as O;
    let feature = || data.split_first().map(|(&f, values)| (FeatureNumber(f), values));
    Some(match number {
        CHANGE_L => feature().map(|(f, v)| O::ChangeL(f, v))?,
        CONFIRM_L => feature().map(|(f, v)| O::ConfirmL(f, v))?,
        CHANGE_R => feature().map(|(f, v)| O::ChangeR(f, v))?,
        CONFIRM_R => feature().map(|(f, v)| O::ConfirmR(f, v))?,
        INIT_COOKIE => O::InitCookie(data),
        NDP_COUNT => (1..=6).contains(&data.len()).then(|| O::NdpCount(big_endian(data)))?,
        ACK_VECTOR_0 => O::AckVector { nonce: false, runs: data },
        ACK_VECTOR_1 => O::AckVector { nonce: true, runs: data },
        DATA_DROPPED => O::DataDropped(data),
        TIMESTAMP => O::Timestamp(word(data)?),
        TIMESTAMP_ECHO => {
            let (echo, held) = data.split_at_checked(4)?;
            let elapsed = if held.is_empty() { 0 } else { elapsed(held)? };
            O::TimestampEcho { echo: word(echo)?, elapsed }
        }
        ELAPSED_TIME => O::ElapsedTime(elapsed(data)?),
        DATA_CHECKSUM => O::DataChecksum(word(data)?),
        FIRST_CCID.. => O::Ccid { number, data },
        _ => O::Unknown { number, data },
    })
}

/// The first two bytes, for a Reset's Data 2 and 3 (RFC 4340, section 5.6).
fn first_two(data: &[u8]) -> [u8; 2] {
    [0, 1].map(|i| data.get(i).copied().unwrap_or(0))
}

impl<'a> OptionIter<'a> {
    /// The next option and the first bytes of its data.
    fn step(&mut self) -> Option<(Result<DccpOption<'a>, BadOption>, [u8; 2])> {
        loop {
            let (&number, rest) = self.rest.split_first()?;
            self.rest = rest;
            if number >= FIRST_LONG {
                return Some(self.step_long(number));
            }
            let option = match number {
                PADDING => continue,
                MANDATORY if self.packet_type == PacketType::Data => continue,
                MANDATORY if rest.first() == Some(&PADDING) => continue,
                MANDATORY => DccpOption::Mandatory,
                SLOW_RECEIVER => DccpOption::SlowReceiver,
                _ => DccpOption::Unknown { number, data: &[] },
            };
            return Some((Ok(option), [0; 2]));
        }
    }

    fn step_long(&mut self, number: u8) -> (Result<DccpOption<'a>, BadOption>, [u8; 2]) {
        let (data, rest, fault) = match self.rest.split_first() {
            Some((&len, rest)) if len >= 2 && usize::from(len) - 2 <= rest.len() => {
                let (data, rest) = rest.split_at(usize::from(len) - 2);
                if is_permitted(number, self.packet_type) {
                    if let Some(option) = read(number, data) {
                        self.rest = rest;
                        return (Ok(option), first_two(data));
                    }
                    (data, rest, OptionFault::Value)
                } else {
                    (data, rest, OptionFault::NotPermitted)
                }
            }
            Some((_, rest)) => (rest, &[][..], OptionFault::Length),
            None => (&[][..], &[][..], OptionFault::Length),
        };
        self.rest = rest;
        let data = first_two(data);
        (Err(BadOption { number, data, fault }), data)
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = Result<DccpOption<'a>, BadOption>;
    fn next(&mut self) -> Option<Self::Item> {
        self.step().map(|(option, _)| option)
    }
}

impl core::iter::FusedIterator for OptionIter<'_> {}

/// An option and its context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Whether the connection has to be reset if it is not understood or not processed (RFC 4340, section 5.8.2).
    pub mandatory: bool,
    /// The option.
    pub option: Result<DccpOption<'a>, BadOption>,
    /// First bytes of its data, zero if there are none.
    pub data: [u8; 2],
}

impl Entry<'_> {
    /// Its number and first bytes: Data 1 to 3 of a Reset with [`ResetCode::OPTION_ERROR`] or
    /// [`ResetCode::MANDATORY_ERROR`] for it.
    pub const fn reset_data(&self) -> [u8; 3] {
        let number = match &self.option {
            Ok(option) => option.number(),
            Err(bad) => bad.number,
        };
        [number, self.data[0], self.data[1]]
    }
    /// The Reset required before it is processed: none for a readable option, nor for an invalid one that is merely
    /// ignored.
    pub const fn due_reset(&self) -> Option<(ResetCode, [u8; 3])> {
        match self.option {
            Err(BadOption { fault: OptionFault::Mandatory, .. }) => Some((ResetCode::OPTION_ERROR, self.reset_data())),
            Err(_) if self.mandatory => Some((ResetCode::MANDATORY_ERROR, self.reset_data())),
            _ => None,
        }
    }
}

/// See [`Options::entries`].
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    options: OptionIter<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;
    fn next(&mut self) -> Option<Entry<'a>> {
        let (option, data) = self.options.step()?;
        if option != Ok(DccpOption::Mandatory) {
            return Some(Entry { mandatory: false, option, data });
        }
        match self.options.step() {
            Some((option, data)) if option != Ok(DccpOption::Mandatory) => {
                Some(Entry { mandatory: true, option, data })
            }
            _ => {
                // The boundaries of the options after it are unknown.
                self.options.rest = &[];
                let bad = BadOption { number: MANDATORY, data: [0; 2], fault: OptionFault::Mandatory };
                Some(Entry { mandatory: true, option: Err(bad), data: [0; 2] })
            }
        }
    }
}
