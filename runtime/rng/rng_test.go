package rng

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var update = flag.Bool("update", false, "rewrite golden files")

// The golden file fixes every sequence. It changes only when somebody decides that old runs need
// not be reproduced.
func TestGolden(t *testing.T) {
	var b strings.Builder
	root := New(42)
	fmt.Fprintf(&b, "key 42 %s\n", root)
	fmt.Fprintf(&b, "split env %s\nsplit env 3 %s\nsplit env 3 1 %s\n", root.Split("env"), root.Split("env", 3), root.Split("env", 3, 1))
	first := func(name string, draw func(s *Stream) string) {
		s := root.Split(name).Stream()
		fmt.Fprintf(&b, "%s", name)
		for range 4 {
			fmt.Fprintf(&b, " %s", draw(s))
		}
		// The hash covers rare branches, such as the tail of the normal distribution.
		h := fnv.New64a()
		for range 100_000 {
			h.Write([]byte(draw(s)))
		}
		fmt.Fprintf(&b, " hash %016x\n", h.Sum64())
	}
	bits := func(v float64) string { return fmt.Sprintf("%016x", math.Float64bits(v)) }
	first("uint64", func(s *Stream) string { return fmt.Sprintf("%016x", s.Uint64()) })
	first("float64", func(s *Stream) string { return bits(s.Float64()) })
	first("float32", func(s *Stream) string { return fmt.Sprintf("%08x", math.Float32bits(s.Float32())) })
	first("intn", func(s *Stream) string { return fmt.Sprint(s.IntN(1000)) })
	first("normal", func(s *Stream) string { return bits(s.Normal()) })
	first("exp", func(s *Stream) string { return bits(s.Exp()) })
	first("bernoulli", func(s *Stream) string { return fmt.Sprint(s.Bernoulli(0.25)) })
	first("categorical", func(s *Stream) string { return fmt.Sprint(s.Categorical([]float32{0, 1, 2, -1})) })
	first("perm", func(s *Stream) string {
		p := make([]int, 5)
		s.Perm(p)
		return fmt.Sprint(p)
	})

	const path = "testdata/golden.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("sequences changed; got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestKeysAreDistinctAndStable(t *testing.T) {
	root := New(1)
	seen := map[Key]string{}
	add := func(name string, k Key) {
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[k] = name
	}
	add("root", root)
	add("seed 2", New(2))
	add("empty", root.Split(""))
	add("env", root.Split("env"))
	add("env 0", root.Split("env", 0))
	add("env 1 2", root.Split("env", 1, 2))
	add("env 12", root.Split("env", 12))
	add("env1 2", root.Split("env1", 2))
	add("env -1", root.Split("env", -1))
	add("env env", root.Split("env").Split("env"))
	add("long", root.Split(strings.Repeat("x", 500)))
	for i := range 1000 {
		add(fmt.Sprint("member ", i), root.Split("member", i))
	}
	if len(seen) != 1011 {
		t.Errorf("%d keys, want 1011", len(seen))
	}
	if root.Split("env", 3) != New(1).Split("env", 3) {
		t.Error("equal names give other keys")
	}
	text, _ := root.MarshalText()
	var back Key
	if err := back.UnmarshalText(text); err != nil || back != root {
		t.Errorf("key %s read back as %s: %v", root, back, err)
	}
	for _, bad := range []string{"", "xyz", strings.Repeat("g", 32)} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("key %q was accepted", bad)
		}
	}
}

