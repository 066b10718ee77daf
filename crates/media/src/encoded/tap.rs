use crate::{CodedFrame, Picture};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use weir_units::Timestamp;

/// A picture when it was encoded.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// Its RTP timestamp, without the session's random offset.
    pub rtp_timestamp: u32,
    /// When it was due.
    pub captured: Timestamp,
    /// The original.
    pub picture: &'a Picture,
    /// The coded frame; without data if the encoder dropped the picture or failed.
    pub coded: &'a CodedFrame,
}

/// Called with each picture as it is encoded.
pub type Tap = Box<dyn FnMut(Captured<'_>) + Send>;

/// The latest originals of an [`EncodedSource`](crate::EncodedSource), for a quality meter at the other end: the source
/// adds them by a tap, the meter takes them by RTP timestamp. A bounded queue behind a lock, so that the two ends may
/// be on different threads; the oldest originals are dropped.
///
/// It copies pictures instead of drawing them again: a clip from a file or a camera cannot be read twice, and a copy is
/// cheap beside an encoder.
#[derive(Clone, Debug)]
pub struct Originals(Arc<Mutex<Buffer>>);

#[derive(Debug)]
struct Buffer {
    limit: usize,
    pictures: VecDeque<(u32, Picture)>,
    spare: Vec<Picture>,
    lost: u64,
}

impl Buffer {
    fn push(&mut self, rtp_timestamp: u32, picture: &Picture) {
        if self.pictures.len() == self.limit
            && let Some((_, oldest)) = self.pictures.pop_front()
        {
            self.lost += 1;
            self.spare.push(oldest);
        }
        let size = |p: &Picture| (p.width(), p.height());
        let copy = match self.spare.pop().filter(|p| size(p) == size(picture)) {
            Some(mut spare) => {
                spare.as_i420_mut().copy_from_slice(picture.as_i420());
                spare
            }
            None => picture.clone(),
        };
        self.pictures.push_back((rtp_timestamp, copy));
    }
}

impl Originals {
    /// Keeps at most `limit` pictures (at least one); it should cover the longest time from capture to playout with
    /// some margin. A picture takes width x height x 1.5 bytes.
    pub fn new(limit: usize) -> Self {
        let (pictures, spare) = (VecDeque::new(), Vec::new());
        Self(Arc::new(Mutex::new(Buffer { limit: limit.max(1), pictures, spare, lost: 0 })))
    }

    fn buffer(&self) -> std::sync::MutexGuard<'_, Buffer> {
        // A panic of a lock holder leaves no partial change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tap that adds pictures.
    pub fn tap(&self) -> Tap {
        let this = self.clone();
        Box::new(move |c| this.buffer().push(c.rtp_timestamp, c.picture))
    }

    /// Removes the originals up to and including the one with this timestamp, as counted by the source, and passes them
    /// to `each` in order: those before it belong to frames that never arrived.
    pub fn take_to(&self, rtp_timestamp: u32, mut each: impl FnMut(u32, &Picture)) {
        let mut kept = self.buffer();
        while kept.pictures.front().is_some_and(|(t, _)| rtp_timestamp.wrapping_sub(*t) as i32 >= 0)
            && let Some((t, picture)) = kept.pictures.pop_front()
        {
            each(t, &picture);
            kept.spare.push(picture);
        }
    }

    /// Number of pictures kept.
    pub fn len(&self) -> usize {
        self.buffer().pictures.len()
    }
    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number dropped for newer ones before being taken.
    pub fn lost(&self) -> u64 {
        self.buffer().lost
    }
}
