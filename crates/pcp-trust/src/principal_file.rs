//! One file of `principals.d` or `apps.d`: its members, their limits, and the line an error is on.

use std::path::{Path, PathBuf};

use pcp_core::{AppId, AuthPrincipal, CapabilityId, Domain, Modality, TrustLevel};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use toml::Spanned;

use crate::error::Error;

/// Bytes of a principal's display name: one column of a table.
pub const MAX_NAME_BYTES: usize = 64;
/// Requests a second that one connection may be allowed: several times what a connection can carry, so
/// that a load test is never held back by it and a slip of the keyboard is still seen as one.
pub const MAX_RATE_PER_SECOND: u32 = 1_000_000;
/// Why an application may not run as root: uid 0 is admin by definition.
const ROOT_APP: &str = "an application needs a uid of its own, not 0";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrincipalText {
    uid: u32,
    domain: Domain,
    #[serde(deserialize_with = "trust")]
    trust: TrustLevel,
    #[serde(default)]
    flags: Vec<Flag>,
    modality: Modality,
    name: Option<Spanned<String>>,
    rate_per_second: Option<Spanned<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Flag {
    Admin,
    Confirmer,
}

fn trust<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<TrustLevel, D::Error> {
    let level = u8::deserialize(deserializer)?;
    TrustLevel::new(level)
        .ok_or_else(|| D::Error::custom(format!("trust {level} is above 3, the highest level")))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AppText {
    uid: Spanned<u32>,
    manifest: Spanned<PathBuf>,
    prefix: Option<Spanned<String>>,
}

/// What a file of `principals.d` says.
#[derive(Debug)]
pub(crate) struct PrincipalFile {
    pub(crate) principal: AuthPrincipal,
    pub(crate) name: Option<String>,
}

/// What a file of `apps.d` says.
#[derive(Debug)]
pub(crate) struct AppFile {
    pub(crate) app_id: AppId,
    pub(crate) uid: u32,
    pub(crate) manifest: PathBuf,
    pub(crate) prefix: Option<String>,
}

/// A file's text, for reading it and for saying where in it something is wrong.
#[derive(Debug, Clone, Copy)]
struct Source<'a> {
    file: &'a Path,
    text: &'a str,
}

impl<'a> Source<'a> {
    fn new(file: &'a Path, bytes: &'a [u8]) -> Result<Self, Error> {
        str::from_utf8(bytes).map(|text| Self { file, text }).map_err(|error| {
            let text = String::from_utf8_lossy(bytes);
            Source { file, text: &text }.error(error.valid_up_to(), "not UTF-8")
        })
    }

    fn parse<T: DeserializeOwned>(self) -> Result<T, Error> {
        toml::from_str(self.text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            self.error(offset, error.message().replace('\n', " "))
        })
    }

    fn error(self, offset: usize, detail: impl Into<String>) -> Error {
        let line = 1 + self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count();
        let uids_named = uids_named(self.text);
        Error::PrincipalFile { path: self.file.to_owned(), line, detail: detail.into(), uids_named }
    }
}

/// Reads a file of `principals.d`.
pub(crate) fn parse_principal(file: &Path, bytes: &[u8]) -> Result<PrincipalFile, Error> {
    let source = Source::new(file, bytes)?;
    let read: PrincipalText = source.parse()?;
    if let Some(name) = &read.name {
        let bytes = name.get_ref().len();
        if !(1..=MAX_NAME_BYTES).contains(&bytes) || name.get_ref().chars().any(char::is_control) {
            let detail = format!("name of {bytes} bytes is not 1 to {MAX_NAME_BYTES} printable bytes");
            return Err(source.error(name.span().start, detail));
        }
    }
    if let Some(rate) = &read.rate_per_second
        && !(1..=MAX_RATE_PER_SECOND).contains(rate.get_ref())
    {
        let detail = format!("rate_per_second {} is outside 1 to {MAX_RATE_PER_SECOND}", rate.get_ref());
        return Err(source.error(rate.span().start, detail));
    }
    let principal = AuthPrincipal {
        uid: read.uid,
        pid: None,
        domain: read.domain,
        trust: read.trust,
        // uid 0 can rewrite these files: calling it anything else would be a pretence.
        admin: read.uid == 0 || read.flags.contains(&Flag::Admin),
        confirmer: read.flags.contains(&Flag::Confirmer),
        modality: read.modality,
        rate_per_second: read.rate_per_second.map(Spanned::into_inner),
    };
    Ok(PrincipalFile { principal, name: read.name.map(Spanned::into_inner) })
}

