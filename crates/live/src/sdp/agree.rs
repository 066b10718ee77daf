//! The agreement reached by an offer and its answer.

use super::choose::{Chosen, inactive};
use super::multipath::paths;
use super::section::codec_names;
use super::transport::{answer_dccp, answer_keys, shared_dccp, shared_keys};
use super::{
    DccpMedia, Description, Direction, Encoding, Extension, Feedback, IceDescription, MediaSection, MediaTransport,
    Payload, RefusedSection, SdpError, Section, Sources, StreamCodec, wrong,
};
use crate::srtp::SrtpKey;
use std::net::SocketAddr;
use weir_session::Label;
use weir_session::allocation::MediaKind;

/// The agreement of both ends, as seen by one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agreement {
    /// The other end's address.
    pub remote: SocketAddr,
    /// Its address on each path, the first one [`Self::remote`]: several with multipath RTP.
    pub paths: Vec<SocketAddr>,
    /// The other end's part in ICE, if both take part: its paths are then those that ICE finds.
    pub ice: Option<IceDescription>,
    /// This end's key and the other's; `None` for an unencrypted call.
    pub keys: Option<(SrtpKey, SrtpKey)>,
    /// The DCCP connection that carries the call: the other end's port, and this end's role.
    pub dccp: Option<DccpMedia>,
    /// The controller of what is sent to this end, if the other is Weir.
    pub remote_controller: Option<String>,
    /// Feedback messages that all streams have.
    pub feedback: Vec<Feedback>,
    /// Header extensions that all streams have, by their identifiers; the name of an encoding, those of simulcasts.
    pub extensions: Vec<(u8, Extension)>,
    /// Streams, in the order of their sections; at least one.
    pub streams: Vec<AgreedStream>,
    /// Sections that one of the ends refuses: media type and name, as in `video (mid screen)`.
    pub refused: Vec<String>,
}

/// A stream that both ends have agreed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgreedStream {
    /// Its index in the description that this end has offered, or answered from.
    pub own: usize,
    /// Its name in the bundle.
    pub mid: Option<Label>,
    /// Whether this end sends, and whether it receives.
    pub direction: Direction,
    /// The codec.
    pub codec: StreamCodec,
    /// Its payload type, the same both ways.
    pub payload_type: u8,
    /// Payload type of retransmissions, if both have them.
    pub retransmission: Option<u8>,
    /// Payload type of parity repair packets, if both have them.
    pub flexfec: Option<u8>,
    /// Payload type of Reed-Solomon repair packets, if both have them.
    pub reed_solomon: Option<u8>,
    /// Payload type of repair packets by windows that slide, if both have them.
    pub rlc: Option<u8>,
    /// Feedback messages.
    pub feedback: Vec<Feedback>,
    /// Encodings that this end sends, in order of preference; empty without simulcast.
    pub send: Vec<AgreedEncoding>,
    /// Encodings that it receives.
    pub receive: Vec<Encoding>,
    /// This end's sources.
    pub sources: Sources,
    /// The other end's, as far as they are named.
    pub remote: Sources,
}

/// An encoding that this end sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgreedEncoding {
    /// Its index among the encodings in this end's own section.
    pub own: usize,
    /// Its name and limits.
    pub encoding: Encoding,
}

impl Agreement {
    /// The identifier of a header extension, if both ends have it.
    pub fn extension(&self, extension: Extension) -> Option<u8> {
        self.extensions.iter().find(|(_, e)| *e == extension).map(|(id, _)| *id)
    }
    /// Whether a feedback message may be used for all streams.
    pub fn has(&self, feedback: Feedback) -> bool {
        self.feedback.contains(&feedback)
    }
    /// Whether this end sends anything.
    pub fn sends(&self) -> bool {
        self.streams.iter().any(|s| s.direction.sends())
    }
    /// Whether this end receives anything.
    pub fn receives(&self) -> bool {
        self.streams.iter().any(|s| s.direction.receives())
    }
}

impl AgreedStream {
    /// Whether a feedback message may be used.
    pub fn has(&self, feedback: Feedback) -> bool {
        self.feedback.contains(&feedback)
    }
}

