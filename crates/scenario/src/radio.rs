//! Radio links: Wi-Fi media and cells.

use super::choice::{Choice, choice};
use super::error::InputError;
use super::quantity::{Size, Time};
use super::spanned::At;
use super::steps::{self, RawSteps, Start};
use super::tree::Text;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
#[cfg(feature = "schema")]
use std::borrow::Cow;
use weir_path::{Cellular, LinkConfig, Others, Radio, Steps, Wifi};

/// The stations of a radio link.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "Stations"))]
pub(super) enum RawStations {
    /// All flows are of one station.
    #[default]
    One,
    /// Each flow has a station with a queue of its own. Forward flows come from their stations, reverse ones go there. On
    /// Wi-Fi the stations and the access point contend for one medium, which both directions share: the link has no
    /// `reverse`, and feedback and acknowledgements use it too.
    EachFlow,
}

/// A Wi-Fi medium (IEEE 802.11-2020): defaults of 802.11n at 5 GHz with one stream and of EDCA's best effort. `rate` is that of
/// data on the air.
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { contenders = 3 }")]
#[cfg_attr(feature = "schema", schemars(rename = "Wifi"))]
pub(super) struct RawWifi {
    /// "one" if absent.
    #[serde(default)]
    stations: RawStations,
    /// Number of other stations with full queues; 0 if absent. Not with `busy`.
    contenders: Option<At<u32>>,
    /// Share of the air time that others use at random times, if the contention lets them; 0 if absent.
    busy: Option<At<f64>>,
    /// Air time of a transmission by others; that of a full aggregate if absent.
    others_air_time: Option<Time>,
    /// Share of packets not received, apart from collisions; 0 if absent.
    error_rate: Option<f64>,
    /// Most retries of a packet; 7 if absent.
    retry_limit: Option<u32>,
    /// Most packets of an aggregate (A-MPDU), 1 to 64; 64 if absent.
    max_packets: Option<u32>,
    /// Greatest size of an aggregate; "65535 B" if absent.
    max_size: Option<Size>,
    /// Greatest air time of a transmission; "5.484 ms" if absent.
    max_air_time: Option<Time>,
    /// Length of a backoff slot; "9 us" if absent.
    slot: Option<Time>,
    /// Short interframe space; "16 us" if absent.
    sifs: Option<Time>,
    /// Slots beside SIFS before the backoff; 3 if absent.
    aifsn: Option<u32>,
    /// Least contention window in slots; 15 if absent.
    cw_min: Option<u32>,
    /// Greatest contention window in slots; 1023 if absent.
    cw_max: Option<u32>,
    /// Time before the data of a transmission; "36 us" if absent.
    preamble: Option<Time>,
    /// Time of an acknowledgement; "32 us" if absent.
    ack: Option<Time>,
}

/// A cell of LTE, or of NR by its times. `rate` is that of the cell in this direction.
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { users = 2 }")]
#[cfg_attr(feature = "schema", schemars(rename = "Cellular"))]
pub(super) struct RawCellular {
    /// "one" if absent. With "each-flow", each flow is a user with a bearer of its own.
    #[serde(default)]
    stations: RawStations,
    /// Other users with full queues, who share the slots evenly with the flows': a number, or steps; 0 if absent.
    users: Option<At<RawUsers>>,
    /// Length of a slot; "1 ms" (LTE) if absent, "500 us" or "250 us" in NR.
    slot: Option<Time>,
    /// Share of transport blocks not decoded at first; 0.1 if absent.
    error_rate: Option<f64>,
    /// Share of retransmissions not decoded; 0.01 if absent.
    retransmission_error_rate: Option<f64>,
    /// Time from a transmission to its retransmission; "8 ms" if absent.
    harq_delay: Option<Time>,
    /// Most retransmissions by HARQ; 3 if absent.
    harq_retransmissions: Option<u32>,
    /// Whether RLC retransmits what HARQ has given up; true if absent. If not, it is lost.
    acknowledged: Option<bool>,
    /// Time after which the receiver gives up a missing block; "35 ms" if absent.
    reordering: Option<Time>,
    /// Uplink: interval of the opportunities to request a grant. A downlink, which needs none, if absent.
    request_interval: Option<Time>,
    /// Uplink: time from a request to the granted slot; "8 ms" if absent.
    grant_delay: Option<Time>,
}

/// A number of users.
#[derive(Clone, Debug)]
pub(super) enum RawUsers {
    Constant(f64),
    Steps(RawUsersSteps),
}

/// A number of users that changes.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { steps = [{ at = \"0 s\", users = 2 }] }")]
#[cfg_attr(feature = "schema", schemars(rename = "UsersSteps"))]
pub(super) struct RawUsersSteps {
    /// Numbers from given times on; the first at "0 s".
    steps: RawSteps<RawUsersStep>,
    /// Time at which the steps repeat; never if absent.
    repeat: Option<At<Time>>,
}

