//! Picture feedback by a receiver: requests for key frames, acknowledged pictures, and reference pictures (RFC 4585,
//! section 6.3; RFC 5104, section 4.3.1).
//!
//! RPSI means either that a picture was decoded or that it is requested as a reference (RFC 4585, section 6.3.3.1;
//! RFC 7741, section 5.1), without a field to distinguish them. Here an RPSI with an SLI in the same compound is a
//! request; so is one alone, unless both ends have [`PictureFeedback::acknowledge`] on, when it is an acknowledgement.

use crate::identity::FeedbackSsrcs;
use crate::receiver_model::ReceiverModel;
use std::collections::VecDeque;
use weir_media::{PictureId, VideoCodec};
use weir_units::cold_path;
use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtcp::{Fir, FirEntry, Pli, Rpsi, Sli, SliEntry};

/// Pictures whose IDs are remembered: eight seconds at 30 a second, and more than 7-bit IDs distinguish.
const MAX_PICTURES: usize = 256;
/// Least interval of acknowledgements that cause a packet of their own; with other feedback they are always sent.
const ACK_SPACING: TimeDelta = TimeDelta::from_millis(100);
/// Greatest number of macroblocks in SLI: 13 bits (RFC 4585, section 6.3.2.2).
const MAX_MACROBLOCKS: u16 = 0x1fff;

/// How feedback identifies a picture: the native bit string of RPSI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PictureName {
    /// Its RTP timestamp, 32 bits. No RFC defines the string for H.264; this is Weir's own.
    #[default]
    RtpTimestamp,
    /// The picture ID in the payload descriptor, with its 7 or 15 bits (RFC 7741, section 5.1), for VP8 and VP9.
    PictureId(VideoCodec),
}

/// The message that requests a key frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeyFrameRequest {
    /// Picture loss indication, for losses according to RFC 5104, section 4.3.1.2.
    #[default]
    Pli,
    /// Full intra request.
    Fir,
    /// PLI this many times, then FIR.
    PliThenFir(u32),
}

/// Configuration of picture feedback, the same at both ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PictureFeedback {
    /// The message that requests a key frame.
    pub key_frame_request: KeyFrameRequest,
    /// How pictures are identified.
    pub name: PictureName,
    /// Whether decoded pictures are acknowledged.
    pub acknowledge: bool,
    /// Macroblocks of a picture that an SLI with an RPSI reports as lost; `None` sends SLI only with acknowledgements
    /// on.
    pub slice_loss: Option<u16>,
    /// How often a reference picture is requested before a key frame is.
    pub reference_tries: u32,
    /// Least interval between key frames at the other end's request; libwebrtc's is 300 ms (as of 2024).
    pub min_key_frame_interval: TimeDelta,
}

impl Default for PictureFeedback {
    fn default() -> Self {
        Self {
            key_frame_request: KeyFrameRequest::Pli,
            name: PictureName::RtpTimestamp,
            acknowledge: false,
            slice_loss: None,
            reference_tries: 3,
            min_key_frame_interval: TimeDelta::from_millis(300),
        }
    }
}

/// Counters of picture feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PictureCounters {
    /// PLI sent.
    pub pli_sent: u64,
    /// FIR sent, repetitions included.
    pub fir_sent: u64,
    /// RPSI sent as requests.
    pub references_sent: u64,
    /// RPSI sent as acknowledgements.
    pub acknowledgements_sent: u64,
    /// Pictures that could not be identified: their ID is unknown.
    pub unnamed: u64,
    /// PLI and FIR received.
    pub key_requests: u64,
    /// Those passed on to the source.
    pub key_requests_granted: u64,
    /// RPSI and SLI received that request a reference picture.
    pub references: u64,
    /// RPSI received as acknowledgements.
    pub acknowledgements: u64,
    /// RPSI of another payload type or form, or for an unknown picture.
    pub unknown: u64,
}

/// A picture's identification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    RtpTimestamp(u32),
    PictureId(PictureId),
}

impl Named {
    /// The native bit string, and the number of padding bits at its end.
    fn bits(self) -> ([u8; 4], usize, u8) {
        match self {
            Self::RtpTimestamp(t) => (t.to_be_bytes(), 4, 0),
            Self::PictureId(id) => {
                let bits = if id.long { id.value << 1 } else { id.value << 9 };
                let [a, b] = bits.to_be_bytes();
                ([a, b, 0, 0], if id.long { 2 } else { 1 }, 1)
            }
        }
    }

