use super::{Pseudonyms, redact};
use crate::{Format, read};
use proptest::prelude::*;
use serde_json::json;

fn redacted(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let done = redact(bytes, &mut out, &mut Pseudonyms::default()).expect("a recording");
    assert_eq!(done.stop, None);
    out
}

fn holds(out: &[u8], secret: &[u8]) -> bool {
    out.windows(secret.len()).any(|w| w == secret)
}

#[test]
fn statistics_keep_their_numbers_and_lose_their_names() {
    let secrets =
        ["192.0.2.77", "2001:db8::77", "alice", "turn.example.org", "HD Webcam of Alice", "AB:CD:EF:01", "pa55w0rd"];
    let line = json!({"epoch_ms": 1_700_000_000_000u64, "stats": {
        "CFAB:CD:EF:01": {"id": "CFAB:CD:EF:01", "type": "certificate", "fingerprint": "AB:CD:EF:01"},
        "I1": {"id": "I1", "type": "local-candidate", "address": "192.0.2.77", "ip": "2001:db8::77", "port": 50_000,
            "url": "turn:turn.example.org:3478", "usernameFragment": "alice"},
        "SV1": {"id": "SV1", "type": "media-source", "trackIdentifier": "HD Webcam of Alice", "frames": 30},
        "O1": {"id": "O1", "type": "outbound-rtp", "kind": "video", "bytesSent": 1234, "mediaSourceId": "SV1", "pa55w0rd": 1},
    }});
    let out = redacted(format!("{line}\n").as_bytes());
    let text = String::from_utf8(out.clone()).expect("text");
    for secret in secrets.iter().filter(|s| **s != "pa55w0rd") {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let (before, after) =
        (read("", line.to_string().as_bytes()).expect("a log"), read("", out.as_slice()).expect("a log"));
    let numbers = |r: &crate::Recording| {
        r.series.iter().map(|(k, s)| (k.0.clone(), k.2.clone(), s.points.clone())).collect::<Vec<_>>()
    };
    let bytes =
        |all: &[(String, String, Vec<_>)]| all.iter().filter(|(_, n, _)| n == "bytesSent" || n == "frames").count();
    assert_eq!((after.format, bytes(&numbers(&after))), (Format::GetStats, 2));
    assert_eq!(numbers(&before).len(), numbers(&after).len());
    // The same by the same.
    let id = |text: &str| after.series.keys().find(|(k, _, _)| k == text).map(|(_, id, _)| id.clone());
    assert!(id("media-source").is_some_and(|id| text.matches(&format!("\"{id}\"")).count() >= 3), "{text}");
}

#[test]
fn a_dump_keeps_limits_and_loses_candidates_and_keys() {
    let sdp = "v=0\r\no=alice 1 2 IN IP4 192.0.2.77\r\ns=call of alice\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\nb=AS:300\r\n\
               a=candidate:1 1 udp 1 192.0.2.77 5000 typ host\r\na=ice-pwd:pa55w0rd\r\na=fingerprint:sha-256 AB:CD\r\n\
               a=ssrc:1 cname:alice\r\na=rtpmap:96 VP8/90000\r\n";
    let dump = json!({"getUserMedia": [{"origin": "https://call.example.org", "video": "alice's camera"}],
        "PeerConnections": {"1-2": {"url": "https://call.example.org/alice", "pid": 1,
            "rtcConfiguration": "{ iceServers: [turn:alice@192.0.2.77], pa55w0rd }",
            "stats": {"O1-bytesSent": {"statsType": "outbound-rtp", "startTime": "2026-01-01T00:00:00.000Z",
                "endTime": "2026-01-01T00:00:01.000Z", "values": "[1, 20]"},
                "I1-address": {"statsType": "local-candidate", "startTime": "2026-01-01T00:00:00.000Z",
                "endTime": "2026-01-01T00:00:01.000Z", "values": "[\"192.0.2.77\", \"alice.local\"]"}},
            "updateLog": [{"type": "setRemoteDescription", "time": "2026-01-01T00:00:00.000Z",
                "value": format!("type: answer, sdp: {sdp}")}]}}});
    let out = redacted(dump.to_string().as_bytes());
    for secret in ["192.0.2.77", "alice", "example.org", "pa55w0rd", "AB:CD"] {
        assert!(!holds(&out, secret.as_bytes()), "{secret} in {}", String::from_utf8_lossy(&out));
    }
    let after = read("", out.as_slice()).expect("a dump");
    let limit = crate::EventKind::RemoteLimit(Some(300_000));
    assert_eq!((after.format, after.events.iter().filter(|e| e.kind == limit).count()), (Format::InternalsDump, 1));
    assert_eq!(after.series.values().filter(|s| s.points.last().is_some_and(|p| p.1 == 20.0)).count(), 1);
}

#[test]
fn what_weir_writes_keeps_its_numbers_and_loses_names() {
    let series = "time_s,flow,controller,target_bps,cc_slope,share_bps:camera of alice\n\
        0.1,\"alice, desk\",exec:/home/alice/x,300000,0.5,7\n0.2,\"alice, desk\",exec:/home/alice/x,310000,,8\n";
    let run = json!({"schema": "weir:run:1", "scenario": "/home/alice/x.toml", "duration_s": 2.0,
        "flows": [{"name": "desk of alice", "kind": "rtp", "packets": {"sent": 9, "received": 8}}]});
    let totals = json!({"packets_sent": 5, "packets_received": 6});
    let call = json!({"schema": "weir:call:1", "calls": [{"local": "192.0.2.77:5000", "reason": "alice left", "codec": "VP8",
        "totals": totals, "room": {"member": "alice"}}]});
    let line = json!({"label": "sent (Weir)", "scale": 1.0, "v": [1, null, 3], "alice": "alice"});
    let chart =
        json!({"title": "Rate", "unit": "kbit/s", "t0": 0.1, "dt": 0.1, "lines": [line], "notes": [[0.1, "alice"]]});
    let data = json!({"sections": [{"title": "alice", "groups": [{"title": "Weir to the browser", "charts": [chart]}]}],
        "csv": "alice"});
    let page = format!(
        "<!doctype html><title>A call with a browser</title><p>192.0.2.77</p>\
        <script type=\"application/json\" id=\"data\">{data}</script><p>alice</p>"
    );
    for (text, format) in [
        (series.to_owned(), Format::WeirSeries),
        (run.to_string(), Format::WeirResult),
        (call.to_string(), Format::WeirResult),
        (page, Format::WeirPage),
    ] {
        let out = redacted(text.as_bytes());
        for secret in ["alice", "desk", "/home", "192.0.2.77"] {
            assert!(!holds(&out, secret.as_bytes()), "{secret} in {}", String::from_utf8_lossy(&out));
        }
        let (before, after) = (read("", text.as_bytes()).expect("read"), read("", out.as_slice()).expect("read"));
        let numbers = |r: &crate::Recording| {
            let mut all: Vec<_> = r.series.values().map(|s| format!("{:?}", s.points)).collect();
            all.sort();
            all
        };
        assert_eq!((after.format, numbers(&after)), (format, numbers(&before)), "{}", String::from_utf8_lossy(&out));
        assert_eq!((after.counts(), after.estimates.len()), (before.counts(), before.estimates.len()));
        assert!(after.series.values().any(|s| !s.points.is_empty()));
    }
}

/// An Ethernet frame of UDP between 192.0.2.77 and 198.51.100.7.
fn frame(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0xaa; 12];
    out.extend([8, 0, 0x45, 0]);
    out.extend(((28 + payload.len()) as u16).to_be_bytes());
    out.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 77, 198, 51, 100, 7]);
    out.extend([0x13, 0x88, 0x13, 0x89]);
    out.extend(((8 + payload.len()) as u16).to_be_bytes());
    out.extend([0, 0]);
    out.extend(payload);
    out
}

