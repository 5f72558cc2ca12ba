//! The program that a wrapper script starts in the end.

use std::collections::VecDeque;
use std::path::Path;

use super::variables::Variables;
use super::word::{Lexer, Token, Word};

/// Most commands of one rank that are remembered, the last ones of the script.
const MAX_COMMANDS: usize = 4;
/// Most words of a command that are remembered: wrappers of wrappers need five.
const MAX_WORDS: usize = 16;
/// Most names of functions that are remembered.
const MAX_FUNCTIONS: usize = 64;

/// A command's words; `None` where a word cannot be known without running the script.
pub(crate) type Command = Vec<Option<String>>;

/// Words that stand before a command without being one.
const BEFORE: [&str; 11] = ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time"];

/// Commands of the shell, and tools that prepare a start and are none.
const PREPARING: [&str; 88] = [
    ".",
    ":",
    "[",
    "[[",
    "alias",
    "awk",
    "basename",
    "break",
    "cat",
    "case",
    "chmod",
    "cmp",
    "continue",
    "cp",
    "cut",
    "date",
    "dirname",
    "done",
    "echo",
    "egrep",
    "esac",
    "eval",
    "exit",
    "expr",
    "false",
    "fgrep",
    "fi",
    "file",
    "find",
    "for",
    "function",
    "getopts",
    "grep",
    "hash",
    "head",
    "id",
    "in",
    "install",
    "kdialog",
    "kill",
    "let",
    "ln",
    "logger",
    "ls",
    "mkdir",
    "mktemp",
    "mv",
    "notify-send",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readlink",
    "realpath",
    "return",
    "rm",
    "rmdir",
    "sed",
    "select",
    "set",
    "shift",
    "shopt",
    "sleep",
    "sort",
    "source",
    "stat",
    "stty",
    "tail",
    "tee",
    "test",
    "touch",
    "tr",
    "trap",
    "true",
    "tty",
    "type",
    "ulimit",
    "umask",
    "uname",
    "unalias",
    "uniq",
    "unset",
    "wait",
    "wc",
    "which",
    "xmessage",
    "zenity",
];

/// Reads a script and returns what may be its program, the likeliest first: what replaces the script and gets its
/// arguments, what replaces it, what gets its arguments, then any other command; of each the last one first.
pub(crate) fn commands(text: &str, script: &Path) -> Vec<Command> {
    let mut reading = Reading::new(script);
    let mut lexer = Lexer::new(text);
    while let Some(token) = lexer.next(&reading.variables) {
        reading.token(token);
    }
    reading.end();
    reading.found.into_iter().flatten().collect()
}

struct Reading {
    variables: Variables,
    words: Vec<Word>,
    parentheses: usize,
    functions: Vec<String>,
    folder: Option<String>,
    found: [VecDeque<Command>; 4],
}

impl Reading {
    fn new(script: &Path) -> Self {
        Self {
            variables: Variables::new(script),
            words: Vec::new(),
            parentheses: 0,
            functions: Vec::new(),
            folder: None,
            found: Default::default(),
        }
    }

    fn token(&mut self, token: Token) {
        match token {
            Token::Word(word) if word.vanishes && !word.passes => {}
            Token::Word(word) if self.words.len() < MAX_WORDS => self.push(word),
            Token::Word(word) => {
                // Only whether the arguments are handed on still matters.
                if let Some(last) = self.words.last_mut() {
                    last.passes |= word.passes;
                }
            }
            Token::End => self.end(),
            Token::Open => {
                // A word before a parenthesis is the name of a function.
                if let Some(name) = self.words.pop().and_then(|word| word.value)
                    && self.functions.len() < MAX_FUNCTIONS
                {
                    self.functions.push(name);
                }
                self.words.clear();
                self.parentheses += 1;
            }
            Token::Close if self.parentheses > 0 => {
                self.end();
                self.parentheses -= 1;
            }
            // The pattern of a case.
            Token::Close => self.words.clear(),
        }
    }

