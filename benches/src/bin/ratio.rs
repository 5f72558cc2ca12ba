//! A framed ping to the real daemon against a bare Unix-socket ping-pong of the same size, pinned to one core,
//! round by round: `ratio [LIMIT]`. Prints one JSON line; exits 1 when the median ratio is above LIMIT.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use pcp_benches::LiveDaemon;
use pcp_ipc::Client;

/// Rounds; in each both sides are measured, so that a slow moment is slow for both.
const ROUNDS: usize = 9;
/// Calls of one side in one round.
const CALLS: u32 = 2_000;
/// Bytes of the bare ping-pong: a ping frame and its neighbours in size.
const BYTES: usize = 128;

fn main() -> ExitCode {
    let limit = std::env::args().nth(1).and_then(|limit| limit.parse::<f64>().ok());
    match measure() {
        Ok((ratios, bare_us, framed_us)) => {
            let median = ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN);
            println!(
                "{{\"ping_ratio\":{median:.3},\"least\":{:.3},\"most\":{:.3},\"bare_us\":{bare_us:.2},\"framed_us\":{framed_us:.2},\"rounds\":{ROUNDS},\"calls\":{CALLS}}}",
                ratios.first().copied().unwrap_or(f64::NAN),
                ratios.last().copied().unwrap_or(f64::NAN),
            );
            ExitCode::from(u8::from(limit.is_some_and(|limit| median > limit)))
        }
        Err(error) => {
            eprintln!("ratio: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(Vec<f64>, f64, f64), Box<dyn std::error::Error>> {
    pin_to_one_core()?;
    let daemon = LiveDaemon::start()?;
    let uid = nix::unistd::geteuid().as_raw();
    let mut client = Client::connect(&daemon.socket(), uid)?;
    let (mut near, mut far) = UnixStream::pair()?;
    std::thread::spawn(move || {
        let mut buffer = [0; BYTES];
        while far.read_exact(&mut buffer).is_ok() && far.write_all(&buffer).is_ok() {}
    });
    let mut bare = || -> Result<(), Box<dyn std::error::Error>> {
        let mut buffer = [0; BYTES];
        near.write_all(&buffer)?;
        Ok(near.read_exact(&mut buffer)?)
    };
    let mut framed = || -> Result<(), Box<dyn std::error::Error>> { Ok(client.ping().map(drop)?) };
    let mut ratios = Vec::with_capacity(ROUNDS);
    let (mut least_bare, mut least_framed) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let (one, other) = (median_of(&mut bare)?, median_of(&mut framed)?);
        least_bare = least_bare.min(one);
        least_framed = least_framed.min(other);
        ratios.push(other.as_secs_f64() / one.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    Ok((ratios, least_bare.as_secs_f64() * 1e6, least_framed.as_secs_f64() * 1e6))
}

fn median_of(
    call: &mut impl FnMut() -> Result<(), Box<dyn std::error::Error>>,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut times = Vec::with_capacity(CALLS as usize);
    for _ in 0..CALLS {
        let began = Instant::now();
        call()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

fn pin_to_one_core() -> Result<(), Box<dyn std::error::Error>> {
    let allowed = sched_getaffinity(Pid::this())?;
    let core = (0..CpuSet::count()).find(|core| allowed.is_set(*core).unwrap_or(false)).ok_or("no core")?;
    let mut one = CpuSet::new();
    one.set(core)?;
    Ok(sched_setaffinity(Pid::this(), &one)?)
}
