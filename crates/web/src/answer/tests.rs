use super::*;
use serde_json::{Value, json};

const SMALL: &str = r#"
    title = "Small"
    duration = "5 s"
    [links.bottleneck]
    rate = "1 Mbps"
    delay = "20 ms"
    [rtp.video]
    controller = "$controller"
"#;

fn ask(request: &Value) -> Result<Answer, Failure> {
    answer(&request.to_string())
}

fn value(request: &Value) -> Value {
    serde_json::from_str(&ask(request).expect("answered").text).expect("JSON")
}

#[test]
fn a_run_is_the_labs_own_with_its_series() {
    let given = json!({ "ask": "run", "name": "small", "text": SMALL, "controller": "nada", "seed": 7, "series": true, "digest": true });
    let made = ask(&given).expect("runs");
    let registry = Registry::builtin();
    let file = ScenarioFile::edited("small", SMALL, &registry).expect("sound");
    let scenario = file.scenario(None, Some("nada"), &registry).expect("sound");
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let own = run(&scenario, 7, &options).expect("runs");
    assert_eq!(made.text, serde_json::to_string(&own).expect("JSON"));
    assert_eq!(made.digest, Some(own.digest()));
    let series = own.series.expect("asked for");
    let column = |kind: &str, name: &str| {
        let c = made.columns.iter().find(|c| c.kind == kind && c.name == name).expect("there");
        &made.numbers[c.from..c.from + c.len]
    };
    assert_eq!(column("run", "time_s"), series.time_s);
    assert_eq!(column("flow", "sent_bps"), series.flows[0].sent_bps);
    assert_eq!(column("link", "capacity_bps"), series.links[0].capacity_bps);
}

#[test]
fn an_outline_says_what_can_be_chosen_and_dragged() {
    let text = SMALL.replace("Small", "Größer 😀");
    let outline = value(&json!({ "ask": "outline", "name": "small", "text": text }));
    assert_eq!((&outline["title"], &outline["duration_s"]), (&json!("Größer 😀"), &json!(5.0)));
    assert_eq!(outline["controllers"], json!(["gcc", "nada", "scream"]));
    let point = &outline["capacities"][0]["points"][0];
    let (from, to) = (point["rate"][0].as_u64().expect("a place"), point["rate"][1].as_u64().expect("a place"));
    let units: Vec<u16> = text.encode_utf16().collect();
    let found = String::from_utf16(&units[from as usize..to as usize]).expect("text");
    assert_eq!(found, "\"1 Mbps\"");
}

#[test]
fn lists_and_schema_are_there() {
    let controllers = value(&json!({ "ask": "controllers" }));
    assert!(controllers.as_array().is_some_and(|all| all.iter().any(|c| c["name"] == "sluice")));
    let scenarios = value(&json!({ "ask": "scenarios" }));
    assert!(scenarios.as_array().is_some_and(|all| all.len() > 50));
    assert!(value(&json!({ "ask": "schema" }))["properties"]["links"].is_object());
}

#[test]
fn faults_name_field_value_line_and_way_out() {
    let text = SMALL.replace("1 Mbps", "1 Mpbs");
    let e = ask(&json!({ "ask": "run", "name": "small", "text": text })).expect_err("no rate");
    assert_eq!((e.kind, e.line, e.field.as_deref()), ("scenario", Some(5), Some("links.bottleneck.rate")));
    assert!(e.message.contains("\"1 Mpbs\"") && e.message.contains("did you mean \"1 Mbps\""), "{e:?}");
    let text = SMALL.replace("delay", "dely");
    let e = ask(&json!({ "ask": "outline", "name": "small", "text": text })).expect_err("no such field");
    assert_eq!(e.line, Some(6));
    assert!(e.message.contains("dely") && e.help.as_deref().is_some_and(|h| h.contains("delay")), "{e:?}");
    let e =
        ask(&json!({ "ask": "run", "name": "small", "text": SMALL, "controller": "gccc" })).expect_err("no such one");
    assert!(e.message.contains("gccc") && e.help.as_deref().is_some_and(|h| h.contains("gcc")), "{e:?}");
    for wrong in ["", "{", "{\"ask\":\"walk\"}", "{\"ask\":\"run\"}", "[1]"] {
        assert_eq!(answer(wrong).expect_err("no request").kind, "request");
    }
}

#[test]
fn no_file_of_this_machine_is_read() {
    let text = SMALL.replace("\"1 Mbps\"", "{ trace = \"/etc/passwd\" }");
    let e = ask(&json!({ "ask": "run", "name": "small", "text": text })).expect_err("refused");
    assert!(e.message.contains("ships with Weir") && e.line == Some(5), "{e:?}");
}

#[test]
fn the_last_part_of_a_name_is_enough() {
    let outline = value(&json!({ "ask": "outline", "name": "responsiveness" }));
    assert_eq!(outline["name"], "rmcat-comparison/responsiveness");
    let text = outline["text"].as_str().expect("a text").replace("200 s", "100 s");
    let edited = value(&json!({ "ask": "outline", "name": "responsiveness", "text": text }));
    assert_eq!((&edited["name"], &edited["duration_s"]), (&outline["name"], &json!(100.0)));
    let e = ask(&json!({ "ask": "outline", "name": "responsivness" })).expect_err("none");
    assert!(e.message.contains("`responsivness`"), "{e:?}");
    assert!(e.help.as_deref().is_some_and(|h| h.contains("responsiveness`?")), "{e:?}");
}
