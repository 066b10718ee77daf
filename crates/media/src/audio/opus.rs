//! Opus packets as RTP payloads (RFC 7587): one unmodified packet per payload. Properties that do not require decoding
//! are parsed here (RFC 6716, section 3).

use crate::audio::{AudioCodec, AudioError, Channels};
use crate::{AUDIO_CLOCK_HZ, Payloads};
use weir_units::DataSize;

/// Most frames in a packet: 120 ms of 2.5 ms each (RFC 6716, section 3.2.5).
const MAX_FRAMES: usize = 48;
/// Largest frame in bytes (section 3.2.1).
const MAX_FRAME: usize = 1_275;
/// Most samples in a packet: 120 ms.
pub(super) const MAX_SAMPLES: u32 = AUDIO_CLOCK_HZ / 1_000 * 120;

/// The mode of Opus that codes a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OpusMode {
    /// Linear prediction, for speech at low rates.
    Silk,
    /// SILK below 8 kHz, CELT above.
    Hybrid,
    /// MDCT, for music and low delay.
    Celt,
}

/// Audio bandwidth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OpusBandwidth {
    /// 4 kHz.
    Narrow,
    /// 6 kHz.
    Medium,
    /// 8 kHz.
    Wide,
    /// 12 kHz.
    SuperWide,
    /// 20 kHz.
    Full,
}

/// The first byte of a packet, table-of-contents (RFC 6716, section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpusToc(u8);

impl OpusToc {
    /// Any byte is valid.
    pub const fn new(byte: u8) -> Self {
        Self(byte)
    }
    const fn config(self) -> u8 {
        self.0 >> 3
    }
    /// The mode of the frames.
    pub const fn mode(self) -> OpusMode {
        match self.config() {
            0..12 => OpusMode::Silk,
            12..16 => OpusMode::Hybrid,
            _ => OpusMode::Celt,
        }
    }
    /// The audio bandwidth of the frames.
    pub const fn bandwidth(self) -> OpusBandwidth {
        match self.config() {
            0..4 | 16..20 => OpusBandwidth::Narrow,
            4..8 => OpusBandwidth::Medium,
            8..12 | 20..24 => OpusBandwidth::Wide,
            12..14 | 24..28 => OpusBandwidth::SuperWide,
            _ => OpusBandwidth::Full,
        }
    }
    /// Samples of a frame per channel at [`AUDIO_CLOCK_HZ`].
    pub const fn frame_samples(self) -> u32 {
        let config = self.config();
        match self.mode() {
            OpusMode::Silk => [480, 960, 1_920, 2_880][config as usize % 4],
            OpusMode::Hybrid => [480, 960][config as usize % 2],
            OpusMode::Celt => [120, 240, 480, 960][config as usize % 4],
        }
    }
    /// Coded channels.
    pub const fn channels(self) -> Channels {
        if self.0 & 4 == 0 { Channels::Mono } else { Channels::Stereo }
    }
    /// Frame count code (0 to 3).
    const fn code(self) -> u8 {
        self.0 & 3
    }
}

/// An Opus packet with valid framing (RFC 6716, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpusPacket<'a> {
    toc: OpusToc,
    /// Bounds of each frame in `data`.
    frames: [(u16, u16); MAX_FRAMES],
    count: usize,
    data: &'a [u8],
}

fn wrong(data: &[u8], what: &str) -> AudioError {
    AudioError::Packet { codec: AudioCodec::Opus, length: data.len(), what: what.into() }
}

/// Parses a frame's length (section 3.2.1).
fn length(rest: &mut &[u8]) -> Option<usize> {
    let (&first, behind) = rest.split_first()?;
    *rest = behind;
    let first = usize::from(first);
    if first < 252 {
        return Some(first);
    }
    let (&second, behind) = rest.split_first()?;
    *rest = behind;
    Some(usize::from(second) * 4 + first)
}

