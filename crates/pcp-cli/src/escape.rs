//! Text of strangers made harmless: nothing that an application or a file says may move a terminal's cursor,
//! reverse its writing direction or look like another line (R-164).

use std::fmt::Write;

/// Whether a terminal would do something else with `letter` than show it.
///
/// Controls (C0, DEL, C1), line separators, marks that change the direction of writing, and marks without width
/// or shape of their own.
fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// `text` for a terminal: what would act is written as `\n`, `\t` or `\u{…}`.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            acting if acts(acting) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(acting));
            }
            letter => shown.push(letter),
        }
    }
    shown
}

/// Valid JSON as one line of the same value: white space between tokens that would end the line becomes a
/// space, and in strings what would act becomes its `\u` escape.
///
/// A raw line end can only stand between tokens and everything else that acts only inside a string, so the text
/// need not be parsed again.
pub(crate) fn json(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' | '\t' => line.push(' '),
            acting if acts(acting) => {
                for unit in acting.encode_utf16(&mut [0; 2]) {
                    let _ = write!(line, "\\u{unit:04x}");
                }
            }
            letter => line.push(letter),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: [(&str, &str); 8] = [
        ("\u{1b}[2J\u{1b}]0;owned\u{7}", "\\u{1b}[2J\\u{1b}]0;owned\\u{7}"),
        ("a\nerror: b", "a\\nerror: b"),
        ("\r\t\0\u{7f}", "\\r\\t\\u{0}\\u{7f}"),
        ("\u{9b}31m", "\\u{9b}31m"),
        ("invoice\u{202e}fdp.exe", "invoice\\u{202e}fdp.exe"),
        ("\u{2066}x\u{2069}\u{200f}", "\\u{2066}x\\u{2069}\\u{200f}"),
        ("line\u{2028}separator\u{feff}", "line\\u{2028}separator\\u{feff}"),
        ("tag\u{e0041}", "tag\\u{e0041}"),
    ];

    #[test]
    fn what_a_terminal_would_act_on_is_shown_as_its_number() {
        for (text, shown) in HOSTILE {
            assert_eq!(plain(text), shown);
        }
    }

    #[test]
    fn what_people_write_stays_as_it_is() {
        for text in ["Grüße, 世界 👩‍🚀", "a \"b\" \\ c", "العربية", ""] {
            assert_eq!(plain(text), text);
            assert_eq!(json(text), text);
        }
    }

    #[test]
    fn escaped_json_is_one_harmless_line_of_the_same_value() {
        for (text, _) in HOSTILE {
            let value = serde_json::json!({ text: [text, {"n": 1}] });
            for layout in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let line = json(&layout);
                assert!(!line.chars().any(acts), "{line:?}");
                assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
            }
        }
    }
}
