package league

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestTruncatedCounts: scores that count several times are the same as a longer list.
func TestTruncatedCounts(t *testing.T) {
	s, n := rng.New(4).Stream(), 0
	for range 3000 {
		var list []scored
		var times []int
		var long []float64
		for config := range 1 + s.IntN(6) {
			times = append(times, s.IntN(4))
			for range s.IntN(4) {
				x := s.Normal()
				if s.IntN(4) == 0 {
					x = 10 * x
				}
				list = append(list, scored{x, config})
				for range times[config] {
					long = append(long, x)
				}
			}
		}
		ascending(list)
		// As numpy.quantile says.
		want := math.NaN()
		if slices.Sort(long); len(long) > 0 {
			limit := quantile(long, 0.75) + 2*(quantile(long, 0.75)-quantile(long, 0.25))
			sum, count := 0.0, 0.0
			for _, x := range long {
				if x <= limit {
					sum, count = sum+x, count+1
				}
			}
			want = sum / count
			n++
		}
		if got := truncated(list, times); math.Abs(got-want) > 1e-12 || math.IsNaN(got) != math.IsNaN(want) {
			t.Fatalf("%v %v: %v, expected %v", list, times, got, want)
		}
	}
	if n < 2000 {
		t.Errorf("%d lists had a score", n)
	}
}

// drawn are the rows of two competitors in so many configurations, which each is in three times.
// Scores have what a configuration and a level do to everybody, and something of their own; b is
// less by so much.
func drawn(s *rng.Stream, configs int, less float64) (rows []Row) {
	for c := range configs {
		levels, shared := 2+c%3, s.Normal()
		for r := range 3 {
			at := (c + r) % levels
			rows = append(rows, Row{Config: c, Rotation: r, Levels: levels, Level: at, Name: "a", Score: 1 + shared + 0.4*float64(levels) + 0.2*s.Normal()})
			rows = append(rows, Row{Config: c, Rotation: r, Levels: levels, Level: (at + 1) % levels, Name: "b", Score: 1 - less + shared + 0.4*float64(levels) + 0.2*s.Normal()})
		}
	}
	return rows
}

// TestIntervals: 95 % of the intervals have the true difference, which is found though
// configurations differ by more.
func TestIntervals(t *testing.T) {
	longtest.Slow(t)
	const runs, less = 200, 0.1
	s := rng.New(11).Stream()
	holds, found, sum := 0, 0, 0.0
	for i := range runs {
		list := Differences(drawn(s, 48, less), []string{"a", "b"}, uint64(i))
		d := list[0]
		if d.Group != Everything || d.Name != "a" || d.Against != "b" || d.Configs != 48 {
			t.Fatalf("%+v", d)
		}
		if d.Low == nil || d.High == nil {
			t.Fatalf("no interval: %+v", d)
		}
		if *d.Low <= less && less <= *d.High {
			holds++
		}
		if *d.Low > 0 {
			found++
		}
		sum += d.Difference / runs
	}
	if share := float64(holds) / runs; share < 0.9 || share > 0.99 || math.Abs(sum-less) > 0.01 || found < runs*9/10 {
		t.Errorf("%.3f of the intervals have %v, of which the mean is %.4f; %d of %d are above 0", share, less, sum, found, runs)
	}
}

// TestDifferences: groups, order, and what there is too little of.
func TestDifferences(t *testing.T) {
	rows := drawn(rng.New(2).Stream(), 60, 0.3)
	list := Differences(rows, []string{"b", "a", "nobody"}, 5)
	if len(list) != 1+3+2+3+4 {
		t.Fatalf("%d differences", len(list))
	}
	for i, d := range list {
		if i > 0 && list[i-1].order(d.Group) >= 0 {
			t.Errorf("%v comes after %v", d.Group, list[i-1].Group)
		}
		if d.Low == nil {
			t.Fatalf("no interval: %+v", d)
		}
		if d.Name != "b" || d.Difference > 0 && *d.Ahead < 0.5 || *d.Low > d.Difference || *d.High < d.Difference || *d.Error <= 0 {
			t.Errorf("%+v", d)
		}
		if want := map[int]int{0: 60, 2: 20, 3: 20, 4: 20}[d.Levels]; d.Level < 0 && d.Configs != want {
			t.Errorf("%+v: expected %d configurations", d, want)
		}
	}
	if d := list[0]; *d.Needed < 1 || *d.Needed > 60 || *d.High >= 0 {
		t.Errorf("%+v", d)
	}
	if !reflect.DeepEqual(list, Differences(rows, []string{"b", "a", "nobody"}, 5)) || reflect.DeepEqual(list, Differences(rows, []string{"b", "a", "nobody"}, 6)) {
		t.Error("the seed does not decide")
	}
	for configs, intervals := range sorted.All(map[int]int{1: 0, 2: 0, 3: 0, 5: 7, 6: 10, 7: 10}) {
		some := 0
		for _, d := range Differences(rows[:6*configs], []string{"a", "b"}, 1) {
			interval := d.Interval("none")
			low, _, ahead, needed := d.Cells("none")
			text, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			if d.Low != nil {
				some++
				continue
			}
			if d.High != nil || d.Error != nil || d.Ahead != nil || d.Needed != nil || interval+low+ahead+needed != "nonenonenonenone" || bytes.Count(text, []byte("null")) != 5 {
				t.Errorf("%d configurations have no interval, and %+v %s", configs, d, text)
			}
			if back := d.Reversed(); back.Difference != -d.Difference || back.Low != nil || back.Ahead != nil {
				t.Errorf("%+v is reversed %+v", d, back)
			}
		}
		// With three each length of chains has one, and its scores do not vary in resamples.
		if some != intervals {
			t.Errorf("%d configurations: %d intervals, expected %d", configs, some, intervals)
		}
	}
	if none := Differences(nil, []string{"a", "b"}, 1); none == nil || len(none) != 0 {
		t.Errorf("%v", none)
	}
}

func BenchmarkDifferences(b *testing.B) {
	rows := drawn(rng.New(2).Stream(), 300, 0.3)
	for b.Loop() {
		Differences(rows, []string{"a", "b"}, 5)
	}
}
