//! Flows as a file writes them, one field a key.

use crate::capacity::RawCapacity;
use crate::choice::{RawDistribution, RawNumber};
use crate::clock::RawClocks;
use crate::pause::RawPause;
use crate::quantity::{Rate, Size, Time};
use crate::raw::any_flow::{RawDirection, flow};
use crate::raw::dccp::RawDccpSettings;
use crate::raw::forecast::RawForecast;
use crate::raw::multipath::RawMultipath;
use crate::raw::source::RawSource;
use crate::raw::stream::{RawPreference, RawStream};
use crate::spanned::{At, Named};
use serde::Deserialize;

/// Changes to a controller's per-packet feedback; without effect on controllers that use none.
#[derive(Deserialize, Default, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { interval = \"100 ms\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Feedback"))]
pub(crate) struct RawFeedback {
    /// Fixed interval; instead of the two below.
    pub(crate) interval: Option<At<Time>>,
    /// Minimum interval.
    pub(crate) min_interval: Option<At<Time>>,
    /// Maximum interval.
    pub(crate) max_interval: Option<At<Time>>,
    /// Share of the received media rate that feedback may use.
    pub(crate) bandwidth_share: Option<At<f64>>,
}

/// Settings of all flows of a controller unless they state otherwise.
#[derive(Deserialize, Default, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { ceiling = \"3 Mbps\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Controller"))]
pub(crate) struct RawController {
    /// Minimum media rate; "150 kbps" if absent.
    pub(crate) floor: Option<At<Rate>>,
    /// Greatest media rate; "1.5 Mbps" if absent.
    pub(crate) ceiling: Option<At<Rate>>,
    /// Media rate before the first feedback; the floor if absent.
    pub(crate) start_rate: Option<At<Rate>>,
    /// The controller's own parameters by name: numbers in the parameter's unit, or strings with a unit.
    #[serde(default)]
    pub(crate) params: Named<RawNumber>,
    /// Changes to its per-packet feedback.
    #[serde(default)]
    pub(crate) feedback: RawFeedback,
    /// Settings of its DCCP connections, for controllers that use one; a flow's own replace them.
    pub(crate) dccp: Option<At<RawDccpSettings>>,
}