/// A capture of ten times RTP, a source description with the name alice@hos and STUN.
fn pcap() -> Vec<u8> {
    let mut pcap = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    for n in 0..10u8 {
        let mut rtp = vec![0x90, 0xe0, 0, n, 0, 0, n, 0, 0, 0, 0, 7, 0xbe, 0xde, 0, 2, 0x31, 0, n, 0x43];
        rtp.extend(*b"mid_");
        rtp.extend(*b"secret payload");
        let mut sdes = vec![0x81, 202, 0, 4, 0, 0, 0, 7, 1, 9];
        sdes.extend(*b"alice@hos\0");
        for bytes in
            [frame(&rtp), frame(&sdes), frame(&[&[0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42][..], b"alice:pa55"].concat())]
        {
            pcap.extend(u32::from(n).to_le_bytes());
            pcap.extend([0; 4]);
            pcap.extend([(bytes.len() as u32).to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat());
            pcap.extend(bytes);
        }
    }
    pcap
}

#[test]
fn a_capture_keeps_headers_and_loses_addresses_and_payloads() {
    let pcap = pcap();
    let out = redacted(&pcap);
    assert_eq!(out.len(), pcap.len());
    for secret in [&b"secret"[..], b"alice", b"pa55", b"mid_", &[192, 0, 2, 77], &[198, 51, 100, 7], &[0xaa; 4]] {
        assert!(holds(&pcap, secret) && !holds(&out, secret), "{secret:?}");
    }
    let (before, after) = (read("", pcap.as_slice()).expect("a capture"), read("", out.as_slice()).expect("a capture"));
    assert_eq!((after.packets.len(), after.rtcp.len()), (10, 10));
    assert_eq!((before.packets, before.rtcp.len(), before.other), (after.packets, after.rtcp.len(), after.other));
}

/// An event log with three source descriptions and an unknown record of 8 bytes at its end.
fn event_log() -> Vec<u8> {
    // RTCP received (field 4) at 5 ms: a source description; and an unknown record (field 99).
    let mut sdes = vec![0x81, 202, 0, 4, 0, 0, 0, 7, 1, 9];
    sdes.extend(*b"alice@hos\0");
    let mut record = vec![8, 5, 18, sdes.len() as u8];
    record.extend(&sdes);
    // Two more: `deltas` is 2, their times, and the list of their lengths and bytes.
    record.extend([24, 2, 0xaa, 6, 2, 0, 0]);
    record.extend([0xb2, 6, 2 + 2 * sdes.len() as u8, sdes.len() as u8, sdes.len() as u8]);
    record.extend([sdes.clone(), sdes].concat());
    let mut log = vec![0x82, 1, 6, 8, 1, 16, 2, 24, 9];
    log.extend([34, record.len() as u8]);
    log.extend(record);
    log.extend([0x9a, 6, 5]);
    log.extend(*b"alice");
    log
}

#[test]
fn an_event_log_keeps_its_reports_and_loses_names() {
    let log = event_log();
    let out = redacted(&log);
    assert!(!holds(&out, b"alice") && out.len() == log.len() - 8, "{out:?}");
    let (before, after) = (read("", log.as_slice()).expect("a log"), read("", out.as_slice()).expect("a log"));
    assert_eq!((after.format, after.rtcp.len()), (Format::EventLog, before.rtcp.len()));
    assert!(after.rtcp.len() == 3, "{:?} {:?}", before.rtcp, before.faults);
}

#[test]
fn the_same_address_has_the_same_replacement_in_every_file() {
    let mut names = Pseudonyms::default();
    let of = |names: &mut Pseudonyms, line: &str| {
        let mut out = Vec::new();
        redact(line.as_bytes(), &mut out, names).expect("a log");
        String::from_utf8(out).expect("text")
    };
    let line = |who: &str| {
        json!({"epoch_ms": 1_700_000_000_000u64, "stats": {"I": {"type": "local-candidate", "address": who}}})
            .to_string()
    };
    let (a, b) = (of(&mut names, &line("192.0.2.1")), of(&mut names, &line("192.0.2.2")));
    assert!(a != b && a.contains("198.18.0.1") && b.contains("198.18.0.2"));
    assert_eq!(of(&mut names, &line("192.0.2.1")), a);
}

#[test]
fn events_of_an_application_keep_their_time_alone() {
    let lines = "[\"getstats\",\"PC_0\",{\"O\":{\"type\":\"outbound-rtp\",\"bytesSent\":7}},1700000000000]\n\
                 [\"alice-joined\",\"PC_0\",{\"alice\":\"alice@example.org\"},1700000001000]\n";
    let out = redacted(lines.as_bytes());
    let text = String::from_utf8(out.clone()).expect("text");
    assert!(!text.contains("alice") && text.contains("1700000001000"), "{text}");
    assert_eq!(read("", out.as_slice()).expect("a log").format, Format::RtcStats);
}

#[test]
fn identifiers_in_later_reports_of_rtcstats_are_replaced_as_in_the_first() {
    let lines = "[\"getstats\",\"PC_0\",{\"O-alice\":{\"type\":\"outbound-rtp\",\"kind\":\"video\",\"bytesSent\":7}},1700000000000]\n\
                 [\"getstats\",\"PC_0\",{\"O-alice\":{\"bytesSent\":9}},1700000001000]\n";
    let out = redacted(lines.as_bytes());
    assert!(!holds(&out, b"alice"), "{}", String::from_utf8_lossy(&out));
    let after = read("", out.as_slice()).expect("a log");
    let bytes: Vec<usize> =
        after.series.iter().filter(|(k, _)| k.2 == "bytesSent").map(|(_, s)| s.points.len()).collect();
    assert_eq!(bytes, [2], "one number with both values");
}

#[test]
fn identifiers_of_digits_are_replaced() {
    // Username of TURN: the time until which it is valid. Foundation: a hash of the address.
    let line = json!({"epoch_ms": 1_700_000_000_000u64, "stats": {"I": {"type": "local-candidate",
        "foundation": "3311327507", "usernameFragment": "9246", "username": "1697792121"}}});
    let out = redacted(line.to_string().as_bytes());
    for secret in ["3311327507", "9246", "1697792121"] {
        assert!(!holds(&out, secret.as_bytes()), "{secret} in {}", String::from_utf8_lossy(&out));
    }
}

#[test]
fn a_query_of_names_that_begins_like_rtp_loses_the_name() {
    let query =
        [&[0xa7, 0x6e, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 6][..], b"update", &[10], b"example.org", &[0; 5]].concat();
    let mut pcap = pcap();
    let bytes = frame(&query);
    pcap.extend([0; 8]);
    pcap.extend([(bytes.len() as u32).to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat());
    pcap.extend(bytes);
    let out = redacted(&pcap);
    for name in [&b"update"[..], b"example", b"org"] {
        assert!(holds(&pcap, name) && !holds(&out, name));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn damaged_files_are_redacted_as_far_as_they_go(log: bool, cut in 0.3f64..1.0, faults in prop::collection::vec((0.02f64..1.0, any::<u8>()), 0..8)) {
        let mut bytes = if log { event_log() } else { pcap() };
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        for (at, value) in faults {
            let at = (bytes.len() as f64 * at) as usize;
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        let mut out = Vec::new();
        let done = redact(bytes.as_slice(), &mut out, &mut Pseudonyms::default());
        prop_assert!(out.len() <= bytes.len() + 64, "{done:?}");
    }
}
