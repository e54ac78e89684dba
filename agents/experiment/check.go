package experiment

import (
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
)

// Book describes what documents can name, without comments.
func (k Kinds) Book() *configs.Book {
	b := &configs.Book{Lists: map[string][]configs.Kind{}, Comments: map[string]string{}}
	add := func(list, name, summary string, defaults func() any) {
		b.Lists[list] = append(b.Lists[list], configs.Kind{Name: name, Summary: summary, Defaults: defaults})
	}
	for _, k := range k.Envs {
		add("env", k.Name, k.Summary, k.Defaults)
	}
	for _, k := range k.Agents {
		add("algo", k.Name, k.Summary, k.Defaults)
	}
	for _, k := range k.Encoders {
		add("encoder", k.Name, k.Summary, k.Defaults)
	}
	maps.Copy(b.Lists, k.Lists)
	return b
}

// Decode decodes a document. Its problems are reported at once, those of the kinds that it names
// included, as a [configs.Errors]. The section tune is left to package tune.
func (k Kinds) Decode(doc *configs.Document) (Config, error) {
	c := Defaults()
	problems := k.Book().Check(doc.Section(), c)
	if k.Note != nil {
		for _, note := range doc.Section().Notes() {
			k.Note(note)
		}
	}
	if len(problems) > 0 {
		return c, k.unconstrained(problems)
	}
	return c, doc.Decode(&c)
}

// unconstrained says of a key that not all algorithms have which ones do.
func (k Kinds) unconstrained(problems configs.Errors) configs.Errors {
	const key = "constraints"
	var able []string
	for _, a := range k.Agents {
		if slices.ContainsFunc(configs.Keys(a.Defaults()), func(x configs.Key) bool { return x.Path == key }) {
			able = append(able, a.Name)
		}
	}
	for _, p := range problems {
		if p.Path == "agent."+key && strings.HasPrefix(p.Message, "unknown key") {
			p.Message = "the algorithm cannot be trained under constraints; these can: " + strings.Join(able, ", ")
		}
	}
	return problems
}

// Load is the function [Load], but all problems of the document are reported, as by
// [Kinds.Decode].
func (k Kinds) Load(path string, sets []string) (Config, *configs.Document, error) {
	return load(k.Read, path, sets, k.Decode)
}

// Read reads the document of a path, by k.Document where there is one, and translates it where it is
// another program's.
func (k Kinds) Read(path string) (*configs.Document, error) {
	read := k.Document
	if read == nil {
		read = Document
	}
	doc, err := read(path)
	if err != nil || k.Translate == nil {
		return doc, err
	}
	return k.Translate(doc)
}
