//! How an answering end accepts an offered section.

use super::section::{codec_names, parameter};
use super::{
    Description, Direction, Encoding, Extension, MediaSection, Payload, SdpError, Section, Sources, StreamCodec,
};
use weir_media::VideoCodec;

/// A section of an answer, without its transport.
pub(super) struct Chosen {
    /// The index of this end's own section from which it is made; `None` if it only describes the transport.
    pub(super) own: Option<usize>,
    pub(super) section: MediaSection,
    /// For each encoding that this end sends, its index among the own section's.
    pub(super) sends: Vec<usize>,
}

/// Whether an end with these parameters accepts the other's: H.264 has mutually exclusive packetisation modes
/// (RFC 6184, section 8.2.2); Weir writes mode 1, whose readers accept mode 0 too.
fn fits(codec: StreamCodec, payload: &Payload) -> bool {
    let Payload::Video(_, fmtp) = payload else { return true };
    let mode = fmtp.as_deref().and_then(|f| parameter(f, "packetization-mode"));
    codec != StreamCodec::Video(VideoCodec::H264) || matches!(mode, None | Some("0" | "1"))
}

impl Description {
    /// Accepts an offered section by one of this end's own free sections of the same kind: that of the same name or, if
    /// names do not matter, the first.
    ///
    /// # Errors
    /// There is none, or no common codec.
    pub(super) fn choose(
        &self,
        offered: &MediaSection,
        free: &mut Vec<usize>,
        by_name: bool,
    ) -> Result<Chosen, SdpError> {
        let fits = |own: &&MediaSection| own.kind == offered.kind && (!by_name || own.mid == offered.mid);
        let own = |i: usize| self.sections.get(i).and_then(Section::media).filter(fits);
        let taken = free.iter().find_map(|&i| Some((i, choose(own(i)?, offered)?)));
        let (index, mut chosen) = taken.ok_or_else(|| SdpError::NothingShared {
            what: "codec",
            theirs: codec_names([offered].into_iter()),
            ours: codec_names(self.media()),
        })?;
        free.retain(|&i| i != index);
        chosen.own = Some(index);
        Ok(chosen)
    }
}

/// The answer of `own` to `offered`; `None` without a common codec.
fn choose(own: &MediaSection, offered: &MediaSection) -> Option<Chosen> {
    let has = |wanted: &dyn Fn(&Payload) -> bool| own.payloads.iter().any(|(_, p)| wanted(p));
    let (pt, media) = offered
        .payloads
        .iter()
        .find(|(_, p)| p.codec().is_some_and(|codec| has(&|own| own.codec() == Some(codec)) && fits(codec, p)))?;
    let mut payloads = vec![(*pt, media.clone())];
    for (number, p) in &offered.payloads {
        let wanted = match p {
            Payload::Retransmission(of) => of == pt && has(&|own| matches!(own, Payload::Retransmission(_))),
            Payload::FlexFec | Payload::ReedSolomon | Payload::Rlc => has(&|own| own == p),
            Payload::Video(..) | Payload::Audio(..) => false,
        };
        if wanted {
            payloads.push((*number, p.clone()));
        }
    }
    let extensions: Vec<_> =
        offered.extensions.iter().copied().filter(|(_, e)| own.extensions.iter().any(|(_, o)| o == e)).collect();
    let direction = Direction::of(
        own.direction.sends() && offered.direction.receives(),
        own.direction.receives() && offered.direction.sends(),
    );
    // Without its name in packets, an encoding could not be identified.
    let named = extensions.iter().any(|(_, e)| *e == Extension::Rid);
    let usable = |e: &&Encoding| named && (e.formats.is_empty() || e.formats.contains(pt));
    let taken = |e: &Encoding| {
        let formats = if e.formats.is_empty() { Vec::new() } else { vec![*pt] };
        Encoding { formats, ..e.clone() }
    };
    let receive = offered.send.iter().filter(usable).filter(|_| direction.receives());
    let pairs = own.send.iter().enumerate().zip(offered.receive.iter().filter(usable));
    let (sends, send) = pairs
        .filter(|((_, own), theirs)| direction.sends() && own.limits.is_within(theirs.limits))
        .map(|((i, _), theirs)| (i, taken(theirs)))
        .unzip();
    let section = MediaSection {
        kind: own.kind,
        mid: offered.mid,
        transport: None,
        direction,
        payloads,
        feedback: own.feedback.iter().copied().filter(|f| offered.feedback.contains(f)).collect(),
        extensions,
        sources: own.sources,
        receive: receive.take(own.receive.len()).map(taken).collect(),
        send,
    };
    Some(Chosen { own: None, section, sends })
}

/// The answer to a section that is refused but describes the transport of others, so that it cannot be omitted
/// (RFC 9143, section 7.3.1): inactive.
pub(super) fn inactive(offered: &MediaSection) -> Chosen {
    let media = offered.payloads.iter().find(|(_, p)| p.codec().is_some());
    let section = MediaSection {
        direction: Direction::Inactive,
        transport: None,
        payloads: media.into_iter().cloned().collect(),
        sources: Sources::default(),
        send: Vec::new(),
        receive: Vec::new(),
        ..offered.clone()
    };
    Chosen { own: None, section, sends: Vec::new() }
}
