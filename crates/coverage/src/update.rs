use crate::{Position, WallTime};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use weir_units::{DataRate, TimeDelta};

/// A rate as a number of bit/s in JSON.
pub(crate) mod bps {
    use super::{DataRate, Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(rate: &DataRate, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(rate.as_bps())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DataRate, D::Error> {
        u64::deserialize(from).map(DataRate::from_bps)
    }
}

/// A mobile operator: its network code as MCC-MNC (`244-91`), or a name. 1 to 16 letters, digits and hyphens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "server", schema(value_type = String, example = "244-91", max_length = 16))]
pub struct Operator(Box<str>);

impl Operator {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Operator {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let valid = (1..=16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if valid { Ok(Self(text.into())) } else { Err("an operator has 1 to 16 letters, digits and hyphens") }
    }
}

impl TryFrom<String> for Operator {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Operator> for String {
    fn from(operator: Operator) -> Self {
        operator.0.into()
    }
}

/// A radio technology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub enum Technology {
    /// Not known.
    #[default]
    Unknown,
    /// GSM with GPRS or EDGE.
    Gsm,
    /// UMTS with or without HSPA.
    Umts,
    /// LTE.
    Lte,
    /// 5G New Radio.
    Nr,
    /// Wireless LAN.
    Wifi,
}

impl Technology {
    /// All, in order of their numbers.
    pub const ALL: [Self; 6] = [Self::Unknown, Self::Gsm, Self::Umts, Self::Lte, Self::Nr, Self::Wifi];

    /// The number by which it is stored.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The technology of a number; [`Technology::Unknown`] for numbers of none.
    pub fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or_default()
    }
}

/// Measurement of one end at one place: thesis, section 7.2, "each endpoint monitors the throughput and its geolocation".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Update {
    /// Unique among the updates of a device: an update that is sent twice counts once.
    pub id: u64,
    /// When it was measured, on the reporter's clock.
    pub time_ms: WallTime,
    /// Where.
    pub position: Position,
    /// Radius in metres within which the position is by two chances in three, as positioning systems state it.
    #[serde(default)]
    pub accuracy_m: f32,
    /// The network used.
    pub operator: Operator,
    /// Its technology.
    #[serde(default)]
    pub technology: Technology,
    /// The serving cell, as the modem states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_id: Option<u64>,
    /// Bit/s received.
    #[serde(rename = "throughput_bps", with = "bps")]
    #[cfg_attr(feature = "server", schema(value_type = u64, example = 1_250_000))]
    pub throughput: DataRate,
    /// The sender had no more to send: the throughput is a lower bound of the capacity.
    #[serde(default)]
    pub app_limited: bool,
    /// Round-trip time, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f32>,
    /// Share of packets lost, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f32>,
}

/// Why an update is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub enum Refusal {
    /// Measured longer ago than the service keeps updates.
    #[error("too old")]
    TooOld,
    /// Measured in the future, by more than clocks may differ.
    #[error("in the future")]
    InFuture,
    /// The position is too uncertain to belong to a region, or its accuracy is no length.
    #[error("position too inaccurate")]
    Inaccurate,
    /// A throughput, round-trip time or loss that cannot be.
    #[error("implausible measurement")]
    Implausible,
}

/// Limits of accepted updates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Greatest age. Default: 90 days, the retention.
    pub max_age: TimeDelta,
    /// How far clocks may differ. Default: 5 minutes, as Kerberos allows (RFC 4120, section 1.6).
    pub max_skew: TimeDelta,
    /// Greatest radius of a position, in metres. Default: 150, somewhat more than the width of a default cell.
    pub max_accuracy_m: f32,
    /// Greatest throughput. Default: 20 Gbit/s, the peak rate of IMT-2020 (ITU-R M.2410, section 4.1).
    pub max_throughput: DataRate,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            max_age: TimeDelta::from_secs(90 * 86_400),
            max_skew: TimeDelta::from_secs(300),
            max_accuracy_m: 150.0,
            max_throughput: DataRate::from_mbps(20_000),
        }
    }
}

