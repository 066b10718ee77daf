//! A codec for tests: packets with Opus framing; the first byte of each frame gives its samples.

use crate::audio::{
    AudioCodec, AudioDecoder, AudioEncoder, AudioEncoderConfig, AudioError, Channels, CodedAudio, OpusPacket, PcmSource,
};

/// Samples whose high byte counts packets of 20 ms.
#[derive(Debug, Default)]
pub(crate) struct Stairs(pub(crate) u64);

impl PcmSource for Stairs {
    fn channels(&self) -> Channels {
        Channels::Mono
    }
    fn read(&mut self, pcm: &mut [i16]) {
        for s in pcm {
            *s = i16::from((self.0 / 960 % 100) as u8) << 8;
            self.0 += 1;
        }
    }
    fn skip(&mut self, samples: u64) {
        self.0 += samples;
    }
}

#[derive(Debug, Default)]
pub(crate) struct ToyAudioEncoder {
    pub(crate) config: AudioEncoderConfig,
    /// Numbers of the calls, from 0, that fail and that are silence.
    pub(crate) fails: Vec<u64>,
    pub(crate) silent: std::ops::Range<u64>,
    pub(crate) calls: u64,
}

fn wrong(what: &'static str) -> AudioError {
    AudioError::Library { codec: AudioCodec::Opus, library: "toy", what, message: "asked to".into() }
}

impl AudioEncoder for ToyAudioEncoder {
    fn codec(&self) -> AudioCodec {
        AudioCodec::Opus
    }
    fn library(&self) -> &'static str {
        "toy"
    }
    fn config(&self) -> &AudioEncoderConfig {
        &self.config
    }
    fn set_config(&mut self, config: &AudioEncoderConfig) -> Result<(), AudioError> {
        if config.expected_loss > 50 {
            return Err(wrong("set_config"));
        }
        self.config = *config;
        Ok(())
    }
    fn encode(&mut self, pcm: &[i16], out: &mut CodedAudio) -> Result<(), AudioError> {
        let call = self.calls;
        self.calls += 1;
        if self.fails.contains(&call) {
            return Err(wrong("encode"));
        }
        let samples = self.config.packet_time.samples();
        assert_eq!(pcm.len(), samples as usize);
        out.silence = self.silent.contains(&call);
        // CELT, fullband, 2.5 to 20 ms; longer packets have two or three frames.
        let (frames, of) = if samples > 960 { (samples / 960, 960) } else { (1, samples) };
        let toc = (28 + (of / 120).ilog2() as u8) << 3 | if frames > 1 { 3 } else { 0 };
        out.data = vec![toc];
        if frames > 1 {
            out.data.push(frames as u8);
        }
        let bytes = self.config.bit_rate.size_in(self.config.packet_time.duration()).as_bytes() as usize;
        for n in 0..frames as usize {
            if !out.silence {
                let length = bytes / frames as usize - 1;
                out.data.push((pcm[n * of as usize] >> 8) as u8);
                out.data.resize(out.data.len() + length - 1, 0);
            }
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(crate) struct ToyAudioDecoder {
    /// The first sample of packets that cannot be decoded.
    pub(crate) poison: Option<u8>,
}

impl AudioDecoder for ToyAudioDecoder {
    fn codec(&self) -> AudioCodec {
        AudioCodec::Opus
    }
    fn library(&self) -> &'static str {
        "toy"
    }
    fn channels(&self) -> Channels {
        Channels::Mono
    }
    fn decode(&mut self, packet: &[u8], pcm: &mut Vec<i16>) -> Result<u32, AudioError> {
        let p = OpusPacket::parse(packet)?;
        let first = p.frames().next().and_then(|f| f.first().copied());
        if first.is_some() && first == self.poison {
            return Err(wrong("decode"));
        }
        for frame in p.frames() {
            let value = i16::from(frame.first().copied().unwrap_or(0)) << 8;
            pcm.resize(pcm.len() + p.toc().frame_samples() as usize, value);
        }
        Ok(p.samples())
    }
    fn conceal(&mut self, samples: u32, pcm: &mut Vec<i16>) -> Result<u32, AudioError> {
        pcm.resize(pcm.len() + samples as usize, -1);
        Ok(samples)
    }
    fn decode_fec(&mut self, next: &[u8], samples: u32, pcm: &mut Vec<i16>) -> Result<u32, AudioError> {
        OpusPacket::parse(next)?;
        pcm.resize(pcm.len() + samples as usize, -2);
        Ok(samples)
    }
}
