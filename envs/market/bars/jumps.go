package bars

import (
	"fmt"
	"math"
)

// Jump is a large change from one close to the next open.
type Jump struct {
	Date  string  `json:"date"`
	Ratio float64 `json:"ratio"` // open over the close before
	// Like is the split that the jump looks like, such as "2:1", or "13:10" for three bonus shares
	// on ten, empty where it looks like none.
	Like string `json:"like,omitempty"`
}

// splitRatios are the usual splits: new shares for old ones.
var splitRatios = [][2]int{{2, 1}, {3, 1}, {3, 2}, {4, 1}, {5, 1}, {5, 2}, {5, 4}, {4, 3}, {6, 1}, {7, 1}, {8, 1}, {10, 1}, {15, 1}, {20, 1}, {25, 1}, {30, 1}, {50, 1}, {100, 1}}

// bonusRatios are those of bonus shares, which are smaller than splits and lower the price.
var bonusRatios = [][2]int{{6, 5}, {5, 4}, {13, 10}, {4, 3}, {7, 5}, {3, 2}, {8, 5}, {17, 10}, {9, 5}, {2, 1}}

// splitTolerance is how far the price may be from the ratio: the stock also moves on the day.
// bonusTolerance is smaller, because smaller moves are more frequent and the ratios lie closer.
const (
	splitTolerance = 0.03
	bonusTolerance = 0.015
)

// likeSplit names the split that multiplies a price, or an adjustment factor, by about ratio, and
// gives its exact ratio.
func likeSplit(ratio float64) (name string, exact float64) {
	// Nearly always it is far from all, the nearest of which are 5:4 and 4:5.
	if ratio > 0.84 && ratio < 1.19 {
		return "", 0
	}
	best := splitTolerance
	for _, r := range splitRatios {
		up := float64(r[0]) / float64(r[1])
		if d := math.Abs(math.Log(ratio / up)); d < best {
			best, name, exact = d, fmt.Sprintf("%d:%d", r[1], r[0]), up
		}
		if d := math.Abs(math.Log(ratio * up)); d < best {
			best, name, exact = d, fmt.Sprintf("%d:%d", r[0], r[1]), 1/up
		}
	}
	return name, exact
}

// likeBonus names the bonus shares that lower a price by about ratio.
func likeBonus(ratio float64) (name string) {
	best := bonusTolerance
	for _, r := range bonusRatios {
		if d := math.Abs(math.Log(ratio * float64(r[0]) / float64(r[1]))); d < best {
			best, name = d, fmt.Sprintf("%d:%d", r[0], r[1])
		}
	}
	return name
}

// findJumps lists changes overnight by more than the threshold, and smaller ones that look like
// bonus shares. A split happens between two bars, so the open shows it and not the moves of the
// day.
func findJumps(records []Record, threshold float64) []Jump {
	var list []Jump
	limit := math.Log(1 + threshold)
	for i := 1; i < len(records); i++ {
		if j, found := jumpBetween(&records[i-1], &records[i], limit); found {
			list = append(list, j)
		}
	}
	return list
}

// jumpBetween looks at a row and the one before it; limit is the logarithm of 1 + threshold.
func jumpBetween(before, rec *Record, limit float64) (j Jump, found bool) {
	ratio := rec.Open / before.Close
	// Nearly always nothing follows: bonus shares lower a price by a sixth at least.
	if ratio > 0.87 && ratio < 1.14 && limit > 0.15 {
		return j, false
	}
	size := math.Abs(math.Log(ratio))
	like := likeBonus(ratio)
	if size >= limit {
		like, _ = likeSplit(ratio)
	}
	// On the day of a crash the price also moves a lot within the day; on that of a split it does
	// not.
	if math.Log(rec.High/rec.Low) > size/3 {
		like = ""
	}
	if size < limit && like == "" {
		return j, false
	}
	return Jump{Date: formatTime(rec.Time), Ratio: ratio, Like: like}, true
}
