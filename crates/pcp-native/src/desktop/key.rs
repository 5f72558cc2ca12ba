//! The keys of an application entry that anybody asks for.

use std::fmt;

macro_rules! keys {
    ($($name:ident = $word:literal),+ $(,)?) => {
        /// A key of the main group (Desktop Entry Specification 1.5, table 2; and two that containers add).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is the specification's own word")]
        pub enum Key { $($name),+ }

        impl Key {
            /// How many there are.
            pub(super) const COUNT: usize = [$(Self::$name),+].len();
            /// All of them, in the order of their numbers.
            pub(super) const ALL: [Self; Self::COUNT] = [$(Self::$name),+];

            /// The key of this name, `None` for one that nobody asks for.
            #[expect(non_upper_case_globals, reason = "named after the variants that they stand for")]
            pub(super) fn of(name: &[u8]) -> Option<Self> {
                $(const $name: &[u8] = $word.as_bytes();)+
                match name { $($name => Some(Self::$name),)+ _ => None }
            }

            /// The key as files write it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }
        }
    };
}

keys! {
    Type = "Type",
    Version = "Version",
    Name = "Name",
    GenericName = "GenericName",
    NoDisplay = "NoDisplay",
    Comment = "Comment",
    Icon = "Icon",
    Hidden = "Hidden",
    OnlyShowIn = "OnlyShowIn",
    NotShowIn = "NotShowIn",
    DBusActivatable = "DBusActivatable",
    TryExec = "TryExec",
    Exec = "Exec",
    Path = "Path",
    Terminal = "Terminal",
    Actions = "Actions",
    MimeType = "MimeType",
    Categories = "Categories",
    Implements = "Implements",
    Keywords = "Keywords",
    StartupNotify = "StartupNotify",
    StartupWmClass = "StartupWMClass",
    Url = "URL",
    PrefersNonDefaultGpu = "PrefersNonDefaultGPU",
    SingleMainWindow = "SingleMainWindow",
    Flatpak = "X-Flatpak",
    SnapInstance = "X-SnapInstanceName",
}

impl Key {
    /// Whether a translation of the value can stand beside it.
    pub(super) const fn is_localized(self) -> bool {
        matches!(self, Self::Name | Self::GenericName | Self::Comment | Self::Icon | Self::Keywords)
    }

    /// Whether the value is a list.
    pub(super) const fn is_list(self) -> bool {
        matches!(
            self,
            Self::OnlyShowIn
                | Self::NotShowIn
                | Self::Actions
                | Self::MimeType
                | Self::Categories
                | Self::Implements
                | Self::Keywords
        )
    }

    /// Whether the value is `true` or `false`.
    pub(super) const fn is_flag(self) -> bool {
        matches!(
            self,
            Self::NoDisplay
                | Self::Hidden
                | Self::DBusActivatable
                | Self::Terminal
                | Self::StartupNotify
                | Self::PrefersNonDefaultGpu
                | Self::SingleMainWindow
        )
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_by_its_name_and_no_other_is() {
        for key in Key::ALL {
            assert_eq!(Key::of(key.name().as_bytes()), Some(key));
        }
        for other in ["", "name", "Name ", "X-Other", "Nam"] {
            assert_eq!(Key::of(other.as_bytes()), None, "{other}");
        }
    }
}
