//! The daemon answers everybody who may ask, on both ways into the device.

use crate::device::{Device, Shell};
use crate::error::Error;
use crate::stories::ask::{ask, same};
use crate::story::{Figures, Need, Story};

pub(super) const STORY: Story = Story {
    name: "ping",
    about: "root on the serial line and the operator over SSH get an answer; SSH takes keys and nothing else",
    needs: &[Need::Console, Need::Ssh],
    only_by_name: false,
    tell,
};

fn tell(device: &mut Device) -> Result<Figures, Error> {
    let limit = device.patient(crate::device::COMMAND_LIMIT);
    ping(device.root()?, "root")?;
    let operator = device.operator()?;
    ping(operator, "operator")?;
    let methods = operator.offered_methods(limit)?;
    same("what SSH takes", methods, vec!["publickey".to_owned()])?;
    Ok(Figures::new())
}

fn ping(shell: &mut dyn Shell, user: &str) -> Result<(), Error> {
    same("the user", shell.check("id -un")?.as_str(), user)?;
    let data = ask(shell, "ping")?.data()?;
    same("the number of answers", data["count"].as_u64(), Some(1))
}
