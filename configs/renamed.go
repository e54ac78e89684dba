package configs

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
)

// Renamer is implemented by configurations some of whose keys had other names before. Documents,
// and paths into them, may still have those; each use is noted once, see [Section.Notes]. Where
// a document has both names, the one that was set later counts, and both in one file are an
// error.
type Renamer interface {
	// Renamed maps former keys to the key paths, below the struct, that they have now.
	Renamed() map[string]string
}

// notes is what decoding has found worth telling, shared by a document, its clones and sections,
// which may be decoded at the same time.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (t *notes) add(note string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.list, note) {
		t.list = append(t.list, note)
	}
}

// Note adds to what is worth telling of the document, see [Section.Notes].
func (d *Document) Note(text string) { d.notes.add(text) }

// Notes lists what decoding the document, or sections of it, has found worth telling so far: the
// uses of former names of keys, and what was noted of the document.
func (s Section) Notes() []string {
	if s.notes == nil {
		return nil
	}
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	return slices.Clone(s.notes.list)
}

// rename returns n with the keys that a value of type t has now. Nodes that change are copied.
func (d *decoding) rename(n *node, path string, t reflect.Type) *node {
	if n == nil || isLeaf(t) {
		return n
	}
	var below func(e entry) reflect.Type
	switch {
	case t.Kind() == reflect.Pointer:
		return d.rename(n, path, t.Elem())
	case t.Kind() == reflect.Struct && n.kind == kindMapping:
		if own, ok := reflect.New(t).Interface().(Renamer); ok {
			n = d.renameKeys(n, path, own.Renamed())
		}
		fields := map[string]reflect.Type{}
		for _, f := range fieldsOf(t) {
			fields[f.key] = f.typ
		}
		below = func(e entry) reflect.Type { return fields[e.key] }
	case t.Kind() == reflect.Map && n.kind == kindMapping:
		below = func(entry) reflect.Type { return t.Elem() }
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && n.kind == kindSequence:
		c := *n
		c.items = make([]*node, len(n.items))
		for i, item := range n.items {
			c.items[i] = d.rename(item, joinPath(path, fmt.Sprintf("[%d]", i)), t.Elem())
		}
		return &c
	default:
		return n
	}
	c := *n
	c.entries = slices.Clone(n.entries)
	for i, e := range c.entries {
		if inner := below(e); inner != nil {
			c.entries[i].value = d.rename(e.value, joinPath(path, pathKey(e.key)), inner)
		}
	}
	return &c
}

// renameKeys returns a copy of a mapping in which former keys have their names of now.
func (d *decoding) renameKeys(n *node, path string, now map[string]string) *node {
	isFormer := func(e entry) bool { return now[e.key] != "" }
	if !slices.ContainsFunc(n.entries, isFormer) {
		return n
	}
	renamed := Document{root: n.clone()}
	renamed.root.entries = slices.DeleteFunc(renamed.root.entries, isFormer)
	for _, e := range n.entries {
		if !isFormer(e) {
			continue
		}
		was, is := joinPath(path, pathKey(e.key)), joinPath(path, now[e.key])
		there, both := renamed.root.find(now[e.key])
		if both && there.at.edit == e.value.at.edit {
			d.errs = append(d.errs, newError(e.at, was, "is called %s now, which is given too (%s): leave one of them out", is, there.at))
			continue
		}
		d.notes.add(fmt.Sprintf("%s: %s is called %s now", e.at, was, is))
		if both && there.at.edit > e.value.at.edit {
			continue
		}
		if err := renamed.assign(now[e.key], e.value, e.at); err != nil {
			err.Path = was
			d.errs = append(d.errs, err)
		}
	}
	return renamed.root
}
