//! Reading the offer of a call.

use super::audio::audio;
use super::{Direction, Negotiated, OfferError, Section, Wanted, offer};
use rtc_sdp::description::session::SessionDescription;

/// Reads an offer and decides what of it to take: a video section, and one of audio where there is one.
///
/// # Errors
/// It is no SDP, or there is nothing in it that this end could take.
pub fn negotiate(offer: &str, wanted: Wanted) -> Result<Negotiated, OfferError> {
    let session = offer::read(offer)?;
    let media = &session.media_descriptions;
    let mut refused = OfferError::new("the offer", "no video", "a video section");
    for (accepted, m) in media.iter().enumerate().filter(|(_, m)| m.media_name.media == "video") {
        match offer::section(&session, m, wanted) {
            // One encoding is received: the browser sends the first of a simulcast that is not taken.
            Ok(taken) => {
                let taken = Negotiated { sections: offer::kinds(media), accepted, rids: Vec::new(), ..taken };
                return Ok(with_audio(&session, taken, wanted.direction));
            }
            Err(e) => refused = e,
        }
    }
    Err(refused)
}

/// Takes the first section of Opus too, if it is on the same transport.
fn with_audio(session: &SessionDescription, n: Negotiated, wanted: Direction) -> Negotiated {
    let section = session.media_descriptions.iter().enumerate().find_map(|(index, m)| {
        if m.media_name.media != "audio" || offer::value(m, "ice-ufrag").is_some_and(|name| name != n.ice_name) {
            return None;
        }
        let offered = offer::direction(session, m).reversed();
        let direction =
            Direction { sends: offered.sends && wanted.sends, receives: offered.receives && wanted.receives };
        let audio = audio(m, index, &n).filter(|a| a.mid != n.mid && (direction.sends || direction.receives))?;
        Some(Section { direction, ..audio })
    });
    Negotiated { further: section.into_iter().collect(), ..n }
}
