//! The device comes up by itself and answers.

use crate::device::{Device, Shell as _};
use crate::error::Error;
use crate::story::{Need, Story};

pub(super) const STORY: Story = Story {
    name: "boot",
    about: "the device comes up without a hand and its daemon answers on the console",
    needs: &[Need::Console],
    tell,
};

fn tell(device: &mut Device) -> Result<(), Error> {
    device.reach_ready()?;
    device.root()?.check("pcp-cli ping").map(|_| ())
}