    /// Parses a native bit string.
    pub(crate) fn read(name: PictureName, rpsi: &Rpsi<'_>) -> Option<Self> {
        let bits = rpsi.bit_string.len() * 8 - usize::from(rpsi.unused_bits);
        match (name, rpsi.bit_string) {
            (PictureName::RtpTimestamp, &[a, b, c, d]) if bits == 32 => {
                Some(Self::RtpTimestamp(u32::from_be_bytes([a, b, c, d])))
            }
            (PictureName::PictureId(_), &[a]) if bits == 7 => {
                Some(Self::PictureId(PictureId { value: (a >> 1).into(), long: false }))
            }
            (PictureName::PictureId(_), &[a, b]) if bits == 15 => {
                Some(Self::PictureId(PictureId { value: u16::from_be_bytes([a, b]) >> 1, long: true }))
            }
            _ => None,
        }
    }
}

/// The latest pictures, by RTP timestamp and picture ID.
#[derive(Debug, Default)]
pub(crate) struct Pictures(VecDeque<(u32, PictureId)>);

impl Pictures {
    /// Records a picture by any of its payloads, if pictures are identified by ID.
    pub(crate) fn note(&mut self, name: PictureName, rtp_timestamp: u32, payload: Option<&[u8]>) {
        let PictureName::PictureId(codec) = name else { return };
        let Some(id) = payload.and_then(|p| PictureId::of_payload(codec, p)) else { return };
        if self.0.len() == MAX_PICTURES {
            self.0.pop_front();
        }
        self.0.push_back((rtp_timestamp, id));
    }
    fn id(&self, rtp_timestamp: u32) -> Option<PictureId> {
        self.0.iter().rev().find(|p| p.0 == rtp_timestamp).map(|p| p.1)
    }
    /// The latest picture of this ID.
    pub(crate) fn rtp_timestamp(&self, id: PictureId) -> Option<u32> {
        self.0.iter().rev().find(|p| id.since(p.1) == 0).map(|p| p.0)
    }
    fn name(&self, name: PictureName, rtp_timestamp: u32) -> Option<Named> {
        match name {
            PictureName::RtpTimestamp => Some(Named::RtpTimestamp(rtp_timestamp)),
            PictureName::PictureId(_) => self.id(rtp_timestamp).map(Named::PictureId),
        }
    }
}

/// A request that is repeated until it is answered.
#[derive(Clone, Copy, Debug)]
struct Asked {
    due: Timestamp,
    tries: u32,
}

impl Asked {
    const fn new(now: Timestamp) -> Self {
        Self { due: now, tries: 0 }
    }
    fn sent(&mut self, now: Timestamp, spacing: TimeDelta) {
        self.due = now + spacing;
        self.tries += 1;
    }
}

/// A Full Intra Request; repetitions have the same number (RFC 5104, section 4.3.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FirId {
    /// Its sender.
    pub ssrc: u32,
    pub sequence: u8,
}

/// Picture feedback that a receiver has to send.
#[derive(Debug)]
pub(crate) struct PictureRequests {
    config: PictureFeedback,
    /// The program whose timing requests have.
    model: ReceiverModel,
    /// Whether a picture was ever decoded intact.
    has_decoded: bool,
    key: Option<Asked>,
    fir_sequence: u8,
    /// The RTP timestamp of the requested reference picture.
    reference: Option<(Asked, u32)>,
    /// The RTP timestamp of the latest picture to be acknowledged.
    decoded: Option<u32>,
    acknowledged_at: Timestamp,
    pictures: Pictures,
    pub counters: PictureCounters,
}

impl PictureRequests {
    pub(crate) fn new(config: PictureFeedback, now: Timestamp) -> Self {
        Self {
            config,
            model: ReceiverModel::default(),
            has_decoded: false,
            key: None,
            fir_sequence: 0,
            reference: None,
            decoded: None,
            acknowledged_at: now,
            pictures: Pictures::default(),
            counters: PictureCounters::default(),
        }
    }

