package flashsale

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"golang.org/x/text/currency"
	"pgregory.net/rapid"
)

func TestFormatAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount   int64
		currency string
		want     string
	}{
		{9900, "CNY", "99.00 CNY"},
		{399900, "CNY", "3999.00 CNY"},
		{0, "EUR", "0.00 EUR"},
		{1, "EUR", "0.01 EUR"},
		{10, "EUR", "0.10 EUR"},
		{100, "EUR", "1.00 EUR"},
		{-1, "EUR", "-0.01 EUR"},
		{-1250, "EUR", "-12.50 EUR"},
		{9900, "JPY", "9900 JPY"},
		{0, "JPY", "0 JPY"},
		{-5, "KRW", "-5 KRW"},
		{9900, "KWD", "9.900 KWD"},
		{7, "KWD", "0.007 KWD"},
		{12345, "CLF", "1.2345 CLF"},
		{5000, "IDR", "50.00 IDR"},
		{3, "XAU", "3 XAU"},
		{9900, "ZZZ", "99.00 ZZZ"},
		{9900, "", "9900"},
		{maxAmount, "CNY", "10000000000000.00 CNY"},
		{math.MaxInt64, "CNY", "92233720368547758.07 CNY"},
		{math.MinInt64, "CNY", "-92233720368547758.08 CNY"},
		{math.MinInt64, "JPY", "-9223372036854775808 JPY"},
	} {
		if got := FormatAmount(c.amount, c.currency); got != c.want {
			t.Errorf("%d of %q is %q, want %q", c.amount, c.currency, got, c.want)
		}
		if got, want := FormatDecimal(c.amount, c.currency), strings.TrimSuffix(c.want, " "+c.currency); got != want {
			t.Errorf("%d of %q is %q, want %q", c.amount, c.currency, got, want)
		}
	}
}

// TestFormatAmountIsExact: what is written is the amount, over any currency.
func TestFormatAmountIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64().Draw(t, "amount")
		code := rapid.SampledFrom([]string{"CNY", "JPY", "KWD", "CLF", "XAU"}).Draw(t, "currency")
		read, ok := new(big.Rat).SetString(FormatDecimal(amount, code))
		unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(Decimals(code))), nil))
		if !ok || read.Mul(read, unit).Cmp(new(big.Rat).SetInt64(amount)) != 0 {
			t.Fatalf("%d of %s is %q", amount, code, FormatDecimal(amount, code))
		}
	})
}

// TestDecimalsAgainstCLDR: where CLDR has more than two decimals it has them from the standard, and where this table has none CLDR has none
// either. CLDR has none for others too, which is what cash is like there.
func TestDecimalsAgainstCLDR(t *testing.T) {
	t.Parallel()
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			for c := 'A'; c <= 'Z'; c++ {
				code := string([]rune{a, b, c})
				unit, err := currency.ParseISO(code)
				if err != nil || strings.HasPrefix(code, "X") && code != "XAF" && code != "XOF" && code != "XPF" {
					continue
				}
				theirs, _ := currency.Standard.Rounding(unit)
				switch ours := Decimals(code); {
				case theirs > 2 && ours != theirs, ours == 0 && theirs != 0:
					t.Errorf("%s has %d decimals, in CLDR %d", code, ours, theirs)
				case ours > 2 && ours != theirs && code != "IQD" && code != "UYW":
					t.Errorf("%s has %d decimals, in CLDR %d", code, ours, theirs)
				}
			}
		}
	}
}