flow! {
    /// A media flow.
    RawRtp as "RtpFlow" {
        /// A controller's name, or "$controller" for each of those in `compare`.
        controller: At<String>,
        /// Minimum media rate; the controller's setting if absent. With "$controller" the settings of the controller at
        /// hand come first, here and in the next two.
        floor: Option<At<Rate>>,
        /// Greatest media rate; the controller's setting if absent.
        ceiling: Option<At<Rate>>,
        /// Media rate before the first feedback; the controller's setting if absent.
        start_rate: Option<At<Rate>>,
        /// Parameters of this flow's controller, laid over the controller's settings.
        #[serde(default)]
        params: Named<RawNumber>,
        /// Changes to per-packet feedback, laid over the controller's settings.
        #[serde(default)]
        feedback: RawFeedback,
        /// The program whose ends these are, in a call of which the fields that are absent are: "chromium", with `receiver`, `sender`, requests
        /// (`error_resilience`), `repair` as libwebrtc plans it, its bounds, headers and payload, and speech beside a camera of 2.5 Mbps;
        /// without effect on the controller, which is that named (`gcc-chrome` is Chrome's). None if absent.
        ends: Option<At<String>>,
        /// The program whose receiving end the flow's receiver behaves as: "weir", or "chromium" for transport-wide feedback, requests for
        /// packets and for key frames when Chromium sends them; "weir" if absent. Feedback's own settings are laid over it.
        receiver: Option<At<String>>,
        /// The program whose sending end the flow's sender behaves as: "weir", or "chromium" for packets in bursts of 40 ms, a queue that leaves
        /// within 2 s, retransmissions up to the target, and models of frames that are sized as by VP8, at a target corrected by what they made; "weir" if absent.
        sender: Option<At<String>>,
        /// Spans in which the source is paused.
        #[serde(default)]
        pauses: Vec<At<RawPause>>,
        /// The media source; "perfect-packets" if absent.
        source: Option<At<RawSource>>,
        /// The call's streams, each an RTP stream under the one controller, whose target they share; instead of
        /// `source`. One stream with `source` if absent.
        #[serde(default)]
        streams: Vec<At<RawStream>>,
        /// The last that the call gives up; its source is an encoder, and it then has speech (Opus) beside the pictures: two streams, which
        /// share the controller's target. Pictures alone, at the size and number of the source, if absent.
        prefer: Option<At<RawPreference>>,
        /// Paths of a call over several at once (multipath RTP), instead of `path`; one path if absent. Needs
        /// topology = "network".
        multipath: Option<At<RawMultipath>>,
        /// Maximum payload of an RTP packet; "1000 B" if absent.
        payload: Option<At<Size>>,
        /// Delay after sending at which a frame is played; later packets are discarded.
        playout_deadline: Option<At<Time>>,
        /// Whether frames and sound are played as early as their jitter allows, at the latest at `playout_deadline`; false if absent,
        /// for playout at the deadline. On one path only.
        adaptive_playout: Option<At<bool>>,
        /// Age at which frames that wait to be sent are discarded, the newest excepted, and a key frame is coded; no bound
        /// beside the controller's if absent.
        max_queue_age: Option<At<Time>>,
        /// UDP and IP headers around each packet; "28 B" (IPv4) if absent, none in ns-2.
        header_overhead: Option<At<Size>>,
        /// Header bytes that results count in each packet beside RTP's, although no link carries them, as in traces of
        /// ns-2; "0 B" if absent.
        reported_headers: Option<At<Size>>,
        /// The RTP session's bandwidth, of which RTCP uses 5 % (RFC 3550, section 6.2); the maximum media rate if
        /// absent.
        session_bandwidth: Option<At<Rate>>,
        /// Minimum average interval of regular RTCP reports (RFC 4585, section 3.4), if the controller does not request
        /// its own; "1 s" if absent.
        rtcp_interval: Option<At<Time>>,
        /// Rules by which the flow stops for good when its path stays congested or silent; none if absent.
        circuit_breaker: Option<RawCircuitBreaker>,
        /// Error resilience: mechanisms such as ["nack", "uep"], ["auto"] to select them by loss and delay (Singh's
        /// dissertation, figure 5.4); none if absent. Its maximum delay is `playout_deadline`.
        error_resilience: Option<At<Vec<RawResilience>>>,
        /// Repair packets of a fixed code, taken out of the media rate; the controller's if absent.
        repair: Option<At<RawRepair>>,
        /// Whether receiver reports count retransmitted packets as received, as WebRTC's did while retransmissions were
        /// sent in the media stream itself (libwebrtc, as of 2013); false if absent. Needs "nack" or "auto" in
        /// `error_resilience`.
        count_retransmissions: Option<At<bool>>,
        /// Whether packets are sent as ECN-capable; false if absent.
        #[serde(default)]
        ecn: bool,
        /// Settings of the DCCP connection, for controllers that use one; the controller's if absent.
        dccp: Option<At<RawDccpSettings>>,
        /// Clocks of the ends' own, `clock.sender` and `clock.receiver`; both ends follow the simulation's if absent. Simulated runs
        /// over UDP only.
        clock: Option<At<RawClocks>>,
        /// A forecast of capacity that both ends get; none if absent.
        forecast: Option<At<RawForecast>>,
        /// Packets of a frame without which it counts as undecodable, with a model as source: "first", which contains the
        /// header, or "first-and-last", where the application passes a frame on at its marker bit; "first" if absent.
        decodes_with: Option<At<RawDecodesWith>>,
    }
}

/// A circuit breaker.
#[derive(Deserialize, Clone, Copy, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "CircuitBreaker"))]
pub(crate) enum RawCircuitBreaker {
    /// RFC 8083 with its recommended values.
    Rfc8083,
    /// The previous rules with TCP's simplified throughput equation (Singh's dissertation, section 3.7.1).
    #[serde(rename = "thesis-2013")]
    Thesis2013,
    /// The same with TCP's full throughput equation.
    #[serde(rename = "thesis-2013-full")]
    Thesis2013Full,
}

