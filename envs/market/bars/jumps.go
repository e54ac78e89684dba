package bars

import (
	"fmt"
	"math"
)

// Jump is a large change from one close to the next open.
type Jump struct {
	Date  string  `json:"date"`
	Ratio float64 `json:"ratio"` // open over the close before
	// Like is the split that the jump looks like, such as "2:1", empty where it looks like none.
	Like string `json:"like,omitempty"`
}

// splitRatios are the usual splits: new shares for old ones.
var splitRatios = [][2]int{{2, 1}, {3, 1}, {3, 2}, {4, 1}, {5, 1}, {5, 2}, {5, 4}, {4, 3}, {6, 1}, {7, 1}, {8, 1}, {10, 1}, {15, 1}, {20, 1}, {25, 1}, {30, 1}, {50, 1}, {100, 1}}

// splitTolerance is how far the price may be from the ratio: the stock also moves on the day.
const splitTolerance = 0.03

// likeSplit names the split that multiplies a price, or an adjustment factor, by about ratio, and gives its exact ratio.
func likeSplit(ratio float64) (name string, exact float64) {
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

// findJumps lists changes overnight by more than the threshold. A split happens between two bars, so the open shows it and
// not the moves of the day.
func findJumps(records []Record, threshold float64) []Jump {
	var list []Jump
	limit := math.Log(1 + threshold)
	for i := 1; i < len(records); i++ {
		ratio := records[i].Open / records[i-1].Close
		if math.Abs(math.Log(ratio)) < limit {
			continue
		}
		like, _ := likeSplit(ratio)
		// On the day of a crash the price also moves a lot within the day; on that of a split it does not.
		if math.Log(records[i].High/records[i].Low) > math.Abs(math.Log(ratio))/3 {
			like = ""
		}
		list = append(list, Jump{Date: formatTime(records[i].Time), Ratio: ratio, Like: like})
	}
	return list
}
