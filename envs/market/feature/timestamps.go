package feature

import "time"

// timestamps are the columns of Config.Timestamps.
var timestamps = []string{"month", "day", "weekday", "hour", "minute"}

// writeTimestamps writes the columns of a time: the first value of each part, which is Monday for
// weekdays, is −0.5, and the last 0.5.
func writeTimestamps(t time.Time, out []float64) {
	part := func(i, value, last int) { out[i] = float64(value)/float64(last) - 0.5 }
	part(0, int(t.Month())-1, 11)
	part(1, t.Day()-1, 30)
	part(2, (int(t.Weekday())+6)%7, 6)
	part(3, t.Hour(), 23)
	part(4, t.Minute(), 59)
}
