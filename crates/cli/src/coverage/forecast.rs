//! `weir coverage forecast`: each ride foretold from the others, as files for scenarios.

use super::rides;
use crate::Done;
use crate::args::coverage::ForecastArgs;
use crate::output::{self, Failure};
use crate::session::Session;
use crate::tables::table;
use std::fs;
use std::path::Path;
use weir_coverage::Update;
use weir_coverage::rides::{Foretelling, Foretold, foretell, map_without, measured};
use weir_lab::scenario::InputError;
use weir_report::atomic_write::write_atomically;
use weir_report::figures::{self, Bar, Format, Line, Plot, Scale};
use weir_units::{DataRate, TimeDelta};

/// Shortest ride that a call is made of.
const SHORTEST: TimeDelta = TimeDelta::from_secs(30);
/// Rates below this count as this when factors are taken, bit/s.
const LEAST_RATE: f64 = 1_000.0;

pub(super) fn forecast(session: &Session, args: &ForecastArgs) -> Done {
    let how = Foretelling {
        anonymity: args.anonymity,
        interval: TimeDelta::from_secs_f64(args.interval),
        ..Foretelling::default()
    };
    let (names, mut rides): (Vec<String>, Vec<Vec<Update>>) = rides(&args.logs)?.into_iter().unzip();
    rides.iter_mut().for_each(|ride| ride.sort_by_key(|u| u.time_ms));
    if rides.len() <= args.anonymity {
        let what =
            format!("{}: a map of so many rides at a place needs more than {} logs", args.anonymity, rides.len());
        return Err(InputError::whole("--anonymity", what).help("name more logs, or a lower --anonymity").into());
    }
    fs::create_dir_all(&args.out).map_err(|e| Failure::Work(format!("{}: {e}", args.out.display())))?;
    let mut rows = table(&["ride", "s", "known", "factor p50", "low held"], 1);
    let mut variants = String::new();
    for (i, (name, ride)) in names.iter().zip(&rides).enumerate() {
        if session.stopped() {
            return Err(Failure::Interrupted);
        }
        let capacity = measured(ride);
        let Some(duration) = capacity.last().map(|last| last.0).filter(|d| *d >= SHORTEST) else {
            if !args.quiet {
                output::remark(&format!("{name}: shorter than {SHORTEST}, in the map alone"));
            }
            continue;
        };
        let map = map_without(&rides, i, args.anonymity);
        let foretold = foretell(&map, ride, &how).map_err(|e| Failure::Work(format!("{name}: {e}")))?;
        let stem = format!("{:02}-{}", i + 1, plain(name));
        write(&args.out.join(format!("{stem}.capacity.csv")), &capacity_table(name, &capacity))?;
        write(&args.out.join(format!("{stem}.forecast.csv")), &forecast_table(name, &foretold))?;
        let title = format!("Foretold by the other rides: {}", plain(name));
        figures::write(&args.out.join(format!("{stem}.svg")), &title, &[plot(&capacity, &foretold)], Format::Svg)
            .map_err(|e| Failure::Work(format!("{stem}.svg: {e}")))?;
        variants.push_str(&variant(&stem, duration));
        let share = |x: f64| format!("{:.0} %", 100.0 * x);
        let judged = judge(&capacity, &foretold);
        let seconds = format!("{:.0}", duration.as_secs_f64());
        let factor = judged.factor.map_or("-".to_owned(), |f| format!("{f:.2}"));
        rows.add_row([plain(name), seconds, share(judged.known), factor, judged.held.map_or("-".to_owned(), share)]);
    }
    if variants.is_empty() {
        return Err(Failure::Work(format!("no ride lasts {SHORTEST}: rates and positions of each second are needed")));
    }
    let path = args.out.join("rides.toml");
    write(&path, &format!("{SCENARIO}{variants}"))?;
    output::print(&format!("{rows}\n"))?;
    if !args.quiet {
        output::remark(&format!("written: {}", path.display()));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Done {
    write_atomically(path, |out| out.write_all(text.as_bytes()))
        .map_err(|e| Failure::Work(format!("{}: {e}", path.display())))
}

/// A log's name without what files and TOML give a meaning to.
fn plain(name: &str) -> String {
    let stem = [".csv", ".txt", ".log"].iter().find_map(|extension| name.strip_suffix(extension)).unwrap_or(name);
    stem.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect()
}

fn capacity_table(name: &str, capacity: &[(TimeDelta, DataRate)]) -> String {
    let row = |(at, rate): &(TimeDelta, DataRate)| format!("{},{:.0}\n", at.as_secs_f64(), rate.as_kbps_f64());
    let rows: String = capacity.iter().map(row).collect();
    format!("# Measured on the ride {}\ntime_s,capacity_kbps\n{rows}", plain(name))
}

fn forecast_table(name: &str, foretold: &[Foretold]) -> String {
    let row = |f: &Foretold| {
        let known = f.capacity.map(|c| {
            let kbps = DataRate::as_kbps_f64;
            format!("{:.0},{:.0},{:.3}", kbps(c.quantiles.p25), kbps(c.quantiles.p50), c.confidence)
        });
        format!("{:.3},{}\n", f.from.as_secs_f64(), known.unwrap_or("-,-,-".into()))
    };
    let rows: String = foretold.iter().map(row).collect();
    format!("# Foretold by a map of the other rides: {}\ntime_s,low_kbps,median_kbps,confidence\n{rows}", plain(name))
}

/// The ride as figure 7.4 b of V. Singh's thesis: the median along the way with its quartiles, and what the ride measured. Its highest
/// rates, a twentieth, are clipped: 5G cells would hide the others.
fn plot(capacity: &[(TimeDelta, DataRate)], foretold: &[Foretold]) -> Plot {
    let end = capacity.last().map_or(0.0, |last| last.0.as_secs_f64() + 1.0);
    let mbps = |rate: DataRate| rate.as_kbps_f64() / 1e3;
    let measured: Vec<_> = capacity.iter().map(|(at, rate)| (at.as_secs_f64(), mbps(*rate))).collect();
    let mut highest: Vec<f64> = measured.iter().map(|point| point.1).collect();
    highest.sort_by(f64::total_cmp);
    let most = highest.get(highest.len() * 19 / 20).copied().unwrap_or_default();
    let mut median = Line { label: "median and quartiles of the other rides".into(), ..Line::default() };
    for (i, row) in foretold.iter().enumerate() {
        let (from, to) = (row.from, foretold.get(i + 1).map_or(end, |next| next.from.as_secs_f64()));
        let from = from.as_secs_f64();
        let p50 = row.capacity.map_or(f64::NAN, |c| mbps(c.quantiles.p50));
        median.points.extend([(from, p50), (to, p50)]);
        if let Some(c) = row.capacity {
            let middle = (from + to) / 2.0;
            let [low, high] = [c.quantiles.p25, c.quantiles.p75].map(|rate| (middle, mbps(rate)));
            median.bars.push(Bar { at: (middle, p50), from: low, to: high });
        }
    }
    let measured = Line { label: "measured on this ride".into(), capacity: true, points: measured, bars: Vec::new() };
    Plot {
        y_label: "Rate, Mbit/s".into(),
        x_label: "Time, s".into(),
        x_end: end,
        lines: vec![measured, median],
        scale: if most > 0.0 { Scale::UpTo(most) } else { Scale::Zero },
        ..Plot::default()
    }
}

fn variant(stem: &str, duration: TimeDelta) -> String {
    format!(
        "\n[[variants]]\nname = \"{stem}\"\nduration = \"{} s\"\nlinks.bottleneck.rate.trace = \"{stem}.capacity.csv\"\n\
         rtp.call.forecast.file = \"{stem}.forecast.csv\"\n",
        duration.as_secs_f64()
    )
}

/// How a forecast compares with what was measured in each second.
struct Judged {
    known: f64,
    /// Between the median foretold and the rate measured, the larger by the smaller; median.
    factor: Option<f64>,
    /// Share of the known seconds with at least the lower quartile.
    held: Option<f64>,
}

fn judge(capacity: &[(TimeDelta, DataRate)], foretold: &[Foretold]) -> Judged {
    let (mut factors, mut held) = (Vec::new(), 0_u32);
    for (at, rate) in capacity {
        let row = foretold.partition_point(|f| f.from <= *at).checked_sub(1);
        let Some(known) = row.and_then(|row| foretold.get(row)?.capacity) else { continue };
        let (p50, rate) = (known.quantiles.p50.as_bps_f64().max(LEAST_RATE), rate.as_bps_f64().max(LEAST_RATE));
        factors.push(if p50 > rate { p50 / rate } else { rate / p50 });
        held += u32::from(rate >= known.quantiles.p25.as_bps_f64());
    }
    factors.sort_by(f64::total_cmp);
    let number = factors.len() as f64;
    Judged {
        known: number / (capacity.len() as f64).max(1.0),
        factor: factors.get(factors.len() / 2).copied(),
        held: (number > 0.0).then(|| f64::from(held) / number),
    }
}

/// A call as in `coverage/bus-ride`, whose link each variant states.
const SCENARIO: &str = r#"title = "Calls on rides that follow a map of other rides"
doc = """
Written by `weir coverage forecast`. Each variant is a ride: its measured rate is the link's capacity, and the forecast that of a map of
all other rides, matched by place. Delay, queue and call are those of coverage/bus-ride; none of them was measured.
"""
duration = "60 s"
runs = 1
compare = ["gcc", "gcc+map", "nada", "nada+map", "scream", "scream+map", "fbra", "fbra+map"]

[links.bottleneck]
delay = "60 ms"
queue = "300 ms"

[rtp.call]
controller = "$controller"
source = { model = "perfect-frames", fps = 30 }
payload = "1200 B"
floor = "100 kbps"
ceiling = "2.5 Mbps"
start_rate = "300 kbps"
playout_deadline = "400 ms"

[rtp.call.forecast]
look_ahead = "60 s"
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_coverage::{Capacity, Level, Quantiles};

    #[test]
    fn tables_and_names_are_as_scenarios_read_them() {
        let kbps = DataRate::from_kbps;
        let quantiles = Quantiles::from_values([100, 200, 300, 400, 500].map(kbps));
        let capacity = Capacity { quantiles, rtt_ms: None, loss: None, confidence: 0.5, level: Level::Cell };
        let at = TimeDelta::from_millis;
        let foretold = [
            Foretold { from: TimeDelta::ZERO, capacity: Some(capacity) },
            Foretold { from: at(2_500), capacity: None },
        ];
        let text = forecast_table("a b\".csv", &foretold);
        assert!(text.ends_with("a-b-\ntime_s,low_kbps,median_kbps,confidence\n0.000,200,300,0.500\n2.500,-,-,-\n"));
        let measured: Vec<_> =
            [150, 600, 300, 300].into_iter().zip(0..).map(|(r, s)| (at(1_000 * s), kbps(r))).collect();
        assert!(capacity_table("x", &measured).contains("\n1,600\n"));
        let judged = judge(&measured, &foretold);
        assert_eq!((judged.known, judged.factor, judged.held), (0.75, Some(2.0), Some(2.0 / 3.0)));
    }
}
