//! From words to an exit code: read the command line, carry the verb out, print what it found.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::CommandFactory;

use crate::cli::{Cli, Colour, Contract, Format, Globals};
use crate::context::{Answer, Context, Follow, Report};
use crate::envelope::{self, Problem};
use crate::error::Error;
use crate::escape;
use crate::page::{Page, Tone};
use crate::stdio::Output;
use crate::usage::{self, Guess};

/// The exit code when the answer could not be written.
const EXIT_UNWRITTEN: u8 = 1;

/// Where a run prints, and whether a person reads it there.
pub struct Streams<'a> {
    /// Where answers go.
    pub out: &'a mut dyn Write,
    /// Where errors and notices for a person go.
    pub err: &'a mut dyn Write,
    /// Whether `out` is a terminal: the answer is a page then, and an envelope otherwise.
    pub out_is_terminal: bool,
    /// Whether `err` is a terminal.
    pub err_is_terminal: bool,
}

impl std::fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams")
            .field("out_is_terminal", &self.out_is_terminal)
            .field("err_is_terminal", &self.err_is_terminal)
            .finish_non_exhaustive()
    }
}

/// Runs the command line `args`, the program's name first, on the process's own output.
#[must_use]
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let (mut out, mut err) = (Output::stdout(), Output::stderr());
    let streams = Streams {
        out_is_terminal: io::stdout().is_terminal(),
        err_is_terminal: io::stderr().is_terminal(),
        out: &mut out,
        err: &mut err,
    };
    if Output::stdout_was_closed() {
        // Said before anything is done: an effect whose result nobody can read should not begin.
        return Printer::new(streams).unwritten(&io::Error::other("standard output is closed")).into();
    }
    run(args, streams).into()
}

/// Runs the command line `args`, the program's name first, and gives the exit code.
pub fn run(args: impl Iterator<Item = OsString>, streams: Streams<'_>) -> u8 {
    let args: Vec<OsString> = args.collect();
    let words = args.get(1..).unwrap_or_default();
    let mut printer = Printer::new(streams);
    if words.is_empty() {
        let help = Cli::command().render_help();
        return printer.document(printer.styled(&help).as_bytes());
    }
    match Cli::read(&args) {
        Ok(cli) => printer.carry_out(&cli),
        Err(error) if usage::is_help(&error) => printer.document(printer.styled(&error.render()).as_bytes()),
        Err(error) => {
            let guess = Guess::of(words, std::env::var_os("PCP_FORMAT"));
            printer.choose(guess.json, guess.contract);
            printer.refuse(&usage::problem(&error), None)
        }
    }
}

/// Prints answers in the form that was chosen.
struct Printer<'a> {
    streams: Streams<'a>,
    json: bool,
    contract: Contract,
    colour: Colour,
}

impl<'a> Printer<'a> {
    fn new(streams: Streams<'a>) -> Self {
        let json = !streams.out_is_terminal;
        Self { streams, json, contract: Contract::Ordinary, colour: Colour::Auto }
    }

    fn choose(&mut self, json: Option<bool>, contract: Contract) {
        self.json = contract == Contract::S3 || json.unwrap_or(!self.streams.out_is_terminal);
        self.contract = contract;
    }

    fn carry_out(&mut self, cli: &Cli) -> u8 {
        self.choose(wants_json(&cli.globals), cli.verb.contract());
        self.colour = cli.globals.color;
        let notices: Option<&mut dyn Write> = if self.json { None } else { Some(&mut *self.streams.err) };
        let found = cli.verb.run(&mut Context { globals: &cli.globals, notices });
        match found {
            Ok(Answer::Document(bytes)) => self.document(&bytes),
            Ok(Answer::Report(report)) => self.report(&*report),
            Ok(Answer::Stream(mut follow)) => self.stream(&mut *follow),
            Err(error) => self.fail(&error),
        }
    }

    fn fail(&mut self, error: &Error) -> u8 {
        if self.json { self.refuse(&Problem::from(error), None) } else { self.complain(error) }
    }

