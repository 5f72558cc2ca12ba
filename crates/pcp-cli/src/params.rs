//! Parameters as they stand on a command line, as one JSON object.
//!
//! `name=text` gives a string, `name:=JSON` any value. The members keep the order of the words, so that the
//! same words give the same bytes: an operation id is bound to them (R-181).

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use pcp_core::intent::MAX_PARAMETERS_BYTES;
use serde_json::value::RawValue;

use crate::error::Error;

/// Most parameters that can be given as words: more are written into a file.
const MAX_WORDS: usize = 256;

const HINT: &str = "write name=text, name:=JSON, or give one object by --params";

/// The object that the words make.
pub(crate) fn from_words(words: &[String]) -> Result<String, Error> {
    if words.len() > MAX_WORDS {
        let message = format!("{} parameters exceed the limit of {MAX_WORDS}", words.len());
        return Err(Error::usage(message, "give one object by --params FILE"));
    }
    let mut object = String::from("{");
    let mut names: Vec<&str> = Vec::with_capacity(words.len());
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            return Err(Error::usage(format!("parameter {word:?} has no ="), HINT));
        };
        let (name, value) = match name.strip_suffix(':') {
            Some(name) => (name, json(name, value)?),
            None => (name, serde_json::to_string(value)?),
        };
        if name.is_empty() {
            return Err(Error::usage(format!("parameter {word:?} has no name"), HINT));
        }
        if names.contains(&name) {
            return Err(Error::usage(format!("parameter {name:?} is given twice"), "give it once"));
        }
        if !names.is_empty() {
            object.push(',');
        }
        names.push(name);
        object.push_str(&serde_json::to_string(name)?);
        object.push(':');
        object.push_str(&value);
    }
    object.push('}');
    within_limit(object)
}

fn json(name: &str, value: &str) -> Result<String, Error> {
    match serde_json::from_str::<&RawValue>(value) {
        Ok(raw) => Ok(raw.get().to_owned()),
        Err(error) => Err(Error::usage(
            format!("the value of {name:?} is no JSON: {error}"),
            format!("write {name}=text for a string"),
        )),
    }
}

/// The object that a text is, byte for byte.
pub(crate) fn from_text(text: String) -> Result<String, Error> {
    let refused = |why: &str| Error::usage(format!("the parameters are no JSON object: {why}"), HINT);
    let raw = serde_json::from_str::<&RawValue>(&text).map_err(|error| refused(&error.to_string()))?;
    if !raw.get().starts_with('{') {
        return Err(refused("another kind of value"));
    }
    within_limit(raw.get().to_owned())
}

/// The object in a file; `-` is standard input.
pub(crate) fn from_file(path: &Path) -> Result<String, Error> {
    let read = |source: &mut dyn Read| {
        let mut text = String::new();
        // One byte more tells a full file from one that is too long.
        source.take(MAX_PARAMETERS_BYTES as u64 + 1).read_to_string(&mut text).map(|_| text)
    };
    let text = if path == Path::new("-") {
        read(&mut io::stdin().lock())
    } else {
        File::open(path).and_then(|mut file| read(&mut file))
    };
    match text {
        Ok(text) => within_limit(text).and_then(from_text),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(Error::usage(format!("the parameters in {} are not UTF-8", path.display()), HINT))
        }
        Err(error) => Err(Error::file("read the parameters in", path, error)),
    }
}

fn within_limit(object: String) -> Result<String, Error> {
    if object.len() <= MAX_PARAMETERS_BYTES {
        return Ok(object);
    }
    let message = format!("the parameters exceed the {MAX_PARAMETERS_BYTES}-byte limit");
    Err(Error::usage(message, "hand large data over as a file that the application can read"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcp_core::ErrorCode;

    fn words(words: &[&str]) -> Result<String, Error> {
        from_words(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn words_make_one_object_in_their_order() {
        let table: [(&[&str], &str); 8] = [
            (&[], "{}"),
            (&["title=Milch"], r#"{"title":"Milch"}"#),
            (&["b=2", "a:=1"], r#"{"b":"2","a":1}"#),
            (&["empty="], r#"{"empty":""}"#),
            (&["url=http://x/?a=b"], r#"{"url":"http://x/?a=b"}"#),
            (&["list:=[1, {\"a\":null}]"], r#"{"list":[1, {"a":null}]}"#),
            (&["q\"=a\"b\u{1b}"], "{\"q\\\"\":\"a\\\"b\\u001b\"}"),
            (&["big:=9007199254740993"], r#"{"big":9007199254740993}"#),
        ];
        for (given, object) in table {
            assert_eq!(words(given).unwrap(), object);
        }
    }

    #[test]
    fn words_that_mean_nothing_are_a_wrong_command_line() {
        let many = vec!["a=1"; MAX_WORDS + 1];
        let table: [&[&str]; 7] =
            [&["title"], &["=x"], &[":=1"], &["a:=nope"], &["a:="], &["a=1", "a:=2"], &many];
        for given in table {
            assert_eq!(words(given).unwrap_err().code(), ErrorCode::Usage, "{given:?}");
        }
    }

    #[test]
    fn a_text_is_taken_byte_for_byte_or_refused() {
        assert_eq!(from_text(" {\"b\" : 1,\n\"a\":2}\n".into()).unwrap(), "{\"b\" : 1,\n\"a\":2}");
        for bad in ["", "[]", "\"{}\"", "{}{}", "{", "null"] {
            assert_eq!(from_text(bad.into()).unwrap_err().code(), ErrorCode::Usage, "{bad:?}");
        }
    }

    #[test]
    fn parameters_one_byte_past_the_limit_are_refused() {
        let text = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(from_text(text(MAX_PARAMETERS_BYTES)).is_ok());
        assert_eq!(from_text(text(MAX_PARAMETERS_BYTES + 1)).unwrap_err().code(), ErrorCode::Usage);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text(MAX_PARAMETERS_BYTES)).unwrap();
        assert!(from_file(file.path()).is_ok());
        std::fs::write(file.path(), text(MAX_PARAMETERS_BYTES + 1)).unwrap();
        assert_eq!(from_file(file.path()).unwrap_err().code(), ErrorCode::Usage);
    }

    #[test]
    fn a_file_of_parameters_that_is_not_there_or_no_text_is_said_so() {
        let missing = from_file(Path::new("/nonexistent/params.json")).unwrap_err();
        assert_eq!(missing.code(), ErrorCode::NotFound);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"{\"a\":\"\xff\"}").unwrap();
        assert_eq!(from_file(file.path()).unwrap_err().code(), ErrorCode::Usage);
    }
}
