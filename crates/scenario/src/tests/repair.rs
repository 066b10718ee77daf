//! Repair packets of a flow: the codes, and their faults.

use super::*;
use weir_fec::{Protection, Scheme};
use weir_session::RepairChoice;

fn of(repair: &str) -> RepairChoice {
    let s = only(&format!("{SMALL}{repair}"));
    let sending = s.flows[0].rtp().expect("a media flow").sending;
    assert_eq!(sending.repair_within_rate, !repair.is_empty());
    sending.repair
}

#[test]
fn codes_are_named_with_their_numbers() {
    let fixed = |scheme: Result<Scheme, weir_fec::SchemeError>| {
        RepairChoice::Fixed(Protection::Equal(scheme.expect("a scheme")))
    };
    assert_eq!(of(""), RepairChoice::Controller);
    assert_eq!(of("repair = { code = \"parity\", sources = 5 }"), fixed(Scheme::parity(5)));
    assert_eq!(of("repair = { code = \"parity\", sources = 5, columns = 4 }"), fixed(Scheme::interleaved(4, 5)));
    let blocks = "repair = { code = \"reed-solomon\", sources = 20, repairs = 4 }";
    assert_eq!(of(blocks), fixed(Scheme::reed_solomon(24, 4)));
    assert_eq!(of("repair = { code = \"rlc\", sources = 5, window = 40 }"), fixed(Scheme::rlc(40, 5, 1)));
    assert_eq!(of("repair = { code = \"rlc\", window = 40 }"), RepairChoice::Sliding { window: 40 });
}

#[test]
fn numbers_that_a_code_does_not_have_are_faults() {
    for (repair, fault) in [
        ("\"rlc\"", "a table such as { code = \"rlc\", window = 40"),
        ("{ code = \"rlc\", sources = 5 }", "`window` is of the code \"rlc\""),
        ("{ code = \"parity\", sources = 5, window = 9 }", "`window` is of the code"),
        ("{ code = \"parity\", sources = 5, repairs = 2 }", "`repairs` of the others"),
        ("{ code = \"rlc\", sources = 5, window = 9, columns = 2 }", "`columns` is of the code \"parity\""),
        ("{ code = \"rlc\", window = 9, repairs = 2 }", "`sources` is missing"),
        ("{ code = \"reed-solomon\", repairs = 2 }", "`sources` is missing"),
        ("{ code = \"reed-solomon\", sources = 250, repairs = 10 }", "255 packets at most"),
        ("{ code = \"rlc\", window = 4, sources = 9, repairs = 2 }", "RLC: window is 4 for 2 in 9"),
        ("{ code = \"rlc\", window = 400 }", "rtp.video.repair"),
    ] {
        let text = format!("{SMALL}repair = {repair}\n");
        let e = parse(&text).err().unwrap_or_else(|| panic!("read without error:\n{text}"));
        let shown = format!("{e}\n{}", e.help_text().unwrap_or_default());
        assert!(shown.contains(fault) && shown.contains("rtp.video.repair"), "`{fault}` is not in\n{shown}");
    }
}
