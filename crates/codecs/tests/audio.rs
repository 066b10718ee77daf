//! Requirements on audio codecs.
#![cfg(feature = "opus")]
#![expect(clippy::unwrap_used, reason = "tests")]

use weir_codecs::{audio_decoder, audio_encoder, audio_list};
use weir_media::audio::{
    AudioCodec, AudioDecoder, AudioDelay, AudioEncoder, AudioEncoderConfig, AudioLimits, AudioMeter, AudioPlayout,
    AudioReceiver, Channels, CodedAudio, EncodedAudio, HeardContent, OpusPacket, PacketTime, PcmSource, SpeechClip,
    level_dbov,
};
use weir_media::{AUDIO_CLOCK_HZ, FrameSource, Payloads, SourceFeedback};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

const SECOND: usize = AUDIO_CLOCK_HZ as usize;
/// Delay of Opus in samples (RFC 6716, section 2: 6.5 ms).
const DELAY: usize = 312;

fn kbps(n: u64) -> DataRate {
    DataRate::from_kbps(n)
}
fn clip(seconds: usize) -> Vec<i16> {
    let mut pcm = vec![0; SECOND * seconds];
    SpeechClip::new(1).read(&mut pcm);
    pcm
}
fn config(bit_rate: DataRate) -> AudioEncoderConfig {
    AudioEncoderConfig { bit_rate, ..AudioEncoderConfig::default() }
}
fn encoder(config: &AudioEncoderConfig) -> Box<dyn AudioEncoder> {
    audio_encoder(AudioCodec::Opus, config).unwrap()
}
fn decoder() -> Box<dyn AudioDecoder> {
    audio_decoder(AudioCodec::Opus, Channels::Mono).unwrap()
}
fn encode(config: &AudioEncoderConfig, pcm: &[i16]) -> Vec<CodedAudio> {
    let mut e = encoder(config);
    let step = config.packet_time.samples() as usize * config.channels.count();
    let packet = |chunk| {
        let mut coded = CodedAudio::default();
        e.encode(chunk, &mut coded).unwrap();
        coded
    };
    pcm.chunks_exact(step).map(packet).collect()
}
/// Signal to noise in dB.
fn snr(original: &[i16], decoded: &[i16]) -> f64 {
    let square = |x: f64| x * x;
    let signal: f64 = original.iter().map(|&a| square(a.into())).sum();
    let noise: f64 = original.iter().zip(decoded).map(|(&a, &b)| square(f64::from(a) - f64::from(b))).sum();
    10.0 * (signal / noise.max(1.0)).log10()
}

#[test]
fn decoded_audio_matches_the_encoded() {
    let pcm = clip(4);
    for (rate, least) in [(16, 5.0), (32, 5.0), (128, 11.0)] {
        let (mut d, mut out) = (decoder(), vec![]);
        for p in encode(&config(kbps(rate)), &pcm) {
            assert_eq!(OpusPacket::parse(&p.data).unwrap().samples(), 960);
            assert_eq!(d.decode(&p.data, &mut out).unwrap(), 960);
        }
        assert_eq!(out.len(), pcm.len());
        let snr = snr(&pcm[..pcm.len() - DELAY], &out[DELAY..]);
        println!("{rate} kbit/s: {snr:.1} dB");
        assert!(snr > least, "{rate} kbit/s: {snr}");
    }
}

#[test]
fn the_bit_rate_follows_its_target() {
    let pcm = clip(10);
    for rate in [6, 12, 16, 24, 32, 64, 96, 128] {
        for variable_bit_rate in [true, false] {
            let packets = encode(&AudioEncoderConfig { variable_bit_rate, ..config(kbps(rate)) }, &pcm);
            let bytes: usize = packets.iter().map(|p| p.data.len()).sum();
            let share = bytes as f64 * 8.0 / 10_000.0 / rate as f64;
            println!("{rate} kbit/s, variable {variable_bit_rate}: {share:.3}");
            // Constant to the byte; variable saves in pauses and exceeds the target by little.
            let bounds = if variable_bit_rate { 0.65..1.05 } else { 0.98..1.001 };
            assert!(bounds.contains(&share), "{rate} kbit/s, variable {variable_bit_rate}: {share}");
        }
    }
}

