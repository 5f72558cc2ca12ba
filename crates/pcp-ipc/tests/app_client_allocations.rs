//! An invocation over a kept connection costs the daemon no allocation.

#![allow(unsafe_code, reason = "a global allocator that counts is the only way to see every allocation")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use pcp_core::{CapabilityId, Domain, InvocationContext, Modality, OperationId, Tier, TrustLevel};
use pcp_ipc::AppClient;
use pcp_stream::{ProtocolError, StreamClient, StreamMessageType};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is handed on to the system allocator unchanged; counting touches no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds `alloc`'s contract, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above and so from the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const REPLY: &str =
    r#"{"type":"capability_result_msg","success":true,"state_source":"rust","data_json":{"a":[{"b":1}]}}"#;

/// An application of few words, on a thread of its own so that its allocations are not counted.
fn application(listener: UnixListener) {
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut connection = StreamClient::over(stream).unwrap();
        let wait = Duration::from_secs(5);
        while connection.receive(wait).is_ok() {
            connection
                .send::<ProtocolError>(StreamMessageType::CapabilityResultMsg, wait, |out| {
                    out.extend_from_slice(REPLY.as_bytes());
                    Ok(())
                })
                .unwrap();
        }
    });
}

#[test]
fn an_invocation_over_a_kept_connection_allocates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("org.x.notes.sock");
    application(UnixListener::bind(&path).unwrap());
    let capability = CapabilityId::parse("app.org.x.notes.create").unwrap();
    let context = InvocationContext {
        operation_id: OperationId::from_parts(1_700_000_000_000, [1; 10]),
        uid: 1000,
        domain: Domain::App,
        trust: TrustLevel::USER,
        modality: Modality::Remote,
        tier: Tier::One,
        budget_ms: 5000,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = AppClient::new(&path, nix::unistd::geteuid().as_raw());
        let mut data = Vec::new();
        for _ in 0..3 {
            client.invoke(&capability, &context, r#"{"t":{"u":[]}}"#, &mut data).await.unwrap();
        }
        let before = ALLOCATIONS.with(Cell::get);
        for _ in 0..50 {
            let reply = client.invoke(&capability, &context, r#"{"t":{"u":[]}}"#, &mut data).await.unwrap();
            assert!(reply.success);
        }
        assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0);
        assert_eq!(data, br#"{"a":[{"b":1}]}"#);
    });
}
