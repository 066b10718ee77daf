use super::{Header, MAX_HEADER, ResetCode, ServiceCode, WireSequence};
use crate::option::{DccpOption, MAX_DATA};
use weir_units::Seq48;

/// Appends one packet to a buffer: header and options; the caller then appends the data.
///
/// ```
/// use weir_dccp::option::DccpOption;
/// use weir_dccp::packet::{Header, PacketType, PacketWriter, WireSequence, parse};
/// use weir_units::Seq48;
/// let header = Header {
///     source_port: 5004,
///     destination_port: 6000,
///     ccval: 0,
///     checksum_coverage: 0,
///     packet_type: PacketType::Data,
///     sequence: WireSequence::Long(Seq48::new(7)),
///     acknowledgement: None,
/// };
/// let mut out = Vec::new();
/// let mut writer = PacketWriter::new(&mut out, &header);
/// assert!(writer.option(&DccpOption::NdpCount(3)));
/// writer.finish();
/// out.extend_from_slice(b"data");
/// let packet = parse(&out, 0).expect("what was written");
/// assert_eq!((packet.header, packet.data), (header, &b"data"[..]));
/// assert_eq!(packet.options.iter().next(), Some(Ok(DccpOption::NdpCount(3))));
/// ```
#[derive(Debug)]
pub struct PacketWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> PacketWriter<'a> {
    /// Writes the generic header and the acknowledgement number, if the type has one; the checksum is zero, as in
    /// RFC 6773, section 3.3. A Request's or Response's service code and a Reset's code have to follow immediately.
    ///
    /// Both numbers must have the same length, and CsCov must not exceed the data: see
    /// [`Coverage::fitting`](super::Coverage::fitting).
    pub fn new(out: &'a mut Vec<u8>, header: &Header) -> Self {
        let start = out.len();
        out.extend_from_slice(&header.source_port.to_be_bytes());
        out.extend_from_slice(&header.destination_port.to_be_bytes());
        out.extend_from_slice(&[0, (header.ccval << 4) | (header.checksum_coverage & 0xf), 0, 0]);
        let (packet_type, short) = (header.packet_type, header.sequence.is_short());
        debug_assert!(!short || packet_type.may_be_short(), "{packet_type} has long numbers");
        let first = packet_type.number() << 1 | u8::from(!short);
        if !short {
            out.push(first);
        }
        number(out, if short { first } else { 0 }, header.sequence);
        if packet_type.has_acknowledgement() {
            debug_assert!(header.acknowledgement.is_some(), "{packet_type} acknowledges");
            let acknowledgement = header.acknowledgement.unwrap_or(if short {
                WireSequence::Short(0)
            } else {
                WireSequence::Long(Seq48::default())
            });
            debug_assert_eq!(acknowledgement.is_short(), short, "numbers of one length");
            if !short {
                out.push(0);
            }
            number(out, 0, acknowledgement);
        }
        Self { out, start }
    }
    /// The service code of a Request or a Response.
    pub fn service_code(&mut self, code: ServiceCode) {
        self.out.extend_from_slice(&code.0.to_be_bytes());
    }
    /// The code and Data 1 to 3 of a Reset.
    pub fn reset(&mut self, code: ResetCode, data: [u8; 3]) {
        self.out.extend_from_slice(&[code.0, data[0], data[1], data[2]]);
    }
    /// Appends an option; returns `false` without writing if the header has no room for it or its data exceeds
    /// [`MAX_DATA`].
    pub fn option(&mut self, option: &DccpOption<'_>) -> bool {
        let before = self.out.len();
        // Padding to a word of four never exceeds the limit, which is a multiple itself.
        let fits = option.write_into(self.out) && self.out.len() - self.start <= MAX_HEADER;
        if !fits {
            self.out.truncate(before);
        }
        fits
    }
    /// Appends runs of any length as Ack Vector options, each of which continues the previous one (RFC 4340,
    /// section 11.4); returns `false` without writing if the header has no room for all.
    pub fn ack_vector(&mut self, nonce: bool, runs: &[u8]) -> bool {
        self.all(runs, |runs| DccpOption::AckVector { nonce, runs })
    }
    /// The same for blocks and Data Dropped options (RFC 4340, section 11.7).
    pub fn data_dropped(&mut self, blocks: &[u8]) -> bool {
        self.all(blocks, DccpOption::DataDropped)
    }
    fn all<'b>(&mut self, data: &'b [u8], option: impl Fn(&'b [u8]) -> DccpOption<'b>) -> bool {
        let before = self.out.len();
        let fits = data.chunks(MAX_DATA).all(|part| self.option(&option(part)));
        if !fits {
            self.out.truncate(before);
        }
        fits
    }
    /// Bytes left for options.
    pub fn room(&self) -> usize {
        MAX_HEADER.saturating_sub(self.out.len() - self.start)
    }
    /// Pads the options and sets Data Offset; returns the header's length in bytes. Data is appended after this.
    pub fn finish(self) -> usize {
        let words = (self.out.len() - self.start).div_ceil(4);
        self.out.resize(self.start + words * 4, 0);
        self.out[self.start + 4] = u8::try_from(words).unwrap_or(u8::MAX);
        words * 4
    }
}

/// Appends a byte and the number after it.
fn number(out: &mut Vec<u8>, first: u8, n: WireSequence) {
    match n {
        WireSequence::Long(s) => {
            let [_, _, bytes @ ..] = s.get().to_be_bytes();
            out.extend_from_slice(&[first]);
            out.extend_from_slice(&bytes);
        }
        WireSequence::Short(s) => {
            let [_, a, b, c] = s.to_be_bytes();
            out.extend_from_slice(&[first, a, b, c]);
        }
    }
}
