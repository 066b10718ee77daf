//! The contents of a plot.

/// One line; NaN breaks it.
#[derive(Default)]
pub struct Line {
    /// Name in the legend.
    pub label: String,
    /// Drawn as a grey step behind the others.
    pub capacity: bool,
    /// Horizontal and vertical value.
    pub points: Vec<(f64, f64)>,
    /// Confidence intervals.
    pub bars: Vec<Bar>,
}

/// A confidence interval around a point of a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bar {
    /// The point.
    pub at: (f64, f64),
    /// One end, horizontal and vertical; one of the coordinates differs from the point's.
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
    /// From 0 to this; higher values are clipped.
    UpTo(f64),
    /// Logarithmic, from one power of ten to another, which enclose all values.
    Log,
}

/// One pair of axes.
#[derive(Default)]
pub struct Plot {
    /// Heading of the panel; none if empty.
    pub title: String,
    /// Label of the vertical axis.
    pub y_label: String,
    /// Label of the horizontal axis, below the last panel.
    pub x_label: String,
    /// Left end of the horizontal axis.
    pub x_start: f64,
    /// Right end.
    pub x_end: f64,
    /// The lines.
    pub lines: Vec<Line>,
    /// The vertical axis.
    pub scale: Scale,
}
