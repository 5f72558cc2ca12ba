//! Which translation of a value counts (Desktop Entry Specification 1.5, localized values for keys).

/// A locale as `LC_MESSAGES` names it: `lang_COUNTRY.ENCODING@MODIFIER`, the encoding without meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locale {
    language: String,
    country: Option<String>,
    modifier: Option<String>,
}

/// How well a key fits a locale. Better ones are greater.
pub(super) type Rank = u8;

/// The rank of the value without a locale.
pub(super) const UNLOCALIZED: Rank = 0;

impl Locale {
    /// Reads the value of `LC_MESSAGES`. `None` for `C`, `POSIX` and the empty text: values without a locale.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (language, country, modifier) = split(text.as_bytes());
        let own = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        match language {
            b"" | b"C" | b"POSIX" => None,
            _ => {
                Some(Self { language: own(language), country: country.map(own), modifier: modifier.map(own) })
            }
        }
    }

    /// Its language, which every key that fits begins with.
    pub(super) fn language(&self) -> &str {
        &self.language
    }

    /// How well the locale of a key fits. `None`: not at all.
    pub(super) fn rank(&self, key: &[u8]) -> Option<Rank> {
        let (language, country, modifier) = split(key);
        let fits = |part: Option<&[u8]>, own: Option<&String>| match part {
            None => Some(false),
            Some(part) => own.is_some_and(|own| own.as_bytes() == part).then_some(true),
        };
        if language != self.language.as_bytes() {
            return None;
        }
        let country = fits(country, self.country.as_ref())?;
        let modifier = fits(modifier, self.modifier.as_ref())?;
        Some(1 + 2 * Rank::from(country) + Rank::from(modifier))
    }
}

/// Language, country and modifier.
fn split(text: &[u8]) -> (&[u8], Option<&[u8]>, Option<&[u8]>) {
    let (rest, modifier) = cut(text, b'@');
    let (rest, _encoding) = cut(rest, b'.');
    let (language, country) = cut(rest, b'_');
    (language, country, modifier)
}

fn cut(text: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(at, text) {
        Some(place) => (text.get(..place).unwrap_or_default(), text.get(place + 1..)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_specification_decides_between_translations() {
        let order = ["sr_YU@Latn", "sr_YU", "sr@Latn", "sr"];
        let locale = Locale::parse("sr_YU.UTF-8@Latn").unwrap();
        let ranks: Vec<_> = order.iter().map(|key| locale.rank(key.as_bytes()).unwrap()).collect();
        assert!(ranks.is_sorted_by(|a, b| a > b) && ranks[3] > UNLOCALIZED, "{ranks:?}");
        for other in ["sr_RS", "sr@Cyrl", "de", "", "sr_RS@Latn"] {
            assert_eq!(locale.rank(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_locale_takes_no_translation_that_is_more_particular_than_itself() {
        let locale = Locale::parse("de").unwrap();
        assert!(locale.rank(b"de").is_some());
        assert!(locale.rank(b"de.ISO-8859-1").is_some(), "the encoding of an old file has no meaning");
        assert_eq!(locale.rank(b"de_AT"), None);
        assert_eq!(locale.rank(b"de@euro"), None);
    }

    #[test]
    fn the_portable_locale_has_no_translations() {
        for text in ["", "C", "POSIX", "C.UTF-8"] {
            assert_eq!(Locale::parse(text), None, "{text}");
        }
    }
}
