package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/export/report/performance"
)

// undefined stands where there is no number.
const undefined = "–"

// percent shows a fraction with one decimal, or two where it is small.
func percent(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return undefined
	}
	if math.Abs(x) < 0.00995 && x != 0 {
		return fixed(100*x, 2) + "%"
	}
	return fixed(100*x, 1) + "%"
}

func percent0(x float64) string {
	if p := 100 * x; p != math.Round(p) {
		return percent(x)
	}
	return fixed(100*x, 0) + "%"
}

// Chance shows a probability with one decimal, rounded down so that it never reaches a limit that
// it is below.
func Chance(p float64) string { return percent(math.Floor(1000*p) / 1000) }

// number shows a ratio with two decimals.
func number(x float64) string { return fixed(x, 2) }

// fixed has a proper minus sign, separates thousands by commas, and never shows −0.
func fixed(x float64, decimals int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return undefined
	}
	s := strconv.FormatFloat(math.Abs(x), 'f', decimals, 64)
	whole, rest, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	if x < 0 && strings.Trim(s, "0.") != "" {
		return "−" + whole
	}
	return whole
}

// show writes a metric in its unit.
func show(v performance.Number, unit performance.Unit) string {
	x := float64(v)
	switch unit {
	case performance.Percent:
		return percent(x)
	case performance.Days, performance.Count:
		return fixed(x, 0)
	}
	return number(x)
}

// interval shows one mark, and not two, where there is none.
func interval(v performance.Interval, show func(float64) string) string {
	if !v.Low.Defined() || !v.High.Defined() {
		return undefined
	}
	return show(float64(v.Low)) + " to " + show(float64(v.High))
}
