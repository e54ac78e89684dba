package app

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/buildinfo"
)

// jsonInner and jsonOuter have what reports are made of.
type jsonInner struct {
	A float64  `json:"a"`
	B *float64 `json:"b,omitempty"`
	C float32  `json:"c,omitempty"`
	// Not seen by encoding/json.
	d float64 //lint:ignore U1000 it is there to be left out
}

type jsonOuter struct {
	jsonInner
	Named  jsonInner          `json:"named"`
	Map    map[string]float64 `json:"map"`
	Keys   map[int]jsonInner  `json:"keys"`
	Any    any                `json:"any"`
	List   []float64          `json:"list"`
	None   []string           `json:"none"`
	Bytes  []byte             `json:"bytes"`
	Array  [2]bool            `json:"array"`
	When   time.Time          `json:"when,omitzero"`
	Own    performance.Number `json:"own"`
	Raw    json.RawMessage    `json:"raw"`
	Text   string             `json:"text"`
	Hidden string             `json:"-"`
	Plain  int
}

// TestJSONIsFinite: no report fails, or writes what JSON lacks, for a number that is not finite: such
// are null, and all the rest is as encoding/json has it.
func TestJSONIsFinite(t *testing.T) {
	nan, one := math.NaN(), 1.5
	full := jsonOuter{
		jsonInner: jsonInner{A: 1, B: &one, C: 0.1}, Named: jsonInner{A: -2.25}, Map: map[string]float64{"b": 2, "a": 1e-9}, Keys: map[int]jsonInner{10: {A: 1}, 9: {A: 2}}, Any: []any{1, "x", nil, one, map[string]any{"k": one}},
		List: []float64{0, 1e300}, Bytes: []byte("abc"), Array: [2]bool{true, false}, When: time.Unix(1, 0).UTC(), Own: 2, Raw: json.RawMessage(`{"r":[1]}`), Text: "<a&\"\n", Hidden: "no", Plain: 3,
	}
	for _, v := range []any{full, &full, jsonOuter{}, []jsonOuter{full, {}}, nil, (*jsonOuter)(nil), versionReport{Info: buildinfo.This(), Cgo: true}, configReport{Problems: []configProblem{{Line: 3, text: "x"}}}, &offline.Report{Problems: []string{}}, fitSummary{}, kindRow{}} {
		var want, got bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		if err := writeFinite(&got, reflect.ValueOf(v)); err != nil || got.String()+"\n" != want.String() {
			t.Errorf("%T: %v\n%s\nexpected\n%s", v, err, got.String(), want.String())
		}
	}
	full.A, full.B, full.C, full.Named.A, full.Map["b"], full.Keys[9], full.List[1], full.Own = nan, &nan, float32(math.Inf(1)), math.Inf(-1), nan, jsonInner{A: nan}, nan, performance.Number(nan)
	full.Any = map[string]any{"k": nan, "l": []float32{float32(nan), 2}}
	var out bytes.Buffer
	if err := (jsonOutput{w: &out}).Encode(full); err != nil {
		t.Fatal(err)
	}
	const want = `{"a":null,"b":null,"c":null,"named":{"a":null},"map":{"a":1e-9,"b":null},"keys":{"10":{"a":1},"9":{"a":null}},"any":{"k":null,"l":[null,2]},"list":[0,null],"none":null,"bytes":"YWJj","array":[true,false],"when":"1970-01-01T00:00:01Z","own":null,"raw":{"r":[1]},"text":"<a&\"\n","Plain":3}`
	if got := out.String(); got != want+"\n" {
		t.Errorf("%s\nexpected\n%s", got, want)
	}
	// The output of a command goes through it.
	var a app
	out.Reset()
	a.json = true
	if a.out = &out; a.printTable(&offline.Report{Gamma: nan}, nil) != nil || !json.Valid(out.Bytes()) || apptest.Decoded[map[string]any](t, out.String())["gamma"] != nil {
		t.Errorf("%s", out.String())
	}
}
