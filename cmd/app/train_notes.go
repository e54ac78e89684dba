package app

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/onnxrl/onnxrl/agents"
	networks "github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// tellData writes what the loader of a market has to say of its data: first how prices are
// adjusted. It is no progress, so that --quiet does not keep it back.
func (a *app) tellData(out io.Writer, f envs.Factory) {
	if o, ok := f.(trading.Opened); ok {
		tellNotes(out, o.Data().Notes)
	}
}

// tellNetwork writes how many parameters an agent with adapters has, what is kept of windows, and
// what there is to know of how the files were read that its policy is made of.
func (a *app) tellNetwork(out io.Writer, agent agents.Agent) {
	if net, params := agent.Learner().Policy(); net != nil && !a.quiet {
		if c := networks.CountsOf(params); c != nil {
			fmt.Fprintf(out, "network: %v\n", c)
		}
		if k, ok := agent.Learner().(networks.Keeper); ok && k.Kept() != nil {
			fmt.Fprintf(out, "network: %v\n", k.Kept())
		}
		for _, n := range net.Notes {
			fmt.Fprintf(out, "network: %s\n", n)
		}
	}
}

// tellLength writes how long a run will be where that is not what was asked for.
func (a *app) tellLength(out io.Writer, t *train.Trainer) {
	if total, planned := t.Config().TotalEnvSteps, t.PlannedEnvSteps(); planned != total && !a.quiet {
		fmt.Fprintf(out, "train.total_env_steps is %s: the run takes %s, a whole number of rollouts\n", grouped(total), grouped(planned))
	}
}

// logTo returns a logger of the level that was asked for.
func (a *app) logTo(w io.Writer) *slog.Logger {
	var level slog.Level
	// The flag was checked before the command began.
	_ = level.UnmarshalText([]byte(a.logLevel))
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: dropTime}))
}

func tellNotes(out io.Writer, notes []string) {
	for _, n := range notes {
		fmt.Fprintf(out, "data: %s\n", n)
	}
}
