//! Which kind of action a capability is, read from the words of its name (S0 "Intent Classification", R-059..062).

use crate::domain::Domain;
use crate::id::{CapabilityId, MAX_CAPABILITY_ID_BYTES};
use crate::words::words;

words! {
    /// The one taxonomy of actions (C8). Ordered by how carefully each is gated; `Unknown` is the strictest.
    ActionClass: "action class" {
        /// Changes nothing.
        Read = "read",
        /// Moves within what is shown.
        Navigate = "navigate",
        /// Presses, creates, moves: ordinary use.
        Activate = "activate",
        /// Writes text into something.
        InputText = "input_text",
        /// Ends an application.
        CloseApp = "close_app",
        /// Leaves the device.
        Send = "send",
        /// Changes the system.
        SystemSettings = "system_settings",
        /// Changes hardware.
        HardwareControl = "hardware_control",
        /// Destroys something.
        Delete = "delete",
        /// No word of the name is known: treated as the strictest.
        Unknown = "unknown",
    }
}

words! {
    /// The six severities of S2.
    Severity: "severity" {
        /// Introspection of PCP itself.
        None = "none",
        /// Reads.
        Read = "read",
        /// Ordinary change.
        Write = "write",
        /// Loss.
        Destructive = "destructive",
        /// Leaves the device.
        Network = "network",
        /// Changes the system.
        System = "system",
    }
}

words! {
    /// The three safety classes of S3.
    SafetyClass: "safety class" {
        /// Can be taken back.
        Reversible = "reversible",
        /// Seen by others.
        External = "external",
        /// Loses something.
        Destructive = "destructive",
    }
}

impl ActionClass {
    /// The severity of the class; a total function (C8). `None` belongs to service capabilities alone.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::Read | Self::Navigate => Severity::Read,
            Self::Activate | Self::InputText | Self::CloseApp => Severity::Write,
            Self::Send => Severity::Network,
            Self::Delete | Self::Unknown => Severity::Destructive,
            Self::SystemSettings | Self::HardwareControl => Severity::System,
        }
    }

    /// The safety class; a total function (C8).
    #[must_use]
    pub const fn safety(self) -> SafetyClass {
        match self {
            Self::Read | Self::Navigate | Self::Activate | Self::InputText => SafetyClass::Reversible,
            Self::Send => SafetyClass::External,
            Self::CloseApp | Self::Delete | Self::SystemSettings | Self::HardwareControl | Self::Unknown => {
                SafetyClass::Destructive
            }
        }
    }
}

/// One rule: the class and its words. A word of several tokens matches consecutive tokens.
struct Rule {
    class: ActionClass,
    words: &'static [&'static str],
}

/// R-059 in its order. CloseApp stands before delete, so that an application's close is no deletion.
const RULES: [Rule; 7] = [
    Rule { class: ActionClass::CloseApp, words: &["close_app", "close_application", "quit_app", "quit"] },
    Rule { class: ActionClass::Navigate, words: &["open_url", "navigate", "scroll", "switch_tab"] },
    Rule {
        class: ActionClass::Activate,
        words: &[
            "click",
            "press",
            "toggle",
            "activate",
            "create",
            "add",
            "new",
            "save",
            "rename",
            "move",
            "resize",
            "focus",
            "switch",
            "start",
            "stop",
            "play",
            "pause",
            "invoke",
            "select",
            "minimise",
            "maximise",
            "fullscreen",
            "restore",
            "place",
        ],
    },
    Rule {
        class: ActionClass::InputText,
        words: &["type_text", "insert_text", "edit", "paste", "set_value", "set_text", "write", "copy"],
    },
    Rule {
        class: ActionClass::Read,
        words: &[
            "read",
            "get_text",
            "screenshot",
            "describe",
            "list",
            "search",
            "find",
            "get",
            "show",
            "query",
            "status",
            "observe",
            "capture",
            "stat",
            "snapshot",
            "verify",
        ],
    },
    Rule {
        class: ActionClass::Delete,
        words: &["delete", "remove", "clear", "close", "overwrite", "format", "erase", "quit"],
    },
    Rule { class: ActionClass::Send, words: &["send", "submit", "share", "export"] },
];

