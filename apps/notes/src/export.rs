//! One note as a document for somewhere else.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::note::Note;

/// What a note is exported as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Title, empty line, body.
    Text,
    /// The title as a heading; the body as it is.
    Markdown,
    /// Everything that is known of the note.
    Json,
}

impl Format {
    fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain",
            Self::Markdown => "text/markdown",
            Self::Json => "application/json",
        }
    }
}

impl Note {
    /// The note as JSON.
    pub(crate) fn to_json(&self, id: u64) -> Value {
        let crate::note::Header { revision, created_ms, changed_ms, title } = &self.header;
        json!({"id": id, "revision": revision, "title": title, "body": self.body,
               "created_ms": created_ms, "changed_ms": changed_ms})
    }
}

/// The result of the `export` capability.
pub(crate) fn export(id: u64, note: &Note, format: Format) -> Value {
    let title = &note.header.title;
    let content = match format {
        Format::Text => format!("{title}\n\n{}", note.body),
        Format::Markdown => format!("# {}\n\n{}", escape_markdown(title), note.body),
        Format::Json => format!("{:#}", note.to_json(id)),
    };
    json!({"id": id, "format": format, "media_type": format.media_type(), "content": content})
}

/// A title is text, whatever stands in it (CommonMark 2.4: any ASCII punctuation may be escaped).
fn escape_markdown(title: &str) -> String {
    let mut escaped = String::with_capacity(title.len());
    for c in title.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '&' | '!' | '~' | '|') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::Header;

    #[test]
    fn each_format_has_its_document_and_media_type() {
        let header = Header { revision: 2, created_ms: 5, changed_ms: 9, title: "Buy *milk*".into() };
        let note = Note { header, body: "two\nlitres".into() };
        let table = [
            (Format::Text, "text/plain", "Buy *milk*\n\ntwo\nlitres"),
            (Format::Markdown, "text/markdown", "# Buy \\*milk\\*\n\ntwo\nlitres"),
        ];
        for (format, media_type, content) in table {
            let result = export(7, &note, format);
            assert_eq!(
                (result["media_type"].as_str(), result["content"].as_str()),
                (Some(media_type), Some(content))
            );
        }
        let result = export(7, &note, Format::Json);
        let read: Value = serde_json::from_str(result["content"].as_str().unwrap()).unwrap();
        assert_eq!(read, note.to_json(7));
        assert_eq!((result["format"].as_str(), result["id"].as_u64()), (Some("json"), Some(7)));
    }
}
