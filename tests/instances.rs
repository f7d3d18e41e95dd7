//! Instances: from what was asked for to what runs on a node, and back to nothing, with proof.

mod boot;
mod change;
mod configs;
mod create;
mod credentials;
mod decommission;
mod deploy;
mod drift;
mod entitled;
mod gpus;
mod health;
mod jupyterlab;
mod killed;
mod logs;
mod nodes;
mod outages;
mod places;
mod progress;
mod promises;
mod reads;
mod relay;
mod speech;
mod stacks;
mod struck;
mod tried_again;
mod trust;
