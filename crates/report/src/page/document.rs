//! A page of measurements that are no runs of scenarios, such as a call's: facts, tables and plots in the form of reports.

use super::charts::{Chart, Charts, Raw, Thinned, chart};
use super::seeds::Join;
use super::tables::{Row, Table, column};
use super::{File, MAX_POINTS, Page, PageData, ReportError, Section, SectionData, add_file, paragraphs};
use weir_lab::compare::ScenarioText;

/// Bytes of the data of all plots, about; beyond that, lines have fewer points.
const DATA_BUDGET: usize = 1_100_000;

/// A line of a plot: values at the plot's interval, NaN where there is none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DocumentLine {
    /// Its name; lines of one group with the same name share a legend's entry and a style.
    pub label: String,
    /// Number of its style, 0 to 7; `None` for a capacity, in grey.
    pub style: Option<u8>,
    /// The values.
    pub values: Vec<f64>,
}

/// A plot over time.
#[derive(Clone, PartialEq, Debug)]
pub struct DocumentChart {
    /// The quantity plotted.
    pub title: String,
    /// Its unit.
    pub unit: &'static str,
    /// Time of the first value, in s.
    pub start_s: f64,
    /// Distance between values, in s.
    pub interval_s: f64,
    /// Step to which values are rounded.
    pub step: f64,
    /// Whether points joined for the screen keep the largest value; their mean otherwise.
    pub peaks: bool,
    /// Its lines; those without a single value are left out, and a plot without lines is too.
    pub lines: Vec<DocumentLine>,
    /// Times in s, in order, and a line of text each: those of a point's interval are shown under the cursor.
    pub notes: Vec<(f64, String)>,
}

/// A table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DocumentTable {
    /// Its heading.
    pub caption: String,
    /// Heading of the first column.
    pub first: &'static str,
    /// Heading, unit and meaning of each further column.
    pub columns: Vec<(&'static str, &'static str, &'static str)>,
    /// The first column's cell and the others.
    pub rows: Vec<(String, Vec<String>)>,
}

/// A section: one call, for example.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DocumentSection {
    /// Heading.
    pub title: String,
    /// Plain text below it; blank lines separate paragraphs.
    pub doc: String,
    /// Names and values.
    pub facts: Vec<(String, String)>,
    /// A scenario to run, which the page contains.
    pub scenario: Option<ScenarioText>,
    /// Headings, and plots that share a legend.
    pub charts: Vec<(String, Vec<DocumentChart>)>,
    /// Tables.
    pub tables: Vec<DocumentTable>,
}

/// The page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Document {
    /// Heading.
    pub title: String,
    /// One or two sentences below it.
    pub summary: String,
    /// The sections.
    pub sections: Vec<DocumentSection>,
    /// Terms and what they mean, at the end.
    pub notes: Vec<(String, String)>,
}

/// The page as HTML, one file without external resources.
pub fn render_document(document: &Document) -> Result<String, ReportError> {
    let charts = document.sections.iter().flat_map(|s| &s.charts).flat_map(|g| &g.1);
    let lines: usize = charts.map(|c| c.lines.len()).sum();
    let points = (DATA_BUDGET / 5 / lines.max(1)).clamp(150, MAX_POINTS);
    let (mut sections, mut data, mut files) = (Vec::new(), Vec::new(), Vec::<File>::new());
    for (i, s) in document.sections.iter().enumerate() {
        let mut charts = Charts { groups: Vec::new() };
        for (title, plots) in &s.charts {
            charts.add(title, plots.iter().filter_map(|plot| drawn(plot, points)).collect());
        }
        sections.push(Section {
            id: format!("s{i}"),
            title: s.title.clone(),
            paragraphs: paragraphs(&s.doc),
            facts: s.facts.clone(),
            command: String::new(),
            file: s.scenario.as_ref().map(|source| add_file(&mut files, source)),
            tables: s.tables.iter().map(table).collect(),
            has_charts: !charts.groups.is_empty(),
        });
        data.push(SectionData { title: s.title.clone(), seeds: vec![1], charts, cdfs: Vec::new() });
    }
    Page {
        title: &document.title,
        summary: &document.summary,
        sections,
        files,
        data: PageData { quantities: &[], shares: &[], contenders: Vec::new(), sections: data, csv: None },
        notes: &document.notes,
        ..Page::default()
    }
    .render()
}

fn drawn(plot: &DocumentChart, points: usize) -> Option<Chart> {
    let has_value = |line: &&DocumentLine| line.values.iter().any(|v| v.is_finite());
    let raw: Vec<Raw> = (plot.lines.iter().filter(has_value))
        .map(|line| Raw {
            label: line.label.clone(),
            style: line.style.map_or(-1, i32::from),
            values: line.values.clone(),
            all: None,
        })
        .collect();
    let thin = if plot.peaks { Join::Max } else { Join::Mean };
    let thinned = Thinned::new(plot.interval_s, points, plot.step, thin);
    (!raw.is_empty())
        .then(|| chart(&plot.title, plot.unit, raw, thinned, None).starting(plot.start_s).with_notes(&plot.notes))
}

fn table(t: &DocumentTable) -> Table {
    Table {
        caption: t.caption.clone(),
        first: Some(t.first.into()),
        columns: t.columns.iter().map(|(name, unit, meaning)| column(name, unit, meaning)).collect(),
        rows: t
            .rows
            .iter()
            .map(|(label, cells)| Row { label: label.clone(), style: None, cells: cells.clone() })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_facts_tables_and_plots_and_nothing_of_comparisons() {
        let line =
            |label: &str, values: &[f64]| DocumentLine { label: label.into(), style: Some(1), values: values.to_vec() };
        let chart = DocumentChart {
            title: "Rate".into(),
            unit: "kbit/s",
            start_s: 5.0,
            interval_s: 0.5,
            step: 1.0,
            peaks: false,
            lines: vec![line("sent", &[100.0, f64::NAN, 300.2]), line("none", &[f64::NAN; 3])],
            notes: vec![(5.2, "packet <1>".into())],
        };
        let section = DocumentSection {
            title: "One call".into(),
            facts: vec![("Codec".into(), "<VP8>".into())],
            charts: vec![("Rates".into(), vec![chart])],
            tables: vec![DocumentTable {
                caption: "Sums".into(),
                first: "Quantity",
                columns: vec![("Weir", "", "this end")],
                rows: vec![("packets".into(), vec!["7".into()])],
            }],
            ..DocumentSection::default()
        };
        let document = Document {
            title: "Calls".into(),
            sections: vec![section],
            notes: vec![("Sent".into(), "What was sent.".into())],
            ..Document::default()
        };
        let html = render_document(&document).expect("renders");
        let data = html.split_once("id=\"data\">").and_then(|(_, rest)| rest.split_once("</script>")).expect("data").0;
        let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
        let chart = &data["sections"][0]["groups"][0]["charts"][0];
        assert_eq!((&chart["t0"], &chart["dt"]), (&5.5.into(), &0.5.into()));
        let lines = chart["lines"].as_array().expect("lines");
        assert_eq!((lines.len(), &lines[0]["v"]), (1, &serde_json::json!([100, null, 300])));
        assert_eq!(chart["notes"], serde_json::json!([[5.2, "packet <1>"]]));
        for there in ["&lt;VP8&gt;", ">Quantity</th>", "<td>7</td>", "What was sent."] {
            assert!(html.contains(there), "{there}");
        }
        assert!(!html.contains("Jain") && !html.contains("<VP8>"), "terms of comparisons, or text as markup");
    }
}
