//! Files that are damaged, foreign or hostile: each is refused, or read within bounds with the place and the reason of what is missing.

use std::io::Read;
use weir_timeline::{Call, Format, Limits, ReadError, Recording, Report, read, read_within};

fn opened(bytes: &[u8]) -> Recording {
    read("file", bytes).expect("a recording")
}

fn refused(bytes: &[u8]) -> String {
    match read("file", bytes) {
        Err(e @ ReadError::Unknown(_)) => e.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A line of statistics in a second, of one object.
fn line(second: u64, object: &str) -> String {
    format!("{{\"epoch_ms\":{},\"stats\":{{\"O\":{{{object}}}}}}}\n", 1_700_000_000_000 + second * 1_000)
}

fn sender(second: u64) -> String {
    line(second, &format!("\"type\":\"outbound-rtp\",\"packetsSent\":{},\"bytesSent\":{}", second, second * 1_000))
}

const RTCSTATS: &str = r#"["getstats","PC_0",{"O":{"type":"outbound-rtp","packetsSent":5}},1700000000000]"#;
const PION: &str = "1747225741290,102,2070638893,10476,3950019588,false,1216,0,10476,1\n";

fn dump(values: &str) -> String {
    let list = |name: &str, values: &str| {
        format!(
            "\"O-{name}\": {{\"startTime\": \"2025-01-01T00:00:00.000Z\", \"endTime\": \"2025-01-01T00:00:09.000Z\", \
             \"statsType\": \"outbound-rtp\", \"values\": \"{values}\"}}"
        )
    };
    format!(
        "{{\n\"UserAgent\": \"x\",\n\"PeerConnections\": {{\"1-1\": {{\"stats\": {{\n{},\n{}\n}}}}}},\n\"getUserMedia\": []\n}}\n",
        list("packetsSent", values),
        list("bytesSent", values)
    )
}

#[test]
fn numbers_that_nothing_can_have_measured_are_left_out_of_every_format() {
    let huge = r#""type":"outbound-rtp","packetsSent":1e300,"bytesSent":-1e308,"framesEncoded":9"#;
    let lines = line(0, huge) + &line(1, huge).replace("\"O\"", "\"P\"") + &sender(2);
    let rtcstats = RTCSTATS.replace('5', "1e300") + "\n" + RTCSTATS;
    for text in [lines, rtcstats, dump("[1e300,-1e300,7]")] {
        let found = opened(text.as_bytes());
        assert!(found.faults.keys().any(|f| f.contains("measured")), "{:?}", found.faults);
        assert!((2..=7).contains(&found.counts().sent), "{:?}", found.counts());
    }
    // Many that can be: the sum of their counters saturates, and no share is of infinities.
    let many: String = (0..40)
        .flat_map(|s| (0..30).map(move |o| (s, o)))
        .map(|(s, o)| {
            let object = format!(
                "\"type\":\"outbound-rtp\",\"packetsSent\":{0},\"bytesSent\":{0},\"packetsLost\":{0}",
                if s < 20 { 0.0 } else { 9e17 }
            );
            line(s, &object).replace("\"O\"", &format!("\"O{o}\""))
        })
        .collect();
    let found = opened(many.as_bytes());
    assert_eq!(found.counts().sent, u64::MAX);
    let report = Report::of(&Call::new(vec![found]), &[]).expect("a report");
    let text = format!("{report:?}");
    assert!(!text.contains("NaN") && !text.contains("inf %"), "{text}");
}

#[test]
fn json_without_anything_of_a_call_is_refused() {
    let package = "{\n  \"name\": \"x\",\n  \"type\": \"module\",\n  \"scripts\": {\"type\": \"a\"}\n}\n";
    let geo = r#"{"features":{"type":"Feature","timestamp":1700000000000,"x":1}}"#;
    for text in [package, "[1,2,3]", "{}", geo, "[\"a\",\"b\"]\n[\"c\"]\n", &"[".repeat(200_000)] {
        assert!(refused(text.as_bytes()).contains("JSON without statistics"), "{:.60}", text);
    }
    // Those of a call are read, pretty or not, and damaged ones are no strangers.
    assert_eq!(opened(RTCSTATS.as_bytes()).format, Format::RtcStats);
    assert_eq!(opened(b"[\"create\",\"PC_0\",null,1700000000000]\n").events.len(), 1);
    let broken = sender(1).replace("\"stats\"", "stats").repeat(5);
    assert_eq!(opened(broken.as_bytes()).faults.values().sum::<u64>(), 5);
}

#[test]
fn a_line_that_cannot_be_read_is_a_damage_with_its_place_and_reason() {
    let good = sender(1);
    let formats = [
        (good.clone(), "{\"epoch_ms\":17,\n"),
        (RTCSTATS.to_owned() + "\n", "[\"getstats\",\n"),
        (PION.into(), "17,x\n"),
    ];
    for (good, bad) in formats {
        let found = opened((good.clone() + bad + &good).as_bytes());
        let damage = found.damaged.expect("damaged");
        assert_eq!((damage.offset, found.stop), (good.len() as u64, None), "{bad}");
        assert!(damage.why.contains("line"), "{damage:?}");
        let whole = opened((good.clone() + "\n" + &good).as_bytes());
        assert_eq!((whole.damaged, whole.stop), (None, None), "blank lines are none");
    }
    assert!(opened((sender(1) + "17\n").as_bytes()).damaged.expect("damaged").why.contains("no object"));
}

#[test]
fn a_dump_is_read_up_to_the_byte_that_is_wrong() {
    let whole = dump("[1,2,3]");
    let at = whole.find("\"O-bytesSent").expect("a list behind the first");
    let mut bytes = whole.clone().into_bytes();
    bytes[at] = b'#';
    let found = opened(&bytes);
    let stop = found.stop.clone().expect("damaged");
    assert!((at as u64..=at as u64 + 2).contains(&stop.offset), "{stop:?} of {at}");
    assert_eq!(found.counts().sent, 3, "the list before it is whole: {:?}", found.series);
    let cut = opened(&whole.as_bytes()[..whole.len() - 40]);
    assert!(cut.stop.expect("cut").offset >= whole.len() as u64 - 41);
}

#[test]
fn the_mark_of_utf_8_is_passed_over_in_every_text() {
    for text in [sender(1) + &sender(2), RTCSTATS.into(), PION.into(), dump("[1,2,3]")] {
        let marked = [&b"\xef\xbb\xbf"[..], text.as_bytes()].concat();
        let (plain, found) = (opened(text.as_bytes()), opened(&marked));
        assert_eq!((found.format, found.counts(), found.faults), (plain.format, plain.counts(), plain.faults));
        assert_eq!((found.damaged, found.stop), (None, None));
        let words: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(refused(&words).contains("UTF-16: save it as UTF-8"));
    }
}

#[test]
fn no_more_series_are_kept_than_the_bound_and_their_texts_cost_what_they_take() {
    let objects = |n: usize, of: usize| {
        let object = |i: usize| format!("\"I{i}\":{{\"type\":\"outbound-rtp\",\"packetsSent\":1}}");
        let all: Vec<String> = (n * of..(n + 1) * of).map(object).collect();
        format!("{{\"epoch_ms\":1700000000000,\"stats\":{{{}}}}}\n", all.join(","))
    };
    let text: String = (0..30).map(|n| objects(n, 5_000)).collect();
    let found = opened(text.as_bytes());
    assert_eq!(found.series.len(), 100_000);
    let stop = found.stop.expect("full");
    assert!(stop.why.contains("numbers over time") && stop.offset < text.len() as u64, "{stop:?}");
    // Names of a megabyte: 45 MB of them are as much as 700,000 rows.
    let long = |i: usize| {
        line(0, "\"type\":\"outbound-rtp\",\"packetsSent\":1")
            .replace("\"O\"", &format!("\"{i}{}\"", "x".repeat(1 << 20)))
    };
    let limits = Limits { rows: 700_000, ..Limits::default() };
    let text: String = (0..60).map(long).collect();
    let found = read_within("file", text.as_bytes(), limits).expect("a recording");
    assert!((40..=44).contains(&found.series.len()) && found.stop.is_some(), "{}", found.series.len());
}

#[test]
fn values_without_end_are_no_memory_without_end() {
    let nested = format!("{{\"epoch_ms\":1700000000000,\"stats\":[{}]}}\n", vec!["[0]"; 1_500_000].join(","));
    let found = opened((sender(1) + &nested).as_bytes());
    assert!(found.damaged.expect("too many").why.contains("more than 2000000 values"));
    let list = dump(&format!("[{}]", vec!["0"; 2_500_000].join(",")));
    let found = opened(list.as_bytes());
    assert_eq!((found.series.len(), found.faults.get("lists that are not JSON")), (0, Some(&2)));
}

/// Files of Weir itself, with columns, objects and lists without end.
#[test]
fn reports_series_and_pages_have_the_bounds_of_others() {
    let columns = |n: usize| format!("time_s,flow{}\n0.1,v{}\n", ",x".repeat(n), ",1".repeat(n));
    assert_eq!(opened(columns(900).as_bytes()).series.len(), 1, "columns of one name are one");
    assert!(opened(columns(1_100).as_bytes()).stop.expect("too many").why.contains("1000 columns"));
    let flows = |n: usize| (0..n).map(|i| format!("{{\"name\":\"{i}\",\"loss\":1}}")).collect::<Vec<_>>().join(",");
    let report = |n| format!("{{\"schema\":\"weir:run:1\",\"flows\":[{}]}}", flows(n));
    let many = opened(report(120_000).as_bytes());
    assert!(many.series.len() == 100_000 && many.stop.expect("full").why.contains("numbers over time"));
    let deep = format!("{{\"schema\":\"weir:run:1\",\"flows\":[{}1{}]}}", "{\"a\":".repeat(100), "}".repeat(100));
    assert!(opened(deep.as_bytes()).series.values().all(|s| s.points.is_empty()));
    let zeros = vec!["0"; 2_100_000].join(",");
    let page = format!(
        "<!doctype html><title>A call with a browser</title><script id=\"data\">{{\"sections\":[{zeros}]}}</script>"
    );
    assert!(opened(page.as_bytes()).stop.expect("too many").why.contains("more than 2000000 values"));
}

/// Statistics whose times are two days apart: each second of each stream would take hours.
#[test]
fn many_streams_of_days_come_to_an_end() {
    let objects = |bytes: u64| {
        let object =
            |i: u32| format!("\"I{i}\":{{\"type\":\"outbound-rtp\",\"bytesSent\":{bytes},\"packetsSent\":{bytes}}}");
        (0..20_000).map(object).collect::<Vec<_>>().join(",")
    };
    let line = |ms: u64, bytes| format!("{{\"epoch_ms\":{ms},\"stats\":{{{}}}}}\n", objects(bytes));
    let text = line(1_700_000_000_000, 1) + &line(1_700_000_000_000 + 172_000_000, 900);
    let report = Report::of(&Call::new(vec![opened(text.as_bytes())]), &[]).expect("a report");
    assert_eq!(report.sources[0].series, 40_000);
}

/// Each format's smallest record without content, over and over behind a begin.
#[test]
fn records_without_content_end_at_a_bound() {
    let pcap = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 1, 0, 0, 0];
    let mut section = vec![0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    section.extend([0xff; 8]);
    section.extend([28, 0, 0, 0]);
    let rtpdump = [&b"#!rtpplay1.0 10.0.0.1/5004\n"[..], &[0; 16]].concat();
    let cases: [(&str, Vec<u8>, &[u8]); 7] = [
        ("pcap", pcap.to_vec(), &[0; 16]),
        ("pcapng", section, &[0x99, 0, 0, 0, 12, 0, 0, 0, 12, 0, 0, 0]),
        ("event log", vec![0x82, 0x01, 6, 8, 1, 16, 2, 24, 3], &[0xfa, 0x01, 0]),
        ("rtpdump", rtpdump, &[0, 8, 0, 0, 0, 0, 0, 0]),
        ("getStats", sender(1).into_bytes(), b"\n"),
        ("Pion", PION.into(), b"\n"),
        ("Weir series", b"time_s,flow,x\n".to_vec(), b"\n"),
    ];
    for (name, begin, record) in cases {
        let part = record.repeat(4_096);
        let endless = std::iter::repeat_n(part, 1 << 14);
        let mut parts: Vec<Box<dyn Read>> = vec![Box::new(std::io::Cursor::new(begin))];
        parts.push(Box::new(Repeated { parts: Box::new(endless), now: std::io::Cursor::new(Vec::new()) }));
        let file = parts.into_iter().reduce(|a, b| Box::new(a.chain(b))).expect("two");
        let limits = Limits { rows: 100_000, ..Limits::default() };
        let found = read_within(name, file, limits).expect("a recording");
        let stop = found.stop.unwrap_or_else(|| panic!("{name} has no bound"));
        assert!(stop.why.contains("more rows"), "{name}: {stop:?}");
        assert!(stop.offset <= 110_000 * record.len() as u64, "{name}: {stop:?}");
    }
}

/// Bytes of parts, one behind the other.
struct Repeated {
    parts: Box<dyn Iterator<Item = Vec<u8>>>,
    now: std::io::Cursor<Vec<u8>>,
}

impl Read for Repeated {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.now.read(out)? {
                0 => match self.parts.next() {
                    Some(part) => self.now = std::io::Cursor::new(part),
                    None => return Ok(0),
                },
                n => return Ok(n),
            }
        }
    }
}
