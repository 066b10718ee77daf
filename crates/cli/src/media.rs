//! `weir media`: clips, and the quality of pictures.

mod clip;
mod quality;

#[cfg(all(test, feature = "schema"))]
pub(crate) use quality::Report as QualityReport;

use crate::Done;
use crate::args::MediaCommand;
use crate::session::Session;

pub(crate) fn media(session: &Session, command: &MediaCommand) -> Done {
    match command {
        MediaCommand::Clip(a) => clip::clip(session, a),
        MediaCommand::Quality(a) => quality::quality(session, a),
    }
}
