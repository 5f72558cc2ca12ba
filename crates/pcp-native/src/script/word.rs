//! Words of a shell script, taken apart and filled in without a shell.
//!
//! Plain text, quotes, variables the script sets itself, `$0` and the usual ways to say "the folder of this script"
//! have a value. Everything else (patterns, arithmetic, the output of programs) has none, and is never guessed.

use super::variables::{Variables, braces, folder};
/// Longest value of a word or a variable in bytes: the longest path of Linux.
const MAX_WORD_BYTES: usize = 4096;
/// How deep `$( )` may stand in `$( )` and still have a value.
const MAX_NESTING: usize = 4;

/// One word.
#[derive(Debug, Default, Clone)]
pub(super) struct Word {
    /// What it stands for, if that can be known.
    pub(super) value: Option<String>,
    /// Whether it hands on the script's own arguments.
    pub(super) passes: bool,
    /// The variable, where the word has the form of an assignment; `value` is then the variable's.
    pub(super) assigns: Option<String>,
    /// Whether the shell drops the word: it is empty and not quoted.
    pub(super) vanishes: bool,
    /// Whether the shell makes several words of it at blanks: it comes from a variable and is not quoted.
    pub(super) splits: bool,
}

/// What a script consists of.
#[derive(Debug)]
pub(super) enum Token {
    Word(Word),
    /// The end of a command.
    End,
    /// An opening parenthesis.
    Open,
    /// A closing parenthesis.
    Close,
}

/// Reads a script from its beginning.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    nesting: usize,
    /// Ends of the here-documents that begin on the next line.
    documents: Vec<Vec<u8>>,
}

/// A word in the making.
#[derive(Default)]
struct Making {
    bytes: Vec<u8>,
    unknown: bool,
    quoted: bool,
    passes: bool,
}

