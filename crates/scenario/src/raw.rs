//! A scenario file as it is written. The doc comments become the descriptions in the JSON schema.

pub(super) mod any_flow;
pub(super) mod dccp;
pub(super) mod flow;
pub(super) mod forecast;
pub(super) mod multipath;
pub(super) mod source;
pub(super) mod stream;

pub(super) use self::any_flow::RawDirection;
pub(super) use self::dccp::*;
pub(super) use self::flow::*;
use super::link::RawLink;
use super::quantity::{Rate, Time};
use super::spanned::{At, Named};
use serde::Deserialize;

/// A Weir scenario: a network, the flows that cross it, and what is varied between runs. Quantities are strings with a
/// unit: rates "2 Mbps", times "100 ms", sizes "75 kB".
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "Scenario"))]
pub(super) struct RawScenario {
    /// Format of the file, 1: a number that a version of Weir does not know is refused, with what to do. Of the file alone, not
    /// of a variant; 1 if absent.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u32>"))]
    #[expect(dead_code, reason = "taken out before the rest is read")]
    pub(super) format: (),
    /// One line for headings.
    pub(super) title: String,
    /// The scenario's purpose, and its source.
    #[serde(default)]
    pub(super) doc: String,
    /// Simulated time of a run.
    pub(super) duration: At<Time>,
    /// Seed of the first run; 1 if absent.
    pub(super) seed: Option<u64>,
    /// Runs of each variant under each controller when a paper is reproduced and the command line does not state a
    /// number; the paper's if absent.
    pub(super) runs: Option<At<u32>>,
    /// Distance between two points of the time series; "100 ms" if absent.
    pub(super) sample_interval: Option<At<Time>>,
    /// Shape of the network; "point-to-point" if absent.
    #[serde(default)]
    pub(super) topology: RawTopology,
    /// Controllers that replace "$controller", one run each; "gcc", "nada" and "scream" if absent.
    pub(super) compare: Option<Vec<At<String>>>,
    /// The link whose queue is reported, and against whose capacity the flows that cross it are measured. If absent, a flow is
    /// measured against the link of the smallest mean capacity on its path, or on each of its paths, and the queue is that of
    /// the first flow's.
    pub(super) bottleneck: Option<At<String>>,
    /// Time intervals whose results are also reported separately.
    #[serde(default)]
    pub(super) windows: Vec<At<RawWindow>>,
    /// Whether to measure how bursty each flow is: the packets that it sends, and what its source makes; not if absent.
    #[serde(default)]
    pub(super) burstiness: bool,
    /// Links by name. In a parking lot they form a row in the order of the file.
    pub(super) links: Named<RawLink>,
    /// A dumbbell's access links, one pair for each flow, unless the flow states otherwise.
    pub(super) access: Option<RawAccess>,
    /// Settings for each controller, used by flows that do not set them themselves.
    #[serde(default)]
    pub(super) controllers: Named<RawController>,
    /// Media flows by name.
    #[serde(default)]
    pub(super) rtp: Named<RawRtp>,
    /// TCP flows by name.
    #[serde(default)]
    pub(super) tcp: Named<RawTcp>,
    /// UDP flows without congestion control, by name.
    #[serde(default)]
    pub(super) udp: Named<RawUdp>,
    /// DCCP flows without RTP, by name. RTP runs over DCCP under controllers such as "ccid2" and "ccid3".
    #[serde(default)]
    pub(super) dccp: Named<RawDccp>,
    /// Named versions of the scenario. Each overrides fields of the file.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<RawVariant>"))]
    #[expect(dead_code, reason = "taken out before the rest is read")]
    pub(super) variants: (),
    /// Fields with several values; every combination is a variant.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<RawMatrix>"))]
    #[expect(dead_code, reason = "taken out before the rest is read")]
    pub(super) matrix: (),
}

/// Shape of the network.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "Topology"))]
pub(super) enum RawTopology {
    /// One link in each direction.
    #[default]
    PointToPoint,
    /// One shared link in each direction, and access links for every flow.
    Dumbbell,
    /// Links in a row; a flow crosses those in its `path`.
    ParkingLot,
    /// Links in any order; a flow crosses those in its `path`, in the order written there.
    Network,
}

/// One version of the scenario: a name, and any field of the file with another value. `links.bottleneck.loss = 0.05`
/// changes one field and leaves the others.
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Variant"))]
#[expect(dead_code, reason = "stands for the schema; the fields are laid over the file before it is read")]
pub(super) struct RawVariant {
    /// Name in results.
    name: String,
    /// Other fields of the scenario.
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

/// One field with several values.
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "Matrix"))]
#[expect(dead_code, reason = "stands for the schema; the values are laid over the file before it is read")]
pub(super) struct RawMatrix {
    /// The field's path, such as "links.bottleneck.loss".
    set: String,
    /// Its values.
    values: Vec<serde_json::Value>,
    /// Names of the values in results; the values themselves if absent.
    names: Option<Vec<String>>,
}

/// A span of time.
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { name = \"late\", from = \"50 s\", to = \"60 s\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Window"))]
pub(super) struct RawWindow {
    /// Name in results.
    pub(super) name: String,
    /// Beginning.
    pub(super) from: Time,
    /// End, exclusive.
    pub(super) to: Time,
}

/// Access links of a dumbbell's flows.
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { rate = \"100 Mbps\", delay = \"1 ms\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Access"))]
pub(super) struct RawAccess {
    /// Rate; not limited if absent.
    pub(super) rate: Option<At<Rate>>,
    /// Total one-way delay of the links at both ends.
    pub(super) delay: Option<Time>,
}
