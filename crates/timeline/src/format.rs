//! Recognition of a file by its first bytes.

use crate::ReadError;
use crate::columns;
use crate::marks;
use crate::varint::varint;
use serde::Serialize;

/// Bytes that recognition looks at.
pub(crate) const PEEK: usize = 4096;

/// Format of a recording.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// RtcEventLog of version 2, as Chromium writes it.
    EventLog,
    /// A libpcap file.
    Pcap,
    /// A pcapng file (draft-ietf-opsawg-pcapng).
    Pcapng,
    /// A dump of `chrome://webrtc-internals`.
    InternalsDump,
    /// `getStats()` reports, one JSON object a line.
    GetStats,
    /// A log of rtcstats: one JSON array a line.
    RtcStats,
    /// RTP packets of Pion's `bwe-test`.
    PionRtp,
    /// RTCP packets of Pion's `bwe-test`.
    PionRtcp,
    /// Targets of Pion's `bwe-test`.
    PionTarget,
    /// `rtpdump`, its binary format.
    RtpDump,
    /// A trace of SCReAM's programs (`-log`).
    Scream,
    /// Series of `weir run --series`, as CSV.
    WeirSeries,
    /// Report of `weir run --json`, `weir live call --json` or `weir live webrtc --json`.
    WeirResult,
    /// Page of calls with browsers, of `weir live webrtc`.
    WeirPage,
    /// Packets that a program observed itself ([`crate::Observed`]): of no file.
    Observed,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::EventLog,
        Self::Pcap,
        Self::Pcapng,
        Self::InternalsDump,
        Self::GetStats,
        Self::RtcStats,
        Self::PionRtp,
        Self::PionRtcp,
        Self::PionTarget,
        Self::RtpDump,
        Self::Scream,
        Self::WeirSeries,
        Self::WeirResult,
        Self::WeirPage,
        Self::Observed,
    ];

    /// Its name on every face.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EventLog => "RtcEventLog v2",
            Self::Pcap => "pcap",
            Self::Pcapng => "pcapng",
            Self::InternalsDump => "webrtc-internals dump",
            Self::GetStats => "getStats lines",
            Self::RtcStats => "rtcstats",
            Self::PionRtp => "Pion RTP log",
            Self::PionRtcp => "Pion RTCP log",
            Self::PionTarget => "Pion target log",
            Self::RtpDump => "rtpdump",
            Self::Scream => "SCReAM trace",
            Self::WeirSeries => "Weir series",
            Self::WeirResult => "Weir report",
            Self::WeirPage => "Weir page of calls",
            Self::Observed => "observed packets",
        }
    }

    /// The format of a file that begins with `head`.
    pub(crate) fn recognise(head: &[u8]) -> Result<Self, ReadError> {
        let starts = |magic: &[u8]| head.starts_with(magic);
        if head.is_empty() {
            return Err(ReadError::Unknown("the file is empty".into()));
        }
        if [[0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0xc3, 0xd4], [0x4d, 0x3c, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d]]
            .iter()
            .any(|m| starts(m))
        {
            return Ok(Self::Pcap);
        }
        if starts(&[0x0a, 0x0d, 0x0d, 0x0a]) {
            return Ok(Self::Pcapng);
        }
        if starts(b"#!rtpplay1.0 ") {
            return Ok(Self::RtpDump);
        }
        if is_utf16(head) {
            return Err(ReadError::Unknown(UTF16.into()));
        }
        if starts(b"PAR1") {
            return Err(ReadError::Unknown(PARQUET.into()));
        }
        if marks::is_report(head)? {
            return Ok(Self::WeirResult);
        }
        if let Some(found) = text(head) {
            return Ok(found);
        }
        if head.trim_ascii_start().get(..9).is_some_and(|h| h.eq_ignore_ascii_case(b"<!doctype")) {
            return Err(ReadError::Unknown(HTML.into()));
        }
        event_log(head)
    }
}

/// The way out for texts of PowerShell's redirections and of Notepad.
const UTF16: &str = "a text in UTF-16: save it as UTF-8, or in PowerShell write it by `Set-Content -Encoding utf8`";

