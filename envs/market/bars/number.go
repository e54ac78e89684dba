package bars

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// parseNumber reads a number as programs write it, or as vendors show it to people: 1,234,567.8 (and
// 12,34,567 as in India), 1.2M, 3.4万. Blank cells and the usual spellings of a missing value are
// NaN. The error of what looks like a number, and may mean another, says why.
func parseNumber(s string) (float64, error) {
	switch s {
	case "", "-", "--", "NA", "N/A", "#N/A", "n/a", "null", "NULL", "None", "nan", "NaN":
		return math.NaN(), nil
	case "true", "True", "TRUE":
		return 1, nil
	case "false", "False", "FALSE":
		return 0, nil
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return v, nil
	}
	text, power := s, ""
	for _, m := range multiples {
		if bare, ok := strings.CutSuffix(s, m.mark); ok {
			text, power = strings.TrimSpace(bare), m.power
			break
		}
	}
	if grouped.MatchString(text) {
		text = strings.ReplaceAll(text, ",", "")
	}
	if v, err := strconv.ParseFloat(text+power, 64); err == nil && !strings.ContainsAny(text, "xX_nN") {
		return v, nil
	}
	why := ""
	switch {
	case strings.HasSuffix(s, "%"):
		why = ": it is a percentage"
	case strings.ContainsAny(s, "$€£¥￥₹"):
		why = ": it has the sign of a currency"
	case foreign.MatchString(text):
		why = ": expected a point before the decimals and, if any, commas between groups of three digits, such as 1,234.5"
	}
	return 0, fmt.Errorf("%q is not a number%s", s, why)
}

// multiples are the marks that numbers end with, and what stands for them; longer ones come first.
var multiples = []struct{ mark, power string }{
	{"万亿", "e12"}, {"亿", "e8"}, {"万", "e4"},
	{"K", "e3"}, {"k", "e3"}, {"M", "e6"}, {"m", "e6"}, {"B", "e9"}, {"b", "e9"}, {"T", "e12"},
}

var (
	// grouped are digits in groups of three, or of two before the last three.
	grouped = regexp.MustCompile(`^[+-]?(\d{1,3}(,\d{3})+|\d{1,2}(,\d{2})*,\d{3})(\.\d*)?$`)
	// foreign are digits with other marks between them.
	foreign = regexp.MustCompile(`^[+-]?\d+([.,' \x{a0}\x{202f}’]\d+)+$`)
	// comma is one comma before three digits.
	comma = regexp.MustCompile(`^[+-]?\d{1,3},\d{3}$`)
)

// number reads a number of a table; where semicolons separate the cells, a comma may stand for the
// decimal point.
func number(s string, semicolons bool) (float64, error) {
	if semicolons && comma.MatchString(s) {
		bare := strings.Replace(s, ",", "", 1)
		return 0, fmt.Errorf("%q may be %s or %s: semicolons separate the cells, as where a comma is the decimal point; expected a point, or no comma", s, bare, strings.Replace(s, ",", ".", 1))
	}
	return parseNumber(s)
}