    /// Every line is out before the next one is waited for: whoever reads acts on it meanwhile.
    fn stream(&mut self, follow: &mut dyn Follow) -> u8 {
        loop {
            let line = match follow.next() {
                Ok(Some(report)) => self.streamed(&*report),
                Ok(None) => return 0,
                Err(error) => Err(error),
            };
            let code = match line {
                Ok(line) => self.write(line.as_bytes(), 0),
                Err(error) => return self.fail(&error),
            };
            if code != 0 {
                return code;
            }
        }
    }

    fn streamed(&self, report: &dyn Report) -> Result<String, Error> {
        if self.json {
            return Ok(escape::json(&report.data()?) + "\n");
        }
        let mut page = Page::default();
        report.page(&mut page);
        Ok(page.finish(self.coloured(self.streams.out_is_terminal)))
    }

    fn report(&mut self, report: &dyn Report) -> u8 {
        let trouble = report.trouble();
        if self.json {
            return match (report.data(), &trouble) {
                (Ok(data), None) => match envelope::line(Some(&data), None) {
                    Ok(line) => self.write(line.as_bytes(), 0),
                    Err(error) => self.refuse(&Problem::from(&error), None),
                },
                (Ok(data), Some(problem)) => self.refuse(problem, Some(&data)),
                (Err(error), _) => self.refuse(&Problem::from(&error), None),
            };
        }
        let mut page = Page::default();
        report.page(&mut page);
        let page = page.finish(self.coloured(self.streams.out_is_terminal));
        let code = self.write(page.as_bytes(), 0);
        match trouble {
            Some(problem) if code == 0 => {
                self.say(&problem.message, None, problem.hint.as_deref(), problem.code.exit_code())
            }
            _ => code,
        }
    }

    /// An envelope or lines that say what is wrong.
    fn refuse(&mut self, problem: &Problem, data: Option<&str>) -> u8 {
        let code = problem.code.exit_code();
        if !self.json {
            return self.say(&problem.message, None, problem.hint.as_deref(), code);
        }
        let line = match self.contract {
            Contract::S3 => envelope::line(None, Some(&problem.clone().bare())),
            Contract::Ordinary => envelope::line(data, Some(problem)),
        };
        match line {
            Ok(line) => self.write(line.as_bytes(), code),
            // A problem consists of plain strings; only data could have been no JSON.
            Err(error) => match envelope::line(None, Some(&Problem::from(&error))) {
                Ok(line) => self.write(line.as_bytes(), error.code().exit_code()),
                Err(error) => self.unwritten(&io::Error::other(error)),
            },
        }
    }

    fn complain(&mut self, error: &Error) -> u8 {
        let (cause, hint) = (error.cause(), error.hint());
        self.say(&error.to_string(), cause.as_deref(), hint.as_deref(), error.code().exit_code())
    }

    /// `error:`, `cause:` and `hint:` on standard error.
    fn say(&mut self, message: &str, cause: Option<&str>, hint: Option<&str>, code: u8) -> u8 {
        let mut page = Page::default();
        page.labelled(Tone::Bad, "error", message);
        if let Some(cause) = cause {
            page.labelled(Tone::Careful, "cause", cause);
        }
        if let Some(hint) = hint {
            page.labelled(Tone::Good, "hint", hint);
        }
        let text = page.finish(self.coloured(self.streams.err_is_terminal));
        // The exit code still says it where standard error cannot.
        let _ = self.streams.err.write_all(text.as_bytes());
        code
    }

    fn document(&mut self, bytes: &[u8]) -> u8 {
        self.write(bytes, 0)
    }

    fn write(&mut self, bytes: &[u8], code: u8) -> u8 {
        match self.streams.out.write_all(bytes).and_then(|()| self.streams.out.flush()) {
            Ok(()) => code,
            Err(error) => self.unwritten(&error),
        }
    }

