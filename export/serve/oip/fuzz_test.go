package oip

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// FuzzRequest decodes foreign bodies. What decodes must encode, in every form, to something that
// decodes to the same.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id":"1","inputs":[{"name":"x","shape":[2,1],"datatype":"FP32","data":[[1],[2.5e0]]}],"outputs":[{"name":"y","parameters":{"binary_data":true}}]}`), -1)
	f.Add([]byte(`{"inputs":[{"name":"x","shape":[1],"datatype":"BYTES","data":["a\u00e9"]}],"parameters":{"sequence_id":1,"sequence_end":true,"timeout":10}}`), -1)
	f.Add([]byte(`{"inputs":[{"name":"x","shape":[1],"datatype":"INT16","parameters":{"binary_data_size":2}}]}ab`), 87)
	f.Add([]byte(`{"inputs":[{"name":"x","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":5}}]}`+"\x01\x00\x00\x00a"), 87)
	f.Add([]byte(`{"inputs":[{"data":[],"name":"x","shape":[0,9223372036854775807],"datatype":"FP64"}]}`), -1)
	f.Fuzz(func(t *testing.T, body []byte, jsonLen int) {
		var r Request
		if err := r.Decode(body, jsonLen); err != nil {
			if serve.CodeOf(err) != serve.InvalidArgument {
				t.Fatalf("%v", err)
			}
			return
		}
		resp := serve.Response{ID: r.ID, Model: "m", Outputs: r.Inputs}
		for i, x := range r.Inputs {
			if x.Value.DType() != tensor.String && len(x.Value.Bytes()) > 8*len(body) {
				t.Fatalf("input %d has %d bytes, the body %d", i, len(x.Value.Bytes()), len(body))
			}
		}
		for _, binary := range []bool{false, true} {
			r.binary, r.forms = binary, nil
			text, n, err := r.AppendResponse(nil, &resp)
			if err != nil {
				if binary {
					t.Fatal(err)
				}
				continue // NaN of the binary form, or text that is not UTF-8
			}
			var back Response
			if err := back.Decode(text, n); err != nil {
				t.Fatalf("%v: %q", err, text)
			}
			for i, x := range back.Outputs {
				if !same(x.Value, r.Inputs[i].Value) {
					t.Fatalf("%v became %v", r.Inputs[i].Value, x.Value)
				}
			}
		}
	})
}

// FuzzJSON compares what the scanner takes with what encoding/json takes.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,true,null,"x\n\u00e9"]}`, `[[[]]]`, ` -0.1E+5 `, `"\ud83d\ude00"`, `{"a":1,}`, `01`, `+1`, `1.`, `nul`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := scanner{b: b}
		_, err := s.skip()
		if err == nil {
			err = s.end()
		}
		want := json.Valid(b)
		if err == nil != want && (err == nil || utf8.Valid(b) && depth(b) <= MaxDepth) {
			t.Fatalf("%q: %v, but valid is %v", b, err, want)
		}
		s = scanner{b: b}
		if got, err := s.str(); err == nil && s.end() == nil {
			var v string
			if err := json.Unmarshal(b, &v); err != nil || v != string(got) {
				t.Fatalf("%q: got %q, expected %q, %v", b, got, v, err)
			}
		}
	})
}

// depth is the deepest that brackets outside strings go.
func depth(b []byte) int {
	deepest, at, in := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch {
		case in && b[i] == '\\':
			i++
		case b[i] == '"':
			in = !in
		case !in && (b[i] == '[' || b[i] == '{'):
			at++
			deepest = max(deepest, at)
		case !in && (b[i] == ']' || b[i] == '}'):
			at--
		}
	}
	return deepest
}

// FuzzBinary reads foreign bytes as tensors of every datatype; what is taken must be written back
// as it was.
func FuzzBinary(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00a\x00\x00\x00\x00"), byte(12), 2, 1)
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xff"), byte(10), 2, 1)
	f.Add([]byte("\x01\x00"), byte(0), -1, 1<<62)
	f.Fuzz(func(t *testing.T, b []byte, kind byte, d0, d1 int) {
		d := datatypes[int(kind)%len(datatypes)].dtype
		v, err := FromBytes(d, []int{d0, d1}, b)
		if err == nil {
			if got := AppendBinary(nil, v); string(got) != string(b) || BinarySize(v) != len(b) {
				t.Fatalf("%q became %q", b, got)
			}
		}
		var r Request
		if err := r.DecodeRaw(b, serve.Port{Name: "x", DType: d, Shape: []int{d0, d1}}); err != nil && serve.CodeOf(err) != serve.InvalidArgument {
			t.Fatal(err)
		}
	})
}

// FuzzResponse decodes foreign answers.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(`{"model_name":"m","model_version":"1","outputs":[{"name":"y","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}}]}12345678`), 119)
	f.Add([]byte(`{"error":"no"}`), -1)
	f.Fuzz(func(t *testing.T, body []byte, jsonLen int) {
		var r Response
		if err := r.Decode(body, jsonLen); err != nil && serve.CodeOf(err) != serve.InvalidArgument {
			t.Fatal(err)
		}
	})
}
