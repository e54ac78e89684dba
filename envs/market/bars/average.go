package bars

import "fmt"

// average compares the average price of a row, where it is amount/volume, with low and high.
func (c *cleaner) average(rec *Record) {
	if rec.average == 0 || !(rec.Volume > 0) {
		return
	}
	v := rec.Extra[rec.average-1]
	if v-v != 0 {
		return
	}
	c.report.Averages++
	// Vendors round amounts, to thousands some of them.
	const slack = 2e-3
	if v < rec.Low*(1-slack) || v > rec.High*(1+slack) {
		what := fmt.Sprintf("amount/volume is %.6g, low %.6g and high %.6g", v, rec.Low, rec.High)
		if c.report.OffAverage == 0 {
			c.offAverage = fmt.Sprintf("%s (%s, line %d): %s", formatTime(rec.Time), rec.File, rec.Line, what)
		}
		_ = c.found(&c.report.OffAverage, rec, "", what) // No rule makes it an error.
	}
}
