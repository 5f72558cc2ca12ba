//! What a person sees: lines, named fields, aligned columns. Everything handed in is made harmless first.

use std::fmt::{Display, Write};

use anstyle::{AnsiColor, Style};

use crate::escape;

/// How a word is meant; colour only underlines what the word itself says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it is.
    Plain,
    /// A heading.
    Heading,
    /// Good news.
    Good,
    /// Look at this.
    Careful,
    /// Bad news.
    Bad,
    /// Less important.
    Faint,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Heading => Style::new().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Careful => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Faint => Style::new().dimmed(),
        }
    }

    /// The tone of a word of the protocol.
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "ok" | "allow" | "whole" | "verified" | "succeeded" | "accept" | "stable" | "ready" => Self::Good,
            "warning"
            | "unsigned"
            | "executed_unverified"
            | "predicted"
            | "unchecked"
            | "confirm"
            | "outcome_unknown"
            | "absent"
            | "degraded"
            | "initializing"
            | "unknown" => Self::Careful,
            "problem" | "refuse" | "refused" | "deny" | "broken" | "rejected" | "reject" | "invalid"
            | "failed" | "checksum-mismatch" => Self::Bad,
            _ => Self::Plain,
        }
    }
}

/// One entry of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A plain entry.
    pub(crate) fn new(text: impl Display) -> Self {
        Self { text: escape::plain(&text.to_string()), tone: Tone::Plain }
    }

    /// An entry that is a word of the protocol, in the word's tone.
    pub(crate) fn word(text: impl Display) -> Self {
        let cell = Self::new(text);
        let tone = Tone::of(&cell.text);
        Self { tone, ..cell }
    }

    /// An entry in a tone.
    pub(crate) fn toned(tone: Tone, text: impl Display) -> Self {
        Self { tone, ..Self::new(text) }
    }

    /// An entry, or a dash where there is none.
    pub(crate) fn maybe(text: Option<impl Display>) -> Self {
        text.map_or_else(|| Self { text: "-".to_owned(), tone: Tone::Faint }, Self::new)
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// A page under construction, with its colours in it.
#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
}

impl Page {
    /// One line in a tone.
    pub(crate) fn line(&mut self, tone: Tone, text: impl Display) {
        self.put(tone, &escape::plain(&text.to_string()));
        self.text.push('\n');
    }

    /// A line that begins with what it is, such as `error:`.
    pub(crate) fn labelled(&mut self, tone: Tone, label: &str, text: &str) {
        self.put(tone, label);
        self.text.push_str(": ");
        self.text.push_str(&escape::plain(text));
        self.text.push('\n');
    }

    /// A line that begins with a word in its tone.
    pub(crate) fn marked(&mut self, tone: Tone, word: &str, rest: &str) {
        self.put(tone, word);
        self.text.push_str(&escape::plain(rest));
        self.text.push('\n');
    }

    /// An empty line.
    pub(crate) fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Named values, the names right-aligned as `systemctl show` has them.
    pub(crate) fn fields(&mut self, fields: &[(&str, Cell)]) {
        let widest = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, cell) in fields {
            let _ = write!(self.text, "{name:>widest$}: ");
            self.put(cell.tone, &cell.text);
            self.text.push('\n');
        }
    }

    /// Columns under headings, two spaces apart; the last is not filled up.
    pub(crate) fn table(&mut self, headings: &[&str], rows: &[Vec<Cell>]) {
        let heads: Vec<Cell> =
            headings.iter().map(|name| Cell { text: (*name).to_owned(), tone: Tone::Heading }).collect();
        let widths = widths(std::iter::once(&heads).chain(rows));
        self.row(&heads, &widths);
        for row in rows {
            self.row(row, &widths);
        }
    }

    /// Columns without headings.
    pub(crate) fn rows(&mut self, rows: &[Vec<Cell>]) {
        let widths = widths(rows);
        for row in rows {
            self.row(row, &widths);
        }
    }

    fn row(&mut self, row: &[Cell], widths: &[usize]) {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            self.put(cell.tone, &cell.text);
            if column + 1 < row.len() {
                let fill = width - cell.width() + 2;
                let _ = write!(self.text, "{:fill$}", "");
            }
        }
        self.text.push('\n');
    }

    /// JSON, laid out in lines as far as it can be read.
    pub(crate) fn json(&mut self, text: &str) {
        let pretty = serde_json::from_str::<serde_json::Value>(text)
            .and_then(|value| serde_json::to_string_pretty(&value))
            .unwrap_or_else(|_| text.to_owned());
        for line in pretty.lines() {
            self.line(Tone::Plain, line);
        }
    }

    fn put(&mut self, tone: Tone, text: &str) {
        let style = tone.style();
        let _ = write!(self.text, "{style}{text}{style:#}");
    }

    /// The page, without colours unless they are wanted.
    pub(crate) fn finish(self, colour: bool) -> String {
        if colour { self.text } else { anstream::adapter::strip_str(&self.text).to_string() }
    }
}

fn widths<'a>(rows: impl IntoIterator<Item = &'a Vec<Cell>>) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_the_last_is_not_filled_up() {
        let mut page = Page::default();
        page.table(
            &["ID", "STATE"],
            &[
                vec![Cell::new("grün"), Cell::word("ok")],
                vec![Cell::new("a.longer.one"), Cell::maybe(None::<u8>)],
            ],
        );
        assert_eq!(page.finish(false), "ID            STATE\ngrün          ok\na.longer.one  -\n");
    }

    #[test]
    fn names_are_right_aligned() {
        let mut page = Page::default();
        page.fields(&[("Id", Cell::new(1)), ("Version", Cell::new("2"))]);
        assert_eq!(page.finish(false), "     Id: 1\nVersion: 2\n");
    }

    #[test]
    fn colour_comes_only_on_demand_and_a_hostile_name_brings_none() {
        let page = || {
            let mut page = Page::default();
            page.line(Tone::Bad, "\u{1b}[32mfine\nreally");
            page
        };
        assert_eq!(page().finish(false), "\\u{1b}[32mfine\\nreally\n");
        assert!(page().finish(true).starts_with("\u{1b}["));
        assert_eq!(page().finish(true).matches('\u{1b}').count(), 3);
    }
}
