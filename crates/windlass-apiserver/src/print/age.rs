//! How long ago, in two or three significant figures.

use jiff::Timestamp;

/// apimachinery's `duration.HumanDuration`.
pub fn human_duration(nanoseconds: i128) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    let (minutes, hours, days, years) =
        (seconds / 60, seconds / 3600, seconds / 86_400, seconds / 86_400 / 365);
    let pair = |big: i128, unit: char, small: i128, small_unit: char| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{small_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => pair(days, 'd', hours % 24, 'h'),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => pair(years, 'y', days % 365, 'd'),
        _ => format!("{years}y"),
    }
}

/// How long `then` is before `now`.
pub(super) fn between(then: Timestamp, now: Timestamp) -> String {
    human_duration(now.as_nanosecond() - then.as_nanosecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_shrink_as_time_grows() {
        let text = |seconds: i128| human_duration(seconds * 1_000_000_000);
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * 3600 - 1, "179m"),
            (3 * 3600, "3h"),
            (7 * 3600 + 59 * 60, "7h59m"),
            (47 * 3600, "47h"),
            (48 * 3600, "2d"),
            (49 * 3600, "2d1h"),
            (8 * 86_400, "8d"),
            (729 * 86_400, "729d"),
            (730 * 86_400, "2y"),
            (731 * 86_400, "2y1d"),
            (8 * 365 * 86_400, "8y"),
        ] {
            assert_eq!(text(seconds), expected, "{seconds}");
        }
        assert_eq!(human_duration(-500_000_000), "0s");
    }
}
