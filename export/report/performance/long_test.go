package performance

import (
	"math"
	"testing"
	"time"
)

// TestLongRecords: a time.Duration ends after 292 years, and records do not.
func TestLongRecords(t *testing.T) {
	from, to := time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := Years([]time.Time{from, to}); math.Abs(got-800) > 0.02 {
		t.Errorf("%g years, expected 800", got)
	}
	if got := days(from, to); got != 292_194 {
		t.Errorf("%d days", got)
	}
	for _, d := range []time.Duration{0, 90 * time.Minute, 1e9*3600*24*365 + 7} {
		if got := Hours(from, from.Add(d)); got != d.Hours() {
			t.Errorf("%v: %v", d, got)
		}
	}
}
