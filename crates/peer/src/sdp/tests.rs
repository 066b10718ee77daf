use super::*;
use crate::ice::Credentials;
use std::net::SocketAddr;
use weir_cc::FeedbackFormat;
use weir_media::{MediaKind, VideoCodec};

/// Of Chromium 156, with a camera and a microphone.
const OFFER: &str = include_str!("chromium.sdp");
const BOTH: Direction = Direction { sends: true, receives: true };
/// Built in for these tests in any case.
const H264: Wanted = Wanted { codec: VideoCodec::H264, built_in: Codecs { vp8: false, h264: true }, direction: BOTH };

fn answer(n: &Negotiated) -> String {
    let credentials = Credentials { name: "abcdefgh".into(), password: "0123456789abcdefghijkl".into() };
    let address: SocketAddr = "127.0.0.1:4321".parse().expect("an address");
    let fingerprint = crate::dtls::Fingerprint([0xAB; 32]);
    write(n, &Answer { session: 7, credentials: &credentials, fingerprint, address, ssrc: (11, 12), cname: "me" })
}

#[test]
fn an_offer_of_chromium_is_accepted_with_its_own_numbers() {
    let n = negotiate(OFFER, H264).expect("accepted");
    assert_eq!(
        (n.codec, n.payload_type, n.rtx, n.nack),
        (VideoCodec::H264, 108, Some(109), true),
        "constrained baseline"
    );
    assert_eq!((n.transport_sequence, n.abs_send_time, n.mid_extension), (Some(3), Some(2), Some(4)));
    assert_eq!((n.mid.to_string().as_str(), n.ice_name.as_str(), n.direction), ("1", "fey8", BOTH));
    assert!(n.ssrc.is_some() && n.rtx_ssrc.is_some() && n.ssrc != n.rtx_ssrc);
    assert!(OFFER.contains(&n.fingerprint.to_string()));
    let answer = answer(&n);
    for line in [
        "a=ice-lite",
        "a=group:BUNDLE 0 1",
        "m=audio 4321 UDP/TLS/RTP/SAVPF 111",
        "a=rtcp-fb:111 transport-cc",
        "a=fmtp:111 minptime=10;useinbandfec=1",
        "m=video 4321 UDP/TLS/RTP/SAVPF 108 109",
        "a=setup:active",
        "a=sendrecv",
        "a=rtcp-mux",
        "a=candidate:1 1 udp 2130706431 127.0.0.1 4321 typ host",
        "a=fmtp:109 apt=108",
        "a=rtcp-fb:108 transport-cc",
        "a=ssrc-group:FID 11 12",
    ] {
        assert!(answer.lines().any(|l| l == line), "{line} is not in\n{answer}");
    }
    assert!(!answer.contains("goog-remb"), "only what this end uses");
}

#[test]
fn feedback_of_rfc_8888_is_taken_where_it_is_offered() {
    let offer = OFFER.replace("a=rtcp-fb:108 transport-cc", "a=rtcp-fb:108 transport-cc\r\na=rtcp-fb:* ack ccfb");
    for offer in [offer.as_str(), &offer.replace("transport-cc", "unknown")] {
        let n = negotiate(offer, H264).expect("accepted");
        assert_eq!((n.reports, n.transport_sequence), (Some(FeedbackFormat::CongestionControl), None));
        let answer = answer(&n);
        assert_eq!(answer.lines().filter(|l| *l == "a=rtcp-fb:* ack ccfb").count(), 1, "{answer}");
        assert!(!answer.contains("transport-cc") && !answer.contains(TRANSPORT_CC));
    }
    assert_eq!(negotiate(OFFER, H264).expect("accepted").reports, Some(FeedbackFormat::TransportWide));
}

#[test]
fn the_receivers_estimate_is_taken_where_there_is_nothing_better() {
    let offer = OFFER.replace("transport-cc", "unknown");
    let n = negotiate(&offer, H264).expect("accepted");
    assert_eq!((n.reports, n.remb), (None, true));
    let answer = answer(&n);
    assert!(answer.contains("a=rtcp-fb:108 goog-remb") && answer.contains("abs-send-time"), "{answer}");
    assert!(!negotiate(OFFER, H264).expect("accepted").remb);
    // Without the times of sending it would estimate nothing.
    assert!(negotiate(&offer.replace("abs-send-time", "unknown"), H264).is_err());
}

