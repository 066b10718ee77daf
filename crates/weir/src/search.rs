//! `weir search`: many runs.

mod sweep;
mod tune;

use crate::Done;
use crate::args::SearchCommand;
use crate::session::Session;

pub(crate) fn search(session: &Session, command: &SearchCommand) -> Done {
    match command {
        SearchCommand::Sweep(a) => sweep::sweep(session, a),
        SearchCommand::Tune(a) => tune::tune(session, a),
    }
}
