package app

import (
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// A long update is seen to go on; short ones are not shown.
func TestTrainBarShowsLongUpdates(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	b := &trainBar{done: map[uint64]int64{}, updating: map[uint64]time.Time{}, shown: progress.Start(&text, progress.Options{Label: "train"})}
	r := &run.Run{}
	now := time.Unix(0, 0)
	line := func(after time.Duration, update float64) string {
		now = now.Add(after)
		b.update(now, r, train.Progress{Update: update})
		shown := progress.Start(&text, progress.Options{Label: "train"})
		old := b.shown
		old.Finish()
		defer func() { text.Reset(); b.shown = shown }()
		return text.String()
	}
	for range 3 {
		if l := line(400*time.Millisecond, 0.5) + line(400*time.Millisecond, 0.9) + line(400*time.Millisecond, 0); strings.Contains(l, "update") {
			t.Errorf("a short update is shown: %s", l)
		}
	}
	_ = line(time.Second, 0.01)
	if l := line(2*time.Second, 0.223); !strings.Contains(l, "update=22.3%") {
		t.Errorf("a long update is not shown: %s", l)
	}
	if l := line(time.Second, 0); !strings.Contains(l, "update=-") {
		t.Errorf("the update has ended: %s", l)
	}
}
