package convert

import (
	"io/fs"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
)

// form is a document of another program that is known by its keys.
type form struct {
	from string
	// marks are key paths that only documents of the form have.
	marks []string
	// base is the shipped experiment that the document changes; empty for none.
	base  string
	rules table
	// absent are values of keys that such documents do not have, each with its source.
	absent []absent
}

// absent is the value of a key that a form of documents does not have. Source says where it comes from.
type absent struct {
	path   string
	value  any
	source string
}

var forms = []form{qtmrl, population}

// Known translates a document of another program that its keys identify: QTMRL's default.yaml.
// Any other is returned as it is.
func Known(doc *configs.Document) (*configs.Document, error) {
	keys := doc.Section().Keys()
	has := func(path string) bool { _, ok := doc.Lookup(path); return ok }
	if slices.Contains(keys, "env") || slices.Contains(keys, "agent") {
		return doc, nil
	}
	for _, f := range forms {
		if slices.ContainsFunc(f.marks, has) {
			return f.translate(doc)
		}
	}
	for _, key := range keys {
		if _, ok := doc.Lookup(quoted(key) + ".n_timesteps"); ok {
			s := doc.Section()
			return nil, s.Errorf(quoted(key), "these are RL-Zoo's hyper-parameters of an environment: onnxrl train --zoo FILE --env-id ID trains with one of them")
		}
	}
	return doc, nil
}

func (f *form) translate(source *configs.Document) (*configs.Document, error) {
	var text []byte
	if f.base != "" {
		// The file is part of the program.
		text, _ = fs.ReadFile(configs.Shipped(), f.base)
	}
	doc, err := configs.Parse("shipped "+f.base, text)
	if err != nil {
		return nil, err
	}
	t := &translation{from: f.from, doc: doc}
	t.walk(source.Section(), f.rules, "")
	for _, a := range f.absent {
		t.did = nil
		t.set(a.path, a.value, source.Section())
		t.say("no key", append(t.did, a.source)...)
	}
	return t.end()
}
