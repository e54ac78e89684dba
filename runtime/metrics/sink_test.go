package metrics

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var update = flag.Bool("update", false, "rewrite golden files")

// clock starts at a fixed time and advances by a quarter of a second per reading.
func clock() func() time.Time {
	t := time.UnixMilli(1_700_000_000_000).UTC()
	return func() time.Time {
		t = t.Add(250 * time.Millisecond)
		return t
	}
}

func TestSinksConform(t *testing.T) {
	dir := t.TempDir()
	sinks := map[string]func() (Sink, error){
		"json lines":  func() (Sink, error) { return CreateJSONLines(filepath.Join(dir, "a.jsonl"), time.Now) },
		"tensorboard": func() (Sink, error) { return CreateTensorBoard(filepath.Join(dir, "tb"), time.Now) },
		"tee": func() (Sink, error) {
			j, err := CreateJSONLines(filepath.Join(dir, "b.jsonl"), time.Now)
			return Tee(j, j), err
		},
	}
	conforming := 0
	for name, open := range sorted.All(sinks) {
		s, err := open()
		if err != nil {
			t.Fatal(err)
		}
		for _, tag := range []string{"", "step", "time", "\xff"} {
			if err := s.Scalars(1, map[string]float64{tag: 1}); err == nil {
				t.Errorf("%s: tag %q was accepted", name, tag)
			}
		}
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				if err := s.Scalars(int64(i), map[string]float64{"a/b": float64(i), "c": math.NaN()}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		group.Wait()
		if err := s.Scalars(9, nil); err != nil {
			t.Errorf("%s: no values: %v", name, err)
		}
		err = s.Close()
		if name != "tee" && err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
		if err := s.Scalars(10, map[string]float64{"a": 1}); err == nil {
			t.Errorf("%s: a closed sink accepted values", name)
		}
		conforming++
	}
	if conforming != 3 {
		t.Errorf("%d sinks checked", conforming)
	}
	if records, err := ReadJSONLines(filepath.Join(dir, "b.jsonl")); err != nil || len(records) != 18 {
		t.Errorf("tee wrote %d records, want 18: %v", len(records), err)
	}
}

func TestJSONLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	j, err := CreateJSONLines(path, clock())
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{"train/loss": 0.125, "rollout/ep_rew_mean": 21.5, "a": math.NaN(), "b": math.Inf(1), "c": math.Inf(-1), "é\"": 1e-300}
	if err := j.Scalars(2048, values); err != nil {
		t.Fatal(err)
	}
	if err := j.Scalars(4096, map[string]float64{"x": 1e21}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"step":2048,"time":1700000000.25,"a":"NaN","b":"Infinity","c":"-Infinity","rollout/ep_rew_mean":21.5,"train/loss":0.125,"é\"":1e-300}
{"step":4096,"time":1700000000.5,"x":1e+21}
`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		if !json.Valid(line) {
			t.Errorf("not JSON: %s", line)
		}
	}
	records, err := ReadJSONLines(path)
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	r := records[0]
	if r.Step != 2048 || !r.Time.Equal(time.UnixMilli(1_700_000_000_250)) || len(r.Values) != 6 || !math.IsNaN(r.Values["a"]) ||
		!math.IsInf(r.Values["b"], 1) || !math.IsInf(r.Values["c"], -1) || r.Values["é\""] != 1e-300 {
		t.Errorf("record %+v", r)
	}
	if _, err := CreateJSONLines(path, clock()); !errors.Is(err, os.ErrExist) {
		t.Errorf("an existing file was overwritten: %v", err)
	}
}

func TestResumeJSONLines(t *testing.T) {
	const lines = `{"step":1,"time":1,"a":1}
{"step":2,"time":2,"a":2}
{"step":3,"time":3,"a":3}
`
	cases := []struct {
		name, before string
		step         int64
		want         []int64
	}{
		{"nothing to drop", lines, 3, []int64{1, 2, 3, 9}},
		{"later steps", lines, 2, []int64{1, 2, 9}},
		{"all", lines, 0, []int64{9}},
		{"cut line", lines + `{"step":3,"ti`, 5, []int64{1, 2, 3, 9}},
		{"cut line and later steps", lines + `{`, 1, []int64{1, 9}},
		{"steps out of order", lines + `{"step":2,"time":4,"eval":1}` + "\n", 2, []int64{1, 2, 2, 9}},
		{"empty", "", 5, []int64{9}},
	}
	for _, c := range cases {
		path := filepath.Join(t.TempDir(), "m.jsonl")
		if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := ResumeJSONLines(path, c.step, clock())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := errors.Join(j.Scalars(9, map[string]float64{"a": 9}), j.Close()); err != nil {
			t.Fatal(err)
		}
		records, err := ReadJSONLines(path)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got []int64
		for _, r := range records {
			got = append(got, r.Step)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: steps %v, want %v", c.name, got, c.want)
		}
	}
	missing := filepath.Join(t.TempDir(), "new.jsonl")
	j, err := ResumeJSONLines(missing, 5, clock())
	if err != nil {
		t.Fatalf("a missing file: %v", err)
	}
	j.Close()
	for _, bad := range []string{"x\n", "{}\n", `{"step":1}` + "\n", `{"step":1.5,"time":1}` + "\n", `{"step":1,"time":1,"a":"x"}` + "\n", `{"step":1,"time":1,"a":null}` + "\n"} {
		path := filepath.Join(t.TempDir(), "bad.jsonl")
		if err := os.WriteFile(path, []byte(lines+bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ResumeJSONLines(path, 1, clock()); err == nil || !strings.Contains(err.Error(), path+":4: ") {
			t.Errorf("%q: error %v", bad, err)
		}
		if left, _ := os.ReadFile(path); string(left) != lines+bad {
			t.Errorf("%q: the file was changed", bad)
		}
	}
}

func TestMaskedCRC(t *testing.T) {
	// CRC-32C of the digits is published in RFC 3720 and elsewhere.
	if crc := crc32.Checksum([]byte("123456789"), castagnoli); crc != 0xe3069283 {
		t.Fatalf("CRC-32C %08x", crc)
	}
	crc := uint32(0xe3069283)
	if got, want := maskedCRC([]byte("123456789")), (crc>>15|crc<<17)+0xa282ead8; got != want {
		t.Errorf("masked %08x, want %08x", got, want)
	}
}

// writeEvents fills a directory as a run and its resumption do.
func writeEvents(t *testing.T, dir string) {
	t.Helper()
	now := clock()
	tb, err := CreateTensorBoard(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]float32, 1000)
	for i := range data {
		data[i] = float32(i%100) / 100
	}
	data[7] = float32(math.NaN())
	var errs []error
	errs = append(errs, tb.Text(0, "config", "```yaml\nlr: 0.001\n```"))
	for step := int64(100); step <= 500; step += 100 {
		errs = append(errs, tb.Scalars(step, map[string]float64{"train/loss": 1 / float64(step), "rollout/ep_rew_mean": float64(step) / 10}))
	}
	errs = append(errs, tb.Histogram(200, "weights/layer0", data), tb.Histogram(200, "weights/constant", []float32{2, 2}),
		tb.Histogram(200, "weights/none", []float32{float32(math.Inf(1))}), tb.Close())
	resumed, err := ResumeTensorBoard(dir, 300, now)
	if err != nil {
		t.Fatal(err)
	}
	errs = append(errs, resumed.Scalars(400, map[string]float64{"train/loss": 4}), resumed.Scalars(500, map[string]float64{"train/loss": math.NaN()}), resumed.Close())
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// The golden bytes were read by TensorBoard 2.21 with cmd/peers/tensorboard_read.py, which found
// the values of writeEvents.
func TestTensorBoardGolden(t *testing.T) {
	dir := t.TempDir()
	writeEvents(t, dir)
	files, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.1700000*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("files %v, %v", files, err)
	}
	compared := 0
	for i, file := range files {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checkFraming(t, got)
		golden := fmt.Sprintf("testdata/events.%d.golden", i)
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from %s", file, golden)
		}
		compared++
	}
	if compared != 2 {
		t.Errorf("%d files compared", compared)
	}
}

