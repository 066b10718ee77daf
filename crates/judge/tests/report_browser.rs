//! Renders a report in headless Chromium and proves that its plots have drawn.

mod report_synthetic;

use std::path::{Path, PathBuf};
use std::process::Command;
use weir_report::page::Stopped;

/// Chromium, without network access.
fn chromium(profile: &Path) -> Option<Command> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success()))?;
    let mut command = Command::new(found);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        "--virtual-time-budget=4000",
    ]);
    command.arg(format!("--user-data-dir={}", profile.display()));
    Some(command)
}

/// The text between two marks, for each occurrence.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    text.split(from).skip(1).filter_map(|rest| Some(rest.split_once(to)?.0)).collect()
}

/// The page after its scripts have run and checked it, at an address with these settings.
fn dom(file: &Path, profile: &Path, settings: &str) -> Option<String> {
    let mut browser = chromium(profile)?;
    let address = format!("file://{}#check&{settings}", file.display());
    let out = browser.arg("--dump-dom").arg(&address).output().expect("chromium runs");
    let dom = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert_eq!(between(&dom, "data-checked=\"", "\"").len(), 1, "{settings}: {errors}");
    Some(dom)
}

/// Writes the synthetic report, and gives its folder and file.
fn written(name: &str) -> (PathBuf, PathBuf) {
    let report = report_synthetic::report();
    let html = weir_report::page::render(&report).expect("renders");
    assert_eq!(html, weir_report::page::render(&report).expect("renders"), "same results, same bytes");
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(!html.contains("http://") || between(&html, "src=\"", "\"").iter().all(|s| !s.starts_with("http")));
    let dir = std::env::var_os("WEIR_KEEP_REPORT")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).into(), PathBuf::from);
    let file = dir.join(format!("{name}.html"));
    weir_report::page::write(&report, &file).expect("written");
    (dir.join(format!("profile-{name}")), file)
}

const NO_BROWSER: &str = "skipped: no chromium on this machine";

#[test]
fn every_line_of_every_plot_is_drawn() {
    let (profile, file) = written("report");
    for settings in ["theme=light", "theme=dark", "theme=light&runs=2"] {
        let Some(dom) = dom(&file, &profile, settings) else {
            println!("{NO_BROWSER}");
            return;
        };
        // One flow, twice: 4 plots. Three flows: 3 of rates, 3 of delays, delay, queue, loss, Jain. TCP: 4 of rates, 4 of delays,
        // delay, queue, loss, share.
        assert_eq!(between(&dom, "data-checked=\"", "\""), ["30"], "{settings}");
        let drawn = between(&dom, "data-drawn=\"", "\"");
        let titles: Vec<&str> = between(&dom, "data-drawn=\"", "<figure").into_iter().collect();
        assert_eq!((drawn.len(), titles.len()), (30, 30));
        for (plot, (counts, after)) in drawn.iter().zip(titles).enumerate() {
            for (line, count) in counts.split(' ').enumerate() {
                let count: u32 = count.parse().expect("a number");
                // Lines at zero lie under one another; only the last of them shows.
                let hidden = after.contains("Packets lost");
                assert!(count > 40 || hidden, "{settings}: plot {plot}, line {line} has {count} pixels of its colour");
            }
        }
    }

    let shot = file.with_extension("png");
    let mut browser = chromium(&profile).expect("was there");
    browser.arg("--window-size=1280,2400").arg(format!("--screenshot={}", shot.display()));
    browser.arg(format!("file://{}", file.display())).output().expect("chromium runs");
    let size = std::fs::metadata(&shot).expect("a screenshot").len();
    // A blank page of this size is a PNG of under 20 kB.
    assert!(size > 100_000, "the screenshot has {size} bytes");
}

/// The controllers of the ranking, the best first.
fn ranked(dom: &str) -> Vec<String> {
    let table = between(dom, "<table id=\"ranking\">", "</table>")[0];
    let name = |row: &str| row.split("</svg>").nth(1).and_then(|rest| rest.split('<').next()).map(str::to_owned);
    between(table, "<th scope=\"row\">", "</th>").into_iter().filter_map(name).collect()
}

