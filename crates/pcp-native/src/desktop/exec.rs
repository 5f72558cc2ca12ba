//! A command line becomes arguments, by the rules of the specification and never through a shell.

use std::iter::Peekable;
use std::str::Chars;

use thiserror::Error;

use super::fault::Fault;

/// Most arguments of one command line: far beyond what launchers write, far below what the kernel takes.
pub const MAX_ARGUMENTS: usize = 1024;

/// Most bytes of all arguments together, in bytes: what `%c` may expand a line to.
pub const MAX_COMMAND_BYTES: usize = 128 * 1024;

/// Bytes that the first word of most lines takes: a program with its folder.
const USUAL_WORD_BYTES: usize = 64;

/// Why a command line cannot be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are what the sentences name")]
pub enum ExecError {
    /// Nothing in it.
    #[error("the command line of Exec is empty; name a program")]
    Empty,
    /// A quote that is never closed.
    #[error("the command line of Exec opens a quote and never closes it")]
    OpenQuote,
    /// A field code that the specification does not list: such a line must not be processed.
    #[error("the command line of Exec has the unknown field code %{0}; a percent sign is written %%")]
    UnknownCode(char),
    /// Too many arguments.
    #[error("the command line of Exec has more than {limit} arguments")]
    TooManyArguments { limit: usize },
    /// Too long once its codes are expanded.
    #[error("the command line of Exec expands to more than {limit} bytes")]
    TooLong { limit: usize },
    /// Bytes that are no text.
    #[error("the command line of Exec is not UTF-8")]
    NotUtf8,
}

/// What field codes stand for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fields<'a> {
    /// `%c`
    pub(super) name: &'a str,
    /// `%i`
    pub(super) icon: Option<&'a str>,
    /// `%k`
    pub(super) location: Option<&'a str>,
}

/// The arguments of a command line that is started without files. `text` has its string escapes undone already.
pub(super) fn arguments(
    text: &str,
    fields: Fields<'_>,
    note: impl FnMut(Fault),
) -> Result<Vec<String>, ExecError> {
    let mut splitter = Splitter {
        rest: text.chars().peekable(),
        fields,
        note,
        done: Vec::new(),
        bytes: 0,
        word: String::with_capacity(text.len().min(USUAL_WORD_BYTES)),
        begun: false,
        has_code: false,
    };
    while let Some(char) = splitter.rest.next() {
        match char {
            ' ' | '\t' | '\n' | '\r' => splitter.end_word()?,
            '"' => splitter.quoted()?,
            '\'' => splitter.single_quoted()?,
            '\\' => splitter.backslash(),
            '%' => splitter.code(false)?,
            other => splitter.plain(other),
        }
    }
    splitter.end_word()?;
    if splitter.done.is_empty() { Err(ExecError::Empty) } else { Ok(splitter.done) }
}

struct Splitter<'a, N> {
    rest: Peekable<Chars<'a>>,
    fields: Fields<'a>,
    note: N,
    done: Vec<String>,
    bytes: usize,
    word: String,
    /// A word has begun, even if it is empty so far.
    begun: bool,
    /// A field code stood in it.
    has_code: bool,
}

