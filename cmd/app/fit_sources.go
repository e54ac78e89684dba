package app

import (
	"fmt"
	"os"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/models/dataset"
	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// fitSources returns the digests of everything that a run reads. Large data is shown in progress,
// because all of it is read.
func (a *app) fitSources(cfg fit.Config) (map[string]string, error) {
	out := map[string]string{}
	add := func(key string, files []string, err error) error {
		if err != nil {
			return err
		}
		out[key+"_sha256"], err = a.digest(files)
		return err
	}
	if cfg.Model != "" {
		files, err := run.ModelFiles(cfg.Model)
		if err := add("model", files, err); err != nil {
			return nil, err
		}
	}
	files, err := dataset.Files(cfg.Data.Path)
	if err := add("data", files, err); err != nil {
		return nil, fmt.Errorf("open data %q: %w", cfg.Data.Path, err)
	}
	if p := cfg.Data.Validation.Path; p != "" {
		files, err = dataset.Files(p)
		if err := add("validation", files, err); err != nil {
			return nil, fmt.Errorf("open validation data %q: %w", p, err)
		}
	}
	for i, t := range cfg.Loss {
		if t.Path != "" {
			files, err = run.ModelFiles(t.Path)
			if err := add(fmt.Sprintf("loss%d", i), files, err); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// digest returns the SHA-256 of one file in hexadecimal, or of the list of digests and names of
// several.
func (a *app) digest(files []string) (string, error) {
	total := int64(0)
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return "", err
		}
		total += info.Size()
	}
	var bar *progress.Progress
	if total > 1<<28 {
		bar = progress.Start(a.err, progress.Options{Label: "hash", Unit: progress.Bytes, Total: total, Quiet: a.quiet})
		defer bar.Finish()
	}
	return run.Digest(files, bar.Reader)
}
