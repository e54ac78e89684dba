package program

import (
	"testing"

	"github.com/onnxrl/onnxrl/models"
)

// TestSplit: a batch is split into one shard per thread, or into the most that divide it, and small
// work not at all.
func TestSplit(t *testing.T) {
	net, _, err := models.FromModel(mlp(t, false), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	row := FLOPs(net.Model, map[string]int{"batch": 1})
	if row == 0 {
		t.Fatal("the network has no arithmetic")
	}
	for _, x := range []struct {
		threads, batch, shards, dividing int
		rows                             float64
	}{
		{0, 12, 1, 1, 0}, {1, 12, 1, 1, 0}, {2, 1, 1, 1, 0}, {3, 12, 3, 3, 36}, {5, 12, 5, 4, 36}, {20, 12, 12, 12, 0}, {5, 7, 5, 1, 0}, {3, 12, 1, 1, 37},
	} {
		s := Split{Threads: x.threads, FLOPs: x.rows * row}
		if n := s.Shards(net, "batch", x.batch, 3); n != x.shards {
			t.Errorf("%d rows on %d threads: %d shards, expected %d", x.batch, x.threads, n, x.shards)
		}
		if n := s.Dividing(x.batch).Shards(net, "batch", x.batch, 3); n != x.dividing {
			t.Errorf("%d rows on %d threads that divide them: %d shards, expected %d", x.batch, x.threads, n, x.dividing)
		}
	}
}
