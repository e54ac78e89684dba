package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/transfer"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Init says what the runs of a plan begin with; the JSON keys are stable.
type Init struct {
	Ref     string            `json:"ref"`
	Partial bool              `json:"partial"`
	Rename  []transfer.Rename `json:"rename,omitempty"`
	// Source is what the reference meant, Summary how it fitted, and SHA256 is of the parameters
	// that were copied.
	Source  string `json:"source"`
	Summary string `json:"summary"`
	SHA256  string `json:"sha256"`
	// Statistics says of what the running statistics of normalisation were taken, too.
	Statistics string `json:"statistics,omitempty"`
	// Parent is the digest of the artefact that the parameters are those of, empty where they were
	// not published.
	Parent string `json:"parent,omitempty"`
	// Past is what the source has seen and knows of the future, as metadata of published models say
	// it; absent where that is not known.
	Past map[string]string `json:"past,omitempty"`
}

// initial is where the parameters of a plan's runs come from.
type initial struct {
	Init
	source     *transfer.Source
	statistics *statistics

	// shown and told say that what became of parameters and statistics was said.
	mu          sync.Mutex
	shown, told bool
}

// openInitial reads the names and shapes of a source.
func openInitial(ctx context.Context, kinds experiment.Kinds, r Init, store string) (*initial, error) {
	s, err := transfer.Load(ctx, r.Ref, store)
	if err != nil {
		return nil, fmt.Errorf("init %s: %w", r.Ref, err)
	}
	r.Source = objects.Named(s.Name)
	// A run that is resumed has found it when it began.
	if r.Parent == "" {
		if r.Parent, err = publishedAs(s); err != nil {
			return nil, fmt.Errorf("init %s: look for it among what its run published: %w", r.Ref, errors.Join(err, s.Close()))
		}
	}
	if r.Past == nil {
		past, err := pastOf(kinds, s, r.Ref, store)
		if err != nil {
			return nil, fmt.Errorf("init %s: %w", r.Ref, errors.Join(err, s.Close()))
		}
		r.Past = past.Info()
	}
	stats, err := statisticsOf(s)
	if err != nil {
		return nil, fmt.Errorf("init %s: %w", r.Ref, errors.Join(err, s.Close()))
	}
	return &initial{Init: r, source: s, statistics: stats}, nil
}

// past reads the record of what the source has seen; none without a source.
func (i *initial) past() (publish.Past, error) {
	if i == nil {
		return publish.Past{}, nil
	}
	m := &onnx.Model{}
	for k, v := range i.Past {
		m.SetMeta(bake.MetaPrefix+k, v)
	}
	return publish.PastOf(m)
}

// apply overwrites freshly drawn parameters. What became of each is shown once. All runs of a plan
// begin with the same, also those that are begun when it is resumed.
func (i *initial) apply(transferred func(*transfer.Report), values map[string]*tensor.Tensor) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	report, err := i.source.Apply(values, transfer.Options{Partial: i.Partial, Rename: i.Rename})
	if report != nil && !i.shown {
		i.shown = true
		if transferred != nil {
			transferred(report)
		}
	}
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	h := sha256.New()
	for _, m := range report.Matched {
		fmt.Fprintf(h, "%q %v\n", m.Name, m.Shape)
		h.Write(values[m.Name].Bytes())
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if i.SHA256 != "" && i.SHA256 != sum {
		return fmt.Errorf("init %s: it has changed since the first run of the group began with it: SHA-256 %s, was %s", i.Ref, short(sum), short(i.SHA256))
	}
	i.Summary, i.SHA256 = report.Summary(), sum
	return nil
}

// record returns what is known by now.
func (i *initial) record() *Init {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.Init
	r.Rename = slices.Clone(r.Rename)
	return &r
}
