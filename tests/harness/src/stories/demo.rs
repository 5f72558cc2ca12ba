//! A walk along the device for a person: each command, and what it says.

use std::io::{IsTerminal as _, Write as _};

use crate::device::{COMMAND_LIMIT, Device, Shell, quote};
use crate::error::Error;
use crate::stories::ask::{ask, same};
use crate::stories::notes::{NOTES, fresh_word};
use crate::story::{Figures, Need, Story};

pub(super) const STORY: Story = Story {
    name: "demo",
    about: "a walk for a person: boot, list, create, read, a refusal, a wall, the trails, power-off",
    needs: &[Need::Console, Need::Ssh],
    only_by_name: true,
    tell,
};

/// A page of the demo: what is said before, who asks, what.
struct Step<'a> {
    say: &'a str,
    words: &'a str,
    /// The exit status it has to have.
    status: i32,
}

fn tell(device: &mut Device) -> Result<Figures, Error> {
    let mut stage =
        Stage { coloured: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() };
    stage.heading("The device boots: firmware, kernel, services; nobody touches it");
    for mark in device.reach_ready()?.marks {
        stage.line(&format!("{:<9} after {:5.1} s", mark.name, mark.wall_s));
    }
    let title = fresh_word("demo");
    let operator = device.operator()?;
    stage.step(
        operator,
        "operator over SSH",
        &Step { say: "What can be done here", words: "list", status: 0 },
    )?;
    let create = format!("exec {NOTES}.create title={title} body='two litres'");
    let say = "An intent with an effect: carried out once, verified, recorded";
    stage.step(operator, "operator over SSH", &Step { say, words: &create, status: 0 })?;
    let found = ask(operator, &format!("exec {NOTES}.search query={title}"))?.data()?;
    let id = &found["data"]["matches"][0]["id"];
    let read = format!("exec {NOTES}.read id:={id}");
    stage.step(
        operator,
        "operator over SSH",
        &Step { say: "The effect is there", words: &read, status: 0 },
    )?;
    let delete = format!("exec {NOTES}.delete id:={id}");
    let say = "Deleting needs a person at the device; over SSH nobody can say yes";
    stage.step(operator, "operator over SSH", &Step { say, words: &delete, status: 6 })?;

    let root = device.root()?;
    let say = "A wall: programs of the seat are in the app domain, and the system is not theirs";
    let wall = Step { say, words: "exec system.power.get_state", status: 5 };
    stage.step_as(root, "session", "a program of the seat", &wall)?;
    let say = "Everything above stands in a trail, each record chained to the one before";
    stage.step(root, "root on the serial line", &Step { say, words: "audit verify", status: 0 })?;
    let shown = Step { say: "The newest records", words: "audit show --last 4", status: 0 };
    stage.step(root, "root on the serial line", &shown)?;

    if device.machine().is_some() {
        stage.heading("Power off: services end, file systems are released");
        device.power_off()?;
        stage.line("off, cleanly");
    }
    Ok(Figures::new())
}

/// Where the demo is seen.
struct Stage {
    coloured: bool,
}

impl Stage {
    fn heading(&mut self, text: &str) {
        let (on, off) = if self.coloured { ("\x1b[1;33m", "\x1b[0m") } else { ("", "") };
        self.line(&format!("\n{on}== {text}{off}"));
    }

    fn line(&mut self, text: &str) {
        let mut out = std::io::stdout();
        // Nobody may be looking any more; the demo ends all the same, with its power-off.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    fn step(&mut self, shell: &mut dyn Shell, who: &str, step: &Step<'_>) -> Result<(), Error> {
        self.show(shell, who, step, str::to_owned)
    }

    fn step_as(&mut self, root: &mut dyn Shell, user: &str, who: &str, step: &Step<'_>) -> Result<(), Error> {
        self.show(root, who, step, |command| format!("su -s /bin/sh -c {} {user}", quote(command)))
    }

    fn show(
        &mut self,
        shell: &mut dyn Shell,
        who: &str,
        step: &Step<'_>,
        dress: impl Fn(&str) -> String,
    ) -> Result<(), Error> {
        let (on, off) = if self.coloured { ("\x1b[32m", "\x1b[0m") } else { ("", "") };
        self.heading(step.say);
        self.line(&format!("{who} {on}$ pcp-cli {}{off}", step.words));
        let colour = if self.coloured { "always" } else { "never" };
        let command = format!("pcp-cli {} --format table --color {colour}", step.words);
        let answer = shell.run(&dress(&command), COMMAND_LIMIT)?;
        self.line(&answer.output);
        if answer.status != 0 {
            self.line(&format!("(exit status {})", answer.status));
        }
        same(&format!("the exit status of {:?}", step.words), answer.status, step.status)
    }
}