/// A number of users from an instant on.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { at = \"10 s\", users = 2 }")]
#[cfg_attr(feature = "schema", schemars(rename = "UsersStep"))]
pub(super) struct RawUsersStep {
    /// The instant.
    at: Time,
    /// The number.
    users: u32,
}

impl Start for RawUsersStep {
    fn at(&self) -> Time {
        self.at
    }
}

impl Choice for RawUsers {
    type Fields = RawUsersSteps;
    const EXPECTED: &'static str = "a number of users, or a table with `steps`";
    fn from_number(n: f64) -> Result<Self, String> {
        Ok(Self::Constant(n))
    }
    fn from_table(table: Self::Fields) -> Self {
        Self::Steps(table)
    }
}
choice!(RawUsers);

#[cfg(feature = "schema")]
impl JsonSchema for RawUsers {
    fn schema_name() -> Cow<'static, str> {
        "Users".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of users, or a table with `steps`.",
            "anyOf": [{ "type": "integer", "minimum": 0 }, g.subschema_for::<RawUsersSteps>()]
        })
    }
}

/// Whether both directions of a hop are one medium.
pub(super) fn is_shared(config: &LinkConfig) -> bool {
    matches!(&config.radio, Some(Radio::Wifi(w)) if w.separate)
}

/// Replaces a default by what is stated.
fn put<T>(into: &mut T, stated: Option<T>) {
    if let Some(value) = stated {
        *into = value;
    }
}

/// A Wi-Fi medium with defaults filled in. Values are checked with the link. Errors: two kinds of other stations.
pub(super) fn wifi(text: &Text, raw: &At<RawWifi>) -> Result<Wifi, InputError> {
    let raw = &raw.value;
    let mut wifi = Wifi { separate: raw.stations == RawStations::EachFlow, ..Wifi::default() };
    wifi.others = match (&raw.contenders, &raw.busy) {
        (Some(_), Some(busy)) => {
            return Err(text
                .error(busy.span.clone(), "the other stations have full queues or a load, not both")
                .help("leave `contenders` or `busy` out"));
        }
        (Some(n), None) => Others::Saturated(n.value),
        (None, Some(share)) => Others::Load(share.value),
        (None, None) => wifi.others,
    };
    wifi.others_air_time = raw.others_air_time.map(|t| t.0);
    put(&mut wifi.error_rate, raw.error_rate);
    put(&mut wifi.retry_limit, raw.retry_limit);
    put(&mut wifi.max_packets, raw.max_packets);
    put(&mut wifi.max_size, raw.max_size.map(|s| s.0));
    put(&mut wifi.max_air_time, raw.max_air_time.map(|t| t.0));
    put(&mut wifi.slot, raw.slot.map(|t| t.0));
    put(&mut wifi.sifs, raw.sifs.map(|t| t.0));
    put(&mut wifi.aifsn, raw.aifsn);
    put(&mut wifi.cw_min, raw.cw_min);
    put(&mut wifi.cw_max, raw.cw_max);
    put(&mut wifi.preamble, raw.preamble.map(|t| t.0));
    put(&mut wifi.ack, raw.ack.map(|t| t.0));
    Ok(wifi)
}

/// A cell with defaults filled in. Values are checked with the link. Errors: unsound steps, or no whole number of users.
pub(super) fn cellular(text: &Text, raw: &At<RawCellular>) -> Result<Cellular, InputError> {
    let raw = &raw.value;
    let mut cell = Cellular { separate: raw.stations == RawStations::EachFlow, ..Cellular::default() };
    if let Some(users) = &raw.users {
        cell.users = match &users.value {
            RawUsers::Constant(n) if *n >= 0.0 && n.fract() == 0.0 && *n <= 1e6 => Steps::constant(*n as u32),
            RawUsers::Constant(n) => {
                return Err(text.error(users.span.clone(), format!("expected a whole number of users, found {n}")));
            }
            RawUsers::Steps(table) => steps::resolve(text, &table.steps, table.repeat.as_ref(), |s| Ok(s.users))?,
        };
    }
    put(&mut cell.slot, raw.slot.map(|t| t.0));
    put(&mut cell.error_rate, raw.error_rate);
    put(&mut cell.retransmission_error_rate, raw.retransmission_error_rate);
    put(&mut cell.harq_delay, raw.harq_delay.map(|t| t.0));
    put(&mut cell.harq_retransmissions, raw.harq_retransmissions);
    put(&mut cell.acknowledged, raw.acknowledged);
    put(&mut cell.reordering, raw.reordering.map(|t| t.0));
    cell.request_interval = raw.request_interval.map(|t| t.0);
    put(&mut cell.grant_delay, raw.grant_delay.map(|t| t.0));
    Ok(cell)
}
