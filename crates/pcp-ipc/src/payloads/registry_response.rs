//! RegistryResponse: a page of rows of the registry. Daemon to client.

use pcp_core::{
    AppEntry, CapabilityDescriptor, DeclaredApp, DetectionMethod, Domain, SignatureStatus, StabilityLevel,
    Tier,
};
use pcp_stream::{MAX_PAYLOAD_BYTES, StreamMessageType};
use serde::{Deserialize, Serialize};

use super::registry_query::RegistryRows;
use crate::embedded::Json;
use crate::error::{Error, cut};
use crate::payload::{Payload, Tag};
use crate::text::Text;

/// Bytes of a page that goes on to another one. A page is made at one go on the thread that decides, and kept until
/// it is read: a frame's whole megabyte of rows would hold up everybody else. A larger row has a page of its own.
pub const MAX_PAGE_BYTES: usize = 64 * 1024;
/// Room kept at the end of a page for its cursor, in bytes: a capability id and the punctuation around it.
const CURSOR_ROOM_BYTES: usize = 512;

/// The content of a RegistryResponse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryResponse<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::RegistryResponse.discriminant() }>,
    /// What the rows are.
    pub what: RegistryRows,
    /// Where to go on, when there are more rows than fit a frame.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Text<'a>>,
    /// An array of [`CapabilityRow`] or [`AppRow`].
    #[serde(borrow, skip_serializing)]
    pub rows: Json<'a>,
}

impl Payload for RegistryResponse<'_> {
    const TYPE: StreamMessageType = StreamMessageType::RegistryResponse;

    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        Some(("rows", self.rows))
    }
}

/// One capability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityRow<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: Text<'a>,
    /// The application that serves it.
    #[serde(borrow)]
    pub app_id: Text<'a>,
    /// Its domain.
    pub domain: Domain,
    /// A short name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// One sentence.
    #[serde(borrow)]
    pub description: Text<'a>,
    /// The author's category word.
    #[serde(borrow)]
    pub category: Text<'a>,
    /// JSON Schema of the parameters.
    #[serde(borrow)]
    pub input_schema: Json<'a>,
    /// JSON Schema of the result.
    #[serde(borrow)]
    pub output_schema: Json<'a>,
    /// How it was found.
    pub method: DetectionMethod,
    /// The tier that this gives.
    pub tier: Tier,
    /// How far its shape may be relied on.
    pub stability: StabilityLevel,
    /// The version of the application's manifest.
    #[serde(borrow)]
    pub version: Text<'a>,
    /// Whether invoking it changes anything.
    pub side_effects: bool,
    /// Whether its author asks for confirmation.
    pub confirmation_required: bool,
    /// The least trust level a caller needs.
    pub minimum_trust: u8,
    /// Whether the application's own validation is asked.
    pub validates_params: bool,
    /// Whether it can be executed now.
    pub executable: bool,
    /// What is known of the signature.
    pub signature: SignatureStatus,
}

impl<'a> From<&'a CapabilityDescriptor> for CapabilityRow<'a> {
    fn from(descriptor: &'a CapabilityDescriptor) -> Self {
        Self {
            id: descriptor.id.as_str().into(),
            app_id: descriptor.app_id.as_str().into(),
            domain: descriptor.domain,
            name: (&*descriptor.name).into(),
            description: (&*descriptor.description).into(),
            category: (&*descriptor.category).into(),
            input_schema: Json::from_checked(&descriptor.input_schema),
            output_schema: Json::from_checked(&descriptor.output_schema),
            method: descriptor.method,
            tier: descriptor.method.tier(),
            stability: descriptor.stability,
            version: (&*descriptor.version).into(),
            side_effects: descriptor.side_effects,
            confirmation_required: descriptor.confirmation_required,
            minimum_trust: descriptor.minimum_trust.get(),
            validates_params: descriptor.validates_params,
            executable: descriptor.executable,
            signature: descriptor.signature,
        }
    }
}

/// One application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppRow<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: Text<'a>,
    /// Its version.
    #[serde(borrow)]
    pub version: Text<'a>,
    /// How it was found.
    pub method: DetectionMethod,
    /// What is known of its manifest's signature.
    pub signature: SignatureStatus,
    /// Why it offers nothing, where that is so.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Text<'a>>,
    /// What its desktop entry and its program say of it, where it has one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<DeclaredRow<'a>>,
    /// The ids of its capabilities.
    #[serde(borrow)]
    pub capabilities: Vec<Text<'a>>,
}

/// What an application's own files say of it (R-021, R-022).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredRow<'a> {
    /// What menus call it.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Its categories.
    #[serde(borrow)]
    pub categories: Vec<Text<'a>>,
    /// The toolkit of its windows; `unknown` where nothing tells.
    #[serde(borrow)]
    pub toolkit: Text<'a>,
    /// What tells the toolkit, or why nothing does.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Text<'a>>,
    /// The program that it starts.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Text<'a>>,
    /// The class of its windows.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub window_class: Option<Text<'a>>,
    /// Its desktop file.
    #[serde(borrow)]
    pub file: Text<'a>,
    /// How sure the detection is, in percent (R-109).
    pub confidence_percent: u8,
    /// Whether menus leave it out.
    pub no_display: bool,
}

