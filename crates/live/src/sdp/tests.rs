use super::*;
use crate::srtp::Suite;
use proptest::prelude::*;

fn end(port: u16) -> Description {
    Description {
        session: 77,
        address: SocketAddr::from(([192, 0, 2, 1], port)),
        direction: Direction::SendReceive,
        payloads: vec![
            (96, Payload::Video(VideoCodec::H264, Some("packetization-mode=1;profile-level-id=42e01f".into()))),
            (97, Payload::Video(VideoCodec::Vp8, None)),
            (98, Payload::Retransmission(96)),
            (99, Payload::FlexFec),
            (100, Payload::ReedSolomon),
        ],
        feedback: Feedback::ALL.iter().map(|f| f.0).collect(),
        extensions: vec![(3, Extension::TransportSequence), (2, Extension::AbsSendTime)],
        keys: Suite::ALL.iter().zip(1..).map(|(s, tag)| (tag, SrtpKey::random(*s).unwrap())).collect(),
        ssrc: Some(u32::from(port)),
        repair_ssrc: Some(u32::from(port) + 1),
        retransmission_ssrc: Some(u32::from(port) + 2),
        cname: Some("somebody@192.0.2.1".into()),
        dccp: None,
        rtcp_mux: true,
        controller: Some("scream".into()),
    }
}

#[test]
fn what_is_written_is_read_back() {
    for keys in [true, false] {
        let mut d = end(5_004);
        if !keys {
            d.keys.clear();
        }
        let text = d.to_sdp();
        assert_eq!(Description::parse(&text).unwrap(), d, "{text}");
        let lines = ["a=rtcp-fb:* ack ccfb", "a=fmtp:98 apt=96", "a=ssrc-group:FID 5004 5006", "a=rtcp-mux"];
        for line in lines {
            assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
        }
        let protocol = if keys { "m=video 5004 RTP/SAVPF 96" } else { "m=video 5004 RTP/AVPF 96" };
        assert!(text.contains(protocol), "{text}");
    }
    let v6 = Description { address: "[2001:db8::1]:9".parse().unwrap(), ..end(9) };
    assert_eq!(Description::parse(&v6.to_sdp()).unwrap().address, v6.address);
}

#[test]
fn a_dccp_connection_is_described_and_agreed_on() {
    let clear = |port, setup: Option<Setup>| Description {
        keys: Vec::new(),
        dccp: setup.map(|setup| DccpMedia { port: 5_004, setup }),
        ..end(port)
    };
    let offer = clear(50_234, Some(Setup::Active));
    let text = offer.to_sdp();
    assert_eq!(Description::parse(&text).unwrap(), offer, "{text}");
    // RFC 6773, section 5.5, with feedback.
    for line in ["m=video 50234 UDP/DCCP/RTP/AVPF 96 97 98 99 100", "a=dccp-service-code:SC:RTPV", "a=dccp-port:5004"] {
        assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
    }
    assert!(text.contains("a=setup:active\r\n") && text.contains("a=connection:new\r\n"), "{text}");
    // One who was told nothing takes what is offered, in the clear only.
    let (answer, b) = clear(40_123, None).answer(&offer).unwrap();
    let a = offer.accept(&Description::parse(&answer.to_sdp()).unwrap()).unwrap();
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
    let offer = Description { direction: Direction::Send, ..end(1_000) };
    // The answering end has other numbers, prefers VP8, knows no retransmission and less feedback.
    let local = Description {
        payloads: vec![(120, Payload::Video(VideoCodec::Vp8, None)), (121, Payload::FlexFec)],
        feedback: vec![Feedback::Nack, Feedback::TransportWide],
        extensions: vec![(9, Extension::TransportSequence)],
        keys: vec![(1, SrtpKey::random(Suite::AesCm128HmacSha1_80).unwrap())],
        ..end(2_000)
    };
    let offered = Description::parse(&offer.to_sdp()).unwrap();
    let (answer, b) = local.answer(&offered).unwrap();
    let a = offer.accept(&Description::parse(&answer.to_sdp()).unwrap()).unwrap();
    assert_eq!((a.codec, a.payload_type, a.flexfec, a.retransmission), (VideoCodec::Vp8, 97, Some(99), None));
    assert_eq!((b.codec, b.payload_type, b.flexfec, b.retransmission), (VideoCodec::Vp8, 97, Some(99), None));
    assert_eq!((a.direction, b.direction), (Direction::Send, Direction::Receive));
    assert_eq!((&a.feedback, &b.feedback), (&vec![Feedback::Nack, Feedback::TransportWide], &local.feedback));
    assert_eq!((a.extension(Extension::TransportSequence), a.extension(Extension::AbsSendTime)), (Some(3), None));
    assert_eq!(a.extensions, b.extensions);
    assert_eq!((a.remote.port(), b.remote.port()), (2_000, 1_000));
    assert_eq!((a.remote_ssrc, b.remote_ssrc), (Some(2_000), Some(1_000)));
    assert_eq!(b.remote_controller.as_deref(), Some("scream"));
    let (ours, theirs) = a.keys.unwrap();
    assert_eq!((theirs, ours), b.keys.unwrap());
}