/// Reads a file of `apps.d`; the application's id is the file's name.
pub(crate) fn parse_app(file: &Path, bytes: &[u8]) -> Result<AppFile, Error> {
    let source = Source::new(file, bytes)?;
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let app_id = AppId::parse(stem).map_err(|error| source.error(0, format!("file name: {error}")))?;
    let read: AppText = source.parse()?;
    if *read.uid.get_ref() == 0 {
        return Err(source.error(read.uid.span().start, ROOT_APP));
    }
    if !read.manifest.get_ref().is_absolute() {
        let detail = format!("manifest {} is no absolute path", read.manifest.get_ref().display());
        return Err(source.error(read.manifest.span().start, detail));
    }
    let prefix = read.prefix.map(|prefix| canonical_prefix(source, &prefix)).transpose()?;
    Ok(AppFile { app_id, uid: read.uid.into_inner(), manifest: read.manifest.into_inner(), prefix })
}

/// A prefix is what stands before the action of an id, so it is one if an id with an action added is one.
fn canonical_prefix(source: Source<'_>, prefix: &Spanned<String>) -> Result<String, Error> {
    let id = CapabilityId::parse(&format!("{}.any", prefix.get_ref())).map_err(|error| {
        source.error(prefix.span().start, format!("prefix {:?}: {error}", prefix.get_ref()))
    })?;
    Ok(format!("{}.{}", id.domain(), id.app()))
}

