package oip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// sample is a tensor of any datatype with extremes and random elements; all of them have a JSON
// form.
func sample(r *rand.Rand, d tensor.DType, shape ...int) *tensor.Tensor {
	t := tensor.New(d, shape...)
	for i := range t.Len() {
		bits := r.Uint64()
		switch d {
		case tensor.Bool:
			t.Bools()[i] = bits&1 != 0
		case tensor.String:
			t.Strings()[i] = []string{"", "a", "quote\" back\\ line\n", "日本 😀", "\u2028\x01"}[bits%5]
		case tensor.Float32:
			t.Float32s()[i] = math.Float32frombits(uint32(bits) &^ (1 << 23)) // exponent below 255
		case tensor.Float64:
			t.Float64s()[i] = math.Float64frombits(bits &^ (1 << 52))
		case tensor.Float16:
			tensor.Data[uint16](t)[i] = uint16(bits) &^ (1 << 10)
		case tensor.BFloat16:
			tensor.Data[uint16](t)[i] = uint16(bits) &^ (1 << 7)
		default:
			b := t.Bytes()[i*d.Size() : (i+1)*d.Size()]
			for j := range b {
				b[j] = byte(bits >> (8 * j))
				if i == 0 {
					b[j] = 0xff
				}
				if i == 1 {
					b[j] = byte(0x80 * ((j + 1) / d.Size()))
				}
			}
		}
	}
	return t
}

func same(a, b *tensor.Tensor) bool {
	if a.String() != b.String() {
		return false
	}
	if a.DType() == tensor.String {
		return fmt.Sprint(a.Strings()) == fmt.Sprint(b.Strings())
	}
	return bytes.Equal(a.Bytes(), b.Bytes())
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	n := 0
	for _, d := range datatypes {
		for _, shape := range [][]int{{}, {0}, {1}, {7}, {2, 3}, {3, 0, 2}, {4, 5, 6}} {
			for _, o := range []Options{{}, {Binary: true}, {BinaryOutput: true}, {Binary: true, BinaryOutput: true}} {
				for shift := range 3 { // a body may begin anywhere in a buffer
					in := serve.Request{ID: "id \"1\"", Inputs: []serve.Tensor{{Name: "a", Value: sample(r, d.dtype, shape...)}, {Name: "ü", Value: sample(r, d.dtype, shape...)}}, Outputs: []string{"y", "z"}, Sequence: serve.Sequence{ID: "42", Start: true}}
					body, jsonLen, err := AppendRequest(make([]byte, shift), &in, o)
					if err != nil {
						t.Fatal(err)
					}
					body = body[shift:]
					if head := body[:max(jsonLen, 0)]; o.Binary && !json.Valid(head) || !o.Binary && !json.Valid(body) {
						t.Fatalf("not JSON: %s", body)
					}
					var req Request
					if err := req.Decode(body, jsonLen); err != nil {
						t.Fatalf("%s %v %+v: %v\n%s", d.name, shape, o, err, body)
					}
					if req.ID != in.ID || req.Sequence != in.Sequence || fmt.Sprint(req.Outputs) != fmt.Sprint(in.Outputs) || len(req.Inputs) != 2 {
						t.Fatalf("got %+v", req)
					}
					resp := serve.Response{ID: req.ID, Model: "m", Version: "3"}
					for i, x := range req.Inputs {
						if x.Name != in.Inputs[i].Name || !same(x.Value, in.Inputs[i].Value) {
							t.Fatalf("%s %v %+v: input %d is %v", d.name, shape, o, i, x)
						}
						resp.Outputs = append(resp.Outputs, serve.Tensor{Name: req.Outputs[i], Value: x.Value})
					}
					answer, jsonLen, err := req.AppendResponse(make([]byte, shift), &resp)
					if err != nil || (jsonLen >= 0) != o.BinaryOutput {
						t.Fatal(jsonLen, err)
					}
					var back Response
					if err := back.Decode(answer[shift:], jsonLen); err != nil {
						t.Fatalf("%v\n%s", err, answer)
					}
					if back.ID != resp.ID || back.Model != "m" || back.Version != "3" || len(back.Outputs) != 2 {
						t.Fatalf("got %+v", back)
					}
					for i, x := range back.Outputs {
						if x.Name != resp.Outputs[i].Name || !same(x.Value, resp.Outputs[i].Value) {
							t.Fatalf("%s %v %+v: output %d is %v", d.name, shape, o, i, x)
						}
					}
					n++
				}
			}
		}
	}
	if n != 14*7*4*3 {
		t.Errorf("%d round trips", n)
	}
}