func TestMoments(t *testing.T) {
	const n = 400_000
	cases := []struct {
		name                     string
		draw                     func(s *Stream) float64
		mean, variance, kurtosis float64
	}{
		{"Float64", (*Stream).Float64, 0.5, 1.0 / 12, 1.8},
		{"Float32", func(s *Stream) float64 { return float64(s.Float32()) }, 0.5, 1.0 / 12, 1.8},
		{"Normal", (*Stream).Normal, 0, 1, 3},
		{"Exp", (*Stream).Exp, 1, 1, 9},
		{"IntN", func(s *Stream) float64 { return float64(s.IntN(11)) }, 5, 10, 1.78},
	}
	for _, c := range cases {
		s := New(3).Split(c.name).Stream()
		values := make([]float64, n)
		mean := 0.0
		for i := range values {
			values[i] = c.draw(s)
			mean += values[i] / n
		}
		var m2, m4 float64
		for _, v := range values {
			d := (v - mean) * (v - mean)
			m2 += d / n
			m4 += d * d / n
		}
		// Five standard errors; the seeds are fixed, so a pass is a pass for ever.
		se := math.Sqrt(c.variance / n)
		if math.Abs(mean-c.mean) > 5*se {
			t.Errorf("%s: mean %v, want %v ± %v", c.name, mean, c.mean, 5*se)
		}
		if tol := 5 * c.variance * math.Sqrt((c.kurtosis-1)/n); math.Abs(m2-c.variance) > tol {
			t.Errorf("%s: variance %v, want %v ± %v", c.name, m2, c.variance, tol)
		}
		if k := m4 / (m2 * m2); math.Abs(k-c.kurtosis) > 0.06*c.kurtosis {
			t.Errorf("%s: kurtosis %v, want %v", c.name, k, c.kurtosis)
		}
	}
}

// Kolmogorov-Smirnov distance of a million normals from the distribution function, and the weight
// of the tail branch.
func TestNormalDistribution(t *testing.T) {
	const n = 1_000_000
	s := New(5).Split("ks").Stream()
	values := make([]float64, n)
	tail := 0
	for i := range values {
		values[i] = s.Normal()
		if math.Abs(values[i]) > zigguratR {
			tail++
		}
	}
	slices.Sort(values)
	distance := 0.0
	for i, v := range values {
		cdf := 0.5 * math.Erfc(-v/math.Sqrt2)
		distance = max(distance, math.Abs(cdf-float64(i)/n), math.Abs(cdf-float64(i+1)/n))
	}
	// 1.95/√n is exceeded with probability 0.001.
	if limit := 1.95 / math.Sqrt(n); distance > limit {
		t.Errorf("distance %v exceeds %v", distance, limit)
	}
	want := n * math.Erfc(zigguratR/math.Sqrt2)
	if math.Abs(float64(tail)-want) > 5*math.Sqrt(want) {
		t.Errorf("%d values in the tail, want about %.0f", tail, want)
	}
}

func chiSquare(counts []int, probabilities []float64) float64 {
	n := 0
	for _, c := range counts {
		n += c
	}
	sum := 0.0
	for i, c := range counts {
		e := probabilities[i] * float64(n)
		sum += (float64(c) - e) * (float64(c) - e) / e
	}
	return sum
}

func TestDiscreteDistributions(t *testing.T) {
	s := New(6).Stream()
	uniform := make([]int, 7)
	for range 140_000 {
		uniform[s.IntN(7)]++
	}
	equal := slices.Repeat([]float64{1.0 / 7}, 7)
	if x := chiSquare(uniform, equal); x > 27.9 { // 6 degrees of freedom, p = 0.0001
		t.Errorf("IntN: χ² = %v, counts %v", x, uniform)
	}

	logits := []float32{0, 1, float32(math.Inf(-1)), 2, -1}
	var p []float64
	sum := 0.0
	for _, l := range logits {
		p = append(p, math.Exp(float64(l)))
		sum += p[len(p)-1]
	}
	counts := make([]int, 5)
	for range 100_000 {
		counts[s.Categorical(logits)]++
	}
	if counts[2] != 0 {
		t.Errorf("a masked class was drawn %d times", counts[2])
	}
	live := []int{counts[0], counts[1], counts[3], counts[4]}
	if x := chiSquare(live, []float64{p[0] / sum, p[1] / sum, p[3] / sum, p[4] / sum}); x > 21.1 { // 3 degrees, p = 0.0001
		t.Errorf("Categorical: χ² = %v, counts %v", x, counts)
	}

	orders := map[string]int{}
	perm := make([]int, 4)
	for range 24_000 {
		s.Perm(perm)
		orders[fmt.Sprint(perm)]++
	}
	all := []int{}
	for _, c := range sorted.All(orders) {
		all = append(all, c)
	}
	if x := chiSquare(all, slices.Repeat([]float64{1.0 / 24}, 24)); len(all) != 24 || x > 58.6 { // 23 degrees, p = 0.0001
		t.Errorf("Perm: %d orders, χ² = %v", len(all), x)
	}
}

