//! One note: what may stand in it, and how it stands in its file.
//!
//! A file is a header of five lines, an empty line, and the body as it is; so a person can read a note with
//! `cat` and a broken one can be repaired with an editor. The id is the name of the file.

use crate::error::Error;

/// Longest body in bytes. Twice as much, the most that JSON makes of it, fits one frame of the protocol.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// Longest title in characters: two lines of a list.
pub const MAX_TITLE_CHARS: usize = 200;
/// Largest file in bytes: body, title and header lines.
pub const MAX_FILE_BYTES: usize = MAX_BODY_BYTES + MAX_HEADER_BYTES;
/// Largest header in bytes: the title at four bytes a character, and the names and numbers of five lines.
pub const MAX_HEADER_BYTES: usize = 4 * MAX_TITLE_CHARS + 224;

/// First line of every file; another number would be another format.
const FORMAT_LINE: &str = "pcp-note: 1";

/// A note's header: everything but the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// 1 when it is created, one more with each edit.
    pub revision: u64,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it was last edited, in milliseconds since 1970.
    pub changed_ms: u64,
    /// One line.
    pub title: String,
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Everything but the body.
    pub header: Header,
    /// Any text.
    pub body: String,
}

impl Header {
    /// Reads a header and says where the body begins.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<(Self, usize), &'static str> {
        let (header, _) = text.split_once("\n\n").ok_or("no empty line ends the header")?;
        let mut lines = header.split('\n');
        let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(": ");
        if value("pcp-note") != FORMAT_LINE.strip_prefix("pcp-note: ") {
            return Err("the first line is not `pcp-note: 1`");
        }
        let number = |text: Option<&str>| text?.parse().ok();
        let revision = number(value("revision")).ok_or("the second line is no `revision: N`")?;
        let created_ms = number(value("created")).ok_or("the third line is no `created: N`")?;
        let changed_ms = number(value("changed")).ok_or("the fourth line is no `changed: N`")?;
        let title = value("title").ok_or("the fifth line is no `title: TEXT`")?;
        check_title(title).map_err(|_| "the title is empty, too long or has control characters")?;
        if lines.next().is_some() {
            return Err("the header has more than five lines");
        }
        Ok((Self { revision, created_ms, changed_ms, title: title.to_owned() }, header.len() + 2))
    }
}

impl Note {
    /// The bytes of its file.
    #[must_use]
    pub fn to_file(&self) -> String {
        let Header { revision, created_ms, changed_ms, title } = &self.header;
        format!(
            "{FORMAT_LINE}\nrevision: {revision}\ncreated: {created_ms}\nchanged: {changed_ms}\ntitle: {title}\n\n{}",
            self.body
        )
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// The rule that they break.
    pub fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
        let (header, start) = Header::parse(text)?;
        let body = text.get(start..).unwrap_or_default();
        if check_body(body).is_err() {
            return Err("the body is too long or has control characters");
        }
        Ok(Self { header, body: body.to_owned() })
    }
}

/// Checks a title: one line, not blank, within its limit.
///
/// # Errors
/// [`Error::Parameter`], which never repeats the title.
pub(crate) fn check_title(title: &str) -> Result<(), Error> {
    let chars = title.chars().count();
    if chars > MAX_TITLE_CHARS {
        return Err(Error::title(&format!("this one has {chars}")));
    }
    if title.trim().is_empty() {
        return Err(Error::title("this one is blank"));
    }
    if title.chars().any(char::is_control) {
        return Err(Error::title("this one has control characters"));
    }
    Ok(())
}

/// Checks a body. Of the control characters only tab and line ends may stand in it: what JSON escapes with six
/// characters would make a note that fits the store and no frame.
///
/// # Errors
/// [`Error::Parameter`], which never repeats the body.
pub(crate) fn check_body(body: &str) -> Result<(), Error> {
    if body.len() > MAX_BODY_BYTES {
        return Err(Error::body(&format!("this one has {}", body.len())));
    }
    if body.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(Error::body("this one has control characters besides tab and line ends"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note(title: &str, body: &str) -> Note {
        let header =
            Header { revision: 3, created_ms: 1_700_000_000_000, changed_ms: 7, title: title.into() };
        Note { header, body: body.into() }
    }

    #[test]
    fn the_file_format_is_fixed() {
        let file =
            "pcp-note: 1\nrevision: 3\ncreated: 1700000000000\nchanged: 7\ntitle: Milk: 2 l\n\nand\n\nbread";
        assert_eq!(note("Milk: 2 l", "and\n\nbread").to_file(), file);
        assert_eq!(Note::parse(file.as_bytes()).unwrap(), note("Milk: 2 l", "and\n\nbread"));
    }

    #[test]
    fn a_file_that_is_no_note_is_refused_with_the_rule() {
        let good = note("t", "b").to_file();
        let table = [
            (good.replace("pcp-note: 1", "pcp-note: 2"), "first line"),
            (good.replace("revision: 3", "revision: x"), "revision"),
            (good.replace("created: ", "made: "), "created"),
            (good.replace("title: t", "title: "), "title"),
            (good.replace("title: t", "title: t\nmore: 1"), "more than five"),
            (good.replace("\n\n", "\n"), "empty line"),
            (good.replace("\n\nb", "\n\n\u{1}"), "body"),
            (String::new(), "empty line"),
        ];
        for (file, rule) in table {
            let error = Note::parse(file.as_bytes()).unwrap_err();
            assert!(error.contains(rule), "{file:?}: {error}");
        }
        assert!(Note::parse(b"pcp-note: 1\xFF").unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn the_limits_themselves_pass_and_one_more_does_not() {
        let title = "ü".repeat(MAX_TITLE_CHARS);
        assert!(check_title(&title).is_ok());
        assert!(check_title(&format!("{title}x")).is_err());
        let body = "x".repeat(MAX_BODY_BYTES);
        assert!(check_body(&body).is_ok());
        assert!(check_body(&format!("{body}x")).is_err());
        let largest = Note {
            header: Header {
                revision: u64::MAX,
                created_ms: u64::MAX,
                changed_ms: u64::MAX,
                title: "𝄞".repeat(MAX_TITLE_CHARS),
            },
            body,
        };
        assert!(largest.to_file().len() <= MAX_FILE_BYTES);
        assert_eq!(Note::parse(largest.to_file().as_bytes()).unwrap(), largest);
    }

    #[test]
    fn blank_titles_and_control_characters_are_refused_without_repeating_them() {
        for title in ["", "  ", "a\nb", "secret\u{1b}[2J"] {
            let text = check_title(title).unwrap_err().to_string();
            assert!(!text.contains("secret"), "{text}");
        }
        for body in ["a\u{0}", "\u{1b}[2J", "\u{85}"] {
            assert!(check_body(body).is_err());
        }
        assert!(check_body("line\r\n\tline\n").is_ok());
    }

    proptest! {
        #[test]
        fn a_note_comes_back_from_its_file(title in "[^\\p{Cc}]{1,200}", body in "[^\\p{Cc}]{0,300}(\n\n[a-z: ]*){0,3}") {
            prop_assume!(check_title(&title).is_ok());
            let note = note(&title, &body);
            prop_assert_eq!(Note::parse(note.to_file().as_bytes()).unwrap(), note);
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Note::parse(&bytes);
        }
    }
}
