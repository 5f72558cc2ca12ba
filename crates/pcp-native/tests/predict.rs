//! The table of predictions: complete, in the classifier's words, and worth nothing until something live is bound to
//! it.

#![allow(clippy::unwrap_used, reason = "a test stops at what it cannot read")]

use pcp_core::{ActionClass, AppId, DetectionMethod, IntentClassifier, SignatureStatus, StabilityLevel};
use pcp_native::predict::{MAX_CATEGORIES, Prediction, knows_category, predict, predictions, toolkit_word};
use pcp_native::toolkit::Toolkit;

/// The main categories of the Desktop Menu Specification.
const MAIN: [&str; 13] = [
    "AudioVideo",
    "Audio",
    "Video",
    "Development",
    "Education",
    "Game",
    "Graphics",
    "Network",
    "Office",
    "Science",
    "Settings",
    "System",
    "Utility",
];

/// The additional categories that applications of a real system name most.
const ADDITIONAL: [&str; 64] = [
    "2DGraphics",
    "3DGraphics",
    "Accessibility",
    "AdventureGame",
    "Archiving",
    "AudioVideoEditing",
    "BoardGame",
    "Calculator",
    "Calendar",
    "CardGame",
    "Chat",
    "Clock",
    "Compression",
    "ContactManagement",
    "Database",
    "Debugger",
    "DesktopSettings",
    "Dictionary",
    "DiscBurning",
    "Documentation",
    "Email",
    "Emulator",
    "Engineering",
    "Feed",
    "FileManager",
    "FileTools",
    "FileTransfer",
    "Filesystem",
    "Finance",
    "GUIDesigner",
    "Geoscience",
    "HamRadio",
    "HardwareSettings",
    "IDE",
    "IRCClient",
    "InstantMessaging",
    "LogicGame",
    "Maps",
    "Math",
    "Midi",
    "Mixer",
    "Monitor",
    "Music",
    "News",
    "OCR",
    "P2P",
    "PackageManager",
    "Photography",
    "Player",
    "Presentation",
    "Printing",
    "Publishing",
    "RasterGraphics",
    "Recorder",
    "RemoteAccess",
    "RevisionControl",
    "Scanning",
    "Security",
    "Spreadsheet",
    "TerminalEmulator",
    "TextEditor",
    "VectorGraphics",
    "Viewer",
    "WebBrowser",
];

fn toolkits() -> impl Iterator<Item = Option<Toolkit>> {
    Toolkit::ALL.into_iter().map(Some).chain([None])
}

fn actions(categories: &[&str], toolkit: Option<Toolkit>) -> Vec<&'static str> {
    predictions(categories, toolkit).iter().map(|prediction| prediction.action).collect()
}

#[test]
fn every_main_and_every_common_category_has_actions_in_every_toolkit() {
    for category in MAIN.into_iter().chain(ADDITIONAL).chain(["TV", "Translation", "WordProcessor"]) {
        assert!(knows_category(category), "{category}");
        for toolkit in toolkits() {
            let of_category = predictions(&[category], toolkit);
            let own = of_category.iter().any(|prediction| prediction.category == category);
            // Pictures and models are drawn with a pointer: those cells are empty, and say so in the table.
            let drawn = ["2DGraphics", "RasterGraphics", "VectorGraphics", "3DGraphics"].contains(&category);
            let empty = drawn && toolkit == Some(Toolkit::Terminal);
            assert_eq!(own, !empty, "{category} {}", toolkit_word(toolkit));
            assert!(!of_category.is_empty());
        }
    }
    for nothing in ["GTK", "KDE", "X-GNOME-Utilities", "*", ""] {
        assert!(!knows_category(nothing), "{nothing}");
    }
}

#[test]
fn every_action_is_made_of_words_that_the_classifier_knows() {
    let app = AppId::parse("org.example.any").unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for category in MAIN.into_iter().chain(ADDITIONAL) {
        for toolkit in toolkits() {
            for capability in predict(&app, &[category], toolkit) {
                let found = IntentClassifier.classify(&capability.id);
                seen.insert(capability.id.action().to_owned());
                // R-023 names "compose", and the classifier's table is closed: it stays the strictest class there is.
                let unknown = capability.id.action() == "compose";
                assert_eq!(found.class == ActionClass::Unknown, unknown, "{}: {found:?}", capability.id);
                assert_eq!(
                    capability.side_effects,
                    found.gate_class != ActionClass::Read,
                    "{}",
                    capability.id
                );
            }
        }
    }
    assert!(seen.len() > 80, "{seen:?}");
}

#[test]
fn a_mail_program_of_gtk_is_predicted_to_search_compose_send_and_read() {
    assert_eq!(
        actions(&["Network", "Email"], Some(Toolkit::Gtk3)),
        [
            "search",
            "compose",
            "send",
            "read",
            "send_reply",
            "send_forward",
            "list_folders",
            "select",
            "move",
            "delete",
            "add_attachment",
            "save_attachment",
            "list",
            "read_status",
            "open_url",
            "scroll",
            "focus",
            "copy",
            "quit",
        ]
    );
    assert_eq!(
        actions(&["Network", "Email"], Some(Toolkit::Terminal)),
        [
            "search",
            "compose",
            "send",
            "read",
            "send_reply",
            "send_forward",
            "list_folders",
            "delete",
            "list",
            "read_status",
            "type_text",
            "quit",
        ]
    );
    assert_eq!(actions(&["Email", "Network"], None), ["search", "compose", "send", "read", "read_status"]);
}

#[test]
fn a_prediction_says_where_it_comes_from_and_changes_nothing() {
    let app = AppId::parse("org.example.mail").unwrap();
    let capabilities = predict(&app, &["Network", "Email"], Some(Toolkit::Gtk4));
    for capability in &capabilities {
        assert_eq!(capability.stability, StabilityLevel::Predicted);
        assert!(!capability.executable, "{}", capability.id);
        assert_eq!(
            (capability.method, capability.signature),
            (DetectionMethod::Desktop, SignatureStatus::Unsigned)
        );
        assert_eq!(&capability.app_id, &app);
    }
    let compose = capabilities.iter().find(|capability| capability.id.action() == "compose").unwrap();
    assert_eq!(compose.id.as_str(), "app.org.example.mail.compose");
    assert_eq!((&*compose.category, &*compose.description), ("Email", "Begins a message"));
}

#[test]
fn an_application_without_known_categories_can_be_read_and_no_more_than_any_other() {
    let plain = |toolkit| actions(&["X-Nobody-Knows", "Core"], toolkit);
    assert_eq!(plain(None), ["read"]);
    assert_eq!(plain(Some(Toolkit::Terminal)), ["read", "type_text", "quit"]);
    let every: Vec<Prediction> = predictions(&[""; 0], Some(Toolkit::Qt6));
    assert!(every.iter().all(|prediction| prediction.category == "*"));
}

#[test]
fn categories_beyond_the_limit_and_ids_that_would_be_too_long_are_left_out() {
    let mut many = vec!["X-Other"; MAX_CATEGORIES - 1];
    many.push("Email");
    assert!(actions(&many, None).contains(&"compose"));
    many.insert(0, "X-Other");
    assert!(!actions(&many, None).contains(&"compose"));

    let app = AppId::parse(&"x".repeat(246)).unwrap();
    let ids: Vec<_> = predict(&app, &["Email"], None).into_iter().map(|c| c.id.action().to_owned()).collect();
    assert_eq!(ids, ["send", "read"], "search would make an id of 257 bytes");
}
