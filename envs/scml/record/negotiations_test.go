package record

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// cells of a row that was negotiated: A calls, and both sides offer twice.
func good() map[string]string {
	round := func(step int, offers string) string {
		return fmt.Sprintf(`{'running': True, 'step': %d, 'time': 0.0, 'relative_time': 0.047, 'agreement': None, 'error_details': "it's", 'threads': {}, 'new_offers': [%s], 'new_offerer_agents': ['A', 'B'], 'new_data': [('B', None), ('A', {'r': <Response.END: 2>, 'n': np.int64(3), 's': 'a\'b\\'})]}`, step, offers)
	}
	return map[string]string{
		"index": "0", "id": "x-1", "ended_at": "3", "issues": "['quantity: (1, 30)', 'time: (3, 13)', 'unit_price: (14, 17)']", "agreement": "(5, 4, 16)", "caller": "A", "product": "1", "buyer": "A", "seller": "B", "sim_step": "3", "broken": "False", "timedout": "False",
		"history": "[" + round(0, "('B', (4, 3, 17)), ('A', (12, 4, 16))") + ", " + round(1, "('B', (np.int64(6), 5, 14)), ('A', [5, 4, 16])") + ", " + round(2, "") + "]",
	}
}

// written writes rows as a file.
func written(t *testing.T, rows ...map[string]string) string {
	t.Helper()
	var text strings.Builder
	w := csv.NewWriter(&text)
	var head []string
	for name := range sorted.All(good()) {
		head = append(head, name)
	}
	list := [][]string{head}
	for _, r := range rows {
		var row []string
		for _, name := range head {
			row = append(row, r[name])
		}
		list = append(list, row)
	}
	if err := w.WriteAll(list); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "negotiations.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// with is a row in which cells are others.
func with(pairs ...string) map[string]string {
	r := good()
	for i := 0; i < len(pairs); i += 2 {
		r[pairs[i]] = pairs[i+1]
	}
	return r
}

// all reads a file.
func all(path string) (list []Negotiation, err error) {
	err = EachNegotiation(path, func(n *Negotiation) error {
		c := *n
		c.Offers = append([]Made(nil), n.Offers...)
		if n.Agreement != nil {
			a := *n.Agreement
			c.Agreement = &a
		}
		list = append(list, c)
		return nil
	})
	return list, err
}

// TestNegotiations reads each way in which a negotiation ends.
func TestNegotiations(t *testing.T) {
	base := Negotiation{
		ID: "x-1", Day: 3, Ended: 3, Product: 1, Caller: "A", Buyer: "A", Seller: "B", Quantity: [2]int{1, 30}, Time: [2]int{3, 13}, Price: [2]int{14, 17},
		Offers: []Made{{"A", Offer{4, 3, 17}}, {"B", Offer{12, 4, 16}}, {"A", Offer{6, 5, 14}}, {"B", Offer{5, 4, 16}}}, Rounds: 3, Agreement: &Offer{5, 4, 16}, Responder: "A",
	}
	with0 := func(edit func(n *Negotiation)) Negotiation {
		n := base
		edit(&n)
		return n
	}
	last := "[{'step': 0, 'new_offers': [('B', (4, 3, 17))]}]"
	cases := []struct {
		row  map[string]string
		want Negotiation
	}{
		{good(), base},
		{with("history", last, "agreement", "(4, 3, 17)"), with0(func(n *Negotiation) {
			n.Offers, n.Rounds, n.Agreement, n.Responder = base.Offers[:1], 1, &Offer{4, 3, 17}, "B"
		})},
		{with("history", last, "agreement", "None", "broken", "True"), with0(func(n *Negotiation) {
			n.Offers, n.Rounds, n.Agreement, n.Responder, n.Broken = base.Offers[:1], 1, nil, "B", true
		})},
		{with("history", "[{'new_offers': []}]", "agreement", "", "broken", "True", "ended_at", "4.0", "caller", "B"), with0(func(n *Negotiation) {
			n.Offers, n.Rounds, n.Agreement, n.Responder, n.Broken, n.Ended, n.Caller = nil, 1, nil, "B", true, 4, "B"
		})},
		{with("history", "[{'new_offers': [('B', (4, 3, 17)), ('A', None)]}]", "agreement", "None", "timedout", "True"), with0(func(n *Negotiation) {
			n.Offers, n.Rounds, n.Agreement, n.Responder, n.TimedOut = base.Offers[:1], 1, nil, "", true
		})},
		{with("history", "[]", "agreement", "None"), with0(func(n *Negotiation) { n.Offers, n.Rounds, n.Agreement, n.Responder = nil, 0, nil, "" })},
	}
	var rows []map[string]string
	for _, c := range cases {
		rows = append(rows, c.row)
	}
	list, err := all(written(t, rows...))
	if err != nil || len(list) != len(cases) {
		t.Fatal(len(list), err)
	}
	for i, c := range cases {
		if !reflect.DeepEqual(list[i], c.want) {
			t.Errorf("row %d: %+v, expected %+v", i, list[i], c.want)
		}
	}
	if len(cases) != 6 {
		t.Errorf("%d cases", len(cases))
	}
	if list, err := all(written(t)); err != nil || len(list) != 0 {
		t.Errorf("a world without negotiations: %v %v", list, err)
	}
}

// TestNegotiationsRefused: what is wrong is named with file, line and column, and a file that was
// cut off gives what is whole.
func TestNegotiationsRefused(t *testing.T) {
	n := 0
	for text, row := range sorted.All(map[string]map[string]string{
		"line 3, column history: it is empty: the world was run without histories": with("history", ""),
		"column history: round 0: at character 2: '4', expected '{'":               with("history", "[4]"),
		"column history: round 0: the literal ends too early":                      with("history", "[{'new_offers': [('B'"),
		"column history: round 0: at character 54: more than two offers":           with("history", "[{'new_offers': [('B', (1, 2, 3)), ('A', (1, 2, 3)), ('B', (1, 2, 3))]}]"),
		"round 0: at character 30: 2 numbers, expected 3":                          with("history", "[{'new_offers': [('B', (1, 2))]}]"),
		"column issues: 1 issues":                                                  with("issues", "['quantity: (1, 30)']"),
		`column broken: "Tru", expected True or False`:                             with("broken", "Tru"),
		`column issues: the issue "delivery"`:                                      with("issues", "['delivery: (1, 30)']"),
		"column sim_step: \"1.5\" is no whole number":                              with("sim_step", "1.5"),
		"column caller: \"C\"":                                                     with("caller", "C"),
		"column agreement: at character 3":                                         with("agreement", "(x)"),
	}) {
		path := written(t, good(), row)
		list, err := all(path)
		var e *RowError
		if !errors.As(err, &e) || len(list) != 1 || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), text) {
			t.Errorf("%d negotiations, and %v, expected %q", len(list), err, text)
		}
		n++
	}
	if n != 11 {
		t.Errorf("%d cases", n)
	}
	whole := written(t, good(), good())
	b, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	first := len(b)/2 + 60
	cuts := 0
	for end := first; end < len(b)-1; end++ {
		if err := os.WriteFile(whole, b[:end], 0o644); err != nil {
			t.Fatal(err)
		}
		// A cut line may look whole in its last cell; then the cell is wrong.
		if list, err := all(whole); err == nil || len(list) != 1 {
			t.Fatalf("cut at %d of %d: %d negotiations, %v", end, len(b), len(list), err)
		} else if errors.Is(err, ErrCut) {
			cuts++
		}
	}
	if cuts < 800 {
		t.Errorf("%d files were found to be cut", cuts)
	}
	other := filepath.Join(t.TempDir(), "negotiations.csv")
	if err := os.WriteFile(other, []byte("id,issues\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := all(other); err == nil || !strings.Contains(err.Error(), "no_logs") {
		t.Error(err)
	}
}

