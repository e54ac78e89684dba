package run

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// madeFrom are the digests of the versions that the policies of a run are made from, the most
// important first. They are what their parameters began as, the models of their networks and of
// the experts that they choose between, and what the data set was imported from. What was not
// published has none; opponents are played against.
func (r *Run) madeFrom() (list []string, err error) {
	add := func(digests ...string) {
		for _, d := range digests {
			if d != "" && !slices.Contains(list, d) {
				list = append(list, d)
			}
		}
	}
	if r.plan.init != nil {
		add(r.plan.init.Parent)
	}
	text, err := configs.Marshal(r.cfg)
	if err != nil {
		return nil, err
	}
	doc, err := configs.Parse(ConfigFile, text)
	if err != nil {
		return nil, err
	}
	for _, key := range experiment.Models(doc) {
		path, ok := experiment.Path(doc, key)
		if !ok || strings.HasPrefix(key, "env.opponents") {
			continue
		}
		digest, err := r.plan.versionOf(path)
		if err != nil {
			return nil, fmt.Errorf("%s: look for the version that it is: %w", key, err)
		}
		add(digest)
	}
	if r.cfg.Dataset != nil {
		d, err := r.plan.kinds.Dataset(r.cfg.Dataset.Path)
		if err != nil {
			return nil, err
		}
		_, parents := d.Source()
		add(parents...)
	}
	return list, nil
}

// versionOf is the digest of the version that an ONNX file is; empty where there is none. It is one
// of the graph in the store beside it, or one of the same bytes in that of Options.InitStore.
func (p *Plan) versionOf(path string) (digest string, err error) {
	m, err := onnx.Load(path)
	if err != nil {
		return "", err
	}
	digest, err = publish.VersionOf(filepath.Join(filepath.Dir(path), publish.StoreDir), m)
	if errors.Is(err, artifact.ErrNoStore) {
		err = nil
	}
	if err != nil || digest != "" || p.job.InitStore == "" {
		return digest, err
	}
	s, err := artifact.Open(p.job.InitStore, artifact.Options{MustExist: true})
	if errors.Is(err, artifact.ErrNoStore) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256(text))
	// Damaged files do not keep a run from training with the others.
	list, _ := s.List()
	for _, v := range slices.Backward(list) {
		same := slices.ContainsFunc(v.Files, func(f artifact.File) bool { return f.MediaType == artifact.ModelType && f.Digest == sum })
		if !same {
			continue
		}
		// External data may differ.
		if ok, err := v.Is(m); err == nil && ok {
			return v.Digest, nil
		}
	}
	return "", nil
}
