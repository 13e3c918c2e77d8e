//! Symmetric systems of equations, by Cholesky's decomposition.

/// The lower triangle of a positive definite matrix's root.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    rows: Vec<Vec<f64>>,
}

impl Cholesky {
    /// `None` where the matrix is not positive definite.
    pub(crate) fn new(matrix: &[Vec<f64>]) -> Option<Cholesky> {
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(matrix.len());
        for (i, of_matrix) in matrix.iter().enumerate() {
            let mut row = Vec::with_capacity(i + 1);
            for (j, value) in of_matrix.iter().enumerate().take(i + 1) {
                let other = if i == j { &row } else { rows.get(j)? };
                let rest = value - dot(&row, other);
                if i != j {
                    row.push(rest / rows.get(j)?.get(j)?);
                } else if rest > 0.0 {
                    row.push(rest.sqrt());
                } else {
                    return None;
                }
            }
            rows.push(row);
        }
        Some(Cholesky { rows })
    }

    /// `root^-1 * right`
    pub(crate) fn forward(&self, right: &[f64]) -> Vec<f64> {
        let mut solved: Vec<f64> = Vec::with_capacity(right.len());
        for (row, value) in self.rows.iter().zip(right) {
            let diagonal = row.last().copied().unwrap_or(1.0);
            solved.push((value - dot(row, &solved)) / diagonal);
        }
        solved
    }

    /// `matrix^-1 * right`
    pub(crate) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut solved = self.forward(right);
        for (i, row) in self.rows.iter().enumerate().rev() {
            let Some((diagonal, before)) = row.split_last() else { continue };
            let value = solved[i] / diagonal;
            solved[i] = value;
            for (one, factor) in solved.iter_mut().zip(before) {
                *one -= factor * value;
            }
        }
        solved
    }
}

/// Over as many as both have.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved() {
        let matrix = [vec![4.0, 2.0, 1.0], vec![2.0, 5.0, 3.0], vec![1.0, 3.0, 6.0]];
        let expected = [1.0, -2.0, 3.0];
        let right: Vec<f64> = matrix.iter().map(|row| dot(row, &expected)).collect();
        let solved = Cholesky::new(&matrix).expect("positive definite").solve(&right);
        for (value, expected) in solved.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-12, "{solved:?}");
        }
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_is_refused() {
        assert!(Cholesky::new(&[vec![1.0, 2.0], vec![2.0, 1.0]]).is_none());
    }
}
