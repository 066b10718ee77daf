//! Tables for people, as wide as the terminal.

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};
use std::fmt::Display;

/// Width where neither the terminal nor COLUMNS says one.
const WIDTH: u16 = 80;
/// Bounds of a width that is given.
const WIDTHS: std::ops::RangeInclusive<u16> = 40..=500;
/// Width down to which a column of text is broken into lines before columns are left out.
const NARROW: usize = 10;
/// Width up to which the column that names a row is not broken, so that names can be copied.
const NAME: usize = 52;
/// Width that a column adds to its text, in characters.
const PADDING: usize = 3;
/// Width that a table adds to its columns, in characters.
const BORDER: usize = 1;

/// Columns of the terminal: COLUMNS where it is set, else what the terminal says, else 80.
pub(crate) fn width() -> u16 {
    let given = std::env::var("COLUMNS").ok().and_then(|c| c.trim().parse().ok());
    let asked = || terminal_size::terminal_size().map(|(w, _)| w.0);
    given.or_else(asked).unwrap_or(WIDTH).clamp(*WIDTHS.start(), *WIDTHS.end())
}

/// Text broken at blanks into lines of at most the terminal's width; line ends stay, and further lines are indented as the
/// first one is.
pub(crate) fn fold(text: &str) -> String {
    fold_to(text, usize::from(width()))
}

/// Names and values side by side, values broken into lines.
pub(crate) fn pairs<N: AsRef<str>>(rows: &[(N, String)]) -> String {
    // Values begin in one column, and have at least half of the width.
    let widest = rows.iter().map(|(name, _)| name.as_ref().chars().count()).max().unwrap_or(0);
    let column = (widest + 2).clamp(15, usize::from(width()) / 2);
    let (room, gap) = (usize::from(width()) - column, format!("\n{:column$}", ""));
    let line = |(name, value): &(N, String)| {
        format!("{:<column$}{}\n", name.as_ref(), fold_to(value, room).replace('\n', &gap))
    };
    rows.iter().map(line).collect()
}

fn fold_to(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let indent = &line[..line.len() - line.trim_start_matches(' ').len()];
        let mut at = indent.len();
        out.push_str(indent);
        for (i, word) in line.trim_matches([' ', '\n']).split(' ').enumerate() {
            let length = word.chars().count();
            if i > 0 && at + 1 + length > width {
                out.push('\n');
                out.push_str(indent);
                at = indent.len();
            } else if i > 0 {
                out.push(' ');
                at += 1;
            }
            out.push_str(word);
            at += length;
        }
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// A table of texts and numbers. Shown, it is as wide as the terminal at most: texts are broken into lines, columns of numbers that
/// do not fit are named in a line below, with the width that shows them, and rows of text alone become paragraphs.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    /// Columns that name a row, and are always shown.
    keys: usize,
    /// Columns that can be spared where not all fit, the first one first.
    spare: Vec<usize>,
    rows: Vec<Vec<String>>,
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    text: bool,
}

/// A table with a heading row; all columns but the first `texts` are numbers.
pub(crate) fn table(header: &[&str], texts: usize) -> Table {
    let columns = header.iter().enumerate().map(|(i, name)| Column { name: (*name).to_owned(), text: i < texts });
    Table { columns: columns.collect(), keys: texts.min(1), spare: Vec::new(), rows: Vec::new() }
}

impl Table {
    /// So many columns name a row.
    pub(crate) fn keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// Columns, by their names, that are left out before the last ones where not all fit.
    pub(crate) fn spares(mut self, names: &[&str]) -> Self {
        self.spare = names.iter().filter_map(|n| self.columns.iter().position(|c| c.name == *n)).collect();
        self
    }

    /// The last column is text too.
    pub(crate) fn last_is_text(mut self) -> Self {
        if let Some(last) = self.columns.last_mut() {
            last.text = true;
        }
        self
    }

