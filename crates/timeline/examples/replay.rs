//! Weir's GCC fed with event logs of Chromium, beside the estimates that Chromium logged, as a table.
//!
//!     cargo run --release -p weir-timeline --example replay -- event.log... [--controller gcc]

use std::fs::File;
use weir_timeline::replay::{LABEL, replay};
use weir_timeline::{Call, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut controller, mut files, mut args) = ("gcc".to_owned(), Vec::new(), std::env::args().skip(1));
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--controller" => controller = args.next().ok_or("--controller needs a name")?,
            _ => files.push(arg),
        }
    }
    println!("{controller}: {LABEL}");
    println!("| log | off the estimate by delay | off the lower estimate |\n|---|---|---|");
    for file in files {
        let call = Call::new(vec![read(&file, File::open(&file)?)?]);
        let found = replay(&call, &controller)?;
        let share = |s: Option<f64>| s.map_or("-".into(), |s| format!("{:.1} %", s * 100.0));
        println!("| {file} | {} | {} |", share(found.off_delay), share(found.off_estimate));
    }
    Ok(())
}
