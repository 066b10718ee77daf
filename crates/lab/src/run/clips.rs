//! Pictures of clips, drawn or read once for all runs that code them.

use super::RunError;
use crate::scenario::{Clip, Flow, Video};
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};
use weir_media::clip::{self, Character, ClipSpec};
use weir_media::y4m::Y4mReader;
use weir_media::{FrameRate, MediaError, Picture, PictureSource};
use weir_units::TimeDelta;

/// Pictures of a drawn clip before it repeats, as many as the standard test sequences have.
const DRAWN: usize = 300;
/// Maximum bytes of pictures kept of one clip; the rest is omitted.
const MAX_BYTES: usize = 256 << 20;
/// Clips kept for the next run.
const MAX_CLIPS: usize = 2;

/// A clip's pictures, shared by any number of sources.
#[derive(Clone)]
struct Pictures {
    list: Arc<[Picture]>,
    interval: TimeDelta,
}

/// Identifies a clip: its file or name, size and rate.
#[derive(Clone, PartialEq)]
struct Key {
    clip: Clip,
    fps: f64,
}

static KEPT: Mutex<Vec<(Key, Pictures)>> = Mutex::new(Vec::new());

/// The pictures of a video, from the first on. Errors: a file that is no Y4M, or contains no picture.
pub(super) fn open(flow: &Flow, video: &Video) -> Result<Box<dyn PictureSource + Send>, RunError> {
    let error = |e: MediaError| RunError::Traffic { flow: flow.name.clone(), message: e.to_string() };
    // Drawing holds the lock: another run with the same clip waits for it instead of drawing it too.
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let key = Key { clip: video.clip.clone(), fps: video.fps };
    let known = kept.iter().find(|k| k.0 == key).map(|k| k.1.clone());
    let pictures = match known {
        Some(pictures) => pictures,
        None => {
            let pictures = read(video).map_err(error)?;
            if kept.len() == MAX_CLIPS {
                kept.remove(0);
            }
            kept.push((key, pictures.clone()));
            pictures
        }
    };
    Ok(Box::new(Player { pictures, next: 0 }))
}

fn read(video: &Video) -> Result<Pictures, MediaError> {
    match &video.clip {
        Clip::BuiltIn { name, width, height, grain } => {
            let character = Character::by_name(name).unwrap_or_default();
            // A thousandth is finer than any rate that a scenario names.
            let rate = FrameRate::new((video.fps * 1_000.0).round() as u32, 1_000)?;
            let spec = ClipSpec { grain: *grain, ..ClipSpec::new(character, *width, *height, rate) };
            collect(clip::Clip::new(spec)?, DRAWN)
        }
        Clip::File { name, bytes } => collect(Y4mReader::new(name.clone(), Cursor::new(&bytes[..]))?, usize::MAX),
    }
}

fn collect(mut source: impl PictureSource, most: usize) -> Result<Pictures, MediaError> {
    let (width, height) = source.size();
    let most = most.min(MAX_BYTES / Picture::len_of(width, height)?).max(1);
    let (mut list, mut picture) = (Vec::new(), Picture::new(width, height)?);
    while list.len() < most && source.next_picture(&mut picture)? {
        list.push(picture.clone());
    }
    if list.is_empty() {
        return Err(MediaError::new("clip", "number of pictures", 0, "at least one"));
    }
    Ok(Pictures { list: list.into(), interval: source.interval() })
}

/// Iterates over the pictures.
struct Player {
    pictures: Pictures,
    next: usize,
}

impl PictureSource for Player {
    fn size(&self) -> (u32, u32) {
        (self.pictures.list[0].width(), self.pictures.list[0].height())
    }
    fn interval(&self) -> TimeDelta {
        self.pictures.interval
    }
    fn next_picture(&mut self, picture: &mut Picture) -> Result<bool, MediaError> {
        let Some(next) = self.pictures.list.get(self.next) else { return Ok(false) };
        self.next += 1;
        picture.clone_from(next);
        Ok(true)
    }
    fn rewind(&mut self) -> Result<bool, MediaError> {
        self.next = 0;
        Ok(true)
    }
}
