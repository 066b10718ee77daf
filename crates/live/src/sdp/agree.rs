//! What an offer and its answer come to.

use super::{DccpMedia, Description, Direction, Extension, Feedback, Payload, SdpError, Setup, wrong};
use crate::srtp::SrtpKey;
use std::net::SocketAddr;
use weir_media::VideoCodec;

/// What both ends have agreed on, as one of them sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agreement {
    /// Where the other end is.
    pub remote: SocketAddr,
    /// Whether this end sends, and whether it receives.
    pub direction: Direction,
    /// The codec.
    pub codec: VideoCodec,
    /// Its payload type, the same both ways.
    pub payload_type: u8,
    /// Payload type of retransmissions, where both have them.
    pub retransmission: Option<u8>,
    /// Payload type of parity repair packets, where both have them.
    pub flexfec: Option<u8>,
    /// Payload type of Reed-Solomon repair packets, where both have them.
    pub reed_solomon: Option<u8>,
    /// Feedback messages.
    pub feedback: Vec<Feedback>,
    /// Header extensions by their identifiers.
    pub extensions: Vec<(u8, Extension)>,
    /// This end's key and the other's; `None` for a call in the clear.
    pub keys: Option<(SrtpKey, SrtpKey)>,
    /// The DCCP connection that carries the call: the other end's port, and what this end is to do.
    pub dccp: Option<DccpMedia>,
    /// The other end's source of media, where it has told.
    pub remote_ssrc: Option<u32>,
    /// Its source of repair packets.
    pub remote_repair_ssrc: Option<u32>,
    /// Its source of retransmissions.
    pub remote_retransmission_ssrc: Option<u32>,
    /// The controller of what is sent to this end, where the other is Weir.
    pub remote_controller: Option<String>,
}

impl Agreement {
    /// The identifier of a header extension, where both have it.
    pub fn extension(&self, extension: Extension) -> Option<u8> {
        self.extensions.iter().find(|(_, e)| *e == extension).map(|(id, _)| *id)
    }
    /// Whether a feedback message may be used.
    pub fn has(&self, feedback: Feedback) -> bool {
        self.feedback.contains(&feedback)
    }
}

fn codecs(d: &Description) -> String {
    let names: Vec<_> = (d.payloads.iter())
        .filter_map(|(_, p)| if let Payload::Video(codec, _) = p { Some(codec.name()) } else { None })
        .collect();
    names.join(", ")
}

/// Whether an end of these parameters takes what the other's describe: H.264 has packetisation modes that exclude each
/// other (RFC 6184, section 8.2.2); Weir writes mode 1, whose readers take mode 0 too.
fn fits(codec: VideoCodec, fmtp: Option<&str>) -> bool {
    let mode = fmtp.and_then(|f| super::read::parameter(f, "packetization-mode"));
    codec != VideoCodec::H264 || matches!(mode, None | Some("0" | "1"))
}

impl Description {
    /// Answers an offer with what this end has: `self` names everything that it could do, under any numbers. Gives the
    /// answer, which takes the offer's numbers, and what it comes to.
    ///
    /// # Errors
    /// Where there is no codec in common, one end wants protection and the other none, or they cannot reach each other.
    pub fn answer(&self, offer: &Self) -> Result<(Self, Agreement), SdpError> {
        let ours = |codec| self.payloads.iter().any(|(_, p)| matches!(p, Payload::Video(c, _) if *c == codec));
        let chosen = offer.payloads.iter().find_map(|(pt, p)| match p {
            Payload::Video(codec, fmtp) if ours(*codec) && fits(*codec, fmtp.as_deref()) => {
                Some((*pt, *codec, p.clone()))
            }
            _ => None,
        });
        let (pt, _, video) = chosen.ok_or_else(|| SdpError::NothingShared {
            what: "codec",
            theirs: codecs(offer),
            ours: codecs(self),
        })?;
        let mut payloads = vec![(pt, video)];
        for (number, p) in &offer.payloads {
            let wanted = match p {
                Payload::Retransmission(of) => {
                    *of == pt && self.payloads.iter().any(|(_, p)| matches!(p, Payload::Retransmission(_)))
                }
                Payload::FlexFec | Payload::ReedSolomon => self.payloads.iter().any(|(_, o)| o == p),
                Payload::Video(..) => false,
            };
            if wanted {
                payloads.push((*number, p.clone()));
            }
        }
        let keys = match (self.keys.is_empty(), offer.keys.is_empty()) {
            (true, true) => Vec::new(),
            // The offer's tag, with a key of this end's own (RFC 4568, section 5.1.2).
            (false, false) => {
                let shared = offer.keys.iter().find_map(|(tag, key)| {
                    let own = self.keys.iter().find(|(_, k)| k.suite() == key.suite())?;
                    Some((*tag, own.1.clone()))
                });
                vec![shared.ok_or_else(|| SdpError::NothingShared {
                    what: "cipher suite",
                    theirs: suites(offer),
                    ours: suites(self),
                })?]
            }
            (ours, _) => return Err(protection(ours)),
        };
        let dccp = match (self.dccp, offer.dccp) {
            (_, Some(offered)) => {
                let port = self.dccp.map_or(DCCP_PORT, |d| d.port);
                Some(DccpMedia { port, setup: offered.setup.answer() })
            }
            (Some(_), None) => return Err(over_dccp()),
            (None, None) => None,
        };
        let answer = Self {
            payloads,
            keys,
            dccp,
            direction: Direction::of(
                self.direction.sends() && offer.direction.receives(),
                self.direction.receives() && offer.direction.sends(),
            ),
            feedback: self.feedback.iter().copied().filter(|f| offer.feedback.contains(f)).collect(),
            extensions: (offer.extensions.iter().copied())
                .filter(|(_, e)| self.extensions.iter().any(|(_, o)| o == e))
                .collect(),
            ..self.clone()
        };
        let agreement = answer.agree(offer, &answer)?;
        Ok((answer, agreement))
    }

