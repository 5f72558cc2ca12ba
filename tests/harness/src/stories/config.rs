//! A mistake in the configuration is named by file and line before the daemon is started with it.

use crate::device::{COMMAND_LIMIT, Device, Shell};
use crate::error::Error;
use crate::stories::ask::same;
use crate::story::{Figures, Story};

pub(super) const STORY: Story = Story {
    name: "config",
    about: "the device's configuration is good; a broken copy of it is refused with file and line",
    needs: &[],
    only_by_name: false,
    tell,
};

/// A copy of the device's configuration with a misspelt key at its end. Prints the number of that line.
const BREAK: &str = "set -e
cp /etc/portal/pcp/pcpd.toml /tmp/pcp-story.toml
chmod u+w /tmp/pcp-story.toml
printf '[limits]\\nrequests_per_secnd = 5\\n' >>/tmp/pcp-story.toml
wc -l </tmp/pcp-story.toml
";

fn tell(device: &mut Device) -> Result<Figures, Error> {
    device.reach_ready()?;
    let shell = device.shell()?;
    shell.check("portal-pcpd --check-config")?;
    let line = shell.check(BREAK)?;
    let told = is_named(shell, line.trim());
    shell.check("rm -f /tmp/pcp-story.toml")?;
    told.map(|()| Figures::new())
}

fn is_named(shell: &mut dyn Shell, line: &str) -> Result<(), Error> {
    let answer = shell.run("portal-pcpd --check-config --config /tmp/pcp-story.toml", COMMAND_LIMIT)?;
    same("the status", answer.status, 2)?;
    let place = format!("/tmp/pcp-story.toml:{line}: ");
    if answer.output.contains(&place) && answer.output.contains("requests_per_secnd") {
        return Ok(());
    }
    Err(Error::Finding(format!("{place}is not named in: {}", answer.output)))
}
