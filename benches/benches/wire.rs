//! Frames: encoded, decoded, and a ping over the socket of the real daemon beside a bare ping-pong.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use criterion::{Criterion, criterion_group, criterion_main};
use pcp_benches::{LiveDaemon, Wire};
use pcp_ipc::Client;

fn frames(c: &mut Criterion) {
    let mut wire = Wire::new();
    c.bench_function("wire/ping and execute request, out and in", |b| b.iter(|| black_box(wire.round())));
}

fn ping(c: &mut Criterion) {
    let daemon = LiveDaemon::start().unwrap();
    let mut client = Client::connect(&daemon.socket(), nix::unistd::geteuid().as_raw()).unwrap();
    let mut group = c.benchmark_group("ping");
    group.bench_function("framed, real daemon", |b| b.iter(|| client.ping().unwrap()));
    let (mut near, mut far) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 128];
        while far.read_exact(&mut buffer).is_ok() && far.write_all(&buffer).is_ok() {}
    });
    group.bench_function("bare Unix socket, 128 bytes", |b| {
        b.iter(|| {
            let mut buffer = [0; 128];
            near.write_all(&buffer).unwrap();
            near.read_exact(&mut buffer).unwrap();
            buffer
        });
    });
}

criterion_group!(benches, frames, ping);
criterion_main!(benches);
