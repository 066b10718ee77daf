//! What calls between two processes have in common, of one stream or several.

use crate::args::call::{PartyArgs, Way};
use crate::output::Failure;
use weir_live::sdp::Direction;
use weir_live::signal::SignalError;

pub(super) fn failure(e: weir_live::call::CallError) -> Failure {
    match e {
        weir_live::call::CallError::Signal(SignalError::Stopped) => Failure::Interrupted,
        e => Failure::work(e),
    }
}

/// Which way media go, by default from the end that connects.
pub(super) fn direction(args: &PartyArgs, listens: bool) -> Direction {
    match args.direction.unwrap_or(if listens { Way::Receive } else { Way::Send }) {
        Way::Send => Direction::Send,
        Way::Receive => Direction::Receive,
        Way::Both => Direction::SendReceive,
    }
}