impl Making {
    fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > MAX_WORD_BYTES {
            self.unknown = true;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn push_value(&mut self, value: Option<String>) {
        match value {
            Some(value) => self.push(value.as_bytes()),
            None => self.unknown = true,
        }
    }
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), at: 0, nesting: 0, documents: Vec::new() }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn peek_second(&self) -> Option<u8> {
        self.text.get(self.at + 1).copied()
    }

    /// The next part, with variables as they are at this point; `None` at the end of the text.
    pub(super) fn next(&mut self, variables: &Variables) -> Option<Token> {
        loop {
            let byte = self.peek()?;
            match byte {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.peek_second() == Some(b'\n') => self.at += 2,
                b'#' => self.skip_line(),
                b'\n' => {
                    self.at += 1;
                    self.skip_documents();
                    return Some(Token::End);
                }
                b'&' if self.peek_second() == Some(b'>') => self.redirection(variables),
                b'<' | b'>' => self.redirection(variables),
                b';' | b'&' | b'|' => {
                    self.at += 1;
                    return Some(Token::End);
                }
                b'(' => {
                    self.at += 1;
                    return Some(Token::Open);
                }
                b')' => {
                    self.at += 1;
                    return Some(Token::Close);
                }
                _ => {
                    let start = self.at;
                    let word = self.word(variables);
                    let raw = self.text.get(start..self.at).unwrap_or_default();
                    // The number before `>` in `2>&1` belongs to it.
                    let number = raw.iter().all(u8::is_ascii_digit);
                    if !(number && matches!(self.peek(), Some(b'<' | b'>'))) {
                        return Some(Token::Word(word));
                    }
                }
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    /// The text of here-documents is no code.
    fn skip_documents(&mut self) {
        for end in std::mem::take(&mut self.documents) {
            while self.at < self.text.len() {
                let start = self.at;
                self.skip_line();
                let line = self.text.get(start..self.at).unwrap_or_default();
                self.at += 1;
                if line.trim_ascii() == end {
                    break;
                }
            }
        }
    }

    fn redirection(&mut self, variables: &Variables) {
        let start = self.at;
        while matches!(self.peek(), Some(b'<' | b'>' | b'&' | b'|')) {
            self.at += 1;
        }
        let sign = self.text.get(start..self.at).unwrap_or_default();
        let document = sign == b"<<";
        if document && self.peek() == Some(b'-') {
            self.at += 1;
        }
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let word = self.word(variables);
        if document && self.documents.len() < MAX_NESTING {
            self.documents.push(word.value.unwrap_or_default().into_bytes());
        }
    }

    fn word(&mut self, variables: &Variables) -> Word {
        let start = self.at;
        let mut making = Making::default();
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                b'\'' => {
                    making.quoted = true;
                    let inner = self.until(b'\'');
                    making.push(inner);
                }
                b'"' => {
                    making.quoted = true;
                    self.at += 1;
                    self.quoted(&mut making, variables);
                }
                b'*' | b'?' => {
                    making.unknown = true;
                    self.at += 1;
                }
                b'~' if self.at == start => {
                    making.unknown = true;
                    self.at += 1;
                }
                _ => self.part(byte, &mut making, variables),
            }
        }
        let raw = self.text.get(start..self.at).unwrap_or_default();
        finish(making, raw)
    }

    /// The inside of double quotes, and their end.
    fn quoted(&mut self, making: &mut Making, variables: &Variables) {
        while let Some(byte) = self.peek() {
            if byte == b'"' {
                self.at += 1;
                return;
            }
            self.part(byte, making, variables);
        }
    }

    /// One piece that means the same within double quotes and outside.
    fn part(&mut self, byte: u8, making: &mut Making, variables: &Variables) {
        match byte {
            b'\\' => {
                match self.peek_second() {
                    Some(b'\n') | None => {}
                    Some(next) => making.push(&[next]),
                }
                self.at = (self.at + 2).min(self.text.len());
            }
            b'$' => self.dollar(making, variables),
            b'`' => {
                let inner = self.until(b'`');
                making.push_value(self.output(inner, variables));
            }
            other => {
                making.push(&[other]);
                self.at += 1;
            }
        }
    }

    /// What stands up to the next `end`, behind which the reading goes on.
    fn until(&mut self, end: u8) -> &'a [u8] {
        let start = (self.at + 1).min(self.text.len());
        let rest = self.text.get(start..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == end).unwrap_or(rest.len());
        self.at = (start + length + 1).min(self.text.len());
        rest.get(..length).unwrap_or_default()
    }

    fn dollar(&mut self, making: &mut Making, variables: &Variables) {
        match self.peek_second() {
            Some(b'(') => {
                self.at += 1;
                let inner = self.balanced(b'(', b')');
                making.push_value(self.output(inner, variables));
            }
            Some(b'{') => {
                self.at += 1;
                let inner = String::from_utf8_lossy(self.balanced(b'{', b'}'));
                if inner.contains("$@") || inner.contains("$*") || inner == "@" || inner == "*" {
                    making.passes = true;
                } else {
                    making.push_value(braces(&inner, variables));
                }
            }
            Some(b'@' | b'*') => {
                making.passes = true;
                self.at += 2;
            }
            Some(b'0') => {
                making.push(variables.script().as_bytes());
                self.at += 2;
            }
            Some(b'1'..=b'9' | b'#' | b'?' | b'!' | b'$' | b'-') => {
                making.unknown = true;
                self.at += 2;
            }
            Some(byte) if is_name(byte) => {
                let rest = self.text.get(self.at + 1..).unwrap_or_default();
                let length = rest.iter().position(|byte| !is_name(*byte)).unwrap_or(rest.len());
                let name = String::from_utf8_lossy(rest.get(..length).unwrap_or_default());
                making.push_value(variables.get(&name));
                self.at += 1 + length;
            }
            Some(b'\'' | b'"') => self.at += 1,
            _ => {
                making.push(b"$");
                self.at += 1;
            }
        }
    }

    /// What stands between a sign and the one that closes it. Where none does, the text ends here: reading it again
    /// for each sign that stays open would take time with the square of its length.
    fn balanced(&mut self, open: u8, close: u8) -> &'a [u8] {
        let start = self.at + 1;
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.at += 1,
                b'\'' if open == b'(' => {
                    self.until(b'\'');
                    continue;
                }
                byte if byte == open => depth += 1,
                byte if byte == close => {
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return self.text.get(start..self.at - 1).unwrap_or_default();
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.text.len();
        &[]
    }

    /// What a command prints, for the few commands that only take paths apart.
    fn output(&self, command: &[u8], variables: &Variables) -> Option<String> {
        let nesting = self.nesting + 1;
        if nesting > MAX_NESTING {
            return None;
        }
        let mut inner = Lexer { text: command, at: 0, nesting, documents: Vec::new() };
        let mut words = Vec::new();
        while let Some(token) = inner.next(variables) {
            match token {
                Token::Word(word) => words.push(word.value?),
                Token::End if words.is_empty() => {}
                _ => return None,
            }
            if words.len() > 4 {
                return None;
            }
        }
        let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--").collect();
        match words.as_slice() {
            ["dirname", path] => Some(folder(path)),
            ["basename", path] => Some(super::base_name(path).to_owned()),
            ["readlink", "-f" | "-e" | "-m", path]
            | ["realpath" | "echo" | "which" | "type", path]
            | ["command", "-v", path] => Some((*path).to_owned()),
            _ => None,
        }
    }
}

fn finish(making: Making, raw: &[u8]) -> Word {
    let name_bytes = raw.iter().position(|byte| !is_name(*byte)).unwrap_or(raw.len());
    let name = raw.get(..name_bytes).unwrap_or_default();
    let is_assignment =
        raw.get(name_bytes) == Some(&b'=') && name.first().is_some_and(|b| !b.is_ascii_digit());
    let assigns = is_assignment.then(|| String::from_utf8_lossy(name).into_owned());
    let skip = if is_assignment { name_bytes + 1 } else { 0 };
    let vanishes = !making.unknown && making.bytes.is_empty() && !making.quoted;
    let value = String::from_utf8_lossy(making.bytes.get(skip..).unwrap_or_default()).into_owned();
    let splits = !making.quoted && !is_assignment && raw.contains(&b'$');
    Word { value: (!making.unknown).then_some(value), passes: making.passes, assigns, vanishes, splits }
}

pub(super) const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