/// Packets that a frame needs to be decodable.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "DecodesWith"))]
pub(crate) enum RawDecodesWith {
    /// The first one.
    First,
    /// The first one and that with the marker bit.
    FirstAndLast,
}

/// A code of repair packets.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "RepairCode"))]
pub(crate) enum RawRepairCode {
    /// XOR of `sources` packets (RFC 8627); with `columns`, of packets that are so far apart.
    Parity,
    /// Blocks of `sources` media packets and `repairs` repair packets (RFC 6865).
    ReedSolomon,
    /// A window that slides: `repairs` repair packets for each `sources` media packets, over the last `window` of them (RFC
    /// 8681). Without `sources`, as many repair packets as the controller plans.
    Rlc,
    /// Repair packets of each frame and of what is sent again of it, by the round trips left before `deadline` (Hairpin, NSDI 2024).
    Hairpin,
    /// A streaming code over frames, by which a frame is recovered at the latest `delay` frames later (Tambur, NSDI 2023).
    Tambur,
    /// Requests, a code over frames, copies of what is sent again and the time of playout by one plan, from the losses of the last seconds.
    Joint,
    /// As many for groups of frames as libwebrtc sends beside requests where ULPFEC is negotiated: by the greatest loss of the last ten
    /// seconds, the round trip and the rate.
    Libwebrtc,
}

/// Repair packets.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { code = \"rlc\", window = 40, sources = 5, repairs = 1 }")]
#[cfg_attr(feature = "schema", schemars(rename = "Repair"))]
pub(crate) struct RawRepair {
    /// The code.
    pub(crate) code: RawRepairCode,
    /// Media packets for which there are `repairs` repair packets.
    pub(crate) sources: Option<u8>,
    /// Repair packets for `sources` media packets; 1 if absent. Of parity always 1.
    pub(crate) repairs: Option<u8>,
    /// Media packets of a window that slides.
    pub(crate) window: Option<u8>,
    /// Distance of the packets of a group of parity; 1 if absent.
    pub(crate) columns: Option<u8>,
    /// Hairpin's time from a frame's capture to its deadline; "100 ms" if absent.
    pub(crate) deadline: Option<At<Time>>,
    /// Hairpin's cost of as many repair packets as a frame has packets, as a share of that of a missed deadline; 1e-7 if absent.
    pub(crate) cost: Option<At<f64>>,
    /// Tambur's delay in frames, 1 to 16; 3 if absent.
    pub(crate) delay: Option<At<u8>>,
    /// Earliest playout of a joint plan, whose latest is the flow's `playout_deadline`; that too if absent.
    pub(crate) earliest: Option<At<Time>>,
}

impl RawRepair {
    /// A code without numbers of its own.
    pub(crate) fn of(code: RawRepairCode) -> Self {
        Self {
            code,
            sources: None,
            repairs: None,
            window: None,
            columns: None,
            deadline: None,
            cost: None,
            delay: None,
            earliest: None,
        }
    }
}

/// A mechanism of error resilience.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "Resilience"))]
pub(crate) enum RawResilience {
    /// All mechanisms that fit the path; must be the only entry.
    Auto,
    /// Lost packets are requested and retransmitted (RFC 4585, RFC 4588).
    Nack,
    /// Slices become smaller with loss, if the encoder has slices.
    Ssa,
    /// The encoder refers back to received pictures, if it can.
    Rps,
    /// Repair packets for key frames and frames that others refer to.
    Uep,
}

