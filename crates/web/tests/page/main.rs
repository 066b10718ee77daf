//! The exported folder behind a plain file server, in a browser: the bytes of results, and the page.

#[expect(dead_code, reason = "shared with the coverage map's page")]
#[path = "../../../coverage/tests/page/browser.rs"]
mod browser;
mod captures;
mod files;
mod recordings;

use browser::Browser;
use files::FileServer;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_web::answer::answer;

/// Exit status of the export without the compiler's target.
const NO_TARGET: i32 = 3;
/// Greatest size of the WebAssembly after `gzip -9`, in bytes.
const MAX_COMPRESSED: usize = 2_000_000;
/// For the first results after navigation, in ms: a second on a quiet machine, and tests run beside each other.
const FIRST_RESULTS_MS: f64 = 6_000.0;

/// Scenario, controller, seed and duration of runs whose bytes are compared; the file's own where there is none. Together they
/// have each kind of controller, queue, medium, transport and repair, and so the functions that platforms compute differently.
const RUNS: [(&str, Option<&str>, u64, &str); 18] = [
    ("rmcat-comparison/responsiveness", Some("gcc"), 1, "200 s"),
    ("rmcat-comparison/responsiveness", Some("nada"), 2, "200 s"),
    ("rmcat-comparison/responsiveness", Some("scream"), 3, "200 s"),
    ("rmcat-comparison/responsiveness", Some("sluice"), 4, "200 s"),
    ("rmcat-comparison/random-loss", Some("nada"), 7, "20 s"),
    ("coverage/bus-ride", None, 1, "20 s"),
    ("dccp/beside-tcp", None, 1, "10 s"),
    ("dccp-video/bit-rate-interval-testbed", None, 1, "20 s"),
    ("examples/applications", None, 1, "20 s"),
    ("examples/lte", Some("gcc"), 5, "20 s"),
    ("examples/wifi", Some("scream"), 5, "20 s"),
    ("fbra/variable-capacity", None, 1, "20 s"),
    ("multipath/bursty-loss", None, 1, "20 s"),
    ("queues/ecn-faults", None, 1, "10 s"),
    ("queues/token-buckets", Some("nada"), 1, "20 s"),
    ("rfc8867/5.7-short-tcp", Some("gcc"), 9, "20 s"),
    ("rtp-cc-thesis/circuit-breaker", None, 1, "20 s"),
    ("rtp-cc-thesis/slow-link", None, 1, "20 s"),
];
/// A simulator that stops at each request: WebAssembly with the functions' names, whose answer is the instruction `unreachable`.
const STOPS: &[u8] = b"\0asm\x01\0\0\0\x01\x0a\x02\x60\x01\x7f\x01\x7f\x60\0\x01\x7f\x03\x05\x04\0\x01\0\0\x05\x03\x01\0\x01\x07\x47\x05\
    \x06memory\x02\0\x0cweir_reserve\0\0\x0bweir_answer\0\x01\x0bweir_output\0\x02\x0fweir_output_len\0\x03\
    \x0a\x14\x04\x04\0\x41\x08\x0b\x03\0\0\x0b\x04\0\x41\0\x0b\x04\0\x41\0\x0b";

/// The exported folder; `None` if this machine cannot build for browsers.
fn export() -> Option<PathBuf> {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = temporary.join("lab");
    let made = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("export.sh"))
        .arg(&folder)
        .env("CARGO_TARGET_DIR", temporary.parent().expect("the target folder"))
        .output()
        .expect("bash runs");
    let (out, err) = (String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&made.stderr));
    if made.status.code() == Some(NO_TARGET) {
        println!("skipped: {err}");
        return None;
    }
    assert!(made.status.success(), "{err}");
    println!("{out}");
    let stops = folder.join("stops");
    std::fs::create_dir_all(&stops).expect("made");
    std::fs::copy(folder.join("worker.js"), stops.join("worker.js")).expect("copied");
    std::fs::write(stops.join("weir.wasm"), STOPS).expect("written");
    let compressed = out.split("(gzip -9) ").nth(1).and_then(|t| t.split(';').next()).expect("its size");
    assert!((100_000..MAX_COMPRESSED).contains(&compressed.parse().expect("a number")), "{out}");
    Some(folder)
}

struct Lab {
    browser: Browser,
    server: FileServer,
    _profile: tempfile::TempDir,
}

