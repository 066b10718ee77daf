//! A source that is a real encoder.

use crate::error::InputError;
use crate::media::{Clip, Video};
use crate::raw::source::RawSourceTable;
use crate::suggest;
use crate::traces::Traces;
use crate::tree::Text;
use weir_media::clip::Character;
use weir_media::{MAX_SIDE, RateChange, VideoCodec};
use weir_units::DataSize;

/// Built-in clips; the first is the default.
const CLIPS: [&str; Character::ALL.len()] = {
    let [a, b, c, d] = Character::ALL;
    [a.name(), b.name(), c.name(), d.name()]
};
/// Size of a built-in clip if the scenario names none.
const DEFAULT_SIZE: (u32, u32) = (640, 480);
/// Bounds of a slice: below, headers outweigh content; above, a slice is no slice.
const SLICE_BYTES: std::ops::RangeInclusive<u64> = 50..=65_000;

/// The encoder of a source's options. Errors: unknown or out-of-range values, with their positions.
pub(crate) fn encoder(
    text: &Text,
    options: &RawSourceTable,
    fps: f64,
    traces: &mut Traces,
) -> Result<Video, InputError> {
    let codec = match &options.codec {
        None => VideoCodec::H264,
        Some(name) => VideoCodec::by_name(&name.value).ok_or_else(|| {
            let known = VideoCodec::ALL.map(VideoCodec::name);
            text.error(name.span.clone(), format!("no codec is named \"{}\"", name.value))
                .help(suggest::help(&name.value, &known))
        })?,
    };
    if let Some(gop) = options.gop.as_ref().filter(|g| g.value == 0) {
        return Err(text.error(gop.span.clone(), "expected at least 1 frame from one key frame to the next"));
    }
    let slice = options.slice_size.as_ref();
    if let Some(slice) = slice.filter(|s| !SLICE_BYTES.contains(&s.value.0.as_bytes())) {
        let message = format!("expected between {} and {} bytes in a slice", SLICE_BYTES.start(), SLICE_BYTES.end());
        return Err(text.error(slice.span.clone(), message));
    }
    Ok(Video {
        codec,
        library: options.library.as_ref().map(|l| l.value.clone()),
        clip: clip_of(text, options, traces)?,
        fps,
        gop: options.gop.as_ref().map(|g| g.value),
        rate_change: options.rate_change.as_ref().map_or(RateChange::Seamless, |r| r.value.rate_change()),
        slice_size: slice.map(|s| DataSize::from_bytes(s.value.0.as_bytes())),
        vmaf: options.vmaf.as_ref().is_some_and(|v| v.value),
    })
}

fn clip_of(text: &Text, options: &RawSourceTable, traces: &mut Traces) -> Result<Clip, InputError> {
    let (name, picture, grain) = (options.clip.as_ref(), options.picture.as_ref(), options.grain.as_ref());
    if let Some(file) = name.filter(|n| n.value.ends_with(".y4m")) {
        if let Some(picture) = picture {
            return Err(text.error(picture.span.clone(), "a file has a picture size of its own: leave `picture` out"));
        }
        if let Some(grain) = grain {
            return Err(text.error(grain.span.clone(), "a file's pictures are as they are: leave `grain` out"));
        }
        return Ok(Clip::File { name: file.value.clone(), bytes: traces.bytes(text, file)? });
    }
    let (width, height) = picture.map_or(Ok(DEFAULT_SIZE), |p| {
        parse_size(&p.value).ok_or_else(|| {
            let message = format!("expected width and height such as \"640x480\", each 2 to {MAX_SIDE}");
            text.error(p.span.clone(), message)
        })
    })?;
    let known = &CLIPS;
    let chosen = name.map_or(known[0], |n| &n.value);
    if let Some(name) = name.filter(|n| !known.contains(&&n.value[..])) {
        return Err(text
            .error(name.span.clone(), format!("no clip is named \"{}\", and it is no .y4m file", name.value))
            .help(suggest::help(&name.value, known)));
    }
    Ok(Clip::BuiltIn { name: chosen.to_owned(), width, height, grain: grain.is_none_or(|g| g.value) })
}

fn parse_size(text: &str) -> Option<(u32, u32)> {
    let (width, height) = text.split_once('x')?;
    let side = |s: &str| s.trim().parse().ok().filter(|n| (2..=MAX_SIDE).contains(n));
    Some((side(width)?, side(height)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ScenarioFile, Source};
    use weir_cc::Registry;

    fn source(options: &str) -> Result<Source, InputError> {
        let text = format!(
            "title = \"t\"\nduration = \"1 s\"\n[links.a]\nrate = \"1 Mbps\"\ndelay = \"1 ms\"\n[rtp.v]\n\
             controller = \"fixed\"\nstart_rate = \"1 Mbps\"\nplayout_deadline = \"400 ms\"\nsource = {options}\n"
        );
        let registry = Registry::builtin();
        let file = ScenarioFile::parse("t", &text, ".".as_ref(), &registry)?;
        Ok(file.scenario(None, None, &registry)?.flows[0].rtp().expect("rtp").source.clone())
    }

    #[test]
    fn an_encoder_is_read_with_its_defaults_and_its_options() {
        let Ok(Source::Encoder(video)) = source("\"encoder\"") else { panic!("no encoder") };
        let clip = Clip::BuiltIn { name: "talking-head".into(), width: 640, height: 480, grain: true };
        assert_eq!((video.codec, video.clip, video.fps, video.gop), (VideoCodec::H264, clip, 30.0, None));
        let all = "{ model = \"encoder\", codec = \"vp8\", clip = \"sports\", picture = \"176x144\", fps = 15, gop = 14, \
                   rate_change = \"restart\", slice_size = \"500 B\" }";
        let Ok(Source::Encoder(video)) = source(all) else { panic!("no encoder") };
        assert_eq!((video.codec, video.gop, video.rate_change), (VideoCodec::Vp8, Some(14), RateChange::Restart));
        assert_eq!(video.slice_size, Some(DataSize::from_bytes(500)));
    }

    #[test]
    fn invalid_encoder_options_are_reported_at_their_position() {
        for (options, word) in [
            ("{ model = \"encoder\", codec = \"H265\" }", "no codec is named"),
            ("{ model = \"encoder\", clip = \"talking-had\" }", "talking-had"),
            ("{ model = \"encoder\", clip = \"none-here.y4m\" }", "there is no such file"),
            ("{ model = \"encoder\", clip = \"none-here.y4m\", grain = false }", "leave `grain` out"),
            ("{ model = \"encoder\", picture = \"big\" }", "640x480"),
            ("{ model = \"encoder\", gop = 0 }", "at least 1 frame"),
            ("{ model = \"encoder\", slice_size = \"1 B\" }", "bytes in a slice"),
            ("{ model = \"trace\", file = \"x\", clip = \"sports\" }", "has no option `clip`"),
        ] {
            let error = source(options).expect_err(word).to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn sizes_are_two_numbers() {
        assert_eq!(parse_size("640x480"), Some((640, 480)));
        assert_eq!(parse_size("176 x 144"), Some((176, 144)));
        for wrong in ["640", "x", "0x480", "640x99999", "-2x4"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }
}