    fn push(&mut self, word: Word) {
        match word.value.as_deref().filter(|value| word.splits && value.contains(' ')) {
            Some(value) => {
                let room = MAX_WORDS - self.words.len();
                let part = |part: &str| Word { value: Some(part.to_owned()), ..word.clone() };
                let parts: Vec<Word> = value.split_whitespace().map(part).take(room).collect();
                self.words.extend(parts);
            }
            None => self.words.push(word),
        }
    }

    /// A command is complete.
    fn end(&mut self) {
        let mut words = std::mem::take(&mut self.words);
        let is = |word: Option<&Word>, list: &[&str]| {
            word.and_then(|word| word.value.as_deref()).is_some_and(|value| list.contains(&value))
        };
        while is(words.first(), &BEFORE) {
            words.remove(0);
        }
        let assignments = words.iter().take_while(|word| word.assigns.is_some()).count();
        if assignments == words.len()
            || is(words.first(), &["export", "local", "readonly", "declare", "typeset"])
        {
            for word in words {
                if let Some(name) = word.assigns {
                    self.variables.set(name, word.value);
                }
            }
            return;
        }
        words.drain(..assignments);
        if is(words.first(), &["for", "select", "read"]) {
            // What these set comes from a list or from outside.
            for name in words.into_iter().skip(1).filter_map(|word| word.value) {
                self.variables.set(name, None);
            }
            return;
        }
        if is(words.first(), &["cd"]) {
            self.folder =
                words.into_iter().nth(1).and_then(|word| word.value).filter(|path| path.starts_with('/'));
            return;
        }
        let replaces = is(words.first(), &["exec"]);
        if replaces {
            words.remove(0);
            while let Some(option) =
                words.first().and_then(|word| word.value.as_deref()).filter(|v| v.starts_with('-'))
            {
                let count = if option == "-a" { 2 } else { 1 };
                words.drain(..count.min(words.len()));
            }
        }
        let passes = words.iter().any(|word| word.passes);
        words.retain(|word| !word.passes || word.value.as_deref().is_none_or(|value| !value.is_empty()));
        if words.is_empty() || is(words.first(), &PREPARING) || self.is_function(words.first()) {
            return;
        }
        let rank = match (replaces, passes) {
            (true, true) => 0,
            (true, false) => 1,
            (false, true) => 2,
            (false, false) => 3,
        };
        let command: Command = words.into_iter().map(|word| word.value).collect();
        let command = self.placed(command);
        if let Some(found) = self.found.get_mut(rank) {
            found.push_front(command);
            found.truncate(MAX_COMMANDS);
        }
    }

    fn is_function(&self, word: Option<&Word>) -> bool {
        let name = word.and_then(|word| word.value.as_ref());
        name.is_some_and(|name| self.functions.contains(name))
    }

