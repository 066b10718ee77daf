//! Quality metrics compared with those of ffmpeg, on the same clips. Skipped with a message without ffmpeg (Debian:
//! ffmpeg).

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::quality::{Activity, Comparer, Comparison, LumaRange, Measures, PlaneErrors, SiTi};
use weir_media::y4m::{Y4mReader, Y4mWriter};
use weir_media::{FrameRate, Picture, PictureSource, Plane};

const PICTURES: u64 = 12;

/// A clip, and a distorted version: smeared along rows and coarsely quantised, increasingly with every picture.
fn clips(character: Character, width: u32, height: u32, folder: &Path) {
    let rate = FrameRate::new(30_000, 1_001).expect("a rate");
    // Around the camera's pan.
    let mut clip = Clip::new(ClipSpec::new(character, width, height, rate)).expect("a clip");
    let writer = |name: &str| {
        let file = File::create(folder.join(name)).expect("created");
        Y4mWriter::new(BufWriter::new(file), (width, height), rate).expect("written")
    };
    let (mut reference, mut distorted) = (writer("reference.y4m"), writer("distorted.y4m"));
    let mut picture = Picture::new(width, height).expect("a size");
    for i in 0..PICTURES {
        clip.draw(190 + i, &mut picture);
        reference.write(&picture).expect("written");
        if i > 0 {
            for plane in Plane::ALL {
                let (w, _) = picture.size_of(plane);
                for row in picture.plane_mut(plane).chunks_exact_mut(w) {
                    for x in 1..w {
                        let mixed = (u32::from(row[x - 1]) * i as u32 + u32::from(row[x]) * 8) / (i as u32 + 8);
                        row[x] = (mixed as u8) & !(i as u8 & 3);
                    }
                }
            }
        }
        distorted.write(&picture).expect("written");
    }
    reference.finish().expect("written");
    distorted.finish().expect("written");
}

fn open(path: &Path) -> Y4mReader<File> {
    Y4mReader::new(path.display().to_string(), File::open(path).expect("opened")).expect("a header")
}

fn measured(folder: &Path) -> (Vec<Comparison>, Vec<SiTi>) {
    let (mut reference, mut distorted) = (open(&folder.join("reference.y4m")), open(&folder.join("distorted.y4m")));
    let (mut a, mut b) = (Picture::new(1, 1).expect("a size"), Picture::new(1, 1).expect("a size"));
    let (mut comparer, mut activity) = (Comparer::new(Measures::ALL), Activity::new(LumaRange::Stretched));
    let mut out = (vec![], vec![]);
    while reference.next_picture(&mut a).expect("read") {
        assert!(distorted.next_picture(&mut b).expect("read"));
        out.0.push(comparer.compare(&a, &b).expect("the same size"));
        out.1.push(activity.push(&a));
    }
    out
}

/// Runs a filter graph over the distorted clip and the reference; returns its standard error.
fn ffmpeg(folder: &Path, inputs: &[&str], graph: &str) -> String {
    let mut command = Command::new("ffmpeg");
    command.current_dir(folder).args(["-hide_banner", "-nostdin"]);
    for input in inputs {
        command.args(["-i", input]);
    }
    let o = command.args(["-lavfi", graph, "-f", "null", "-"]).output().expect("ffmpeg starts");
    let said = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(o.status.success(), "{said}");
    said
}

/// The number after a word such as `psnr_avg:` or `siti.si=`.
fn number(line: &str, word: &str) -> Option<f64> {
    let start = line.find(word)? + word.len();
    let text: String = line[start..].chars().take_while(|c| !c.is_whitespace()).collect();
    text.parse().ok()
}

fn near(what: &str, ours: f64, theirs: f64, by: f64) {
    assert!((ours - theirs).abs() <= by, "{what}: {ours} here, {theirs} by ffmpeg");
}

#[test]
fn ffmpeg_measures_the_same() {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        println!("skipped: no ffmpeg here (Debian: apt-get install ffmpeg)");
        return;
    }
    for (character, width, height) in
        [(Character::TalkingHead, 176, 144), (Character::HandHeld, 351, 287), (Character::Sports, 321, 182)]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        clips(character, width, height, folder);
        let (comparisons, activity) = measured(folder);
        assert_eq!(comparisons.len() as u64, PICTURES);
        let both = ["distorted.y4m", "reference.y4m"];

        let said = ffmpeg(folder, &both, "psnr=stats_file=psnr.log");
        let log = std::fs::read_to_string(folder.join("psnr.log")).expect("a log");
        assert_eq!(log.lines().count() as u64, PICTURES);
        let mut all = PlaneErrors::default();
        for (line, c) in log.lines().zip(&comparisons) {
            let p = c.errors.psnr();
            all.add(&c.errors);
            for (word, ours) in [("psnr_y:", p.y), ("psnr_u:", p.u), ("psnr_v:", p.v), ("psnr_avg:", p.average)] {
                // Equal pictures have none. Two decimals are printed.
                match number(line, word).filter(|v| v.is_finite()) {
                    Some(theirs) => near(word, ours, theirs, 0.0051),
                    None => assert_eq!(ours, 100.0, "{line}"),
                }
            }
        }
        let summary = said.lines().find(|l| l.contains("PSNR y:")).expect("a summary");
        near("PSNR of all", all.psnr().average, number(summary, "average:").expect("a number"), 1e-5);
        near("PSNR of luma", all.psnr().y, number(summary, " y:").expect("a number"), 1e-5);

        ffmpeg(folder, &both, "ssim=stats_file=ssim.log");
        let log = std::fs::read_to_string(folder.join("ssim.log")).expect("a log");
        assert_eq!(log.lines().count() as u64, PICTURES);
        for (line, c) in log.lines().zip(&comparisons) {
            let ours = c.ssim.expect("measured");
            near("SSIM", ours.overlapped, number(line, "Y:").expect("a number"), 2e-6);
            // Other windows and constants, as described at quality::Ssim: close, but not equal.
            near("tiled SSIM", ours.tiled, ours.overlapped, 0.05);
        }
        assert!(comparisons[11].ssim.expect("measured").tiled < 0.97, "the clips differ");

        let said = ffmpeg(folder, &both[1..], "siti,metadata=print:file=siti.log");
        let log = std::fs::read_to_string(folder.join("siti.log")).expect(&said);
        let values = |word: &str| -> Vec<f64> { log.lines().filter_map(|l| number(l, word)).collect() };
        let (si, ti) = (values("siti.si="), values("siti.ti="));
        assert_eq!((si.len() as u64, ti.len() as u64), (PICTURES, PICTURES));
        for (i, a) in activity.iter().enumerate() {
            near("SI", a.si, si[i], 0.011);
            // The first has none; ffmpeg reports zero.
            near("TI", a.ti.unwrap_or(0.0), ti[i], 0.011);
        }
        assert!(activity[3].ti > Some(1.0));
    }
}
