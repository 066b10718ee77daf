//! Session descriptions: lines that say how media is coded, and no others.

/// Attributes that are kept whole.
const KEPT: [&str; 17] = [
    "rtpmap:",
    "fmtp:",
    "rtcp-fb:",
    "rtcp-mux",
    "rtcp-rsize",
    "extmap-allow-mixed",
    "sendrecv",
    "sendonly",
    "recvonly",
    "inactive",
    "setup:",
    "simulcast:",
    "rid:",
    "ice-options:",
    "group:",
    "mid:",
    "end-of-candidates",
];
/// Header extensions whose names are public.
const EXTENSIONS: [&str; 3] =
    ["urn:ietf:params:rtp-hdrext", "http://www.webrtc.org/experiments/", "http://www.ietf.org/id/"];

/// The description without what names an end.
pub(super) fn description(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines().map(str::trim_end) {
        let kept = match line.split_at_checked(2) {
            Some(("v=" | "t=" | "b=" | "m=", _)) => line.len() < 300 && plain(line),
            Some(("a=", attribute)) => {
                let kept = KEPT.iter().any(|k| attribute.starts_with(k));
                let extension = attribute.starts_with("extmap:") && EXTENSIONS.iter().any(|e| attribute.contains(e));
                line.len() < 300 && plain(line) && (kept || extension)
            }
            Some(("o=", _)) => {
                out.push_str("o=- 0 0 IN IP4 0.0.0.0\r\n");
                false
            }
            Some(("s=", _)) => {
                out.push_str("s=-\r\n");
                false
            }
            _ => false,
        };
        if kept {
            out.push_str(line);
            out.push_str("\r\n");
        }
    }
    out
}

/// No addresses are in such a line.
fn plain(line: &str) -> bool {
    let word = |w: &str| w.parse::<core::net::IpAddr>().is_err();
    line.bytes().all(|b| b.is_ascii_graphic() || b == b' ') && line.split([' ', '/', '=']).all(word)
}
