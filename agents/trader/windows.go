package trader

import (
	"context"
	"errors"
	"io"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// WriteWindows implements pretrain.Windowed: see [prepared.Set.WriteWindows].
func (f *factory) WriteWindows(ctx context.Context, path string, horizon, stride int) (bars, features int, err error) {
	p := f.Config().(trading.Params)
	c := prepared.Default()
	c.Window = 0
	if err := p.Data.Decode(&c); err != nil {
		return 0, 0, err
	}
	if c.Window == 0 {
		c.Window = p.Window
	}
	if len(c.Split.Without) > 0 {
		return 0, 0, errors.New("env.data.split.without: parts of the training range are left out, and windows would be taken from them")
	}
	set, _, err := prepared.Make(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	err = atomicfile.WriteFile(path, func(w io.Writer) error {
		_, err := set.WriteWindows(w, prepared.WindowOptions{Range: string(envs.Train), Horizon: horizon, Stride: stride})
		return err
	})
	return set.Manifest.W, set.Manifest.F, err
}
