//! How a call ended: rows of its table, and the exit code.

use crate::Done;
use crate::output::Failure;
use weir_live::call::{CallPathSummary, EndSummary};
use weir_live::ice::RelayState;

/// Rows about how an end's call ended, and about refused packets.
pub(super) fn rows(end: &EndSummary) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(reason) = &end.ended {
        rows.push(("ended", reason.to_string()));
    }
    let mut refused = Vec::new();
    if let Some(srtp) = end.srtp {
        refused.push(format!("{} refused by SRTP", srtp.refused));
    }
    refused.extend([
        format!("{} malformed", end.malformed),
        format!("{} of unknown sources", end.unknown_source),
        format!("{} from elsewhere", end.counters.strangers),
    ]);
    rows.push(("not taken", refused.join(", ")));
    rows
}

/// A row for each path of a call that has several.
pub(super) fn paths(end: &EndSummary) -> Vec<(&'static str, String)> {
    let mbps = |bps: f64| format!("{:.3} Mbit/s", bps / 1e6);
    let row = |p: &CallPathSummary| {
        let rtt = p.rtt_ms.map_or(String::new(), |ms| format!(", round trip {ms:.1} ms"));
        let (sent, received) = (mbps(p.sent_rate_bps), mbps(p.received_rate_bps));
        let pairs = end.ice.iter().flat_map(|ice| &ice.pairs);
        let is_relayed = pairs.filter(|i| i.is_relayed).any(|i| (&i.local, &i.remote) == (&p.local, &p.remote));
        let by = if is_relayed { ", by this end's relay" } else { "" };
        ("path", format!("{} - {}: sent {sent}, received {received}{rtt}{by}", p.local, p.remote))
    };
    let failed = end.ice.iter().flat_map(|ice| &ice.relays).filter(|r| r.state == RelayState::Failed);
    let failed =
        failed.map(|r| ("relay", format!("{} lent path {} no address, or not for long enough", r.server, r.path)));
    end.paths.iter().map(row).chain(failed).collect()
}

/// A call that ended without either end's intention is a failure.
pub(super) fn outcome(end: &EndSummary) -> Done {
    match &end.ended {
        Some(reason) if reason.is_failure() => Err(Failure::Work(format!("the call ended: {reason}"))),
        _ => Ok(()),
    }
}
