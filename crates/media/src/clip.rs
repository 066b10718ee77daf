//! Built-in clips: synthetic moving pictures that code like camera material, so that everything runs without a
//! download.
//!
//! A picture is a pure function of the specification and its number: the same on every machine, after a rewind, and in
//! any order. Motion follows time and not the number, so a clip at half the rate is every other picture of it, except
//! for the grain.
//!
//! Spatial and temporal information (ITU-T P.910, samples as stored; maximum and mean of 300 CIF pictures at 30 a
//! second) beside well-known test sequences, by `weir media quality CLIP CLIP`:
//!
//! | clip | SI, largest | SI, mean | TI, largest | TI, mean |
//! |---|---|---|---|---|
//! | `talking-head` | 81.4 | 80.8 | 6.2 | 3.0 |
//! | Akiyo | 66.6 | 64.9 | 5.9 | 2.5 |
//! | `hand-held` | 88.4 | 70.1 | 43.7 | 15.5 |
//! | Foreman | 84.9 | 77.7 | 36.0 | 14.3 |
//! | `sports` | 99.3 | 91.4 | 39.1 | 31.1 |
//! | `movie` | 65.7 | 42.4 | 33.0 | 14.2 |
//!
//! `movie` begins in the dark. In 640x360 at 25 a second, with the finest quantiser of ffmpeg's MPEG-4 (2), its seconds
//! take 0.07 to 8.3 Mbit/s, with a mean over 40 s of 4.0.
//!
//! In VGA at 15 pictures a second and 400 kbit/s, x264 (medium, zerolatency) reaches a luma PSNR of 39.1, 37.5 and 32.0
//! dB for the first three.
//!
//! Built-in clips are functions of picture number and seed: hash noise and `libm` only, pinned by checksum in a test.

mod art;
mod draw;
mod face;
mod hand_held;
mod motion;
mod movie;
mod sports;
mod talking_head;

use crate::{FrameRate, MediaError, Picture, PictureSource};
use core::fmt;
use core::str::FromStr;
use draw::Grain;
use weir_units::TimeDelta;

/// Greatest width and height: the surroundings of the picture are painted too, and take up to eight times its memory.
pub const MAX_CLIP_SIDE: u32 = 4_096;

/// The subject of a clip.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Character {
    /// A news reader in front of a studio wall, with a static camera.
    #[default]
    TalkingHead,
    /// A person talking and moving, with a hand-held camera; every ten seconds the camera pans to a building and back.
    HandHeld,
    /// Players on a field in front of a crowd, with a fast-moving camera.
    Sports,
    /// An action film: cuts between scenes of the other three at other distances and speeds, by day and night, with
    /// titles and flashes.
    Movie,
}

impl Character {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::TalkingHead, Self::HandHeld, Self::Sports, Self::Movie];
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TalkingHead => "talking-head",
            Self::HandHeld => "hand-held",
            Self::Sports => "sports",
            Self::Movie => "movie",
        }
    }
    /// The one with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }
}

