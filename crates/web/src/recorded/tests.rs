use super::*;
use crate::answer::{Answer, Lab};
use serde_json::{Value, json};
use weir_timeline::Format;
use weir_timeline::why::QUANTITIES;

#[path = "../../tests/page/captures.rs"]
mod captures;

fn open(lab: &mut Lab, files: &[(&str, &[u8])]) -> Result<Answer, Failure> {
    let names: Vec<&str> = files.iter().map(|f| f.0).collect();
    let bytes = files.iter().map(|f| f.1.to_vec()).collect();
    lab.answer(&json!({ "ask": "open", "names": names }).to_string(), bytes)
}

fn column<'a>(answer: &'a Answer, name: &str) -> &'a [f64] {
    let found =
        answer.columns.iter().find(|c| c.name == name).unwrap_or_else(|| panic!("{name}: {:?}", answer.columns));
    &answer.numbers[found.from..found.from + found.len]
}

#[test]
fn both_ends_of_a_call_give_the_report_and_its_numbers_over_time() {
    let [left, right] = captures::call(40, 100);
    let mut lab = Lab::default();
    let made = open(&mut lab, &[("left.pcap", &left), ("right.pcap", &right)]).expect("opens");
    let call = Call::new(vec![
        read("left.pcap", left.as_slice()).expect("a capture"),
        read("right.pcap", right.as_slice()).expect("a capture"),
    ]);
    let report = Report::of(&call, &[]).expect("a report");
    assert_eq!(made.text, serde_json::to_string(&report).expect("JSON"));
    assert_eq!((report.episodes.len(), report.episodes[0].causes[0].name.as_ref()), (1, "random-loss"), "{report:#?}");
    let (time, sent) = (column(&made, "time_s"), column(&made, "sent_kbps"));
    assert!(time.len() == sent.len() && (78..=82).contains(&time.len()), "{time:?}");
    assert_eq!((time[0], time[1]), (0.0, 0.5));
    assert!((990.0..1_010.0).contains(&sent[10]) && (450.0..550.0).contains(&sent[60]), "{sent:?}");
    assert!(made.columns.iter().all(|c| c.kind == "call" && c.len == time.len()));

    let request = json!({ "ask": "replay", "controllers": ["gcc", "nada"] }).to_string();
    let replayed = lab.answer(&request, vec![]).expect("feedback");
    let own: Vec<_> = ["gcc", "nada"].iter().map(|name| replay::replay(&call, name).expect("feedback")).collect();
    assert_eq!(replayed.text, serde_json::to_string(&own).expect("JSON"));
    let target = column(&replayed, "target_kbps");
    assert_eq!((replayed.columns[1].owner.as_str(), target.len()), ("nada", time.len()));
    // The end of the third row is at 1.5 s, and targets are each 100 ms.
    assert_eq!(target[2], own[0].targets[15].1);
    let refused = lab.answer(&request.replace("nada", "nadaa"), vec![]).expect_err("no such one");
    assert!(refused.kind == "recording" && refused.message.contains("nadaa"), "{refused:?}");

    let packets = |lab: &mut Lab, from: f64, to: f64| -> Value {
        let request = json!({ "ask": "packets", "from_s": from, "to_s": to });
        serde_json::from_str(&lab.answer(&request.to_string(), vec![]).expect("packets").text).expect("JSON")
    };
    let few = packets(&mut lab, 1.0, 1.1);
    assert_eq!(
        (&few["count"], &few["path"], &few["packets"][0]["sequence"]),
        (&json!(10), &json!("left.pcap"), &json!(100))
    );
    assert_eq!((&few["packets"][0]["at_s"], &few["packets"][0]["transport_sequence"]), (&json!(1.0), &json!(100)));
    let many = packets(&mut lab, -1e300, 1e300);
    assert_eq!((&many["count"], &many["packets"]), (&json!(call.recordings[0].packets.len()), &json!([])));
    assert_eq!(packets(&mut lab, 2.0, 1.0)["count"], 0);
}

#[test]
fn damaged_files_are_read_up_to_the_damage_and_strangers_are_refused() {
    let [left, _] = captures::call(10, 50);
    let mut lab = Lab::default();
    let cut = open(&mut lab, &[("cut.pcap", &left[..left.len() / 2])]).expect("opens");
    let report: Value = serde_json::from_str(&cut.text).expect("JSON");
    let stopped = &report["sources"][0]["stopped"];
    assert!(stopped["why"].as_str().is_some_and(|why| why.contains("ends")) && stopped["offset"].is_u64(), "{report}");
    assert!(column(&cut, "sent_kbps").len() >= 9);
    for (name, bytes) in
        [("picture.png", &b"\x89PNG\r\n\x1a\n"[..]), ("empty", b""), ("old.log", &[0x0a, 4, 8, 1, 16, 2])]
    {
        let refused = open(&mut lab, &[("cut.pcap", &left), (name, bytes)]).expect_err("no recording");
        assert_eq!(refused.kind, "recording");
        assert!(refused.message.starts_with(name) && refused.help.is_some(), "{refused:?}");
    }
    // The call that was open before is closed, and a request without files opens none.
    assert_eq!(lab.answer(r#"{"ask":"packets","from_s":0,"to_s":1}"#, vec![]).expect_err("closed").kind, "request");
    assert_eq!(open(&mut lab, &[]).expect_err("no file").kind, "request");
    let two = lab.answer(r#"{"ask":"open","names":["a","b"]}"#, vec![left]).expect_err("one file");
    assert!(two.message.contains("2 names for 1 files"), "{two:?}");
}

#[test]
fn a_file_without_rates_or_feedback_says_so() {
    let mut lab = Lab::default();
    let made = open(&mut lab, &[("targets.log", b"1747225741356, 100000\n1747225741456, 200000\n")]).expect("opens");
    assert!(made.text.contains("\"level\":\"none\"") && column(&made, "target_kbps") == [200.0], "{made:?}");
    let refused = lab.answer(r#"{"ask":"replay","controllers":["gcc"]}"#, vec![]).expect_err("no feedback");
    assert!(refused.kind == "recording" && refused.message.contains("feedback"), "{refused:?}");
}

#[test]
fn the_page_offers_controllers_that_can_be_replayed_and_draws_every_quantity() {
    let registry = Registry::builtin();
    let names = replayed(&registry);
    assert!(["gcc", "nada", "sluice"].iter().all(|name| names.contains(name)), "{names:?}");
    assert!(names.len() < registry.specs().count() && !names.contains(&"fixed"), "{names:?}");
    let plots = include_str!("../../assets/page/call_plots.js");
    let absent: Vec<&&str> = QUANTITIES.iter().filter(|name| !plots.contains(&format!("[\"{name}\","))).collect();
    assert!(absent.is_empty(), "{absent:?}");
    // Formats have the names that the command line gives them.
    let page = include_str!("../../assets/page/recording.js");
    let named = |f: &Format| page.contains(&format!("[{}, \"{}\"]", serde_json::to_string(f).expect("text"), f.name()));
    let nameless: Vec<&Format> = Format::ALL.iter().filter(|f| !named(f)).collect();
    assert!(nameless.is_empty(), "{nameless:?}");
}
