//! Reading the offer of a room's member: its camera and microphone, and places for the other members.

use super::audio::audio;
use super::offer;
use super::{Codecs, Direction, Negotiated, OfferError, Section, Wanted};
use rtc_sdp::description::media::MediaDescription;
use rtc_sdp::description::session::SessionDescription;
use weir_cc::FeedbackFormat;
use weir_media::VideoCodec;

const BOTH: Direction = Direction { sends: true, receives: true };

/// Reads the offer of a member of a room whose video has this codec. The first video section that the member sends is its camera, with
/// the encodings of a simulcast if it offers several; the first audio section that it sends is its microphone. Sections that it
/// receives are places for the others: at most `places` of each kind.
///
/// # Errors
/// It is no SDP; there is no video in it, or none in the room's codec; or there are places without the feedback that controllers need.
pub fn negotiate_room(offer: &str, codec: VideoCodec, places: usize) -> Result<Negotiated, OfferError> {
    let session = offer::read(offer)?;
    let media = &session.media_descriptions;
    let wanted = Wanted {
        codec,
        built_in: Codecs { vp8: codec == VideoCodec::Vp8, h264: codec == VideoCodec::H264 },
        direction: BOTH,
    };
    let is = |m: &MediaDescription, kind: &str| m.media_name.media == kind;
    let is_sent = |m: &MediaDescription| offer::direction(&session, m).sends;
    let video = || media.iter().enumerate().filter(|(_, m)| is(m, "video"));
    let first = video().find(|(_, m)| is_sent(m)).or_else(|| video().next());
    let (accepted, m) = first.ok_or_else(|| OfferError::new("the offer", "no video", "a video section"))?;
    offer::has_codec(m, codec)?;
    let first = offer::section(&session, &bundled(&session, m), wanted)?;
    // Media forwarded in a room are repaired by retransmission alone.
    let mut taken = Negotiated { sections: offer::kinds(media), accepted, flexfec: None, ulpfec: None, ..first };
    if places_lack_feedback(&session, &taken) {
        return Err(OfferError::new(
            "m=video",
            "no feedback",
            "a=rtcp-fb transport-cc and its a=extmap, or a=rtcp-fb ack ccfb",
        ));
    }
    let (mut video_places, mut audio_places) = (usize::from(taken.direction.sends), 0);
    let mut has_microphone = false;
    for (index, m) in media.iter().enumerate().filter(|(index, _)| *index != accepted) {
        let direction = offer::direction(&session, m).reversed();
        if is(m, "video") && direction.sends && video_places < places {
            offer::has_codec(m, codec)?;
            let wanted = Wanted { direction: Direction { receives: false, ..BOTH }, ..wanted };
            let place = offer::section(&session, &bundled(&session, m), wanted)?;
            same_feedback(&taken, place.reports, place.transport_sequence)?;
            video_places += 1;
            taken.further.push(Section { index, flexfec: None, ulpfec: None, ..place.first() });
        }
        if is(m, "audio")
            && let Some(audio) = audio(m, index, &taken)
        {
            let receives = direction.receives && !has_microphone;
            let sends = direction.sends && audio_places < places;
            has_microphone |= receives;
            audio_places += usize::from(sends);
            if sends || receives {
                taken.further.push(Section { direction: Direction { sends, receives }, ..audio });
            }
        }
    }
    check(&session, &taken)?;
    Ok(taken)
}

fn same_feedback(n: &Negotiated, reports: Option<FeedbackFormat>, number: Option<u8>) -> Result<(), OfferError> {
    if (reports, number) == (n.reports, n.transport_sequence) {
        return Ok(());
    }
    Err(OfferError::new(
        "m=video",
        "other feedback than that of the first",
        "the same feedback and extension numbers in each",
    ))
}

/// A section with what it leaves to the first of its bundle: those that are `bundle-only` have no transport of their own (RFC 9143,
/// section 7.1.3).
fn bundled(session: &SessionDescription, m: &MediaDescription) -> MediaDescription {
    let mut whole = m.clone();
    for key in ["rtcp-mux", "setup", "ice-ufrag", "fingerprint"] {
        if !m.has_attribute(key) && session.attribute(key).is_none() {
            let mut others = session.media_descriptions.iter().flat_map(|m| &m.attributes);
            whole.attributes.extend(others.find(|a| a.key == key).cloned());
        }
    }
    whole
}

/// Whether the other end would receive media and reports nothing on them.
fn places_lack_feedback(session: &SessionDescription, n: &Negotiated) -> bool {
    n.reports.is_none() && session.media_descriptions.iter().any(|m| offer::direction(session, m).receives)
}

/// One transport and different names.
fn check(session: &SessionDescription, n: &Negotiated) -> Result<(), OfferError> {
    let media = &session.media_descriptions;
    let mut mids = vec![n.mid];
    for s in &n.further {
        let m = &media[s.index];
        if mids.contains(&s.mid) {
            return Err(OfferError::new("a=mid", s.mid.to_string(), "another in each section"));
        }
        mids.push(s.mid);
        let fingerprint = offer::fingerprint(session, &bundled(session, m));
        if offer::value(m, "ice-ufrag").is_some_and(|name| name != n.ice_name) || fingerprint != Ok(n.fingerprint) {
            return Err(OfferError::new("the offer", "several transports", "all sections bundled (RFC 9143)"));
        }
    }
    Ok(())
}
