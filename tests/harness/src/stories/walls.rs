//! The three walls, met by three real users of the device.

use serde_json::{Value, json};

use crate::device::{COMMAND_LIMIT, Device, Shell};
use crate::error::Error;
use crate::stories::ask::{ask, ask_as, same};
use crate::stories::pcpd;
use crate::story::{Figures, Need, Story};

pub(super) const STORY: Story = Story {
    name: "walls",
    about: "three users reach their own floor and those below and none above; strangers reach nothing",
    needs: &[Need::Console],
    only_by_name: false,
    tell,
};

/// One capability of each floor, the lowest first, with the trail of its refusals. The upper two need not be
/// there: what lies behind a wall and what does not exist are refused alike.
const FLOORS: [(&str, &str); 3] = [
    ("app.org.portal.notes.list", "application"),
    ("compositor.surfaces.get_value", "compositor"),
    ("system.vault.get_value", "system"),
];
/// One user of each floor, the lowest first.
const USERS: [&str; 3] = ["wall-app", "wall-compositor", "wall-system"];
/// In the clients' group and in no file of root's.
const STRANGER: (&str, &str) = ("wall-stranger", "61004");
/// Not even in the group.
const OUTSIDER: &str = "wall-outsider";

/// Root's part: users who may connect, and a file for each that says how far.
const MOVE_IN: &str = r#"set -e
clients=$(sed -n 's/^pcp-clients:[^:]*:\([0-9]*\):.*/\1/p' /etc/group)
settle() { # settle DOMAIN UID TRUST
    echo "wall-$1:x:$2:$clients::/:/bin/false" >>/etc/passwd
    printf 'uid = %s\ndomain = "%s"\ntrust = %s\nflags = []\nmodality = "remote"\n' $2 $1 $3 \
        >/etc/portal/pcp/principals.d/wall-$1.toml
}
settle app 61001 1
settle compositor 61002 2
settle system 61003 3
echo "wall-stranger:x:61004:$clients::/:/bin/false" >>/etc/passwd
echo "wall-outsider:x:61005:65534::/:/bin/false" >>/etc/passwd
"#;
/// What MOVE_IN has made and nothing else; does no harm where there is nothing.
const MOVE_OUT: &str = "sed -i '/^wall-/d' /etc/passwd && rm -f /etc/portal/pcp/principals.d/wall-*.toml";

fn tell(device: &mut Device) -> Result<Figures, Error> {
    device.reach_ready()?;
    let back = device.patient(pcpd::BACK_LIMIT);
    let root = device.root()?;
    root.check(MOVE_OUT)?;
    let told = root.check(MOVE_IN).and_then(|_| pcpd::replace(root, "TERM", back)).and_then(|_| cells(root));
    // Whatever was told, nobody stays.
    let left = root.check(MOVE_OUT).and_then(|_| pcpd::replace(root, "TERM", back));
    told?;
    left?;
    nobody_is_left(root)
}

fn cells(root: &mut dyn Shell) -> Result<(), Error> {
    for (caller, user) in USERS.into_iter().enumerate() {
        for (floor, (capability, trail)) in FLOORS.into_iter().enumerate() {
            let reply = ask_as(root, user, &format!("exec {capability}"))?;
            if caller < floor {
                let error = reply.refused(5, "permission_denied")?;
                stands_in_the_trail(root, trail, &error, 61_001 + caller)?;
            } else {
                // The notes are there; what the upper floors ask for is a read of what need not be.
                match (floor, reply.status(), reply.code()) {
                    (_, 0, "ok") | (1.., 4, "capability_not_found") => {}
                    (0, ..) => return Err(reply.unexpected("success")),
                    _ => return Err(reply.unexpected("success or capability_not_found")),
                }
            }
        }
    }
    let (user, uid) = STRANGER;
    for words in ["ping".to_owned(), format!("exec {}", FLOORS[0].0)] {
        let error = ask_as(root, user, &words)?.refused(5, "unknown_principal")?;
        if !error["message"].as_str().is_some_and(|message| message.contains(uid)) {
            return Err(Error::Finding(format!("the refusal does not name uid {uid}: {error}")));
        }
    }
    ask_as(root, OUTSIDER, "ping")?.refused(3, "daemon_unreachable").map(|_| ())
}

fn stands_in_the_trail(root: &mut dyn Shell, trail: &str, error: &Value, uid: usize) -> Result<(), Error> {
    let records = ask(root, &format!("audit show --last 3 --trail {trail}"))?.data()?;
    let hash = &error["audit_hash"];
    let record = records.as_array().and_then(|all| all.iter().find(|record| &record["audit_hash"] == hash));
    let record = record.ok_or_else(|| Error::Finding(format!("trail {trail} has no record {hash}")))?;
    same("the record's kind", &record["kind"], &json!("refusal"))?;
    same("the refused user", &record["caller"]["uid"], &json!(uid))?;
    same("the rule", &record["permission"]["rule"], &json!("domain-wall"))
}

fn nobody_is_left(root: &mut dyn Shell) -> Result<Figures, Error> {
    let left =
        root.run("grep -h wall- /etc/passwd; ls /etc/portal/pcp/principals.d | grep wall-", COMMAND_LIMIT)?;
    same("what is left of the users", left.output.as_str(), "")?;
    Ok(Figures::new())
}