impl<'a> From<&'a DeclaredApp> for DeclaredRow<'a> {
    fn from(app: &'a DeclaredApp) -> Self {
        Self {
            name: (&*app.name).into(),
            categories: app.categories.iter().map(|category| (&**category).into()).collect(),
            toolkit: app.toolkit.into(),
            evidence: app.evidence.as_deref().map(Text::from),
            program: app.program.as_deref().map(Text::from),
            window_class: app.window_class.as_deref().map(Text::from),
            file: (&*app.file).into(),
            confidence_percent: app.confidence_percent,
            no_display: app.no_display,
        }
    }
}

impl<'a> From<&'a AppEntry> for AppRow<'a> {
    fn from(app: &'a AppEntry) -> Self {
        Self {
            id: app.id.as_str().into(),
            version: (&*app.version).into(),
            method: app.method,
            signature: app.signature,
            problem: app.problem.as_deref().map(Text::from),
            declared: app.declared.as_deref().map(DeclaredRow::from),
            capabilities: app.ids().map(|id| id.as_str().into()).collect(),
        }
    }
}

/// Writes the payload of a RegistryResponse row by row, until the frame is full.
#[derive(Debug)]
pub struct RegistryPage<'o> {
    out: &'o mut Vec<u8>,
    begin: usize,
    first: bool,
}

impl<'o> RegistryPage<'o> {
    /// Begins a page at the end of `out`.
    #[must_use]
    pub fn begin(out: &'o mut Vec<u8>, what: RegistryRows) -> Self {
        let begin = out.len();
        out.extend_from_slice(br#"{"type":"registry_response","what":""#);
        out.extend_from_slice(what.as_str().as_bytes());
        out.extend_from_slice(br#"","rows":["#);
        Self { out, begin, first: true }
    }

    /// Appends a row; `false` when it does not fit any more, and the page is as it was before.
    ///
    /// # Errors
    /// [`Error::Write`] when the row is no JSON or fits no page at all.
    pub fn push(&mut self, row: &impl Serialize) -> Result<bool, Error> {
        let before = self.out.len();
        if !self.first {
            self.out.push(b',');
        }
        let written = serde_json::to_writer(&mut *self.out, row);
        let limit = if self.first { MAX_PAYLOAD_BYTES } else { MAX_PAGE_BYTES };
        let fits = self.out.len() - self.begin <= limit - CURSOR_ROOM_BYTES;
        if let Err(error) = written {
            self.out.truncate(before);
            return Err(Error::Write { what: "a row of the registry", problem: cut(error) });
        }
        if fits {
            self.first = false;
            return Ok(true);
        }
        self.out.truncate(before);
        if self.first {
            let problem = format!("it is larger than a page of {MAX_PAYLOAD_BYTES} bytes");
            return Err(Error::Write { what: "a row of the registry", problem });
        }
        Ok(false)
    }

    /// Ends the page; `cursor` is where the next one goes on.
    ///
    /// # Errors
    /// [`Error::Write`] when the cursor is no text that JSON can hold.
    pub fn finish(self, cursor: Option<&str>) -> Result<(), Error> {
        self.out.push(b']');
        if let Some(cursor) = cursor {
            self.out.extend_from_slice(br#","cursor":"#);
            serde_json::to_writer(&mut *self.out, cursor)
                .map_err(|error| Error::Write { what: "a cursor", problem: cut(error) })?;
        }
        self.out.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::read_payload;

    #[test]
    fn a_page_takes_rows_until_it_is_full_and_not_one_more() {
        let row = "x".repeat(1000);
        let mut out = Vec::new();
        let mut page = RegistryPage::begin(&mut out, RegistryRows::Apps);
        let mut rows = 0;
        while page.push(&row).unwrap() {
            rows += 1;
        }
        page.finish(Some(&"c".repeat(255))).unwrap();

        assert!(out.len() <= MAX_PAGE_BYTES && out.len() > MAX_PAGE_BYTES - 2000);
        let read: RegistryResponse<'_> = read_payload(&out).unwrap();
        let back: Vec<&str> = serde_json::from_str(read.rows.as_str()).unwrap();
        assert_eq!((back.len(), read.cursor.unwrap().len()), (rows, 255));
    }

    #[test]
    fn a_row_larger_than_a_page_has_a_page_of_its_own() {
        let mut out = Vec::new();
        let mut page = RegistryPage::begin(&mut out, RegistryRows::Capabilities);
        assert!(page.push(&"x".repeat(2 * MAX_PAGE_BYTES)).unwrap());
        assert!(!page.push(&"y").unwrap());
        page.finish(Some("x")).unwrap();
        assert!(read_payload::<RegistryResponse<'_>>(&out).is_ok());
    }

    #[test]
    fn a_row_larger_than_any_page_is_an_error_and_no_endless_loop() {
        let mut out = Vec::new();
        let mut page = RegistryPage::begin(&mut out, RegistryRows::Capabilities);
        let refused = page.push(&"x".repeat(MAX_PAYLOAD_BYTES)).unwrap_err();
        assert!(refused.to_string().contains("larger than a page"), "{refused}");
    }

    #[test]
    fn a_page_without_rows_is_a_payload_too() {
        let mut out = Vec::new();
        RegistryPage::begin(&mut out, RegistryRows::Apps).finish(None).unwrap();
        let read: RegistryResponse<'_> = read_payload(&out).unwrap();
        assert_eq!((read.rows.as_str(), read.cursor), ("[]", None));
    }
}
