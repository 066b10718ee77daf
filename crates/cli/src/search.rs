//! `weir search`: many runs.

mod calls;
mod sweep;
#[cfg(feature = "tune")]
mod tune;

#[cfg(all(test, feature = "schema"))]
pub(crate) use calls::CallsJson;

use crate::Done;
use crate::args::SearchCommand;
use crate::output::remark;
use crate::session::Session;
use std::path::Path;

pub(crate) fn search(session: &Session, command: &SearchCommand) -> Done {
    match command {
        SearchCommand::Sweep(a) => sweep::sweep(session, a),
        SearchCommand::Calls(a) => calls::calls(session, a),
        #[cfg(feature = "tune")]
        SearchCommand::Tune(a) => tune::tune(session, a),
    }
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Says how many of those that a folder had before have failed: they are kept as they are, and the exit code is that of this time.
fn failed_before(n: usize, what: &str, folder: &Path) {
    if n > 0 {
        let (n, why) = (counted(n, what), folder.join("failures"));
        remark(&format!("of those kept, {n} failed: {} says why, --retry-failures makes them again", why.display()));
    }
}
