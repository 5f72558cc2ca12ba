//! `story`: tells one or all, and counts.

use crate::device::Device;
use crate::error::Error;
use crate::story::{Story, Tally, tell};

pub(crate) fn story(mut device: Device, stories: &[&Story], json: bool) -> Result<i32, Error> {
    if let Some((image, sha256)) = device.image().filter(|_| !json) {
        println!("image    {image}\nsha256   {sha256}");
    }
    let mut tally = Tally::default();
    for story in stories {
        let ending = tell(story, &mut device);
        if !json {
            println!("{ending}");
            if !ending.figures.is_empty() {
                println!("{}", json_line(&ending.figures)?);
            }
        }
        tally.add(ending);
    }
    device.close()?;
    if json {
        println!("{}", json_line(&tally)?);
    } else {
        println!("{tally}");
    }
    Ok(i32::from(tally.failed > 0))
}

fn json_line(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Finding(error.to_string()))
}
