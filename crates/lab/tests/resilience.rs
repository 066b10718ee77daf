//! Error resilience of calls with real encoders.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::ScenarioFile;

/// Whatever the policy may select, key frames stay small enough for a slow link, so that pictures are shown.
#[test]
fn a_slow_link_shows_pictures_with_every_choice_of_mechanisms() {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    for mechanisms in ["auto", "rps", "nack"] {
        let text = format!(
            "title = \"t\"\nduration = \"20 s\"\n[links.bottleneck]\nrate = \"120 kbps\"\ndelay = \"30 ms\"\n\
             queue = \"300 ms\"\n[rtp.call]\ncontroller = \"gcc\"\nfloor = \"30 kbps\"\nstart_rate = \"300 kbps\"\n\
             ceiling = \"2 Mbps\"\nplayout_deadline = \"400 ms\"\nerror_resilience = [\"{mechanisms}\"]\n\
             source = {{ model = \"encoder\", picture = \"640x480\", fps = 15 }}\n"
        );
        let file = ScenarioFile::parse("t", &text, ".".as_ref(), &registry).expect("sound");
        let scenario = file.scenario(None, None, &registry).expect("sound");
        let all = run(&scenario, 1, &options).expect("runs");
        let quality = all.flows[0].quality.as_ref().expect("pictures");
        eprintln!("{mechanisms}: {} of {} shown, {:.1} s frozen", quality.shown, quality.pictures, quality.frozen_s);
        assert!(quality.shown * 10 >= quality.pictures * 7, "{mechanisms}: {quality:?}");
    }
}

/// The round-trip time measured behind an outage is as long as the outage: requests for a reference or a key frame are repeated
/// nevertheless, so that pictures come back with the link.
#[test]
fn pictures_come_back_after_a_long_outage() {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    // A trickle through the outage, so that a report measures the whole of it. Without a limit on the time waited these two seeds had 27.8 and
    // 36 s of freezes.
    let text = "title = \"t\"\nduration = \"46 s\"\n[links.b]\nrate.steps = [{ at = \"0 s\", rate = \"2.7 Mbps\" }, \
                { at = \"6 s\", rate = \"21 kbps\" }, { at = \"29 s\", rate = \"29 kbps\" }, { at = \"30 s\", rate = \"3.1 Mbps\" }]\n\
                delay = \"25 ms\"\nqueue = \"60 kB\"\n[rtp.call]\ncontroller = \"nada\"\nfloor = \"100 kbps\"\n\
                start_rate = \"300 kbps\"\nceiling = \"4 Mbps\"\nplayout_deadline = \"400 ms\"\npayload = \"1200 B\"\n\
                error_resilience = [\"auto\"]\nsource = { model = \"encoder\", picture = \"640x360\", fps = 30, clip = \"sports\" }\n";
    let file = ScenarioFile::parse("t", text, ".".as_ref(), &registry).expect("sound");
    let scenario = file.scenario(None, None, &registry).expect("sound");
    for seed in [2, 23] {
        let all = run(&scenario, seed, &options).expect("runs");
        let quality = all.flows[0].quality.as_ref().expect("pictures");
        eprintln!("seed {seed}: {:.1} s frozen, {} undecodable", quality.frozen_s, quality.undecodable);
        assert!(quality.frozen_s < 27.0, "seed {seed}: {quality:?}");
    }
}
