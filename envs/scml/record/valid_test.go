package record_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/record"
)

// change returns a file in which the value of a key, all along a path, is another one; nil deletes
// it.
func change(t *testing.T, text string, value any, path ...any) string {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	at := root
	for _, key := range path[:len(path)-1] {
		if i, ok := key.(int); ok {
			at = at.([]any)[i]
		} else {
			at = at.(map[string]any)[key.(string)]
		}
	}
	switch key := path[len(path)-1].(type) {
	case int:
		at.([]any)[key] = value
	case string:
		if at.(map[string]any)[key] = value; value == nil {
			delete(at.(map[string]any), key)
		}
	}
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestContradictions are refused when a world is read or validated, and what was expected is said.
func TestContradictions(t *testing.T) {
	file := played(t)
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	good, agent := string(text), file.IDs()[0]
	if len(file.Played[0].Signed) == 0 {
		t.Fatal("nothing is signed on the first day")
	}
	with := func(value any, path ...any) string { return change(t, good, value, path...) }
	cases := []struct{ text, says string }{
		{"", "is empty, expected a world"},
		{" \n", "is empty, expected a world"},
		{"\n\nworld", "line 3 is no JSON"},
		{"[]", "line 1, the world: is a JSON array, expected an object"},
		{"{}", "n_processes is 0, but there are 0 catalog_prices, expected one more"},
		{good[:len(good)/2], "ends in line 1, in the middle of the world: it was cut"},
		{good + "{}", "something follows the world"},
		{with(1, "colour"), `a world has no key "colour"`},
		{with(1, "agents", agent, "colour"), `a world has no key "colour"`},
		{with("five", "n_steps"), "n_steps: is a JSON string, expected a whole number"},
		{with(0, "n_steps"), "n_steps: must be at least 1, is 0"},
		{with(-3, "n_steps"), "n_steps: must be at least 1, is -3"},
		{with(10, "n_steps"), "agents." + agent + ".storage_cost_per_day: 9 values, expected 10, one for each day"},
		{with(3, "n_processes"), "n_processes is 3, but there are 3 catalog_prices, expected one more"},
		{with(0, "n_lines"), "n_lines: must be at least 1, is 0"},
		{with(-1, "negotiation_speed"), "rules.pass_limit: must be between 0 and 20000, is -1"},
		{with(-10, "catalog_prices", 1), "catalog_prices[1]: must be at least 1, is -10"},
		{with(1, "agents", agent, "level"), "is of " + agent + ", expected an agent of level 0"},
		{with(7, "agents", agent, "level"), "agents." + agent + ".level: is 7, expected 1 … 1"},
		{with(nil, "agents", agent), `of "SELLER" for "` + agent + `"`},
		{with(-1, "agents", agent, "cost"), "agents." + agent + ".cost: must not be negative, is -1"},
		{with(0, "agents", agent, "initial_balance"), "agents." + agent + ".initial_balance: must be positive, is 0"},
		{with(-1, "agents", agent, "storage_cost_per_day", 2), "agents." + agent + ".storage_cost_per_day[2]: must not be negative, is -1"},
		{with(2, "rules", "price_range"), "rules.price_range: must be at least 0 and less than 1, is 2"},
		{with(0, "rules", "max_quantity"), "rules.max_quantity: must be at least 1, is 0"},
		{with(99, "exogenous", 0, "day"), ".day: must be between 0 and 8, is 99"},
		{with(1, "exogenous", 0, "product"), "exogenous[0]: product 1"},
		{with(3, "days", 1, "day"), "days[1].day: is 3, expected 1"},
		{with([]int{1}, "days", 1, "trading_price_in_force"), "days[1].trading_price_in_force: 1 values, expected 3, one for each product"},
		{with([][3][2]int{{}}, "days", 2, "issues_q_t_p_by_product"), "days[2].issues_q_t_p_by_product: 1 values, expected 3"},
		{with(nil, "days", 0, "end", "agents", agent), "days[0].end.agents: there is no " + agent},
		{with("nobody", "days", 0, "signed_today", 0, "seller"), `days[0].signed_today[0]: seller "nobody" or buyer`},
		{with(agent, "days", 0, "signed_today", 0, "buyer"), "expected one of level 1"},
		{with(0, "days", 0, "signed_today", 0, "quantity"), "days[0].signed_today[0].quantity: must be at least 1, is 0"},
		{with(77, "days", 0, "signed_today", 0, "time"), "days[0].signed_today[0].time: must be between 0 and 8, is 77"},
		{good, ""},
	}
	for i, c := range cases {
		path := filepath.Join(t.TempDir(), "world.json")
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		w, err := record.Read(path)
		if err != nil && !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("case %d: %v does not name the file", i, err)
		}
		if err == nil {
			err = w.Validate()
		}
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("case %d: %v, expected %q", i, err, c.says)
		}
	}
	if len(cases) != 36 {
		t.Errorf("%d cases", len(cases))
	}
}
