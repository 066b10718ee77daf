//! All that is kept of a call, for the files that it is saved as.

use super::LinkPlan;
use super::browser::BrowserSample;
use super::samples::{Change, Snapshot};
use crate::sdp::Negotiated;
use std::time::Duration;
use weir_cc::{FeedbackFormat, Limits};
use weir_media::MediaKind;
use weir_units::DataRate;

/// Properties of a call that do not change.
#[derive(Clone, PartialEq, Debug)]
pub struct Terms {
    /// Payload types and their formats, as in `a=rtpmap`.
    pub formats: Vec<(u8, String)>,
    /// Whether lost packets are retransmitted.
    pub repairs: bool,
    /// Per-packet feedback.
    pub feedback: Option<FeedbackFormat>,
    /// The first media rate.
    pub start_rate: DataRate,
    /// The emulated link.
    pub link: Option<LinkPlan>,
    /// Whether it is in a room.
    pub in_room: bool,
    /// When it began, since 1970.
    pub began: Duration,
}

impl Terms {
    pub(super) fn formats(n: &Negotiated) -> Vec<(u8, String)> {
        let video = std::iter::once((MediaKind::Video, n.payload_type, n.rtx));
        let sections = video.chain(n.further.iter().map(|s| (s.media, s.payload_type, s.rtx)));
        let mut formats: Vec<(u8, String)> = Vec::new();
        for (media, payload_type, rtx) in sections {
            let name = match media {
                MediaKind::Video => format!("{}/90000", n.codec),
                MediaKind::Audio => "opus/48000/2".to_owned(),
            };
            let rtx = rtx.map(|rtx| (rtx, "rtx/90000".to_owned()));
            // The sections of a room have the same types.
            for format in std::iter::once((payload_type, name)).chain(rtx) {
                if formats.iter().all(|f| f.0 != format.0) {
                    formats.push(format);
                }
            }
        }
        formats
    }
}

/// All that is kept of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// State, sums, and this end's samples; of the browser's, those in [`Self::browser`] are complete.
    pub snapshot: Snapshot,
    /// The browser's samples.
    pub browser: Vec<BrowserSample>,
    /// Bounds on the media rate.
    pub limits: Limits,
    /// The settings at the beginning, and each change.
    pub changes: Vec<Change>,
    /// Properties that do not change.
    pub terms: Terms,
}
