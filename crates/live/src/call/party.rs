//! A call between two processes: description and agreement.

use crate::call::config::CallConfig;
use crate::call::gather::{IceOptions, PreparedIce, gather};
use crate::call::joined::Joined;
use crate::call::lent::Lent;
use crate::call::path_sockets::{BoundPath, PathAddress, current_address};
use crate::call::streams::AUDIO_PAYLOAD_TYPE;
use crate::call::{CallError, random};
use crate::sdp::{
    Agreement, DCCP_PORT, DccpMedia, Description, Direction, Encoding, EncodingLimits, Extension, Feedback,
    MediaSection, MediaTransport, Payload, Section, Setup as DccpSetup, Sources,
};
use crate::signal::{Exchange, Listener, Refused, SignalError, Signalling, Token, Trust};
use crate::srtp::{SrtpKey, Suite};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicBool;
use weir_cc::Transport;
use weir_media::audio::{AudioCodec, OpusParams};
use weir_media::{EncoderConfig, PayloadFormat, VideoCodec};
use weir_session::Label;
use weir_session::allocation::MediaKind;
use weir_session::multipath::MAX_PATHS;

/// Identifiers of header extensions in offers.
const EXTENSIONS: [(u8, Extension); 2] = [(3, Extension::TransportSequence), (2, Extension::AbsSendTime)];
/// Of multipath RTP.
const SUBFLOW: (u8, Extension) = (6, Extension::Mprtp);
const LABELS: [(u8, Extension); 2] = [(9, Extension::Mid), (10, Extension::Rid)];

/// One end's offer in a call with another process.
#[derive(Clone, PartialEq, Debug)]
pub struct Party {
    /// Controller, rates, playout and protection.
    pub call: CallConfig,
    /// Its streams. The first describes the transport; an end without BUNDLE uses only that one.
    pub media: Vec<PartyMedia>,
    /// The address on which media is received; `None` uses that of the signalling connection, or the loopback device's
    /// if there is none.
    pub first_path: Option<PathAddress>,
    /// The port; 0 for any.
    pub port: u16,
    /// Where further paths begin, each at any port (multipath RTP). An end without any answers an offer of several paths
    /// with its one address; the offering end has to have some, or [`Self::offers_paths`].
    pub further_paths: Vec<PathAddress>,
    /// Whether several paths are offered even if this end has one address.
    pub offers_paths: bool,
    /// The servers, if paths are to be found by ICE with an end that takes part too; `None` without.
    pub ice: Option<IceOptions>,
    /// The expected identity of the other end, and whether media may be sent to another machine unencrypted.
    pub trust: Trust,
    /// The secret that an end presents when it connects, to a listener that expects it.
    pub token: Option<Token>,
}

/// A stream that an end can send, receive or both.
#[derive(Clone, PartialEq, Debug)]
pub struct PartyMedia {
    /// Its name; `None` for a call of one stream.
    pub mid: Option<Label>,
    /// Whether it sends, receives or both.
    pub direction: Direction,
    /// How it is coded.
    pub coding: PartyCoding,
}

/// How a stream of a [`Party`] is coded.
#[derive(Clone, PartialEq, Debug)]
pub enum PartyCoding {
    /// Video.
    Video {
        /// Codecs in order of preference.
        codecs: Vec<VideoCodec>,
        /// Properties of the pictures, for the description.
        pictures: EncoderConfig,
        /// Sizes of the encodings sent, in order of preference; one or none is no simulcast.
        sends: Vec<(u32, u32)>,
        /// Maximum encodings received.
        receives: usize,
    },
    /// Audio by Opus.
    Audio(OpusParams),
}

impl PartyMedia {
    /// A stream of video without simulcast.
    pub fn video(codecs: Vec<VideoCodec>, pictures: EncoderConfig, direction: Direction) -> Self {
        Self { mid: None, direction, coding: PartyCoding::Video { codecs, pictures, sends: Vec::new(), receives: 0 } }
    }