#[test]
fn pauses_make_no_packets_with_dtx() {
    let pcm = clip(20);
    let spoken = SpeechClip::new(1);
    let sent = |dtx| encode(&AudioEncoderConfig { dtx, ..config(kbps(24)) }, &pcm);
    let (with, without) = (sent(true), sent(false));
    assert!(without.iter().all(|p| !p.silence));
    let silent = with.iter().filter(|p| p.silence).count();
    let pauses = (0..with.len()).filter(|n| !spoken.is_spoken(*n as u64 * 960)).count();
    println!("{silent} of {} are silence, {pauses} in pauses", with.len());
    assert!(silent * 2 > pauses && silent <= pauses, "{silent} of {pauses}");
    assert!(with.iter().filter(|p| p.silence).all(|p| p.data.len() <= 2));
    // In a pause one packet in 400 ms updates the noise.
    let runs: Vec<usize> = with.split(|p| !p.silence).map(<[_]>::len).filter(|n| *n > 0).collect();
    assert!(runs.iter().all(|n| *n <= 20), "{runs:?}");
}

#[test]
fn the_copy_in_the_next_packet_is_better_than_concealment() {
    let pcm = clip(10);
    let packets = encode(&AudioEncoderConfig { in_band_fec: true, expected_loss: 20, ..config(kbps(24)) }, &pcm);
    let holding = packets.iter().filter(|p| OpusPacket::parse(&p.data).unwrap().has_fec()).count();
    assert!(holding * 3 > packets.len(), "{holding} of {}", packets.len());
    let run = |lose: bool, fec: bool| {
        let (mut d, mut out) = (decoder(), vec![]);
        for (n, p) in packets.iter().enumerate() {
            match packets.get(n + 1) {
                Some(next) if lose && n % 7 == 3 && fec => d.decode_fec(&next.data, 960, &mut out).unwrap(),
                _ if lose && n % 7 == 3 => d.conceal(960, &mut out).unwrap(),
                _ => d.decode(&p.data, &mut out).unwrap(),
            };
        }
        out
    };
    let whole = run(false, false);
    let (concealed, recovered) = (snr(&whole, &run(true, false)), snr(&whole, &run(true, true)));
    println!("concealed {concealed:.1} dB, recovered {recovered:.1} dB");
    assert!(recovered > concealed + 3.0, "{recovered} to {concealed}");
    // Without the option there are none.
    let plain = encode(&config(kbps(24)), &pcm);
    assert!(plain.iter().all(|p| !OpusPacket::parse(&p.data).unwrap().has_fec()));
}