/// A section of both ends.
struct Pair<'a> {
    own: usize,
    ours: &'a MediaSection,
    theirs: &'a MediaSection,
    /// The answer, of either end.
    common: &'a MediaSection,
    /// Encodings that this end sends.
    send: Vec<AgreedEncoding>,
}

impl Description {
    /// The places of the sections that share a transport.
    fn bundled(&self) -> impl Iterator<Item = usize> + '_ {
        self.bundle.iter().filter_map(|mid| self.sections.iter().position(|s| s.mid() == Some(*mid)))
    }

    fn transport_of(&self, index: usize) -> Option<&MediaTransport> {
        self.sections.get(index)?.media()?.transport.as_ref()
    }

    /// The accepted section whose transport carries the call: the first of the bundle that has one (RFC 9143,
    /// section 7.3.1); without a bundle, the first of video, or the first.
    fn carrier(&self, accepted: impl Fn(usize) -> bool) -> Option<usize> {
        let fits = |i: &usize| accepted(*i) && self.transport_of(*i).is_some();
        let alone = || {
            let all = || (0..self.sections.len()).filter(fits);
            let is_video = |i: &usize| self.sections[*i].media().is_some_and(|m| m.kind == MediaKind::Video);
            all().find(is_video).or_else(|| all().next())
        };
        if self.bundled().any(&accepted) { self.bundled().find(fits) } else { alone() }
    }

    /// Answers an offer: `self` lists everything that this end supports, under any numbers. Returns the answer, which
    /// uses the offer's numbers, and the agreement. Sections that this end does not support are refused.
    ///
    /// # Errors
    /// There is no common codec, only one end requires protection, or they cannot reach each other.
    pub fn answer(&self, offer: &Self) -> Result<(Self, Agreement), SdpError> {
        let mut free: Vec<usize> = (0..self.sections.len()).collect();
        let mut why = None;
        let mut chosen: Vec<Option<Chosen>> = offer.sections.iter().map(|_| None).collect();
        // Sections of the same name are matched first; then the others take the remaining ones.
        for by_name in [true, false] {
            for (chosen, section) in chosen.iter_mut().zip(&offer.sections).filter(|(c, _)| c.is_none()) {
                match section.media().map(|offered| self.choose(offered, &mut free, by_name)) {
                    Some(Ok(made)) => *chosen = Some(made),
                    Some(Err(e)) => why = why.or(Some(e)),
                    None => {}
                }
            }
        }
        let mut carrier = offer.carrier(|i| chosen[i].is_some());
        if carrier.is_none()
            && chosen.iter().any(Option::is_some)
            && let Some(index) = offer.bundled().find(|&i| offer.transport_of(i).is_some())
            && let Some(offered) = offer.sections[index].media()
        {
            chosen[index] = Some(inactive(offered));
            carrier = Some(index);
        }
        let (Some(carrier), Some(own)) = (carrier, self.media().find_map(|m| m.transport.as_ref())) else {
            return Err(why.unwrap_or_else(refused));
        };
        let offered = offer.transport_of(carrier).ok_or_else(refused)?;
        let with = offer.carried_with(carrier);
        let transport = MediaTransport {
            keys: answer_keys(own, offered)?,
            dccp: answer_dccp(own.dccp, offered.dccp)?,
            interfaces: own.interfaces.clone().filter(|_| offered.interfaces.is_some()),
            ice: own.ice.clone().filter(|_| offered.ice.is_some()),
            ..own.clone()
        };
        let mut places = Vec::new();
        let sections = (offer.sections.iter().zip(chosen).enumerate()).map(|(i, (section, chosen))| {
            let Some(mut chosen) = chosen.filter(|_| with.contains(&i)) else {
                return Section::Refused(refusal(section, !transport.keys.is_empty()));
            };
            chosen.section.transport = (i == carrier).then(|| transport.clone());
            places.push((i, chosen.own, chosen.sends));
            Section::Media(Box::new(chosen.section))
        });
        let sections: Vec<Section> = sections.collect();
        let is_in = |mid: &Label| sections.iter().any(|s| s.media().is_some_and(|m| m.mid == Some(*mid)));
        let mut bundle: Vec<Label> = offer.bundle.iter().copied().filter(is_in).collect();
        // The section that describes the transport is first.
        bundle.sort_by_key(|mid| Some(*mid) != sections[carrier].mid());
        let answer = Self { bundle, is_bundle_only: false, sections, ..self.clone() };
        let pairs = places.into_iter().filter_map(|(i, own, sends)| {
            let (ours, theirs) = (answer.sections[i].media()?, offer.sections[i].media()?);
            let send = sends.into_iter().zip(&ours.send).map(|(own, e)| AgreedEncoding { own, encoding: e.clone() });
            Some(Pair { own: own?, ours, theirs, common: ours, send: send.collect() })
        });
        let pairs = pairs.collect();
        let (ours, theirs) = (End { of: &answer, transport: &transport }, End { of: offer, transport: offered });
        let agreement = agree(ours, theirs, pairs)?;
        Ok((answer, agreement))
    }

    /// The agreement by the answer to this end's own offer.
    ///
    /// # Errors
    /// The answer names what was not offered, or refuses everything.
    pub fn accept(&self, answer: &Self) -> Result<Agreement, SdpError> {
        if answer.sections.len() != self.sections.len() {
            let expected = format!("{}, as many as in the offer (RFC 3264, section 6)", self.sections.len());
            return Err(wrong("number of sections (m=) in the answer", 0, answer.sections.len(), expected));
        }
        let both = |i: usize| Some((self.sections[i].media()?, answer.sections[i].media()?));
        let carrier = answer.carrier(|i| both(i).is_some()).ok_or_else(refused)?;
        let with = answer.carried_with(carrier);
        let theirs = answer.transport_of(carrier).ok_or_else(refused)?;
        let own = self.media().find_map(|m| m.transport.as_ref()).ok_or_else(refused)?;
        let pairs = (0..self.sections.len()).filter(|i| with.contains(i)).filter_map(|i| {
            let (ours, theirs) = both(i)?;
            let own = |e: &Encoding| {
                let own = ours.send.iter().position(|own| own.rid == e.rid && own.limits.is_within(e.limits))?;
                Some(AgreedEncoding { own, encoding: e.clone() })
            };
            let send = theirs.receive.iter().filter_map(own).collect();
            Some(Pair { own: i, ours, theirs, common: theirs, send })
        });
        let (ours, theirs) = (End { of: self, transport: own }, End { of: answer, transport: theirs });
        agree(ours, theirs, pairs.collect())
    }

    /// The indices of the sections carried by this one's transport.
    fn carried_with(&self, carrier: usize) -> Vec<usize> {
        let bundled: Vec<usize> = self.bundled().collect();
        let over_dccp = self.transport_of(carrier).is_some_and(|t| t.dccp.is_some());
        if bundled.contains(&carrier) && !over_dccp { bundled } else { vec![carrier] }
    }
}