    /// A program named relative to a folder that the script has gone to.
    fn placed(&self, mut command: Command) -> Command {
        if let Some(first) = command.first_mut()
            && first.as_ref().is_some_and(|name| name.contains('/') && !name.starts_with('/'))
        {
            *first = first
                .take()
                .zip(self.folder.as_ref())
                .map(|(name, folder)| format!("{folder}/{}", name.trim_start_matches("./")));
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The likeliest command, with `?` for what cannot be known.
    fn first(text: &str) -> String {
        let found = commands(text, Path::new("/opt/app/bin/app.sh"));
        let words = found.first().map(|command| command.iter().map(|word| word.as_deref().unwrap_or("?")));
        words.map(|words| words.collect::<Vec<_>>().join(" ")).unwrap_or_default()
    }

    #[test]
    fn the_program_that_a_wrapper_starts_is_read_from_simple_words() {
        let table = [
            ("exec /usr/lib/foo/foo \"$@\"", "/usr/lib/foo/foo"),
            ("#!/bin/sh\n# exec /bad\nexec /usr/lib/foo/foo ${1+\"$@\"}\n", "/usr/lib/foo/foo"),
            ("DIR=/usr/lib/foo\nexec \"$DIR/foo\" \"$@\"", "/usr/lib/foo/foo"),
            ("export DIR='/usr/lib/foo'; exec ${DIR}/foo $*", "/usr/lib/foo/foo"),
            ("exec \"$(dirname \"$(readlink -f \"$0\")\")/foo\" \"$@\"", "/opt/app/bin/foo"),
            ("HERE=`dirname $0`\n$HERE/../lib/foo \"$@\"", "/opt/app/bin/../lib/foo"),
            ("exec \"${0%/*}/foo\" \"$@\"", "/opt/app/bin/foo"),
            ("exec -a foo /usr/lib/foo/foo \"$@\"", "/usr/lib/foo/foo"),
            ("GTK_CSD=0 exec /usr/lib/foo/foo \"$@\"", "/usr/lib/foo/foo"),
            ("cd /usr/share/foo\nexec ./run.py \"$@\"", "/usr/share/foo/run.py"),
            ("cd /usr/share/foo && python3 foo.py \"$@\"", "python3 foo.py"),
            ("exec $DEBUGGER /usr/lib/foo/foo \"$@\"", "/usr/lib/foo/foo"),
            ("exec java -jar /usr/share/java/foo.jar \"$@\"", "java -jar /usr/share/java/foo.jar"),
            ("if [ -x /a ]; then exec /a \"$@\"; else exec /b \"$@\"; fi", "/b"),
            ("exec /a \"$@\" 2>&1 >/dev/null", "/a"),
            ("cat <<EOF\nexec /bad \"$@\"\nEOF\nexec /good \"$@\"", "/good"),
            ("start() {\n exec /a \"$@\"\n}\nstart \"$@\"", "/a"),
            ("case $1 in\n start) exec /a \"$@\" ;;\n *) echo no;;\nesac", "/a"),
            ("foo --x \\\n  \"$@\" &", "foo --x"),
            ("JAVA=`which java`\n\"$JAVA\" -cp /x Main \"$@\"", "java -cp /x Main"),
            ("CMD=\"/usr/lib/foo $*\"\n$CMD", "/usr/lib/foo"),
            ("RUN='nice -n 5'\nexec $RUN /usr/lib/foo \"$@\"", "nice -n 5 /usr/lib/foo"),
            ("for J in /a /b; do test -x $J && break; done\nexec $J -jar x.jar \"$@\"", "? -jar x.jar"),
            ("exec `uname`/foo \"$@\"", "?"),
            ("exec ~/foo \"$@\"", "?"),
            ("exec $HOME/foo", "?"),
            ("exec /usr/lib/*/foo", "?"),
            ("X=$((1+1))\nexec /foo/$X", "?"),
            ("exec \"${FOO:-/usr/bin/foo}\"", "/usr/bin/foo"),
            ("echo hello", ""),
            ("A=$A$A$A$A; exec $A", ""),
        ];
        for (text, want) in table {
            assert_eq!(first(text), want, "{text}");
        }
    }

    #[test]
    fn values_do_not_grow_without_a_limit() {
        let mut text = "A=xxxxxxxxxxxxxxxx\n".to_owned();
        for _ in 0..64 {
            text.push_str("A=$A$A\n");
        }
        text.push_str("exec /$A \"$@\"\n");
        let found = first(&text);
        assert!(found.len() <= 4097, "{} bytes", found.len());
    }

    #[test]
    fn signs_that_stay_open_end_the_reading_at_once() {
        for sign in ["$(", "${", "`", "\"", "'", "(", "<<", "$((", "\"$(", "\\"] {
            let text = sign.repeat(crate::script::MAX_SCRIPT_BYTES / sign.len());
            let started = std::time::Instant::now();
            let _ = commands(&text, Path::new("/x"));
            assert!(started.elapsed().as_secs() < 5, "{sign}");
        }
    }
}
