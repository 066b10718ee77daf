//! Captured pictures, by which a receiving end in the same process measures latency and quality.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_media::Picture;
use weir_units::Timestamp;

/// Frames whose capture times are kept.
const MAX_TIMES: usize = 1_024;
/// Frames whose pictures are kept.
const MAX_PICTURES: usize = 64;

/// Recent captures. Frames are identified by the RTP timestamps of their packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captures(Arc<Mutex<CaptureLog>>);

#[derive(Debug, Default)]
struct CaptureLog {
    /// Timestamp as counted by the source, capture time, and the picture while it is kept.
    frames: VecDeque<(u32, Timestamp, Option<Arc<Picture>>)>,
    /// Timestamp of the first frame as counted by the source.
    first: Option<u32>,
    /// The offset added by the session.
    offset: Option<u32>,
}

/// A frame as it was captured.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    pub captured: Timestamp,
    pub picture: Option<Arc<Picture>>,
}

impl Captures {
    fn log(&self) -> MutexGuard<'_, CaptureLog> {
        // The state is consistent even if a holder panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frame of this timestamp, as counted by the source, is being sent.
    pub(crate) fn note(&self, rtp_timestamp: u32, captured: Timestamp, picture: Option<&Arc<Picture>>) {
        let mut k = self.log();
        k.first.get_or_insert(rtp_timestamp);
        if k.frames.len() == MAX_TIMES {
            k.frames.pop_front();
        }
        k.frames.push_back((rtp_timestamp, captured, picture.cloned()));
        let old = k.frames.len().checked_sub(MAX_PICTURES + 1);
        if let Some((.., picture)) = old.and_then(|i| k.frames.get_mut(i)) {
            *picture = None;
        }
    }

    /// The first packet is sent: it shows the session's timestamp offset.
    pub(crate) fn on_first_packet(&self, rtp_timestamp: u32) {
        let mut k = self.log();
        if let (None, Some(first)) = (k.offset, k.first) {
            k.offset = Some(rtp_timestamp.wrapping_sub(first));
        }
    }

    /// Sets the session's timestamp offset, if it is known before a packet is sent.
    pub(crate) fn set_offset(&self, offset: u32) {
        self.log().offset = Some(offset);
    }

    /// The frame of this timestamp, as in packets.
    pub(crate) fn find(&self, rtp_timestamp: u32) -> Option<Capture> {
        let k = self.log();
        let wanted = rtp_timestamp.wrapping_sub(k.offset?);
        let found = k.frames.iter().rev().find(|f| f.0 == wanted)?;
        Some(Capture { captured: found.1, picture: found.2.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_by_what_stands_in_their_packets() {
        let c = Captures::default();
        let picture = Arc::new(Picture::new(2, 2).unwrap());
        for n in 0..2_000u32 {
            c.note(n * 3_000, Timestamp::from_millis(i64::from(n)), Some(&picture));
            c.on_first_packet((n * 3_000).wrapping_add(u32::MAX - 5));
        }
        let at = |n: u32| c.find((n * 3_000).wrapping_add(u32::MAX - 5)).map(|f| (f.captured, f.picture.is_some()));
        assert_eq!(at(1_999), Some((Timestamp::from_millis(1_999), true)));
        assert_eq!(at(1_000), Some((Timestamp::from_millis(1_000), false)));
        assert_eq!((at(5), c.find(7).is_none()), (None, true));
        assert_eq!(Arc::strong_count(&picture), 1 + MAX_PICTURES);
    }
}