func TestCategoricalEdges(t *testing.T) {
	s := New(7).Stream()
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	for _, logits := range [][]float32{nil, {-inf, -inf}, {0, nan}, {nan}, {0, inf}} {
		if i := s.Categorical(logits); i != -1 {
			t.Errorf("%v: drew %d, want -1", logits, i)
		}
	}
	if i := s.Categorical([]float32{-inf, -3e38, -inf}); i != 1 {
		t.Errorf("the only possible class was not drawn: %d", i)
	}
	if i := s.Categorical([]float32{3e38, -3e38, 0}); i != 0 {
		t.Errorf("the certain class was not drawn: %d", i)
	}
	// The stream moves by one draw whatever the logits are.
	a, b := New(8).Stream(), New(8).Stream()
	a.Categorical([]float32{0, -inf, 2})
	b.Categorical([]float32{-inf, -inf, -inf})
	if a.Uint64() != b.Uint64() {
		t.Error("a mask shifted the stream")
	}
}

func TestLogIsAccurate(t *testing.T) {
	s := New(9).Stream()
	worst := 0.0
	check := func(x float64) {
		want := math.Log(x)
		if want == 0 {
			if log(x) != 0 {
				t.Errorf("log(1) = %v", log(x))
			}
			return
		}
		worst = max(worst, math.Abs(log(x)-want)/math.Abs(want))
	}
	for _, x := range []float64{1, 0.5, 2, math.Sqrt2 / 2, math.Sqrt2, 1 - 0x1p-53, 1 + 0x1p-52, 0x1p-53, 1e300, 1e-300, math.E} {
		check(x)
	}
	for range 100_000 {
		check(s.open())
		check(math.Exp(1400*s.Float64() - 700))
	}
	if worst > 5e-16 {
		t.Errorf("relative error %v", worst)
	}
}

func TestExpIsAccurate(t *testing.T) {
	s := New(9).Stream()
	worst := 0.0
	for i := range 100_000 {
		x := -700 * s.Float64()
		if i%2 == 0 {
			x = -s.Float64()
		}
		worst = max(worst, math.Abs(exp(x)-math.Exp(x))/math.Exp(x))
	}
	if worst > 5e-16 || exp(0) != 1 || exp(-701) != 0 || exp(math.Inf(-1)) != 0 {
		t.Errorf("relative error %v, exp(0) = %v", worst, exp(0))
	}
}

func TestStateRoundTripIsExact(t *testing.T) {
	s := New(10).Stream()
	draw := func(s *Stream) [4]float64 {
		return [4]float64{s.Normal(), s.Exp(), float64(s.IntN(1 << 40)), float64(s.Float32())}
	}
	for i := range 100 {
		for range i {
			draw(s)
		}
		raw, err := s.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		text, err := s.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var fromRaw, fromText Stream
		if err := fromRaw.UnmarshalBinary(raw); err != nil {
			t.Fatal(err)
		}
		if err := fromText.UnmarshalText(text); err != nil {
			t.Fatal(err)
		}
		want := draw(s)
		if a, b := draw(&fromRaw), draw(&fromText); a != want || b != want {
			t.Fatalf("restored streams give %v and %v, want %v", a, b, want)
		}
	}
	var x Stream
	for _, bad := range []string{"", "pcg:", "pcg:00", "abc:" + strings.Repeat("0", 32), "pcg:" + strings.Repeat("g", 32)} {
		if err := x.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("text %q was accepted", bad)
		}
		if err := x.UnmarshalBinary([]byte(bad)); err == nil {
			t.Errorf("bytes %q were accepted", bad)
		}
	}
}

