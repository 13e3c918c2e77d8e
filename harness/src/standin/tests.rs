//! Who a process is, what it prints, and what it moves.
