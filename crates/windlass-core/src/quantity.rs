//! Resource quantities: `1500m`, `1536Mi`, `1e3`, read and written as apimachinery's `resource.Quantity` does.
//!
//! A quantity is `value × 10^scale`, and remembers the family of suffixes in which it was written. Its mantissa is
//! an `i128`; Go's is unbounded, so numbers of more than 38 digits, which Go would take, are refused here.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Neg, Sub};

/// The family of suffixes in which a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `n u m k M G T P E`: powers of a thousand.
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`: powers of 1024.
    BinarySi,
    /// `e3`: powers of ten.
    DecimalExponent,
}

/// Why a text is not a quantity; the texts are those of apimachinery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text has not the shape of a quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number cannot be represented.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// A fixed-point number with a preferred way to write it.
///
/// Equality and order are those of the number: `1` equals `1000m`.
#[derive(Clone, Debug)]
pub struct Quantity {
    value: i128,
    scale: i32,
    format: Format,
    /// The text it was read from, when apimachinery would repeat it unchanged (it does not always normalise: `+5`
    /// and `1.500` stay).
    text: Option<Box<str>>,
}

/// Nothing finer than a billionth is kept.
const NANO: i32 = -9;

/// Reads a quantity and writes its canonical text.
pub fn canonical(text: &str) -> Result<String, Error> {
    Quantity::parse(text).map(|quantity| quantity.to_string())
}

impl Quantity {
    /// Reads a quantity. What is finer than a billionth is rounded away from zero, and binary quantities are capped
    /// at 2^63-1.
    pub fn parse(text: &str) -> Result<Quantity, Error> {
        let quantity = Quantity::read(text)?;
        // What is written must read back, or an object with it could be created and never be changed again.
        if quantity.text.is_none() && !quantity.reads_back() {
            return Err(Error::Numeric);
        }
        Ok(quantity)
    }

    fn read(text: &str) -> Result<Quantity, Error> {
        if text.is_empty() {
            return Err(Error::Format);
        }
        let parts = Parts::split(text)?;
        let (base, exponent, format) = suffix(parts.suffix).ok_or(Error::Suffix)?;
        let digits = parts.integer.len() + parts.fraction.len();
        let fraction = i32::try_from(parts.fraction.len()).map_err(|_| Error::Numeric)?;
        let shifted = [parts.integer, parts.fraction].concat();

        // Go's fast path, which also decides whether the text is kept as it is.
        if base == 10 {
            let scale = exponent.wrapping_sub(fraction);
            if digits <= 18 && scale >= NANO {
                let value = parts.signed(shifted.parse().map_err(|_| Error::Numeric)?);
                let keep =
                    text == "0" || (scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0'));
                return Ok(Quantity { value, scale, format, text: keep.then(|| text.into()) });
            }
        } else if fraction == 0
            && i64::try_from(digits).is_ok_and(|n| 15 - n - i64::from(exponent * 3 / 10) > 0)
        {
            let value: i128 = shifted.parse().map_err(|_| Error::Numeric)?;
            let keep = value & 7 != 0;
            let value = parts.signed(value << exponent);
            return Ok(Quantity { value, scale: 0, format, text: keep.then(|| text.into()) });
        }

        // The slow path reads the number once more, and is the first to notice that there is none.
        if !parts.has_digits {
            return Err(Error::Numeric);
        }
        let mantissa: i128 = shifted.parse().map_err(|_| Error::Numeric)?;
        let (mut value, mut scale, mut format) = (mantissa, -fraction, format);
        if base == 10 {
            scale = exponent.wrapping_sub(fraction);
        } else {
            value = match value.checked_mul(1 << exponent) {
                Some(value) => value,
                None if whole_exceeds_i64(mantissa, fraction, exponent) => {
                    scale = 0;
                    i128::from(i64::MAX)
                }
                None => return Err(Error::Numeric),
            };
        }
        if value != 0 && scale < NANO {
            value = divide_up(value, NANO.abs_diff(scale)).0;
            scale = NANO;
        }
        if format == Format::BinarySi {
            let amount = Quantity { value, scale, format, text: None };
            if amount > Quantity::from_i64(i64::MAX) {
                (value, scale) = (i128::from(i64::MAX), 0);
            } else if value > 0 && amount < Quantity::from_i64(1) {
                format = Format::DecimalSi;
            }
        }
        Ok(Quantity { value: parts.signed(value), scale, format, text: None })
    }

    /// A whole number.
    pub fn from_i64(value: i64) -> Quantity {
        Quantity { value: i128::from(value), scale: 0, format: Format::DecimalSi, text: None }
    }

    /// The family of suffixes it is written with.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.value == 0
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        self.value.signum() as i32
    }

    /// The number in whole units, rounded away from zero; `None` if it does not fit.
    pub fn as_i64(&self) -> Option<i64> {
        self.scaled(0).and_then(|(value, _)| i64::try_from(value).ok())
    }

    /// The number in thousandths, rounded away from zero; `None` if it does not fit.
    pub fn as_milli(&self) -> Option<i64> {
        self.scaled(-3).and_then(|(value, _)| i64::try_from(value).ok())
    }

    /// Whether it is a whole number.
    pub fn is_whole(&self) -> bool {
        // Too large to scale means far from any fraction.
        self.scaled(0).is_none_or(|(_, exact)| exact)
    }

    /// The number in whole units, rounded away from zero.
    pub fn whole(self) -> Quantity {
        match self.scaled(0) {
            Some((value, false)) => Quantity { value, scale: 0, format: self.format, text: None },
            _ => self,
        }
    }

    /// The sum, in the format of `self` unless that is zero; `None` on overflow.
    pub fn checked_add(&self, other: &Quantity) -> Option<Quantity> {
        if self.is_zero() {
            return Some(Quantity { text: None, ..other.clone() });
        }
        if other.is_zero() {
            return Some(Quantity { text: None, ..self.clone() });
        }
        let scale = self.scale.min(other.scale);
        let value = self.scaled(scale)?.0.checked_add(other.scaled(scale)?.0)?;
        Some(Quantity { value, scale, format: self.format, text: None })
    }

    /// The mantissa at another scale, rounded away from zero, and whether nothing was lost.
    fn scaled(&self, scale: i32) -> Option<(i128, bool)> {
        if self.scale < scale {
            Some(divide_up(self.value, scale.abs_diff(self.scale)))
        } else if self.value == 0 {
            Some((0, true))
        } else {
            let factor = 10_i128.checked_pow(self.scale.abs_diff(scale))?;
            Some((self.value.checked_mul(factor)?, true))
        }
    }

    /// Mantissa and power of ten with no trailing zeros in the mantissa.
    fn reduced(&self) -> (i128, i64) {
        let (mut value, mut scale) = (self.value, i64::from(self.scale));
        while value != 0 && value % 10 == 0 {
            value /= 10;
            scale += 1;
        }
        (value, scale)
    }

    /// Whether what is written can be read: the mantissa, filled up until its exponent is a multiple of three, and the
    /// exponent.
    fn reads_back(&self) -> bool {
        let (value, scale) = self.reduced();
        let pad = scale.rem_euclid(3);
        i32::try_from(scale - pad).is_ok() && value.checked_mul(10_i128.pow(pad as u32)).is_some()
    }

    /// Writes mantissa and decimal suffix. The exponent becomes a multiple of three; one beyond the table has no
    /// suffix, in Go too (`1000E` is written `1`).
    fn write_decimal(&self, f: &mut fmt::Formatter<'_>, format: Format) -> fmt::Result {
        let (value, scale) = self.reduced();
        let pad = scale.rem_euclid(3);
        let exponent = scale - pad;
        write!(f, "{value}{}", &"00"[..pad as usize])?;
        match format {
            Format::DecimalExponent if exponent == 0 => Ok(()),
            Format::DecimalExponent => write!(f, "e{exponent}"),
            _ => f.write_str(
                DECIMAL.iter().find(|(_, e)| i64::from(*e) == exponent).map_or("", |(suffix, _)| suffix),
            ),
        }
    }

    fn write_binary(f: &mut fmt::Formatter<'_>, mut value: i128) -> fmt::Result {
        let mut exponent = 0;
        while value != 0 && value % 1024 == 0 {
            value /= 1024;
            exponent += 10;
        }
        let suffix = BINARY.iter().find(|(_, e)| *e == exponent).map_or("", |(suffix, _)| suffix);
        write!(f, "{value}{suffix}")
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        if self.value == 0 {
            return f.write_str("0");
        }
        if self.format == Format::BinarySi {
            // Below 1024, and where precision would be lost, the decimal form is the honest one.
            return match self.scaled(0) {
                Some((value, true)) if value.unsigned_abs() >= 1024 => Quantity::write_binary(f, value),
                _ => self.write_decimal(f, Format::DecimalSi),
            };
        }
        self.write_decimal(f, self.format)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        let signs = self.value.signum().cmp(&other.value.signum());
        if signs != Ordering::Equal || self.value == 0 {
            return signs;
        }
        let scale = self.scale.min(other.scale);
        match (self.scaled(scale), other.scaled(scale)) {
            (Some((a, _)), Some((b, _))) => a.cmp(&b),
            // One of them does not fit at the finer scale, so it is the larger in magnitude.
            (None, _) if self.value > 0 => Ordering::Greater,
            (None, _) => Ordering::Less,
            (_, None) if self.value > 0 => Ordering::Less,
            (_, None) => Ordering::Greater,
        }
    }
}

impl Neg for Quantity {
    type Output = Quantity;

    fn neg(self) -> Quantity {
        Quantity { value: -self.value, text: None, ..self }
    }
}

/// Sums saturate: beyond 38 digits the larger operand stands for the sum.
impl Add for &Quantity {
    type Output = Quantity;

    fn add(self, other: &Quantity) -> Quantity {
        self.checked_add(other).unwrap_or_else(|| {
            let larger = if self.scale >= other.scale { self } else { other };
            Quantity { text: None, ..larger.clone() }
        })
    }
}

/// Differences saturate as sums do.
impl Sub for &Quantity {
    type Output = Quantity;

    fn sub(self, other: &Quantity) -> Quantity {
        self + &-other.clone()
    }
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Base, exponent and family of a suffix.
fn suffix(suffix: &str) -> Option<(u32, i32, Format)> {
    let find = |table: &[(&str, i32)]| table.iter().find(|(name, _)| *name == suffix).map(|(_, e)| *e);
    if let Some(exponent) = find(&DECIMAL) {
        return Some((10, exponent, Format::DecimalSi));
    }
    if let Some(exponent) = find(&BINARY) {
        return Some((2, exponent, Format::BinarySi));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?;
    // Go cuts it to 32 bits without a look: `1e4294967296` is 1.
    Some((10, exponent as i32, Format::DecimalExponent))
}

/// The pieces of a text: sign, digits before and after the point, suffix.
struct Parts<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    suffix: &'a str,
    /// Go reads `.` and `+` as zero, where its fast path gets to see them.
    has_digits: bool,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Parts<'a>, Error> {
        let negative = text.starts_with('-');
        let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (integer, rest) = take(rest, |b| b.is_ascii_digit());
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => take(rest, |b| b.is_ascii_digit()),
            None => ("", rest),
        };
        let (_, rest) = take(suffix, |b| b"eEinumkKMGTP".contains(&b));
        let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        if !take(rest, |b| b.is_ascii_digit()).1.is_empty() {
            return Err(Error::Format);
        }
        let has_digits = !(integer.is_empty() && fraction.is_empty());
        let integer = match integer.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        Ok(Parts { negative, integer, fraction, suffix, has_digits })
    }

    fn signed(&self, value: i128) -> i128 {
        if self.negative { -value } else { value }
    }
}

/// Splits after the longest prefix of bytes that satisfy `accept`, which accepts only ASCII.
fn take(text: &str, accept: impl Fn(u8) -> bool) -> (&str, &str) {
    text.split_at(text.bytes().position(|b| !accept(b)).unwrap_or(text.len()))
}

/// `value / 10^power` rounded away from zero, and whether it was exact.
fn divide_up(value: i128, power: u32) -> (i128, bool) {
    let Some(divisor) = 10_i128.checked_pow(power) else {
        return (value.signum(), value == 0);
    };
    let (quotient, rest) = (value / divisor, value % divisor);
    (quotient + rest.signum(), rest == 0)
}

/// Whether `mantissa × 10^-fraction × 2^exponent` is beyond `i64` although it could not be computed.
fn whole_exceeds_i64(mantissa: i128, fraction: i32, exponent: i32) -> bool {
    let whole = 10_i128.checked_pow(fraction.unsigned_abs()).map_or(0, |divisor| mantissa / divisor);
    whole.checked_mul(1 << exponent).is_none_or(|value| value > i128::from(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Found by fuzzing: the text was taken, and written with digits or an exponent that do not read back as the same
    /// number. An object with it could be created and never be changed again, or changed with every write.
    #[test]
    fn what_is_written_reads_back() {
        assert!(canonical("212000502000501200055012000501001020.4").is_err());
        for text in ["21200050200050120005501200050100.4", "200050010050010200200900000.2000105T"] {
            let largest = canonical(text).unwrap();
            assert_eq!(canonical(&largest).as_ref(), Ok(&largest), "{text}");
        }
    }

    /// As Go's `resource.Quantity` answers. Where an exponent beyond 32 bits would have to be written, Go loses itself
    /// in a loop; here it is refused.
    #[test]
    fn exponents_are_cut_to_32_bits() {
        for (text, want) in [
            ("222200029129000e195129129", "222200029129e195129132"),
            ("1e1000001", "100e999999"),
            ("1e2147483647", "10e2147483646"),
            ("100000e2147483640", "100e2147483643"),
            ("1e4294967296", "1e4294967296"),
            ("1e9223372036854775807", "100e-3"),
            ("1e-2147483649", "10e2147483646"),
            ("1.5e-2147483648", "150e2147483646"),
            ("1e-1000000", "1e-9"),
        ] {
            assert_eq!(canonical(text).unwrap(), want, "{text}");
            assert_eq!(canonical(want).unwrap(), want, "{text}");
        }
        assert_eq!(canonical("1000e2147483647"), Err(Error::Numeric));
        assert_eq!(canonical("1e9223372036854775808"), Err(Error::Suffix));
    }

    #[test]
    fn canonical_forms() {
        for (text, want) in [
            ("0", "0"),
            ("1000m", "1"),
            ("1024Ki", "1Mi"),
            ("0.5", "500m"),
            ("1e3", "1e3"),
            ("12e4", "120e3"),
            ("1.5Gi", "1536Mi"),
            ("100k", "100k"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("0.5Mi", "512Ki"),
            ("1000", "1k"),
            ("-1500m", "-1500m"),
            // Beyond the last suffix Go writes the bare mantissa.
            ("10000000000000000000000", "10"),
            ("9Ei", "9223372036854775807"),
            ("+5", "+5"),
            (".", "0"),
            ("007", "007"),
        ] {
            assert_eq!(canonical(text).unwrap(), want, "{text}");
        }
    }

    #[test]
    fn refusals() {
        for (text, want) in [
            ("", Error::Format),
            ("x", Error::Format),
            ("1.2.3", Error::Format),
            ("1 Gi", Error::Format),
            ("1KiB", Error::Format),
            ("1K", Error::Suffix),
            ("1e", Error::Suffix),
            ("é", Error::Format),
        ] {
            assert_eq!(Quantity::parse(text).unwrap_err(), want, "{text}");
        }
    }

    #[test]
    fn order_is_that_of_the_numbers() {
        let q = |text| Quantity::parse(text).unwrap();
        assert_eq!(q("1"), q("1000m"));
        assert!(q("1Ki") > q("1k"));
        assert!(q("-1e30") < q("-1"));
        assert!(q("1e900") > q("1n"));
        assert_eq!((&q("1500m") + &q("0.5")).to_string(), "2");
        assert_eq!((&q("1Gi") - &q("512Mi")).to_string(), "512Mi");
        assert_eq!(q("1n").as_milli(), Some(1));
        assert_eq!(q("1500m").as_i64(), Some(2));
    }

    proptest! {
        #[test]
        fn canonical_is_stable_and_keeps_the_number(
            sign in "[+-]?", whole in "[0-9]{0,12}", fraction in "(\\.[0-9]{0,8})?",
            suffix in "(n|u|m||k|M|G|T|Ki|Mi|Gi|Ti|e[0-9]|E-[0-9])",
        ) {
            let text = format!("{sign}{whole}{fraction}{suffix}");
            if let Ok(quantity) = Quantity::parse(&text) {
                let once = quantity.to_string();
                let again = Quantity::parse(&once).unwrap();
                prop_assert_eq!(&again, &quantity);
                prop_assert_eq!(again.to_string(), once);
            }
        }

        #[test]
        fn any_text_is_refused_or_read(text in "\\PC{0,40}") {
            let _ = Quantity::parse(&text).map(|q| (q.to_string(), q.as_i64(), q.as_milli()));
        }
    }
}