/// The uids on lines that look like `uid = N`, read without understanding the file.
fn uids_named(text: &str) -> Vec<u32> {
    let uid = |line: &str| {
        let value = line.trim_start().strip_prefix("uid")?.trim_start().strip_prefix('=')?;
        value.split('#').next()?.trim().replace('_', "").parse().ok()
    };
    text.lines().filter_map(uid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATOR: &str = "uid = 1000\ndomain = \"system\"\ntrust = 3\nmodality = \"remote\"\n";

    fn principal(text: &str) -> Result<PrincipalFile, Error> {
        parse_principal(Path::new("/p/x.toml"), text.as_bytes())
    }

    fn app(text: &str) -> Result<AppFile, Error> {
        parse_app(Path::new("/a/org.example.notes.toml"), text.as_bytes())
    }

    #[test]
    fn a_full_principal_file_is_read() {
        let text = format!(
            "{OPERATOR}flags = [\"admin\", \"confirmer\"]\nname = \"Op\"\nrate_per_second = 500 # more\n"
        );
        let PrincipalFile { principal, name } = principal(&text).unwrap();
        let expected = AuthPrincipal {
            uid: 1000,
            pid: None,
            domain: Domain::System,
            trust: TrustLevel::SYSTEM,
            admin: true,
            confirmer: true,
            modality: Modality::Remote,
            rate_per_second: Some(500),
        };
        assert_eq!((principal, name.as_deref()), (expected, Some("Op")));
    }

    #[test]
    fn every_modality_domain_and_trust_level_has_its_word() {
        for modality in Modality::ALL {
            let text = OPERATOR.replace("remote", modality.as_str());
            assert_eq!(principal(&text).unwrap().principal.modality, *modality);
        }
        for domain in Domain::ALL {
            let text = OPERATOR.replace("\"system\"", &format!("\"{domain}\""));
            assert_eq!(principal(&text).unwrap().principal.domain, *domain);
        }
        for trust in 0..=3 {
            let text = OPERATOR.replace("trust = 3", &format!("trust = {trust}"));
            assert_eq!(principal(&text).unwrap().principal.trust.get(), trust);
        }
    }

    #[test]
    fn flags_default_to_none_and_uid_0_is_admin() {
        let plain = principal(OPERATOR).unwrap().principal;
        assert!(!plain.admin && !plain.confirmer);
        let root = principal(&OPERATOR.replace("1000", "0")).unwrap().principal;
        assert!(root.admin && !root.confirmer);
    }

    #[test]
    fn a_principal_file_that_breaks_a_rule_is_refused_with_file_and_line() {
        let long = format!("name = \"{}\"", "x".repeat(MAX_NAME_BYTES + 1));
        let fast = format!("rate_per_second = {}", MAX_RATE_PER_SECOND + 1);
        let table = [
            ("trust = 3", "trust = 4", 3, "trust 4 is above 3"),
            ("trust = 3", "trust = -1", 3, ""),
            ("trust = 3", "trust = \"3\"", 3, ""),
            ("trust = 3", "level = 3", 3, "unknown field `level`"),
            ("trust = 3", "trust = 3\ntrust = 2", 4, "duplicate key"),
            ("trust = 3\n", "", 1, "missing field `trust`"),
            ("\"system\"", "\"kernel\"", 2, "kernel"),
            ("\"remote\"", "\"telepathy\"", 4, "telepathy"),
            ("uid = 1000", "uid = 4294967296", 1, ""),
            ("uid = 1000", "uid = -1", 1, ""),
            ("\"remote\"\n", "\"remote\"\nflags = [\"root\"]", 5, "root"),
            ("\"remote\"\n", "\"remote\"\nname = \"\"", 5, "name of 0 bytes"),
            ("\"remote\"\n", "\"remote\"\nname = \"a\\u001b[2Jb\"", 5, "printable"),
            ("\"remote\"\n", &format!("\"remote\"\n{long}"), 5, "name of 65 bytes"),
            ("\"remote\"\n", "\"remote\"\nrate_per_second = 0", 5, "outside 1 to 1000000"),
            ("\"remote\"\n", &format!("\"remote\"\n{fast}"), 5, "outside 1 to 1000000"),
            ("domain = ", "domain ", 2, ""),
        ];
        for (from, to, line, detail) in table {
            let error = principal(&OPERATOR.replace(from, to)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("/p/x.toml:{line}: ")), "{to:?}: {error}");
            assert!(error.contains(detail), "{to:?}: {error}");
            assert!(!error.contains('\n'), "{error:?}");
        }
    }

    #[test]
    fn the_limits_themselves_pass() {
        let name = "x".repeat(MAX_NAME_BYTES);
        let text = format!("{OPERATOR}name = \"{name}\"\nrate_per_second = {MAX_RATE_PER_SECOND}\n");
        assert_eq!(principal(&text).unwrap().name, Some(name));
    }

    #[test]
    fn an_application_file_is_read_and_its_prefix_made_canonical() {
        let read =
            app("uid = 210\nmanifest = \"/usr/share/notes.json\"\nprefix = \"editor.other\"\n").unwrap();
        assert_eq!(read.app_id.as_str(), "org.example.notes");
        assert_eq!((read.uid, read.manifest.to_str()), (210, Some("/usr/share/notes.json")));
        assert_eq!(read.prefix.as_deref(), Some("app.other"));
        assert_eq!(app("uid = 210\nmanifest = \"/m\"\n").unwrap().prefix, None);
    }

    #[test]
    fn an_application_file_that_breaks_a_rule_is_refused_with_file_and_line() {
        let table = [
            ("uid = 0\nmanifest = \"/m\"\n", 1, "a uid of its own"),
            ("uid = 5\nmanifest = \"m\"\n", 2, "no absolute path"),
            ("uid = 5\nmanifest = \"/m\"\nprefix = \"system\"\n", 3, "three parts"),
            ("uid = 5\nmanifest = \"/m\"\nprefix = \"root.x\"\n", 3, "prefix \"root.x\""),
            ("uid = 5\nmanifest = \"/m\"\nprefix = \"\"\n", 3, "prefix"),
            ("uid = 5\nmanifest = \"/m\"\nprefix = \"app.*\"\n", 3, "prefix"),
            ("uid = 5\n\nmanifest = \"/m\"\nkey = \"k\"\n", 4, "unknown field `key`"),
        ];
        for (text, line, detail) in table {
            let error = app(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("/a/org.example.notes.toml:{line}: ")), "{error}");
            assert!(error.contains(detail), "{error}");
        }
        let hostile = parse_app(Path::new("/a/-x.toml"), b"uid = 5\nmanifest = \"/m\"\n").unwrap_err();
        assert!(hostile.to_string().starts_with("/a/-x.toml:1: file name: "), "{hostile}");
    }

    #[test]
    fn a_broken_file_still_tells_which_uids_it_is_about() {
        let table: [(&str, &[u32]); 6] = [
            ("uid = 5\nnonsense", &[5]),
            ("  uid=1_000 # c\n[", &[1000]),
            ("uid = 5\nuid = 6\n", &[5, 6]),
            ("uuid = 5\n", &[]),
            ("# uid = 5\n", &[]),
            ("\"uid\" = 5\nx", &[]),
        ];
        for (text, uids) in table {
            assert_eq!(uids_named(text), uids, "{text}");
        }
    }

    #[test]
    fn text_that_is_not_utf_8_is_refused_and_still_tells_its_uid() {
        let error = parse_principal(Path::new("/p/x.toml"), b"uid = 7\nname = \"\xFF\"\n").unwrap_err();
        assert!(matches!(error, Error::PrincipalFile { line: 2, ref uids_named, .. } if uids_named == &[7]));
    }
}