impl<'a> OpusPacket<'a> {
    /// Parses a packet's framing.
    ///
    /// # Errors
    /// One of the requirements R1 to R7 of RFC 6716, section 3.4, is violated.
    pub fn parse(data: &'a [u8]) -> Result<Self, AudioError> {
        let error = |what| wrong(data, what);
        let (&first, mut rest) = data.split_first().ok_or_else(|| error("a packet has at least a byte (R1)"))?;
        if data.len() > usize::from(u16::MAX) {
            return Err(error("longer than a datagram"));
        }
        let toc = OpusToc::new(first);
        let mut packet = Self { toc, frames: [(0, 0); MAX_FRAMES], count: 0, data };
        let short = "the frames' lengths exceed the packet (R4, R7)";
        match toc.code() {
            0 => packet.add(data.len() - rest.len(), rest.len())?,
            1 => {
                if rest.len() % 2 != 0 {
                    return Err(error("two frames of equal length need an even number of bytes (R3)"));
                }
                packet.add_equal(1, 2, rest.len() / 2)?;
            }
            2 => {
                let first = length(&mut rest).ok_or_else(|| error(short))?;
                let second = rest.len().checked_sub(first).ok_or_else(|| error(short))?;
                let start = data.len() - rest.len();
                packet.add(start, first)?;
                packet.add(start + first, second)?;
            }
            _ => packet.read_many(rest)?,
        }
        Ok(packet)
    }

    /// Parses a packet of code 3 (section 3.2.5), after its first byte.
    fn read_many(&mut self, mut rest: &[u8]) -> Result<(), AudioError> {
        let data = self.data;
        let error = |what| wrong(data, what);
        let short = "the frames' lengths exceed the packet (R6, R7)";
        let (&counts, behind) =
            rest.split_first().ok_or_else(|| error("the byte of the frame count is missing (R6)"))?;
        rest = behind;
        let (count, padded, variable) = (usize::from(counts & 0x3f), counts & 0x40 != 0, counts & 0x80 != 0);
        if count == 0 || count as u32 * self.toc.frame_samples() > MAX_SAMPLES {
            return Err(error("no frames, or more than 120 ms (R5)"));
        }
        let mut padding = 0;
        let mut more = if padded { 255 } else { 0 };
        while more == 255 {
            let (&next, behind) = rest.split_first().ok_or_else(|| error(short))?;
            (rest, more) = (behind, next);
            padding += usize::from(next) - usize::from(next == 255);
        }
        let mut lengths = [0; MAX_FRAMES];
        if variable {
            for l in &mut lengths[..count - 1] {
                *l = length(&mut rest).ok_or_else(|| error(short))?;
            }
        }
        let frames = rest.len().checked_sub(padding).ok_or_else(|| error(short))?;
        let start = data.len() - rest.len();
        if !variable {
            if frames % count != 0 {
                return Err(error("frames of equal length do not fill the packet (R6)"));
            }
            return self.add_equal(start, count, frames / count);
        }
        let known: usize = lengths.iter().sum();
        lengths[count - 1] = frames.checked_sub(known).ok_or_else(|| error(short))?;
        let mut at = start;
        for l in &lengths[..count] {
            self.add(at, *l)?;
            at += l;
        }
        Ok(())
    }

    fn add_equal(&mut self, start: usize, count: usize, length: usize) -> Result<(), AudioError> {
        (0..count).try_for_each(|i| self.add(start + i * length, length))
    }

    fn add(&mut self, start: usize, length: usize) -> Result<(), AudioError> {
        if length > MAX_FRAME {
            return Err(wrong(self.data, "a frame has at most 1,275 bytes (R2)"));
        }
        // In range: packets have at most 65,535 bytes and 48 frames.
        self.frames[self.count] = (start as u16, (start + length) as u16);
        self.count += 1;
        Ok(())
    }

