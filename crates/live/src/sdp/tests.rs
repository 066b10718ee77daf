use super::*;
use crate::srtp::Suite;
use proptest::prelude::*;
use weir_media::audio::AudioCodec;

mod multipath;

fn label(text: &str) -> Label {
    Label::new(text).unwrap()
}

fn transport(port: u16) -> MediaTransport {
    MediaTransport {
        address: SocketAddr::from(([192, 0, 2, 1], port)),
        keys: Suite::ALL.iter().zip(1..).map(|(s, tag)| (tag, SrtpKey::random(*s).unwrap())).collect(),
        dccp: None,
        rtcp_mux: true,
        interfaces: None,
        ice: None,
    }
}

fn video(port: u16) -> MediaSection {
    MediaSection {
        kind: MediaKind::Video,
        mid: None,
        transport: Some(transport(port)),
        direction: Direction::SendReceive,
        payloads: vec![
            (96, Payload::Video(VideoCodec::H264, Some("packetization-mode=1;profile-level-id=42e01f".into()))),
            (97, Payload::Video(VideoCodec::Vp8, None)),
            (98, Payload::Retransmission(96)),
            (99, Payload::FlexFec),
            (100, Payload::ReedSolomon),
            (101, Payload::Rlc),
        ],
        feedback: Feedback::ALL.iter().map(|f| f.0).collect(),
        extensions: vec![(3, Extension::TransportSequence), (2, Extension::AbsSendTime)],
        sources: Sources {
            media: Some(port.into()),
            repair: Some(u32::from(port) + 1),
            retransmission: Some(u32::from(port) + 2),
        },
        send: vec![],
        receive: vec![],
    }
}

fn of(sections: Vec<MediaSection>) -> Description {
    Description {
        session: 77,
        cname: Some("somebody@192.0.2.1".into()),
        controller: Some("scream".into()),
        bundle: sections.iter().filter_map(|s| s.mid).collect(),
        is_bundle_only: sections.len() > 1,
        sections: sections.into_iter().map(|s| Section::Media(Box::new(s))).collect(),
    }
}

fn end(port: u16) -> Description {
    of(vec![video(port)])
}

fn encoding(rid: &str, width: u32) -> Encoding {
    let limits = EncodingLimits { max_width: Some(width), max_height: Some(width / 2), ..EncodingLimits::default() };
    Encoding { rid: label(rid), formats: vec![], limits }
}

/// Audio, a camera of two encodings and a screen; the first has the transport.
fn several(port: u16, direction: Direction) -> Description {
    let extensions = || vec![(3, Extension::TransportSequence), (9, Extension::Mid), (10, Extension::Rid)];
    let audio = MediaSection {
        kind: MediaKind::Audio,
        mid: Some(label("audio")),
        direction,
        payloads: vec![(111, Payload::Audio(AudioCodec::Opus, Some("useinbandfec=1".into())))],
        extensions: extensions(),
        ..video(port)
    };
    let of_video = |mid, ssrc: u16| MediaSection {
        mid: Some(label(mid)),
        direction,
        transport: None,
        extensions: extensions(),
        ..video(ssrc)
    };
    let list = vec![encoding("1", 640), encoding("0", 320)];
    let (send, receive) = match direction {
        Direction::Send => (list, vec![]),
        _ => (vec![], list),
    };
    let camera = MediaSection { sources: Sources::default(), send, receive, ..of_video("camera", port) };
    of(vec![audio, camera, of_video("screen", port + 10)])
}

fn first(d: &mut Description) -> &mut MediaSection {
    match &mut d.sections[0] {
        Section::Media(m) => m,
        Section::Refused(_) => unreachable!("it is not refused"),
    }
}

/// The description with its first section changed.
fn with(mut d: Description, change: impl FnOnce(&mut MediaSection)) -> Description {
    change(first(&mut d));
    d
}

fn with_transport(d: Description, change: impl FnOnce(&mut MediaTransport)) -> Description {
    with(d, |m| change(m.transport.as_mut().unwrap()))
}

fn parsed(d: &Description) -> Description {
    let text = d.to_sdp();
    Description::parse(&text).unwrap_or_else(|e| panic!("{e} in\n{text}"))
}

