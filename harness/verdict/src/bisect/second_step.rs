//! Whether two steps explain the runs so much better than one that one cannot be all.

use super::posterior::{Fit, Posterior, SMALLEST, StackRun, Variances, blocks};

/// By what two steps must be better, beside what their further numbers cost: twice the difference of two logarithms.
const MARGIN: f64 = 4.0;
/// Numbers that two steps have: a level, two sizes and the noise. Few runs are explained by them whatever they measured.
const FREE: f64 = 4.0;

pub(super) fn has_second_step(stacks: usize, runs: &[StackRun], posterior: &Posterior) -> bool {
    let blocks = blocks(runs);
    let n = runs.len() as f64;
    let one = Fit::new(&blocks, posterior.best() + 1, posterior.variances).squares;
    // A further size, and where it is.
    let costs = n.ln() + 2.0 * (stacks as f64).ln() + MARGIN;
    let best = posterior.best() + 1;
    // The step that is known, and any other.
    (1..stacks).filter(|from| *from != best).any(|from| {
        let Some((sizes, squares)) = two_steps(&blocks, best.min(from), best.max(from), posterior.variances)
        else {
            return false;
        };
        sizes.iter().all(|size| size.abs() > SMALLEST)
            && (n - FREE) * (one / squares.max(f64::MIN_POSITIVE)).ln() > costs
    })
}

/// Sizes of two steps by least squares, and the squares that they leave; nothing where runs cannot part them.
fn two_steps(
    blocks: &[Vec<StackRun>],
    first: usize,
    second: usize,
    variances: Variances,
) -> Option<([f64; 2], f64)> {
    let mut normal = [[0.0; 3]; 3];
    let mut with = [0.0; 3];
    let mut left = 0.0;
    for block in blocks {
        let m = block.len() as f64;
        let (each, of_block) = variances.weigh(block);
        let shared = of_block / (1.0 + m * of_block);
        let row = |run: &StackRun| {
            let behind = |from: usize| if run.stack >= from { 1.0 } else { 0.0 };
            [1.0, behind(first), behind(second)]
        };
        let sum = |of: &dyn Fn(&StackRun) -> f64| block.iter().map(of).sum::<f64>();
        let y = sum(&|run| run.value);
        for (i, (line, right)) in normal.iter_mut().zip(&mut with).enumerate() {
            let xi = sum(&|run| row(run)[i]);
            *right += each * (sum(&|run| row(run)[i] * run.value) - shared * xi * y);
            for (j, cell) in line.iter_mut().enumerate() {
                *cell +=
                    each * (sum(&|run| row(run)[i] * row(run)[j]) - shared * xi * sum(&|run| row(run)[j]));
            }
        }
        left += each * (sum(&|run| run.value * run.value) - shared * y * y);
    }
    let solution = solve(normal, with)?;
    let explained: f64 = solution.iter().zip(with).map(|(size, with)| size * with).sum();
    let [_, a, b] = solution;
    Some(([-a, -b], (left - explained).max(0.0)))
}

/// By Cramer's rule; nothing where the lines depend on each other.
fn solve(lines: [[f64; 3]; 3], right: [f64; 3]) -> Option<[f64; 3]> {
    let of_all = determinant(&lines);
    if of_all.abs() < 1e-9 {
        return None;
    }
    let with_right = |column: usize| {
        let mut changed = lines;
        for (line, value) in changed.iter_mut().zip(right) {
            line[column] = value;
        }
        determinant(&changed) / of_all
    };
    Some([with_right(0), with_right(1), with_right(2)])
}

fn determinant([a, b, c]: &[[f64; 3]; 3]) -> f64 {
    a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
}