    pub(crate) fn add_row<T: Display>(&mut self, row: impl IntoIterator<Item = T>) {
        self.rows.push(row.into_iter().map(|cell| cell.to_string()).collect());
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn cell<'a>(&self, row: &'a [String], column: usize) -> &'a str {
        row.get(column).map_or("", String::as_str)
    }

    /// The width of a column's contents, without its name.
    fn content(&self, column: usize) -> usize {
        self.rows.iter().flat_map(|r| self.cell(r, column).lines()).map(chars).max().unwrap_or(0)
    }

    /// A column's name, in lines no wider than they need be.
    fn name(&self, column: usize) -> String {
        let c = &self.columns[column];
        if c.text {
            return c.name.clone();
        }
        let word = c.name.split(' ').map(chars).max().unwrap_or(0);
        fold_to(&c.name, self.content(column).max(word))
    }

    /// The width of a column, and that down to which it can be broken into lines, in a table of this width.
    fn widths(&self, column: usize, width: usize) -> (usize, usize) {
        let name = self.name(column).lines().map(chars).max().unwrap_or(0);
        let whole = self.content(column).max(name);
        (whole, if self.is_whole(column, whole, width) { whole } else { whole.min(NARROW) })
    }

    /// Whether a column whose widest text is so long is never broken into lines in a table of this width. Where it takes more
    /// than half of it, numbers beside it need the room; rows of text alone become paragraphs instead.
    fn is_whole(&self, column: usize, longest: usize, width: usize) -> bool {
        let names_rows = self.keys == 1 && column == 0 && longest <= NAME;
        !self.columns[column].text || (names_rows && (self.is_text() || 2 * longest <= width))
    }

    fn is_text(&self) -> bool {
        self.columns.iter().all(|c| c.text)
    }

    /// The columns that have a value in some row. Numbers of which there are none are left out.
    fn filled(&self) -> Vec<usize> {
        let is_there =
            |c: &usize| self.columns[*c].text || self.rows.iter().any(|r| !matches!(self.cell(r, *c), "" | "-"));
        (0..self.columns.len()).filter(|c| *c < self.keys || is_there(c)).collect()
    }

    /// The least width of a table of these columns that is as wide as this at most.
    fn least(&self, columns: &[usize], width: usize) -> usize {
        columns.iter().map(|c| self.widths(*c, width).1 + PADDING).sum::<usize>() + BORDER
    }

    /// The columns that fit: those that can be spared go first, then the last ones.
    fn fitting(&self, filled: &[usize], width: usize) -> Vec<usize> {
        let mut columns = filled.to_vec();
        let mut spare = self.spare.iter();
        while self.least(&columns, width) > width && columns.len() > self.keys + 1 {
            match spare.next() {
                Some(c) => columns.retain(|column| column != c),
                None => drop(columns.pop()),
            }
        }
        columns
    }

    /// Below a table that lacks columns: which, and how they are seen.
    fn remedy(&self, filled: &[usize], shown: &[usize], width: usize) -> String {
        let lacking = filled.iter().filter(|c| !shown.contains(c)).map(|c| self.columns[*c].name.as_str());
        let lacking: Vec<&str> = lacking.collect();
        let whole = (width..=usize::from(*WIDTHS.end())).find(|w| self.least(filled, *w) <= *w);
        let way = whole
            .map_or_else(|| "--json has them".into(), |w| format!("COLUMNS={w}, or a terminal as wide, shows all"));
        fold_to(&format!("Not shown: {}. {way}.", lacking.join(", ")), width)
    }

    fn part(&self, columns: &[usize], width: usize) -> String {
        let mut t = comfy_table::Table::new();
        t.load_style(UTF8_BORDERS_ONLY).set_header(columns.iter().map(|c| self.name(*c)).collect::<Vec<_>>());
        for row in &self.rows {
            t.add_row(columns.iter().map(|c| self.cell(row, *c)).collect::<Vec<_>>());
        }
        let whole: usize = columns.iter().map(|c| self.widths(*c, width).0 + PADDING).sum::<usize>() + BORDER;
        let wraps = whole > width;
        t.set_content_arrangement(if wraps { ContentArrangement::Dynamic } else { ContentArrangement::Disabled });
        t.set_width(u16::try_from(width).unwrap_or(WIDTH));
        for (column, c) in t.column_iter_mut().zip(columns) {
            if !self.columns[*c].text {
                column.set_cell_alignment(CellAlignment::Right);
            }
            if wraps && self.is_whole(*c, self.widths(*c, width).0, width) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        t.to_string()
    }

    /// Each row as a paragraph.
    fn paragraphs(&self, width: usize) -> String {
        let mut out = Vec::new();
        for row in &self.rows {
            out.push(self.cell(row, 0).to_owned());
            for (i, column) in self.columns.iter().enumerate().skip(1) {
                let cell = self.cell(row, i);
                if !cell.is_empty() {
                    out.push(fold_to(&format!("    {}: {cell}", column.name), width));
                }
            }
        }
        out.join("\n")
    }

    /// The table in lines of at most this width. Where it is text alone, rows that are too narrow to be read become paragraphs.
    pub(crate) fn fit(&self, width: u16) -> String {
        let width = usize::from(width);
        let filled = self.filled();
        let columns = self.fitting(&filled, width);
        if columns.len() == filled.len() {
            return self.part(&columns, width);
        }
        if self.is_text() {
            return self.paragraphs(width);
        }
        format!("{}\n{}", self.part(&columns, width), self.remedy(&filled, &columns, width))
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.fit(width()))
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widest(text: &str) -> usize {
        text.lines().map(chars).max().unwrap_or(0)
    }

    fn numbers() -> Table {
        let names = ["controller", "flow", "sent kbit/s", "delay ms", "Jain", "loss %", "late %", "TCP share"];
        let mut t = table(&names, 2).keys(2);
        t.add_row(["gcc-remb", "video-1", "1234 ±123", "123 ±12", "-", "0.12 ±0.34", "1.00 ±0.01", "0.50 ±0.11"]);
        t.add_row(["nada", "tcp", "12", "1234", "-", "0.1", "", "0.4"]);
        t
    }

    #[test]
    fn columns_that_do_not_fit_are_named_below_with_the_width_that_shows_them() {
        let t = numbers().spares(&["sent kbit/s"]);
        for width in [40, 60, 80] {
            let shown = t.fit(width);
            assert!(widest(&shown) <= usize::from(width), "{width}:\n{shown}");
            assert_eq!(shown.matches('┌').count(), 1, "{shown}");
            let (table, below) = shown.split_once("Not shown: ").expect("a line below");
            let below = below.replace('\n', " ");
            let (names, way) = below.split_once(". ").expect("a way");
            assert!(table.contains("gcc-remb") && table.contains("video-1"), "{shown}");
            assert!(names.starts_with("sent kbit/s") && !table.contains("1234 ±123"), "{shown}");
            assert_ne!(names.contains("TCP share"), table.contains("0.50 ±0.11"), "{shown}");
            assert!(!shown.contains("Jain"), "nothing is known of it:\n{shown}");
            let wide: u16 =
                way.strip_prefix("COLUMNS=").and_then(|w| w.split(',').next()?.parse().ok()).expect("a width");
            let whole = t.fit(wide);
            assert!(!whole.contains("Not shown") && widest(&whole) <= usize::from(wide), "{whole}");
            assert!(t.fit(wide - 1).contains("Not shown"), "{wide} is the least");
        }
    }

    #[test]
    fn where_no_width_suffices_json_does() {
        let names: Vec<String> = (0..100).map(|n| format!("column{n}")).collect();
        let mut t = table(&names.iter().map(String::as_str).collect::<Vec<_>>(), 1);
        t.add_row((0..100).map(|n| 1_000 + n));
        assert!(t.fit(80).trim_end().ends_with("--json has them."));
    }

    #[test]
    fn texts_are_broken_into_lines_and_use_what_room_there_is() {
        let mut t = table(&["name", "unit", "default", "what it is"], 2).last_is_text();
        let long =
            "a text that says at some length what this parameter does to the controller and why it has this value";
        t.add_row(["a-name-without-any-blank-that-is-much-too-long", "ms", "12.5", long]);
        for width in [40, 80, 120] {
            let shown = t.fit(width);
            assert!(widest(&shown) <= usize::from(width), "{width}:\n{shown}");
            assert!(shown.contains("12.5"), "{shown}");
        }
        assert!(t.fit(80).lines().count() < t.fit(40).lines().count());
        assert!(widest(&t.fit(300)) > 120);
        assert!(t.fit(300).contains(long));
    }

    #[test]
    fn rows_of_text_stack_where_columns_have_no_room_and_their_names_stay_whole() {
        let mut t = table(&["scenario", "what it is", "variants", "compares"], 4);
        let name = "a-folder/a-scenario-with-a-very-long-name-indeed";
        t.add_row([name, "what it shows, at some length that a narrow terminal has no room for", "a; b", ""]);
        let shown = t.fit(80);
        assert!(widest(&shown) <= 80 && shown.starts_with(name), "{shown}");
        assert!(shown.contains("    what it is: what it shows") && shown.contains("    variants: a; b"), "{shown}");
        assert!(!shown.contains("compares"), "nothing is known of it: {shown}");
        assert!(t.fit(200).contains("compares"));
    }

    #[test]
    fn lines_are_folded_at_blanks_under_their_indent() {
        assert_eq!(fold_to("one two three\n  four five\n", 9), "one two\nthree\n  four\n  five\n");
        assert_eq!(fold_to("averylongword on", 4), "averylongword\non");
        assert_eq!(fold_to("", 10), "");
    }
}