func TestForms(t *testing.T) {
	body := `{"parameters":{"binary_data_output":true,"timeout":1500,"sequence_id":7,"sequence_start":true,"other":{"a":[null]}},"extra":[1,{"x":"y"}],
		"outputs":[{"name":"a","parameters":{"binary_data":false}},{"name":"b"}],
		"inputs":[{"data":[[1,2.5e0],[-3e-1,4]],"shape":[2,2],"datatype":"FP32","name":"x"}]}`
	var r Request
	if err := r.Decode([]byte(body), -1); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(r.Inputs[0].Value.Float32s()) != "[1 2.5 -0.3 4]" || r.Timeout != 1500*time.Microsecond || r.Sequence != (serve.Sequence{ID: "7", Start: true}) {
		t.Fatalf("got %+v", r)
	}
	got, jsonLen, err := r.AppendResponse(nil, &serve.Response{Model: "m", Outputs: []serve.Tensor{{Name: "a", Value: tensor.Of([]int32{1, -2}, 2)}, {Name: "b", Value: tensor.Of([]uint8{7}, 1, 1)}}})
	want := `{"model_name":"m","outputs":[{"name":"a","datatype":"INT32","shape":[2],"data":[1,-2]},{"name":"b","datatype":"UINT8","shape":[1,1],"parameters":{"binary_data_size":1}}]}` + "\x07"
	if err != nil || string(got) != want || jsonLen != len(want)-1 {
		t.Fatalf("%d %v\n%s\n%s", jsonLen, err, got, want)
	}
	// The memory of one request serves the next.
	if err := r.Decode([]byte(`{"inputs":[{"name":"x","shape":[],"datatype":"INT64","data":5}]}`), -1); err != nil || r.Timeout != 0 || r.Sequence.ID != "" || r.form(0) || len(r.Outputs) != 0 || r.Inputs[0].Value.Int64s()[0] != 5 {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestRaw(t *testing.T) {
	var r Request
	port := serve.Port{Name: "obs", DType: tensor.Float32, Shape: []int{-1, 3}}
	if err := r.DecodeRaw(make([]byte, 24), port); err != nil || r.Inputs[0].Value.String() != tensor.New(tensor.Float32, 2, 3).String() || !r.form(0) {
		t.Fatal(r, err)
	}
	for _, c := range []struct {
		port serve.Port
		size int
		want string
	}{
		{port, 25, `input "obs": 25 bytes are not a whole number of FP32 elements of shape [-1 3]`},
		{serve.Port{Name: "k", DType: tensor.Int64, Shape: []int{2}}, 8, `input "k": INT64 of shape [2] takes 16 bytes, got 8`},
		{serve.Port{Name: "s", DType: tensor.String, Shape: []int{-1}}, 3, `input "s": BYTES of shape [1] has 1 elements of at least 4 bytes, got 3 bytes`},
	} {
		if err := r.DecodeRaw(make([]byte, c.size), c.port); err == nil || err.Error() != c.want {
			t.Errorf("got %v, expected %s", err, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	in := func(s string) string { return `{"inputs":[` + s + `]}` }
	x := func(s string) string { return in(`{"name":"x","datatype":"FP32","shape":[2],` + s + `}`) }
	typed := func(d, data string) string {
		return in(`{"name":"x","datatype":"` + d + `","shape":[1],"data":[` + data + `]}`)
	}
	const size = `"parameters":{"binary_data_size":8}`
	cases := []struct {
		body string
		rest string
		want string
	}{
		{``, "", "request: JSON at byte 0: expected an object, got the end"},
		{`[]`, "", "expected an object, got '['"},
		{`{}`, "", "inputs are missing"},
		{`{"inputs":[]} x`, "", "JSON at byte 14: expected the end, got 'x'"},
		{`{"inputs":[],}`, "", "expected a string, got '}'"},
		{`{"inputs":[],"inputs":[]}`, "", `"inputs" is there twice`},
		{`{"inputs" []}`, "", `expected ':', got '['`},
		{`{"inputs":[{}]}`, "", "inputs[0]: a name is missing"},
		{`{"inputs":[{"name":"x"}]}`, "", `input "x": the datatype is missing`},
		{in(`{"name":"x","datatype":"FP32"}`), "", `input "x": the shape is missing`},
		{in(`{"name":"x","name":"y"}`), "", `input "y": "name" is there twice`},
		{in(`{"name":"x","datatype":"FP8"}`), "", `input "x": unknown datatype "FP8"`},
		{in(`{"name":"x","datatype":"FP32","shape":[-1],"data":[]}`), "", `input "x": extent 0 of the shape is -1, expected an integer of at least 0`},
		{in(`{"name":"x","datatype":"FP32","shape":[1.5],"data":[]}`), "", `extent 0 of the shape is 1.5`},
		{in(`{"name":"x","datatype":"FP32","shape":[99999999999999999999],"data":[]}`), "", `extent 0 of the shape is 99999999999999999999`},
		{in(`{"name":"x","datatype":"FP32","shape":[4294967296,4294967296],"data":[1]}`), "", `input "x": shape [4294967296 4294967296]: too many elements`},
		{in(`{"name":"x","datatype":"FP32","shape":[1000000000],"data":[1]}`), "", `has 1000000000 elements, more than the data has`},
		{in(`{"name":"x","datatype":"FP32","shape":[1],"data":[1]},{"name":"x","datatype":"FP32","shape":[1],"data":[1]}`), "", `input "x" is there twice`},
		{`{"inputs":[],"outputs":[{"name":"y"},{"name":"y"}]}`, "", `output "y" is there twice`},
		{`{"inputs":[],"outputs":[{"name":"y","parameters":{"classification":3}}]}`, "", `output "y": classification is not supported`},
		{x(`"data":[1]`), "", `input "x": data has 1 elements, but shape [2] has 2`},
		{x(`"data":[1,2,3]`), "", `input "x": data has more elements than the shape, which has 2`},
		{x(`"data":[1,NaN]`), "", `element 1: JSON at byte`},
		{x(`"data":[1,NaN]`), "", `NaN, which JSON has no number for; send the tensor in binary`},
		{x(`"data":[-Infinity,1]`), "", `element 0`},
		{x(`"data":[1,1e39]`), "", `element 1: 1e39 is not within FP32`},
		{x(`"data":[1,null]`), "", `expected a number, got 'n'`},
		{x(`"data":[1,"2"]`), "", `expected a number, got '"'`},
		{x(`"data":[01,2]`), "", `expected a number, got '0'`},
		{x(`"data":[1.,2]`), "", `expected a number`},
		{x(`"data":[1,[2]]`), "", `a list beside an element`},
		{x(`"data":[[1],2]`), "", `elements lie at different depths of the lists`},
		{in(`{"name":"x","datatype":"FP32","shape":[3],"data":[[1,2],[3]]}`), "", `the lists are ragged: one has 2 members, one beside it 1`},
		{x(`"data":[1,2],"data":[1,2]`), "", `"data" is there twice`},
		{x(`"parameters":{"shared_memory_region":"r"}`), "", `input "x": shared memory is not supported`},
		{x(`"parameters":{"binary_data_size":-1}`), "", `input "x": parameter binary_data_size: expected an integer of at least 0`},
		{x(`"parameters":{"binary_data_size":"8"}`), "", `parameter binary_data_size`},
		{x(`"parameters":{"binary_data_size":99999999999999999999}`), "", `input "x": parameter binary_data_size`},
		{x(`"extra":1`), "", `input "x": it has neither data nor binary_data_size`},
		{x(size), "", `input "x": it has binary_data_size, but the header Inference-Header-Content-Length is missing`},
		{x(size), "1234", `input "x": binary_data_size is 8, but 4 of the 4 bytes after the JSON are left`},
		{x(size), "123456789", `1 of the 9 bytes after the JSON belong to no input`},
		{x(`"parameters":{"binary_data_size":4}`), "1234", `input "x": FP32 of shape [2] takes 8 bytes, got 4`},
		{x(`"data":[1,2],` + size), "12345678", `input "x": it has both data and binary_data_size`},
		{in(`{"name":"x","datatype":"BOOL","shape":[2],"parameters":{"binary_data_size":2}}`), "\x00\x02", `input "x": element 1 is the byte 2, expected 0 or 1 in BOOL`},
		{in(`{"name":"x","datatype":"BYTES","shape":[1],` + size + `}`), "\x05\x00\x00\x00abcd", `input "x": element 0: its length is 5, but 4 bytes are left`},
		{in(`{"name":"x","datatype":"BYTES","shape":[1],` + size + `}`), "\xff\xff\xff\xffabcd", `its length is 4294967295`},
		{in(`{"name":"x","datatype":"BYTES","shape":[1],` + size + `}`), "\x02\x00\x00\x00abcd", `2 bytes are left after 1 elements`},
		{in(`{"name":"x","datatype":"BYTES","shape":[9000],` + size + `}`), "\x02\x00\x00\x00abcd", `has 9000 elements of at least 4 bytes, got 8 bytes`},
		{typed("INT8", "128"), "", "element 0: 128 is not within INT8"},
		{typed("INT8", "-129"), "", "-129 is not within INT8"},
		{typed("UINT8", "-1"), "", "-1 is not within UINT8"},
		{typed("UINT8", "256"), "", "256 is not within UINT8"},
		{typed("INT64", "9223372036854775808"), "", "not within INT64"},
		{typed("UINT64", "18446744073709551616"), "", "not within UINT64"},
		{typed("INT32", "1.0"), "", "1.0 is not an integer, expected INT32"},
		{typed("FP16", "65520"), "", "65520 is not within FP16"},
		{typed("BF16", "3.4e38"), "", "3.4e38 is not within BF16"},
		{typed("FP64", "1e999"), "", "1e999 is not within FP64"},
		{typed("BOOL", "1"), "", "expected true or false"},
		{typed("BYTES", "1"), "", "expected a string"},
		{typed("BYTES", `"\ud800\q"`), "", "an escape that JSON does not have"},
		{typed("BYTES", "\"\xff\""), "", "not UTF-8"},
		{typed("BYTES", "\"\n\""), "", "a control character in a string"},
		{typed("BYTES", `"`), "", "a string"},
		{`{"inputs":` + strings.Repeat("[", 100), "", "inputs[0]: JSON at byte 11: expected an object"},
		{`{"inputs":[],"x":` + strings.Repeat("[", 100000), "", "lists and objects deeper than 64"},
		{x(`"data":` + strings.Repeat("[", 100000)), "", "lists and objects deeper than 64"},
		{`{"inputs":[],"parameters":{"sequence_id":true}}`, "", "parameter sequence_id: expected an integer or a string"},
		{`{"inputs":[],"parameters":{"binary_data_output":1}}`, "", "parameter binary_data_output: expected true or false"},
		{`{"inputs":[],"parameters":{"timeout":"x"}}`, "", "parameter timeout: expected an integer of at least 0"},
		{`{"inputs":[],"id":5}`, "", "expected a string, got '5'"},
	}
	var r Request
	for _, c := range cases {
		jsonLen := -1
		if c.rest != "" {
			jsonLen = len(c.body)
		}
		err := r.Decode([]byte(c.body+c.rest), jsonLen)
		if err == nil || !strings.Contains(err.Error(), c.want) || serve.CodeOf(err) != serve.InvalidArgument {
			t.Errorf("%.100s: got %v, expected %s", c.body, err, c.want)
		}
	}
	if err := r.Decode([]byte("{}"), 3); err == nil || !strings.Contains(err.Error(), "Inference-Header-Content-Length is 3, but the body has 2 bytes") {
		t.Error(err)
	}
	if len(cases) != 72 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestNotFinite(t *testing.T) {
	n := 0
	for _, v := range []*tensor.Tensor{tensor.Of([]float32{1, float32(math.NaN())}, 2), tensor.Of([]float64{0, math.Inf(1)}, 2)} {
		var r Request
		_, _, err := r.AppendResponse(nil, &serve.Response{Outputs: []serve.Tensor{{Name: "y", Value: v}}})
		if err == nil || !strings.Contains(err.Error(), `output "y": element 1 is`) || !strings.Contains(err.Error(), "ask for binary_data") {
			t.Error(err)
		}
		r.binary = true
		if _, _, err := r.AppendResponse(nil, &serve.Response{Outputs: []serve.Tensor{{Name: "y", Value: v}}}); err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 2 {
		t.Error(n)
	}
}

// Numbers must read as strconv reads them, to the last bit.
func TestNumbersAsStrconv(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	n := 0
	check := func(text string) {
		s := scanner{b: []byte(text)}
		d, err := s.number()
		if err != nil || s.end() != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want, err := strconv.ParseFloat(text, 32)
		if got, e := d.float32(); (e == nil) != (err == nil) || e == nil && math.Float32bits(got) != math.Float32bits(float32(want)) {
			t.Fatalf("%s: %v %v, expected %v %v", text, got, e, want, err)
		}
		want, err = strconv.ParseFloat(text, 64)
		if got, e := d.float64(); (e == nil) != (err == nil) || e == nil && math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%s: %v %v, expected %v %v", text, got, e, want, err)
		}
		n++
	}
	draws := longtest.Cases(t, 30000, 3000)
	for range draws {
		f := math.Float32frombits(r.Uint32() &^ (1 << 23))
		check(strconv.FormatFloat(float64(f), 'g', -1, 32))
		check(strconv.FormatFloat(float64(f), 'g', -1, 64))
		check(strconv.FormatFloat(float64(f), 'e', 18, 64))
		// The middle between two float32, and just beside it.
		m := float64(f) + (float64(math.Nextafter32(f, 0))-float64(f))/2
		check(strconv.FormatFloat(m, 'g', -1, 64))
		check(strconv.FormatFloat(math.Nextafter(m, 0), 'g', 18, 64))
		check(strconv.FormatFloat(math.Float64frombits(r.Uint64()&^(1<<52)), 'g', -1, 64))
		check(fmt.Sprintf("%d.%de%d", r.Uint64()>>r.IntN(64), r.Uint64()>>r.IntN(64), r.IntN(60)-30))
	}
	for _, text := range []string{"0", "-0", "0.0", "-0e5", "1e-400", "1e400", "0e99999999999", "1e-99999999999", "18446744073709551615", "18446744073709551616", "00000000000000000000"[:1], "0.00000000000000000000000000000000001", "16777217", "16777217.0000000000000000000000001", "3.4028235677973366e38", "1.1754943e-38"} {
		check(text)
	}
	if n != 7*draws+16 {
		t.Errorf("%d numbers", n)
	}
}
