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
