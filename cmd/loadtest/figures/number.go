package figures

import (
	"fmt"
	"math"
	"strings"
)

// Number formats a value with about three significant digits.
func Number(v float64) string {
	magnitude := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "–"
	case v == math.Trunc(v) && magnitude < 1e6 || magnitude >= 100:
		return grouped(fmt.Sprintf("%.0f", v))
	case magnitude >= 10:
		return fmt.Sprintf("%.1f", v)
	case magnitude >= 0.1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// grouped separates thousands with commas.
func grouped(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Unit returns the suffix of a figure with this unit; empty without a unit.
func Unit(name string) string {
	if name == "" {
		return ""
	}
	return " " + name
}

// Show formats the median of samples, with the minimum and the maximum in brackets.
func Show(s Samples, of string) string {
	if len(s) == 0 {
		return "–"
	}
	text := Number(s.Median())
	if len(s) > 1 {
		text += " (" + Number(s.min()) + "–" + Number(s.Max()) + ")"
	}
	return text + Unit(of)
}
