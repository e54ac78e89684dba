package performance

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// BlockLength is the mean block length that estimates the variance of a mean best under the
// stationary bootstrap (Politis & White 2004, "Automatic Block-Length Selection for the Dependent
// Bootstrap", with the correction of Patton, Politis & White 2009). It is between 1 and min(3√n,
// n/3); white noise gives values near 1. A record that is constant or shorter than 9 returns
// gives 1.
func BlockLength(r []float64) float64 {
	r = Present(r)
	n := len(r)
	if n < 9 || math.IsNaN(spread(r)) {
		return 1
	}
	root := math.Sqrt(float64(n))
	longest := math.Ceil(min(3*root, float64(n)/3))
	run := max(5, int(math.Ceil(math.Sqrt(math.Log10(float64(n)))))) // lags in a row that must be without significance
	lags := min(int(math.Ceil(root))+run, n-1)

	mu := mean(r)
	covariance := make([]float64, lags+1) // divided by n
	for k := range covariance {
		var sum float64
		for t := k; t < n; t++ {
			sum += (r[t] - mu) * (r[t-k] - mu)
		}
		covariance[k] = sum / float64(n)
	}
	limit := 2 * math.Sqrt(math.Log10(float64(n))/float64(n)) * covariance[0]

	// The last lag before a run without significance, and where there is no such run the last
	// significant lag.
	last := 0
	for k, quiet := 1, 0; k <= lags && quiet < run; k++ {
		if quiet++; math.Abs(covariance[k]) > limit {
			last, quiet = k, 0
		}
	}
	width := min(2*max(last, 1), lags)

	spectrum, slope := covariance[0], 0.0
	for k := 1; k <= width; k++ {
		flat := min(1, 2*(1-float64(k)/float64(width))) // trapezoid window
		spectrum += 2 * flat * covariance[k]
		slope += 2 * flat * float64(k) * covariance[k]
	}
	b := math.Cbrt(slope * slope / (spectrum * spectrum) * float64(n)) // (2G²/D)^⅓ n^⅓ with D = 2g(0)²
	if math.IsNaN(b) {
		b = 1
	}
	return min(max(b, 1), longest)
}

// Plan says how records are resampled.
type Plan struct {
	Resamples int
	Block     float64 // mean block length in returns; 0 is the longest BlockLength of the records
	Key       rng.Key
}

// Draws are statistics of resampled records. Row i of each belongs to record i; column b of all
// rows to the same resample.
type Draws struct {
	Block       float64     // mean block length
	Sharpe      [][]float64 // per period, of excess returns; NaN where a resample does not vary
	TotalReturn [][]float64
}

// Resample draws records of equal length with the stationary bootstrap (Politis & Romano 1994):
// blocks of geometric length start anywhere, run around the end, and are the same for all records.
// Rate is the risk-free rate per period. Returns must not be missing. Where a block is as long as
// the record in the mean, most resamples are the record itself, begun elsewhere, and all statistics
// are NaN.
func Resample(records [][]float64, rate float64, plan Plan) (*Draws, error) {
	if len(records) == 0 || len(records[0]) < 2 || plan.Resamples < 1 {
		return nil, errors.New("bootstrap: expected at least one record, two returns and one resample")
	}
	n := len(records[0])
	d := &Draws{Block: plan.Block}
	for i, r := range records {
		if len(r) != n {
			return nil, fmt.Errorf("bootstrap: record %d has %d returns, expected %d as in the first", i, len(r), n)
		}
		for t, x := range r {
			if !(x >= -1) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("bootstrap: return %d of record %d is %g, expected a finite number of at least -1", t, i, x)
			}
		}
		if plan.Block == 0 {
			d.Block = max(d.Block, BlockLength(r))
		}
	}
	if !(d.Block >= 1) {
		return nil, fmt.Errorf("bootstrap: blocks of %g returns, expected at least 1", d.Block)
	}
	d.Sharpe, d.TotalReturn = rows(len(records), plan.Resamples), rows(len(records), plan.Resamples)
	s := newResampler(records, rate)
	stream := plan.Key.Stream()
	for b := range plan.Resamples {
		s.draw(stream, d.Block)
		for i := range records {
			if d.Block >= float64(n) {
				d.Sharpe[i][b], d.TotalReturn[i][b] = math.NaN(), math.NaN()
				continue
			}
			d.Sharpe[i][b], d.TotalReturn[i][b] = s.statistics(i)
		}
	}
	return d, nil
}

