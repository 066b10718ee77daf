//! Lines of SCReAM's traces, by which they are recognised too.

/// Columns of a line.
pub(crate) const COLUMNS: usize = 19;
/// Largest number that a column can have: bits per second of all links.
const MOST: f64 = 1e15;

/// Whether a line is the list of columns.
pub(crate) fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"\"Time [s]\"")
}

/// The columns of a line.
pub(crate) fn columns(line: &str) -> Option<[f64; COLUMNS]> {
    let mut out = [0.0; COLUMNS];
    let mut fields = line.split(',').map(str::trim);
    for (i, column) in out.iter_mut().enumerate() {
        let field = fields.next()?;
        // Some versions have a space between the last column and the numbers that a program adds.
        let field = if i + 1 == COLUMNS { field.split_ascii_whitespace().next()? } else { field };
        let number = field.len() <= 24 && field.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'));
        *column = field.parse().ok().filter(|v: &f64| number && v.abs() < MOST)?;
    }
    // Times are written with four digits behind the point.
    let seconds = line.split(',').take(3).all(|f| f.contains('.'));
    (seconds && out[0] >= 0.0 && (0.0..1e6).contains(&out[7])).then_some(out)
}
