//! A frame read or written costs no allocation once the buffers have their size.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "a global allocator that counts is the only way to see every allocation")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use pcp_stream::{FrameReader, StreamMessageType, encode_with};

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

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn steady_traffic_allocates_nothing() {
    let payload = vec![b'x'; 4096];
    let mut reader = FrameReader::new();
    let mut outgoing = Vec::new();
    let mut round = || {
        outgoing.clear();
        for message_type in [StreamMessageType::Ping, StreamMessageType::ExecuteRequest] {
            encode_with::<pcp_stream::ProtocolError>(message_type, &mut outgoing, |out| {
                out.extend_from_slice(&payload);
                Ok(())
            })
            .unwrap();
        }
        let mut rest = &outgoing[..];
        let mut frames = 0;
        while !rest.is_empty() {
            let taken = reader.push(rest);
            rest = &rest[taken..];
            while reader.next_frame().unwrap().is_some() {
                frames += 1;
            }
        }
        assert_eq!(frames, 2);
    };
    round();
    round();

    assert_eq!(allocations(|| (0..100).for_each(|_| round())), 0);
}

#[test]
fn a_length_bomb_allocates_nothing_for_what_it_announces() {
    let mut reader = FrameReader::new();
    let announced = [0xff, 0xff, 0x0f, 0x00, 0x80];
    reader.push(&announced);
    assert_eq!(allocations(|| assert!(reader.next_frame().unwrap().is_none())), 0);
    assert!(reader.capacity_bytes() <= pcp_stream::INITIAL_BUFFER_BYTES);
}