func TestFillEqualsDrawingOneByOne(t *testing.T) {
	a, b := New(11).Stream(), New(11).Stream()
	normal := make([]float32, 1000)
	a.FillNormal32(normal, 2, 3)
	for i, v := range normal {
		if want := float32(2 + 3*b.Normal()); v != want {
			t.Fatalf("normal %d: %v, want %v", i, v, want)
		}
	}
	uniform := make([]float32, 1000)
	a.FillUniform32(uniform, -1, 1)
	for i, v := range uniform {
		if want := -1 + 2*b.Float32(); v != want {
			t.Fatalf("uniform %d: %v, want %v", i, v, want)
		}
	}
}

func TestSetRestoresStreamsInPlace(t *testing.T) {
	set := NewSet(New(12))
	shuffle := set.Stream("shuffle")
	shuffle.Normal()
	saved, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	next := shuffle.Uint64()
	late := set.Stream("late")
	lateFirst := late.Uint64()

	other := NewSet(New(99))
	held := other.Stream("shuffle")
	if err := json.Unmarshal(saved, other); err != nil {
		t.Fatal(err)
	}
	if got := held.Uint64(); got != next {
		t.Errorf("a stream handed out before the restore gives %x, want %x", got, next)
	}
	if got := other.Stream("late").Uint64(); got != lateFirst {
		t.Errorf("a stream first used after the restore gives %x, want %x", got, lateFirst)
	}
	if err := json.Unmarshal(saved, set); err != nil {
		t.Fatal(err)
	}
	if got := late.Uint64(); got != lateFirst {
		t.Errorf("a stream the saved set had not used was not reset: %x, want %x", got, lateFirst)
	}
	before, _ := json.Marshal(set)
	for _, bad := range []string{`{}`, `{"key":"00","streams":{}}`, `{"streams":{"a":null}}`, `{"streams":{"a":"pcg:0"}}`} {
		if err := json.Unmarshal([]byte(bad), set); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	if after, _ := json.Marshal(set); string(after) != string(before) {
		t.Errorf("a failed restore changed the set from %s to %s", before, after)
	}
}

func TestNothingAllocates(t *testing.T) {
	root := New(13)
	s := root.Stream()
	dst := make([]float32, 64)
	perm := make([]int, 64)
	allocs := testing.AllocsPerRun(100, func() {
		s.Seed(root.Split("env", 3, 4))
		s.Normal()
		s.Exp()
		s.IntN(9)
		s.Categorical(dst)
		s.FillNormal32(dst, 0, 1)
		s.FillUniform32(dst, 0, 1)
		s.Perm(perm)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

func TestIsASourceForTheStandardLibrary(t *testing.T) {
	a, b := New(14).Stream(), New(14).Stream()
	if got, want := rand.New(a).Uint64(), b.Uint64(); got != want {
		t.Errorf("%x, want %x", got, want)
	}
}

func BenchmarkNormal(b *testing.B) {
	s := New(1).Stream()
	b.ReportAllocs()
	for b.Loop() {
		s.Normal()
	}
}

func BenchmarkSplit(b *testing.B) {
	k := New(1)
	b.ReportAllocs()
	for b.Loop() {
		k = k.Split("env", 3)
	}
}

func BenchmarkCategorical18(b *testing.B) {
	s := New(1).Stream()
	logits := make([]float32, 18)
	b.ReportAllocs()
	for b.Loop() {
		s.Categorical(logits)
	}
}

func BenchmarkFillNormal32(b *testing.B) {
	s := New(1).Stream()
	dst := make([]float32, 1536)
	b.ReportAllocs()
	b.SetBytes(int64(4 * len(dst)))
	for b.Loop() {
		s.FillNormal32(dst, 0, 1)
	}
}
