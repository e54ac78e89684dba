package flight_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// BenchmarkSample is a batch of 256 of a table, asked for ahead, client and server in one process.
func BenchmarkSample(b *testing.B) {
	for _, table := range []string{"transitions", "ranked"} {
		b.Run(table, func(b *testing.B) {
			url, _ := serve(b, "", "127.0.0.1:0")
			var c replay.Served
			c.SetDefaults()
			c.URL, c.Table, c.Prefetch = url, table, 4
			client, err := flight.Dial(c)
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			w := newWorld(b, 4)
			store, err := client.Store().Open(w.layout(), replay.Config{Envs: 4, NSteps: 1, Gamma: 1})
			if err != nil {
				b.Fatal(err)
			}
			w.rounds(b, 960, store)
			x, draws := batchOf(256), rng.New(1).Stream()
			b.ReportAllocs()
			for b.Loop() {
				if err := store.Sample(draws, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
