//! Renders a report in headless Chromium and proves that its plots have drawn.

mod report_synthetic;

use std::path::Path;
use std::process::Command;

/// Chromium, without a look at the network.
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

/// What stands between two marks, for each occurrence.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    text.split(from).skip(1).filter_map(|rest| Some(rest.split_once(to)?.0)).collect()
}

#[test]
fn every_line_of_every_plot_is_drawn() {
    let report = report_synthetic::report();
    let html = weir_lab::publish::report::render(&report).expect("renders");
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(!html.contains("http://") || between(&html, "src=\"", "\"").iter().all(|s| !s.starts_with("http")));

    let dir = tempfile::tempdir().expect("a folder");
    let dir = std::env::var_os("WEIR_KEEP_REPORT").map_or(dir.path().to_owned(), Into::into);
    let file = dir.join("report.html");
    weir_lab::publish::report::write(&report, &file).expect("written");
    for theme in ["light", "dark"] {
        let Some(mut browser) = chromium(&dir.join("profile")) else {
            println!("skipped: no chromium on this machine");
            return;
        };
        let address = format!("file://{}#check&theme={theme}", file.display());
        let out = browser.arg("--dump-dom").arg(&address).output().expect("chromium runs");
        let dom = String::from_utf8_lossy(&out.stdout);
        let checked = between(&dom, "data-checked=\"", "\"");
        // One flow: 4 plots. Three flows: 3 of rates, delay, queue, loss, Jain. TCP: 4, delay, queue, loss, share.
        assert_eq!(checked, ["23"], "{theme}: {}", String::from_utf8_lossy(&out.stderr));
        let drawn = between(&dom, "data-drawn=\"", "\"");
        assert_eq!(drawn.len(), 23);
        for (i, counts) in drawn.iter().enumerate() {
            for (line, count) in counts.split(' ').enumerate() {
                let count: u32 = count.parse().expect("a number");
                // Lines at zero lie under one another; only the last of them shows.
                let hidden = dom_title(&dom, i).contains("Packets lost");
                assert!(count > 40 || hidden, "{theme}: plot {i}, line {line} has {count} pixels of its colour");
            }
        }
    }

    let shot = dir.join("report.png");
    let mut browser = chromium(&dir.join("profile")).expect("was there");
    browser.arg("--window-size=1280,2400").arg(format!("--screenshot={}", shot.display()));
    browser.arg(format!("file://{}", file.display())).output().expect("chromium runs");
    let size = std::fs::metadata(&shot).expect("a screenshot").len();
    // A blank page of this size is a PNG of under 20 kB.
    assert!(size > 100_000, "the screenshot has {size} bytes");
}

/// The caption of the plot with this number.
fn dom_title(dom: &str, plot: usize) -> String {
    between(dom, "<figcaption>", "</figcaption>")[plot].to_owned()
}

#[test]
fn figures_are_well_formed() {
    let report = report_synthetic::report();
    let runs: Vec<_> = report.scenarios[0].controllers.iter().map(|c| &c.shown).collect();
    for quantity in [weir_lab::publish::figures::Quantity::Rate, weir_lab::publish::figures::Quantity::Delay] {
        let svg = weir_lab::publish::figures::svg("The responsiveness of three algorithms", quantity, &runs);
        let drawn = between(&svg, "<path class=\"line l", "/>");
        assert_eq!(drawn.len(), 3);
        assert!(drawn.iter().all(|d| d.matches('L').count() > 500), "each line has its points");
        assert_eq!(svg.contains("class=\"cap\""), quantity == weir_lab::publish::figures::Quantity::Rate);
        assert!(svg.len() < 100_000 && svg.ends_with("</svg>\n"), "{} bytes", svg.len());
    }
    let one: Vec<_> = report.scenarios[1].controllers[..1].iter().map(|c| &c.shown).collect();
    let svg =
        weir_lab::publish::figures::svg("Sending rate of GCC flows", weir_lab::publish::figures::Quantity::Rate, &one);
    assert_eq!(between(&svg, "<path class=\"line l", "/>").len(), 3);
    if let Some(dir) = std::env::var_os("WEIR_KEEP_REPORT") {
        let figure = |n, title: &str, q, scenario: usize| {
            let runs: Vec<_> = report.scenarios[scenario].controllers.iter().map(|c| &c.shown).collect();
            let path = Path::new(&dir).join(format!("fig{n}.svg"));
            weir_lab::publish::figures::write(&path, title, &weir_lab::publish::figures::over_time(q, &runs))
                .expect("written");
        };
        figure(1, "The responsiveness of three algorithms", weir_lab::publish::figures::Quantity::Rate, 0);
        figure(2, "Packet one-way delay", weir_lab::publish::figures::Quantity::Delay, 0);
        figure(3, "Sending rates of three flows", weir_lab::publish::figures::Quantity::Rate, 1);
        figure(6, "RMCAT flow sharing links with TCP", weir_lab::publish::figures::Quantity::Rate, 2);
    }
}
