package studies

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/league"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// leagueLogs are the records of a league.
func leagueLogs(t *testing.T, dir string) string {
	t.Helper()
	return string(apptest.ReadBytes(t, filepath.Join(dir, league.MembersFile))) + string(apptest.ReadBytes(t, filepath.Join(dir, league.MatchesFile)))
}

// TestLeague: a reduced form of the shipped league of connect four, told as JSON and as a table.
// One that is stopped by SIGINT or killed gives the same logs. Members play beside the record, and
// what does not fit is refused.
func TestLeague(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	reduced := []string{"connect_four_league", "-q", "--set", "generations=3", "--set", "games=2", "--set", "interval_steps=128", "--set", "experiment.train.num_envs=8", "--set", "experiment.agent.n_steps=16", "--set", "experiment.agent.batch_size=64", "--set", "experiment.agent.hidden=[8]", "--set", "experiment.agent.encoder.hidden=[8]", "--set", "experiment.eval.episodes=2"}
	dir := filepath.Join(t.TempDir(), "ref")
	sum := apptest.Decode[league.Summary](t, apptest.Succeed(t, append(append([]string{"league"}, reduced...), "--json", "--out", dir)...))
	fixed := len(sum.Ratings) - 3
	if sum.Generations != 3 || sum.EnvSteps != 3*128 || fixed < 3 || len(sum.Matches) != fixed*(fixed-1)/2+3*fixed+3 || !strings.HasSuffix(sum.Published, "best.onnx") {
		t.Errorf("%d generations, %d env steps, %d ratings, %d matches, published %q", sum.Generations, sum.EnvSteps, len(sum.Ratings), len(sum.Matches), sum.Published)
	}
	want := leagueLogs(t, dir)
	for name, sig := range sorted.All(map[string]os.Signal{"SIGINT": os.Interrupt, "kill -9": os.Kill}) {
		dir := filepath.Join(t.TempDir(), "league")
		code, text := apptest.Signalled(t, filepath.Join(dir, league.LearnerDir, "generation-0001", "member-000", "checkpoints", "ckpt-"), 1, sig, append(append([]string{"league"}, reduced...), "--out", dir)...)
		switch {
		case sig == os.Kill && code != -1:
			t.Fatalf("a killed process has exit status %d", code)
		case sig != os.Kill && (code != apptest.Interrupted || !strings.Contains(text, "continue with: onnxrl league --resume "+dir)):
			t.Fatalf("%s: exit status %d, expected %d\n%s", name, code, apptest.Interrupted, text)
		}
		out := apptest.Succeed(t, "league", "-q", "--resume", dir)
		if got := leagueLogs(t, dir); got != want {
			t.Errorf("%s:\n%s\nexpected\n%s", name, got, want)
		}
		for _, says := range []string{"Elo", "generation-2", "3 of 3 generations, 384 env steps, matchmaking prioritised", "published "} {
			if !strings.Contains(out, says) {
				t.Errorf("%s: the table lacks %q:\n%s", name, says, out)
			}
		}
	}
	apptest.Says(t, apptest.Succeed(t, "league", "table", dir), "95 % interval")
	if told := apptest.Decode[league.Summary](t, apptest.Succeed(t, "league", "table", dir, "--json")); len(told.Members) != 3 || !reflect.DeepEqual(told.Ratings, sum.Ratings) {
		t.Errorf("%+v", told.Ratings)
	}
	play := []string{"league", "play", dir, sum.Published, "{kind: alpha_beta, depth: 4}", "--games", "10", "--greedy", "--set", "experiment.env.world.opening=0"}
	out := apptest.Succeed(t, append(play, "--json")...)
	r := apptest.Decode[struct {
		A, B             string
		Seats            []league.Tally
		Total            league.Tally
		Score, Low, High float64
		WinRate          float64 `json:"win_rate"`
	}](t, out)
	if r.A != "best.onnx" || r.B != "kind: alpha_beta, depth: 4" || len(r.Seats) != 2 || r.Seats[0].Games() != 5 || r.Total.Games() != 10 || r.Score != r.Total.Score() || r.Low > r.Score || r.High < r.Score || r.WinRate > r.Score {
		t.Errorf("%s", out)
	}
	if code := apptest.Run(t, append(play, "--at-least", "0.9")...).Code; code != 1 {
		t.Errorf("a policy that has learnt nothing has 90 %% of the points: exit status %d", code)
	}
	apptest.Says(t, apptest.Succeed(t, "league", "play", dir, "random", "generation-0", "--games", "4"), "seat of random")

	rps := filepath.Join(t.TempDir(), "rps")
	apptest.Says(t, apptest.Succeed(t, "league", "rps_league", "-q", "--set", "generations=2", "--out", rps), "exploitability: ")
	told := apptest.Decode[league.Summary](t, apptest.Succeed(t, "league", "table", rps, "--json"))
	if e := told.Exploitability; e == nil || len(e.Generations) != 2 {
		t.Errorf("%+v", e)
	}

	other := apptest.Write(t, "other.yaml", "members: [{name: champion, path: "+sum.Published+"}]\nexperiment: {env: {kind: versus, world: {kind: matrix_game}}, agent: {kind: ppo}}\n")
	n := 0
	for _, c := range []struct {
		says string
		args []string
	}{
		{"the document of a league is needed", nil},
		{"takes neither another document nor edits", []string{"--resume", dir, "--set", "games=3"}},
		{"holds a league already", []string{"rps_league", "--out", dir}},
		{"members: a pool without members", []string{"cartpole_ppo"}},
		{"members: a pool without members", []string{"rps_league", "--set", "members=[]"}},
		{"it holds no league", []string{"--resume", t.TempDir()}},
		{"it holds no league", []string{"table", t.TempDir()}},
		{"is neither a member of the league", []string{"play", dir, "nobody", "random"}},
		// A policy of another game.
		{`opponent "champion": `, []string{other}},
	} {
		apptest.Refuse(t, append([]string{"league"}, c.args...), c.says)
		n++
	}
	if n != 9 {
		t.Errorf("%d refusals", n)
	}
}
