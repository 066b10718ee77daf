//! C programs with the installed library: the examples by CMake and Meson, and misuse under valgrind and the sanitizers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Runs a command; returns what it printed.
fn run(command: &mut Command) -> String {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}: ./test installs what is needed"));
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command:?}: {}\n{text}", out.status);
    text
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// Where cargo put the libraries that it built for tests.
fn libraries() -> PathBuf {
    let here = std::env::current_exe().expect("this program's path");
    here.parent().expect("deps of a profile").to_owned()
}

/// The installed library.
struct Installed {
    prefix: PathBuf,
}

impl Installed {
    fn path(&self) -> &Path {
        &self.prefix
    }
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("PKG_CONFIG_PATH", self.path().join("lib/pkgconfig"));
        command.env("LD_LIBRARY_PATH", self.path().join("lib")).current_dir(self.path());
        command
    }
    /// Flags of pkg-config.
    fn flags(&self, wanted: &[&str]) -> Vec<String> {
        let text = run(self.command("pkg-config").args(wanted).arg("weir"));
        text.split_whitespace().map(str::to_owned).collect()
    }
    /// Compiles a C program with warnings as errors.
    fn compile(&self, source: &Path, name: &str, flags: &[&str]) -> PathBuf {
        let program = self.path().join(name);
        let strict = ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
        run(self
            .command("cc")
            .args(strict)
            .args(flags)
            .arg(source)
            .arg("-o")
            .arg(&program)
            .args(self.flags(&["--cflags", "--libs"]))
            .arg("-lpthread"));
        program
    }
}

fn installed() -> &'static Installed {
    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // Below the target folder, one for all runs: it holds hundreds of megabytes.
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c");
        let _ = std::fs::remove_dir_all(&prefix);
        let script = root().join("crates/capi/install.sh");
        run(Command::new(script).arg("--from").arg(libraries()).arg("--prefix").arg(&prefix));
        Installed { prefix }
    })
}

/// Reads the last line of the example: the share of the link that it used, in percent.
fn share(printed: &str) -> f64 {
    let (_, rest) = printed.split_once("carried: ").expect("the share");
    rest.split(' ').next().and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
fn the_example_builds_with_cmake_and_uses_its_link() {
    let lib = installed();
    let source = root().join("examples/c");
    run(lib.command("cmake").arg("-S").arg(&source).args(["-B", "cmake"]));
    run(lib.command("cmake").args(["--build", "cmake"]));
    for controller in ["gcc", "nada", "scream2", "sluice"] {
        let printed = run(lib.command("cmake/call").arg(controller));
        let used = share(&printed);
        assert!((60.0..=100.0).contains(&used), "{controller}: {used} %\n{printed}");
        // The same every time.
        assert_eq!(printed, run(lib.command("cmake/call").arg(controller)));
    }
    let out = lib.command("cmake/call").args(["gcc", "beta=7"]).output().expect("runs");
    assert!(!out.status.success() && String::from_utf8_lossy(&out.stderr).contains("parameter `beta`"), "{out:?}");
}

#[test]
fn the_example_builds_with_meson_and_uses_its_link() {
    let lib = installed();
    run(lib.command("meson").args(["setup", "meson"]).arg(root().join("examples/c")));
    run(lib.command("meson").args(["compile", "-C", "meson"]));
    let used = share(&run(&mut lib.command("meson/call")));
    assert!((60.0..=100.0).contains(&used), "{used} %");
    let policy = concat!("onnx:", env!("CARGO_MANIFEST_DIR"), "/../../examples/python/policy.onnx");
    let out = lib.command("meson/call").arg(policy).output().expect("runs");
    let printed = String::from_utf8_lossy(&out.stdout);
    if cfg!(feature = "onnx") {
        let used = share(&printed);
        assert!((40.0..=100.0).contains(&used) && printed.contains("\ninvalid_outputs 0\n"), "{used} %\n{printed}");
    } else {
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && said.contains("install.sh --onnx"), "{said}");
    }
}

