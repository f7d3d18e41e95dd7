//! What is used is counted once, what is counted is charged once, and nobody can say afterwards that it was not so.

mod bill;
mod budget;
mod crowd;
mod forged;
mod isolation;
pub mod ledger;
mod metering;
mod model;
pub mod office;
mod struck;
mod usage;
