//! `weir search`: many runs.

mod calls;
mod sweep;
#[cfg(feature = "tune")]
mod tune;

#[cfg(all(test, feature = "schema"))]
pub(crate) use calls::CallsJson;

use crate::Done;
use crate::args::SearchCommand;
use crate::session::Session;

pub(crate) fn search(session: &Session, command: &SearchCommand) -> Done {
    match command {
        SearchCommand::Sweep(a) => sweep::sweep(session, a),
        SearchCommand::Calls(a) => calls::calls(session, a),
        #[cfg(feature = "tune")]
        SearchCommand::Tune(a) => tune::tune(session, a),
    }
}
