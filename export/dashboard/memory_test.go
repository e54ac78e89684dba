package dashboard

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sizeVar asks for the full form of TestMemory: RUNSxPOINTS, such as 1000x1000000.
const sizeVar = "ONNXRL_DASHBOARD_SIZE"

// TestMemory has many runs of many points, whose memory is that of the buckets and not of the
// points. The runs have one file, under as many names.
func TestMemory(t *testing.T) {
	runs, points, buckets := 60, 20_000, 60*10*64
	if text := os.Getenv(sizeVar); text != "" {
		a, b, ok := strings.Cut(text, "x")
		var err, err2 error
		runs, err = strconv.Atoi(a)
		points, err2 = strconv.Atoi(b)
		if !ok || err != nil || err2 != nil {
			t.Fatalf("%s is %q, expected RUNSxPOINTS", sizeVar, text)
		}
		buckets = defaultBuckets
	}
	const tags = 10
	root := t.TempDir()
	file := filepath.Join(root, "0000", metricsFile)
	var line strings.Builder
	write(t, file, "")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range points / tags {
		fmt.Fprintf(&line, `{"step":%d,"time":%d`, i, began+i)
		for tag := range tags {
			fmt.Fprintf(&line, `,"train/tag_%d":%d.25`, tag, (i*7919)%1000*(tag+1))
		}
		line.WriteString("}\n")
		if line.Len() > 1<<20 || i == points/tags-1 {
			if _, err := f.WriteString(line.String()); err != nil {
				t.Fatal(err)
			}
			line.Reset()
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < runs; i++ {
		dir := filepath.Join(root, fmt.Sprintf("%04d", i))
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(file, filepath.Join(dir, metricsFile)); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	b := watching(t, Options{Paths: []string{root}, Buckets: buckets})
	took := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	o := b.Overview(0)
	total := int64(0)
	for _, r := range o.Runs {
		total += r.Points
		if r.Points != int64(points) || r.Steps != int64(points/tags-1) || r.Bad != 0 {
			t.Fatalf("%+v", r)
		}
	}
	if len(o.Runs) != runs {
		t.Fatalf("%d runs", len(o.Runs))
	}
	list, err := b.Series([]string{o.Runs[runs-1].ID}, []string{"train/tag_9"})
	if err != nil || len(list) != 1 || list[0].Points != int64(points/tags) {
		t.Fatalf("%+v %v", list, err)
	}
	low, high := list[0].Min[0], list[0].Max[0]
	for i := range list[0].Min {
		low, high = min(low, list[0].Min[i]), max(high, list[0].Max[i])
	}
	if low != 0.25 || high != 9990.25 {
		t.Errorf("peaks are lost: from %v to %v", low, high)
	}
	// A bucket has 40 bytes, a run some kilobytes besides.
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	most := int64(buckets)*40 + int64(runs)*16<<10 + 8<<20
	if kept > most {
		t.Errorf("%d points keep %d bytes, expected at most %d", total, kept, most)
	}
	t.Logf("%d runs, %d points: %d buckets each, %.1f MB kept, read in %v", runs, total, o.Buckets, float64(kept)/1e6, took)
	runtime.KeepAlive(b)
}
