//! Opens the trails of a disk and starts the thread that writes them.

use std::sync::{Arc, Condvar, Mutex};

use super::state::{State, TrailState};
use super::{Limits, Opened, Shared, Writer, commit};
use crate::Error;
use crate::disk::Disk;
use crate::journal::{Journal, Seen};
use crate::ledger::OperationLedger;
use crate::line::Chain;
use crate::scan::Line;
use crate::seal::Lookout;
use crate::shelf::Shelf;

impl Writer {
    /// Opens the named trails of a disk, shows every record to `visit` (with the index of its trail), and
    /// starts the thread.
    ///
    /// # Errors
    /// [`Error::Damaged`] or [`Error::SegmentMissing`] for a trail that must not be written on;
    /// [`Error::Disk`] when the disk fails; whatever `visit` says.
    pub fn open(
        disk: Arc<dyn Disk>,
        names: &[&str],
        limits: Limits,
        visit: &mut dyn FnMut(usize, &Line<'_>) -> Result<(), Error>,
    ) -> Result<(Self, Vec<Opened>), Error> {
        Self::open_for(None, disk, None, names, limits, &mut |trail, seen| match seen {
            Seen::Line(line) => visit(trail, line),
            Seen::Loose(..) => Ok(()),
        })
    }

    /// Opens trails whose closed segments a ledger looks operations up in: they are not read where their index
    /// fits, and shown by what began or ended elsewhere.
    pub(crate) fn open_for(
        ledger: Option<&Arc<OperationLedger>>,
        disk: Arc<dyn Disk>,
        seals: Option<Arc<dyn Disk>>,
        names: &[&str],
        limits: Limits,
        visit: &mut dyn FnMut(usize, Seen<'_>) -> Result<(), Error>,
    ) -> Result<(Self, Vec<Opened>), Error> {
        let mut lookout = seals.map(|seals| Lookout::open(seals, names)).transpose()?;
        let (mut journals, mut trails, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for (index, name) in names.iter().enumerate() {
            let anchored = lookout.as_ref().map_or(0, |lookout| lookout.anchored(index));
            let mut visit = |seen: Seen<'_>| {
                if let (Some(lookout), Seen::Line(line)) = (&mut lookout, &seen) {
                    lookout.see(index, line)?;
                }
                visit(index, seen)
            };
            let shelf = ledger.map(|ledger| Shelf::new(ledger.clone(), index));
            let (mut journal, chain, cut) =
                Journal::open(disk.clone(), name, limits.segment_bytes, anchored, shelf, &mut visit)?;
            let full = !journal.secure(0);
            trails.push(TrailState::new(chain, limits.pending_bytes, full, journal.reserve_left()));
            journals.push(journal);
            found.push(Opened { chain, cut });
        }
        let chains: Vec<Chain> = found.iter().map(|trail| trail.chain).collect();
        let begins: Vec<u64> = journals.iter().map(Journal::begins_by).collect();
        let sealer = lookout.map(|lookout| lookout.begin(&*disk, &chains, &begins, limits)).transpose()?;
        let shared = Arc::new(Shared {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            limits,
            state: Mutex::new(State::new(trails, limits.waiting, sealer.is_some())),
            work: Condvar::new(),
            done: Condvar::new(),
        });
        let committer = commit::Committer::new(shared.clone(), journals, sealer);
        let thread = std::thread::Builder::new()
            .name("pcpd-journal".into())
            .spawn(move || committer.run())
            .map_err(|source| Error::file("start the thread of", "pcpd-journal", source))?;
        Ok((Self { shared, thread: Some(thread) }, found))
    }
}
