package configs

import (
	"strings"
)

// Section is a part of a document that has not been decoded: the owner of its type does that later,
// as strictly as for the document itself and with the same positions in errors. Use it as the type
// of a field. The zero Section is an absent one.
type Section struct {
	node  *node
	path  string
	notes *notes
}

// NewSection returns the section that [Marshal] would write for v, for building a document in code
// or for putting the effective values of a decoded section back into the document it came from.
func NewSection(v any) (Section, error) {
	n, err := encodeValue(v)
	if err != nil {
		return Section{}, err
	}
	return Section{node: n}, nil
}

// Section is the whole document as a section.
func (d *Document) Section() Section { return Section{node: d.root, notes: d.notes} }

// IsZero reports whether the section is absent.
func (s Section) IsZero() bool { return s.node == nil }

// Path is the key path of the section in its document; empty for a whole document.
func (s Section) Path() string { return s.path }

// Position is "file:line:column" or the command-line assignment that set the section; empty where
// it was built in code.
func (s Section) Position() string {
	if s.node == nil {
		return ""
	}
	return s.node.at.String()
}

// Keys lists the keys of a mapping in the order of the document; nil for anything else.
func (s Section) Keys() []string {
	if s.node == nil {
		return nil
	}
	var keys []string
	for _, e := range s.node.entries {
		keys = append(keys, e.key)
	}
	return keys
}

// Lookup returns the section at a path inside this one; ok is false where it does not have it.
func (s Section) Lookup(path string) (inner Section, ok bool) {
	if s.node == nil {
		return Section{}, false
	}
	n, ok := s.node.find(path)
	if !ok {
		return Section{}, false
	}
	return Section{node: n, path: joinPath(s.path, path), notes: s.notes}, true
}

// IsScalar reports whether the section is a single value and neither a list, a mapping nor absent.
func (s Section) IsScalar() bool { return s.node != nil && s.node.kind < kindSequence }

// Decode reads the section into the value that into points to, which holds the defaults, and
// validates it. An absent section decodes as an empty mapping, which leaves the defaults. The error
// is an [Errors].
func (s Section) Decode(into any) error {
	if s.node == nil {
		return locate(&node{}, s.path, Validate(into))
	}
	return decodeNode(s.node, s.path, s.notes, into)
}

// Errorf returns an error placed at the section, or at the value under key where key is not empty.
func (s Section) Errorf(key, format string, args ...any) error {
	n := s.node
	if n == nil {
		n = &node{}
	}
	if key != "" {
		n, _ = n.find(key)
	}
	return Errors{newError(n.at, joinPath(s.path, key), format, args...)}
}

// DecodeConfig keeps the raw section.
func (s *Section) DecodeConfig(raw Section) error {
	if raw.node != nil && raw.node.kind == kindNull {
		raw.node = nil
	}
	*s = raw
	return nil
}

// EncodeConfig writes the section as it was read.
func (s Section) EncodeConfig() (any, error) { return s, nil }

// Kinded is a mapping whose key "kind" names the owner of the other keys:
//
//	agent:
//	  kind: ppo
//	  learning_rate: 3e-4
//
// Section holds the other keys. The zero Kinded is an absent one; whoever requires it checks Kind.
type Kinded struct {
	Kind string
	Section
	at position // of the name
}

// NewKinded returns a Kinded whose parameters are what [Marshal] would write for params, a struct
// or nil.
func NewKinded(kind string, params any) (Kinded, error) {
	if params == nil {
		return Kinded{Kind: kind}, nil
	}
	s, err := NewSection(params)
	return Kinded{Kind: kind, Section: s}, err
}

// DecodeConfig splits the mapping into the kind and its parameters.
func (k *Kinded) DecodeConfig(raw Section) error {
	n := raw.node
	if n == nil || n.kind == kindNull {
		*k = Kinded{}
		return nil
	}
	if n.kind != kindMapping {
		return raw.Errorf("", "expected a mapping with the key kind, found %s", describe(n))
	}
	name := n.lookup("kind")
	if name == nil {
		return raw.Errorf("", "the key kind is missing; it says what this section configures")
	}
	if name.kind != kindString || strings.TrimSpace(name.text) == "" {
		return raw.Errorf("kind", "expected a name, found %s", describe(name))
	}
	rest := &node{kind: kindMapping, at: n.at}
	for _, e := range n.entries {
		if e.key != "kind" {
			rest.entries = append(rest.entries, e)
		}
	}
	*k = Kinded{Kind: name.text, Section: Section{node: rest, path: raw.path, notes: raw.notes}, at: name.at}
	return nil
}

// EncodeConfig writes kind first and the parameters after it.
func (k Kinded) EncodeConfig() (any, error) {
	if k.Kind == "" {
		return nil, nil
	}
	out := &node{kind: kindMapping, entries: []entry{{key: "kind", value: &node{kind: kindString, text: k.Kind}}}}
	if k.node != nil {
		out.entries = append(out.entries, k.node.entries...)
	}
	return Section{node: out}, nil
}

// Unknown returns the error for a kind that is in no table, placed at the kind, with a suggestion
// from known.
func (k Kinded) Unknown(known []string) error {
	return Errors{newError(k.at, joinPath(k.path, "kind"), "unknown kind %q; %s", k.Kind, Nearest(k.Kind, known))}
}
