//! `weir scenario`.

use crate::Done;
use crate::output::print;
use crate::session::Session;
use crate::tables::fold;

pub(crate) fn check(session: &Session, files: &[String]) -> Done {
    for name in files {
        let file = session.open(name)?;
        let count = file.scenarios(None, &session.registry)?.len();
        let runs = if count == 1 { "1 run".into() } else { format!("{count} runs") };
        print(&fold(&format!("{name}: good, {runs} ({})\n", file.title())))?;
    }
    Ok(())
}

pub(crate) fn show(session: &Session, name: &str) -> Done {
    print(session.open(name)?.text())
}

pub(crate) fn schema() -> Done {
    print(&weir_lab::scenario::schema())
}
