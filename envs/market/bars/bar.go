package bars

import "time"

// Bar is what is known of one asset at the close of one interval. Prices are in the asset's
// currency, volume in shares or contracts.
type Bar struct {
	// Time is what the data call the bar: midnight in the data's time zone for daily bars.
	Time                           time.Time
	Open, High, Low, Close, Volume float64
}

// Record is a row of a file before it is checked. Numbers that the file leaves blank are NaN.
type Record struct {
	Bar
	// Suspended says that the file marks the bar as one without trading.
	Suspended bool
	// Extra holds the columns named by Source.Extra, in their order.
	Extra []float64
	// average is the place in Extra, from 1, of amount/volume; 0 where there is none.
	average int
	// Factor multiplies prices into adjusted ones; 1 where nothing is adjusted.
	Factor float64
	// offset is that of the time from UTC in seconds, where it has one that no zone is set for, as
	// stamped says.
	offset  int
	stamped bool
	// Quote is what is known besides: see [Series.Quoted].
	Quote Quote
	// File and Line say where the row was read: the line of a text file, else the number of the
	// row.
	File string
	Line int
}

// Series is one symbol's rows in the order of the file, as read or, after [Clean], in the order of
// time.
type Series struct {
	Symbol  string
	Records []Record
	// Quoted lists the columns that the quotes of the rows have, in order; one that the source
	// lacks is not made up.
	Quoted []QuoteColumn
}

// Until returns the series without the rows later than t, sharing memory. It needs the order of
// time.
func (s Series) Until(t time.Time) Series {
	n := len(s.Records)
	for n > 0 && s.Records[n-1].Time.After(t) {
		n--
	}
	return Series{Symbol: s.Symbol, Records: s.Records[:n:n], Quoted: s.Quoted}
}

// Average is the place in Extra of the column that is amount/volume, −1 where there is none.
func (r *Record) Average() int { return r.average - 1 }

// SetAverage says that the i-th number of Extra is amount/volume.
func (r *Record) SetAverage(i int) { r.average = i + 1 }