    /// What the answer to this end's own offer comes to.
    ///
    /// # Errors
    /// Where the answer names what was not offered.
    pub fn accept(&self, answer: &Self) -> Result<Agreement, SdpError> {
        self.agree(answer, answer)
    }

    /// `common` is the answer, whosever it is.
    fn agree(&self, theirs: &Self, common: &Self) -> Result<Agreement, SdpError> {
        let of = |want: fn(&Payload) -> bool| common.payloads.iter().find(|(_, p)| want(p));
        let Some((pt, Payload::Video(codec, _))) = of(|p| matches!(p, Payload::Video(..))) else {
            return Err(SdpError::NothingShared { what: "codec", theirs: codecs(theirs), ours: codecs(self) });
        };
        let offered = |pt: u8, codec| {
            self.payloads.iter().any(|(n, p)| *n == pt && matches!(p, Payload::Video(c, _) if *c == codec))
        };
        if !offered(*pt, *codec) {
            return Err(wrong("payload type in the answer", format!("{pt} {codec}"), "one that was offered"));
        }
        if theirs.address.port() == 0 {
            return Err(wrong("port (m=video)", 0, "a port: the other end refuses the stream"));
        }
        if !theirs.rtcp_mux {
            return Err(SdpError::Missing { field: "a=rtcp-mux", way_out: "Weir has one port for RTP and RTCP" });
        }
        let keys = match (self.keys.is_empty(), theirs.keys.is_empty()) {
            (true, true) => None,
            (false, false) => {
                let pair = theirs.keys.iter().find_map(|(tag, key)| {
                    let own = self.keys.iter().find(|(t, k)| t == tag && k.suite() == key.suite())?;
                    Some((own.1.clone(), key.clone()))
                });
                Some(pair.ok_or_else(|| SdpError::NothingShared {
                    what: "cipher suite",
                    theirs: suites(theirs),
                    ours: suites(self),
                })?)
            }
            (ours, _) => return Err(protection(ours)),
        };
        let dccp = match (self.dccp, theirs.dccp) {
            (Some(ours), Some(theirs)) if ours.setup != theirs.setup => {
                // The answer decides; it is never for either.
                let active = ours.setup == Setup::Active || theirs.setup == Setup::Passive;
                let setup = if active { Setup::Active } else { Setup::Passive };
                Some(DccpMedia { port: theirs.port, setup })
            }
            (Some(ours), Some(_)) => {
                let role = if ours.setup == Setup::Active { "passive" } else { "active" };
                return Err(wrong("a=setup", "the same at both ends", role));
            }
            (None, None) => None,
            _ => return Err(over_dccp()),
        };
        let number = |want: fn(&Payload) -> bool| of(want).map(|(n, _)| *n);
        Ok(Agreement {
            remote: theirs.address,
            direction: Direction::of(
                self.direction.sends() && theirs.direction.receives(),
                self.direction.receives() && theirs.direction.sends(),
            ),
            codec: *codec,
            payload_type: *pt,
            retransmission: number(|p| matches!(p, Payload::Retransmission(_))),
            flexfec: number(|p| *p == Payload::FlexFec),
            reed_solomon: number(|p| *p == Payload::ReedSolomon),
            feedback: common.feedback.iter().copied().filter(|f| self.feedback.contains(f)).collect(),
            extensions: common.extensions.clone(),
            keys,
            dccp,
            remote_ssrc: theirs.ssrc,
            remote_repair_ssrc: theirs.repair_ssrc,
            remote_retransmission_ssrc: theirs.retransmission_ssrc,
            remote_controller: theirs.controller.clone(),
        })
    }
}

/// DCCP's port, where UDP's tells the ends apart.
pub(crate) const DCCP_PORT: u16 = 5_004;

fn over_dccp() -> SdpError {
    let expected = "the same at both ends: UDP/DCCP/RTP/AVPF is --transport dccp --no-srtp";
    wrong("protocol (m=)", "DCCP at one end and plain datagrams at the other", expected)
}

fn suites(d: &Description) -> String {
    let names: Vec<_> = d.keys.iter().map(|(_, k)| k.suite().name()).collect();
    names.join(", ")
}

fn protection(ours_is_none: bool) -> SdpError {
    if ours_is_none {
        wrong("protocol (m=)", "SRTP", "RTP in the clear, as this end was told: leave out --no-srtp")
    } else {
        wrong("protocol (m=)", "RTP in the clear", "SRTP (RTP/SAVPF with a=crypto): say --no-srtp to go without")
    }
}
