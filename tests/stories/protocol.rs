//! Protocol v2 as a host meets it: the same cases over the socket of the real daemon and in a process of its own (C46,
//! R-181..R-201), then what only one of the two can show.

mod conformance;
mod door;
mod hosts;
mod ledger;
mod signed;
mod storm;
