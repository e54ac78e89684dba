package corebench

import (
	"fmt"
	"slices"
	"testing"
)

func TestProductsOfNetworks(t *testing.T) {
	for _, c := range []struct {
		workload string
		want     []string
	}{
		{"critic-2x64-b64", []string{
			"Gemm [64 23] [64 23]", "Gemm [64 64] [64 23]", // fc1: the input needs no gradient
			"Gemm [64 64] [64 64]", "Gemm [64 64] [64 64]", "Gemm [64 64] [64 64]",
			"Gemm [64 64] [1 64]", "Gemm [64 1] [1 64]", "Gemm [64 1] [64 64]",
		}},
		{"timecnn-fixture", []string{
			"Conv [4 5 20] [16 5 3]", "Gemm [80 16] [80 15]",
			"Conv [4 8 20] [16 8 5]", "Conv [4 16 20] [8 16 5]", "Gemm [80 16] [80 40]",
			"Conv [4 8 20] [16 8 3]", "Conv [4 16 20] [8 16 3]", "Gemm [80 16] [80 24]",
			"Gemm [4 16] [3 16]", "Gemm [4 3] [3 16]", "Gemm [4 3] [4 16]",
		}},
	} {
		i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == c.workload })
		if i < 0 {
			t.Fatalf("no workload %q", c.workload)
		}
		m, err := workloads[i].model()
		if err != nil {
			t.Fatal(err)
		}
		list, err := Products(m, map[string]int{batchSymbol: workloads[i].batch})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range list {
			got = append(got, fmt.Sprint(p.Op, " ", p.A, " ", p.B))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %v\nwant %v", c.workload, got, c.want)
		}
	}
}

// TestEncoderProducts counts: six layers with a gradient of the input, one without, and two
// products of activations, of three products each.
func TestEncoderProducts(t *testing.T) {
	m, err := preNormBlock()
	if err != nil {
		t.Fatal(err)
	}
	list, err := Products(m, map[string]int{batchSymbol: 32})
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, p := range list {
		n[p.Op]++
	}
	if n["Gemm"] != 7*3+2 || n["MatMul"] != 2*3 || len(list) != 29 {
		t.Errorf("%d products: %v", len(list), n)
	}
}