    fn payloads(&self) -> Vec<(u8, Payload)> {
        let (codecs, pictures) = match &self.coding {
            PartyCoding::Audio(params) => {
                return vec![(AUDIO_PAYLOAD_TYPE, Payload::Audio(AudioCodec::Opus, Some(params.to_string())))];
            }
            PartyCoding::Video { codecs, pictures, .. } => (codecs, pictures),
        };
        let mut payloads = Vec::new();
        for (i, &codec) in codecs.iter().enumerate() {
            // Dynamic payload types (RFC 3551, section 6), two for each codec.
            let pt = 96 + 2 * i as u8;
            let fmtp = PayloadFormat::new(codec).fmtp(pictures);
            payloads.push((pt, Payload::Video(codec, Some(fmtp))));
            payloads.push((pt + 1, Payload::Retransmission(pt)));
        }
        payloads.extend([(120, Payload::FlexFec), (121, Payload::ReedSolomon), (123, Payload::Rlc)]);
        payloads
    }

    fn section(&self) -> Result<MediaSection, CallError> {
        let (send, receive) = match &self.coding {
            PartyCoding::Video { sends, receives, .. } => (encodings(sends), encodings(&vec![(0, 0); *receives])),
            PartyCoding::Audio(_) => Default::default(),
        };
        let ssrc = (random()? as u32).max(1);
        // The encodings of a simulcast have separate sources.
        let sources = Sources { media: Some(ssrc), repair: Some(ssrc ^ 1 << 31), retransmission: Some(ssrc ^ 1 << 30) };
        let sources = if send.is_empty() { sources } else { Sources::default() };
        Ok(MediaSection {
            kind: if matches!(self.coding, PartyCoding::Audio(_)) { MediaKind::Audio } else { MediaKind::Video },
            mid: self.mid,
            transport: None,
            direction: self.direction,
            payloads: self.payloads(),
            feedback: Feedback::ALL.iter().map(|f| f.0).collect(),
            extensions: EXTENSIONS.into_iter().chain(LABELS.into_iter().filter(|_| self.mid.is_some())).collect(),
            sources,
            send: send.into_iter().filter(|_| self.direction.sends()).collect(),
            receive: receive.into_iter().filter(|_| self.direction.receives()).collect(),
        })
    }
}

/// Encodings of these sizes, named from 0 for the smallest, which is the last; none if there is only one.
fn encodings(sizes: &[(u32, u32)]) -> Vec<Encoding> {
    let limits = |&(w, h): &(u32, u32)| EncodingLimits {
        max_width: (w > 0).then_some(w),
        max_height: (h > 0).then_some(h),
        ..EncodingLimits::default()
    };
    let named = sizes.iter().enumerate().filter(|_| sizes.len() > 1).filter_map(|(i, size)| {
        let rid = Label::new(&(sizes.len() - 1 - i).to_string())?;
        Some(Encoding { rid, formats: Vec::new(), limits: limits(size) })
    });
    named.collect()
}

impl Party {
    /// A party at the signalling connection's address and any port, with one path.
    pub fn new(call: CallConfig, media: Vec<PartyMedia>, trust: Trust) -> Self {
        Self {
            call,
            media,
            first_path: None,
            port: 0,
            further_paths: Vec::new(),
            offers_paths: false,
            ice: None,
            trust,
            token: None,
        }
    }

    /// Offers a call and waits for the answer.
    ///
    /// # Errors
    /// The other end cannot be reached or is not the expected one, its answer cannot be used, or the flag is
    /// raised.
    pub fn connect(&self, by: &Signalling, stop: &AtomicBool) -> Result<Joined, CallError> {
        let exchange = Exchange::connect(by, &self.trust, stop)?;
        let offers_paths = self.offers_paths || !self.further_paths.is_empty() || self.ice.is_some();
        let paths = self.bind_paths(exchange.local_ip(), stop)?;
        let ice = self.prepare_ice(&paths)?;
        let own = self.describe(&paths, offers_paths, ice.as_ref())?;
        let answer = exchange.offer(&own, self.token.as_ref(), stop)?;
        let agreement = own.accept(&answer)?;
        self.check_protection(&agreement)?;
        let (sockets, lent) = paths.into_iter().map(BoundPath::into_parts).unzip();
        Ok(Joined { agreement, sockets, lent, begins: self.begins(), own, ice, offered: true })
    }

