//! The device comes up by itself, lets nobody in without a key press or a key, and answers.

use crate::device::{Device, Shell as _};
use crate::error::Error;
use crate::story::{Figures, Need, Story};

pub(super) const STORY: Story = Story {
    name: "boot",
    about: "the device comes up without a hand, its console waits for a key press, no account has a password",
    needs: &[Need::Console],
    only_by_name: false,
    tell,
};

/// Prints every account whose password is neither in the shadow file nor impossible there.
const PASSWORDS: &str = "\
awk -F: '$2 != \"x\" { print FILENAME \": \" $1 }' /etc/passwd
awk -F: '$2 != \"*\" && $2 !~ /^!/ { print FILENAME \": \" $1 }' /etc/shadow
";

fn tell(device: &mut Device) -> Result<Figures, Error> {
    let marks = device.reach_ready()?.marks;
    if marks.last().is_some_and(|mark| mark.name == "not ready") {
        return Err(Error::NotReady("its console says PCP-NOT-READY; see --log for the reason".to_owned()));
    }
    // A device that was up has no marks: whoever came before has pressed the key.
    if !marks.is_empty() && !marks.iter().any(|mark| mark.name == "console") {
        return Err(Error::Finding("the console does not wait for a key press".to_owned()));
    }
    let root = device.root()?;
    let accounts = root.check(PASSWORDS)?;
    if !accounts.is_empty() {
        return Err(Error::Finding(format!("accounts with a password: {accounts}")));
    }
    root.check("pcp-cli ping").map(|_| Figures::new())
}
