//! Tables that are Markdown and read well as plain text.

use std::fmt;

/// How a column is set.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Align {
    /// To the left: names.
    Left,
    /// To the right: figures.
    Right,
}

/// A table of text.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns
            .iter()
            .map(|&(name, align)| (name.to_owned(), align));
        Self {
            columns: columns.collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Cells missing at the end are empty; surplus ones are dropped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = cells.into_iter().take(self.columns.len()).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    fn widths(&self) -> Vec<usize> {
        (0..self.columns.len())
            .map(|n| {
                let cells = self.rows.iter().map(|row| row[n].chars().count());
                cells
                    .chain([self.columns[n].0.chars().count(), 3])
                    .max()
                    .unwrap_or(3)
            })
            .collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let columns = || self.columns.iter().zip(&widths);
        for ((name, align), &width) in columns() {
            write!(f, "| {} ", pad(name, width, *align))?;
        }
        writeln!(f, "|")?;
        for ((_, align), &width) in columns() {
            match align {
                Align::Left => write!(f, "|{} ", "-".repeat(width + 1))?,
                Align::Right => write!(f, "|{}: ", "-".repeat(width))?,
            }
        }
        write!(f, "|")?;
        for row in &self.rows {
            writeln!(f)?;
            for (cell, ((_, align), &width)) in row.iter().zip(columns()) {
                write!(f, "| {} ", pad(cell, width, *align))?;
            }
            write!(f, "|")?;
        }
        Ok(())
    }
}

fn pad(text: &str, width: usize, align: Align) -> String {
    match align {
        Align::Left => format!("{text:<width$}"),
        Align::Right => format!("{text:>width$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(["echo".into(), "12".into()]);
        table.row(["a longer one".into()]);
        let text = table.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "| name         |   n |");
        assert_eq!(lines[1], "|------------- |---: |");
        assert_eq!(lines[2], "| echo         |  12 |");
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    }
}
