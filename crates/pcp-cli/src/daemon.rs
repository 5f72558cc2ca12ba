//! The connection to the daemon, made only to a listener of the right user (R-133), and registry rows.

use std::time::Duration;

use pcp_ipc::payloads::{RegistryQuery, RegistryResponse};
use pcp_ipc::{Client, Json};
use serde_json::value::RawValue;

use crate::cli::Globals;
use crate::error::Error;
use crate::owner;

/// Most bytes of rows that one verb takes from the daemon: 100 000 capabilities with small schemas, and still
/// half of the device's budget for the daemon itself.
const MAX_ROW_BYTES: usize = 64 * 1024 * 1024;

impl Globals {
    /// The uid that has to listen.
    pub(crate) fn daemon_uid(&self) -> u32 {
        self.expect_uid.unwrap_or_else(owner::daemon_uid)
    }

    /// Connects to the daemon.
    pub(crate) fn connect(&self) -> Result<Client, Error> {
        let mut client = Client::connect(&self.socket, self.daemon_uid())?;
        if let Some(seconds) = self.timeout {
            client.set_timeout(Duration::from_secs_f64(seconds));
        }
        Ok(client)
    }
}

/// All rows that a query gives, each as JSON, in the daemon's order.
pub(crate) fn rows(client: &mut Client, query: &RegistryQuery<'_>) -> Result<Vec<Box<RawValue>>, Error> {
    let mut rows = Rows::default();
    let mut query = query.clone();
    loop {
        let page: RegistryResponse<'_> = client.ask(&query)?;
        rows.take(page.rows, MAX_ROW_BYTES)?;
        match page.cursor {
            Some(cursor) => query.cursor = Some(cursor.into_owned()),
            None => return Ok(rows.rows),
        }
    }
}

#[derive(Debug, Default)]
struct Rows {
    rows: Vec<Box<RawValue>>,
    bytes: usize,
}

impl Rows {
    fn take(&mut self, page: Json<'_>, limit: usize) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(page.as_str().len());
        if self.bytes > limit {
            return Err(Error::TooLarge { what: "the registry", limit });
        }
        let page: Vec<Box<RawValue>> = serde_json::from_str(page.as_str())
            .map_err(|source| Error::Reply { what: "page of rows", source })?;
        self.rows.extend(page);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_several_pages_are_joined_up_to_the_limit() {
        let page = Json::parse(r#"[{"id":"a"}]"#).unwrap();
        let mut rows = Rows::default();
        for _ in 0..3 {
            rows.take(page, 36).unwrap();
        }
        assert_eq!(rows.rows.iter().map(|row| row.get()).collect::<String>(), r#"{"id":"a"}"#.repeat(3));
        assert!(matches!(rows.take(page, 36), Err(Error::TooLarge { limit: 36, .. })));
    }

    #[test]
    fn a_page_that_is_no_array_is_a_fault_of_the_daemon() {
        let error = Rows::default().take(Json::EMPTY_OBJECT, 100).unwrap_err();
        assert_eq!(error.code(), pcp_core::ErrorCode::ProtocolError);
    }
}