// TestHear sums negotiations up by product, also of a table that was cut off, and of none.
func TestHear(t *testing.T) {
	path := written(t, good(), with("product", "2", "agreement", "None", "broken", "True"), with("agreement", "", "timedout", "True"), good())
	var s Summary
	if err := s.Hear(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	want := []Talks{{Product: 1, Negotiations: 3, Agreed: 2, TimedOut: 1, Offers: 12, Rounds: 9}, {Product: 2, Negotiations: 1, Broken: 1, Offers: 4, Rounds: 3}}
	if !reflect.DeepEqual(s.Talks, want) || s.Cut {
		t.Errorf("%+v", s)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-600], 0o644); err != nil {
		t.Fatal(err)
	}
	s = Summary{}
	if err := s.Hear(filepath.Dir(path)); err != nil || !s.Cut || s.Talks[0].Negotiations != 2 {
		t.Errorf("%+v %v", s, err)
	}
	var text strings.Builder
	if err := s.printTalks(&text); err != nil || !strings.Contains(text.String(), "timed out") || !strings.Contains(text.String(), "not written to its end") {
		t.Error(text.String(), err)
	}
	if s = (Summary{}); s.Hear(t.TempDir()) != nil || s.Talks != nil {
		t.Errorf("%+v", s)
	}
}

// TestRecordedNegotiations reads rows of official worlds, where ONNXRL_SCML_RECORDINGS points to
// them.
func TestRecordedNegotiations(t *testing.T) {
	const rows, files = 18, 2
	dir := os.Getenv("ONNXRL_SCML_RECORDINGS")
	if dir == "" {
		fmt.Printf("0 of %d recorded negotiations read (set ONNXRL_SCML_RECORDINGS)\n", rows)
		return
	}
	paths, err := filepath.Glob(filepath.Join(dir, "samples", "*", "negotiations.head.csv"))
	if err != nil || len(paths) != files {
		t.Fatal(paths, err)
	}
	n, offers, agreed := 0, 0, 0
	for _, path := range paths {
		list, err := all(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			n++
			offers += len(x.Offers)
			if x.Agreement == nil {
				continue
			}
			agreed++
			// Who accepted had not made the offer.
			if last := x.Offers[len(x.Offers)-1]; last.Offer != *x.Agreement || x.Responder != x.Partner(last.By) {
				t.Errorf("%+v", x)
			}
		}
	}
	if n != rows || agreed != 15 || offers != 328 {
		t.Errorf("%d negotiations, %d agreements, %d offers", n, agreed, offers)
	}
}

// FuzzLiteral skips whatever it is given, without a crash.
func FuzzLiteral(f *testing.F) {
	f.Add(good()["history"])
	f.Add(`{1: 'a', "b": (1,), 'c': Issue((1, 30), name='q'), 'd': <E.X: 1>, 'e': set(), 'f': -1e-5}`)
	f.Add(`'\x41\'`)
	f.Fuzz(func(t *testing.T, text string) {
		l := &literal{text: text}
		if err := l.skip(); err == nil && (l.at == 0 || l.at > len(text)) {
			t.Errorf("%q: %d characters were read", text, l.at)
		}
		p := negotiationReader{n: Negotiation{Caller: "A", Buyer: "A", Seller: "B"}}
		_ = p.history(text)
	})
}
