//! How a call ended: rows of its table, and the exit code.

use crate::Done;
use crate::output::Failure;
use weir_live::call::EndSummary;

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

/// A call that ended without either end's intention is a failure.
pub(super) fn outcome(end: &EndSummary) -> Done {
    match &end.ended {
        Some(reason) if reason.is_failure() => Err(Failure::Work(format!("the call ended: {reason}"))),
        _ => Ok(()),
    }
}
