//! Captures of DCCP flows, as tshark reads them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::capture;
use weir_lab::run::RunOptions;
use weir_lab::scenario::ScenarioFile;

const SCENARIO: &str = r#"
title = "Two DCCP flows on a link that loses"
duration = "3 s"

[links.bottleneck]
rate = "2 Mbps"
delay = "20 ms"
queue = "100 ms"
loss = 0.02

[dccp.window]
ccid = 2
connection = { ecn = true, short_sequence_numbers = true }

[dccp.rate]
ccid = 3
"#;

/// What tshark says of each packet: source, type, checksum, expert messages, ECN field, length of data.
fn dissected(file: &Path) -> Option<Vec<[String; 6]>> {
    let fields = ["ip.src", "dccp.type", "dccp.checksum.status", "_ws.expert.message", "ip.dsfield.ecn", "data.len"];
    let mut tshark = Command::new("tshark");
    tshark.args(["-o", "dccp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    tshark.args(["-T", "fields", "-E", "separator=|", "-r"]).arg(file);
    fields.iter().for_each(|f| {
        tshark.args(["-e", f]);
    });
    let Ok(out) = tshark.output() else {
        println!("tshark is not installed (apt-get install tshark): dissection not checked");
        return None;
    };
    let text = String::from_utf8_lossy(&out.stdout);
    let row = |l: &str| {
        let all: Vec<String> = l.split('|').map(str::to_owned).collect();
        all.try_into().unwrap_or_else(|_| panic!("six fields: {l}"))
    };
    Some(text.lines().map(row).collect())
}

#[test]
fn tshark_reads_captures_of_dccp_flows() {
    let registry = Registry::builtin();
    let file = ScenarioFile::parse("two", SCENARIO, Path::new("."), &registry).expect("a scenario");
    let scenario = file.scenario(None, None, &registry).expect("without variants");
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let folder = tempfile::tempdir().expect("a folder");
    for zeros in [false, true] {
        let path = folder.path().join("run.pcapng");
        let packets = capture::write(&scenario, 1, &options, &path, zeros).expect("written");
        let Some(rows) = dissected(&path) else { return };
        assert_eq!(rows.len() as u64, packets);
        let mut types: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let mut capable = 0;
        for [source, packet_type, checksum, expert, ecn, data] in &rows {
            assert_eq!(expert, "", "{source} {packet_type}");
            // A packet that is cut short cannot be checked.
            let whole = zeros || !matches!(packet_type.as_str(), "2" | "4");
            assert_eq!(checksum, if whole { "1" } else { "2" }, "{source} {packet_type}");
            assert!(!zeros || packet_type != "2" || data == "1400", "{data} bytes of data");
            *types.entry((source, packet_type)).or_default() += 1;
            capable += u32::from(ecn == "2");
        }
        // Senders 10.0.0.1 and 10.0.0.2, receivers 10.1.0.1 and 10.1.0.2: a Request and a Response each, data, acknowledgements.
        for (end, packet_type, least) in [
            ("10.0.0.1", "0", 1),
            ("10.1.0.1", "1", 1),
            ("10.0.0.1", "2", 100),
            ("10.1.0.1", "3", 50),
            ("10.0.0.2", "0", 1),
            ("10.1.0.2", "1", 1),
            ("10.0.0.2", "2", 20),
            ("10.1.0.2", "3", 10),
        ] {
            let seen = types.get(&(end, packet_type)).copied().unwrap_or(0);
            assert!((least..1_000).contains(&seen), "{seen} of type {packet_type} from {end}: {types:?}");
        }
        assert!(capable > 100, "{capable} packets as ECT(0)");
    }
}
