//! The daemon answers everybody who may ask, on both ways into the device.

use serde_json::json;

use crate::device::{COMMAND_LIMIT, Device, Shell};
use crate::error::Error;
use crate::stories::ask::{ask, same};
use crate::story::{Figures, Need, Story};

pub(super) const STORY: Story = Story {
    name: "ping",
    about: "root on the serial line and the operator over SSH get an answer; SSH takes keys and nothing else",
    needs: &[],
    only_by_name: false,
    tell,
};

fn tell(device: &mut Device) -> Result<Figures, Error> {
    let limit = device.patient(COMMAND_LIMIT);
    let mut ways = Vec::new();
    if device.has(Need::Console).is_ok() {
        ping(device.root()?, "root")?;
        ways.push("console");
    }
    if device.has(Need::Ssh).is_ok() {
        let operator = device.operator()?;
        ping(operator, "operator")?;
        let methods = operator.offered_methods(limit)?;
        same("what SSH takes", methods, vec!["publickey".to_owned()])?;
        ways.push("ssh");
    }
    Ok(Figures::from_iter([("ways".to_owned(), json!(ways))]))
}

fn ping(shell: &mut dyn Shell, user: &str) -> Result<(), Error> {
    same("the user", shell.check("id -un")?.as_str(), user)?;
    let data = ask(shell, "ping")?.data()?;
    same("the number of answers", data["count"].as_u64(), Some(1))
}
