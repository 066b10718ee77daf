//! `weir live dccp`.

mod list;
mod send;
mod serve;

pub(crate) use list::list_ccids;

use crate::Done;
use crate::args::live::dccp::DccpCommand;
use crate::output::Failure;
use crate::session::Session;
use serde::Serialize;
use weir_live::dccp::DccpError;
use weir_live::dccp::transfer::SendReport;

/// Output of `weir live dccp --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum Report<'a> {
    /// `weir live dccp serve`, at its end.
    Serve(serve::ServeReport),
    /// `weir live dccp send`.
    Send(&'a SendReport),
    /// `weir show ccids`.
    List(list::CcidList),
}

pub(crate) fn dccp(session: &Session, command: &DccpCommand) -> Done {
    match command {
        DccpCommand::Serve(a) => serve::serve(session, a),
        DccpCommand::Send(a) => send::send(session, a),
    }
}

/// An error with a remedy, if one is known.
fn failure(e: DccpError) -> Failure {
    use weir_dccp::connection::EndReason::ResetByPeer;
    use weir_dccp::packet::ResetCode;
    let way_out = match &e {
        DccpError::Ended(ResetByPeer(ResetCode::CONNECTION_REFUSED | ResetCode::NO_CONNECTION, _)) => {
            ": nothing accepts connections there on this DCCP port; start `weir live dccp serve`, or give --dccp-port"
        }
        DccpError::Ended(ResetByPeer(ResetCode::BAD_SERVICE_CODE, _)) => {
            ": the service there is another; give both ends the same --service"
        }
        DccpError::Ended(ResetByPeer(ResetCode::TOO_BUSY, _)) => ": it takes no more connections now; try again later",
        DccpError::Ended(weir_dccp::connection::EndReason::NoCommonCcid) => ", with --ccid at either end",
        _ => "",
    };
    Failure::Work(format!("{e}{way_out}"))
}

/// A rate for people.
fn mbit(bps: f64) -> String {
    format!("{:.3} Mbit/s", bps / 1e6)
}

/// A share for people.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.4} %", 100.0 * part as f64 / whole as f64) }
}

/// Names and values, one per line.
fn lines(rows: &[(&str, String)]) -> String {
    rows.iter().map(|(name, value)| format!("{name:<14} {value}\n")).collect()
}
