//! `packtrain lab`: the real binary makes labs, changes and breaks them, and takes them down. And what they are
//! made of, and whether they do what they are told.

mod capture;
mod chance;
mod check;
mod commands;
mod crashes;
mod hub;
mod lossy;
mod namespaces;
mod queues;
mod standing;
mod wires;
mod world;
