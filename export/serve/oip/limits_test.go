package oip

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestBodiesAreBounded: what a body holds more, or longer, of than a request may have is refused
// while it is read.
func TestBodiesAreBounded(t *testing.T) {
	long := strings.Repeat("x", serve.MaxName)
	input := func(name, shape, datatype, data string) string {
		return fmt.Sprintf(`{"name":%q,"shape":[%s],"datatype":%q,"data":[%s]}`, name, shape, datatype, data)
	}
	one := input("x", "1", "FP32", "1")
	many := func(n int, item func(i int) string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = item(i)
		}
		return strings.Join(list, ",")
	}
	ones := func(n int) string { return many(n, func(int) string { return "1" }) }
	for what, body := range sorted.All(map[string]func(more int) string{
		"the request's id": func(n int) string { return fmt.Sprintf(`{"id":%q,"inputs":[%s]}`, long+long[:n], one) },
		"the sequence's id": func(n int) string {
			return fmt.Sprintf(`{"parameters":{"sequence_id":%q},"inputs":[%s]}`, long+long[:n], one)
		},
		"the name of an input or output": func(n int) string { return `{"inputs":[` + input(long+long[:n], "1", "FP32", "1") + `]}` },
		"inputs": func(n int) string {
			return `{"inputs":[` + many(serve.MaxPorts+n, func(i int) string { return input(fmt.Sprint(i), "0", "FP32", "") }) + `]}`
		},
		"outputs": func(n int) string {
			return `{"inputs":[` + one + `],"outputs":[` + many(serve.MaxPorts+n, func(i int) string { return fmt.Sprintf(`{"name":"%d"}`, i) }) + `]}`
		},
		"extents": func(n int) string { return `{"inputs":[` + input("x", ones(serve.MaxRank+n), "FP32", "1") + `]}` },
		"strings, expected at most 1048576": func(n int) string {
			return `{"inputs":[` + input("x", fmt.Sprint(serve.MaxStrings+n), "BYTES", strings.TrimSuffix(strings.Repeat(`"",`, serve.MaxStrings+n), ",")) + `]}`
		},
	}) {
		var r Request
		if err := r.Decode([]byte(body(0)), -1); err != nil {
			t.Errorf("%s at the bound: %.300v", what, err)
		}
		err := r.Decode([]byte(body(1)), -1)
		if serve.CodeOf(err) != serve.InvalidArgument || !strings.Contains(fmt.Sprint(err), what) || len(err.Error()) > 200 {
			t.Errorf("%s: %.300v", what, err)
		}
	}
	var r Request
	body := `{"inputs":[{"name":"x","shape":[1048577],"datatype":"BYTES","parameters":{"binary_data_size":4194308}}]}`
	if err := r.Decode(append([]byte(body), make([]byte, 4*(serve.MaxStrings+1))...), len(body)); err == nil || !strings.Contains(err.Error(), "1048577 strings") {
		t.Errorf("strings in binary: %.300v", err)
	}
}
