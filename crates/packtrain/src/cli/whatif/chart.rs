//! What is drawn, for a page and for a terminal: what goes plainly beside what packtrain makes of it.

pub mod svg;
pub mod terminal;

/// How it is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    With,
}

pub struct Bar {
    name: String,
    value: f64,
    text: String,
    kind: Kind,
}

impl Bar {
    pub fn plain(value: f64, text: String) -> Bar {
        Bar {
            name: "without packtrain".into(),
            value,
            text,
            kind: Kind::Plain,
        }
    }

    pub fn with(name: &str, value: f64, text: String) -> Bar {
        Bar {
            name: name.into(),
            value,
            text,
            kind: Kind::With,
        }
    }
}

/// Columns side by side; several rows of them have one scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    pub title: String,
    pub rows: Vec<Row>,
    /// What the left and the right end stand for.
    pub ends: [String; 2],
    /// What a whole column is.
    pub whole: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub name: &'static str,
    pub kind: Kind,
    pub values: Vec<f64>,
}

impl Columns {
    /// From 0 to 1.
    fn share(&self, value: f64) -> f64 {
        match self.whole > 0.0 {
            true => (value / self.whole).clamp(0.0, 1.0),
            false => 0.0,
        }
    }
}

impl Row {
    /// As many as there is room for: the mean of those that share a column, or some more than once.
    fn resampled(&self, columns: usize) -> Vec<f64> {
        let len = self.values.len();
        let mean = |column: usize| {
            let (from, to) = (column * len / columns, (column + 1) * len / columns);
            let values = &self.values[from..to.max(from + 1)];
            values.iter().sum::<f64>() / values.len() as f64
        };
        match len {
            0 => Vec::new(),
            _ => (0..columns).map(mean).collect(),
        }
    }
}
