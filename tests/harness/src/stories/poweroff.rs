//! The device switches itself off cleanly, and what it wrote is there when it is switched on again.

use crate::device::{Device, Shell as _};
use crate::error::Error;
use crate::story::{Figures, Need, Story};

pub(super) const STORY: Story = Story {
    name: "poweroff",
    about: "poweroff ends the machine within its time, and the data partition is clean afterwards",
    needs: &[Need::Console, Need::PowerSwitch],
    only_by_name: false,
    tell,
};

/// What ext4 says when it was not released before the power went.
const RECOVERY: &str = "recovery complete";

fn tell(device: &mut Device) -> Result<Figures, Error> {
    device.reach_ready()?;
    device.power_off()?;
    device.reach_ready()?;
    let kernel = device.root()?.check("dmesg")?;
    if let Some(line) = kernel.lines().find(|line| line.contains(RECOVERY)) {
        return Err(Error::Finding(format!("power-off was not clean, the next boot said: {line}")));
    }
    device.power_off().map(|()| Figures::new())
}
