//! Where a folder of a node lies in a container.

use job::script::Container;

/// The path of a folder in a container; nothing where no mount holds it.
pub(crate) fn path_inside(container: &Container, folder: &str) -> Option<String> {
    container.mounts.iter().find_map(|mount| {
        let mut ends = mount.split(':');
        let (outside, inside) = (ends.next()?.trim_end_matches('/'), ends.next()?.trim_end_matches('/'));
        let rest = folder.strip_prefix(outside).filter(|rest| rest.starts_with('/'))?;
        Some(format!("{inside}{rest}"))
    })
}
