//! Reading a section of audio.

use super::offer::{self, CCFB, TRANSPORT_CC};
use super::{Direction, Negotiated, Section};
use rtc_sdp::description::media::MediaDescription;
use weir_cc::FeedbackFormat;
use weir_media::MediaKind;
use weir_session::Label;

const BOTH: Direction = Direction { sends: true, receives: true };

/// A section of Opus; none where its packets would not be in the feedback.
pub(super) fn audio(m: &MediaDescription, index: usize, n: &Negotiated) -> Option<Section> {
    const NAME: &str = "opus/48000/2";
    if !m.media_name.protos.join("/").contains("SAVP") {
        return None;
    }
    let mid = Label::new(offer::value(m, "mid")?)?;
    let is_opus = |pt: &u8| offer::name_of(m, *pt).is_some_and(|name| name.eq_ignore_ascii_case(NAME));
    let payload_type = offer::payload_types(m).find(is_opus)?;
    let format = offer::of_type(m, "fmtp", payload_type).next().map(str::to_owned);
    let offers = |f: &str| offer::of_type(m, "rtcp-fb", payload_type).any(|o| o == f);
    let by_source = n.reports == Some(FeedbackFormat::CongestionControl);
    let extensions = offer::extensions(m, offers("transport-cc") && !by_source);
    let number = extensions.iter().find(|e| e.uri == TRANSPORT_CC).map(|e| e.id);
    // Without it the controller would see its packets as lost.
    let reported = if by_source { offers(CCFB) } else { number == n.transport_sequence };
    let feedback = if by_source { CCFB } else { "transport-cc" };
    reported.then(|| Section {
        index,
        mid,
        media: MediaKind::Audio,
        name: NAME,
        payload_type,
        format,
        rtx: None,
        flexfec: None,
        ulpfec: None,
        nack: false,
        feedback: vec![feedback.to_owned()],
        extensions,
        direction: BOTH,
        sources: offer::sources(m),
        rids: Vec::new(),
    })
}