    /// Its first byte.
    pub const fn toc(&self) -> OpusToc {
        self.toc
    }
    /// Its frames in order; empty ones are silence or lost (section 3.2.1).
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let data = self.data;
        self.frames[..self.count].iter().map(move |&(start, end)| &data[usize::from(start)..usize::from(end)])
    }
    /// Samples per channel at [`AUDIO_CLOCK_HZ`].
    pub fn samples(&self) -> u32 {
        self.count as u32 * self.toc.frame_samples()
    }
    /// Whether it only signals silence: no frame is longer than a byte.
    pub fn is_silence(&self) -> bool {
        self.frames().all(|f| f.len() <= 1)
    }
    /// Whether it includes a copy of the previous packet (in-band FEC), by the LBRR flags of its first frame
    /// (section 4.2.4). CELT has none.
    pub fn has_fec(&self) -> bool {
        let Some(&first) = self.frames().next().and_then(|f| f.first()) else { return false };
        if self.toc.mode() == OpusMode::Celt {
            return false;
        }
        // Each channel has a voice activity bit for every 20 ms, followed by its LBRR flag, each coded in one bit
        // (section 4.2.3).
        let per_channel = self.toc.frame_samples().div_ceil(960) + 1;
        (1..=self.toc.channels().count() as u32).any(|channel| first & (0x80u8 >> (channel * per_channel - 1)) != 0)
    }
}

/// Appends a packet as an RTP payload.
///
/// # Errors
/// It exceeds `max`, since packets cannot be split (RFC 7587, section 4.2), or is not an Opus packet.
pub fn packetise(packet: &[u8], max: DataSize, out: &mut Payloads) -> Result<(), AudioError> {
    OpusPacket::parse(packet)?;
    if packet.len() as u64 > max.as_bytes() {
        return Err(wrong(packet, &format!("larger than a payload of {} bytes", max.as_bytes())));
    }
    out.push(&[packet], false);
    Ok(())
}