#[test]
fn the_programs_of_the_documentation_run() {
    let lib = installed();
    let text = std::fs::read_to_string(root().join("docs/c.md")).expect("docs/c.md");
    let programs: Vec<&str> = text.split("```c\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(programs.len() >= 2, "{}", programs.len());
    for (i, program) in programs.iter().enumerate() {
        let source = lib.path().join(format!("block{i}.c"));
        std::fs::write(&source, program).expect("writable");
        let made = lib.compile(&source, &format!("block{i}"), &[]);
        run(&mut lib.command(made.to_str().expect("UTF-8")));
    }
}

#[test]
fn the_adapter_for_libwebrtc_fits_its_interface_and_uses_a_link() {
    let lib = installed();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    // The interface of today, and of releases without OnReceivedPacket.
    for release in ["-DWEIR_STANDIN", "-DWEIR_WITHOUT_RECEIVED_PACKET"] {
        let strict = ["-std=c++17", "-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", release];
        let mut compile = lib.command("c++");
        compile.args(strict).arg("-I").arg(here.join("standin")).arg(here.join("network_controller.cpp"));
        run(compile.args(["-o", "network-controller"]).args(lib.flags(&["--cflags", "--libs"])));
        assert!(run(&mut lib.command("./network-controller")).contains("0 faults"));
    }
}

#[test]
fn misuse_gives_errors_and_nothing_else() {
    let lib = installed();
    let source = root().join("crates/capi/tests/c/hostile.c");
    let plain = lib.compile(&source, "hostile", &[]);
    assert!(run(&mut lib.command(plain.to_str().expect("UTF-8"))).contains("0 faults"));
}

#[test]
fn misuse_under_the_sanitizers_is_clean() {
    let lib = installed();
    let source = root().join("crates/capi/tests/c/hostile.c");
    let sanitized =
        lib.compile(&source, "hostile-asan", &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    assert!(run(&mut lib.command(sanitized.to_str().expect("UTF-8"))).contains("0 faults"));
}

#[test]
fn misuse_under_valgrind_is_clean() {
    let lib = installed();
    let plain = lib.compile(&root().join("crates/capi/tests/c/hostile.c"), "hostile-valgrind", &[]);
    let checks = ["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect,possible"];
    let printed = run(lib.command("valgrind").args(checks).arg(plain).arg("20"));
    assert!(printed.contains("0 faults") && printed.contains("ERROR SUMMARY: 0 errors"), "{printed}");
}

#[cfg(feature = "lab")]
const SHORT: &str = r#"
title = "Short"
duration = "10 s"
compare = ["gcc"]
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
queue = "200 ms"
[rtp.call]
controller = "$controller"
"#;

#[cfg(feature = "lab")]
#[test]
fn a_simulation_has_the_numbers_of_the_command_line() {
    let lib = installed();
    // Cargo builds a package's programs for its own tests alone; the command line's tests come with the workspace's.
    let binary = libraries().parent().expect("a profile").join("weir");
    assert!(binary.is_file(), "{}: build it with `cargo build -p weir`", binary.display());
    let program = lib.compile(&root().join("crates/capi/tests/c/simulate.c"), "simulate", &[]);
    let file = lib.path().join("short.toml");
    std::fs::write(&file, SHORT).expect("writable");
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    let mut all = Vec::new();
    for (controller, seed) in [("gcc", "1"), ("nada", "7")] {
        let mut weir = Command::new(&binary);
        weir.arg("run").arg(&file).args(["--controller", controller, "--seed", seed, "--json"]);
        let out = weir.output().expect("runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let mut printed = json(&String::from_utf8(out.stdout).expect("UTF-8"));
        printed.as_object_mut().expect("an object").remove("schema").expect("a schema");
        let mut simulate = lib.command(program.to_str().expect("UTF-8"));
        let ours = json(&run(simulate.arg(&file).args([controller, seed])));
        assert_eq!(ours, printed, "{controller} {seed}");
        // A scenario's text, of another name than the file.
        let mut simulate = lib.command(program.to_str().expect("UTF-8"));
        let text = json(&run(simulate.args([SHORT, controller, seed])));
        assert_eq!(text["flows"], printed["flows"]);
        all.push(printed);
    }
    assert_ne!(all[0]["flows"], all[1]["flows"]);
    let out = lib.command(program.to_str().expect("UTF-8")).args(["[links.x]\nrat = 1", "gcc", "1"]).output();
    let said = String::from_utf8(out.expect("runs").stderr).expect("UTF-8");
    assert!(said.contains("rate"), "{said}");
}
