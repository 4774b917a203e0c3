//! A discrete-event simulator that runs the engine in virtual time.
