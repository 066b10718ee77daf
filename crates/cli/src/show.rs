//! `weir show`: what there is.

mod fields;
mod lists;
mod scenario;
mod schema;

use crate::args::ShowCommand;
use crate::output::print;
use crate::session::Session;
use crate::{Done, judge};
use lists::{Kind, Shown};

pub(crate) fn show(session: &Session, command: &ShowCommand) -> Done {
    match command {
        ShowCommand::Controllers(a) => {
            let shown = Shown { params: a.list.params, papers: a.all };
            lists::show(session, Kind::Controllers, shown, a.list.json)
        }
        ShowCommand::Scenarios(a) => lists::show(session, Kind::Scenarios, Shown::default(), a.json),
        ShowCommand::Papers(a) => lists::show(session, Kind::Papers, Shown::default(), a.json),
        ShowCommand::Codecs(a) => lists::show(session, Kind::Codecs, Shown::default(), a.json),
        ShowCommand::Disciplines(a) => {
            lists::show(session, Kind::Disciplines, Shown { params: a.params, papers: false }, a.json)
        }
        ShowCommand::Schedulers(a) => lists::show(session, Kind::Schedulers, Shown::default(), a.json),
        ShowCommand::Twins => judge::list_twins(session),
        #[cfg(target_os = "linux")]
        ShowCommand::Ccids(a) => crate::live::list_ccids(a),
        ShowCommand::Scenario(a) if a.check => scenario::check(session, &a.names),
        ShowCommand::Scenario(a) => scenario::show(session, &a.names),
        ShowCommand::Schema(a) if a.markdown => print(&fields::page()?),
        ShowCommand::Schema(a) => schema::show(&a.command),
    }
}