/// An end's description, and its transport.
#[derive(Clone, Copy)]
struct End<'a> {
    of: &'a Description,
    transport: &'a MediaTransport,
}

fn agree(own: End<'_>, other: End<'_>, pairs: Vec<Pair<'_>>) -> Result<Agreement, SdpError> {
    let (ours, theirs, other) = (own.transport, other.transport, other.of);
    if !theirs.rtcp_mux {
        let way_out = "Weir has one port for RTP and RTCP";
        return Err(SdpError::Missing { field: "a=rtcp-mux", line: 0, way_out });
    }
    let keys = shared_keys(ours, theirs)?;
    let dccp = shared_dccp(ours.dccp, theirs.dccp)?;
    let all = |has: &dyn Fn(&MediaSection) -> bool| pairs.iter().all(|p| has(p.common));
    let feedback = Feedback::ALL.into_iter().map(|f| f.0).filter(|f| all(&|m| m.feedback.contains(f))).collect();
    let mut extensions: Vec<(u8, Extension)> = Vec::new();
    for (extension, _) in Extension::ALL {
        let of = |m: &MediaSection| m.extensions.iter().find(|(_, e)| *e == extension).map(|(id, _)| *id);
        let is_simulcast = |m: &MediaSection| !m.send.is_empty() || !m.receive.is_empty();
        let mut ids = pairs.iter().map(|p| p.common).filter(|m| extension != Extension::Rid || is_simulcast(m)).map(of);
        // An identifier names one extension in all of a bundle (RFC 9143, section 14).
        if let Some(id) = ids.next().flatten()
            && ids.all(|other| other == Some(id))
            && !extensions.iter().any(|(known, _)| *known == id)
        {
            extensions.push((id, extension));
        }
    }
    let mut paths = if dccp.is_some() { vec![theirs.address] } else { paths(ours, theirs) };
    if !extensions.iter().any(|(_, e)| *e == Extension::Mprtp) {
        paths.truncate(1);
    }
    let remote = paths.first().copied().unwrap_or(theirs.address);
    let has_rids = extensions.iter().any(|(_, e)| *e == Extension::Rid);
    let streams = pairs.iter().map(|p| stream(p, has_rids)).collect::<Result<Vec<_>, _>>()?;
    if streams.is_empty() {
        let (theirs, ours) = (codec_names(other.media()), codec_names(own.of.media()));
        return Err(SdpError::NothingShared { what: "codec", theirs, ours });
    }
    let is_agreed = |s: &Section| pairs.iter().any(|p| s.media().is_some_and(|m| std::ptr::eq(m, p.theirs)));
    Ok(Agreement {
        remote,
        paths,
        ice: theirs.ice.clone().filter(|_| ours.ice.is_some() && dccp.is_none()),
        keys,
        dccp,
        remote_controller: other.controller.clone(),
        feedback,
        extensions,
        streams,
        refused: other.sections.iter().filter(|s| !is_agreed(s)).map(|s| name(&refusal(s, false))).collect(),
    })
}