/// The parts of the system whose effects are effects on hardware.
const HARDWARE: [&str; 9] =
    ["audio", "power", "display", "led", "button", "thermal", "backlight", "modality", "hardware"];

/// Service capabilities: no authority of their own, every step they cause is judged on its own.
const SERVICE: [&str; 5] = [
    "system.control.undo",
    "system.control.tx_*",
    "system.coordination.*",
    "system.inspection.*",
    "system.learning.suggest",
];

/// Most matching words that are named: more than an action of the longest capability id has in practice. The class of
/// a word beyond them still counts for the gate.
const MAX_MATCHES: usize = 16;

/// What the classifier found.
#[derive(Debug, Clone, PartialEq)]
pub struct Classification {
    /// The class of the first rule that matches: what the action is called.
    pub class: ActionClass,
    /// The strictest class over all matching words: what the action is gated as.
    pub gate_class: ActionClass,
    /// 1.0 when all matching words agree, 0.5 when they do not, 0.0 when none matched.
    pub confidence: f32,
    /// The matching words in the order of the rules.
    pub matches: heapless::Vec<(ActionClass, &'static str), MAX_MATCHES>,
    /// Whether this is a service capability, which is outside the table.
    pub service: bool,
}

impl Classification {
    /// The class that permission, gate and budget are decided by.
    ///
    /// `changes_nothing` is the word of a *verified* manifest: it turns Unknown into Read and nothing else.
    #[must_use]
    pub const fn effective(&self, changes_nothing: bool) -> ActionClass {
        match self.gate_class {
            ActionClass::Unknown if changes_nothing => ActionClass::Read,
            class => class,
        }
    }
}

/// Maps a capability's name to its action class.
#[derive(Debug, Clone, Copy, Default)]
pub struct IntentClassifier;

impl IntentClassifier {
    /// Classifies by the tokens of the action, never by substrings (R-061, C10). Allocates nothing.
    #[must_use]
    pub fn classify(self, id: &CapabilityId) -> Classification {
        let tokens = tokens(id.action());
        let mut matches = heapless::Vec::new();
        for rule in &RULES {
            for word in rule.words.iter().copied().filter(|word| has_word(&tokens, word)) {
                // What does not fit is told by nobody; its class must not get lost.
                if let Err((class, word)) = matches.push((rule.class, word))
                    && let Some(last) = matches.last_mut()
                    && class > last.0
                {
                    *last = (class, word);
                }
            }
        }
        if matches.first().is_some_and(|(class, _)| *class == ActionClass::CloseApp) {
            // An application's close is CloseApp alone: "quit" and the close of "close_app" delete nothing (C9).
            matches
                .retain(|(class, word)| *class != ActionClass::Delete || !matches!(*word, "close" | "quit"));
        }
        let class = matches.first().map_or(ActionClass::Unknown, |(class, _)| *class);
        let strictest = matches.iter().map(|(class, _)| *class).max().unwrap_or(ActionClass::Unknown);
        let agree = matches.iter().all(|(found, _)| *found == class);
        let confidence = match (matches.is_empty(), agree) {
            (true, _) => 0.0,
            (_, true) => 1.0,
            _ => 0.5,
        };
        let service = SERVICE.iter().any(|glob| crate::glob::spans(glob, id.as_str()));
        let (class, gate_class) = if service {
            (ActionClass::Read, ActionClass::Read)
        } else {
            (system_class(id, class), system_class(id, strictest))
        };
        Classification { class, gate_class, confidence, matches, service }
    }
}

/// Effects in the system domain are effects on the system or its hardware; reads stay reads, and a
/// deletion stays one, because it asks for more than they do.
fn system_class(id: &CapabilityId, class: ActionClass) -> ActionClass {
    if id.domain() != Domain::System || class == ActionClass::Read {
        return class;
    }
    let part = id.app().split('.').next().unwrap_or_default();
    let of_system =
        if HARDWARE.contains(&part) { ActionClass::HardwareControl } else { ActionClass::SystemSettings };
    if class == ActionClass::Unknown { of_system } else { class.max(of_system) }
}

/// Most tokens of an action: one byte each and a delimiter between.
const MAX_TOKENS: usize = MAX_CAPABILITY_ID_BYTES / 2 + 1;

/// The action's tokens, taken apart once for all words. Delimiters side by side are one.
fn tokens(action: &str) -> heapless::Vec<&str, MAX_TOKENS> {
    let mut tokens = heapless::Vec::new();
    for token in action.split(is_delimiter).filter(|token| !token.is_empty()) {
        // An id is too short to hold more; one that did would be gated by what fits.
        let _ = tokens.push(token);
    }
    tokens
}

/// Whether `word`'s tokens stand consecutively among `tokens`.
fn has_word(tokens: &[&str], word: &str) -> bool {
    if !word.contains('_') {
        return tokens.iter().any(|token| token.eq_ignore_ascii_case(word));
    }
    (0..tokens.len()).any(|start| {
        let mut rest = tokens.iter().skip(start);
        word.split('_').all(|part| rest.next().is_some_and(|token| token.eq_ignore_ascii_case(part)))
    })
}

fn is_delimiter(c: char) -> bool {
    matches!(c, '_' | '.' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify(text: &str) -> Classification {
        IntentClassifier.classify(&CapabilityId::parse(text).unwrap())
    }

    #[test]
    fn every_word_of_the_table_names_its_class() {
        for rule in &RULES {
            for word in rule.words {
                let found = classify(&format!("app.x.{word}"));
                let want = if *word == "quit" { ActionClass::CloseApp } else { rule.class };
                assert!(found.matches.iter().any(|(class, _)| *class == want), "{word}: {found:?}");
                // "set_value" and the like carry one meaning; only words that contain another rule's word do not.
                if !matches!(*word, "switch_tab") {
                    assert_eq!(found.class, want, "{word}");
                }
            }
        }
    }

    #[test]
    fn the_table_has_the_documents_words_and_no_others() {
        let documents = [
            (ActionClass::CloseApp, "close_app close_application quit_app quit"),
            (ActionClass::Navigate, "open_url navigate scroll switch_tab"),
            (
                ActionClass::Activate,
                "click press toggle activate create add new save rename move resize focus switch start stop play pause \
                 invoke select minimise maximise fullscreen restore place",
            ),
            (ActionClass::InputText, "type_text insert_text edit paste set_value set_text write copy"),
            (
                ActionClass::Read,
                "read get_text screenshot describe list search find get show query status observe capture stat snapshot \
                 verify",
            ),
            (ActionClass::Delete, "delete remove clear close overwrite format erase quit"),
            (ActionClass::Send, "send submit share export"),
        ];
        for (rule, (class, words)) in RULES.iter().zip(documents) {
            assert_eq!((rule.class, rule.words.join(" ")), (class, words.to_owned()));
        }
        assert_eq!(RULES.len(), documents.len());
    }

    #[test]
    fn words_match_whole_tokens_and_never_substrings() {
        let table = [
            ("app.x.thread_list", ActionClass::Read, ActionClass::Read),
            ("app.x.thread", ActionClass::Unknown, ActionClass::Unknown),
            ("app.x.credit_card", ActionClass::Unknown, ActionClass::Unknown),
            ("app.x.compress", ActionClass::Unknown, ActionClass::Unknown),
            ("app.x.forget_text", ActionClass::Unknown, ActionClass::Unknown),
            ("app.x.delete_read_messages", ActionClass::Read, ActionClass::Delete),
            ("app.x.read-and-send", ActionClass::Read, ActionClass::Send),
            ("app.x.switch_tab", ActionClass::Navigate, ActionClass::Activate),
            ("app.x.Delete", ActionClass::Delete, ActionClass::Delete),
            ("app.x.text_get", ActionClass::Read, ActionClass::Read),
            ("app.x.get_text", ActionClass::Read, ActionClass::Read),
            ("app.x.type_text", ActionClass::InputText, ActionClass::InputText),
            ("app.x.text_type", ActionClass::Unknown, ActionClass::Unknown),
        ];
        for (id, class, gate) in table {
            let found = classify(id);
            assert_eq!((found.class, found.gate_class), (class, gate), "{id}: {found:?}");
        }
    }

    #[test]
    fn all_matching_words_are_named_and_none_beyond_the_limit_loses_its_class() {
        let found = classify("app.x.delete_remove_item");
        assert_eq!(
            found.matches.as_slice(),
            [(ActionClass::Delete, "delete"), (ActionClass::Delete, "remove")]
        );
        assert_eq!(found.confidence, 1.0);
        let many = "click_press_toggle_activate_create_add_new_save_rename_move_resize_focus_switch_start_stop_play_send";
        assert_eq!(classify(&format!("app.x.{many}")).gate_class, ActionClass::Send);
    }

    #[test]
    fn the_longest_names_of_delimiters_and_of_tokens_are_taken_apart() {
        let room = MAX_CAPABILITY_ID_BYTES - "app.x.".len();
        let delimiters = format!("a{}", "_".repeat(room - 1));
        assert_eq!(classify(&format!("app.x.{delimiters}")).class, ActionClass::Unknown);
        let pairs = "a_".repeat(room / 2 - 4);
        assert_eq!(classify(&format!("app.x.{pairs}delete")).gate_class, ActionClass::Delete);
        assert_eq!(classify("app.x.open__url").class, ActionClass::Navigate);
    }

    #[test]
    fn closing_an_application_is_not_a_deletion_and_closing_a_document_is() {
        for (id, class) in [
            ("app.x.close_app", ActionClass::CloseApp),
            ("app.x.quit", ActionClass::CloseApp),
            ("app.x.close", ActionClass::Delete),
            ("app.x.close_tab", ActionClass::Delete),
            ("app.x.close_document", ActionClass::Delete),
        ] {
            assert_eq!(classify(id).gate_class, class, "{id}");
        }
        assert_eq!(classify("app.x.close_app_and_delete_profile").gate_class, ActionClass::Delete);
    }

    #[test]
    fn effects_of_the_system_domain_are_settings_or_hardware_and_reads_stay_reads() {
        for (id, class) in [
            ("system.power.shutdown", ActionClass::HardwareControl),
            ("system.audio.set_volume", ActionClass::HardwareControl),
            ("system.audio.play", ActionClass::HardwareControl),
            ("system.network.connect", ActionClass::SystemSettings),
            ("system.files.write", ActionClass::SystemSettings),
            ("system.files.delete", ActionClass::Delete),
            ("system.files.list", ActionClass::Read),
            ("system.audio.status", ActionClass::Read),
        ] {
            assert_eq!(classify(id).effective(false), class, "{id}");
        }
    }

    #[test]
    fn service_capabilities_are_outside_the_table() {
        for id in [
            "system.control.undo",
            "system.control.tx_commit",
            "system.inspection.schema",
            "system.learning.suggest",
        ] {
            assert!(classify(id).service, "{id}");
        }
        for id in ["system.control.revoke", "system.control.policy_set", "system.learning.forget"] {
            assert!(!classify(id).service, "{id}");
        }
    }

    #[test]
    fn an_unknown_action_is_a_read_only_by_the_word_of_a_verified_manifest() {
        let unknown = classify("app.x.frobnicate");
        assert_eq!(unknown.effective(false), ActionClass::Unknown);
        assert_eq!(unknown.effective(true), ActionClass::Read);
        assert_eq!(classify("app.x.delete").effective(true), ActionClass::Delete);
    }
}
