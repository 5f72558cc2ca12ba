//! Limits of strings and lists, kept while they are read: what is too long is refused before it takes memory.

use core::fmt;
use core::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::text::Text;

/// A string of at most `BYTES` bytes.
pub(crate) fn text<'de, D: Deserializer<'de>, const BYTES: usize>(from: D) -> Result<Text<'de>, D::Error> {
    let text = Text::deserialize(from)?;
    if text.len() > BYTES {
        let bytes = text.len();
        return Err(D::Error::custom(format_args!(
            "a string of {bytes} bytes exceeds the {BYTES}-byte limit"
        )));
    }
    Ok(text)
}

/// A string of at most `BYTES` bytes that may be absent.
pub(crate) fn optional<'de, D: Deserializer<'de>, const BYTES: usize>(
    from: D,
) -> Result<Option<Text<'de>>, D::Error> {
    Ok(Option::<Short<'de, BYTES>>::deserialize(from)?.map(|short| short.0))
}

/// A list of at most `ITEMS` strings of at most `BYTES` bytes each.
pub(crate) fn texts<'de, D: Deserializer<'de>, const ITEMS: usize, const BYTES: usize>(
    from: D,
) -> Result<Vec<Text<'de>>, D::Error> {
    let short = list::<Short<'de, BYTES>, D, ITEMS>(from)?;
    Ok(short.into_iter().map(|short| short.0).collect())
}

/// A list of at most `ITEMS` values.
pub(crate) fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>, const ITEMS: usize>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    struct List<T, const ITEMS: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const ITEMS: usize> Visitor<'de> for List<T, ITEMS> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {ITEMS}")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(item) = items.next_element()? {
                if list.len() == ITEMS {
                    return Err(A::Error::custom(format_args!(
                        "a list has more than {ITEMS} items, the limit"
                    )));
                }
                list.push(item);
            }
            Ok(list)
        }
    }
    from.deserialize_seq(List::<T, ITEMS>(PhantomData))
}

struct Short<'a, const BYTES: usize>(Text<'a>);

impl<'de: 'a, 'a, const BYTES: usize> Deserialize<'de> for Short<'a, BYTES> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text::<D, BYTES>(from).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::read;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample<'a> {
        #[serde(borrow, default, deserialize_with = "optional::<_, 3>")]
        word: Option<Text<'a>>,
        #[serde(borrow, default, deserialize_with = "texts::<_, 2, 3>")]
        words: Vec<Text<'a>>,
    }

    #[test]
    fn what_reaches_the_limit_passes_and_what_exceeds_it_is_refused() {
        let table = [
            (r#"{"word":"abc","words":["abc","d"]}"#, None),
            (r#"{"word":null}"#, None),
            (r#"{"word":"abcd"}"#, Some("a string of 4 bytes exceeds the 3-byte limit")),
            (r#"{"word":"ab\u00e4"}"#, Some("a string of 4 bytes exceeds the 3-byte limit")),
            (r#"{"words":["a","abcd"]}"#, Some("a string of 4 bytes exceeds the 3-byte limit")),
            (r#"{"words":["a","b","c"]}"#, Some("a list has more than 2 items, the limit")),
            (r#"{"words":[1]}"#, Some("invalid type: integer `1`, expected a string")),
        ];
        for (text, wanted) in table {
            let read = read::<Sample<'_>>(text).map_err(|error| error.to_string());
            match wanted {
                None => assert!(read.is_ok(), "{read:?}"),
                Some(wanted) => assert!(read.as_ref().unwrap_err().starts_with(wanted), "{read:?}"),
            }
        }
    }

    #[test]
    fn the_longest_values_are_kept_whole() {
        let sample: Sample<'_> = read(r#"{"word":"abc","words":["de","f"]}"#).unwrap();
        assert_eq!(sample.word.unwrap().as_str(), "abc");
        assert_eq!(sample.words.iter().map(Text::as_str).collect::<Vec<_>>(), ["de", "f"]);
    }
}