#[test]
fn what_is_written_is_read_back() {
    for keys in [true, false] {
        let d = with_transport(end(5_004), |t| t.keys.retain(|_| keys));
        let text = d.to_sdp();
        assert_eq!(Description::parse(&text).unwrap(), d, "{text}");
        let lines = ["a=rtcp-fb:* ack ccfb", "a=fmtp:98 apt=96", "a=ssrc-group:FID 5004 5006", "a=rtcp-mux"];
        for line in lines {
            assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
        }
        let protocol = if keys { "m=video 5004 RTP/SAVPF 96" } else { "m=video 5004 RTP/AVPF 96" };
        assert!(text.contains(protocol) && !text.contains("BUNDLE"), "{text}");
    }
    let v6 = with_transport(end(9), |t| t.address = "[2001:db8::1]:9".parse().unwrap());
    assert_eq!(parsed(&v6), v6);
}

#[test]
fn several_streams_are_written_and_read_back() {
    let offer = several(5_004, Direction::Send);
    assert_eq!(parsed(&offer), offer);
    let text = offer.to_sdp();
    // RFC 9143, section 7.2.2; RFC 7587, section 7; RFC 8853, section 5.6.1.
    for line in [
        "a=group:BUNDLE audio camera screen",
        "m=audio 5004 RTP/SAVPF 111",
        "m=video 0 RTP/SAVPF 96 97 98 99 100 101",
        "a=bundle-only",
        "a=mid:camera",
        "a=rtpmap:111 opus/48000/2",
        "a=fmtp:111 useinbandfec=1",
        "a=extmap:9 urn:ietf:params:rtp-hdrext:sdes:mid",
        "a=rid:1 send max-width=640;max-height=320",
        "a=simulcast:send 1;0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
    }
    assert_eq!(text.matches("a=crypto").count(), Suite::ALL.len(), "one transport has one set of keys: {text}");
}

#[test]
fn several_streams_are_agreed_on_and_some_refused() {
    let offer = several(5_004, Direction::Send);
    let local = several(6_004, Direction::Receive);
    let (answer, b) = local.answer(&parsed(&offer)).unwrap();
    let text = answer.to_sdp();
    assert!(text.contains("a=group:BUNDLE audio camera screen\r\n") && !text.contains("bundle-only"), "{text}");
    assert!(text.contains("a=simulcast:recv 1;0") && text.contains("m=video 6004 "), "{text}");
    let a = offer.accept(&parsed(&answer)).unwrap();
    for (agreed, direction) in [(&a, Direction::Send), (&b, Direction::Receive)] {
        let stated: Vec<_> = agreed.streams.iter().map(|s| (s.own, s.codec.name(), s.payload_type)).collect();
        assert_eq!(stated, [(0, "opus", 111), (1, "H264", 96), (2, "H264", 96)]);
        assert!(agreed.streams.iter().all(|s| s.direction == direction), "{agreed:?}");
        assert_eq!([Extension::Mid, Extension::Rid].map(|e| agreed.extension(e)), [Some(9), Some(10)]);
        assert_eq!((agreed.extension(Extension::AbsSendTime), agreed.refused.len()), (None, 0));
    }
    let sent: Vec<_> = a.streams[1].send.iter().map(|e| (e.own, e.encoding.rid)).collect();
    assert_eq!(sent, [(0, label("1")), (1, label("0"))]);
    assert_eq!(b.streams[1].receive.iter().map(|e| e.rid).collect::<Vec<_>>(), [label("1"), label("0")]);
    assert_eq!((b.streams[0].remote.media, b.streams[1].remote.media), (Some(5_004), None));
    let (ours, theirs) = a.keys.unwrap();
    assert_eq!((theirs, ours), b.keys.unwrap());

    // One end accepts audio and only the first encoding of the camera.
    let mut fewer = local.clone();
    fewer.sections.truncate(2);
    if let Section::Media(m) = &mut fewer.sections[1] {
        m.receive.truncate(1);
    }
    let (answer, b) = fewer.answer(&offer).unwrap();
    let a = offer.accept(&parsed(&answer)).unwrap();
    for agreed in [&a, &b] {
        assert_eq!((agreed.streams.len(), &agreed.refused[..]), (2, &["video (mid screen)".to_owned()][..]));
    }
    assert_eq!((a.streams[1].send.len(), b.streams[1].receive.len()), (1, 1));
    assert!(answer.to_sdp().contains("m=video 0 RTP/SAVPF 96\r\n"), "{}", answer.to_sdp());

    // The first section describes the transport: an end without a use for it leaves it inactive.
    let mut screen = local.clone();
    screen.sections.drain(..2);
    with_last_transport(&mut screen, 6_004);
    let (answer, b) = screen.answer(&offer).unwrap();
    let a = offer.accept(&parsed(&answer)).unwrap();
    assert!(answer.to_sdp().contains("m=audio 6004") && answer.to_sdp().contains("a=inactive"));
    for agreed in [a, b] {
        let alive: Vec<_> = agreed.streams.iter().filter(|s| s.direction != Direction::Inactive).collect();
        assert_eq!(alive.iter().map(|s| s.mid).collect::<Vec<_>>(), [Some(label("screen"))]);
    }
}