/// Ways out for what Weir writes and does not read.
const PARQUET: &str = "Parquet: weir run --series writes the same as .csv beside it, which is read";
const HTML: &str = "a page that is none of calls with browsers (weir live webrtc writes those)";

/// Whether a text has two bytes a letter, by its mark (RFC 2781, section 3.2), or by the zeros of its first letters.
fn is_utf16(head: &[u8]) -> bool {
    let letter = |b: &u8| matches!(b, b'{' | b'[' | b'"' | b' ' | b'\r' | b'\n' | b'0'..=b'9');
    match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => true,
        [a, 0, b, 0, ..] | [0, a, 0, b, ..] => letter(a) && letter(b),
        _ => false,
    }
}

/// Times that are taken for Unix times in ms, from 2001 to 2286: columns of other numbers are no log.
const UNIX_MS: std::ops::Range<u64> = 1_000_000_000_000..10_000_000_000_000;
/// Bytes of the longest RTP or RTCP packet in a UDP datagram.
const LONGEST_DATAGRAM: u64 = 65_535;

/// The formats of text.
fn text(head: &[u8]) -> Option<Format> {
    let first = head.iter().position(|b| !b.is_ascii_whitespace())?;
    let head = &head[first..];
    let line = head.split(|b| *b == b'\n').next().unwrap_or(head);
    match head[0] {
        b'[' => Some(Format::RtcStats),
        b'"' if columns::is_header(line) => Some(Format::Scream),
        b't' if marks::is_series(line) => Some(Format::WeirSeries),
        b'<' if marks::is_page(head) => Some(Format::WeirPage),
        b'0'..=b'9' if std::str::from_utf8(line).is_ok_and(|l| columns::columns(l).is_some()) => Some(Format::Scream),
        b'{' => {
            let holds = |word: &[u8]| head.windows(word.len()).any(|w| w == word);
            if holds(b"\"PeerConnections\"") || holds(b"\"getUserMedia\"") {
                return Some(Format::InternalsDump);
            }
            // A report a line has its objects with a type in the first line.
            let report = line.windows(6).any(|w| w == b"\"type\"") || line.windows(7).any(|w| w == b"\"stats\"");
            Some(if holds(b"\"UserAgent\"") && !report { Format::InternalsDump } else { Format::GetStats })
        }
        b'0'..=b'9' => {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let number = |f: &[u8]| std::str::from_utf8(f).ok().and_then(|f| f.trim().parse::<u64>().ok());
            let is_time = |f: &[u8]| number(f).is_some_and(|ms| UNIX_MS.contains(&ms));
            let is_size = |f: &[u8]| number(f).is_some_and(|n| n <= LONGEST_DATAGRAM);
            let is_flag = |f: &[u8]| matches!(f.trim_ascii(), b"true" | b"false");
            let fields: Vec<&[u8]> = line.split(|b| *b == b',').collect();
            match fields.as_slice() {
                // Both logs have two columns: a target is written with a space and is a rate.
                [at, rate] if is_time(at) && rate.first() == Some(&b' ') => {
                    number(rate).is_some().then_some(Format::PionTarget)
                }
                [at, size] if is_time(at) && is_size(size) => Some(Format::PionRtcp),
                [at, kind, _, _, _, marker, size, ..] if is_time(at) && number(kind).is_some() => {
                    (is_flag(marker) && is_size(size)).then_some(Format::PionRtp)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// An event log has no header: its first field must be one that the format has, of the right kind.
fn event_log(head: &[u8]) -> Result<Format, ReadError> {
    let unknown = || {
        let shown: Vec<String> = head.iter().take(8).map(|b| format!("{b:02x}")).collect();
        ReadError::Unknown(format!("it begins with {}", shown.join(" ")))
    };
    // The letters of a text are lengths and fields too, but no record is without a byte below the letters.
    if head.iter().take(64).all(|b| *b >= b' ' || b.is_ascii_whitespace()) {
        return Err(unknown());
    }
    let (mut at, mut seen) = (head, 0);
    while seen < 3 {
        let Some((key, rest)) = varint(at) else { break };
        let (field, kind) = (key >> 3, key & 7);
        let Some((length, rest)) = varint(rest) else { break };
        let known = matches!(field, 2..=7 | 16..=34 | 101..=104);
        if kind != 2 {
            break;
        }
        if field == 1 && seen == 0 {
            // The old log repeats field 1; version 2 has it only in logs of the change.
            return Err(ReadError::OldEventLog);
        }
        if !known {
            break;
        }
        seen += 1;
        match usize::try_from(length).ok().and_then(|l| rest.get(l..)) {
            Some(next) if !next.is_empty() => at = next,
            // The first record is longer than what is looked at, or the last.
            _ => return Ok(Format::EventLog),
        }
    }
    if seen >= 1 { Ok(Format::EventLog) } else { Err(unknown()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_the_format() {
        let of = |head: &[u8]| Format::recognise(head).ok();
        assert_eq!(of(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0]), Some(Format::Pcap));
        assert_eq!(of(&[0x0a, 0x0d, 0x0d, 0x0a]), Some(Format::Pcapng));
        assert_eq!(of(b"#!rtpplay1.0 10.0.0.1/5004\n"), Some(Format::RtpDump));
        assert_eq!(of(b"{\n \"getUserMedia\": [],\n"), Some(Format::InternalsDump));
        assert_eq!(of(b"{\"t\":1,\"stats\":{}}\n"), Some(Format::GetStats));
        assert_eq!(of(b"[\"getstats\",\"PC_0\",{},1]\n"), Some(Format::RtcStats));
        assert_eq!(of(b"1747225741356, 100000\n"), Some(Format::PionTarget));
        assert_eq!(of(b"1747225741356,28\n"), Some(Format::PionRtcp));
        let trace = b"0.0268,0.0000,0.0253, 12500,1274,0,0,0,1,1274,0,0,0,0,0,0,1,1753594,0.000 1\n";
        assert_eq!(of(trace), Some(Format::Scream));
        assert_eq!(of(b"time_s,flow,controller,target_bps\n0.1,v,gcc,1\n"), Some(Format::WeirSeries));
        assert_eq!(of(b"{\n  \"schema\": \"weir:run:1\",\n  \"scenario\": \"s\""), Some(Format::WeirResult));
        assert_eq!(of(b"<!doctype html>\n<title>Calls with browsers</title>"), Some(Format::WeirPage));
        assert_eq!(of(b"1747225741290,102,2070638893,10476,3950019588,false,1216,0,10476,1\n"), Some(Format::PionRtp));
        // The begin of a log: field 16, with time, version and UTC.
        assert_eq!(of(&[0x82, 0x01, 6, 8, 1, 16, 2, 24, 3]), Some(Format::EventLog));
    }

    #[test]
    fn the_old_log_and_strangers_are_refused_by_name() {
        let why = |head: &[u8]| Format::recognise(head).expect_err("refused").to_string();
        assert!(why(&[0x0a, 4, 8, 1, 16, 2]).contains("version 1"));
        assert!(why(b"\x89PNG\r\n").contains("89 50 4e 47"));
        assert!(why(b"\"\"\"A program in Python, whose quotes are the key of field 4.").contains("22 22 22"));
        assert!(why(b"").contains("empty"));
        // Columns of numbers that are no log of Pion: no Unix time, no size, no marker.
        for text in [&b"1,2\n"[..], b"0,28\n", b"1747225741356,2800000\n", b"2026, 100000\n", b"1,2,3,4,5,6,7\n"] {
            assert!(why(text).contains("it begins with"), "{text:?}");
        }
        assert!(why(b"PAR1\x15\x04").contains(".csv beside it"));
        assert!(why(b"{\"schema\":\"weir:judge:1\"}").contains("weir:judge:1"));
        assert!(why(b"<!DOCTYPE html><title>x</title>").contains("a page that is none"));
        for text in [&b"\xff\xfe{\0\"\0t\0"[..], b"\xfe\xff\0{\0\"", b"1\x007\x004\x007\0", b"\0[\0\"\0g"] {
            assert!(why(text).contains("UTF-16: save it as UTF-8"), "{text:?}");
        }
    }
}
