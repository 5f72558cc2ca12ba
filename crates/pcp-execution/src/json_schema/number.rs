//! Numbers compared and divided exactly, whether they were written as integers, decimals or with an exponent.

use std::cmp::Ordering;

use serde_json::Number;

/// Any number that `serde_json` holds. Integers of 64 bits do not all fit a float, hence two kinds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Real {
    Integer(i128),
    Float(f64),
}

impl Real {
    /// A float with no fraction becomes an integer where one is wide enough, so that 1.0 is 1.
    pub(super) fn of(number: &Number) -> Self {
        let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        match (integer, number.as_f64()) {
            (Some(integer), _) => Self::Integer(integer),
            (None, Some(float)) => whole(float).map_or(Self::Float(float), Self::Integer),
            // Not a number compares with nothing, so every rule about it fails.
            (None, None) => Self::Float(f64::NAN),
        }
    }
}

/// The integer that `float` is, if it is one below 2^126.
fn whole(float: f64) -> Option<i128> {
    const LIMIT: f64 = 8.5e37;
    #[expect(clippy::cast_possible_truncation, reason = "no fraction, and below i128::MAX")]
    (float.fract() == 0.0 && float.abs() < LIMIT).then_some(float as i128)
}

pub(super) fn is_integer(number: &Number) -> bool {
    match Real::of(number) {
        Real::Integer(_) => true,
        Real::Float(float) => float.is_finite() && float.fract() == 0.0,
    }
}

/// Which is greater, exactly; nothing when one of them is not a number.
pub(super) fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    match (Real::of(left), Real::of(right)) {
        (Real::Integer(left), Real::Integer(right)) => Some(left.cmp(&right)),
        (Real::Float(left), Real::Float(right)) => left.partial_cmp(&right),
        (Real::Integer(left), Real::Float(right)) => compare_mixed(left, right),
        (Real::Float(left), Real::Integer(right)) => compare_mixed(right, left).map(Ordering::reverse),
    }
}

/// `float` has a fraction or is huge: an equal integer would have been read as one.
fn compare_mixed(integer: i128, float: f64) -> Option<Ordering> {
    match whole(float.floor()) {
        Some(floor) if integer <= floor => Some(Ordering::Less),
        Some(_) => Some(Ordering::Greater),
        None => 0.0.partial_cmp(&float),
    }
}

/// A number as written: digits × 10^exponent, without its sign. 0.1 is a tenth here, as its author meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u64,
    exponent: i32,
}

impl Decimal {
    /// Nothing for what no float and no 64-bit integer holds.
    pub(super) fn of(number: &Number) -> Option<Self> {
        if let Some(digits) = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs)) {
            return Some(Self { digits, exponent: 0 });
        }
        // The shortest digits that read back as the same float: at most 17 of them.
        let text = format!("{:e}", number.as_f64().filter(|float| float.is_finite())?.abs());
        let (mantissa, exponent) = text.split_once('e')?;
        let (units, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{units}{fraction}").parse().ok()?;
        Some(Self { digits, exponent: exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()? })
    }

    pub(super) fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Whether `self` is a whole number of `unit`s.
    pub(super) fn is_multiple_of(self, unit: Self) -> bool {
        let (digits, unit_digits) = (u128::from(self.digits), u128::from(unit.digits));
        if digits == 0 || unit_digits == 0 {
            return digits == 0 && unit_digits != 0;
        }
        let shift = self.exponent.abs_diff(unit.exponent);
        if self.exponent >= unit.exponent {
            return ((digits % unit_digits) * power_of_ten(shift, unit_digits)).is_multiple_of(unit_digits);
        }
        // A unit that overflows is greater than any digits are.
        let unit_digits = 10_u128.checked_pow(shift).and_then(|power| power.checked_mul(unit_digits));
        unit_digits.is_some_and(|unit_digits| digits.is_multiple_of(unit_digits))
    }
}

/// 10^`exponent` modulo `modulus`; both factors stay below 2^64, so no product overflows.
fn power_of_ten(exponent: u32, modulus: u128) -> u128 {
    (0..exponent).fold(1 % modulus, |power, _| power * 10 % modulus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_compare_exactly_across_their_spellings() {
        for (left, right, order) in [
            ("1", "1.0", Ordering::Equal),
            ("-0.0", "0", Ordering::Equal),
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            ("18446744073709551615", "18446744073709551616.0", Ordering::Less),
            ("-9223372036854775808", "-9223372036854775808.0", Ordering::Equal),
            ("1", "1.5", Ordering::Less),
            ("2", "1.5", Ordering::Greater),
            ("-1", "-1.5", Ordering::Greater),
            ("-2", "-1.5", Ordering::Less),
            ("5", "1e300", Ordering::Less),
            ("5", "-1e300", Ordering::Greater),
            ("1e300", "1e299", Ordering::Greater),
        ] {
            assert_eq!(compare(&number(left), &number(right)), Some(order), "{left} {right}");
            assert_eq!(compare(&number(right), &number(left)), Some(order.reverse()), "{right} {left}");
        }
    }

    #[test]
    fn multiples_are_decimal_and_exact() {
        for (value, unit, fits) in [
            ("0", "7", true),
            ("0.0", "0.1", true),
            ("21", "7", true),
            ("22", "7", false),
            ("-21", "7", true),
            ("18446744073709551615", "5", true),
            ("18446744073709551614", "5", false),
            ("19.99", "0.01", true),
            ("19.995", "0.01", false),
            ("0.3", "0.1", true),
            ("4.5", "1.5", true),
            ("9007199254740993", "1.5", true),
            ("9007199254740992", "1.5", false),
            ("1e308", "123456789", false),
            ("1e308", "0.5", true),
            ("1e-300", "1e300", false),
            ("1e300", "1e-300", true),
            ("1.5", "1", false),
            ("7", "7.0", true),
            ("1e2", "18446744073709551615", false),
        ] {
            let decimal = |text| Decimal::of(&number(text)).unwrap();
            assert_eq!(decimal(value).is_multiple_of(decimal(unit)), fits, "{value} of {unit}");
        }
    }

    #[test]
    fn a_float_without_a_fraction_is_an_integer() {
        for (text, integer) in
            [("1.0", true), ("1e2", true), ("1e300", true), ("1.5", false), ("1e-1", false)]
        {
            assert_eq!(is_integer(&number(text)), integer, "{text}");
        }
    }
}