#[test]
fn everything_can_be_changed_while_it_runs() {
    let pcm = clip(6);
    let (mut e, mut d, mut out) = (encoder(&config(kbps(24))), decoder(), vec![]);
    let (mut at, mut n, mut coded) = (0, 0, CodedAudio::default());
    while at + 2_880 <= pcm.len() {
        let packet_time = PacketTime::ALL[n % 6];
        let bit_rate = kbps([16, 64, 24][n % 3]);
        let c = AudioEncoderConfig {
            packet_time,
            bit_rate,
            dtx: n % 4 == 0,
            complexity: (n % 11) as u8,
            expected_loss: (n % 30) as u8,
            in_band_fec: n % 2 == 0,
            ..AudioEncoderConfig::default()
        };
        e.set_config(&c).unwrap();
        assert_eq!(e.config(), &c);
        let samples = packet_time.samples() as usize;
        e.encode(&pcm[at..at + samples], &mut coded).unwrap();
        assert_eq!(OpusPacket::parse(&coded.data).unwrap().samples() as usize, samples, "{packet_time}");
        assert_eq!(d.decode(&coded.data, &mut out).unwrap() as usize, samples);
        (at, n) = (at + samples, n + 1);
    }
    assert_eq!(out.len(), at);
    assert!(level_dbov(&out).abs_diff(level_dbov(&pcm)) <= 3);
    for (wrong, field) in [
        (AudioEncoderConfig { complexity: 11, ..config(kbps(24)) }, "complexity is 11"),
        (AudioEncoderConfig { expected_loss: 101, ..config(kbps(24)) }, "expected_loss is 101"),
        (config(kbps(5)), "bit_rate is 5000"),
        (config(kbps(511)), "bit_rate is 511000"),
        (AudioEncoderConfig { channels: Channels::Stereo, ..config(kbps(24)) }, "channels is Stereo"),
    ] {
        let before = *e.config();
        let error = e.set_config(&wrong).unwrap_err().to_string();
        assert!(error.contains(field) && error.contains("expected"), "{error}");
        assert_eq!(e.config(), &before);
    }
    assert!(e.encode(&pcm[..7], &mut coded).unwrap_err().to_string().contains("pcm is 7"));
}

#[test]
fn two_channels_are_coded() {
    let mono = clip(2);
    let pcm: Vec<i16> = mono.iter().flat_map(|&s| [s, s / 4]).collect();
    let c = AudioEncoderConfig { channels: Channels::Stereo, ..config(kbps(96)) };
    let mut d = audio_decoder(AudioCodec::Opus, Channels::Stereo).unwrap();
    let mut out = vec![];
    for p in encode(&c, &pcm) {
        assert_eq!(d.decode(&p.data, &mut out).unwrap(), 960);
    }
    assert_eq!(out.len(), pcm.len());
    let side = |n| out.iter().skip(n).step_by(2).copied().collect::<Vec<_>>();
    let difference = level_dbov(&side(1)) - level_dbov(&side(0));
    assert!((8..=16).contains(&difference), "{difference}");
}

#[test]
fn the_same_samples_give_the_same_bytes() {
    let pcm = clip(3);
    let c = AudioEncoderConfig { in_band_fec: true, expected_loss: 10, dtx: true, ..config(kbps(24)) };
    let first = encode(&c, &pcm);
    let busy = std::thread::spawn(|| (0..30_000_000u64).fold(1, |a, b| a ^ b.wrapping_mul(a | 1)));
    assert!(first == encode(&c, &pcm));
    assert_ne!(busy.join().unwrap(), 0);
}

#[test]
fn hostile_packets_give_errors_and_the_decoder_continues() {
    let pcm = clip(3);
    let packets = encode(&AudioEncoderConfig { in_band_fec: true, expected_loss: 20, ..config(kbps(24)) }, &pcm);
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut d, mut out, mut refused) = (decoder(), vec![], 0);
    for n in 0..4_000 {
        let mut data = packets[draw(packets.len())].data.clone();
        match n % 4 {
            0 => data = (0..draw(300)).map(|_| draw(256) as u8).collect(),
            1 => data.truncate(draw(data.len() + 1)),
            _ => {
                for _ in 0..=draw(4) {
                    let at = draw(data.len());
                    data[at] = draw(256) as u8;
                }
            }
        }
        out.clear();
        let made = if n % 5 == 0 { d.decode_fec(&data, 960, &mut out) } else { d.decode(&data, &mut out) };
        match made {
            Ok(samples) => assert!(samples <= 5_760 && out.len() == samples as usize),
            Err(e) => {
                refused += 1;
                assert!(out.is_empty() && e.to_string().contains("opus"), "{e}");
            }
        }
    }
    assert!((100..3_000).contains(&refused), "{refused}");
    out.clear();
    assert_eq!(d.conceal(777, &mut out).unwrap(), 777);
    assert_eq!(d.decode(&packets[10].data, &mut out).unwrap(), 960);
    assert_eq!(out.len(), 777 + 960);
}

