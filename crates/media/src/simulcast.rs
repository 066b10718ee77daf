//! Simulcast: one camera for several encoders.
//!
//! Simulcast is several sources with one clock: a paused one has a target of zero and resumes with a key frame.

use crate::{MediaError, Picture, PictureSource, scale};
use core::fmt;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_units::TimeDelta;

/// Number of pictures kept for views that are polled later than others.
const KEPT: usize = 4;
/// Most pictures read to catch up when no view was polled; after a longer pause the clip continues where it stopped.
const MAX_SKIPPED: u64 = 32;

struct Shared {
    clip: Box<dyn PictureSource + Send>,
    /// The number of the next picture to read.
    next: u64,
    recent: VecDeque<(u64, Picture)>,
}

impl Shared {
    /// Reads up to the picture of this number, restarting the clip at its end; returns whether there is one.
    fn read_to(&mut self, number: u64) -> Result<bool, MediaError> {
        if number > self.next + MAX_SKIPPED {
            self.next = number;
        }
        while self.next <= number {
            let mut picture = match self.recent.pop_front() {
                Some((_, spare)) if self.recent.len() + 1 >= KEPT => spare,
                Some(first) => {
                    self.recent.push_front(first);
                    Picture::new(1, 1)?
                }
                None => Picture::new(1, 1)?,
            };
            if !self.clip.next_picture(&mut picture)?
                && (!self.clip.rewind()? || !self.clip.next_picture(&mut picture)?)
            {
                return Ok(false);
            }
            self.recent.push_back((self.next, picture));
            self.next += 1;
        }
        Ok(true)
    }
}

/// A clip or camera shared by several encoders. Each uses a view of its own size; a picture is read once, and scaled
/// only for views that request it, so a paused encoding costs nothing.
///
/// ```
/// use weir_media::clip::{Clip, ClipSpec, Character};
/// use weir_media::{FrameRate, Picture, PictureSource, SimulcastCamera};
/// let clip = Clip::new(ClipSpec::new(Character::TalkingHead, 64, 48, FrameRate::new(30, 1)?))?;
/// let camera = SimulcastCamera::new(Box::new(clip));
/// let (mut large, mut small) = (camera.view(64, 48)?, camera.view(32, 24)?);
/// let mut picture = Picture::new(1, 1)?;
/// assert!(large.next_picture_at(7, &mut picture)? && small.next_picture_at(7, &mut picture)?);
/// assert_eq!((picture.width(), picture.height()), (32, 24));
/// # Ok::<(), weir_media::MediaError>(())
/// ```
#[derive(Clone)]
pub struct SimulcastCamera(Arc<Mutex<Shared>>);

impl fmt::Debug for SimulcastCamera {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulcastCamera").field("next", &self.lock().next).finish_non_exhaustive()
    }
}

