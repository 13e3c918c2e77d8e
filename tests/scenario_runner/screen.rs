//! What a terminal of some size still shows when a command is over.

/// The whole lines on the last screen, where longer lines are wrapped and the prompt takes the last row.
pub(crate) fn last(text: &str, size: &str) -> Result<String, String> {
    let odd = || format!("screen `{size}`: expected columns and rows, such as `80x24`");
    let (columns, rows) = size.split_once('x').ok_or_else(odd)?;
    let (columns, rows): (usize, usize) =
        (columns.parse().map_err(|_| odd())?, rows.parse().map_err(|_| odd())?);
    if columns == 0 || rows == 0 {
        return Err(odd());
    }
    let mut left = rows - 1;
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().rev() {
        let needed = line.chars().count().div_ceil(columns).max(1);
        let Some(rest) = left.checked_sub(needed) else { break };
        left = rest;
        lines.push(line);
    }
    lines.reverse();
    Ok(lines.join("\n"))
}

/// Of `runner_tests`.
pub(crate) fn check() {
    let text = "first\n\n123456\nlast\n";
    for (size, expected) in [
        ("80x24", Ok("first\n\n123456\nlast")),
        ("80x3", Ok("123456\nlast")),
        ("5x3", Ok("last")),
        ("5x4", Ok("123456\nlast")),
        ("80", Err("screen `80`: expected columns and rows, such as `80x24`")),
    ] {
        let found = last(text, size);
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{size}");
    }
}
