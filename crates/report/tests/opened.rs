//! Series as they are written, and as a recording of them is read.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::ScenarioFile;
use weir_report::series_files::write_series;
use weir_timeline::why::{Level, curves, explain};
use weir_timeline::{Call, Format, Recording, read};

const CALL: &str = "title = \"A call\"\nduration = \"20 s\"\n[links.access]\nrate = \"2 Mbps\"\ndelay = \"30 ms\"\nqueue = \"200 ms\"\n\
    loss = 0.01\n[rtp.one-first]\ncontroller = \"gcc\"\n[rtp.two]\ncontroller = \"nada\"\nstart = \"5 s\"\n[tcp.t]\nalgorithm = \"cubic\"\nstart = \"8 s\"\n";

fn open(path: &Path) -> Recording {
    read(&path.display().to_string(), std::fs::File::open(path).expect("written")).expect("a recording")
}

#[test]
fn every_number_of_a_runs_series_is_in_the_recording_at_its_time() {
    let registry = Registry::builtin();
    let file = ScenarioFile::parse("call", CALL, Path::new("."), &registry).expect("a scenario");
    let scenario = file.one(None, None, &registry).expect("one run");
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let made = run(&scenario, 3, &options).expect("it runs");
    let folder = tempfile::tempdir().expect("a folder");
    let paths = write_series(&made, folder.path(), "call").expect("written");
    let (flows, links) = (open(&paths[1]), open(&paths[3]));
    let series = made.series.as_ref().expect("series");
    let mut compared = 0;
    let mut same = |of: &Recording, key: (&str, &str, &str), values: &[f64]| {
        let read = of.series.get(&(key.0.into(), key.1.into(), key.2.into())).map(|s| s.points.as_slice());
        let finite = series.time_s.iter().zip(values).filter(|(_, v)| v.is_finite());
        let made: Vec<_> = finite.map(|(t, v)| ((t * 1e9).round() as i64, *v)).collect();
        let read: Vec<_> = read.unwrap_or_default().iter().map(|(t, v)| (t.as_nanos(), *v)).collect();
        assert_eq!(read, made, "{key:?}");
        compared += made.len();
    };
    for flow in &series.flows {
        for (name, values) in flow.columns() {
            let is_own = !flow.internals.iter().any(|(n, _)| n == name);
            let name = if is_own { name.to_owned() } else { format!("cc_{name}") };
            same(&flows, ("flow", &flow.name, &name), values);
        }
    }
    for link in &series.links {
        link.columns().into_iter().for_each(|(name, values)| same(&links, ("link", &link.name, name), values));
    }
    assert!(compared > 5_000, "{compared}");
    assert_eq!((flows.format, flows.stop.clone(), flows.faults.len()), (Format::WeirSeries, None, 0));
    let texts = |name: &str| flows.series[&("flow".into(), name.into(), "controller".into())].texts[0].1.clone();
    assert_eq!((texts("one-first"), texts("two")), ("gcc".into(), "nada".into()));

    // Over time, the numbers are those of the first flow by name; nothing is said of causes.
    let call = Call::new(vec![flows, links]);
    let found = curves(&call).expect("times");
    let first = series.flows.iter().find(|f| f.name == "one-first").expect("there");
    let mean: f64 = first.sent_bps[50..55].iter().sum::<f64>() / 5e3;
    let shown = found.column("sent_kbps").expect("rates")[10];
    assert!((shown - mean).abs() < 1e-6 * mean, "{shown} {mean}");
    let explained = explain(&call);
    assert_eq!((explained.level, explained.episodes.len()), (Level::None, 0));
    assert!(explained.missing.is_some_and(|m| m.contains("weir run NAME --explain")));
}