impl fmt::Display for Character {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Specification of a clip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClipSpec {
    /// The subject.
    pub character: Character,
    /// Samples a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Pictures a second.
    pub rate: FrameRate,
    /// Number of pictures; `None` for endless.
    pub pictures: Option<u64>,
    /// Seed of texture, motion and grain.
    pub seed: u64,
    /// Whether the camera has grain, without which pictures code far better.
    pub grain: bool,
}

impl ClipSpec {
    /// An endless clip.
    pub const fn new(character: Character, width: u32, height: u32, rate: FrameRate) -> Self {
        Self { character, width, height, rate, pictures: None, seed: 1, grain: true }
    }
}

impl FromStr for ClipSpec {
    type Err = MediaError;
    /// A name with optional size and rate: `talking-head`, `hand-held:352x288`, `sports:1280x720@25`. The default is
    /// VGA and 30 pictures per second.
    fn from_str(text: &str) -> Result<Self, MediaError> {
        let (rest, rate) = text.split_once('@').map_or((text, "30"), |(a, b)| (a, b));
        let (name, size) = rest.split_once(':').map_or((rest, "640x480"), |(a, b)| (a, b));
        let character = Character::by_name(name).ok_or_else(|| {
            let names = Character::ALL.map(Character::name).join(", ");
            MediaError::new("clip", "name", format!("{name:?}"), format!("one of {names}"))
        })?;
        let (width, height) = parse_size(size)?;
        Ok(Self::new(character, width, height, rate.parse()?))
    }
}

/// Parses a size such as `640x480`.
///
/// # Errors
/// It is malformed, or a side is zero or above [`MAX_SIDE`](crate::MAX_SIDE).
pub fn parse_size(text: &str) -> Result<(u32, u32), MediaError> {
    let wrong = || MediaError::new("picture", "size", format!("{text:?}"), "width x height, as 640x480");
    let (w, h) = text.split_once(['x', 'X']).ok_or_else(wrong)?;
    let side = |t: &str| t.parse::<u32>().map_err(|_| wrong());
    let size = (side(w)?, side(h)?);
    Picture::len_of(size.0, size.1)?;
    Ok(size)
}

/// The scene in front of the camera.
enum Scene {
    TalkingHead(talking_head::Studio),
    HandHeld(hand_held::Site),
    Sports(sports::Field),
    Movie(Box<movie::Film>),
}

/// A clip, read picture by picture.
pub struct Clip {
    spec: ClipSpec,
    scene: Scene,
    grain: Grain,
    next: u64,
}

impl fmt::Debug for Clip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clip").field("spec", &self.spec).field("next", &self.next).finish_non_exhaustive()
    }
}

impl Clip {
    /// Draws the static parts, which takes as long as some tens of pictures.
    ///
    /// # Errors
    /// A side is zero or above [`MAX_CLIP_SIDE`].
    pub fn new(spec: ClipSpec) -> Result<Self, MediaError> {
        for (field, value) in [("width", spec.width), ("height", spec.height)] {
            if !(1..=MAX_CLIP_SIDE).contains(&value) {
                return Err(MediaError::new("clip", field, value, format!("1 to {MAX_CLIP_SIDE}")));
            }
        }
        let (size, seed) = ((spec.width, spec.height), spec.seed as u32 ^ (spec.seed >> 32) as u32);
        let (scene, sigma) = match spec.character {
            Character::TalkingHead => (Scene::TalkingHead(talking_head::Studio::new(size, seed)), 1.8),
            Character::HandHeld => (Scene::HandHeld(hand_held::Site::new(size, seed)), 2.3),
            Character::Sports => (Scene::Sports(sports::Field::new(size, seed)), 2.0),
            Character::Movie => (Scene::Movie(Box::new(movie::Film::new(size, seed))), 2.0),
        };
        Ok(Self { spec, scene, grain: Grain::new(sigma, seed), next: 0 })
    }

    /// Its specification.
    pub fn spec(&self) -> &ClipSpec {
        &self.spec
    }

    /// Draws the picture of this number, counted from 0, independently of the read position.
    pub fn draw(&mut self, number: u64, picture: &mut Picture) {
        let ClipSpec { width, height, rate, .. } = self.spec;
        if (picture.width(), picture.height()) != (width, height) {
            *picture = Picture::new(width, height).expect("the size was checked when the clip was made");
        }
        let t = rate.time_of(number).as_secs_f64();
        match &mut self.scene {
            Scene::TalkingHead(s) => s.draw(t, picture),
            Scene::HandHeld(s) => s.draw(t, picture),
            Scene::Sports(s) => s.draw(t, picture),
            // Titles have no camera grain.
            Scene::Movie(s) => {
                if !s.draw(t, picture) {
                    return;
                }
            }
        }
        if self.spec.grain {
            self.grain.add(number, picture);
        }
    }
}

impl PictureSource for Clip {
    fn size(&self) -> (u32, u32) {
        (self.spec.width, self.spec.height)
    }
    fn interval(&self) -> TimeDelta {
        self.spec.rate.interval()
    }
    fn next_picture(&mut self, picture: &mut Picture) -> Result<bool, MediaError> {
        if self.spec.pictures.is_some_and(|n| self.next >= n) {
            return Ok(false);
        }
        self.draw(self.next, picture);
        self.next += 1;
        Ok(true)
    }
    fn rewind(&mut self) -> Result<bool, MediaError> {
        self.next = 0;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
