//! Prints simulated seconds per CPU second of a whole call under each controller, at 2 Mbit/s and 100 ms.

use weir_bench::call::bare_call;
use weir_cc::Registry;
use weir_lab::scenario::ScenarioFile;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::builtin();
    for name in std::env::args().skip(1) {
        let file = ScenarioFile::open("rmcat-comparison/random-loss", &registry)?;
        let controllers = [name.clone()];
        let mut scenario = file.scenarios(Some(&controllers), &registry)?.remove(0);
        scenario.duration = weir_units::TimeDelta::from_secs(20_000);
        for f in &mut scenario.flows {
            f.stop = scenario.duration;
        }
        let speed = bare_call(&scenario, 1, &registry)?;
        println!("{name}: {speed:?}");
    }
    Ok(())
}
