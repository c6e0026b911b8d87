//! Being built.
pub mod capture;
pub mod os;
