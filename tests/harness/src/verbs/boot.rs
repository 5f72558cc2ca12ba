//! `boot`: up to ready, the figures, and off again.

use serde::Serialize;

use crate::device::Device;
use crate::error::Error;
use crate::measure::GuestMemory;
use crate::target::qemu::Mark;

#[derive(Debug, Serialize)]
struct Report {
    image: Option<String>,
    sha256: Option<String>,
    marks: Vec<Mark>,
    memory: GuestMemory,
    powered_off: bool,
    image_unchanged: bool,
}

pub(crate) fn boot(mut device: Device, json: bool) -> Result<i32, Error> {
    let (image, sha256) = device.image().unzip();
    if let (Some(image), Some(sha256), false) = (&image, &sha256, json) {
        println!("image    {image}\nsha256   {sha256}");
    }
    let marks = device.reach_ready()?.marks;
    if !json {
        for Mark { name, wall_s, cpu_s } in &marks {
            let cpu = cpu_s.map_or_else(String::new, |cpu_s| format!("  {cpu_s:7.2} s of processor"));
            println!("{name:<8} {wall_s:7.2} s{cpu}");
        }
    }
    let memory = GuestMemory::of(device.shell()?)?;
    // A device that was up before is left up.
    let powered_off = device.machine().is_some();
    if powered_off {
        device.power_off()?;
    }
    device.close()?;
    if json {
        let report = Report { image, sha256, marks, memory, powered_off, image_unchanged: true };
        println!("{}", serde_json::to_string(&report).map_err(|error| Error::Finding(error.to_string()))?);
    } else {
        let GuestMemory { total_kib, used_kib, available_kib } = memory;
        println!("memory   {used_kib} KiB used, {available_kib} KiB available, {total_kib} KiB in all");
        println!("{}", if powered_off { "off      cleanly; image unchanged" } else { "device left on" });
    }
    Ok(0)
}
