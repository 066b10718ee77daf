//! Cameras, encoders and decoders as the command line names them.

use super::feed::Feed;
use crate::args::live::call::{CodecName, MediaArgs, start_rate};
use crate::output::{Failure, remark};
use crate::{Done, reading};
use std::io::BufReader;
use std::path::Path;
use weir_lab::scenario::InputError;
use weir_live::call::{Camera, RecordFile, Recording, VideoReceive, VideoSend};
use weir_media::clip::{Character, Clip, ClipSpec, parse_size};
use weir_media::utility::Preference;
use weir_media::y4m::{Unseekable, Y4mReader};
use weir_media::{
    EncoderConfig, FrameRate, MediaError, OnDamage, Picture, PictureSource, ShapedEncoder, VideoCodec, VideoEncoder,
    VideoError,
};

/// Bytes read ahead of a file.
const BUFFER: usize = 1 << 20;

impl CodecName {
    /// The codec; `None` for a model.
    pub(super) fn codec(self) -> Option<VideoCodec> {
        match self {
            Self::H264 => Some(VideoCodec::H264),
            Self::Vp8 => Some(VideoCodec::Vp8),
            Self::Vp9 => Some(VideoCodec::Vp9),
            Self::Model => None,
        }
    }
}

pub(super) fn codec_error(e: VideoError) -> Failure {
    InputError::whole("--codec", e.to_string()).into()
}

pub(super) fn clip_error(e: impl ToString) -> Failure {
    InputError::whole("--clip", e.to_string()).into()
}

/// Opens the camera; what is drawn, is drawn now.
fn camera(args: &MediaArgs, feed: &Feed) -> Result<Camera, Failure> {
    let rate = args.fps;
    if args.clip == "-" || is_pipe(&args.clip) {
        let (reader, _) =
            reading::open(&args.clip, feed.flags()).map_err(|e| clip_error(format!("{}: {e}", args.clip)))?;
        let place = if args.clip == "-" { "standard input" } else { &args.clip };
        let reader = BufReader::with_capacity(BUFFER, reader);
        let reader = Y4mReader::new(place, Unseekable(reader)).map_err(|e| feed.header_failed(&e))?;
        let rate = reader.frame_rate();
        return Ok(Camera::live(Box::new(feed.watch(reader)), rate));
    }
    let Some(character) = Character::by_name(&args.clip) else {
        let path = Path::new(&args.clip);
        if !path.exists() {
            let names = Character::ALL.map(Character::name).join(", ");
            let what = format!("{}: no such file, and no built-in clip: those are {names}", args.clip);
            return Err(InputError::whole("--clip", what).into());
        }
        let file = weir_files::open(path).map_err(|e| clip_error(format!("{}: {e}", args.clip)))?;
        let reader = BufReader::with_capacity(BUFFER, file);
        let mut reader = Y4mReader::new(args.clip.clone(), reader).map_err(clip_error)?;
        // The first picture is read before anybody is called.
        let mut first = Picture::new(1, 1).map_err(clip_error)?;
        if !reader.next_picture(&mut first).map_err(clip_error)? {
            return Err(clip_error(MediaError::new(&args.clip, "number of pictures", 0, "one or more")));
        }
        reader.rewind().map_err(clip_error)?;
        let rate = reader.frame_rate();
        return Ok(Camera::file(Box::new(feed.watch(reader)), rate, args.duration.is_some()));
    };
    let (width, height) = parse_size(&args.size).map_err(|e| InputError::whole("--size", e.to_string()))?;
    let made = Clip::new(ClipSpec::new(character, width, height, rate));
    let reel = made.and_then(|mut clip| Camera::reel(&mut clip, rate));
    Ok(reel.map_err(|e: MediaError| InputError::whole("--clip, --size", e.to_string()))?)
}

/// Whether a file is none that can be read from its beginning again, such as a pipe or a device.
fn is_pipe(path: &str) -> bool {
    std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// The video that is sent; `feed` watches the camera's reads.
pub(super) fn sending(
    args: &MediaArgs,
    codec: VideoCodec,
    feed: &Feed,
    prefer: Option<Preference>,
) -> Result<VideoSend, Failure> {
    let camera = camera(args, feed)?;
    let (width, height) = camera.size();
    let config = EncoderConfig {
        frame_rate: camera.rate().as_f64(),
        bit_rate: start_rate(args.start_rate, args.limits())?,
        key_interval: args.key_interval,
        threads: args.encoder_threads,
        layering: args.layering()?,
        ..EncoderConfig::live(width, height)
    };
    Ok(VideoSend { camera, encoder: encoder(codec, &config, prefer)? })
}

/// An encoder, which may code smaller and fewer pictures if there is a preference.
pub(super) fn encoder(
    codec: VideoCodec,
    config: &EncoderConfig,
    prefer: Option<Preference>,
) -> Result<Box<dyn VideoEncoder>, Failure> {
    let made = match prefer {
        None => weir_codecs::encoder(codec, config),
        Some(_) => ShapedEncoder::new(Box::new(move |config| weir_codecs::encoder(codec, config)), *config)
            .map(|e| Box::new(e) as Box<dyn VideoEncoder>),
    };
    made.map_err(codec_error)
}

/// Handling of received video, of which pictures up to this size are recorded.
pub(super) fn receiving(
    args: &MediaArgs,
    codec: VideoCodec,
    rate: FrameRate,
    quality: bool,
    largest: (u32, u32),
) -> Result<VideoReceive, Failure> {
    let decoder = weir_codecs::decoder(codec).map_err(codec_error)?;
    let mut record = None;
    if let Some(path) = &args.record {
        let recording = RecordFile::create(path).and_then(|file| Recording::to_file(file, rate));
        let recording = recording.map_err(|e| InputError::whole("--record", format!("{}: {e}", path.display())))?;
        record = Some(recording.of_at_most(args.record_limit.as_bytes()).with_largest(largest));
    }
    Ok(VideoReceive { decoder, on_damage: OnDamage::Show, record, quality })
}

/// Says what became of a file of pictures. Errors: it is not whole.
pub(super) fn recorded(args: &MediaArgs, quiet: bool, recorded: u64, error: Option<&str>) -> Done {
    let Some(path) = &args.record else { return Ok(()) };
    if !quiet {
        remark(&format!("{recorded} pictures: {}", path.display()));
    }
    error.map_or(Ok(()), |e| Err(Failure::work(format!("writing {} ended early: {e}", path.display()))))
}
