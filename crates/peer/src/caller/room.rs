//! Offers of a room's member: its camera with a simulcast, its microphone, and places for the others.

use super::{Caller, MEDIA, RTX, TRANSPORT};
use crate::sdp::{MID, REPAIRED_RID, RID, TRANSPORT_CC};
use std::fmt::Write as _;

/// Payload type of Opus in its offers.
pub const OPUS: u8 = 111;
/// Numbers of header extensions in its offers: MID, RID, and RID of retransmissions.
pub const EXTENSIONS: (u8, u8, u8) = (4, 10, 11);

/// A member's offer. Its video is VP8 with payload type 96, and 97 for retransmissions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoomOffer {
    /// RIDs of its encodings, the lowest first; one encoding without a name if there are none.
    pub rids: Vec<String>,
    /// Synchronisation sources of video, where it has no RIDs, and of audio.
    pub ssrc: (u32, u32),
    /// Places for video and audio of the others.
    pub places: usize,
}

/// A stream of the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoomStream {
    /// MID.
    pub mid: String,
    /// Whether it is audio.
    pub is_audio: bool,
    /// Its synchronisation source.
    pub ssrc: u32,
}

impl Caller {
    /// The offer of a room's member.
    pub fn room_offer(&self, o: &RoomOffer) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.compose_room(&mut out, o);
        out
    }

    fn compose_room(&self, out: &mut String, o: &RoomOffer) -> std::fmt::Result {
        let kinds = |is_audio| std::iter::repeat_n((is_audio, false), o.places);
        let sections: Vec<(bool, bool)> =
            [(false, true), (true, true)].into_iter().chain(kinds(false)).chain(kinds(true)).collect();
        write!(out, "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE")?;
        (0..sections.len()).try_for_each(|mid| write!(out, " {mid}"))?;
        write!(out, "\r\n")?;
        for (mid, (is_audio, is_own)) in sections.into_iter().enumerate() {
            let direction = if is_own { "sendonly" } else { "recvonly" };
            if is_audio {
                write!(out, "m=audio 9 UDP/TLS/RTP/SAVPF {OPUS}\r\nc=IN IP4 0.0.0.0\r\na=rtcp-mux\r\na=mid:{mid}\r\n")?;
                write!(
                    out,
                    "a={direction}\r\na=rtpmap:{OPUS} opus/48000/2\r\na=fmtp:{OPUS} minptime=10;useinbandfec=1\r\n"
                )?;
                write!(out, "a=rtcp-fb:{OPUS} transport-cc\r\n")?;
            } else {
                write!(out, "m=video 9 UDP/TLS/RTP/SAVPF {MEDIA} {RTX}\r\nc=IN IP4 0.0.0.0\r\na=rtcp-mux\r\n")?;
                write!(out, "a=mid:{mid}\r\na={direction}\r\na=rtpmap:{MEDIA} VP8/90000\r\n")?;
                for feedback in ["transport-cc", "nack", "nack pli", "ccm fir"] {
                    write!(out, "a=rtcp-fb:{MEDIA} {feedback}\r\n")?;
                }
                write!(out, "a=rtpmap:{RTX} rtx/90000\r\na=fmtp:{RTX} apt={MEDIA}\r\n")?;
                write!(out, "a=extmap:{} {RID}\r\na=extmap:{} {REPAIRED_RID}\r\n", EXTENSIONS.1, EXTENSIONS.2)?;
            }
            // A section that is `bundle-only` leaves its transport to the first section.
            if mid == 0 {
                write!(out, "a=ice-ufrag:{}\r\na=ice-pwd:{}\r\n", self.own.name, self.own.password)?;
                write!(out, "a=fingerprint:sha-256 {}\r\na=setup:actpass\r\n", self.identity.fingerprint())?;
            }
            write!(out, "a=extmap:{TRANSPORT} {TRANSPORT_CC}\r\na=extmap:{} {MID}\r\n", EXTENSIONS.0)?;
            let ssrc = if is_audio { o.ssrc.1 } else { o.ssrc.0 };
            if !is_own {
                continue;
            }
            if is_audio || o.rids.is_empty() {
                write!(out, "a=ssrc:{ssrc} cname:c\r\n")?;
                continue;
            }
            o.rids.iter().try_for_each(|rid| write!(out, "a=rid:{rid} send\r\n"))?;
            write!(out, "a=simulcast:send {}\r\n", o.rids.join(";"))?;
        }
        Ok(())
    }
}

/// The streams that an answer announces.
pub fn streams(answer: &str) -> Vec<RoomStream> {
    let section = |text: &str| {
        let value = |name: &str| text.lines().find_map(|l| l.trim_end().strip_prefix(name));
        let ssrc = value("a=ssrc:")?.split(' ').next()?.parse().ok()?;
        Some(RoomStream { mid: value("a=mid:")?.into(), is_audio: text.starts_with("audio"), ssrc })
    };
    answer.split("\nm=").skip(1).filter_map(section).collect()
}