#[test]
fn flexfec_is_taken_with_a_source_of_its_own_where_it_is_offered() {
    let lines = "a=rtpmap:49 flexfec-03/90000\r\na=rtcp-fb:49 transport-cc\r\na=fmtp:49 repair-window=9000000\r\n";
    let n = negotiate(OFFER, H264).expect("accepted");
    assert_eq!((n.flexfec, n.repair_ssrc), (None, None));
    assert!(!answer(&n).contains("FEC"));
    // As Chromium offers it: with both the format and, where it sends, its source.
    let ssrc = n.ssrc.expect("named");
    let offer = OFFER
        .replace("118 119 120\r\n", "118 119 120 49\r\n")
        .replace("a=rtpmap:120 ulpfec/90000\r\n", &format!("{lines}a=ssrc-group:FEC-FR {ssrc} 77\r\n"));
    let n = negotiate(&offer, H264).expect("accepted");
    assert_eq!((n.flexfec.map(|f| f.payload_type), n.repair_ssrc), (Some(49), Some(77)));
    let answer = answer(&n);
    for line in [
        "m=video 4321 UDP/TLS/RTP/SAVPF 108 109 49",
        "a=rtpmap:49 flexfec-03/90000",
        "a=fmtp:49 repair-window=9000000",
        "a=rtcp-fb:49 transport-cc",
        "a=ssrc-group:FEC-FR 11 2147483659",
        "a=ssrc:2147483659 cname:me",
    ] {
        assert!(answer.lines().any(|l| l == line), "{line} is not in\n{answer}");
    }
    // Rooms have none, and a source that is another's is none.
    assert_eq!(negotiate_room(&offer, VideoCodec::Vp8, 3).expect("accepted").flexfec, None);
    for source in ["0", "x", &ssrc.to_string(), &n.rtx_ssrc.expect("named").to_string()] {
        let offer = offer.replace(&format!("FEC-FR {ssrc} 77"), &format!("FEC-FR {ssrc} {source}"));
        assert_eq!(negotiate(&offer, H264).expect("accepted").repair_ssrc, None, "{source}");
    }
    let other = offer.replace(&format!("FEC-FR {ssrc} 77"), "FEC-FR 5 77");
    assert_eq!(negotiate(&other, H264).expect("accepted").repair_ssrc, None);
}

#[test]
fn ulpfec_in_red_is_taken_for_vp8_where_there_is_no_flexfec() {
    let vp8 = Wanted { codec: VideoCodec::Vp8, built_in: Codecs { vp8: true, h264: true }, direction: BOTH };
    let n = negotiate(OFFER, vp8).expect("accepted");
    assert_eq!((n.payload_type, n.ulpfec), (96, Some(UlpFec { red: 118, payload_type: 120, rtx: Some(119) })));
    let written = answer(&n);
    for line in [
        "m=video 4321 UDP/TLS/RTP/SAVPF 96 97 118 119 120",
        "a=rtpmap:118 red/90000",
        "a=rtpmap:119 rtx/90000",
        "a=fmtp:119 apt=118",
        "a=rtpmap:120 ulpfec/90000",
    ] {
        assert!(written.lines().any(|l| l == line), "{line} is not in\n{written}");
    }
    // H.264 has no picture IDs, and without RED there is nothing to carry it.
    assert_eq!(negotiate(OFFER, Wanted { codec: VideoCodec::H264, ..vp8 }).expect("accepted").ulpfec, None);
    for name in ["red/90000", "ulpfec/90000"] {
        assert_eq!(negotiate(&OFFER.replace(name, "x/90000"), vp8).expect("accepted").ulpfec, None, "{name}");
    }
    let flexfec =
        OFFER.replace("a=rtpmap:120 ulpfec/90000\r\n", "a=rtpmap:120 ulpfec/90000\r\na=rtpmap:49 flexfec-03/90000\r\n");
    let flexfec = flexfec.replace("118 119 120\r\n", "118 119 120 49\r\n");
    let n = negotiate(&flexfec, vp8).expect("accepted");
    assert!(n.flexfec.is_some() && n.ulpfec.is_none());
    assert_eq!(negotiate_room(OFFER, VideoCodec::Vp8, 3).expect("accepted").ulpfec, None);
}

