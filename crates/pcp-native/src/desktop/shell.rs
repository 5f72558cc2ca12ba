//! The words of a shell's command, as far as they are plain. Nothing is expanded; what would be is refused.

use std::iter::Peekable;
use std::str::Chars;

/// Whether a word may hold a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variables {
    /// No word may.
    Refused,
    /// The program's arguments may, for what they become does not change which program it is.
    BehindProgram,
}

/// Words that are no program: what the shell does with them depends on more than this line.
const RESERVED: [&str; 23] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in",
    "select", "function", "eval", "source", ".", "cd", "export", "set", "unset", "trap",
];

/// The words of `text`, without the assignments before the program. `None` where it is not one plain command.
pub(super) fn words(text: &str, variables: Variables) -> Option<Vec<String>> {
    let mut reader = Reader { rest: text.chars().peekable(), word: None, words: Vec::new(), variables };
    while let Some(char) = reader.rest.next() {
        reader.read(char)?;
    }
    reader.end_word();
    let reserved = variables == Variables::BehindProgram
        && reader.words.first().is_some_and(|word| RESERVED.contains(&word.as_str()));
    (!reserved).then_some(reader.words)
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    word: Option<String>,
    words: Vec<String>,
    variables: Variables,
}

impl Reader<'_> {
    fn read(&mut self, char: char) -> Option<()> {
        match char {
            ' ' | '\t' => self.end_word(),
            // What ends a text ends its last word too, and nothing more.
            '\n' if self.rest.peek().is_none() => self.end_word(),
            '\'' => self.single_quoted()?,
            '"' => self.double_quoted()?,
            '\\' => {
                let next = self.rest.next()?;
                self.put(next);
            }
            '$' => self.variable()?,
            '~' | '#' | '{' | '}' if self.word.is_none() => return None,
            '\n' | '\r' | ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`' | '*' | '?' | '[' | '!' => {
                return None;
            }
            other => self.put(other),
        }
        Some(())
    }

    fn put(&mut self, char: char) {
        self.word.get_or_insert_default().push(char);
    }

    /// Assignments before the program are no words of it.
    fn end_word(&mut self) {
        if let Some(word) = self.word.take().filter(|word| !self.words.is_empty() || !is_assignment(word)) {
            self.words.push(word);
        }
    }

    fn single_quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next()? {
                '\'' => return Some(()),
                other => self.put(other),
            }
        }
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next()? {
                '"' => return Some(()),
                '\\' => {
                    let next = self.rest.next_if(|next| matches!(next, '"' | '\\' | '$' | '`'));
                    self.put(next.unwrap_or('\\'));
                }
                '`' => return None,
                '$' => self.variable()?,
                other => self.put(other),
            }
        }
    }

    /// `$@`, `$1`, `$NAME`, `${NAME}` behind the program; a command in its place is refused.
    fn variable(&mut self) -> Option<()> {
        let behind = self.variables == Variables::BehindProgram && !self.words.is_empty();
        let simple = matches!(self.rest.peek()?, '@' | '*' | '{' | '_' | '0'..='9' | 'a'..='z' | 'A'..='Z');
        if !behind || !simple {
            return None;
        }
        self.put('$');
        // The character that names it is no pattern here.
        let next = self.rest.next()?;
        self.put(next);
        Some(())
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_are_divided_and_all_else_is_refused() {
        let table: [(&str, Option<&[&str]>); 14] = [
            ("a b\tc", Some(&["a", "b", "c"])),
            ("A=1 B='x y' prog C=2", Some(&["prog", "C=2"])),
            (r#"a "b c" 'd $e' f\ g"#, Some(&["a", "b c", "d $e", "f g"])),
            (r#"a "\"\q""#, Some(&["a", r#""\q"#])),
            ("a \"$@\" $1 ${X}", Some(&["a", "$@", "$1", "${X}"])),
            ("", Some(&[])),
            ("$A b", None),
            ("X=$A b", None),
            ("a \"$(b)\"", None),
            ("a 'b", None),
            ("a \\", None),
            ("a # b", None),
            ("~/a", None),
            ("{ a; }", None),
        ];
        for (text, wanted) in table {
            let found = words(text, Variables::BehindProgram);
            assert_eq!(
                found.as_deref(),
                wanted.map(|words| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()).as_deref(),
                "{text}"
            );
        }
        assert_eq!(words("a $1", Variables::Refused), None);
    }
}