#[test]
fn a_lossy_path_is_heard_nearly_as_it_was() {
    let c = AudioEncoderConfig { in_band_fec: true, dtx: true, ..AudioEncoderConfig::default() };
    let run = |lose: u64| {
        let clip = Box::new(SpeechClip::new(1));
        let mut source = EncodedAudio::new(clip, encoder(&c), AudioLimits::default(), Timestamp::ZERO).unwrap();
        let meter = std::sync::Arc::new(std::sync::Mutex::new(AudioMeter::new(Channels::Mono)));
        let tap = meter.clone();
        source.set_tap(Box::new(move |t, pcm| tap.lock().unwrap().on_original(t, pcm)));
        source.set_packet_overhead(DataSize::from_bytes(40), Timestamp::ZERO);
        source.on_target(kbps(40), Timestamp::ZERO);
        assert!(source.on_feedback(SourceFeedback::FractionLost(26), Timestamp::ZERO));
        let mut receiver =
            AudioReceiver::new(AudioPlayout::new(AudioDelay::fixed(TimeDelta::from_millis(100))), decoder());
        receiver.playout_mut().set_capture_time(0, Timestamp::ZERO);
        let (mut sequence, mut bytes, mut markers) = (0, 0, 0);
        for ms in (0..20_000).step_by(5) {
            let now = Timestamp::from_millis(ms);
            while let Some(frame) = source.poll_frame(now) {
                let mut payloads = Payloads::default();
                assert!(source.take_payloads(DataSize::from_bytes(1_200), &mut payloads));
                let (payload, _) = payloads.iter().next().unwrap();
                assert_eq!(payload.len() as u64, frame.size.as_bytes());
                bytes += payload.len() as u64 + 40;
                markers += u64::from(frame.marker);
                if lose == 0 || sequence % lose != lose / 2 {
                    receiver.on_packet(now, sequence, frame.rtp_timestamp, payload).unwrap();
                }
                sequence += 1;
            }
            while let Some(heard) = receiver.poll(now) {
                assert!(heard.content != HeardContent::Silence || heard.level > 40, "{heard:?}");
                meter.lock().unwrap().on_heard(heard.rtp_timestamp, heard.pcm);
            }
        }
        let score = *meter.lock().unwrap().score();
        let rate = bytes as f64 * 8.0 / 20_000.0;
        println!("one in {lose}: {:?} {:?} {rate:.1} kbit/s, {markers} talk spurts", receiver.stats(), score);
        assert!(rate < 40.0 && markers >= 5, "{rate} {markers}");
        assert_eq!(receiver.stats().undecodable + receiver.stats().malformed, 0);
        (*receiver.stats(), *receiver.playout().stats(), score.mean_level_difference().unwrap())
    };
    let (clean, clean_playout, clean_difference) = run(0);
    let (lossy, lossy_playout, lossy_difference) = run(10);
    assert_eq!((clean.recovered, clean_playout.concealed_samples), (0, 0));
    assert!(clean_difference < 3.0, "{clean_difference}");
    assert_eq!(clean.concealed, 0);
    assert!(lossy.recovered * 2 > lossy.concealed, "{lossy:?}");
    let lost = lossy_playout.concealed_share().unwrap();
    assert!(lost > 0.0 && lost < 0.08, "{lost}");
    assert!(lossy_difference < clean_difference + 1.0, "{lossy_difference}");
}

#[test]
fn every_audio_codec_is_listed() {
    for l in audio_list() {
        assert_eq!(l.version.is_empty(), !l.built_in, "{l:?}");
        assert_eq!(audio_encoder(l.codec, &AudioEncoderConfig::default()).is_ok(), l.built_in);
        assert_eq!(audio_decoder(l.codec, Channels::Stereo).is_ok(), l.built_in);
    }
    assert_eq!(AudioCodec::by_name("OPUS"), Some(AudioCodec::Opus));
}
