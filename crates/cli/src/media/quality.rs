//! `weir media quality`.

mod input;

pub(super) use input::wrong;

use crate::args::QualityArgs;
use crate::output::{Failure, check_apart, print, print_report, remark};
use crate::progress::Progress;
use crate::session::Session;
use crate::{Done, tables};
use input::Input;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use weir_codecs::Vmaf;
use weir_lab::scenario::InputError;
use weir_media::Picture;
use weir_media::quality::{Activity, Comparer, Comparison, Distribution, LumaRange, Measures, PlaneErrors, SiTi};
use weir_report::atomic_write::write_atomically;

/// A measure over all pictures.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Measure"))]
struct Summary {
    /// The measure by name.
    metric: &'static str,
    /// Its unit; nothing where it has none.
    unit: &'static str,
    /// Mean over the pictures.
    mean: Option<f64>,
    /// Their standard deviation.
    sigma: Option<f64>,
    /// The smallest.
    min: Option<f64>,
    /// The 5th percentile.
    p5: Option<f64>,
    /// The median.
    median: Option<f64>,
    /// The largest.
    max: Option<f64>,
    #[serde(skip)]
    spread: Distribution,
}

/// Output of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Report {
    /// The reference's name.
    reference: String,
    /// The name of the file compared with it.
    distorted: String,
    /// Width of the pictures.
    width: u32,
    /// Their height.
    height: u32,
    /// Pictures compared.
    pictures: u64,
    /// The one of the two that has more pictures, if one has.
    longer: Option<&'static str>,
    /// Pictures that are equal to their reference, whose PSNR is given as 100 dB.
    equal: u64,
    /// PSNR of the mean squared error of luma over all pictures, in dB.
    psnr_of_mse_y: f64,
    /// The same over all samples, luma and chroma, in dB.
    psnr_of_mse_average: f64,
    /// The measures.
    metrics: Vec<Summary>,
}

/// Name and unit of each measure of a picture; VMAF follows where it is measured.
const METRICS: [(&str, &str); 12] = [
    ("psnr_y", "dB"),
    ("psnr_u", "dB"),
    ("psnr_v", "dB"),
    ("psnr_average", "dB"),
    ("psnr_weighted", "dB"),
    ("ssim_tiled", ""),
    ("ssim_overlapped", ""),
    ("ssim_gaussian", ""),
    ("si_reference", ""),
    ("ti_reference", ""),
    ("si_distorted", ""),
    ("ti_distorted", ""),
];

/// In the order of [`METRICS`].
fn values(c: &Comparison, reference: SiTi, distorted: SiTi) -> [Option<f64>; METRICS.len()] {
    let (p, ssim) = (c.errors.psnr(), c.ssim);
    let psnr = [p.y, p.u, p.v, p.average, p.weighted].map(Some);
    let [y, u, v, average, weighted] = psnr;
    let (tiled, overlapped) = (ssim.map(|s| s.tiled), ssim.map(|s| s.overlapped));
    let (r, d) = (reference, distorted);
    [y, u, v, average, weighted, tiled, overlapped, c.gaussian, Some(r.si), r.ti, Some(d.si), d.ti]
}

const VMAF: (&str, &str) = ("vmaf", "");

struct Measured {
    metrics: Vec<(&'static str, &'static str)>,
    spreads: Vec<Distribution>,
    errors: PlaneErrors,
    pictures: u64,
    equal: u64,
    longer: Option<&'static str>,
}

