//! From a desktop file id to an application id.

use pcp_core::AppId;
use pcp_core::id::MAX_APP_ID_BYTES;
use sha2::{Digest, Sha256};

/// Digits of the digest that a changed id ends with: enough that no two names on one system meet.
const DIGEST_BYTES: usize = 6;

/// The application that the desktop file with this id is about.
///
/// That is the id without `.desktop`, where an application id may read so. Otherwise every character that may not
/// stand there becomes `_`, and the first digits of the SHA-256 of the unchanged text follow after a hyphen: menus of
/// Wine have blanks in their names. The same file has the same id on every device and at every start.
#[must_use]
pub fn app_id(desktop_file_id: &str) -> Option<AppId> {
    let stem = desktop_file_id.strip_suffix(".desktop").unwrap_or(desktop_file_id);
    AppId::parse(stem).or_else(|_| AppId::parse(&changed(stem))).ok()
}

fn changed(stem: &str) -> String {
    let digest: String =
        Sha256::digest(stem.as_bytes()).iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect();
    let room = MAX_APP_ID_BYTES - digest.len() - 1;
    let mut id = String::with_capacity(MAX_APP_ID_BYTES);
    for (number, part) in stem.split('.').enumerate() {
        if number > 0 {
            id.push('.');
        }
        if part.is_empty() || part.starts_with('-') {
            id.push('_');
        }
        id.extend(part.chars().map(|char| match char {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => char,
            _ => '_',
        }));
        if id.len() > room {
            break;
        }
    }
    id.truncate(room);
    // A cut behind a dot would leave a part that begins with a hyphen.
    if id.is_empty() || id.ends_with('.') {
        id.pop();
        id.push('_');
    }
    id + "-" + &digest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_that_may_stand_is_kept_and_any_other_is_changed_in_one_way() {
        let table = [
            ("org.example.Notes.desktop", "org.example.Notes"),
            ("foo-bar.desktop", "foo-bar"),
            ("firefox", "firefox"),
            ("wine-Programs-My App.desktop", "wine-Programs-My_App-caec58879af3"),
            ("pcpd.desktop", "pcpd-304d02f76f6d"),
            ("..desktop", "_._-"),
        ];
        for (file, wanted) in table {
            let found = app_id(file).unwrap();
            assert!(found.as_str().starts_with(wanted), "{file}: {found}");
        }
        assert_ne!(app_id("a b.desktop"), app_id("a+b.desktop"));
    }

    #[test]
    fn a_file_id_longer_than_an_application_id_is_cut_and_stays_its_own() {
        let long = |last: &str| app_id(&("a".repeat(MAX_APP_ID_BYTES) + last)).unwrap();
        assert_eq!(long("x").as_str().len(), MAX_APP_ID_BYTES);
        assert_ne!(long("x"), long("y"));
    }

    proptest! {
        #[test]
        fn every_file_has_an_application_id(text in ".{0,300}") {
            prop_assert!(app_id(&text).is_some());
        }

        #[test]
        fn every_file_of_dots_and_hyphens_has_one(text in "[.\\-a]{0,300}") {
            prop_assert!(app_id(&text).is_some());
        }
    }
}
