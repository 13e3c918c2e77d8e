//! The simulated calendar: the moment at which simulated time starts, and how Slurm writes a moment.
//! Simulated time moves with tokio's clock; nothing here asks the machine for the date.

use super::noise;

/// A date within the two years from 2025, in the morning, the same for the same seed.
pub(crate) fn epoch_unix_s(seed: u64) -> i64 {
    const FIRST: i64 = 1_735_689_600;
    let draw = noise::digest(seed, &["epoch"]);
    let days = (draw % 730) as i64;
    let minutes = (draw / 730 % 240) as i64;
    FIRST + days * 86_400 + 6 * 3_600 + minutes * 60
}

/// `2026-03-06T03:17:51`, in UTC and without saying so, as Slurm does.
pub(crate) fn slurm_time(unix_s: f64) -> String {
    let seconds = unix_s.floor() as i64;
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(day);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}

/// `HH:MM:SS`, with days before it where there are any.
pub(crate) fn slurm_span(seconds: f64) -> String {
    let whole = seconds.max(0.0).floor() as u64;
    let clock = format!("{:02}:{:02}:{:02}", whole / 3_600 % 24, whole / 60 % 60, whole % 60);
    if whole >= 86_400 { format!("{}-{clock}", whole / 86_400) } else { clock }
}

/// Year, month and day of a day counted from 1970. Years are counted from March, so that the leap day ends one.
fn date(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_slurm_writes_them() {
        let moments = [
            (0.0, "1970-01-01T00:00:00"),
            (951_782_399.9, "2000-02-28T23:59:59"),
            (951_782_400.0, "2000-02-29T00:00:00"),
            (1_678_072_671.0, "2023-03-06T03:17:51"),
            (1_767_225_599.0, "2025-12-31T23:59:59"),
        ];
        for (unix_s, text) in moments {
            assert_eq!(slurm_time(unix_s), text);
        }
        assert_eq!(slurm_span(62.9), "00:01:02");
        assert_eq!(slurm_span(90_061.0), "1-01:01:01");
    }

    #[test]
    fn simulated_time_starts_at_a_date_of_the_seed() {
        assert_eq!(epoch_unix_s(1), epoch_unix_s(1));
        assert_ne!(epoch_unix_s(1), epoch_unix_s(2));
        for seed in 0..200 {
            assert!((1_735_689_600..1_798_761_600).contains(&epoch_unix_s(seed)), "{seed}");
        }
    }
}
