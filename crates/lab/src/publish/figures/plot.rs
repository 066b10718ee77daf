//! What a plot shows, before it is drawn.

/// One line; NaN breaks it.
#[derive(Default)]
pub struct Line {
    /// Name in the legend.
    pub label: String,
    /// Drawn as a grey step behind the others.
    pub capacity: bool,
    /// Horizontal and vertical value.
    pub points: Vec<(f64, f64)>,
    /// Where it may be as well.
    pub bars: Vec<Bar>,
}

/// A confidence interval around a point of a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bar {
    /// The point.
    pub at: (f64, f64),
    /// Its ends, horizontal and vertical: one of the two differs.
    pub from: (f64, f64),
    /// The other end.
    pub to: (f64, f64),
}

/// The vertical axis.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Scale {
    /// From 0 to the highest value.
    #[default]
    Zero,
    /// From 0 to this; what is higher is cut off.
    UpTo(f64),
    /// Logarithmic, from one power of ten to another, which have all values.
    Log,
}

/// One pair of axes.
#[derive(Default)]
pub struct Plot {
    /// Heading of the panel; none where empty.
    pub title: String,
    /// What the vertical axis shows.
    pub y_label: String,
    /// What the horizontal axis shows; written below the last panel.
    pub x_label: String,
    /// Left end of the horizontal axis.
    pub x_start: f64,
    /// Right end.
    pub x_end: f64,
    /// What is drawn.
    pub lines: Vec<Line>,
    /// The vertical axis.
    pub scale: Scale,
}