impl Lab {
    async fn start(folder: PathBuf) -> Option<Self> {
        let profile = tempfile::tempdir().expect("a folder");
        let Some(browser) = Browser::start(profile.path(), &[]).await else {
            println!("skipped: no chromium on this machine");
            return None;
        };
        Some(Self { browser, server: FileServer::start(folder), _profile: profile })
    }

    fn address(&self, fragment: &str) -> String {
        format!("http://{}/some/lab/{fragment}", self.server.address)
    }

    async fn open(&mut self, fragment: &str, width: u32) {
        self.browser.open("about:blank", width, 900).await;
        self.browser.open(&self.address(fragment), width, 900).await;
        self.browser.until("Number(document.body.dataset.first) > 0 && document.body.dataset.ready === 'yes'").await;
    }

    /// Does something, and waits for a further turn of results.
    async fn after(&mut self, script: &str, condition: &str) {
        let turns = self.data("turns").await;
        self.browser.eval(script).await;
        self.browser.until(&format!("Number(document.body.dataset.turns) > {turns} && ({condition})")).await;
    }

    async fn data(&mut self, name: &str) -> f64 {
        self.browser.eval(&format!("Number(document.body.dataset.{name})")).await.as_f64().expect("a number")
    }

    /// The same request to a simulator of the browser's own.
    async fn ask(&mut self, request: &Value) -> Value {
        let script = format!(
            "(async () => {{
                const {{ Engine }} = await import(new URL('engine.js', location.href).href);
                window.own ??= new Engine(1, document.baseURI);
                try {{
                    const {{ text, digest, columns, numbers }} = await window.own.ask({request});
                    return {{ text, digest, columns: columns.length, numbers: numbers.length }};
                }} catch (e) {{
                    return {{ fault: e.fault ?? String(e), restarts: window.own.restarts }};
                }}
            }})()"
        );
        self.browser.eval(&script).await
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

#[test]
fn the_exported_page_gives_the_bytes_of_this_machine_and_can_be_worked_with() {
    let Some(folder) = export() else { return };
    run(async {
        let Some(mut lab) = Lab::start(folder).await else { return };
        lab.open("", 1280).await;
        results_are_those_of_this_machine(&mut lab).await;
        a_simulator_that_stops_is_started_again(&mut lab).await;
        the_page_shows_runs_as_they_change(&mut lab).await;
        faults_are_explained(&mut lab).await;
        a_link_holds_the_setting(&mut lab).await;
        all_controllers_are_seen(&mut lab).await;
        recordings::recorded_calls_are_opened(&mut lab).await;
        assert_eq!(lab.browser.complaints, Vec::<String>::new());
        it_works_without_a_network(lab).await;
    });
}

async fn results_are_those_of_this_machine(lab: &mut Lab) {
    for (name, controller, seed, duration) in RUNS {
        let outline = answer(&json!({ "ask": "outline", "name": name }).to_string()).expect("ships");
        let outline: Value = serde_json::from_str(&outline.text).expect("JSON");
        let lines = outline["text"].as_str().expect("a text").lines();
        let shorter =
            lines.map(|l| if l.starts_with("duration = ") { format!("duration = \"{duration}\"") } else { l.into() });
        let text = shorter.collect::<Vec<_>>().join("\n");
        let request = json!({
            "ask": "run", "name": name, "text": text, "controller": controller, "seed": seed, "series": true, "digest": true,
        });
        let own = answer(&request.to_string()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let theirs = lab.ask(&request).await;
        let what = format!("{name} {controller:?} {seed}");
        assert_eq!(theirs["text"], own.text, "{what}: {theirs}");
        assert_eq!(theirs["digest"], json!(own.digest), "{what}: its series");
        assert!(own.numbers.len() > 100 && theirs["numbers"] == own.numbers.len(), "{what}");
    }
}

async fn a_simulator_that_stops_is_started_again(lab: &mut Lab) {
    let script = "(async () => {
        const { Engine } = await import(new URL('engine.js', location.href).href);
        const engine = new Engine(1, new URL('stops/', document.baseURI));
        const faults = [];
        for (let i = 0; i < 2; i++) await engine.ask({ ask: 'controllers' }).catch((e) => faults.push(e.fault));
        return { faults, restarts: engine.restarts };
    })()";
    let seen = lab.browser.eval(script).await;
    assert_eq!(seen["restarts"], 2, "{seen}");
    for fault in seen["faults"].as_array().expect("both fail") {
        assert_eq!(fault["kind"], "crash");
        let words = fault["message"].as_str().expect("a text");
        assert!(words.contains("has stopped") && words.contains("memory"), "{words}");
    }
    // More than a request may have.
    let large = lab.ask(&json!({ "ask": "outline", "name": "large", "text": "x".repeat(17 << 20) })).await;
    assert_eq!(large["fault"]["kind"], "request", "{large}");
}

