//! Nodes: how they become known, how tasks reach them and how their answers wake the runs that wait.

mod agent;
mod allocations;
mod doctor;
mod enrolment;
mod gpus;
mod images;
mod imposed;
mod probes;
mod relayed;
mod reserve;
mod signers;
mod tasks;
pub mod update;
mod wire;
