package indicator

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

type document struct {
	Indicators Set `yaml:"indicators"`
}

func labels(s Set) (list []string) {
	for _, c := range s {
		list = append(list, c.Label())
	}
	return list
}

func TestSetReadsEveryForm(t *testing.T) {
	doc, err := configs.Parse("test.yaml", []byte(`
indicators: {supertrend: [10, 3.0], sma: [10, 20], rsi: 7, macd: [5, 35], heikin_ashi: true, obv: false, bbands: [[20, 2.0], [50]], adx: true, ichimoku: [9, 26, 52]}
`))
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := doc.Decode(&d); err != nil {
		t.Fatal(err)
	}
	want := []string{"sma_10", "sma_20", "rsi_7", "macd_5_35_9", "bbands_20_2", "bbands_50_2", "ichimoku_9_26_52", "heikin_ashi", "supertrend_10_3", "adx_14"}
	if got := labels(d.Indicators); !slices.Equal(got, want) {
		t.Errorf("read %v, expected %v", got, want)
	}
	// Writing and reading gives the same indicators in the same order.
	text, err := configs.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	again, err := configs.Parse("again.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	var e document
	if err := again.Decode(&e); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if got := labels(e.Indicators); !slices.Equal(got, want) {
		t.Errorf("read again %v, expected %v", got, want)
	}
}

func TestSetRefuses(t *testing.T) {
	for text, want := range sorted.All(map[string]string{
		"indicators: {smma: [10]}":             `unknown indicator "smma"`,
		"indicators: {sma: [0]}":               "period of sma must be at least 1",
		"indicators: {sma: ten}":               "expected true, a number or a list",
		"indicators: {sma: [10, 10]}":          "sma_10 is there twice",
		"indicators: {macd: [1, 2, 3, 4]}":     "takes 3 parameters (fast, slow, signal), found 4",
		"indicators: {macd: {fast: 2}}":        "a list of such lists",
		"indicators: [sma]":                    "expected a mapping",
		"indicators: {sma: [0], macd: [9, 3]}": "fast of macd must be below slow",
	}) {
		doc, err := configs.Parse("test.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var d document
		if err := doc.Decode(&d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, expected %q", text, err, want)
		} else if !strings.Contains(err.Error(), "test.yaml:1:") {
			t.Errorf("%s: error %v has no place", text, err)
		}
	}
}
