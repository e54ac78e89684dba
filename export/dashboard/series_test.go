package dashboard

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSeries compares buckets with the points that they stand for, whatever the limit.
func TestSeries(t *testing.T) {
	cases := 0
	for _, limit := range []int{2, 3, 32, 64, 2048} {
		for _, n := range []int{0, 1, 2, 3, limit, limit + 1, 10*limit + 7, 5000} {
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			s := NewSeries(limit)
			values := make([]float64, n)
			for i := range values {
				values[i] = rng.NormFloat64()
				s.Add(int64(3*i), values[i])
				if i%5 == 0 {
					s.Add(int64(3*i), math.NaN())
				}
			}
			at := 0
			for i, b := range s.Buckets() {
				if b.Step != int64(3*at) {
					t.Fatalf("limit %d, %d points: bucket %d begins at step %d, expected %d", limit, n, i, b.Step, 3*at)
				}
				low, high, sum := math.Inf(1), math.Inf(-1), 0.0
				for _, v := range values[at : at+int(b.N)] {
					low, high, sum = min(low, v), max(high, v), sum+v
				}
				if b.Min != low || b.Max != high || math.Abs(b.Mean()-sum/float64(b.N)) > 1e-12 {
					t.Fatalf("limit %d, %d points: bucket %d is %+v, expected from %v to %v, mean %v", limit, n, i, b, low, high, sum/float64(b.N))
				}
				at += int(b.N)
			}
			if at != n || s.Points() != int64(n) || s.Broken() != int64((n+4)/5) || len(s.Buckets()) > limit || s.Exact() != (n <= limit) {
				t.Errorf("limit %d: %d of %d points in %d buckets, %d counted, %d broken, exact %v", limit, at, n, len(s.Buckets()), s.Points(), s.Broken(), s.Exact())
			}
			if p, ok := s.Last(); n > 0 && n%5 != 1 && (!ok || p != Point{int64(3 * (n - 1)), values[n-1]}) {
				t.Errorf("limit %d, %d points: the last is %v, %v", limit, n, p, ok)
			} else if ok && n%5 == 1 {
				t.Errorf("limit %d, %d points: %v is the last, expected none after what is no number", limit, n, p)
			}
			cases++
		}
	}
	if cases != 40 {
		t.Errorf("%d cases ran", cases)
	}
}

func TestSeriesLimit(t *testing.T) {
	s := NewSeries(1024)
	for i := range 1000 {
		s.Add(int64(i), float64(i))
	}
	s.Limit(100)
	if n := len(s.Buckets()); n > 100 || cap(s.buckets) > 100 {
		t.Errorf("%d buckets of %d are kept", n, cap(s.buckets))
	}
	// A higher limit leaves old points as coarse as they are.
	s.Limit(1024)
	s.Add(1000, 1000)
	points := int64(0)
	for _, b := range s.Buckets() {
		points += b.N
	}
	if first, last := s.Buckets()[0], s.Buckets()[len(s.Buckets())-1]; points != 1001 || first.Min != 0 || last.Max != 1000 {
		t.Errorf("%d points from %v to %v", points, first, last)
	}
}

func BenchmarkSeriesAdd(b *testing.B) {
	b.ReportAllocs()
	s := NewSeries(512)
	for i := range 1024 {
		s.Add(int64(i), 1)
	}
	for i := 0; b.Loop(); i++ {
		s.Add(int64(i), float64(i))
	}
}
