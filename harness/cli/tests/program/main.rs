//! The built program against bad input, hostile workers and a hostile machine: what it says, how it exits, what it
//! leaves on disk, and that it leaves no process.

mod bare;
mod bench;
mod changed;
mod ci;
mod clock;
mod deploy;
mod depth;
mod durability;
mod explore;
mod gate;
mod init;
mod input;
mod interruption;
mod ledgers;
mod liveness;
mod machine;
mod marks;
mod model;
mod names;
mod report_robustness;
mod reports;
mod safety;
mod second_language;
mod shards;
mod shells;
mod workers;
