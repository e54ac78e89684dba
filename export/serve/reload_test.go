package serve

import (
	"fmt"
	"testing"
)

func TestReloadsLeaveNothingBehind(t *testing.T) {
	s, src, p := start(t, Options{}, one("m", Config{}, scale(1)))
	model := scale(1)
	const reloads = 500
	for i := range reloads {
		v := candidate(fmt.Sprintf("sha256:%064x", i), model, golden(1))
		if i%5 == 4 {
			v = candidate(fmt.Sprintf("sha256:%064x", i), scale(2), golden(1)) // does not give its golden outputs
		}
		src.put(Listing{Name: "m", Versions: []Candidate{v}, Aliases: map[string]string{"prod": v.Name}})
		err := s.Poll(t.Context())
		if (err != nil) != (i%5 == 4) {
			t.Fatal(i, err)
		}
		for _, version := range []string{"", "prod"} {
			req := ask("m", 1, 2)
			req.Version = version
			var resp Response
			if err := s.Infer(t.Context(), req, &resp); err != nil || resp.y() != 1 || (resp.Version == v.Name) != (i%5 < 4) {
				t.Fatal(i, err, resp.Version)
			}
		}
	}
	m := s.model("m")
	until(t, "replaced versions are closed", func() bool { return p.sessions.Load() == 1 })
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.stats) > maxGone+1 || len(m.failures) > 1 || len(m.leaving) > 1 {
		t.Errorf("%d statistics, %d failures and %d versions are kept", len(m.stats), len(m.failures), len(m.leaving))
	}
}