fn with_last_transport(d: &mut Description, port: u16) {
    if let Some(Section::Media(m)) = d.sections.last_mut() {
        m.transport = Some(transport(port));
        // The names of the other end's sections decide.
        m.mid = Some(label("screen"));
    }
}

#[test]
fn encodings_need_names_and_their_limits_hold() {
    let offer = several(5_004, Direction::Send);
    let local = several(6_004, Direction::Receive);
    let accept = |from: &str, to: &str| {
        let text = local.answer(&offer).unwrap().0.to_sdp();
        assert!(text.contains(from), "{from} is missing in\n{text}");
        let a = offer.accept(&Description::parse(&text.replace(from, to)).unwrap()).unwrap();
        a.streams[1].send.iter().map(|e| e.encoding.rid.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(accept("recv 1;0", "recv ~1;0"), ["1", "0"]);
    assert_eq!(accept("recv 1;0", "recv 7,0;1"), ["0", "1"]);
    // Without simulcast at the other end, with a duplicate attribute, without names in packets, or with a duplicate
    // encoding.
    assert!(accept("a=simulcast", "a=x-simulcast").is_empty());
    assert!(accept("a=simulcast:recv 1;0", "a=simulcast:recv 1;0\r\na=simulcast:recv 0").is_empty());
    assert!(accept("sdes:rtp-stream-id", "sdes:other").is_empty());
    assert_eq!(accept("a=rid:1 recv", "a=rid:1 recv\r\na=rid:1 recv"), ["0"]);
    // Pictures larger than its limit are not sent to it; a bit rate can be kept.
    assert_eq!(accept("rid:1 recv max-width=640", "rid:1 recv max-width=500"), ["0"]);
    assert_eq!(accept("rid:1 recv max-width=640", "rid:1 recv max-br=100000"), ["1", "0"]);
    assert_eq!(accept("rid:1 recv max-width=640", "rid:1 recv max-fish=5"), ["0"]);
}

#[test]
fn peers_without_bundle_get_one_stream() {
    let offer = several(5_004, Direction::Send);
    // RFC 3264: each section is answered, and a port of 0 stays one.
    let answer = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n\
        m=audio 7000 RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\na=recvonly\r\na=rtcp-mux\r\na=crypto:CRYPTO\r\n\
        m=video 0 RTP/SAVPF 96\r\nm=video 0 RTP/SAVPF 96\r\n";
    let text = offer.to_sdp();
    let crypto = text.lines().find_map(|l| l.strip_prefix("a=crypto:")).unwrap();
    let a = offer.accept(&Description::parse(&answer.replace("CRYPTO", crypto)).unwrap()).unwrap();
    assert_eq!((a.streams.len(), a.streams[0].codec.name(), a.remote.port()), (1, "opus", 7_000));
    assert_eq!((a.refused.len(), a.extension(Extension::Mid)), (2, None));
    // Without the group, a section without its own port is refused.
    let apart = text.replace("a=group:BUNDLE audio camera screen\r\n", "").replace("a=bundle-only\r\n", "");
    let (answer, b) = several(6_004, Direction::Receive).answer(&Description::parse(&apart).unwrap()).unwrap();
    assert_eq!((b.streams.len(), b.streams[0].codec.name()), (1, "opus"));
    assert_eq!(answer.to_sdp().matches("m=video 0 ").count(), 2);
}

#[test]
fn a_dccp_connection_is_described_and_agreed_on() {
    let clear = |port, setup: Option<Setup>| {
        with_transport(end(port), |t| {
            t.keys.clear();
            t.dccp = setup.map(|setup| DccpMedia { port: 5_004, setup });
        })
    };
    let offer = clear(50_234, Some(Setup::Active));
    let text = offer.to_sdp();
    assert_eq!(Description::parse(&text).unwrap(), offer, "{text}");
    // RFC 6773, section 5.5, with feedback.
    for line in
        ["m=video 50234 UDP/DCCP/RTP/AVPF 96 97 98 99 100 101", "a=dccp-service-code:SC:RTPV", "a=dccp-port:5004"]
    {
        assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
    }
    assert!(text.contains("a=setup:active\r\n") && text.contains("a=connection:new\r\n"), "{text}");
    // An end without a requirement accepts the offer, only if unencrypted.
    let (answer, b) = clear(40_123, None).answer(&offer).unwrap();
    let a = offer.accept(&parsed(&answer)).unwrap();
    assert_eq!(a.dccp, Some(DccpMedia { port: 5_004, setup: Setup::Active }));
    assert_eq!(b.dccp, Some(DccpMedia { port: 5_004, setup: Setup::Passive }));
    assert!(end(2).answer(&offer).unwrap_err().to_string().contains("--no-srtp"));
    for (theirs, ours) in [(Setup::Passive, Setup::Active), (Setup::Either, Setup::Active)] {
        let (_, agreed) = clear(2, Some(Setup::Passive)).answer(&clear(1, Some(theirs))).unwrap();
        assert_eq!(agreed.dccp.map(|d| d.setup), Some(ours));
    }
    // At one end only.
    assert!(
        clear(2, Some(Setup::Active)).answer(&clear(1, None)).unwrap_err().to_string().contains("--transport dccp")
    );
    assert!(offer.accept(&clear(1, None)).unwrap_err().to_string().contains("--transport dccp"));
    assert!(offer.accept(&offer).unwrap_err().to_string().contains("setup"));
    let refused = |from: &str, to: &str| Description::parse(&text.replace(from, to)).unwrap_err().to_string();
    assert!(refused("a=dccp-port:5004\r\n", "").contains("a=dccp-port is missing"));
    assert!(refused("a=dccp-port:5004", "a=dccp-port:x").contains("0 to 65535"));
    assert!(refused("SC:RTPV", "SC:RTPA").contains("SC:RTPV"));
    assert!(refused("setup:active", "setup:holdconn").contains("actpass"));
    let numeric = text.replace("SC:RTPV", "SC=x52545056").replace("RTP/AVPF", "RTP/AVP");
    assert_eq!(Description::parse(&numeric).unwrap(), offer);
}

#[test]
fn both_ends_see_the_same_agreement() {
    let offer = with(end(1_000), |m| m.direction = Direction::Send);
    // The answering end has other numbers, prefers VP8, and has no retransmission and less feedback.
    let local = with(end(2_000), |m| {
        m.payloads = vec![(120, Payload::Video(VideoCodec::Vp8, None)), (121, Payload::FlexFec)];
        m.feedback = vec![Feedback::Nack, Feedback::TransportWide];
        m.extensions = vec![(9, Extension::TransportSequence)];
        m.transport.as_mut().unwrap().keys = vec![(1, SrtpKey::random(Suite::AesCm128HmacSha1_80).unwrap())];
    });
    let (answer, b) = local.answer(&parsed(&offer)).unwrap();
    let a = offer.accept(&parsed(&answer)).unwrap();
    for agreed in [&a, &b] {
        let s = &agreed.streams[0];
        assert_eq!((s.codec.name(), s.payload_type, s.flexfec, s.retransmission), ("VP8", 97, Some(99), None));
        assert_eq!(s.feedback, [Feedback::Nack, Feedback::TransportWide]);
        assert_eq!(
            (agreed.extension(Extension::TransportSequence), agreed.extension(Extension::AbsSendTime)),
            (Some(3), None)
        );
    }
    assert_eq!((a.streams[0].direction, b.streams[0].direction), (Direction::Send, Direction::Receive));
    assert_eq!((&a.feedback, &a.extensions), (&b.feedback, &b.extensions));
    assert_eq!((a.remote.port(), b.remote.port()), (2_000, 1_000));
    assert_eq!((a.streams[0].remote.media, b.streams[0].remote.media), (Some(2_000), Some(1_000)));
    assert_eq!(b.remote_controller.as_deref(), Some("scream"));
    let (ours, theirs) = a.keys.unwrap();
    assert_eq!((theirs, ours), b.keys.unwrap());
}

#[test]
fn odd_peers_are_refused_with_a_reason() {
    let refused = |offer: &Description, local: &Description| local.answer(offer).unwrap_err().to_string();
    let vp9 = with(end(1), |m| m.payloads = vec![(96, Payload::Video(VideoCodec::Vp9, None))]);
    let stated = refused(&vp9, &end(2));
    assert!(stated.contains("VP9") && stated.contains("H264, VP8"), "{stated}");
    let clear = with_transport(end(1), |t| t.keys.clear());
    assert!(refused(&clear, &end(2)).contains("--no-srtp"));
    assert!(refused(&end(2), &clear).contains("--no-srtp"));
    assert!(refused(&with_transport(end(1), |t| t.rtcp_mux = false), &end(2)).contains("rtcp-mux"));
    let none = Description::parse(&end(5_004).to_sdp().replace("m=video 5004", "m=video 0")).unwrap();
    assert!(refused(&none, &end(2)).contains("port") && end(2).accept(&none).unwrap_err().to_string().contains("port"));
    let other = with(end(3), |m| m.payloads = vec![(101, Payload::Video(VideoCodec::H264, None))]);
    assert!(end(1).accept(&other).unwrap_err().to_string().contains("offered"));
    assert!(several(1, Direction::Send).accept(&end(2)).unwrap_err().to_string().contains("expected 3"));

    let parse = |from: &str, to: &str| {
        let text = end(5_004).to_sdp();
        assert!(text.contains(from), "{text}");
        let replaced = text.replace(from, to);
        let error = Description::parse(&replaced).unwrap_err().to_string();
        // The line that the error names is the one that was changed.
        let line = error.split("line ").nth(1).and_then(|l| l.split(':').next()?.parse::<usize>().ok());
        let named = line.and_then(|n| replaced.lines().nth(n - 1)).unwrap_or_default();
        assert!(named.contains(to) || named.starts_with("m="), "{error}: {named}");
        error
    };
    assert!(parse("m=video", "m=application").contains("video or audio"));
    assert!(parse("RTP/SAVPF", "UDP/TLS/RTP/SAVPF").contains("RTP/SAVPF"));
    assert!(parse("a=rtcp-mux", "a=fingerprint:sha-256 AA").contains("DTLS"));
    assert!(parse("c=IN IP4 192.0.2.1", "c=IN IP4 example.org").contains("example.org"));
    assert!(parse("inline:", "other:").contains("inline"));
    assert!(parse("inline:", "inline:AAAA").contains("a=crypto"));
    assert!(parse("_GCM inline:", "_GCM inline:!").contains("base64"));
    assert!(parse("m=video 5004", "m=video 65536").contains("0 to 65535"));
    assert!(parse("a=rtcp-mux", "a=mid:a b").contains("token"));
    assert!(parse("a=rtcp-mux", "rtcp-mux").contains("letter"));
}

#[test]
fn too_much_is_refused() {
    let stated = |text: &str| Description::parse(text).unwrap_err().to_string();
    assert!(stated(&"a".repeat(MAX_LENGTH + 1)).contains("65536"));
    assert!(stated("hello").contains("line 1"));
    assert!(stated("v=0\r\n").contains("too short"));
    let text = end(5_004).to_sdp();
    assert!(stated(&format!("{text}a=x:{}\r\n", "y".repeat(MAX_LINE))).contains("4096"));
    let section = &text[text.find("m=").unwrap()..];
    let many = format!("{text}{}", section.repeat(MAX_SECTIONS));
    assert!(stated(&many).contains("number of sections (m=) is \"17\": expected 16 at most"), "{}", stated(&many));
    let rids: String = (0..=MAX_ENCODINGS).map(|n| format!("a=rid:{n} send\r\n")).collect();
    assert!(stated(&format!("{text}{rids}")).contains("number of encodings (a=rid)"));
    let list = ["a"; MAX_ENCODINGS + 1].join(";");
    let again = format!("{text}a=rid:a send\r\na=simulcast:send {list}\r\n");
    assert!(stated(&again).contains("a=simulcast"), "{}", stated(&again));
    let twice = format!("{text}a=mid:x\r\n{section}a=mid:x\r\n");
    assert!(stated(&twice).contains("a=mid"), "{}", stated(&twice));
}

/// An offer in the style of browsers, except for keys: unknown lines are ignored.
#[test]
fn a_browsers_offer_is_read() {
    let text = "v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
        m=audio 9 RTP/AVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=rtpmap:111 opus/48000/2\r\n\
        m=video 40000 RTP/AVPF 96 97 102 103 35 36\r\nc=IN IP4 198.51.100.7\r\na=mid:1\r\na=sendonly\r\na=rtcp-mux\r\na=rtcp-rsize\r\n\
        a=extmap:14 urn:ietf:params:rtp-hdrext:toffset\r\n\
        a=extmap:2/sendonly http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time\r\n\
        a=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 goog-remb\r\na=rtcp-fb:96 transport-cc\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\n\
        a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n\
        a=rtpmap:102 H264/90000\r\na=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f\r\n\
        a=rtpmap:103 rtx/90000\r\na=fmtp:103 apt=102\r\na=rtpmap:35 AV1/90000\r\na=rtpmap:36 ulpfec/90000\r\n\
        a=ssrc-group:FID 1001 1002\r\na=ssrc:1001 cname:abc\r\na=ssrc:1001 msid:x y\r\na=ssrc:1002 cname:abc\r\n";
    let d = Description::parse(text).unwrap();
    let v = d.sections[1].media().unwrap();
    assert_eq!(v.transport.as_ref().unwrap().address, "198.51.100.7:40000".parse().unwrap());
    assert_eq!(v.payloads.iter().map(|p| p.0).collect::<Vec<_>>(), [96, 97, 102, 103]);
    assert_eq!(v.feedback, [Feedback::Nack, Feedback::Pli, Feedback::TransportWide, Feedback::Remb]);
    assert_eq!(v.extensions, [(2, Extension::AbsSendTime)]);
    assert_eq!(
        (v.sources.media, v.sources.retransmission, d.cname.as_deref()),
        (Some(1_001), Some(1_002), Some("abc"))
    );
    // An end with video only refuses the audio, and so uses the transport of the video.
    let local = with_transport(end(5_000), |t| t.keys.clear());
    let (answer, agreed) = local.answer(&d).unwrap();
    let s = &agreed.streams[0];
    assert_eq!((s.codec.name(), s.payload_type, s.retransmission), ("VP8", 96, Some(97)));
    assert_eq!((agreed.remote.port(), &agreed.refused[..]), (40_000, &["audio (mid 0)".to_owned()][..]));
    assert!(answer.to_sdp().contains("a=group:BUNDLE 1\r\n"), "{}", answer.to_sdp());
}

proptest! {
    /// Any input yields an answer or an error.
    #[test]
    fn anything_may_come(lines in proptest::collection::vec("[a-z]=[ -~]{0,40}", 0..30), cut in 0usize..2_000) {
        let (local, several) = (end(5_000), several(6_000, Direction::Receive));
        if let Ok(d) = Description::parse(&lines.join("\r\n")) {
            let _ = local.answer(&d);
        }
        // Parts of a valid one, and a valid one with inserted lines of another kind.
        for text in [end(1).to_sdp(), super::tests::several(1, Direction::Send).to_sdp()] {
            let part: String = text.chars().take(cut).collect();
            for t in [part.clone(), format!("{part}{}\r\n", lines.join("\r\na="))] {
                let Ok(d) = Description::parse(&t) else { continue };
                for own in [&local, &several] {
                    if let Ok((answer, agreed)) = own.answer(&d) {
                        prop_assert!((1..=MAX_SECTIONS).contains(&agreed.streams.len()));
                        prop_assert_eq!(answer.sections.len(), d.sections.len());
                    }
                    let _ = own.accept(&d);
                }
            }
        }
    }
}
