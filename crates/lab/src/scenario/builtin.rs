//! The scenarios that ship with Weir, inside the program.

macro_rules! embed {
    ($($path:literal)*) => {
        &[$(($path, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/", $path))),)*]
    };
}

const FILES: &[(&str, &str)] = embed! {
    "rmcat-comparison/responsiveness.toml"
    "rmcat-comparison/fairness.toml"
    "rmcat-comparison/competition.toml"
    "rmcat-comparison/random-loss.toml"
    "fbra/variable-capacity.toml"
    "fbra/1-rtp-10-short-tcp.toml"
    "fbra/2-rtp-10-short-tcp.toml"
    "fbra/testbed-1-rtp-short-tcp-1mbps.toml"
    "fbra/testbed-2-rtp-1mbps.toml"
    "dp-fec/100mbps-short-tcp.toml"
    "dp-fec/100mbps-short-tcp-tcp-stream.toml"
    "dp-fec/1gbps-short-tcp.toml"
    "dp-fec/1gbps-short-tcp-threshold-0.3.toml"
    "dp-fec/1gbps-short-and-long-tcp.toml"
    "rtp-cc-thesis/error-resilience-0.5%-loss-3g.toml"
    "rtp-cc-thesis/circuit-breaker.toml"
    "rtp-cc-thesis/mobile-3g-call-180s.toml"
    "rtp-cc-thesis/slow-link.toml"
    "rtp-cc-thesis/five-calls-heterogeneous.toml"
    "rtp-cc-thesis/one-call-delay.toml"
    "rtp-cc-thesis/lossy-bottleneck.toml"
    "rtp-cc-thesis/three-calls.toml"
    "rtp-cc-thesis/network-assisted-3g.toml"
    "dccp/alone.toml"
    "dccp/beside-tcp.toml"
    "dccp-video/testbed.toml"
    "dccp-video/short-internet.toml"
    "dccp-video/long-internet.toml"
    "dccp-video/testbed-pictures.toml"
    "dccp-video/short-internet-pictures.toml"
    "dccp-video/long-internet-pictures.toml"
    "dccp-video/bit-rate-interval-testbed.toml"
    "dccp-video/bit-rate-interval-long-internet.toml"
    "dccp-video/bit-rate-interval-testbed-pictures.toml"
    "dccp-video/bit-rate-interval-long-internet-pictures.toml"
    "rfc8867/5.1-variable-capacity.toml"
    "rfc8867/5.2-variable-capacity-two-flows.toml"
    "rfc8867/5.3-congested-feedback.toml"
    "rfc8867/5.4-competing-flows.toml"
    "rfc8867/5.5-rtt-fairness.toml"
    "rfc8867/5.6-long-tcp.toml"
    "rfc8867/5.7-short-tcp.toml"
    "rfc8867/5.8-pause-resume.toml"
    "examples/quick.toml"
    "examples/error-resilience.toml"
    "examples/lte.toml"
    "examples/lte-like.csv"
    "examples/wifi.toml"
    "examples/parking-lot.toml"
    "examples/short-tcp.toml"
};

/// All files: path under `scenarios/` and text.
pub(super) fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().copied()
}

/// The text of the file at a path.
pub(super) fn file(path: &str) -> Option<&'static str> {
    FILES.iter().find(|f| f.0 == path).map(|f| f.1)
}

/// All scenarios: name, such as `rmcat-comparison/responsiveness`, and text, in the order of lists.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    files().filter_map(|(path, text)| Some((path.strip_suffix(".toml")?, text)))
}

/// The whole name of the scenario of a name, of its last part where only one has it, or with `.toml` added.
pub(super) fn scenario_name(name: &str) -> Option<&'static str> {
    let names = || scenarios().map(|s| s.0);
    if let Some(whole) = names().find(|n| *n == name) {
        return Some(whole);
    }
    let mut last = names().filter(|n| n.rsplit('/').next() == Some(name));
    match (last.next(), last.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}
