package flashsale

import "strconv"

// FormatAmount writes an amount in the smallest unit of a currency as people do: 9900 of CNY as "99.00 CNY", 9900 of JPY as "9900 JPY". Without
// a currency it is the number as it is. It is safe for concurrent use.
func FormatAmount(amount int64, currency string) string {
	if currency == "" {
		return strconv.FormatInt(amount, 10)
	}
	return FormatDecimal(amount, currency) + " " + currency
}

// FormatDecimal is [FormatAmount] without the currency, for where that stands already.
func FormatDecimal(amount int64, currency string) string {
	digits, decimals := strconv.FormatInt(amount, 10), Decimals(currency)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	if decimals == 0 {
		return sign + digits
	}
	for len(digits) <= decimals {
		digits = "0" + digits
	}
	point := len(digits) - decimals
	return sign + digits[:point] + "." + digits[point:]
}

// Decimals is how many decimals the smallest unit of a currency is, 0 to 4, as ISO 4217 has it under "minor unit":
// two but for those here. A code that is not in the standard has two as well, and what the standard gives none, such as gold, has 0.
//
// The tables of CLDR, and so golang.org/x/text/currency, say something else: what is usual in cash, such as no decimals for IDR or PKR, of which
// the standard and payment services count the hundredth part. An amount would be shown as a hundred times as much.
func Decimals(currency string) int {
	switch currency {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF",
		"XAG", "XAU", "XBA", "XBB", "XBC", "XBD", "XDR", "XPD", "XPT", "XSU", "XTS", "XUA", "XXX", "":
		return 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3
	case "CLF", "UYW":
		return 4
	}
	return 2
}