/// Pixels of a plot that are neither transparent nor grey: those of its lines.
fn coloured(plot: &str) -> String {
    format!(
        "(() => {{
            const canvas = document.querySelector('#{plot} canvas');
            const {{ data }} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            let count = 0;
            for (let i = 0; i < data.length; i += 4) {{
                const [low, high] = [Math.min(data[i], data[i + 1], data[i + 2]), Math.max(data[i], data[i + 1], data[i + 2])];
                if (data[i + 3] > 150 && high - low > 60) count += 1;
            }}
            return count;
        }})()"
    )
}

async fn the_page_shows_runs_as_they_change(lab: &mut Lab) {
    let first = lab.data("first").await;
    println!("first results after {first} ms");
    assert!(first < FIRST_RESULTS_MS, "{first} ms");
    for plot in ["rates", "delays", "losses"] {
        let count = lab.browser.eval(&coloured(plot)).await.as_u64().expect("a number");
        assert!(count > 200, "{plot}: {count} pixels");
    }
    let rows = "document.querySelectorAll('#rows tr').length";
    assert_eq!(lab.browser.eval(rows).await, 3);
    for scheme in ["light", "dark"] {
        lab.browser.prefer(scheme).await;
        lab.browser.picture(&format!("lab-{scheme}"), true).await;
    }
    lab.browser.prefer("light").await;

    lab.after("document.querySelector('#controllers input[value=sluice]').click()", &format!("{rows} === 4")).await;
    let names = lab.browser.eval("JSON.parse(document.body.dataset.runs).controllers").await;
    assert_eq!(names, json!(["gcc", "nada", "scream", "sluice"]));

    // The first step of the capacity, 2 Mbit/s for 20 s, is pulled down by the mouse.
    let canvas = "document.querySelector('#rates .u-over').getBoundingClientRect()";
    lab.browser.eval("document.querySelector('#rates').scrollIntoView({ block: 'center' })").await;
    let place: Vec<f64> = serde_json::from_value(
        lab.browser
            .eval(&format!("(() => {{ const b = {canvas}; return [b.left, b.top, b.width, b.height]; }})()"))
            .await,
    )
    .expect("a place");
    let [left, top, width, height] = place[..] else { panic!("{place:?}") };
    let highest = lab.browser.eval("uPlot.sync('lab').plots[0].scales.y.max").await.as_f64().expect("a rate");
    let (x, y) = (left + width * 0.05, |kbps: f64| top + height * (1.0 - kbps / highest));
    let turns = lab.data("turns").await;
    for (kind, at, buttons) in [
        ("mouseMoved", 2_000.0, 0),
        ("mousePressed", 2_000.0, 1),
        ("mouseMoved", 1_500.0, 1),
        ("mouseMoved", 800.0, 1),
        ("mouseReleased", 800.0, 0),
    ] {
        let params = json!({ "type": kind, "x": x, "y": y(at), "button": "left", "buttons": buttons, "clickCount": 1 });
        lab.browser.call("Input.dispatchMouseEvent", params).await;
    }
    lab.browser
        .until(&format!("Number(document.body.dataset.turns) > {turns} && location.hash.includes('text=')"))
        .await;
    let line = "document.getElementById('text').value.split('\\n').find((l) => l.includes('at = \"0 s\"')).match(/rate = \"([0-9.]+) kbps\"/)[1]";
    let dragged: f64 = lab.browser.eval(line).await.as_str().expect("a rate").parse().expect("a number");
    assert!((700.0..900.0).contains(&dragged), "{dragged} kbit/s");

    // Completions by the keyboard.
    lab.browser.eval("(() => { const t = document.getElementById('text'); t.focus(); const at = t.value.indexOf('queue ='); t.setSelectionRange(at, at); })()").await;
    lab.browser.call("Input.insertText", json!({ "text": "ji" })).await;
    lab.browser.until("!document.getElementById('names').hidden").await;
    lab.browser.press("Enter", 13).await;
    lab.browser.until("document.getElementById('text').value.includes('jitterqueue')").await;
    lab.after("document.getElementById('reset').click()", "document.getElementById('reset').hidden").await;
}

