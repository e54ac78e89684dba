package app

import (
	"context"

	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// verified is what was verified of a version: its files and golden outputs, and the golden bars of
// a market agent.
type verified struct {
	artifact.Verified
	bars trader.BarsReport
}

// verifyBars leads golden bars to actions again, where nothing else of a version differs.
func verifyBars(ctx context.Context, c engine.Compiler, list []artifact.Verified) []verified {
	out := make([]verified, len(list))
	for i, v := range list {
		out[i].Verified = v
		if c != nil && v.Err == nil {
			out[i].bars, out[i].Err = trader.VerifyBars(ctx, v.Version, c)
		}
	}
	return out
}