func rows(n, width int) [][]float64 {
	flat := make([]float64, n*width)
	all := make([][]float64, n)
	for i := range all {
		all[i] = flat[i*width : (i+1)*width : (i+1)*width]
	}
	return all
}

// block is a stretch of a record. It may run past the end, where the record starts again.
type block struct{ first, length int }

// resampler holds one resample as blocks, and per record what the statistics add up.
type resampler struct {
	n      int
	blocks []block
	series []shifted
	rate   float64
}

// shifted is a record minus its mean, which keeps the sum of squares exact, and its log growth.
type shifted struct {
	mean, scale float64
	x, log      []float64 // [n]
}

func newResampler(records [][]float64, rate float64) *resampler {
	s := &resampler{n: len(records[0]), rate: rate, blocks: make([]block, 0, len(records[0]))}
	for _, r := range records {
		one := shifted{mean: mean(r), x: make([]float64, len(r)), log: make([]float64, len(r))}
		for t, v := range r {
			one.x[t], one.log[t] = v-one.mean, math.Log1p(v)
			one.scale = max(one.scale, math.Abs(v))
		}
		s.series = append(s.series, one)
	}
	return s
}

// draw chooses blocks for n returns.
func (s *resampler) draw(stream *rng.Stream, length float64) {
	s.blocks = s.blocks[:0]
	decay := math.Log1p(-1 / length) // −Inf at a length of 1
	for left := s.n; left > 0; {
		b := block{first: stream.IntN(s.n), length: 1}
		if k := -stream.Exp() / decay; k >= float64(left) {
			b.length = left
		} else {
			b.length = min(1+int(k), left) // geometric with mean length
		}
		s.blocks = append(s.blocks, b)
		left -= b.length
	}
}

// statistics returns the Sharpe ratio and the total return of record i in the current resample.
func (s *resampler) statistics(i int) (sharpe, total float64) {
	one := &s.series[i]
	var sum, squares, logs float64
	for _, b := range s.blocks {
		for first, left := b.first, b.length; left > 0; first = 0 {
			k := min(left, s.n-first)
			growth := one.log[first : first+k]
			for t, x := range one.x[first : first+k] {
				sum += x
				squares += x * x
				logs += growth[t]
			}
			left -= k
		}
	}
	n := float64(s.n)
	m := sum / n
	sd := math.Sqrt(max(squares-n*m*m, 0) / (n - 1))
	sharpe = math.NaN()
	if sd > 1e-12*one.scale {
		sharpe = (one.mean + m - s.rate) / sd
	}
	return sharpe, math.Expm1(logs)
}

// Interval is what resampling says about a number.
type Interval struct {
	Point    Number `json:"point"` // of the record itself
	Low      Number `json:"low"`
	High     Number `json:"high"`
	Positive Number `json:"positive"` // share of resamples in which it is above 0
}

// enough is the share of the draws that must be numbers for an interval: those of a record that
// varies by a single return are all alike where they are defined at all.
const enough = 0.9

// IntervalOf takes the percentile interval of the draws at a level such as 0.95. Draws that are NaN
// are left out, and where they are more than one in ten there is no interval: its bounds are NaN.
func IntervalOf(point float64, draws []float64, level float64) Interval {
	x := slices.Sorted(slices.Values(Present(draws)))
	if float64(len(x)) < enough*float64(len(draws)) {
		x = nil
	}
	iv := Interval{Number(point), Number(sortedQuantile(x, (1-level)/2)), Number(sortedQuantile(x, (1+level)/2)), Number(math.NaN())}
	if len(x) > 0 {
		above := 0
		for _, v := range x {
			if v > 0 {
				above++
			}
		}
		iv.Positive = Number(float64(above) / float64(len(x)))
	}
	return iv
}

// Scale returns the interval of a number that is a positive multiple.
func (v Interval) Scale(by float64) Interval {
	k := Number(by)
	return Interval{v.Point * k, v.Low * k, v.High * k, v.Positive}
}