    /// Waits for a usable offer and answers it. `refused` receives each connection without one, with the reason.
    ///
    /// # Errors
    /// The listening socket fails, this end cannot be described, or the flag is raised.
    pub fn listen(
        &self,
        listener: &mut Listener,
        stop: &AtomicBool,
        refused: &mut dyn FnMut(&Refused),
    ) -> Result<Joined, CallError> {
        loop {
            let (exchange, offer) = listener.next(stop, refused)?;
            let mut paths = self.bind_paths(exchange.local_ip(), stop)?;
            if let Some(mut joined) = self.answer(exchange, &offer, &mut paths, stop, refused)? {
                joined.lent = paths.into_iter().map(|p| p.into_parts().1).collect();
                return Ok(joined);
            }
        }
    }

    /// Answers an offer with these sockets, or refuses it.
    ///
    /// # Errors
    /// This end cannot be described, or the flag is raised.
    pub(super) fn answer(
        &self,
        exchange: Exchange,
        offer: &Description,
        paths: &mut [BoundPath],
        stop: &AtomicBool,
        refused: &mut dyn FnMut(&Refused),
    ) -> Result<Option<Joined>, CallError> {
        let who = exchange.who();
        let ice = match self.prepare_ice(paths) {
            Err(e @ CallError::NoRelay { .. }) => {
                exchange.refuse(&e.to_string(), stop);
                refused(&Refused { why: format!("{who}: {e}"), who });
                return Ok(None);
            }
            other => other?,
        };
        let own = self.describe(paths, true, ice.as_ref())?;
        let answered = own.answer(offer).map_err(CallError::from).and_then(|(own, agreement)| {
            self.check_protection(&agreement)?;
            Ok((own, agreement))
        });
        let why = match answered {
            Ok((own, agreement)) => match exchange.answer(&own, stop) {
                Ok(()) => {
                    // Checks come through this end's relays from there.
                    let theirs = || agreement.ice.iter().flat_map(|ice| ice.candidates.iter().map(|c| c.address.ip()));
                    for path in &mut *paths {
                        path.lent.permit(theirs());
                        path.lent.turn(&path.socket);
                    }
                    let sockets = paths.iter().map(BoundPath::share).collect::<Result<Vec<_>, _>>()?;
                    let (begins, lent) = (self.begins(), Vec::<Lent>::new());
                    return Ok(Some(Joined { agreement, sockets, lent, begins, own, ice, offered: false }));
                }
                Err(SignalError::Stopped) => return Err(SignalError::Stopped.into()),
                Err(e) => e.to_string(),
            },
            Err(e) => {
                exchange.refuse(&e.to_string(), stop);
                format!("{who}: {e}")
            }
        };
        refused(&Refused { who, why });
        Ok(None)
    }

    /// Media to another machine is sent unencrypted only if this end allows it: the other end could have omitted the
    /// keys.
    fn check_protection(&self, agreement: &Agreement) -> Result<(), CallError> {
        if agreement.keys.is_some() || self.trust.insecure {
            return Ok(());
        }
        let candidates = agreement.ice.iter().flat_map(|ice| ice.candidates.iter().map(|c| c.address));
        let mut all = agreement.paths.iter().copied().chain(candidates);
        match all.find(|to| !to.ip().to_canonical().is_loopback()) {
            Some(to) => Err(CallError::InTheClear { to }),
            None => Ok(()),
        }
    }

    fn prepare_ice(&self, paths: &[BoundPath]) -> Result<Option<PreparedIce>, CallError> {
        self.ice.as_ref().map(|options| PreparedIce::new(paths, options)).transpose()
    }