#[test]
fn the_ranking_follows_what_counts() {
    let (profile, file) = written("ranking");
    let Some(all) = dom(&file, &profile, "theme=light") else {
        println!("{NO_BROWSER}");
        return;
    };
    // Three controllers in three runs each of two scenarios; the others have a run each.
    assert_eq!(between(&all, "class=\"spread\"", "</g>").iter().filter(|g| g.contains("<path")).count(), 6);
    assert_eq!(between(&all, "class=\"mean\"", "</g>").len(), 3 + 3 + 4 + 3);
    let report = report_synthetic::report();
    let first = &report.scenarios[0];
    let mean = |metric: &str| {
        let mut by: Vec<(String, f64)> = (first.controllers.iter())
            .map(|c| {
                let a = &c.aggregate;
                let stat = a.metrics.get(metric).or(a.flows[0].metrics.get(metric)).expect("measured");
                (a.controller.clone(), stat.mean)
            })
            .collect();
        by.sort_by(|a, b| a.1.total_cmp(&b.1));
        by.into_iter().map(|b| b.0).collect::<Vec<_>>()
    };
    let one = |rank: &str| ranked(&dom(&file, &profile, &format!("scenario=0&rank={rank}")).expect("was there"));
    let (by_delay, by_throughput) = (one("delay"), one("throughput"));
    assert_eq!(by_delay, mean("queue_delay_p95_ms"));
    let mut most = mean("utilisation_goodput");
    most.reverse();
    assert_eq!(by_throughput, most);
    assert_ne!(by_delay, by_throughput, "the order depends on the control");
}

#[test]
fn downloads_hold_the_results() {
    let (profile, file) = written("downloads");
    let Some(dom) = dom(&file, &profile, "scenario=0") else {
        println!("{NO_BROWSER}");
        return;
    };
    let report = report_synthetic::report();
    let html = std::fs::read_to_string(&file).expect("written");
    let data = between(&html, "<script type=\"application/json\" id=\"data\">", "</script>")[0];
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let table = data["csv"].as_str().expect("every run as CSV");
    let mut rows = table.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("a header");
    let at = |name: &str| head.iter().position(|h| *h == name).expect("a column");
    let mut expected = report.scenarios.iter().flat_map(|s| &s.controllers).flat_map(|c| c.runs());
    let (mut run, mut left) = (expected.next().expect("runs"), 0..0);
    left.end = run.flows.len();
    for row in rows {
        let i = match left.next() {
            Some(i) => i,
            None => {
                run = expected.next().expect("a row for each flow of each run");
                left = 1..run.flows.len();
                0
            }
        };
        let flow = &run.flows[i];
        assert_eq!((row[at("controller")], row[at("flow")]), (run.controller.as_str(), flow.name.as_str()));
        assert_eq!(row[at("seed")], run.seed.to_string());
        for (name, value) in flow.values().into_iter().chain(run.values()) {
            assert_eq!(row[at(name)].parse(), Ok(value), "{name}");
        }
    }
    assert!(expected.next().is_none() && left.is_empty(), "a row for each flow of each run");

    // The first plot: the median of three runs, each run, and the capacity.
    let plotted = between(&dom, "<pre id=\"check-csv\" hidden=\"\">", "</pre>")[0];
    let head: Vec<&str> = plotted.lines().next().expect("a header").split(',').collect();
    assert_eq!(head[0], "time_s");
    for c in &report.scenarios[0].controllers {
        let name = &c.shown.controller;
        let at = |what: &str| head.iter().position(|h| h.starts_with(&format!("{name} {what}"))).expect(what);
        let (median, low, high) = (at("median"), at("low"), at("high"));
        let seeds: Vec<usize> = (1..=3).map(|s| at(&format!("seed {s}"))).collect();
        let rows: Vec<Vec<f64>> =
            plotted.lines().skip(1).map(|l| l.split(',').map(|v| v.parse().unwrap_or(f64::NAN)).collect()).collect();
        assert!(rows.len() >= 60, "{} rows", rows.len());
        let seconds = c.shown.outline.flows[0].rows.len();
        for (i, row) in rows.iter().enumerate() {
            let mut runs: Vec<f64> = seeds.iter().map(|s| row[*s]).collect();
            if rows.len() == seconds {
                for (run, value) in c.runs().zip(&runs) {
                    let bps = run.outline.flows[0].rows[i].sent_bps.expect("active");
                    assert!((value - f64::from(bps) * 1e-3).abs() <= 0.5, "{value} for {bps}");
                }
            }
            runs.sort_by(f64::total_cmp);
            assert_eq!([row[low], row[median], row[high]], [runs[0], runs[1], runs[2]]);
        }
        assert_eq!(rows.len(), seconds, "a point a second in 200 s");
    }
    let svg = between(&dom, "<pre id=\"check-svg\" hidden=\"\">", "</pre>")[0];
    assert!(svg.contains("&lt;svg") && svg.contains("&lt;path") && !svg.contains("var(--"));
    let points = between(&dom, "<pre id=\"check-points\" hidden=\"\">", "</pre>")[0];
    assert_eq!(points.lines().count(), 1 + 9, "three controllers, three runs");
    let png: usize = between(&dom, "data-png=\"", "\"")[0].parse().expect("bytes");
    assert!(png > 5_000, "{png} bytes of PNG");
}