/// Parses an RTP payload.
///
/// # Errors
/// It is not an Opus packet.
pub fn depacketise(payload: &[u8]) -> Result<OpusPacket<'_>, AudioError> {
    OpusPacket::parse(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lens(data: &[u8]) -> Result<Vec<usize>, String> {
        OpusPacket::parse(data).map(|p| p.frames().map(<[u8]>::len).collect()).map_err(|e| e.to_string())
    }
    fn toc(config: u8, stereo: bool, code: u8) -> u8 {
        config << 3 | u8::from(stereo) << 2 | code
    }
    fn with(first: &[u8], length: usize) -> Vec<u8> {
        let mut data = first.to_vec();
        data.resize(first.len() + length, 7);
        data
    }

    #[test]
    fn the_first_byte_states_mode_bandwidth_and_length() {
        let read = |config| {
            let t = OpusToc::new(toc(config, false, 0));
            (t.mode(), t.bandwidth(), t.frame_samples())
        };
        // RFC 6716, table 2.
        assert_eq!(read(0), (OpusMode::Silk, OpusBandwidth::Narrow, 480));
        assert_eq!(read(7), (OpusMode::Silk, OpusBandwidth::Medium, 2_880));
        assert_eq!(read(9), (OpusMode::Silk, OpusBandwidth::Wide, 960));
        assert_eq!(read(12), (OpusMode::Hybrid, OpusBandwidth::SuperWide, 480));
        assert_eq!(read(15), (OpusMode::Hybrid, OpusBandwidth::Full, 960));
        assert_eq!(read(16), (OpusMode::Celt, OpusBandwidth::Narrow, 120));
        assert_eq!(read(22), (OpusMode::Celt, OpusBandwidth::Wide, 480));
        assert_eq!(read(27), (OpusMode::Celt, OpusBandwidth::SuperWide, 960));
        assert_eq!(read(29), (OpusMode::Celt, OpusBandwidth::Full, 240));
        assert_eq!(OpusToc::new(toc(3, true, 0)).channels(), Channels::Stereo);
    }

    #[test]
    fn frames_are_framed_in_four_ways() {
        assert_eq!(lens(&with(&[toc(1, false, 0)], 30)), Ok(vec![30]));
        assert_eq!(lens(&with(&[toc(1, false, 1)], 30)), Ok(vec![15, 15]));
        assert_eq!(lens(&with(&[toc(1, false, 2), 10], 30)), Ok(vec![10, 20]));
        // 252 + 4 x 2 = 260.
        assert_eq!(lens(&with(&[toc(1, false, 2), 252, 2], 300)), Ok(vec![260, 40]));
        assert_eq!(lens(&with(&[toc(1, false, 3), 3], 30)), Ok(vec![10; 3]));
        assert_eq!(lens(&with(&[toc(1, false, 3), 0x83, 5, 0], 30)), Ok(vec![5, 0, 25]));
        // 254 bytes of padding and one more.
        assert_eq!(lens(&with(&[toc(1, false, 3), 0x42, 255, 1], 20 + 255)), Ok(vec![10, 10]));
        assert_eq!(lens(&[toc(1, false, 0)]), Ok(vec![0]));
        let p = with(&[toc(1, false, 3), 6], 60);
        assert_eq!(OpusPacket::parse(&p).unwrap().samples(), 5_760);
    }

    #[test]
    fn packets_that_break_a_requirement_are_refused() {
        for (data, rule) in [
            (vec![], "R1"),
            (with(&[toc(1, false, 0)], 1_276), "R2"),
            (with(&[toc(1, false, 1)], 31), "R3"),
            (with(&[toc(1, false, 2), 31], 30), "R4"),
            (with(&[toc(1, false, 2), 252], 0), "R4"),
            (with(&[toc(1, false, 3), 0], 30), "R5"),
            (with(&[toc(1, false, 3), 7], 70), "R5"),
            (with(&[toc(1, false, 3)], 0), "R6"),
            (with(&[toc(1, false, 3), 4], 30), "R6"),
            (with(&[toc(1, false, 3), 0x41, 255], 30), "R6"),
            (with(&[toc(1, false, 3), 0x83, 20, 20], 30), "R7"),
            (vec![0; 70_000], "datagram"),
        ] {
            let error = lens(&data).unwrap_err();
            assert!(error.contains(rule), "{rule}: {error}");
        }
        let mut out = Payloads::default();
        let max = DataSize::from_bytes(20);
        assert!(packetise(&with(&[8], 20), max, &mut out).unwrap_err().to_string().contains("larger"));
        packetise(&with(&[8], 19), max, &mut out).unwrap();
        assert_eq!((out.len(), depacketise(out.iter().next().unwrap().0).unwrap().samples()), (1, 960));
    }

    #[test]
    fn flags_of_fec_and_silence_are_read() {
        let fec = |first, bits| OpusPacket::parse(&[first, bits, 0, 0]).unwrap().has_fec();
        // 20 ms: voice activity, LBRR. 60 ms: three voice activity bits. Two channels have both each.
        assert!(fec(toc(1, false, 0), 0b0100_0000) && !fec(toc(1, false, 0), 0b1011_1111));
        assert!(fec(toc(3, false, 0), 0b0001_0000) && !fec(toc(3, false, 0), 0b1110_1111));
        assert!(fec(toc(1, true, 0), 0b0001_0000) && fec(toc(1, true, 0), 0b0100_0000));
        assert!(!fec(toc(31, false, 0), 0xff));
        assert!(OpusPacket::parse(&[toc(1, false, 0)]).unwrap().is_silence());
        assert!(OpusPacket::parse(&[toc(1, false, 0), 1]).unwrap().is_silence());
        assert!(!OpusPacket::parse(&[toc(1, false, 0), 1, 2]).unwrap().is_silence());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..1_500)) {
            if let Ok(p) = OpusPacket::parse(&data) {
                let frames: usize = p.frames().map(<[u8]>::len).sum();
                prop_assert!(frames < data.len() && p.samples() <= MAX_SAMPLES && p.frames().len() <= MAX_FRAMES);
                let _ = p.has_fec();
            }
        }
    }
}
