//! The papers inside the program.

use weir_judge::paper::data::{PaperData, papers};

#[test]
fn every_paper_opens_with_the_files_that_its_description_names() {
    let names: Vec<&str> = papers().map(|(name, _)| name).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        PaperData::open(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}
