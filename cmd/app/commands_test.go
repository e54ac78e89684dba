package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// commandTree has the commands of onnxrl that do something, by path. Those that write files have
// "-o", and those that print no report what they print.
var commandTree = map[string]string{
	"ablate": "-o", "act": "", "actor serve": "", "algo ls": "", "bench env": "-o", "bench history": "-o", "bench learn": "", "bench live": "-o", "bench offline": "", "bench replay": "-o", "bench train": "",
	"compare": "", "config check": "", "config convert": "-o, a YAML document", "config new": "-o, a YAML document", "config reference": "-o", "config schema": "-o",
	"data convert": "-o", "data feed": "", "data init": "-o", "data inspect": "", "data live": "", "data lookahead": "", "data prepare": "-o", "data warmup": "", "data windows": "-o", "dashboard": "", "demo": "-o", "doctor": "",
	"dataset export": "-o", "dataset import": "-o", "dataset merge": "-o", "dataset inspect": "",
	"encoder ls": "", "env ls": "", "evaluate": "-o", "export": "-o", "fit": "-o", "grad build": "-o", "grad check": "", "grad ops": "", "grad trace": "",
	"graph check": "", "graph diff": "", "graph dump": "", "graph explain": "", "graph show": "", "graph stats": "", "graph svg": "-o, a picture", "graph to-dot": "-o, a picture",
	"models alias": "", "models diff": "", "models gc": "", "models lineage": "", "models ls": "", "models publish": "", "models pull": "-o", "models push": "", "models show": "",
	"scml inspect": "", "scml replay": "", "scml run": "-o", "scml samples": "-o", "scml tournament": "-o",
	"models verify": "", "prove-model": "", "record": "-o", "replay serve": "", "replay repair": "", "serve": "", "train": "-o", "train population": "-o", "train scml": "-o", "tune": "-o", "version": "", "evolve": "-o", "evolve tree": "", "evolve status": "", "evolve pause": "", "evolve resume": "", "evolve cancel": "", "worker": "messages", "league": "-o", "league table": "", "league play": "", "live": "", "walkforward": "-o",
}

// TestUnknownCommands: at every level of the tree a command that there is not, and a flag of every
// command, has the exit status of its own.
func TestUnknownCommands(t *testing.T) {
	root := newApp("onnxrl", nil, nil, nil)
	root.kinds = kinds.All()
	groups, commands := 0, 0
	refused := func(args ...string) {
		r := apptest.Run(t, args...)
		if r.Code != exitUsage || r.Out != "" || strings.Count(r.Err, "\n") != 1 || !strings.Contains(r.Err, args[len(args)-1]) {
			t.Errorf("%q: status %d\n%s%s", args, r.Code, r.Out, r.Err)
		}
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		if _, does := commandTree[strings.Join(path, " ")]; cmd.HasSubCommands() && !does {
			refused(append(slices.Clone(path), "nw")...)
			refused(append(append([]string{"help"}, path...), "nw")...)
			groups++
		}
		if !cmd.DisableFlagParsing {
			refused(append(slices.Clone(path), "--no-such-flag")...)
			commands++
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root.command())
	if groups < 10 || commands < 70 {
		t.Errorf("%d groups and %d commands", groups, commands)
	}
}

// TestCommandTree: every command has --json, and what it writes is named by -o, which is short
// for --out.
func TestCommandTree(t *testing.T) {
	found := map[string]string{}
	root := newApp("onnxrl", nil, nil, nil)
	root.kinds = kinds.All()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "onnxrl ")
		// Those that have others may do something by themselves, too.
		_, does := commandTree[path]
		if cmd.HasSubCommands() && !does || cmd.RunE == nil && cmd.Run == nil || strings.HasPrefix(path, "completion") || path == "help" {
			return
		}
		var has []string
		if cmd.InheritedFlags().Lookup("json") == nil {
			t.Errorf("%s has no --json", path)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Name == "out" && f.Shorthand == "o":
				has = append(has, "-o")
			case f.Name == "out" || f.Shorthand == "o" || f.Name == "output":
				t.Errorf("%s: --%s (-%s): expected --out with -o", path, f.Name, f.Shorthand)
			}
		})
		if what := cmd.Annotations[printsText]; what != "" {
			has = append(has, what)
		}
		found[path] = strings.Join(has, ", ")
	}
	walk(root.command())
	for path, has := range sorted.All(found) {
		if want, ok := commandTree[path]; !ok || want != has {
			t.Errorf("%s: %q, expected %q", path, has, want)
		}
	}
	if len(found) != len(commandTree) {
		t.Errorf("%d commands, expected %d", len(found), len(commandTree))
	}
}
