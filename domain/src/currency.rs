//! Money as people write it: every currency has its own minor unit (ISO 4217), and some have none.

/// How many digits the minor unit has.
pub fn minor_digits(currency: &str) -> u32 {
    match currency {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "UYI"
        | "VND" | "VUV" | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        "CLF" | "UYW" => 4,
        _ => 2,
    }
}

/// An amount with its currency: `-12.34 EUR`.
pub fn written(amount_minor: i64, currency: &str) -> String {
    let sign = if amount_minor < 0 { "-" } else { "" };
    let digits = minor_digits(currency);
    let (amount, unit) = (amount_minor.unsigned_abs(), 10_u64.pow(digits));
    match digits {
        0 => format!("{sign}{amount} {currency}"),
        digits => {
            format!("{sign}{}.{:0width$} {currency}", amount / unit, amount % unit, width = digits as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_as_many_digits_as_its_currency() {
        let told = [(-1234, "EUR"), (5, "EUR"), (1234, "JPY"), (-1234, "KWD"), (7, "CLF"), (0, "USD")];
        assert_eq!(
            told.map(|(minor, currency)| written(minor, currency)),
            ["-12.34 EUR", "0.05 EUR", "1234 JPY", "-1.234 KWD", "0.0007 CLF", "0.00 USD"]
        );
        assert_eq!(written(i64::MIN, "EUR"), "-92233720368547758.08 EUR");
    }
}
