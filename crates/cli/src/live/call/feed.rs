//! Pictures that are read during a call: what ends the reading, and what went wrong with it.

use crate::Done;
use crate::output::Failure;
use crate::session::Session;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_lab::scenario::InputError;
use weir_media::{MediaError, Picture, PictureSource};
use weir_units::TimeDelta;

/// Time that the call itself has to end before what it reads is cut off.
const GRACE: Duration = Duration::from_millis(200);

/// How reading goes. The call's camera waits for pictures on a thread that the call's end waits for.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    interrupted: Arc<AtomicBool>,
    /// Reads fail once it is up.
    ended: Arc<AtomicBool>,
    fault: Arc<Mutex<Option<MediaError>>>,
}

impl Feed {
    pub(super) fn new(session: &Session) -> Self {
        Self { interrupted: Arc::clone(&session.stop), ended: Arc::default(), fault: Arc::default() }
    }

    /// Flags at which a reader stops.
    pub(super) fn flags(&self) -> Vec<Arc<AtomicBool>> {
        vec![Arc::clone(&self.interrupted), Arc::clone(&self.ended)]
    }

    fn is_cut(&self) -> bool {
        self.flags().iter().any(|f| f.load(Ordering::Relaxed))
    }

    /// The call has begun: reads end with it.
    pub(super) fn call_begins(&self, duration: Option<TimeDelta>) {
        let Some(duration) = duration else { return };
        let (ended, time) = (Arc::clone(&self.ended), Duration::from_secs_f64(duration.as_secs_f64().max(0.0)) + GRACE);
        std::thread::spawn(move || {
            std::thread::sleep(time);
            ended.store(true, Ordering::Relaxed);
        });
    }

    /// Pictures of a source, which end without an error where the call ends the reading.
    pub(super) fn watch<S: PictureSource + Send>(&self, source: S) -> impl PictureSource + Send + use<S> {
        Watched { source, feed: self.clone(), pictures: 0 }
    }

    /// Errors: what was read was no video, or stopped being one.
    pub(super) fn check(&self) -> Done {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        fault.map_or(Ok(()), |e| Err(InputError::whole("--clip", e.to_string()).into()))
    }

    /// Why a header could not be read.
    pub(super) fn header_failed(&self, e: &MediaError) -> Failure {
        if self.interrupted.load(Ordering::Relaxed) {
            return Failure::Reading("-".into());
        }
        InputError::whole("--clip", e.to_string()).into()
    }
}

struct Watched<S> {
    source: S,
    feed: Feed,
    pictures: u64,
}

impl<S> Watched<S> {
    fn ended(&self, fault: MediaError) {
        let mut kept = self.feed.fault.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(fault);
    }
}

impl<S: PictureSource> PictureSource for Watched<S> {
    fn size(&self) -> (u32, u32) {
        self.source.size()
    }
    fn interval(&self) -> TimeDelta {
        self.source.interval()
    }
    fn next_picture(&mut self, picture: &mut Picture) -> Result<bool, MediaError> {
        match self.source.next_picture(picture) {
            Ok(true) => {
                self.pictures += 1;
                Ok(true)
            }
            Ok(false) if self.pictures == 0 && !self.feed.is_cut() => {
                self.ended(MediaError::new("what --clip names", "number of pictures", 0, "one or more"));
                Ok(false)
            }
            Ok(false) => Ok(false),
            Err(_) if self.feed.is_cut() => Ok(false),
            Err(e) => {
                self.ended(e.clone());
                Err(e)
            }
        }
    }
    fn rewind(&mut self) -> Result<bool, MediaError> {
        self.source.rewind()
    }
}
