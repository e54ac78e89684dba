package gymnasium_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/envs/vector"
)

func BenchmarkStep(b *testing.B) {
	f := open(b, config("Walk-v0", nil))
	v := openVector(b, f, 8, vector.Options{Workers: 1})
	reset(b, v, 1)
	actions := script(v, 64)
	b.ReportAllocs()
	k := 0
	for b.Loop() {
		if err := v.Step(actions[k&63]); err != nil {
			b.Fatal(err)
		}
		k++
	}
}
