package dashboard

import "math"

// Bucket stands for neighbouring points of a series.
type Bucket struct {
	// Step is the env step of the first of them, N how many there are.
	Step int64
	N    int64
	// Min, Max and Sum are of their values.
	Min, Max, Sum float64
}

// Mean is the mean of the values.
func (b Bucket) Mean() float64 { return b.Sum / float64(b.N) }

// Point is one value at an env step.
type Point struct {
	Step  int64   `json:"step"`
	Value float64 `json:"value"`
}

// Series holds points in the order of their arrival in a bounded number of buckets. Every bucket
// but the last has as many points as every other; see the package comment.
type Series struct {
	limit   int
	each    int64 // points of a full bucket
	points  int64
	broken  int64 // values that are no finite numbers
	last    Point
	known   bool // the newest value is last
	buckets []Bucket
}

// NewSeries returns a series of at most limit buckets, which is two at least.
func NewSeries(limit int) *Series { return &Series{limit: max(limit, 2), each: 1} }

// Add appends a point. Values that are not finite are counted and left out.
func (s *Series) Add(step int64, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		s.broken++
		s.known = false
		return
	}
	s.points++
	s.last, s.known = Point{step, value}, true
	if n := len(s.buckets); n > 0 && s.buckets[n-1].N < s.each {
		s.buckets[n-1].add(Bucket{N: 1, Min: value, Max: value, Sum: value})
		return
	}
	if len(s.buckets) == s.limit {
		s.halve()
		s.points--
		s.Add(step, value)
		return
	}
	s.buckets = append(s.buckets, Bucket{Step: step, N: 1, Min: value, Max: value, Sum: value})
}

// add merges a later bucket into b.
func (b *Bucket) add(next Bucket) {
	b.N += next.N
	b.Min, b.Max = min(b.Min, next.Min), max(b.Max, next.Max)
	b.Sum += next.Sum
}

// halve merges pairs of buckets.
func (s *Series) halve() {
	half := s.buckets[:0]
	for i := 0; i < len(s.buckets); i += 2 {
		b := s.buckets[i]
		if i+1 < len(s.buckets) {
			b.add(s.buckets[i+1])
		}
		half = append(half, b)
	}
	s.buckets, s.each = half, s.each*2
}

// Limit changes the greatest number of buckets. Memory of buckets beyond it is freed; more buckets
// than before make later points finer, not earlier ones.
func (s *Series) Limit(limit int) {
	s.limit = max(limit, 2)
	if len(s.buckets) <= s.limit && cap(s.buckets) <= 2*s.limit {
		return
	}
	for len(s.buckets) > s.limit {
		s.halve()
	}
	s.buckets = append(make([]Bucket, 0, s.limit), s.buckets...)
}

// Buckets are the buckets in order. They change with the series; the caller must not.
func (s *Series) Buckets() []Bucket { return s.buckets }

// Points is how many finite values were added, Broken how many others.
func (s *Series) Points() int64 { return s.points }
func (s *Series) Broken() int64 { return s.broken }

// Exact reports whether every bucket is one point.
func (s *Series) Exact() bool { return s.each == 1 }

// Last is the newest point; ok is false without any, and where the newest value was not finite.
func (s *Series) Last() (p Point, ok bool) { return s.last, s.known }