    pub(crate) fn config(&self) -> PictureFeedback {
        self.config
    }
    /// Requests key frames when this program would.
    pub(crate) fn behave_as(&mut self, model: ReceiverModel) {
        self.model = model;
    }
    /// Records a picture that is played, by any of its payloads.
    pub(crate) fn note(&mut self, rtp_timestamp: u32, payload: Option<&[u8]>) {
        self.pictures.note(self.config.name, rtp_timestamp, payload);
    }

    /// Requests a key frame, with a new command if none is outstanding.
    pub(crate) fn want_key_frame(&mut self, now: Timestamp) {
        if self.key.is_none() {
            let patience = if self.has_decoded { self.model.picture_patience() } else { TimeDelta::ZERO };
            self.key = Some(Asked::new(now + patience));
            self.fir_sequence = self.fir_sequence.wrapping_add(1);
        }
    }

    pub(crate) fn on_decoded(&mut self, rtp_timestamp: u32, intact: bool) {
        if !intact {
            return;
        }
        self.has_decoded = true;
        // A picture that was never requested is no answer, but a request that has waited for one is void.
        self.key = self.key.filter(|k| k.tries == 0 && self.model.picture_patience() == TimeDelta::ZERO);
        self.reference = self.reference.filter(|r| (rtp_timestamp.wrapping_sub(r.1) as i32) <= 0);
        if self.config.acknowledge {
            self.decoded = Some(rtp_timestamp);
        }
    }

    pub(crate) fn on_damaged(&mut self, last_decoded: u32, now: Timestamp) {
        let asked = self.reference.map_or(Asked::new(now), |r| r.0);
        self.reference = Some((asked, last_decoded));
    }

    /// The other end has restarted: drops the state of its pictures.
    pub(crate) fn reset(&mut self) {
        (self.key, self.reference, self.decoded, self.has_decoded) = (None, None, None, false);
        self.pictures = Pictures::default();
    }

    /// Whether any message is to be sent, now or later.
    #[inline]
    pub(crate) const fn is_pending(&self) -> bool {
        self.key.is_some() || self.reference.is_some() || self.decoded.is_some()
    }
    /// When the next message is due, if any.
    #[inline]
    pub(crate) fn due(&self) -> Option<Timestamp> {
        if !self.is_pending() {
            return None;
        }
        cold_path();
        let wanted = [self.key, self.reference.map(|r| r.0)].into_iter().flatten().map(|a| a.due);
        wanted.chain(self.decoded.map(|_| self.acknowledged_at + ACK_SPACING)).min()
    }
    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.due().is_some_and(|at| at <= now)
    }

    /// Appends what is due; unanswered requests are repeated after `spacing`.
    pub(crate) fn write(
        &mut self,
        ssrcs: FeedbackSsrcs,
        payload_type: u8,
        spacing: TimeDelta,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) {
        let FeedbackSsrcs { sender: ssrc, media: media_ssrc } = ssrcs;
        let c = self.config;
        if let Some((mut asked, decoded)) = self.reference.filter(|r| r.0.due <= now) {
            match self.pictures.name(c.name, decoded).filter(|_| asked.tries < c.reference_tries) {
                None => {
                    self.counters.unnamed += u64::from(asked.tries < c.reference_tries);
                    self.reference = None;
                    self.want_key_frame(now);
                }
                Some(named) => {
                    asked.sent(now, spacing);
                    self.reference = Some((asked, decoded));
                    self.counters.references_sent += 1;
                    if let Some(macroblocks) = c.slice_loss.or(c.acknowledge.then_some(MAX_MACROBLOCKS)) {
                        // RFC 7741, section 5.2: the whole picture may be reported lost; the lost one is the one after
                        // the last.
                        let id = self.pictures.id(decoded).map_or(0, |id| id.value.wrapping_add(1));
                        let number = macroblocks.min(MAX_MACROBLOCKS);
                        let entries = [SliEntry { first: 0, number, picture_id: id as u8 & 0x3f }];
                        Sli { sender_ssrc: ssrc, media_ssrc, entries: (&entries).into() }.write_into(out);
                    }
                    write_rpsi(ssrcs, payload_type, named, out);
                }
            }
        } else if let Some(decoded) = self.decoded.take() {
            // Never with an SLI, so that it is not mistaken for a request.
            match self.pictures.name(c.name, decoded) {
                Some(named) => {
                    self.acknowledged_at = now;
                    self.counters.acknowledgements_sent += 1;
                    write_rpsi(ssrcs, payload_type, named, out);
                }
                None => self.counters.unnamed += 1,
            }
        }
        let spacing = self.model.key_frame_interval().unwrap_or(spacing);
        if let Some(asked) = self.key.as_mut().filter(|k| k.due <= now) {
            let by_fir = match c.key_frame_request {
                KeyFrameRequest::Pli => false,
                KeyFrameRequest::Fir => true,
                KeyFrameRequest::PliThenFir(tries) => asked.tries >= tries,
            };
            asked.sent(now, spacing);
            if by_fir {
                self.counters.fir_sent += 1;
                let entries = [FirEntry { ssrc: media_ssrc, sequence: self.fir_sequence }];
                Fir { sender_ssrc: ssrc, media_ssrc: 0, entries: (&entries).into() }.write_into(out);
            } else {
                self.counters.pli_sent += 1;
                Pli { sender_ssrc: ssrc, media_ssrc }.write_into(out);
            }
        }
    }
}

