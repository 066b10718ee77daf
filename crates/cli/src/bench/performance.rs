//! `weir bench --markdown`: the tables of docs/performance.md.

use crate::Done;
use crate::output::{Failure, remark};
use std::path::PathBuf;
use weir_bench::document::replaced;
use weir_bench::report::Report;
use weir_bench::repository::{Origin, root};
use weir_report::atomic_write::write_atomically;

/// From the repository's root.
const PAGE: &str = "docs/performance.md";

/// The page, and where it is measured.
pub(super) struct Page {
    path: PathBuf,
    text: String,
    origin: Origin,
}

pub(super) fn open() -> Result<Page, Failure> {
    let root =
        root().ok_or_else(|| Failure::Work(format!("--markdown writes {PAGE}; run this in Weir's repository")))?;
    let path = root.join(PAGE);
    let text = std::fs::read_to_string(&path).map_err(|e| Failure::Work(format!("{}: {e}", path.display())))?;
    let origin = Origin::here(&root).map_err(Failure::Work)?;
    Ok(Page { path, text, origin })
}

impl Page {
    pub(super) fn write(&self, report: &Report, quiet: bool) -> Done {
        let failed = |e: std::io::Error| Failure::Work(format!("{}: {e}", self.path.display()));
        let text = replaced(&self.text, report, &self.origin).map_err(|e| Failure::Work(format!("{PAGE}: {e}")))?;
        write_atomically(&self.path, |out| out.write_all(text.as_bytes())).map_err(failed)?;
        if !quiet {
            remark(&format!("written: {}", self.path.display()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_marks_of_every_table() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
        let text = std::fs::read_to_string(page).expect("the page");
        assert_eq!(weir_bench::document::lacking(&text), Vec::<&str>::new());
    }
}
