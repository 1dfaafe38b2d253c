//! Support for the scenario and end-to-end tests.