fn write_rpsi(ssrcs: FeedbackSsrcs, payload_type: u8, named: Named, out: &mut Vec<u8>) {
    let FeedbackSsrcs { sender: sender_ssrc, media: media_ssrc } = ssrcs;
    let (bytes, len, unused_bits) = named.bits();
    Rpsi { sender_ssrc, media_ssrc, payload_type, bit_string: &bytes[..len], unused_bits }.write_into(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtcp::{Packet, parse_compound};

    const SSRCS: FeedbackSsrcs = FeedbackSsrcs { sender: 1, media: 2 };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Requests sent at this time, with a spacing of 100 ms.
    fn sent(r: &mut PictureRequests, ms: i64) -> Vec<String> {
        let mut out = vec![];
        if r.is_due(at(ms)) {
            r.write(SSRCS, 96, TimeDelta::from_millis(100), at(ms), &mut out);
        }
        let name = |p| match p {
            Packet::Pli(p) => format!("PLI {}", p.media_ssrc),
            Packet::Fir(f) => f.entries.iter().map(|e| format!("FIR {} {}", e.ssrc, e.sequence)).collect(),
            Packet::Sli(s) => s.entries.iter().map(|e| format!("SLI {} {}", e.number, e.picture_id)).collect(),
            Packet::Rpsi(r) => format!("RPSI {} {:?} {}", r.payload_type, r.bit_string, r.unused_bits),
            other => panic!("{other:?}"),
        };
        parse_compound(&out).map(|p| name(p.unwrap())).collect()
    }

    #[test]
    fn a_key_frame_is_asked_for_until_one_comes() {
        let config = PictureFeedback { key_frame_request: KeyFrameRequest::PliThenFir(2), ..Default::default() };
        let mut r = PictureRequests::new(config, at(0));
        assert_eq!((r.due(), sent(&mut r, 0).len()), (None, 0));
        r.want_key_frame(at(10));
        // A picture that was in flight is no answer.
        r.on_decoded(3_000, true);
        assert_eq!(sent(&mut r, 10), ["PLI 2"]);
        r.want_key_frame(at(20));
        assert_eq!((sent(&mut r, 109).len(), r.due()), (0, Some(at(110))));
        assert_eq!(sent(&mut r, 110), ["PLI 2"]);
        // Repetitions of a command keep its number (RFC 5104, section 4.3.1.1).
        assert_eq!([sent(&mut r, 210), sent(&mut r, 310)], [["FIR 2 1"], ["FIR 2 1"]]);
        r.on_decoded(9_000, false);
        assert_eq!(sent(&mut r, 410), ["FIR 2 1"]);
        r.on_decoded(12_000, true);
        assert_eq!((r.due(), r.counters.pli_sent, r.counters.fir_sent), (None, 2, 3));
        r.want_key_frame(at(900));
        assert_eq!([sent(&mut r, 900), sent(&mut r, 1_000), sent(&mut r, 1_100)], [["PLI 2"], ["PLI 2"], ["FIR 2 2"]]);
    }

    #[test]
    fn chromium_waits_three_seconds_for_a_picture_before_it_asks() {
        let mut r = PictureRequests::new(PictureFeedback::default(), at(0));
        r.behave_as(ReceiverModel::Chromium);
        // Nothing was ever decoded: at once, and each 200 ms.
        r.want_key_frame(at(10));
        assert_eq!([sent(&mut r, 10).len(), sent(&mut r, 209).len(), sent(&mut r, 210).len()], [1, 0, 1]);
        r.on_decoded(3_000, true);
        r.want_key_frame(at(1_000));
        assert_eq!((sent(&mut r, 3_999).len(), r.due()), (0, Some(at(4_000))));
        // A picture that is decoded meanwhile voids the request.
        r.on_decoded(6_000, true);
        assert_eq!(r.due(), None);
        r.want_key_frame(at(5_000));
        r.want_key_frame(at(6_000));
        assert_eq!([sent(&mut r, 8_000).len(), sent(&mut r, 8_199).len(), sent(&mut r, 8_200).len()], [1, 0, 1]);
    }

    #[test]
    fn a_reference_is_asked_for_and_then_a_key_frame() {
        let mut r = PictureRequests::new(PictureFeedback { reference_tries: 2, ..Default::default() }, at(0));
        r.on_damaged(0x0102_0304, at(0));
        assert_eq!(sent(&mut r, 0), ["RPSI 96 [1, 2, 3, 4] 0"]);
        r.on_damaged(0x0102_0305, at(50));
        assert_eq!((sent(&mut r, 50).len(), sent(&mut r, 100)), (0, vec!["RPSI 96 [1, 2, 3, 5] 0".to_owned()]));
        // The reference itself, or an earlier picture, repairs nothing.
        r.on_decoded(0x0102_0305, true);
        assert_eq!(sent(&mut r, 200), ["PLI 2"]);
        r.on_decoded(0x0102_0a00, true);
        assert_eq!(r.due(), None);
        r.on_damaged(7, at(300));
        sent(&mut r, 300);
        r.on_decoded(8, true);
        assert_eq!(r.due(), None);
    }

    #[test]
    fn pictures_of_vp8_go_by_their_id() {
        let config = PictureFeedback {
            name: PictureName::PictureId(VideoCodec::Vp8),
            acknowledge: true,
            slice_loss: Some(99),
            ..Default::default()
        };
        let mut r = PictureRequests::new(config, at(0));
        // Descriptors of RFC 7741, section 4.2: X, then I, then the ID of 15 and of 7 bits.
        for (t, id) in [(100, &[0x80, 0x80, 0x92, 0x34, 0][..]), (200, &[0x80, 0x80, 0x35, 0])] {
            r.pictures.note(config.name, t, Some(id));
        }
        r.on_decoded(100, true);
        assert_eq!(sent(&mut r, 50).len(), 0, "acknowledgements wait for others a while");
        assert_eq!(sent(&mut r, 100), [format!("RPSI 96 {:?} 1", (0x1234u16 << 1).to_be_bytes())]);
        r.on_damaged(200, at(110));
        assert_eq!(sent(&mut r, 110), [format!("SLI 99 {}", 0x36), format!("RPSI 96 [{}] 1", 0x35 << 1)]);
        // A picture whose ID is unknown cannot be requested.
        r.reset();
        r.on_damaged(300, at(200));
        assert_eq!((sent(&mut r, 200), r.counters.unnamed), (vec!["PLI 2".to_owned()], 1));
    }

    #[test]
    fn names_are_read_back_and_others_are_not() {
        for named in [
            Named::RtpTimestamp(0xfedc_ba98),
            Named::PictureId(PictureId { value: 0x7abc, long: true }),
            Named::PictureId(PictureId { value: 0x7f, long: false }),
        ] {
            let mut out = vec![];
            write_rpsi(SSRCS, 96, named, &mut out);
            let Some(Ok(Packet::Rpsi(rpsi))) = parse_compound(&out).next() else { panic!("{out:?}") };
            let by_id = PictureName::PictureId(VideoCodec::Vp8);
            let (right, wrong) = match named {
                Named::RtpTimestamp(_) => (PictureName::RtpTimestamp, by_id),
                Named::PictureId(_) => (by_id, PictureName::RtpTimestamp),
            };
            assert_eq!((Named::read(right, &rpsi), Named::read(wrong, &rpsi)), (Some(named), None));
        }
    }
}
