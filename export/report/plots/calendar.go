package plots

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot/vg"
)

// Month is the return of a month, or of a year where Month is 0.
type Month struct {
	Year, Month int
	Return      float64
}

// Months draws returns by month and year as a heat map. Colour is full at the ninth decile of the
// sizes of monthly returns; the column of years has a scale of its own.
func Months(name, alt string, all []Month) (*Figure, error) {
	if len(all) == 0 {
		return nil, errors.New("draw " + name + ": expected at least one month")
	}
	var years []int
	var sizes, yearSizes []float64
	for _, m := range all {
		if m.Month < 0 || m.Month > 12 {
			return nil, errors.New("draw " + name + ": there is no month " + strconv.Itoa(m.Month))
		}
		if !slices.Contains(years, m.Year) {
			years = append(years, m.Year)
		}
		if m.Month == 0 {
			yearSizes = append(yearSizes, math.Abs(m.Return))
		} else {
			sizes = append(sizes, math.Abs(m.Return))
		}
	}
	slices.Sort(years)
	full, fullYear := decile(sizes), decile(yearSizes)
	const cell, left, top, gap = 27, 54, 30, 2
	h := vg.Length(top + cell*len(years) + 8)
	return &Figure{Name: name, Alt: alt, Width: width, Height: h, draw: func(c *canvas) {
		w := vg.Length(width-left-16) / 13.4
		column := func(month int) vg.Length {
			if month == 0 {
				return left + 12*w + 0.2*w
			}
			return left + vg.Length(month-1)*w
		}
		for m := range 13 {
			title, centre := "Year", column(m)+0.6*w
			if m > 0 {
				title, centre = time.Month(m).String()[:3], column(m)+w/2
			}
			c.text(muted, centreMiddle, centre, h-top/2-2, title)
		}
		for i, y := range years {
			c.bold(ink, rightMiddle, left-10, h-top-cell*(vg.Length(i)+0.5), strconv.Itoa(y))
		}
		for _, m := range all {
			x, y := column(m.Month), h-top-cell*vg.Length(slices.Index(years, m.Year))
			width := w
			limit := full
			if m.Month == 0 {
				width, limit = 1.2*w, fullYear
			}
			r := gain
			if m.Return < 0 {
				r = loss
			}
			c.box(r, 0.06+0.54*math.Min(1, math.Abs(m.Return)/limit), x+gap/2, y-cell+gap/2, x+width-gap/2, y-gap/2)
			text := signed(strconv.FormatFloat(100*m.Return, 'f', 1, 64))
			if m.Month == 0 {
				c.bold(ink, centreMiddle, x+width/2, y-cell/2, text+"%")
			} else {
				c.text(ink, centreMiddle, x+width/2, y-cell/2, text)
			}
		}
	}}, nil
}

// decile is the ninth decile of sizes, and something positive where there is none.
func decile(sizes []float64) float64 {
	if len(sizes) == 0 {
		return 1
	}
	slices.Sort(sizes)
	return math.Max(sizes[min(len(sizes)-1, len(sizes)*9/10)], 1e-12)
}