    /// Where the further paths of a call by ICE begin, also those that are not there yet.
    fn begins(&self) -> Vec<PathAddress> {
        if self.ice.is_some() { self.further_paths.clone() } else { Vec::new() }
    }

    /// The sockets of this end's paths, the first one at this address unless it has another. With ICE those of further paths
    /// that are not there yet are left out.
    pub(super) fn bind_paths(&self, at: Option<IpAddr>, stop: &AtomicBool) -> Result<Vec<BoundPath>, CallError> {
        let reached_at = at;
        let first = match &self.first_path {
            Some(at) => at.clone(),
            None => PathAddress::Ip(reached_at.unwrap_or(Ipv4Addr::LOCALHOST.into())),
        };
        let is_there = |at: &&PathAddress| self.ice.is_none() || current_address(at).is_some();
        let further = self.further_paths.iter().take(MAX_PATHS - 1).filter(is_there).map(|at| BoundPath::new(at, 0));
        let paths = [BoundPath::new(&first, self.port)].into_iter().chain(further);
        let mut paths = paths.collect::<Result<Vec<_>, _>>()?;
        if let Some(options) = self.ice.as_ref().filter(|o| !o.stun.is_empty() || !o.relays.is_empty()) {
            gather(&mut paths, options, stop)?;
        }
        Ok(paths)
    }

    fn describe(
        &self,
        paths: &[BoundPath],
        has_paths: bool,
        ice: Option<&PreparedIce>,
    ) -> Result<Description, CallError> {
        // An end behind relays names those (RFC 8839, section 4.2.2: the default candidate).
        let is_hidden = ice.is_some_and(PreparedIce::is_relay_only);
        let shown = |p: &BoundPath| if is_hidden { p.lent.addresses().next() } else { Some(p.address) };
        let interfaces: Vec<_> = paths.iter().filter_map(shown).collect();
        let address = *interfaces.first().ok_or(CallError::NoStreams)?;
        let number = random()?;
        let sends = self.media.iter().any(|m| m.direction.sends());
        let dccp = matches!(self.call.transport, Some(Transport::Dccp { .. })).then(|| {
            // The sending end connects.
            let setup = if sends { DccpSetup::Active } else { DccpSetup::Passive };
            DccpMedia { port: DCCP_PORT, setup }
        });
        if dccp.is_some() && self.call.srtp.is_some() {
            return Err(CallError::DccpInTheClear);
        }
        if dccp.is_some() && interfaces.len() > 1 {
            return Err(CallError::PathsOverDccp);
        }
        let interfaces = Some(interfaces).filter(|_| has_paths && dccp.is_none());
        let ice = ice.filter(|_| dccp.is_none()).map(|ice| ice.description(paths));
        let mut keys = Vec::new();
        if self.call.srtp.is_some() {
            for (suite, tag) in Suite::ALL.into_iter().zip(1..) {
                keys.push((tag, SrtpKey::random(suite)?));
            }
        }
        let mut sections = self.media.iter().map(PartyMedia::section).collect::<Result<Vec<_>, _>>()?;
        if !self.call.capacity_vectors {
            sections.iter_mut().for_each(|s| s.feedback.retain(|f| *f != Feedback::CapacityVector));
        }
        if interfaces.is_some() {
            sections.iter_mut().for_each(|s| s.extensions.push(SUBFLOW));
        }
        let first = sections.first_mut().ok_or(CallError::NoStreams)?;
        first.transport = Some(MediaTransport { address, keys, dccp, rtcp_mux: true, interfaces, ice });
        Ok(Description {
            session: number >> 33,
            cname: Some(format!("{number:016x}@weir")),
            controller: sends.then(|| self.call.announced.clone().unwrap_or_else(|| self.call.controller.clone())),
            bundle: sections.iter().filter_map(|s| s.mid).collect(),
            is_bundle_only: sections.len() > 1,
            sections: sections.into_iter().map(|s| Section::Media(Box::new(s))).collect(),
        })
    }
}