flow! {
    /// A TCP flow: bulk, a live source's data (`rate`), consecutive objects (`size` and `idle`), or short flows (`size`
    /// and `arrivals`), which count as one flow in results.
    RawTcp as "TcpFlow" {
        /// Congestion control.
        algorithm: RawTcpAlgorithm,
        /// Size of an object: a size, or a distribution of sizes.
        size: Option<At<RawDistribution<Size>>>,
        /// Idle time after an object: a time, or a distribution of times.
        idle: Option<At<RawDistribution<Time>>>,
        /// Mean number of short flows started per second: a Poisson process, each flow one object on a new connection.
        arrivals: Option<At<f64>>,
        /// Rate of a live source's data, without headers; data that the network has not accepted waits at the sender.
        rate: Option<At<Rate>>,
        /// Whether an on-off flow starts with an object; otherwise with an idle time. True if absent.
        starts_on: Option<At<bool>>,
        /// Whether an on-off flow's objects share one connection and its window, as in ns-2; otherwise each opens its
        /// own. False if absent.
        persistent: Option<At<bool>>,
        /// Payload of a full segment; "1448 B" if absent.
        segment: Option<At<Size>>,
        /// Whether acknowledgements are delayed; true if absent.
        delayed_acks: Option<bool>,
        /// Initial window of a new connection in segments; 10 (RFC 6928) if absent, 2 in ns-2.
        initial_window: Option<At<u32>>,
        /// Maximum segments in flight; 16 MiB if absent, 20 in ns-2.
        max_window: Option<At<u32>>,
        /// Selective acknowledgements (RFC 6675); true if absent. False selects the recovery of RFC 6582.
        sack: Option<bool>,
        /// Timestamps, which take 12 bytes of each segment; true if absent.
        timestamps: Option<bool>,
        /// ECN (RFC 3168): data is sent as ECT(0), and marks reduce the window; false if absent. `dctcp` and `prague`
        /// always use the ECN that they need, `bbr` and `bbr1` none.
        ecn: Option<At<bool>>,
        /// HyStart++ (RFC 9406): slow start ends when the round-trip time rises; false if absent.
        hystart: Option<bool>,
        /// Proportional rate reduction (RFC 6937), as in Linux; false if absent.
        prr: Option<At<bool>>,
        /// How losses are detected; "dupack" if absent. With "rack", as in current kernels, the receiver also reports
        /// duplicates (D-SACK, RFC 2883).
        loss_detection: Option<At<RawTcpLossDetection>>,
        /// Whether connections open with a handshake; true if absent, never in ns-2.
        handshake: Option<bool>,
        /// Minimum retransmission timeout; "1 s" (RFC 6298) if absent, "200 ms" in ns-2 and Linux.
        min_rto: Option<At<Time>>,
    }
}

/// TCP congestion control.
#[derive(Deserialize, Clone, Copy, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", schemars(rename = "TcpAlgorithm"))]
pub(crate) enum RawTcpAlgorithm {
    /// RFC 5681 with RFC 6582 and RFC 6675.
    NewReno,
    /// RFC 9438.
    Cubic,
    /// Brakmo and Peterson, 1995.
    Vegas,
    /// RFC 3649.
    HighSpeed,
    /// Kelly, 2003.
    Scalable,
    /// RFC 8257.
    Dctcp,
    /// TCP Prague, for L4S (RFC 9331).
    Prague,
    /// BBR version 1, as in Linux.
    Bbr1,
    /// BBR version 3 (draft-ietf-ccwg-bbr).
    Bbr,
}

/// How a TCP sender detects losses.
#[derive(Deserialize, Clone, Copy, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", schemars(rename = "TcpLossDetection"))]
pub(crate) enum RawTcpLossDetection {
    /// By counts: RFC 6675, without selective acknowledgements RFC 6582.
    DupAck,
    /// By time, with probes for losses at the tail (RACK-TLP, RFC 8985).
    Rack,
}

flow! {
    /// A UDP flow at a set rate.
    RawUdp as "UdpFlow" {
        /// Rate on the network while on, headers included: a rate or steps.
        rate: At<RawCapacity>,
        /// Payload of a packet; "1000 B" if absent.
        payload: Option<At<Size>>,
        /// Length of an on time: a time or a distribution; always on if absent.
        on: Option<At<RawDistribution<Time>>>,
        /// Length of an off time.
        off: Option<At<RawDistribution<Time>>>,
        /// Hurst parameter of many such flows together, between 0.5 and 1: `on` and `off` are means then, of Pareto distributions
        /// with the shape 3 - 2H (Willinger and others, 1997). Not self-similar if absent.
        hurst: Option<At<f64>>,
    }
}
