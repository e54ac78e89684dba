package convert

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
)

// rule is what becomes of a key. It reports problems with translation.fail.
type rule func(t *translation, s configs.Section)

// table has rules by key path.
type table map[string]rule

// to moves a value as it is.
func to(path string) rule {
	return func(t *translation, s configs.Section) { t.set(path, s, s) }
}

// integer moves a value that may be written as 1e6.
func integer(path string) rule {
	return func(t *translation, s configs.Section) {
		var n int64
		if s.Decode(&n) == nil {
			t.set(path, n, s)
		} else {
			t.set(path, s, s) // which is reported as a problem of the document
		}
	}
}

// unused is a key that makes no difference here.
func unused(why string) rule {
	return func(t *translation, _ configs.Section) { t.did = append(t.did, "not needed: "+why) }
}

// refused is a key that has no equal here.
func refused(why string) rule {
	return func(t *translation, s configs.Section) { t.fail(s, "%s", why) }
}

// words translates the words of a key.
func words(path string, now map[string]string) rule {
	return func(t *translation, s configs.Section) {
		var word string
		if err := s.Decode(&word); err != nil {
			t.add(err)
		} else if w, ok := now[word]; ok {
			t.set(path, w, s)
		} else {
			t.fail(s, "%q has no equal here: expected %s", word, strings.Join(slices.Sorted(maps.Keys(now)), ", "))
		}
	}
}

// translation makes a document of another.
type translation struct {
	// from is what the source is called in notes.
	from string
	doc  *configs.Document
	errs configs.Errors
	// did is what has become of the present key.
	did []string
}

// set gives a key of the new document a value, whose place is that of a section of the source.
func (t *translation) set(path string, v any, from configs.Section) {
	if err := t.doc.SetFrom(path, v, from); err != nil {
		t.add(err)
		return
	}
	t.did = append(t.did, path+inline(v))
}

func (t *translation) fail(s configs.Section, format string, args ...any) {
	t.add(s.Errorf("", format, args...))
}

func (t *translation) add(err error) {
	var list configs.Errors
	errors.As(err, &list)
	t.errs = append(t.errs, list...)
}

// walk applies a table to a mapping. Mappings that have no rule are looked into; path is that of
// the mapping in the table.
func (t *translation) walk(s configs.Section, rules table, path string) {
	for _, key := range s.Keys() {
		name := strings.TrimPrefix(path+"."+key, ".")
		inner, _ := s.Lookup(quoted(key))
		t.key(inner, name, rules)
	}
}

// quoted is a key as a path has it.
func quoted(key string) string {
	if strings.ContainsAny(key, ".[]\"=\n") {
		return fmt.Sprintf("[%q]", key)
	}
	return key
}

func (t *translation) key(s configs.Section, name string, rules table) {
	r, ok := rules[name]
	if !ok {
		if len(s.Keys()) > 0 {
			t.walk(s, rules, name)
			return
		}
		t.fail(s, "%s has no such key, or none that is understood", t.from)
		return
	}
	t.did = nil
	problems := len(t.errs)
	r(t, s)
	if len(t.errs) == problems {
		t.say(name+inline(s), t.did...)
	}
}

// say notes what has become of something.
func (t *translation) say(what string, did ...string) {
	t.doc.Note(fmt.Sprintf("%s: %s -> %s", t.from, what, strings.Join(did, ", ")))
}

// end returns the document, or the problems.
func (t *translation) end() (*configs.Document, error) {
	if len(t.errs) > 0 {
		t.errs.Sort()
		return nil, t.errs
	}
	return t.doc, nil
}

// inline is a value as it is said behind its key, nothing for what has several lines.
func inline(v any) string {
	if s, ok := v.(configs.Section); ok && !s.IsScalar() {
		return ""
	}
	text, err := configs.Marshal(map[string]any{"v": v})
	if line := strings.TrimPrefix(strings.TrimSpace(string(text)), "v"); err == nil && !strings.Contains(line, "\n") {
		return line
	}
	return ""
}
