//! What the kernel says of this process. What it does not say is left out.

use super::text::Text;

/// Ticks of a second, in which the kernel counts.
const TICKS: f64 = 100.0;

pub(super) fn write(text: &mut Text) {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{file}")).unwrap_or_default();
    let (stat, status, limits) = (read("self/stat"), read("self/status"), read("self/limits"));
    // After the name, which may hold anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let seconds = |at: usize| fields.get(at)?.parse::<f64>().ok().map(|ticks| ticks / TICKS);
    let booted = number_after(&read("stat"), "btime ");
    let kilobytes = |key: &str| number_after(&status, key).map(|kilobytes| kilobytes * 1024.0);
    let octets = octets(&read("self/net/netstat"));
    let open = std::fs::read_dir("/proc/self/fd").map(|all| all.count() as f64).ok();
    for (name, kind, help, value) in [
        (
            "process_cpu_seconds_total",
            "counter",
            "Total user and system CPU time spent in seconds.",
            seconds(11).zip(seconds(12)).map(|(user, system)| user + system),
        ),
        (
            "process_max_fds",
            "gauge",
            "Maximum number of open file descriptors.",
            number_after(&limits, "Max open files"),
        ),
        (
            "process_network_receive_bytes_total",
            "counter",
            "Number of bytes received by the process over the network.",
            octets.map(|octets| octets.0),
        ),
        (
            "process_network_transmit_bytes_total",
            "counter",
            "Number of bytes sent by the process over the network.",
            octets.map(|octets| octets.1),
        ),
        ("process_open_fds", "gauge", "Number of open file descriptors.", open),
        ("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", kilobytes("VmRSS:")),
        (
            "process_start_time_seconds",
            "gauge",
            "Start time of the process since unix epoch in seconds.",
            booted.zip(seconds(19)).map(|(booted, since)| booted + since),
        ),
        ("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", kilobytes("VmSize:")),
        (
            "process_virtual_memory_max_bytes",
            "gauge",
            "Maximum amount of virtual memory available in bytes.",
            number_after(&limits, "Max address space"),
        ),
    ] {
        text.begin(name, kind, help);
        value.into_iter().for_each(|value| text.value("", value));
    }
}

/// The number in the line that begins so. What has no limit has the largest one.
fn number_after(text: &str, key: &str) -> Option<f64> {
    let word = text.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?;
    if word == "unlimited" { Some(u64::MAX as f64) } else { word.parse().ok() }
}

/// Bytes that came and that went, in the network that this process is in.
fn octets(netstat: &str) -> Option<(f64, f64)> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let (names, values) = (lines.next()?.split(' '), lines.next()?.split(' '));
    let pairs: Vec<(&str, &str)> = names.zip(values).collect();
    let find = |name: &str| pairs.iter().find(|(have, _)| *have == name)?.1.parse().ok();
    Some((find("InOctets")?, find("OutOctets")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_all_of_it() {
        let mut text = Text::new();
        write(&mut text);
        assert_eq!(text.out.lines().filter(|line| !line.starts_with('#')).count(), 9, "{}", text.out);
    }

    #[test]
    fn limits_and_octets_are_found_in_their_lines() {
        let limits = "Limit   Soft Limit  Hard Limit  Units\nMax open files   1024   4096  files\nMax address space  unlimited  unlimited  bytes\n";
        assert_eq!(number_after(limits, "Max open files"), Some(1024.0));
        assert_eq!(number_after(limits, "Max address space"), Some(u64::MAX as f64));
        let netstat = "TcpExt: A\nTcpExt: 1\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 12 34\n";
        assert_eq!(octets(netstat), Some((12.0, 34.0)));
    }
}
