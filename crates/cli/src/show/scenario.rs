//! `weir show scenario`.

use crate::Done;
use crate::output::print;
use crate::session::Session;
use crate::tables::fold;

pub(super) fn check(session: &Session, files: &[String]) -> Done {
    for name in files {
        let file = session.open(name)?;
        let count = file.scenarios(None, &session.registry)?.len();
        let runs = if count == 1 { "1 run".into() } else { format!("{count} runs") };
        print(&fold(&format!("{name}: good, {runs} ({})\n", file.title())))?;
        for line in file.unwritten_limits(&session.registry)? {
            print(&fold(&format!("  {line}\n")))?;
        }
    }
    Ok(())
}

pub(super) fn show(session: &Session, names: &[String]) -> Done {
    names.iter().try_for_each(|name| print(session.open(name)?.text()))
}
