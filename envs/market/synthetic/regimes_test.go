package synthetic

import "testing"

// TestRegimesShowInManyDays: where moves are right seven times of ten and regimes last for 200
// days, whoever looks at the last move alone earns less than half of what the best policy does, and
// half a month or a month is needed for nearly all of it.
func TestRegimesShowInManyDays(t *testing.T) {
	m := DefaultRegimes()
	m.Bars, m.Start, m.Accuracy, m.Change = 100_000, date("1700-01-01"), 0.7, 0.005
	records := m.Generate().Series[0].Records
	s := Seen{Open: make([]float64, m.Bars), Close: make([]float64, m.Bars)}
	for i, r := range records {
		s.Open[i], s.Close[i] = r.Open, r.Close
	}
	states, err := m.States(s)
	if err != nil {
		t.Fatal(err)
	}
	const longest = 64
	// again [T+1] counts, up to a day, the moves that went on less those that turned back.
	again := make([]int, m.Bars+1)
	direction := func(day int) int {
		if s.rises(day) {
			return 1
		}
		return -1
	}
	for day := 1; day < m.Bars; day++ {
		again[day+1] = again[day] + direction(day)*direction(day-1)
	}
	windows := []int{1, 4, 16, 32, longest}
	best, earned := 0.0, make([]float64, len(windows))
	for day := longest; day < m.Bars; day++ {
		belief := states[day] / (levels - 1)
		if s.rises(day) {
			belief = (states[day] - levels) / (levels - 1)
		}
		// The mean move of the next day, in units of Move.
		mean := (2*m.Accuracy - 1) * (2*belief - 1) * float64(direction(day))
		best += max(0, mean)
		for i, w := range windows {
			switch n := (again[day+1] - again[day+1-w]) * direction(day); {
			case n > 0:
				earned[i] += mean
			case n == 0:
				earned[i] += mean / 2
			}
		}
	}
	for i, w := range windows {
		earned[i] /= best
		t.Logf("%d days: %.3f of the optimum", w, earned[i])
	}
	if earned[0] > 0.48 || earned[1] > 0.68 || earned[2] < 0.9 || earned[3] < 0.9 || earned[4] > earned[3] {
		t.Errorf("shares %.3f by the last %v days", earned, windows)
	}
}
