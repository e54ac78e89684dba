package configs

import (
	"reflect"
	"slices"
	"strings"
)

// textWidth is where the lines of comments end.
const textWidth = 96

// Template writes a document with every key and its default, each below what it means. Keys that
// may be left out, and are, stand behind "#"; what has to be given is marked as required. chosen
// names the kinds whose keys are written, by the path of the mapping, "" for a section; others are
// left to choose.
func (b *Book) Template(defaults any, chosen map[string]string) string {
	w := &writer{Book: b, chosen: chosen, missing: required(defaults)}
	w.keys(Keys(defaults), "", "")
	return w.text.String()
}

// Minimal writes a document with the kinds that are chosen, what has to be given, and the keys of
// these paths, each with its default.
func (b *Book) Minimal(defaults any, chosen map[string]string, paths ...string) string {
	w := &writer{Book: b, chosen: chosen, missing: required(defaults), only: paths}
	w.keys(Keys(defaults), "", "")
	return w.text.String()
}

type writer struct {
	*Book
	text    strings.Builder
	chosen  map[string]string
	missing map[string]string
	// only, unless nil, limits the keys to those of these paths, of what is chosen and required.
	only []string
}

// wants reports whether a key is written, whose path is base and k.Path.
func (w *writer) wants(k Key, base string) bool {
	path := base + k.Path
	_, chosen := w.chosen[path]
	return w.only == nil || chosen || expands(w.chosen, path) || requires(w.missing, k.Path) ||
		slices.ContainsFunc(w.only, func(p string) bool { return p == path || strings.HasPrefix(p, path+".") })
}

// keys writes keys at an indentation; base is the path of the mapping of the kind that has them.
func (w *writer) keys(keys []Key, prefix, base string) {
	said := map[string]bool{"": true}
	for _, k := range keys {
		path := base + k.Path
		if !w.wants(k, base) {
			continue
		}
		if text := w.Comment(k); !said[text] && (w.only == nil || len(k.Keys) == 0) {
			said[text] = true // once for all the keys of a mapping that it explains
			w.say(prefix, text)
		}
		kind, expand := w.chosen[path]
		list := k.Field.Tag.Get("kinds") + k.Field.Tag.Get("section")
		if names := w.names(list); !expand && len(names) > 0 && names[0] != "" {
			w.say(prefix, "Kinds: "+strings.Join(names, ", ")+".")
		}
		switch found := w.find(list, kind); {
		case expand && found != nil:
			w.text.WriteString(prefix + k.Name + ":\n")
			if kind != "" {
				w.text.WriteString(prefix + "  kind: " + kind + "\n")
			}
			if found.Defaults != nil {
				d := found.Defaults()
				inner := &writer{Book: w.Book, chosen: w.chosen, missing: required(d), only: w.only}
				inner.keys(Keys(d), prefix+"  ", path+".")
				w.text.WriteString(inner.text.String())
			}
		case k.Optional && !expands(w.chosen, path) && !requires(w.missing, k.Path):
			w.text.WriteString(prefix + "#" + k.Name + ": " + w.line(k) + "\n")
		case len(k.Keys) > 0:
			w.text.WriteString(prefix + k.Name + ":\n")
			w.keys(k.Keys, prefix+"  ", base)
		default:
			w.value(prefix, k, w.missing[k.Path])
		}
	}
}

// expands reports whether a kind is chosen somewhere below a path.
func expands(chosen map[string]string, path string) bool {
	for p := range chosen {
		if strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// requires reports whether a key, or one below it, has to be given.
func requires(missing map[string]string, path string) bool {
	for p := range missing {
		if p == path || strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// line writes the default of a key on one line.
func (w *writer) line(k Key) string {
	if len(k.Keys) == 0 || isNil(k.Default) {
		return flow(k.Default)
	}
	var parts []string
	for _, inner := range k.Keys {
		parts = append(parts, inner.Name+": "+w.line(inner))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// value writes a key whose value is no mapping of keys of its own.
func (w *writer) value(prefix string, k Key, missing string) {
	if missing != "" {
		missing = "  # REQUIRED: " + strings.ReplaceAll(missing, "\n", " ")
	}
	if !k.Default.IsValid() || isNil(k.Default) {
		w.text.WriteString(prefix + k.Name + ": null" + missing + "\n")
		return
	}
	// A value that was read from defaults can be written.
	text, _ := Marshal(map[string]any{k.Name: k.Default.Interface()})
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i, l := range lines {
		if i == 0 {
			l += missing
		}
		w.text.WriteString(prefix + l + "\n")
	}
}

func isNil(v reflect.Value) bool { return v.Kind() == reflect.Pointer && v.IsNil() }

// say writes a comment at an indentation.
func (w *writer) say(prefix, text string) {
	for _, l := range Wrap(text, textWidth-len(prefix)-2) {
		w.text.WriteString(strings.TrimRight(prefix+"# "+l, " ") + "\n")
	}
}

// Wrap breaks text into lines of at most that many bytes where it can; lines that begin with a
// space or a tab stay as they are.
func Wrap(text string, width int) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == ' ' || line[0] == '\t' {
			lines = append(lines, strings.ReplaceAll(line, "\t", "  "))
			continue
		}
		now := ""
		for _, word := range strings.Fields(line) {
			if now != "" && len(now)+1+len(word) > width {
				lines = append(lines, now)
				now = ""
			}
			if now != "" {
				now += " "
			}
			now += word
		}
		lines = append(lines, now)
	}
	return lines
}
