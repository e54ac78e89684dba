package run

import (
	"fmt"
	"maps"
	"strings"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
)

// dataDigest is the source that a market's data are.
const dataDigest = "data_sha256"

// Sources returns the SHA-256 of what an experiment is made from beside its document, in
// hexadecimal: its data, and the files of its networks. Files are read by digest, nil for [Digest].
func Sources(kinds experiment.Kinds, doc *configs.Document, f envs.Factory, digest func(files []string) (string, error)) (map[string]string, error) {
	if digest == nil {
		digest = func(files []string) (string, error) { return Digest(files, nil) }
	}
	out := map[string]string{}
	if m, ok := f.(interface{ Inside() envs.Factory }); ok {
		f = m.Inside()
	}
	maps.Copy(out, kinds.Sources(f))
	if dir, ok := experiment.Path(doc, experiment.DatasetPath); ok {
		d, err := kinds.Dataset(dir)
		if err != nil {
			return nil, err
		}
		out["dataset_sha256"], _ = d.Source()
	}
	for _, key := range experiment.Models(doc) {
		path, ok := experiment.Path(doc, key)
		if !ok {
			continue
		}
		files, err := ModelFiles(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		part := strings.TrimSuffix(key[strings.Index(key, ".")+1:], ".path")
		if out[part+"_sha256"], err = digest(files); err != nil {
			return nil, err
		}
	}
	return out, nil
}
