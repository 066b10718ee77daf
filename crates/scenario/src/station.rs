//! Base stations: their links, and their reports.

use super::checks::{positive, probability};
use super::error::InputError;
use super::model::{Assist, Flow, Link};
use super::quantity::Time;
use super::spanned::At;
use super::tree::Text;
use serde::Deserialize;
use weir_units::TimeDelta;

/// A base station that reports its link's capacity to RTP flows, by RTCP TMMBR messages of its own.
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { notifies = \"sender\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Assist"))]
pub(super) struct RawAssist {
    /// The end to which it reports.
    pub(super) notifies: RawNotified,
    /// Interval of notices while the capacity changes little; "1 s" if absent.
    pub(super) interval: Option<At<Time>>,
    /// Relative change of the rate since the last report that is reported at once; 0.05 if absent.
    pub(super) threshold: Option<At<f64>>,
    /// Delay of a notice to the end; "20 ms" if absent.
    pub(super) delay: Option<Time>,
    /// Time in which the queue in front of the link should drain: the reported rate is reduced accordingly. Absent: the
    /// queue is ignored.
    pub(super) drain: Option<At<Time>>,
}

/// The end of a flow to which a base station reports.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "Notified"))]
pub(super) enum RawNotified {
    /// The media sender: the link is its uplink.
    Sender,
    /// The media receiver: the link is its downlink.
    Receiver,
    /// Both.
    Both,
}

/// A base station as written, with defaults filled in.
pub(super) fn resolve(text: &Text, raw: &RawAssist) -> Result<Assist, InputError> {
    let time = |t: &Option<At<Time>>| t.as_ref().map(|t| positive(text, t)).transpose();
    Ok(Assist {
        to_sender: raw.notifies != RawNotified::Receiver,
        to_receiver: raw.notifies != RawNotified::Sender,
        interval: time(&raw.interval)?.unwrap_or(TimeDelta::from_secs(1)),
        threshold: raw.threshold.as_ref().map_or(Ok(0.05), |p| probability(text, p))?,
        delay: raw.delay.map_or(TimeDelta::from_millis(20), |t| t.0),
        drain: time(&raw.drain)?,
    })
}

/// An end accepts reports of one station.
pub(super) fn check_stations(text: &Text, links: &[Link], flows: &[Flow]) -> Result<(), InputError> {
    for f in flows.iter().filter(|f| f.rtp().is_some()) {
        let reporting = |notifies: fn(&Assist) -> bool| {
            f.forward.iter().filter(|l| links[**l].assist.is_some_and(|a| notifies(&a))).count()
        };
        for (end, count) in [("sender", reporting(|a| a.to_sender)), ("receiver", reporting(|a| a.to_receiver))] {
            if count > 1 {
                let message = format!("{count} links on the path of `{}` report to its {end}; at most one may", f.name);
                return Err(InputError::whole(&text.file, message).field("links"));
            }
        }
    }
    Ok(())
}
