package dashboard

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestMetricsLine reads lines as the package that writes them reads them.
func TestMetricsLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), metricsFile)
	w, err := metrics.CreateJSONLines(path, func() time.Time { return time.Unix(began, 250e6) })
	if err != nil {
		t.Fatal(err)
	}
	for i, values := range []map[string]float64{
		{},
		{"train/loss": 1, "a": -1e-300, "b": 1.7976931348623157e308, "c": 1e21, "d": 5e-324},
		{"nan": math.NaN(), "inf": math.Inf(1), "low": math.Inf(-1), "zero": math.Copysign(0, -1)},
		{"käse \"im\" \\ regal": 2, "<script>alert(1)</script>": 3, "tab\tand\u2028": 4},
	} {
		if err := w.Scalars(int64(i)<<50, values); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	records, err := metrics.ReadJSONLines(path)
	if err != nil {
		t.Fatal(err)
	}
	f := follower{path: path}
	var l metricsLine
	n := 0
	if _, _, err := f.next(1<<20, make([]byte, longestLine), nil, func(text []byte) {
		if err := l.parse(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		r := records[n]
		got := map[string]float64{}
		for _, p := range l.pairs {
			got[string(p.tag)] = p.value
		}
		same := func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }
		if l.step != r.Step || l.time != began+0.25 || !maps.EqualFunc(got, r.Values, same) {
			t.Errorf("line %d: step %d, time %v, %v, expected %+v", n, l.step, l.time, got, r)
		}
		n++
	}); err != nil || n != 4 {
		t.Errorf("%d lines: %v", n, err)
	}
}

func TestNoMetricsLine(t *testing.T) {
	for _, text := range []string{
		``, `{`, `}`, `{}`, `[]`, `{"step":1`, `{"a":1}`, `{"step":-1}`, `{"step":1,"a"}`, `{"step":1,"a":}`, `{"step":1,"a":x}`, `{"step":1,"a":"x"}`, `{"step":1 "a":2}`, `{"step":1,"a:2}`, `{"step":1,a:2}`, `{"step":1,"a\q":2}`, `{"step":1,"a":[1]}`, `{"step":1,"a":{"b":2}}`,
		`{"step":"NaN"}`, `{"step":"Infinity"}`, `{"step":1e300}`, "\x00\x00\x00", `{"step":1,"\`,
	} {
		var l metricsLine
		if err := l.parse([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, l)
		}
	}
	// The rest of a line after a crash or on a bad disk is none, or a line: no cut panics.
	whole := []byte(`{"step":10,"time":1.5,"tr\"ain/loss":0.25,"x":"NaN","y":null}`)
	read := 0
	for i := range whole {
		for _, c := range []byte{0, '"', '\\', ',', '}', 0xff} {
			text := append(append([]byte{}, whole[:i]...), c)
			var l metricsLine
			if l.parse(text) == nil {
				read++
			}
			copy(text, whole)
			if l.parse(append(text, whole[len(text):]...)) == nil {
				read++
			}
		}
	}
	if read == 0 {
		t.Error("no line was read")
	}
}

func BenchmarkMetricsLine(b *testing.B) {
	b.ReportAllocs()
	text := []byte(`{"step":4000,"time":1795698691.658425,"rollout/ep_len_mean":250,"rollout/ep_rew_mean":0.07335200797017433,"time/fps":2580,"train/entropy":3.703084716796875,"train/explained_variance":-0.20970234896354878,"train/grad_norm":1710.7218276224482}`)
	b.SetBytes(int64(len(text)))
	var l metricsLine
	for b.Loop() {
		if err := l.parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

// TestReadingAllocatesNothing is of lines whose tags are known.
func TestReadingAllocatesNothing(t *testing.T) {
	text := []byte(`{"step":4000,"time":1795698691.658425,"rollout/ep_len_mean":250,"train/loss":-0.20970234896354878}`)
	var l metricsLine
	s := NewSeries(64)
	if n := testing.AllocsPerRun(1000, func() {
		if err := l.parse(text); err != nil {
			t.Fatal(err)
		}
		for _, p := range l.pairs {
			s.Add(l.step, p.value)
		}
	}); n != 0 {
		t.Errorf("%v allocations per line", n)
	}
}

// TestLastLines reads from the end: a line that is being written is left out, and one before it that
// is none of metrics is an error that says where it is.
func TestLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	for text, want := range sorted.All(map[string]string{
		"{\"step\":1}\n{\"step\":2}\n{\"st":          "[2 1] <nil>",
		"{\"step\":1}\n{\"step\";2}\n{\"step\":3}\n": "[3] " + path + ": the line at byte 11: not a line of metrics",
		"": "[] <nil>",
	}) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var steps []int64
		err := lastLines(path, func(l *metricsLine) bool {
			steps = append(steps, l.step)
			return false
		})
		if got := fmt.Sprintf("%v %v", steps, err); got != want {
			t.Errorf("%q: %s, expected %s", text, got, want)
		}
	}
}
