//! Nodes: how they become known, how tasks reach them and how their answers wake the runs that wait.

mod agent;
mod allocations;
mod doctor;
mod enrolment;
mod imposed;
mod tasks;
pub mod update;
mod wire;
