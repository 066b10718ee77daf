//! Picture sources in real time.

use std::sync::Arc;
use weir_media::{FrameRate, MediaError, Picture, PictureSource};

/// Maximum memory of pictures drawn before the call.
const REEL_BYTES: usize = 192 << 20;
/// Maximum seconds of them.
const REEL_SECONDS: f64 = 4.0;

/// Pictures for a call.
pub struct Camera {
    kind: Kind,
    size: (u32, u32),
    rate: FrameRate,
    /// Pictures arrive in their own time rather than when they are due.
    live: bool,
}

enum Kind {
    /// Pictures that are there already, shown forth and back.
    Reel { pictures: Vec<Arc<Picture>>, next: usize, back: bool },
    /// Pictures read on demand, repeated from the beginning at the end if possible.
    Stream { source: Box<dyn PictureSource + Send>, again: bool },
}

impl std::fmt::Debug for Camera {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Camera").field("size", &self.size).field("rate", &self.rate).finish_non_exhaustive()
    }
}

impl Camera {
    /// Reads the first seconds of a clip into memory and shows them forwards and backwards, so that drawing takes no
    /// time during the call.
    ///
    /// # Errors
    /// The clip fails or has no picture.
    pub fn reel(clip: &mut dyn PictureSource, rate: FrameRate) -> Result<Self, MediaError> {
        let size = clip.size();
        let bytes = Picture::len_of(size.0, size.1)?;
        let count = ((rate.as_f64() * REEL_SECONDS) as usize).min(REEL_BYTES / bytes).max(2);
        let mut pictures = Vec::with_capacity(count);
        let mut picture = Picture::new(size.0, size.1)?;
        while pictures.len() < count && clip.next_picture(&mut picture)? {
            pictures.push(Arc::new(picture.clone()));
        }
        if pictures.is_empty() {
            return Err(MediaError::new("clip", "pictures", 0, "one at least"));
        }
        Ok(Self { kind: Kind::Reel { pictures, next: 0, back: false }, size, rate, live: false })
    }

    /// Another camera with the same pictures in memory, from their beginning; `None` if they are not in memory.
    pub fn again(&self) -> Option<Self> {
        let Kind::Reel { pictures, .. } = &self.kind else { return None };
        let kind = Kind::Reel { pictures: pictures.clone(), next: 0, back: false };
        Some(Self { kind, size: self.size, rate: self.rate, live: self.live })
    }

    /// Reads pictures as they are due; at the end it restarts if `again` is set.
    pub fn file(source: Box<dyn PictureSource + Send>, rate: FrameRate, again: bool) -> Self {
        Self { size: source.size(), kind: Kind::Stream { source, again }, rate, live: false }
    }

    /// Takes pictures as they arrive: a camera's, or another program's. Its reader waits for them.
    pub fn live(source: Box<dyn PictureSource + Send>, rate: FrameRate) -> Self {
        Self { size: source.size(), kind: Kind::Stream { source, again: false }, rate, live: true }
    }

    /// Width and height of the pictures.
    pub fn size(&self) -> (u32, u32) {
        self.size
    }
    /// Pictures a second.
    pub fn rate(&self) -> FrameRate {
        self.rate
    }
    /// Whether pictures arrive in their own time.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// The next picture; `None` at the end.
    pub(crate) fn next_picture(&mut self) -> Result<Option<Arc<Picture>>, MediaError> {
        match &mut self.kind {
            Kind::Reel { pictures, next, back } => {
                let picture = pictures[*next].clone();
                let last = pictures.len() - 1;
                if *next == last {
                    *back = true;
                } else if *next == 0 {
                    *back = false;
                }
                *next = if *back { next.saturating_sub(1) } else { (*next + 1).min(last) };
                Ok(Some(picture))
            }
            Kind::Stream { source, again } => {
                let mut picture = Picture::new(self.size.0, self.size.1)?;
                if source.next_picture(&mut picture)? {
                    return Ok(Some(Arc::new(picture)));
                }
                let goes_on = *again && source.rewind()? && source.next_picture(&mut picture)?;
                Ok(goes_on.then(|| Arc::new(picture)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::TimeDelta;

    /// Pictures whose first sample is a counter.
    struct Counting(u8, u8);

    impl PictureSource for Counting {
        fn size(&self) -> (u32, u32) {
            (4, 2)
        }
        fn interval(&self) -> TimeDelta {
            TimeDelta::from_millis(1)
        }
        fn next_picture(&mut self, picture: &mut Picture) -> Result<bool, MediaError> {
            picture.as_i420_mut()[0] = self.0;
            self.0 += 1;
            Ok(self.0 <= self.1)
        }
        fn rewind(&mut self) -> Result<bool, MediaError> {
            self.0 = 0;
            Ok(true)
        }
    }

    fn take(mut c: Camera, n: usize) -> Vec<u8> {
        (0..n).map_while(|_| c.next_picture().unwrap().map(|p| p.as_i420()[0])).collect()
    }

    #[test]
    fn reels_go_forth_and_back_and_files_begin_again_where_wanted() {
        let rate: FrameRate = "1000".parse().unwrap();
        let reel = Camera::reel(&mut Counting(0, 4), rate).unwrap();
        assert_eq!(take(reel, 9), [0, 1, 2, 3, 2, 1, 0, 1, 2]);
        assert_eq!(take(Camera::reel(&mut Counting(0, 1), rate).unwrap(), 3), [0, 0, 0]);
        assert!(Camera::reel(&mut Counting(0, 0), rate).is_err());
        let mut shown = Camera::reel(&mut Counting(0, 4), rate).unwrap();
        shown.next_picture().unwrap();
        assert_eq!(take(shown.again().unwrap(), 2), [0, 1]);
        assert!(Camera::file(Box::new(Counting(0, 3)), rate, false).again().is_none());
        assert_eq!(take(Camera::file(Box::new(Counting(0, 3)), rate, false), 9), [0, 1, 2]);
        assert_eq!(take(Camera::file(Box::new(Counting(0, 3)), rate, true), 5), [0, 1, 2, 0, 1]);
    }
}