func checkFraming(t *testing.T, b []byte) {
	t.Helper()
	records := 0
	for len(b) > 0 {
		n := binary.LittleEndian.Uint64(b)
		if binary.LittleEndian.Uint32(b[8:]) != maskedCRC(b[:8]) || binary.LittleEndian.Uint32(b[12+n:]) != maskedCRC(b[12:12+n]) {
			t.Fatalf("record %d has a wrong checksum", records)
		}
		b = b[16+n:]
		records++
	}
	if records < 4 {
		t.Errorf("%d records", records)
	}
}

func TestEventFilesOfOneSecondDiffer(t *testing.T) {
	dir := t.TempDir()
	fixed := func() time.Time { return time.Unix(5, 0) }
	for range 3 {
		tb, err := CreateTensorBoard(dir, fixed)
		if err != nil {
			t.Fatal(err)
		}
		tb.Close()
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "events.out.tfevents.0000000005.*")); len(files) != 3 {
		t.Errorf("files %v", files)
	}
}

func TestHistogramCountsEverything(t *testing.T) {
	for _, data := range [][]float32{{1}, {3, 3, 3}, {-1, 0, 1, 2, 1e30}, {0.1, 0.2, 0.30000001, float32(math.NaN())}, {-math.MaxFloat32, math.MaxFloat32}} {
		h := newHistogram(data)
		total := 0.0
		for i, c := range h.counts {
			total += c
			if i > 0 && !(h.limits[i] > h.limits[i-1]) {
				t.Errorf("%v: limits %v", data, h.limits)
			}
		}
		if int(total) != h.count || h.limits[histogramBuckets-1] < h.high {
			t.Errorf("%v: %v values in buckets, %d counted, last limit %v", data, total, h.count, h.limits[histogramBuckets-1])
		}
	}
}