#[test]
fn directions_are_those_that_both_ends_want() {
    let whip = Wanted { direction: Direction { sends: false, receives: true }, ..H264 };
    let n = negotiate(OFFER, whip).expect("accepted");
    assert!(answer(&n).contains("a=recvonly") && !answer(&n).contains("a=ssrc:"));
    let only = OFFER.replace("a=sendrecv", "a=recvonly");
    assert!(answer(&negotiate(&only, H264).expect("accepted")).contains("a=sendonly"));
    assert!(negotiate(&only, whip).is_err());
}

#[test]
fn offers_that_would_not_be_safe_or_of_use_are_refused_by_name() {
    let refused = |offer: &str, place: &str| {
        let e = negotiate(offer, H264).expect_err(place);
        assert!(e.to_string().contains(place), "{place}: {e}");
    };
    refused("", "the offer");
    refused("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n", "sections");
    refused(&"a".repeat(MAX_OFFER + 1), "bytes");
    refused(&OFFER.replace("UDP/TLS/RTP/SAVPF", "RTP/AVP"), "protected");
    refused(&OFFER.replace("a=fingerprint:sha-256", "a=fingerprint:md5"), "a=fingerprint");
    refused(&OFFER.replace("a=rtcp-mux", "a=x"), "rtcp-mux");
    refused(&OFFER.replace("actpass", "active"), "a=setup");
    refused(&OFFER.replace("a=ice-ufrag:fey8", "a=ice-ufrag:fe\"8"), "a=ice-ufrag");
    refused(&OFFER.replace("transport-cc", "nothing").replace("goog-remb", "nothing"), "transport-cc");
    refused(&OFFER.replace("VP8/90000", "VP7/90000").replace("H264/90000", "H266/90000"), "VP8");
    // A fingerprint is 32 bytes.
    refused(&OFFER.replace(":80\r\n", "\r\n"), "a=fingerprint");
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[test]
fn mutated_offers_panic_nowhere_and_answers_stay_lines_of_sdp() {
    let mut state = 5;
    let (mut accepted, mut refused, mut in_rooms) = (0, 0, 0);
    for _ in 0..2_000 {
        let mut offer = OFFER.as_bytes().to_vec();
        for _ in 0..1 + next(&mut state) % 12 {
            let at = (next(&mut state) % offer.len().max(1) as u64) as usize;
            let end = (at + (next(&mut state) % 60) as usize).min(offer.len());
            match next(&mut state) % 4 {
                0 => drop(offer.drain(at..end)),
                1 => {
                    let part = offer[at..end].to_vec();
                    let to = (next(&mut state) % offer.len().max(1) as u64) as usize;
                    offer.splice(to..to, part);
                }
                2 => offer.iter_mut().skip(at).take(1).for_each(|b| *b = next(&mut state) as u8),
                _ => offer
                    .iter_mut()
                    .skip(at)
                    .take(3)
                    .for_each(|b| *b = b"0123456789 \r\n:=-"[(next(&mut state) % 16) as usize]),
            }
        }
        let offer = String::from_utf8_lossy(&offer);
        if let Ok(n) = negotiate_room(&offer, VideoCodec::Vp8, 9) {
            in_rooms += 1;
            assert!(n.further.len() <= 1 && answer(&n).lines().all(|l| l.as_bytes().get(1) == Some(&b'=')), "{offer}");
        }
        match negotiate(&offer, H264) {
            Err(e) => {
                refused += 1;
                assert!(e.to_string().len() < 400, "{e}");
            }
            Ok(n) => {
                accepted += 1;
                for line in answer(&n).split("\r\n").filter(|l| !l.is_empty()) {
                    let (kind, rest) = line.split_at(2);
                    assert!(["v=", "o=", "s=", "t=", "m=", "c=", "a="].contains(&kind), "{line:?}");
                    assert!(!rest.contains(char::is_control), "{line:?}");
                }
            }
        }
    }
    assert!(accepted > 250 && refused > 250 && in_rooms > 250, "{accepted} {refused} {in_rooms}");
}

#[test]
fn a_rooms_offer_has_a_camera_with_encodings_and_places() {
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
    let zero = std::time::Instant::now();
    let caller = crate::caller::Caller::new(zero).expect("a caller");
    let rids = vec!["l".into(), "h".into()];
    let offer = caller.room_offer(&crate::caller::RoomOffer { rids, ssrc: (1, 2), places: 9 });
    let n = negotiate_room(&offer, VideoCodec::Vp8, 3).expect("accepted");
    assert_eq!((n.rids.len(), n.rid_extensions, n.direction.name()), (2, (Some(10), Some(11)), "recvonly"));
    // A microphone, and three places of each kind.
    let kinds: Vec<_> = n.further.iter().map(|s| (s.media, s.direction.name())).collect();
    let place = |media| vec![(media, "sendonly"); 3];
    let all = [vec![(MediaKind::Audio, "recvonly")], place(MediaKind::Video), place(MediaKind::Audio)].concat();
    assert_eq!(kinds, all);
    let answer = answer(&n);
    assert!(answer.contains("a=group:BUNDLE 0 1 2 3 4 11 12 13\r\n"), "{answer}");
    assert!(answer.contains("a=rid:l recv\r\na=rid:h recv\r\na=simulcast:recv l;h\r\n"), "{answer}");
    // Sources differ, also by the bit that tells retransmissions apart.
    let sources: Vec<_> = (0..7).map(|k| further_ssrc(0x1200, k) & !(1 << 30)).collect();
    assert!(sources.iter().enumerate().all(|(k, s)| *s != 0x1200 && !sources[..k].contains(s)), "{sources:?}");
    let refused = |offer: &str, place: &str| {
        let e = negotiate_room(offer, VideoCodec::Vp8, 3).expect_err(place);
        assert!(e.to_string().contains(place), "{place}: {e}");
    };
    refused(&offer.replace("a=mid:3\r\n", "a=mid:2\r\n"), "a=mid");
    refused(&offer.replace("a=mid:3\r\n", "a=mid:3\r\na=ice-ufrag:other\r\n"), "transports");
    refused(&offer.replace("transport-cc", "nothing"), "feedback");
    refused(&offer.replace("VP8", "VP9"), "VP8");
    // A microphone whose packets would not be reported is left out.
    let bare = offer.replace("a=rtcp-fb:111 transport-cc\r\n", "");
    assert!(
        negotiate_room(&bare, VideoCodec::Vp8, 3)
            .expect("accepted")
            .further
            .iter()
            .all(|s| s.media == MediaKind::Video)
    );
}

#[test]
fn a_codec_that_is_not_there_is_named_with_the_way_to_get_it() {
    let vp8_alone = OFFER.replace("H264/90000", "H265/90000");
    let refused = negotiate(&vp8_alone, H264).expect_err("VP8 is not built in").to_string();
    let says = "expected H.264 in baseline profile and packetisation mode 1: this build lacks VP8, which the cargo feature vpx adds";
    assert!(refused.contains("VP8") && refused.contains(says), "{refused}");
    let neither = vp8_alone.replace("VP8/90000", "VP7/90000");
    let refused = negotiate(&neither, H264).expect_err("neither").to_string();
    assert!(refused.ends_with("or VP8, in a build with the cargo feature vpx"), "{refused}");
    let both = Wanted { built_in: Codecs { vp8: true, h264: true }, ..H264 };
    assert!(negotiate(&vp8_alone, both).is_ok());
    let refused = negotiate(&neither, both).expect_err("neither").to_string();
    assert!(refused.ends_with("expected VP8, or H.264 in baseline profile and packetisation mode 1"), "{refused}");
    // Rooms forward any of the two, whatever is built in.
    assert!(negotiate_room(&vp8_alone, VideoCodec::Vp8, 3).is_ok());
    let refused = negotiate_room(&vp8_alone, VideoCodec::H264, 3).expect_err("another codec").to_string();
    assert!(refused.ends_with("packetisation mode 1, the codec of this room"), "{refused}");
}
