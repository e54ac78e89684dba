package onnx

import (
	"os"
	"path/filepath"
	"testing"
)

// The largest of the exported models: what a program pays before it can run anything.
func BenchmarkLargestExport(b *testing.B) {
	data, err := os.ReadFile(filepath.Join("..", "autodiff", "testdata", "torch", "timesblock_fixed_periods", "model.onnx"))
	if err != nil {
		b.Fatal(err)
	}
	m, err := Unmarshal(data)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := Unmarshal(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := Check(m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Prune", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Prune(m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Upgrade", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Upgrade(m, 18); err != nil {
				b.Fatal(err)
			}
		}
	})
}