#[test]
fn odd_peers_are_told_what_is_wrong() {
    let refused = |offer: &Description, local: &Description| local.answer(offer).unwrap_err().to_string();
    let vp9 = Description { payloads: vec![(96, Payload::Video(VideoCodec::Vp9, None))], ..end(1) };
    let told = refused(&vp9, &end(2));
    assert!(told.contains("VP9") && told.contains("H264, VP8"), "{told}");
    let clear = Description { keys: vec![], ..end(1) };
    assert!(refused(&clear, &end(2)).contains("--no-srtp"));
    assert!(refused(&end(2), &clear).contains("--no-srtp"));
    assert!(refused(&Description { rtcp_mux: false, ..end(1) }, &end(2)).contains("rtcp-mux"));
    assert!(refused(&end(0), &end(2)).contains("port"));
    let other = Description { payloads: vec![(101, Payload::Video(VideoCodec::H264, None))], ..end(3) };
    assert!(end(1).accept(&other).unwrap_err().to_string().contains("offered"));

    let parse = |from: &str, to: &str| {
        let text = end(5_004).to_sdp();
        assert!(text.contains(from), "{text}");
        Description::parse(&text.replace(from, to)).unwrap_err().to_string()
    };
    assert!(parse("m=video", "m=audio").contains("m=video"));
    assert!(parse("RTP/SAVPF", "UDP/TLS/RTP/SAVPF").contains("RTP/SAVPF"));
    assert!(parse("a=rtcp-mux", "a=fingerprint:sha-256 AA").contains("DTLS"));
    assert!(parse("192.0.2.1", "example.org").contains("example.org"));
    assert!(parse("inline:", "other:").contains("inline"));
    assert!(parse("inline:", "inline:AAAA").contains("a=crypto"));
    assert!(parse("_GCM inline", "_GCM inline:!").contains("base64"));
    assert!(Description::parse(&"a".repeat(MAX_LENGTH + 1)).unwrap_err().to_string().contains("65536"));
    assert!(Description::parse("hello").is_err());
}

/// An offer as browsers make it, but for keys: what Weir does not know is passed over.
#[test]
fn a_browsers_offer_is_read() {
    let text = "v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
        m=audio 9 RTP/AVPF 111\r\nc=IN IP4 0.0.0.0\r\na=rtpmap:111 opus/48000/2\r\n\
        m=video 40000 RTP/AVPF 96 97 102 103 35 36\r\nc=IN IP4 198.51.100.7\r\na=mid:1\r\na=sendonly\r\na=rtcp-mux\r\na=rtcp-rsize\r\n\
        a=extmap:14 urn:ietf:params:rtp-hdrext:toffset\r\n\
        a=extmap:2/sendonly http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time\r\n\
        a=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 goog-remb\r\na=rtcp-fb:96 transport-cc\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\n\
        a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n\
        a=rtpmap:102 H264/90000\r\na=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f\r\n\
        a=rtpmap:103 rtx/90000\r\na=fmtp:103 apt=102\r\na=rtpmap:35 AV1/90000\r\na=rtpmap:36 ulpfec/90000\r\n\
        a=ssrc-group:FID 1001 1002\r\na=ssrc:1001 cname:abc\r\na=ssrc:1001 msid:x y\r\na=ssrc:1002 cname:abc\r\n";
    let d = Description::parse(text).unwrap();
    assert_eq!(d.address, "198.51.100.7:40000".parse().unwrap());
    assert_eq!(d.payloads.iter().map(|p| p.0).collect::<Vec<_>>(), [96, 97, 102, 103]);
    assert_eq!(d.feedback, [Feedback::Nack, Feedback::Pli, Feedback::TransportWide, Feedback::Remb]);
    assert_eq!(d.extensions, [(2, Extension::AbsSendTime)]);
    assert_eq!((d.ssrc, d.retransmission_ssrc, d.cname.as_deref()), (Some(1_001), Some(1_002), Some("abc")));
    let local = Description { keys: vec![], ..end(5_000) };
    let (_, agreed) = local.answer(&d).unwrap();
    assert_eq!((agreed.codec, agreed.payload_type, agreed.retransmission), (VideoCodec::Vp8, 96, Some(97)));
}

proptest! {
    /// Whatever comes, there is an answer or an error.
    #[test]
    fn anything_may_come(lines in proptest::collection::vec("[a-z]=[ -~]{0,40}", 0..30), cut in 0usize..2_000) {
        let local = end(5_000);
        if let Ok(d) = Description::parse(&lines.join("\r\n")) {
            let _ = local.answer(&d);
        }
        // Parts of a right one, and a right one with lines of another kind in it.
        let text = end(1).to_sdp();
        let part: String = text.chars().take(cut).collect();
        for t in [part.clone(), format!("{part}{}\r\n", lines.join("\r\na="))] {
            if let Ok(d) = Description::parse(&t) {
                let _ = local.answer(&d);
                let _ = local.accept(&d);
            }
        }
    }
}