impl SimulcastCamera {
    /// Shares a clip, which restarts at its end if possible.
    pub fn new(clip: Box<dyn PictureSource + Send>) -> Self {
        Self(Arc::new(Mutex::new(Shared { clip, next: 0, recent: VecDeque::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic of a lock holder leaves no partial change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pictures at another size, for an [`EncodedSource`](crate::EncodedSource): views that start together show the
    /// same pictures at the same times.
    ///
    /// # Errors
    /// A side is zero or too large.
    pub fn view(&self, width: u32, height: u32) -> Result<SimulcastView, MediaError> {
        Picture::len_of(width, height)?;
        let interval = self.lock().clip.interval();
        Ok(SimulcastView { camera: self.clone(), size: (width, height), interval, next: 0 })
    }
}

/// The pictures of a [`SimulcastCamera`] at one size.
#[derive(Debug)]
pub struct SimulcastView {
    camera: SimulcastCamera,
    size: (u32, u32),
    interval: TimeDelta,
    next: u64,
}

impl PictureSource for SimulcastView {
    fn size(&self) -> (u32, u32) {
        self.size
    }
    fn interval(&self) -> TimeDelta {
        self.interval
    }
    fn next_picture(&mut self, picture: &mut Picture) -> Result<bool, MediaError> {
        self.next_picture_at(self.next, picture)
    }
    fn next_picture_at(&mut self, number: u64, picture: &mut Picture) -> Result<bool, MediaError> {
        if (picture.width(), picture.height()) != self.size {
            *picture = Picture::new(self.size.0, self.size.1)?;
        }
        self.next = number + 1;
        let mut shared = self.camera.lock();
        if !shared.read_to(number)? {
            return Ok(false);
        }
        // If it is no longer kept, the oldest one is used.
        let kept = shared.recent.iter().find(|(n, _)| *n >= number).or(shared.recent.back());
        if let Some((_, original)) = kept {
            scale(original, picture);
        }
        Ok(kept.is_some())
    }
    /// The camera restarts by itself.
    fn rewind(&mut self) -> Result<bool, MediaError> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::{Counting, ToyEncoder};
    use crate::{EncodedSource, FrameKind, FrameSource, Plane, VideoCodec, VideoEncoder};
    use weir_units::{DataRate, Timestamp};

    #[test]
    fn views_show_the_same_picture_whenever_they_ask() {
        let camera = SimulcastCamera::new(Box::new(Counting::new(200)));
        let (mut a, mut b) = (camera.view(32, 16).unwrap(), camera.view(16, 8).unwrap());
        let mut p = Picture::new(1, 1).unwrap();
        let mut shows = |view: &mut SimulcastView, n| {
            assert!(view.next_picture_at(n, &mut p).unwrap());
            (p.plane(Plane::Y)[0], p.width())
        };
        assert_eq!((shows(&mut a, 0), shows(&mut b, 0)), ((0, 32), (0, 16)));
        assert_eq!((shows(&mut a, 1), shows(&mut a, 2), shows(&mut b, 1)), ((1, 32), (2, 32), (1, 16)));
        assert_eq!((shows(&mut a, 9), shows(&mut b, 8), shows(&mut b, 2)), ((9, 32), (8, 16), (6, 16)));
        // After a long pause it continues where it stopped.
        assert_eq!((shows(&mut b, 1_000), shows(&mut a, 1_000)), ((10, 16), (10, 32)));
    }

    #[test]
    fn an_encoding_that_is_paused_resumes_with_a_key_frame_in_step() {
        let camera = SimulcastCamera::new(Box::new(Counting::new(250)));
        let source = || {
            let encoder = ToyEncoder::new(VideoCodec::Vp8);
            let view = camera.view(encoder.config().width, encoder.config().height).unwrap();
            let source = EncodedSource::new(Box::new(view), Box::new(encoder), Timestamp::ZERO).unwrap();
            source.with_key_frame_on_resume()
        };
        let (mut a, mut b) = (source(), source());
        let (on, off) = (DataRate::from_kbps(200), DataRate::ZERO);
        for s in [&mut a, &mut b] {
            s.on_target(on, Timestamp::ZERO);
        }
        let mut seen = (vec![], vec![]);
        for ms in 0..2_000 {
            let now = Timestamp::from_millis(ms);
            match ms {
                500 => b.on_target(off, now),
                1_010 => b.on_target(on, now),
                _ => {}
            }
            seen.0.extend(a.poll_frame(now).map(|f| (f.rtp_timestamp, f.kind)));
            seen.1.extend(b.poll_frame(now).map(|f| (f.rtp_timestamp, f.kind)));
        }
        assert_eq!(seen.0.len(), 60);
        let keys: Vec<_> = seen.1.iter().filter(|f| f.1 == FrameKind::Key).map(|f| f.0).collect();
        // 1,010 ms are between pictures 30 and 31.
        assert_eq!(keys, [0, seen.0[31].0]);
        assert!(seen.1.iter().all(|f| seen.0.iter().any(|a| a.0 == f.0)), "{seen:?}");
        assert_eq!((seen.1.len(), a.stats().loops), (15 + 29, 0));
    }
}