impl Bounds {
    /// Whether an update is acceptable at `now`, both on the service's clock.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self, update: &Update, now: WallTime) -> Result<(), Refusal> {
        let age = now.since(update.time_ms);
        if age > self.max_age {
            return Err(Refusal::TooOld);
        }
        if age < -self.max_skew {
            return Err(Refusal::InFuture);
        }
        if !(0.0..=self.max_accuracy_m).contains(&update.accuracy_m) {
            return Err(Refusal::Inaccurate);
        }
        let rtt = update.rtt_ms.is_none_or(|ms| (0.0..=600_000.0).contains(&ms));
        let loss = update.loss.is_none_or(|share| (0.0..=1.0).contains(&share));
        if update.throughput > self.max_throughput || !rtt || !loss {
            return Err(Refusal::Implausible);
        }
        Ok(())
    }

    /// The difference of a reporter's clock from ours, to be added to the times of its updates, or `None` if it is more
    /// than clocks may differ.
    pub fn correction(&self, sent: WallTime, now: WallTime) -> Option<TimeDelta> {
        let difference = now.since(sent);
        (difference.abs() <= self.max_skew).then_some(difference)
    }
}

impl Update {
    /// An update with what is always there; the rest is public.
    pub fn new(
        id: u64,
        time_ms: WallTime,
        position: Position,
        operator: Operator,
        technology: Technology,
        throughput: DataRate,
    ) -> Self {
        Self {
            id,
            time_ms,
            position,
            accuracy_m: 0.0,
            operator,
            technology,
            cell_id: None,
            throughput,
            app_limited: false,
            rtt_ms: None,
            loss: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallTime = WallTime::from_unix_millis(1_700_000_000_000);

    fn update() -> Update {
        let at = Position::new(60.0, 24.0).expect("valid");
        Update::new(7, NOW, at, "244-91".parse().expect("valid"), Technology::Umts, DataRate::from_kbps(900))
    }

    #[test]
    fn bounds_hold_on_both_sides() {
        let bounds = Bounds::default();
        let check = |change: &dyn Fn(&mut Update)| {
            let mut u = update();
            change(&mut u);
            bounds.check(&u, NOW)
        };
        let at = |s| NOW.plus(TimeDelta::from_secs(s));
        assert_eq!(check(&|_| ()), Ok(()));
        assert_eq!(check(&|u| u.time_ms = at(300)), Ok(()));
        assert_eq!(check(&|u| u.time_ms = at(301)), Err(Refusal::InFuture));
        assert_eq!(check(&|u| u.time_ms = at(-90 * 86_400)), Ok(()));
        assert_eq!(check(&|u| u.time_ms = at(-90 * 86_400 - 1)), Err(Refusal::TooOld));
        assert_eq!(check(&|u| u.time_ms = WallTime::from_unix_millis(u64::MAX)), Err(Refusal::InFuture));
        assert_eq!(check(&|u| u.accuracy_m = 151.0), Err(Refusal::Inaccurate));
        assert_eq!(check(&|u| u.accuracy_m = f32::NAN), Err(Refusal::Inaccurate));
        assert_eq!(check(&|u| u.loss = Some(1.01)), Err(Refusal::Implausible));
        assert_eq!(check(&|u| u.rtt_ms = Some(-1.0)), Err(Refusal::Implausible));
        assert_eq!(check(&|u| u.throughput = DataRate::from_bps(u64::MAX)), Err(Refusal::Implausible));
    }

    #[test]
    fn clocks_are_corrected_within_the_skew() {
        let bounds = Bounds::default();
        let sent = NOW.plus(TimeDelta::from_secs(-120));
        assert_eq!(bounds.correction(sent, NOW), Some(TimeDelta::from_secs(120)));
        assert_eq!(bounds.correction(NOW.plus(TimeDelta::from_secs(301)), NOW), None);
    }

    #[test]
    fn updates_are_written_as_they_are_read() {
        let text = serde_json::to_string(&update()).expect("JSON");
        assert!(text.contains(r#""throughput_bps":900000"#) && text.contains(r#""operator":"244-91""#), "{text}");
        assert_eq!(serde_json::from_str::<Update>(&text).expect("read"), update());
        for wrong in ["24 91", "", "12345678901234567", "a/b"] {
            assert!(serde_json::from_str::<Update>(&text.replace("244-91", wrong)).is_err(), "{wrong:?}");
        }
    }
}