#[test]
fn many_scenarios_fit_into_a_page() {
    let mut report = report_synthetic::report();
    // Three controllers, five scenarios, ten runs.
    let mut ten = report.scenarios.swap_remove(0);
    for c in &mut ten.controllers {
        let first = c.others.clone();
        c.others = (0..9).map(|i| first[i % first.len()].clone()).collect();
    }
    report.scenarios = vec![ten; 5];
    report.reproduction = None;
    report.stopped = Some(Stopped { done: 112, asked: 150 });
    let html = weir_report::page::render(&report).expect("renders");
    println!("3 controllers, 5 scenarios, 10 runs: {} bytes", html.len());
    assert!(html.len() < 2_500_000, "{} bytes", html.len());
    assert!(html.contains("112 of the 150 runs"));
    // A hundred scenarios: each run no longer has a line of its own, and the page stays bounded.
    report.scenarios = vec![report.scenarios.remove(0); 100];
    let html = weir_report::page::render(&report).expect("renders");
    assert!(html.len() < 6_000_000, "{} bytes", html.len());
}

#[test]
fn figures_are_well_formed() {
    let report = report_synthetic::report();
    let runs: Vec<_> = report.scenarios[0].controllers.iter().map(|c| &c.shown).collect();
    for quantity in [weir_report::figures::Quantity::Rate, weir_report::figures::Quantity::Delay] {
        let svg = weir_report::figures::svg("The responsiveness of three algorithms", quantity, &runs);
        let drawn = between(&svg, "<path class=\"line l", "/>");
        assert_eq!(drawn.len(), 3);
        assert!(drawn.iter().all(|d| d.matches('L').count() > 500), "each line has its points");
        assert_eq!(svg.contains("class=\"cap\""), quantity == weir_report::figures::Quantity::Rate);
        assert!(svg.len() < 100_000 && svg.ends_with("</svg>\n"), "{} bytes", svg.len());
    }
    let one: Vec<_> = report.scenarios[1].controllers[..1].iter().map(|c| &c.shown).collect();
    let svg = weir_report::figures::svg("Sending rate of GCC flows", weir_report::figures::Quantity::Rate, &one);
    assert_eq!(between(&svg, "<path class=\"line l", "/>").len(), 3);
    if let Some(dir) = std::env::var_os("WEIR_KEEP_REPORT") {
        let figure = |n, title: &str, q, scenario: usize| {
            let runs: Vec<_> = report.scenarios[scenario].controllers.iter().map(|c| &c.shown).collect();
            let path = Path::new(&dir).join(format!("fig{n}.svg"));
            let plots = weir_report::figures::over_time(q, &runs);
            weir_report::figures::write(&path, title, &plots, weir_report::figures::Format::Svg).expect("written");
        };
        figure(1, "The responsiveness of three algorithms", weir_report::figures::Quantity::Rate, 0);
        figure(2, "Packet one-way delay", weir_report::figures::Quantity::Delay, 0);
        figure(3, "Sending rates of three flows", weir_report::figures::Quantity::Rate, 1);
        figure(6, "RMCAT flow sharing links with TCP", weir_report::figures::Quantity::Rate, 2);
    }
}
