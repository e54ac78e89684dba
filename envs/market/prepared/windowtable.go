package prepared

import (
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
)

// Columns of a table of windows, beside time and symbol.
const (
	windowColumn     = "window"
	volatilityColumn = "next_volatility"
	returnColumn     = "next_return"
	returnsColumn    = "next_returns"
)

// WindowOptions say which windows a table has.
type WindowOptions struct {
	// Range names a range of the split. Windows end in it, and so do the bars that targets are made
	// of.
	Range string
	// Horizon is the number of bars after a window that its targets look at, at least 2.
	Horizon int
	// Stride is the number of bars between the ends of windows of one asset.
	Stride int
}

// windowGroup is the number of windows that are compressed together; a window has W·F numbers.
const windowGroup = 2048

// WriteWindows writes a Parquet table to train an encoder on, a row for each window of one asset,
// in the order of time: time and symbol of its last bar; window, the W·F features as the
// environment shows them, bar by bar; and targets, of the log returns from close to close of the
// Horizon bars that follow: next_volatility, the logarithm of their root mean square, next_return,
// their sum, and next_returns, themselves. There is a row where all features of all W bars are
// defined and the asset is traded in all bars of the horizon with some movement. It returns the
// number of rows; none is an error.
func (s *Set) WriteWindows(w io.Writer, o WindowOptions) (rows int, err error) {
	if o.Horizon < 2 || o.Stride < 1 {
		return 0, fmt.Errorf("windows: horizon %d and stride %d, expected at least 2 and 1", o.Horizon, o.Stride)
	}
	lo, hi := -1, -1
	var names []string
	for _, r := range s.Manifest.Split.Named() {
		if names = append(names, r.Name); r.Name == o.Range {
			lo, hi = r.Lo, r.Hi
		}
	}
	if lo < 0 {
		return 0, fmt.Errorf("windows: there is no range %q, only %q", o.Range, names)
	}
	m := &s.Manifest
	file, err := parquetfile.Create(w, arrow.NewSchema([]arrow.Field{
		{Name: timeColumn, Type: timeType}, {Name: symbolColumn, Type: arrow.BinaryTypes.String},
		{Name: windowColumn, Type: arrow.ListOf(arrow.PrimitiveTypes.Float32)},
		{Name: volatilityColumn, Type: arrow.PrimitiveTypes.Float32}, {Name: returnColumn, Type: arrow.PrimitiveTypes.Float32},
		{Name: returnsColumn, Type: arrow.ListOf(arrow.PrimitiveTypes.Float32)},
	}, nil), dictionaries...)
	if err != nil {
		return 0, fmt.Errorf("windows: %w", err)
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = fmt.Errorf("windows: %w", closed)
		}
	}()
	for t := max(lo, m.W-1); t+o.Horizon < hi; t += o.Stride {
		for n := range m.N {
			volatility, sum, ok := s.outcome(t, n, o.Horizon)
			if !ok || !s.whole(t, n) {
				continue
			}
			file.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(s.Times[t].UnixMicro()))
			file.Field(1).(*array.StringBuilder).Append(m.Symbols[n])
			list := file.Field(2).(*array.ListBuilder)
			list.Append(true)
			for k := t - m.W + 1; k <= t; k++ {
				at := (k*m.N + n) * m.F
				list.ValueBuilder().(*array.Float32Builder).AppendValues(s.x[at:at+m.F], nil)
			}
			file.Field(3).(*array.Float32Builder).Append(float32(volatility))
			file.Field(4).(*array.Float32Builder).Append(float32(sum))
			list = file.Field(5).(*array.ListBuilder)
			list.Append(true)
			for k := t + 1; k <= t+o.Horizon; k++ {
				list.ValueBuilder().(*array.Float32Builder).Append(float32(s.logReturn(k, n)))
			}
			if rows++; rows%windowGroup == 0 {
				if err := file.Flush(); err != nil {
					return rows, fmt.Errorf("windows: %w", err)
				}
			}
		}
	}
	if rows == 0 {
		return 0, fmt.Errorf("windows: no asset has a window of %d defined bars and %d traded ones after it in the range %q", m.W, o.Horizon, o.Range)
	}
	return rows, nil
}

// whole reports whether all features of the W bars up to t are defined.
func (s *Set) whole(t, n int) bool {
	for k := t - s.Manifest.W + 1; k <= t; k++ {
		if !s.Defined[k*s.Manifest.N+n] {
			return false
		}
	}
	return true
}

// outcome returns the targets of a window that ends at t.
func (s *Set) outcome(t, n, horizon int) (volatility, sum float64, ok bool) {
	squares := 0.0
	for k := t; k <= t+horizon; k++ {
		if !s.Tradable(k, n) {
			return 0, 0, false
		}
		if k > t {
			r := s.logReturn(k, n)
			squares += r * r
			sum += r
		}
	}
	return math.Log(squares/float64(horizon)) / 2, sum, squares > 0
}

// logReturn is that of an asset from the close before a bar to the bar's.
func (s *Set) logReturn(t, n int) float64 {
	return math.Log(s.Close[t*s.Manifest.N+n] / s.Close[(t-1)*s.Manifest.N+n])
}