/// Compares all pictures, and writes a line of CSV for each.
fn measure(
    session: &Session,
    args: &QualityArgs,
    reference: &mut Input,
    distorted: &mut Input,
    mut csv: Option<&mut dyn Write>,
) -> Result<Measured, Failure> {
    let total = [reference.pictures, distorted.pictures].into_iter().flatten().min();
    let progress = Progress::pictures(args.quiet, total);
    let (width, height) = reference.source.size();
    // Absent where libvmaf is not built in, or the pictures are too small for it.
    let mut vmaf = Vmaf::new(width, height).ok();
    let metrics: Vec<_> = METRICS.into_iter().chain(vmaf.is_some().then_some(VMAF)).collect();
    let mut comparer = Comparer::new(Measures::ALL);
    let mut activity = [Activity::new(args.luma.into()), Activity::new(args.luma.into())];
    let spreads = metrics.iter().map(|(name, _)| match name.split('_').next() {
        Some("psnr") => Distribution::of_decibels(),
        Some("ssim") => Distribution::of_similarity(),
        Some("vmaf") => Distribution::new(0.0, 0.01, 10_001),
        _ => Distribution::of_activity(),
    });
    let spreads = spreads.collect();
    let errors = PlaneErrors::default();
    let mut m = Measured { metrics, spreads, errors, pictures: 0, equal: 0, longer: None };
    // VMAF comes when all pictures have been seen: until then their lines wait.
    let mut waiting: Vec<String> = Vec::new();
    let black = || Picture::new(1, 1).map_err(Failure::work);
    let (mut a, mut b) = (black()?, black()?);
    let write_failed = |e: io::Error| Failure::work(format!("{}: {e}", shown(args.frames.as_deref())));
    if let Some(out) = &mut csv {
        let names: Vec<_> = m.metrics.iter().map(|m| m.0).collect();
        writeln!(out, "picture,{}", names.join(",")).map_err(write_failed)?;
    }
    loop {
        if session.stopped() {
            return Err(Failure::Interrupted);
        }
        match (reference.next(session, &mut a)?, distorted.next(session, &mut b)?) {
            (true, true) => {}
            (false, false) => break,
            (more, _) => {
                m.longer = Some(if more { "reference" } else { "distorted" });
                break;
            }
        }
        let compared = comparer.compare(&a, &b).map_err(|e| wrong(&distorted.name, e))?;
        let row = values(&compared, activity[0].push(&a), activity[1].push(&b));
        m.spreads.iter_mut().zip(row).for_each(|(spread, v)| v.into_iter().for_each(|v| spread.add(v)));
        m.errors.add(&compared.errors);
        m.equal += u64::from(compared.errors.squared == [0; 3]);
        if let Some(vmaf) = &mut vmaf {
            vmaf.push(&a, &b).map_err(Failure::work)?;
        }
        if let Some(out) = &mut csv {
            let cells: Vec<_> = row.iter().map(|v| v.map_or(String::new(), |v| format!("{v:.6}"))).collect();
            let line = format!("{},{}", m.pictures, cells.join(","));
            if vmaf.is_some() {
                waiting.push(line);
            } else {
                writeln!(out, "{line}").map_err(write_failed)?;
            }
        }
        m.pictures += 1;
        progress.set(m.pictures);
    }
    if let (Some(vmaf), true) = (vmaf, m.pictures > 0) {
        let scores = vmaf.finish().map_err(Failure::work)?.pictures;
        let spread = m.spreads.last_mut();
        spread.into_iter().for_each(|spread| scores.iter().for_each(|score| spread.add(*score)));
        if let Some(out) = &mut csv {
            for (line, score) in waiting.iter().zip(&scores) {
                writeln!(out, "{line},{score:.6}").map_err(write_failed)?;
            }
        }
    }
    Ok(m)
}

pub(super) fn shown(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |p| p.display().to_string())
}

pub(super) fn quality(session: &Session, args: &QualityArgs) -> Done {
    if args.reference == "-" && args.distorted == "-" {
        return Err(wrong("-", "only one of the two can come from standard input"));
    }
    for (option, file) in [("--frames", &args.frames), ("--cdf", &args.cdf)] {
        let read = [Path::new(&args.reference), Path::new(&args.distorted)];
        file.as_ref().map_or(Ok(()), |file| check_apart(option, file, read))?;
    }
    let (mut reference, mut distorted) =
        (Input::open(session, &args.reference, args)?, Input::open(session, &args.distorted, args)?);
    let (r, d) = (reference.source.size(), distorted.source.size());
    if r != d {
        let message = format!("its pictures are {}x{}, those of {} are {}x{}", d.0, d.1, args.reference, r.0, r.1);
        let help = format!("ffmpeg -i {} -vf scale={}:{} OUT.y4m brings them to one size", args.distorted, r.0, r.1);
        return Err(InputError::whole(&args.distorted, message).help(help).into());
    }
    let measured = match &args.frames {
        None => measure(session, args, &mut reference, &mut distorted, None)?,
        Some(path) => whole(path, |out| measure(session, args, &mut reference, &mut distorted, Some(out)))?,
    };
    if measured.pictures == 0 {
        return Err(wrong(&args.distorted, "there is not one picture to compare"));
    }
    let report = report(args, r, measured);
    if let Some(path) = &args.cdf {
        whole(path, |out| cdf(&report, out).map_err(|e| Failure::work(format!("{}: {e}", path.display()))))?;
    }
    // A clip has no end, and so is always the longer one.
    if let (Some(longer), false) = (report.longer, args.quiet) {
        let name = if longer == "reference" { &args.reference } else { &args.distorted };
        if Path::new(name).exists() || name == "-" {
            remark(&format!("{name} has more pictures than the other: {} compared", report.pictures));
        }
    }
    if args.json { print_report("quality", &report) } else { print(&table(&report)) }
}