fn stream(p: &Pair<'_>, has_rids: bool) -> Result<AgreedStream, SdpError> {
    let first = p.common.payloads.iter().find_map(|(pt, payload)| Some((*pt, payload.codec()?)));
    let own_has = |pt, codec| p.ours.payloads.iter().any(|(n, p)| *n == pt && p.codec() == Some(codec));
    let Some((payload_type, codec)) = first.filter(|(pt, codec)| own_has(*pt, *codec)) else {
        let found = first.map_or("none".into(), |(pt, codec)| format!("{pt} {codec}"));
        return Err(wrong("payload type in the answer", 0, found, "one that was offered"));
    };
    let number = |want: &dyn Fn(&Payload) -> bool| p.common.payloads.iter().find(|(_, p)| want(p)).map(|(n, _)| *n);
    let direction = Direction::of(
        p.ours.direction.sends() && p.theirs.direction.receives(),
        p.ours.direction.receives() && p.theirs.direction.sends(),
    );
    let receives = |e: &&Encoding| p.ours.receive.iter().any(|own| own.rid == e.rid);
    Ok(AgreedStream {
        own: p.own,
        mid: p.common.mid,
        direction,
        codec,
        payload_type,
        retransmission: number(&|p| *p == Payload::Retransmission(payload_type)),
        flexfec: number(&|p| *p == Payload::FlexFec),
        reed_solomon: number(&|p| *p == Payload::ReedSolomon),
        rlc: number(&|p| *p == Payload::Rlc),
        feedback: p.common.feedback.iter().copied().filter(|f| p.ours.feedback.contains(f)).collect(),
        send: if has_rids && direction.sends() { p.send.clone() } else { Vec::new() },
        receive: p.theirs.send.iter().filter(receives).filter(|_| has_rids && direction.receives()).cloned().collect(),
        sources: p.ours.sources,
        remote: p.theirs.sources,
    })
}

fn refused() -> SdpError {
    wrong("port (m=)", 0, 0, "a port: the other end refuses the stream")
}

/// A section as it is refused.
fn refusal(section: &Section, is_secure: bool) -> RefusedSection {
    match section {
        Section::Refused(r) => r.clone(),
        Section::Media(m) => RefusedSection {
            media: if m.kind == MediaKind::Audio { "audio" } else { "video" }.into(),
            protocol: if is_secure { "RTP/SAVPF" } else { "RTP/AVPF" }.into(),
            formats: m.payloads.first().map_or("0".into(), |(pt, _)| pt.to_string()),
            mid: m.mid,
        },
    }
}

fn name(r: &RefusedSection) -> String {
    let media = super::shortened(&r.media);
    r.mid.map_or_else(|| media.clone(), |mid| format!("{media} (mid {mid})"))
}
