package ashare

import "testing"

// TestPhases goes over the ends of every phase of a day.
func TestPhases(t *testing.T) {
	r, cases := on(t, "2024-01-02"), 0
	for _, c := range []struct {
		hour, minute int
		want         Phase
	}{
		{9, 14, Closed}, {9, 15, OpeningCall}, {9, 19, OpeningCall}, {9, 20, OpeningCallNoCancel}, {9, 24, OpeningCallNoCancel}, {9, 25, Closed}, {9, 29, Closed}, {9, 30, Continuous},
		{11, 29, Continuous}, {11, 30, Closed}, {12, 59, Closed}, {13, 0, Continuous}, {14, 56, Continuous}, {14, 57, ClosingCall}, {14, 59, ClosingCall}, {15, 0, Closed}, {15, 4, Closed},
		{15, 5, AfterHours}, {15, 29, AfterHours}, {15, 30, Closed},
	} {
		cases++
		if got := r.Phase(STAR, clock(c.hour, c.minute)); got != c.want {
			t.Errorf("%d:%02d is %s, expected %s", c.hour, c.minute, got, c.want)
		}
	}
	if cases != 20 {
		t.Errorf("%d minutes, expected 20", cases)
	}
}

// TestBreaker has both days on which the breaker tripped, and what it would have done at noon and
// before the close.
func TestBreaker(t *testing.T) {
	cases := 0
	for _, c := range []struct {
		date         string
		move         int
		hour, minute int
		paused       bool
		until        int
	}{
		{"2016-01-04", -505, 13, 13, false, clock(13, 28)},
		{"2016-01-04", -655, 13, 30, true, 0},
		{"2016-01-04", -702, 13, 33, true, clock(15, 0)},
		{"2016-01-07", -503, 9, 42, false, clock(9, 57)},
		{"2016-01-07", -721, 9, 59, true, clock(15, 0)},
		{"2016-01-05", 499, 10, 0, false, 0},
		{"2016-01-05", 500, 10, 0, false, clock(10, 15)},
		{"2016-01-05", 700, 10, 0, false, clock(15, 0)},
		{"2016-01-05", -500, 11, 20, false, clock(13, 5)},
		{"2016-01-05", -500, 11, 15, false, clock(13, 0)},
		{"2016-01-05", -500, 14, 44, false, clock(14, 59)},
		{"2016-01-05", -500, 14, 45, false, clock(15, 0)},
		{"2016-01-08", -800, 10, 0, false, 0},
	} {
		cases++
		if got := on(t, c.date).Breaker(c.move, clock(c.hour, c.minute), c.paused); got != c.until {
			t.Errorf("%+v: until %d", c, got)
		}
	}
	if cases != 13 {
		t.Errorf("%d cases, expected 13", cases)
	}
}