/// Writes a file that exists complete or not at all, even if something fails.
pub(super) fn whole<T>(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<T, Failure>) -> Result<T, Failure> {
    let mut done = None;
    let written = write_atomically(path, |out| {
        let result = fill(out);
        let failed = result.is_err();
        done = Some(result);
        if failed { Err(io::Error::other("ended early")) } else { Ok(()) }
    });
    match (done, written) {
        (Some(Err(e)), _) => Err(e),
        (_, Err(e)) => Err(Failure::work(format!("cannot write {}: {e}", path.display()))),
        (Some(Ok(value)), Ok(())) => Ok(value),
        (None, Ok(())) => Err(Failure::work(format!("nothing was written to {}", path.display()))),
    }
}

fn report(args: &QualityArgs, (width, height): (u32, u32), m: Measured) -> Report {
    let psnr = m.errors.psnr();
    let summary = |((metric, unit), spread): ((&'static str, &'static str), Distribution)| Summary {
        metric,
        unit,
        mean: spread.mean(),
        sigma: spread.sigma(),
        min: spread.min(),
        p5: spread.quantile(0.05),
        median: spread.quantile(0.5),
        max: spread.max(),
        spread,
    };
    Report {
        reference: args.reference.clone(),
        distorted: args.distorted.clone(),
        width,
        height,
        pictures: m.pictures,
        longer: m.longer,
        equal: m.equal,
        psnr_of_mse_y: psnr.y,
        psnr_of_mse_average: psnr.average,
        metrics: m.metrics.into_iter().zip(m.spreads).map(summary).collect(),
    }
}

fn cdf(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "metric,value,share")?;
    for m in &report.metrics {
        for (value, share) in m.spread.cdf() {
            writeln!(out, "{},{value:.4},{share:.6}", m.metric)?;
        }
    }
    Ok(())
}

fn table(r: &Report) -> String {
    let mut t = tables::table(&["metric", "mean", "sigma", "min", "5 %", "median", "max"], 1);
    for m in &r.metrics {
        let digits = if m.metric.starts_with("ssim") { 4 } else { 2 };
        let show = |v: Option<f64>| v.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
        let unit = if m.unit.is_empty() { String::new() } else { format!(" ({})", m.unit) };
        let numbers = [m.mean, m.sigma, m.min, m.p5, m.median, m.max].map(show);
        t.add_row([vec![format!("{}{unit}", m.metric)], numbers.to_vec()].concat());
    }
    let equal = if r.equal == 0 { String::new() } else { format!(", {} equal (100 dB)", r.equal) };
    let heading =
        format!("{} beside {}: {} pictures of {}x{}{equal}", r.distorted, r.reference, r.pictures, r.width, r.height);
    let (luma, all) = (r.psnr_of_mse_y, r.psnr_of_mse_average);
    let note = format!("PSNR of the mean squared error: luma {luma:.2} dB, all samples {all:.2} dB");
    format!("{}\n{t}\n{}\n", tables::fold(&heading), tables::fold(&note))
}

impl From<crate::args::Luma> for LumaRange {
    fn from(luma: crate::args::Luma) -> Self {
        match luma {
            crate::args::Luma::Stored => Self::Stored,
            crate::args::Luma::Stretched => Self::Stretched,
        }
    }
}
