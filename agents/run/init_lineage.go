package run

import (
	"errors"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/transfer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// publishedAs returns the digest of the artefact whose parameters a source has, so that lineage
// leads from the runs that begin with them to the run that they are from. It is that of the
// artefact itself; what the run of a checkpoint published of the same env step; or what the run
// beside whose store an ONNX file lies published as that file. It is empty where there is none, for
// instance because the policy of that env step was not published.
func publishedAs(s *transfer.Source) (digest string, err error) {
	var same func(artifact.Version) (bool, error)
	dir := filepath.Dir(s.Name)
	switch s.Kind {
	case "artefact":
		return s.Digest, nil
	case "checkpoint":
		c, err := checkpoint.Open(s.Name)
		if err != nil {
			return "", err
		}
		step := c.Step
		if err := c.Close(); err != nil {
			return "", err
		}
		dir = filepath.Dir(dir)
		same = func(v artifact.Version) (bool, error) {
			return v.Manifest.Kind == "agent" && v.Manifest.EnvStep == step, nil
		}
	case "onnx":
		m, err := onnx.Load(s.Name)
		if err != nil {
			return "", err
		}
		same = func(v artifact.Version) (bool, error) { return v.Is(m) }
	default:
		return "", nil
	}
	store, err := artifact.Open(filepath.Join(dir, publish.StoreDir), artifact.Options{MustExist: true})
	if errors.Is(err, artifact.ErrNoStore) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	// A damaged version is no reason not to begin with one that is whole.
	list, _ := store.List()
	for _, v := range list {
		if ok, err := same(v); err == nil && ok {
			return v.Digest, nil
		}
	}
	return "", nil
}

// pastOf finds out which data the parameters of a source have seen: by the metadata of a published
// model, or by the configuration of the run that a checkpoint lies in. Other files do not say. The
// source was found by a reference, and artefacts without a store in the one given.
func pastOf(kinds experiment.Kinds, s *transfer.Source, ref, storeDir string) (past publish.Past, err error) {
	switch s.Kind {
	case "onnx":
		m, err := onnx.Load(s.Name)
		if err != nil {
			return past, err
		}
		return publish.PastOf(m)
	case "artefact":
		store, v, err := artifact.Find(ref, storeDir)
		if err != nil {
			return past, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		m, err := v.Model()
		if err != nil {
			return past, err
		}
		return publish.PastOf(m)
	case "checkpoint":
		path := filepath.Join(filepath.Dir(filepath.Dir(s.Name)), ConfigFile)
		if !isFile(path) {
			return past, nil
		}
		c, _, err := experiment.Load(path, nil)
		if err != nil {
			return past, err
		}
		past.Trained, past.Chosen = kinds.Periods(c)
	}
	return past, nil
}
