//! Repair packets of a flow: the codes, and their faults.

use super::*;
use weir_fec::{Protection, Scheme};
use weir_media::resilience::joint::Joint;
use weir_session::{FrameRepair, Hairpin, RepairChoice, Tambur};
use weir_units::TimeDelta;

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
fn policies_of_frames_are_named_with_their_numbers() {
    let hairpin = |deadline, cost| {
        RepairChoice::ByFrames(FrameRepair::Hairpin(Hairpin { deadline: TimeDelta::from_millis(deadline), cost }))
    };
    assert_eq!(of("repair = { code = \"hairpin\" }"), hairpin(100, 100));
    assert_eq!(of("repair = { code = \"hairpin\", deadline = \"300 ms\", cost = 1e-4 }"), hairpin(300, 100_000));
    let tambur = |delay| RepairChoice::ByFrames(FrameRepair::Tambur(Tambur { delay }));
    assert_eq!(of("repair = { code = \"tambur\" }"), tambur(3));
    assert_eq!(of("repair = { code = \"tambur\", delay = 5 }"), tambur(5));
    assert_eq!(of("repair = { code = \"libwebrtc\" }"), RepairChoice::ByFrames(FrameRepair::Libwebrtc));
}

#[test]
fn a_joint_plan_is_between_its_bounds() {
    let joint = |earliest, latest, requests| {
        let [earliest, latest] = [earliest, latest].map(TimeDelta::from_millis);
        RepairChoice::ByFrames(FrameRepair::Joint(Joint { earliest, latest, requests }))
    };
    let deadline = "playout_deadline = \"250 ms\"\n";
    assert_eq!(of(&format!("{deadline}repair = {{ code = \"joint\" }}")), joint(250, 250, false));
    let requests = "error_resilience = [\"nack\"]\n";
    let repair = "repair = { code = \"joint\", earliest = \"100 ms\" }";
    assert_eq!(of(&format!("{deadline}{requests}{repair}")), joint(100, 250, true));
    for (flow, fault) in [
        (repair.to_string(), "give the flow one, such as \"300 ms\""),
        (format!("{deadline}repair = {{ code = \"joint\", earliest = \"251 ms\" }}"), "is after `playout_deadline`"),
        (format!("{deadline}repair = {{ code = \"joint\", sources = 5 }}"), "is `earliest` alone"),
        (
            format!("{deadline}repair = {{ code = \"tambur\", earliest = \"1 ms\" }}"),
            "`earliest` is of the code \"joint\"",
        ),
        (format!("{deadline}adaptive_playout = true\n{repair}"), "leave `adaptive_playout`"),
    ] {
        let text = format!("{SMALL}{flow}\n");
        let e = parse(&text).err().unwrap_or_else(|| panic!("read without error:\n{text}"));
        assert!(format!("{e}").contains(fault), "`{fault}` is not in\n{e}");
    }
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
        ("{ code = \"hairpin\", sources = 5 }", "are of codes without frames"),
        ("{ code = \"hairpin\", deadline = \"0 ms\" }", "a time above zero"),
        ("{ code = \"hairpin\", delay = 3 }", "`delay` is of the code \"tambur\""),
        ("{ code = \"tambur\", cost = 0.1 }", "are of the code \"hairpin\""),
        ("{ code = \"tambur\", delay = 17 }", "1 to 16 frames"),
        ("{ code = \"libwebrtc\", delay = 3 }", "`delay` is of the code \"tambur\""),
    ] {
        let text = format!("{SMALL}repair = {repair}\n");
        let e = parse(&text).err().unwrap_or_else(|| panic!("read without error:\n{text}"));
        let shown = format!("{e}\n{}", e.help_text().unwrap_or_default());
        assert!(shown.contains(fault) && shown.contains("rtp.video.repair"), "`{fault}` is not in\n{shown}");
    }
}
