package app

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
)

// keyPlace is a key with the documents that have it, as config reference prints it; the JSON keys are
// stable.
type keyPlace struct {
	configs.Row
	// Of names the documents, each with the kinds that have to be chosen there.
	Of []string `json:"of"`
}

// keyBook finds keys of all documents.
type keyBook struct{ *configs.Book }

// find returns the keys of all documents with a path, or else those whose paths end with it. Keys
// that are the same in several kinds are one place.
func (b keyBook) find(path string) ([]keyPlace, error) {
	var known []string
	exact, ending := &keyPlaces{}, &keyPlaces{}
	for _, d := range documents {
		b.Walk(d.defaults(), func(p string, kinds []string, explain func() configs.Row) {
			known = append(known, p)
			switch {
			case p == path:
				exact.add(d.name, kinds, explain())
			case strings.HasSuffix(p, "."+path):
				ending.add(d.name, kinds, explain())
			}
		})
	}
	for _, found := range []*keyPlaces{exact, ending} {
		if len(found.list) > 0 {
			return found.list, nil
		}
	}
	slices.Sort(known)
	return nil, fmt.Errorf("no document has the key %q; %s", path, configs.Nearest(path, slices.Compact(known)))
}

type keyPlaces struct{ list []keyPlace }

func (p *keyPlaces) add(document string, kinds []string, k configs.Row) {
	of := strings.Join(append([]string{document}, kinds...), ", ")
	for i := range p.list {
		if l := &p.list[i]; l.Path == k.Path && l.Type == k.Type && l.Default == k.Default && l.Comment == k.Comment && l.Source == k.Source {
			if !slices.Contains(l.Of, of) {
				l.Of = append(l.Of, of)
			}
			return
		}
	}
	p.list = append(p.list, keyPlace{k, []string{of}})
}

// printPlaces writes a paragraph for each place.
func printPlaces(out io.Writer, list []keyPlace) {
	for _, p := range list {
		printKeys(out, []configs.Row{p.Row})
		of := p.Of
		if most := 4; len(of) > most {
			of = append(slices.Clone(of[:most]), fmt.Sprintf("and %d more", len(p.Of)-most))
		}
		fmt.Fprintf(out, "    In: %s\n    Source: %s\n", strings.Join(of, "; "), p.Source)
	}
}
