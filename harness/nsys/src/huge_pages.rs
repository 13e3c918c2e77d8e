//! A global allocator that asks for huge pages under large allocations: columns of millions of rows are written once
//! and read once, so that most of their cost is the first touch of each page. Small allocations are left alone.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

/// What a kernel calls a huge page where it knows no other size.
const HUGE: usize = 2 << 20;

/// Below it, memory is taken from the heap in pieces, and a huge page would hold little of any.
const LARGE: usize = 2 * HUGE;

/// The allocator, for `#[global_allocator]`.
pub struct HugePages;

static ON_FAILURE: OnceLock<fn()> = OnceLock::new();

/// What is called where there is no memory left; it had better not come back. Only the first that is given counts.
pub fn on_failure(call: fn()) {
    let _ = ON_FAILURE.set(call);
}

// SAFETY: all memory is the system allocator's, and goes back to it with the layout that it was asked with.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let memory = unsafe { System.alloc(layout) };
        advise(memory, layout.size());
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let memory = unsafe { System.alloc_zeroed(layout) };
        advise(memory, layout.size());
        memory
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let memory = unsafe { System.realloc(memory, layout, size) };
        advise(memory, size);
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) };
    }
}

/// The whole huge pages that lie in it. A kernel that has none to give goes on with small ones.
#[inline]
fn advise(memory: *mut u8, size: usize) {
    if memory.is_null() {
        failed();
    } else if size >= LARGE {
        ask(memory, size);
    }
}

#[cold]
fn failed() {
    if let Some(call) = ON_FAILURE.get() {
        call();
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
#[cold]
fn ask(memory: *mut u8, size: usize) {
    use nix::sys::mman::{MmapAdvise, madvise};
    use std::ptr::NonNull;
    let skipped = memory.align_offset(HUGE);
    let whole = size.saturating_sub(skipped) / HUGE * HUGE;
    if let Some(first) = NonNull::new(memory.wrapping_add(skipped)).filter(|_| whole > 0) {
        // SAFETY: the range lies within what was just allocated, and the advice changes nothing that can be read.
        let _ = unsafe { madvise(first.cast(), whole, MmapAdvise::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask(_: *mut u8, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn what_was_written_stands_there_however_large_it_was_and_becomes() {
        let layout = |size: usize| Layout::from_size_align(size, 64).expect("a layout");
        for size in [1, HUGE - 1, LARGE, LARGE + 4097, 9 * HUGE + 5] {
            // SAFETY: within the sizes that were asked for, and given back with the layout of the last.
            unsafe {
                let zeroed = HugePages.alloc_zeroed(layout(size));
                assert!(!zeroed.is_null() && (0..size).step_by(4093).all(|at| *zeroed.add(at) == 0));
                (0..size).for_each(|at| *zeroed.add(at) = (at % 251) as u8);
                let more = HugePages.realloc(zeroed, layout(size), 3 * size);
                assert!((0..size).all(|at| *more.add(at) == (at % 251) as u8));
                let less = HugePages.realloc(more, layout(3 * size), size / 2 + 1);
                assert!((0..size / 2).all(|at| *less.add(at) == (at % 251) as u8));
                HugePages.dealloc(less, layout(size / 2 + 1));
                let plain = HugePages.alloc(layout(size));
                assert_eq!(plain.align_offset(64), 0);
                *plain.add(size - 1) = 7;
                HugePages.dealloc(plain, layout(size));
            }
        }
    }
}
