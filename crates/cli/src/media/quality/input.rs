//! Inputs of the comparison: files, standard input and built-in clips.

use crate::args::QualityArgs;
use crate::output::Failure;
use crate::reading;
use crate::session::Session;
use std::io::{Cursor, Read};
use std::path::Path;
use weir_lab::scenario::InputError;
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::y4m::{RawReader, Unseekable, Y4mReader};
use weir_media::{MediaError, Picture, PictureSource};

/// A file or a clip, and how many pictures it has where that can be known.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) source: Box<dyn PictureSource>,
    pub(super) pictures: Option<u64>,
}

pub(crate) fn wrong(name: &str, e: impl std::fmt::Display) -> Failure {
    Failure::Input(InputError::whole(name, e.to_string()))
}

/// The fault of an input that was read, unless the stop flag ended the reading.
fn read_failed(session: &Session, name: &str, e: &MediaError) -> Failure {
    if session.stopped() { Failure::Reading(name.to_owned()) } else { wrong(name, e) }
}

impl Input {
    pub(super) fn open(session: &Session, name: &str, args: &QualityArgs) -> Result<Self, Failure> {
        if name != "-" && !Path::new(name).exists() {
            return Self::clip(name, args);
        }
        let opened = reading::open(name, vec![session.stop.clone()]);
        let (reader, length) = opened.map_err(|e| wrong(name, format!("cannot be read: {e}")))?;
        Self::read(name, reader, length, args).map_err(|e| read_failed(session, name, &e))
    }

    fn read(
        name: &str,
        mut reader: Box<dyn Read + Send>,
        length: Option<u64>,
        args: &QualityArgs,
    ) -> Result<Self, MediaError> {
        // The first bytes tell YUV4MPEG2 from raw video.
        let mut start = Vec::new();
        let read = reader.by_ref().take(9).read_to_end(&mut start);
        read.map_err(|e| MediaError::new(name, "reading", e, "bytes"))?;
        let y4m = start == b"YUV4MPEG2";
        let reader = Unseekable(Cursor::new(start).chain(reader));
        let place = if name == "-" { "standard input" } else { name };
        let source: Box<dyn PictureSource> = match args.size {
            Some(size) if !y4m => Box::new(RawReader::new(place, reader, size, args.fps)?),
            None if !y4m => {
                let expected = "YUV4MPEG2; raw I420 has no header: state its size by --size 640x480";
                return Err(MediaError::new(place, "beginning", "something else", expected));
            }
            _ => Box::new(Y4mReader::new(place, reader)?),
        };
        let (width, height) = source.size();
        let each = Picture::len_of(width, height)? as u64 + if y4m { 6 } else { 0 };
        Ok(Self { name: name.to_owned(), source, pictures: length.map(|n| n / each) })
    }

    fn clip(name: &str, args: &QualityArgs) -> Result<Self, Failure> {
        let known = name.split([':', '@']).next().and_then(Character::by_name).is_some();
        if !known {
            let names = Character::ALL.map(Character::name).join(", ");
            let help = format!("a file, - for standard input, or a built-in clip: {names}");
            return Err(InputError::whole(name, "there is no such file").help(help).into());
        }
        let mut spec: ClipSpec = name.parse().map_err(|e| wrong(name, e))?;
        if let (Some((width, height)), false) = (args.size, name.contains(':')) {
            (spec.width, spec.height) = (width, height);
        }
        if !name.contains('@') {
            spec.rate = args.fps;
        }
        let clip = Clip::new(spec).map_err(|e| wrong(name, e))?;
        Ok(Self { name: name.to_owned(), source: Box::new(clip), pictures: None })
    }

    pub(super) fn next(&mut self, session: &Session, picture: &mut Picture) -> Result<bool, Failure> {
        self.source.next_picture(picture).map_err(|e| read_failed(session, &self.name, &e))
    }
}
