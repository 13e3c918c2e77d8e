//! Where lines of an isolation go: to stdout, or to stderr where a program reads the stdout of the run that it follows.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    Out,
    Err,
}

macro_rules! say {
    ($voice:expr, $($text:tt)*) => {
        match $voice {
            $crate::cli::isolate::voice::Voice::Out => println!($($text)*),
            $crate::cli::isolate::voice::Voice::Err => eprintln!($($text)*),
        }
    };
}

pub(super) use say;