impl<N: FnMut(Fault)> Splitter<'_, N> {
    fn end_word(&mut self) -> Result<(), ExecError> {
        let (begun, has_code) = (std::mem::take(&mut self.begun), std::mem::take(&mut self.has_code));
        let word = std::mem::take(&mut self.word);
        // What was nothing but a code without a file is no argument; "" is one.
        if begun && !(word.is_empty() && has_code) { self.finish(word) } else { Ok(()) }
    }

    fn finish(&mut self, word: String) -> Result<(), ExecError> {
        self.bytes += word.len();
        if self.bytes > MAX_COMMAND_BYTES {
            return Err(ExecError::TooLong { limit: MAX_COMMAND_BYTES });
        }
        if self.done.len() == MAX_ARGUMENTS {
            return Err(ExecError::TooManyArguments { limit: MAX_ARGUMENTS });
        }
        self.done.push(word);
        Ok(())
    }

    fn put(&mut self, char: char) {
        self.word.push(char);
        self.begun = true;
    }

    fn plain(&mut self, char: char) {
        if matches!(char, '>' | '<' | '~' | '|' | '&' | ';' | '$' | '*' | '?' | '#' | '(' | ')' | '`') {
            (self.note)(Fault::Reserved(char));
        }
        self.put(char);
    }

    fn backslash(&mut self) {
        (self.note)(Fault::BareBackslash);
        let next = self.rest.next().unwrap_or('\\');
        self.put(next);
    }

    fn quoted(&mut self) -> Result<(), ExecError> {
        self.begun = true;
        loop {
            match self.rest.next().ok_or(ExecError::OpenQuote)? {
                '"' => return Ok(()),
                '\\' => match self.rest.next_if(|next| matches!(next, '"' | '`' | '$' | '\\')) {
                    Some(next) => self.put(next),
                    None => self.put('\\'),
                },
                '%' => self.code(true)?,
                other => {
                    if matches!(other, '$' | '`') {
                        (self.note)(Fault::Unescaped(other));
                    }
                    self.put(other);
                }
            }
        }
    }

    fn single_quoted(&mut self) -> Result<(), ExecError> {
        (self.note)(Fault::SingleQuotes);
        self.begun = true;
        loop {
            match self.rest.next().ok_or(ExecError::OpenQuote)? {
                '\'' => return Ok(()),
                '%' => self.code(true)?,
                other => self.put(other),
            }
        }
    }

    fn code(&mut self, in_quotes: bool) -> Result<(), ExecError> {
        let Some(code) = self.rest.next_if(|next| !matches!(next, ' ' | '\t' | '"' | '\'')) else {
            (self.note)(Fault::LonePercent);
            self.put('%');
            return Ok(());
        };
        if code == '%' {
            self.put('%');
            return Ok(());
        }
        if in_quotes {
            (self.note)(Fault::QuotedCode(code));
        }
        match code {
            'f' | 'F' | 'u' | 'U' => {}
            'd' | 'D' | 'n' | 'N' | 'v' | 'm' => (self.note)(Fault::DeprecatedCode(code)),
            'c' => self.insert(self.fields.name)?,
            'k' => self.insert(self.fields.location.unwrap_or_default())?,
            'i' => return self.icon(in_quotes),
            _ => return Err(ExecError::UnknownCode(code)),
        }
        (self.begun, self.has_code) = (true, true);
        Ok(())
    }

    fn insert(&mut self, text: &str) -> Result<(), ExecError> {
        if self.bytes + self.word.len() + text.len() > MAX_COMMAND_BYTES {
            return Err(ExecError::TooLong { limit: MAX_COMMAND_BYTES });
        }
        self.word.push_str(text);
        Ok(())
    }

    /// The one code that is two arguments.
    fn icon(&mut self, in_quotes: bool) -> Result<(), ExecError> {
        let alone =
            !self.begun && !in_quotes && self.rest.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
        if !alone {
            (self.note)(Fault::IconInside);
            (self.begun, self.has_code) = (true, true);
            return Ok(());
        }
        match self.fields.icon {
            Some(icon) if !icon.is_empty() => {
                self.finish("--icon".to_owned())?;
                self.finish(icon.to_owned())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<String>, ExecError> {
        let fields = Fields { name: "The Name", icon: Some("pic"), location: Some("/a/b.desktop") };
        arguments(text, fields, |_| ())
    }

    #[test]
    fn quotes_backslashes_and_codes_are_read_by_the_rules() {
        let table: [(&str, &[&str]); 17] = [
            (r#""a b" c"#, &["a b", "c"]),
            (r#"a "" b"#, &["a", "", "b"]),
            (r#"p"a b"c"#, &["pa bc"]),
            (r#""a\"b\\c\$d\`e\f""#, &[r#"a"b\c$d`e\f"#]),
            (r"a\ b c", &["a b", "c"]),
            ("a  %f  %F %u %U b", &["a", "b"]),
            ("a --file=%f", &["a", "--file="]),
            (r#"a "%f" b"#, &["a", "b"]),
            ("a %i %c %k", &["a", "--icon", "pic", "The Name", "/a/b.desktop"]),
            ("a x%iy", &["a", "xy"]),
            ("a t=%c", &["a", "t=The Name"]),
            ("a %d%D %n %N %v %m", &["a"]),
            ("a 100%% 5% b%", &["a", "100%", "5%", "b%"]),
            ("a 'b c' d", &["a", "b c", "d"]),
            ("a $HOME `id` ; b | c > d & *", &["a", "$HOME", "`id`", ";", "b", "|", "c", ">", "d", "&", "*"]),
            (r"a\", &[r"a\"]),
            ("a\tb\nc", &["a", "b", "c"]),
        ];
        for (text, wanted) in table {
            assert_eq!(read(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn an_icon_that_is_not_there_leaves_no_argument() {
        for icon in [None, Some("")] {
            let fields = Fields { icon, ..Fields::default() };
            assert_eq!(arguments("a %i %c %k b", fields, |_| ()).unwrap(), ["a", "b"]);
        }
    }

    #[test]
    fn a_line_that_cannot_be_carried_out_is_refused_with_the_rule() {
        let table = [
            ("", ExecError::Empty),
            (" %f ", ExecError::Empty),
            ("a \"b", ExecError::OpenQuote),
            ("a 'b", ExecError::OpenQuote),
            ("a %x", ExecError::UnknownCode('x')),
            ("a %20b", ExecError::UnknownCode('2')),
        ];
        for (text, wanted) in table {
            assert_eq!(read(text), Err(wanted), "{text}");
        }
    }

    #[test]
    fn a_line_at_the_limits_is_read_and_one_more_is_not() {
        assert_eq!(read(&"x ".repeat(MAX_ARGUMENTS)).unwrap().len(), MAX_ARGUMENTS);
        let limit = MAX_ARGUMENTS;
        assert_eq!(read(&"x ".repeat(MAX_ARGUMENTS + 1)), Err(ExecError::TooManyArguments { limit }));
        let name = "n".repeat(MAX_COMMAND_BYTES / 4);
        let fields = Fields { name: &name, ..Fields::default() };
        assert!(arguments(&"%c".repeat(4), fields, |_| ()).is_ok());
        let limit = MAX_COMMAND_BYTES;
        assert_eq!(arguments(&"%c".repeat(5), fields, |_| ()), Err(ExecError::TooLong { limit }));
        assert_eq!(arguments("a %c %c %c %c", fields, |_| ()), Err(ExecError::TooLong { limit }));
    }

    /// Writes an argument as the specification asks for.
    fn quoted(argument: &str) -> String {
        let mut text = String::from("\"");
        for char in argument.chars() {
            match char {
                '"' | '`' | '$' | '\\' => text.extend(['\\', char]),
                '%' => text.push_str("%%"),
                other => text.push(other),
            }
        }
        text + "\""
    }

    proptest! {
        #[test]
        fn what_is_quoted_by_the_rules_is_read_back(argv in proptest::collection::vec("[^\0]{0,30}", 1..8)) {
            let line: Vec<String> = argv.iter().map(|argument| quoted(argument)).collect();
            let mut faults = 0;
            let found = arguments(&line.join(" "), Fields::default(), |_| faults += 1);
            prop_assert_eq!(found.unwrap(), argv);
            prop_assert_eq!(faults, 0);
        }

        #[test]
        fn any_text_is_read_or_refused_within_the_limits(text in "[ \"'\\\\%a-zA-Z0-9$`;é\t\n]{0,200}") {
            if let Ok(argv) = read(&text) {
                prop_assert!(!argv.is_empty());
                prop_assert!(argv.iter().map(String::len).sum::<usize>() <= MAX_COMMAND_BYTES);
            }
        }
    }
}
