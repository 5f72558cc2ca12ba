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
    let report = device.reach_ready()?;
    if report.marks.last().is_some_and(|mark| mark.name == "not ready") {
        return Err(Error::NotReady("its console says PCP-NOT-READY; see --log for the reason".to_owned()));
    }
    device.root()?.check("pcp-cli ping").map(|_| ())
}