async fn faults_are_explained(lab: &mut Lab) {
    let edit = "(() => { const t = document.getElementById('text'); t.value = t.value.replace('75000 B', '75000 Bytes'); t.dispatchEvent(new Event('input')); })()";
    lab.browser.eval(edit).await;
    lab.browser.until("!document.getElementById('fault').hidden").await;
    let words = lab.browser.eval("document.getElementById('fault').innerText").await;
    let words = words.as_str().expect("a text");
    let line = lab
        .browser
        .eval("document.getElementById('text').value.split('\\n').findIndex((l) => l.includes('75000')) + 1")
        .await;
    for part in [&format!("Line {line}"), "links.bottleneck.queue", "75000 Bytes", "such as"] {
        assert!(words.contains(part), "{part} is missing: {words}");
    }
    assert_eq!(lab.browser.eval("document.querySelector('#lines b').innerText").await, line.to_string());
    lab.browser.picture("lab-fault", true).await;
    lab.after("document.getElementById('reset').click()", "document.getElementById('fault').hidden").await;
}

async fn a_link_holds_the_setting(lab: &mut Lab) {
    let edit = "(() => { const t = document.getElementById('text'); t.value = t.value.replace('75000 B', '20 packets'); t.dispatchEvent(new Event('input')); })()";
    lab.after(edit, "location.hash.includes('text=')").await;
    let fragment = lab.browser.eval("location.hash").await;
    let numbers = "document.getElementById('rows').innerText";
    let before = lab.browser.eval(numbers).await;
    lab.open(fragment.as_str().expect("a text"), 390).await;
    assert_eq!(lab.browser.eval(numbers).await, before);
    assert_eq!(lab.browser.eval("document.documentElement.scrollWidth").await, 390);
    lab.browser.picture("lab-phone", true).await;
    // One that nobody wrote.
    lab.open("#scenario=no/such&text=AAAA", 390).await;
    // The last part of a name, as on the command line.
    lab.open("#scenario=token-buckets", 390).await;
    assert_eq!(lab.browser.eval("document.getElementById('scenario').value").await, "queues/token-buckets");
    // An address with a fault, and then without it again.
    let whole = lab.browser.eval("location.hash").await;
    lab.browser.eval("location.hash = '#scenario=token-bucket'").await;
    lab.browser.until("document.body.dataset.fault === 'scenario'").await;
    let words = lab.browser.eval("document.getElementById('fault').innerText").await;
    assert!(words.as_str().is_some_and(|w| w.contains("token-buckets`?")), "{words}");
    lab.browser.eval(&format!("location.hash = {whole}")).await;
    lab.browser.until("document.body.dataset.fault === '' && document.getElementById('fault').hidden").await;
}

/// Every controller can be seen without scrolling inside its box.
async fn all_controllers_are_seen(lab: &mut Lab) {
    let hidden = "(() => { const box = document.getElementById('controllers'); const edge = box.getBoundingClientRect().bottom + 1; \
                  return [...box.querySelectorAll('label')].filter((l) => l.getBoundingClientRect().bottom > edge).length; })()";
    for width in [1280, 390] {
        lab.open("", width).await;
        lab.browser.until("document.querySelectorAll('#controllers label').length > 20").await;
        assert_eq!(lab.browser.eval(hidden).await, 0, "{width} px");
    }
}

async fn it_works_without_a_network(mut lab: Lab) {
    lab.browser.until("navigator.serviceWorker.controller !== null").await;
    let address = lab.address("");
    lab.server.stop();
    lab.browser.open("about:blank", 1280, 900).await;
    lab.browser.open(&address, 1280, 900).await;
    lab.browser.until("Number(document.body.dataset.first) > 0 && document.body.dataset.ready === 'yes'").await;
    assert_eq!(lab.browser.eval("document.querySelectorAll('#rows tr').length").await, 3);
}