    /// The answer is lost: one line, unless the reader went away on purpose.
    fn unwritten(&mut self, error: &io::Error) -> u8 {
        if error.kind() != io::ErrorKind::BrokenPipe {
            let _ = writeln!(self.streams.err, "pcp-cli: cannot write the answer: {error}");
        }
        EXIT_UNWRITTEN
    }

    fn styled(&self, text: &clap::builder::StyledStr) -> String {
        if self.coloured(self.streams.out_is_terminal) { text.ansi().to_string() } else { text.to_string() }
    }

    fn coloured(&self, is_terminal: bool) -> bool {
        match self.colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => environment_wants_colour(is_terminal),
        }
    }
}

fn wants_json(globals: &Globals) -> Option<bool> {
    if globals.json {
        return Some(true);
    }
    globals.format.map(|format| format == Format::Json)
}

/// NO_COLOR, then CLICOLOR_FORCE, then CLICOLOR and TERM on a terminal.
fn environment_wants_colour(is_terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if set("NO_COLOR").is_some() {
        return false;
    }
    if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return true;
    }
    is_terminal
        && set("CLICOLOR").is_none_or(|value| value != "0")
        && set("TERM").is_some_and(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refuses every write.
    struct Refusing(io::ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn words(line: &str) -> impl Iterator<Item = OsString> {
        line.split(' ').map(OsString::from).collect::<Vec<_>>().into_iter()
    }

    fn on(line: &str, is_terminal: bool) -> (u8, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let streams = Streams {
            out: &mut out,
            err: &mut err,
            out_is_terminal: is_terminal,
            err_is_terminal: is_terminal,
        };
        let code = run(words(line), streams);
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    #[test]
    fn an_answer_that_cannot_be_written_is_exit_code_1_with_one_line_unless_the_reader_went_away() {
        let table = [
            (io::ErrorKind::StorageFull, "pcp-cli: cannot write the answer: no storage space\n"),
            (io::ErrorKind::BrokenPipe, ""),
        ];
        for (kind, line) in table {
            for words_of in ["x version", "x pnig", "x", "x wire --list", "x ping --help"] {
                let (mut out, mut err) = (Refusing(kind), Vec::new());
                let streams =
                    Streams { out: &mut out, err: &mut err, out_is_terminal: false, err_is_terminal: false };
                assert_eq!(run(words(words_of), streams), 1, "{words_of}");
                assert_eq!(String::from_utf8(err).unwrap(), line, "{words_of}");
            }
        }
    }

    #[test]
    fn no_words_at_all_give_help() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let streams =
            Streams { out: &mut out, err: &mut err, out_is_terminal: false, err_is_terminal: false };
        assert_eq!(run(std::iter::empty(), streams), 0);
        assert!(String::from_utf8(out).unwrap().contains("Usage: pcp-cli"));
    }

    #[test]
    fn the_form_follows_from_the_terminal_and_the_options_win() {
        let table = [
            ("x capability parse app.x.y", false, "{\"ok\":true"),
            ("x capability parse app.x.y", true, "  Canonical: app.x.y"),
            ("x capability parse app.x.y --json", true, "{\"ok\":true"),
            ("x --format json capability parse app.x.y", true, "{\"ok\":true"),
            ("x --format table capability parse app.x.y", false, "  Canonical: app.x.y"),
            ("x --format table --json capability parse app.x.y", false, "{\"ok\":true"),
        ];
        for (line, is_terminal, start) in table {
            let (code, out, err) = on(&format!("{line} --color never"), is_terminal);
            assert_eq!((code, err.as_str()), (0, ""), "{line}");
            assert!(out.starts_with(start), "{line}: {out}");
        }
    }

    #[test]
    fn an_error_is_an_envelope_or_lines_but_never_both() {
        let (code, out, err) = on("x capability parse a.b --color never", false);
        assert_eq!((code, err.as_str()), (2, ""));
        assert!(out.starts_with("{\"ok\":false,\"error\":{\"code\":\"usage\""), "{out}");
        let (code, out, err) = on("x capability parse a.b --color never", true);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.starts_with("error: capability id \"a.b\"") && err.contains("\nhint: "), "{err}");
    }
}
