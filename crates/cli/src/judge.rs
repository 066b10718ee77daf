//! `weir judge`: controllers beside criteria.

mod causes;
mod contradictions;
mod cues;
mod fits;
mod harm;
mod paper;
mod pathologies;
mod rfc;
mod rfc9743;
pub(crate) mod rows;
mod stability;
mod twins;

#[cfg(all(test, feature = "schema"))]
pub(crate) use causes::CausesJson;
#[cfg(all(test, feature = "schema"))]
pub(crate) use fits::FitsJson;
#[cfg(all(test, feature = "schema"))]
pub(crate) use paper::{AllJson as PapersJson, Json as PaperJson};
#[cfg(all(test, feature = "schema"))]
pub(crate) use rfc::Json as RfcJson;
#[cfg(all(test, feature = "schema"))]
pub(crate) use twins::Json as TwinsJson;
pub(crate) use twins::list as list_twins;

use crate::Done;
use crate::args::JudgeCommand;
use crate::session::Session;

pub(crate) fn judge(session: &Session, command: &JudgeCommand) -> Done {
    match command {
        JudgeCommand::Rfc(a) => rfc::judge_cases(session, a),
        JudgeCommand::Rows(a) => rows::judge_rows(session, a),
        JudgeCommand::Twins(a) => twins::judge_twins(session, a),
        JudgeCommand::Paper(a) => paper::judge_paper(session, a),
        JudgeCommand::Fits(a) => fits::judge_fits(session, a),
        JudgeCommand::Causes(a) => causes::judge_causes(session, a),
        JudgeCommand::Harm(a) => harm::judge_harm(session, a),
        JudgeCommand::Contradictions(a) => contradictions::find(session, a),
        JudgeCommand::Pathologies(a) => pathologies::judge_pathologies(session, a),
        JudgeCommand::Cues(a) => cues::judge_cues(session, a),
        JudgeCommand::Stability(a) => stability::map(session, a),
    }
}
