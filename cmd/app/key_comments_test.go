package app

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/configs"
)

// describedTypes returns the keys of every struct that documents are decoded into, by type.
func describedTypes() map[reflect.Type][]configs.Key {
	types := map[reflect.Type][]configs.Key{}
	var walk func(keys []configs.Key)
	walk = func(keys []configs.Key) {
		for _, k := range keys {
			types[k.Owner] = append(types[k.Owner], k)
			if t := k.Field.Type; t.Kind() == reflect.Struct && len(k.Keys) > 0 && types[t] == nil {
				types[t] = []configs.Key{}
			}
			walk(k.Keys)
			walk(k.Items)
		}
	}
	for _, d := range documents {
		walk(configs.Keys(d.defaults()))
	}
	a := &app{kinds: kinds.All()}
	for _, list := range sorted.All(a.book().Lists) {
		for _, k := range list {
			walk(configs.Keys(k.Defaults()))
		}
	}
	return types
}

// TestKeyComments demands that what onnxrl config says of the keys is what the source says, and
// that something is said of each: run it with -update, as go generate does, when it is not.
func TestKeyComments(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	types := describedTypes()
	all := fieldNames(types)
	table := map[string]string{}
	folders := map[string][]*ast.File{}
	for typ, keys := range sorted.Func(types, byTypeName) {
		name := configs.TypeName(typ)
		folder, decl, _ := strings.Cut(name, ".")
		if folders[folder] == nil {
			folders[folder] = sources(t, filepath.Join("../..", folder))
		}
		describe(table, name, findStruct(t, folders[folder], decl), keys, all)
	}
	onlyShown(table, types)
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(table); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("key_comments.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want.Bytes(), keyComments) {
		t.Error("key_comments.json is not what the source says: run go generate ./cmd/app")
	}
	b, explained := (&app{kinds: kinds.All()}).book(), 0
	for typ, keys := range sorted.Func(types, byTypeName) {
		for _, k := range keys {
			if b.Comment(k) == "" {
				t.Errorf("%s.%s has no comment that says what the key %s means", configs.TypeName(typ), k.Field.Name, k.Name)
			}
			if found := goWords.FindString(b.Comment(k)); found != "" {
				t.Errorf("%s.%s: %q is no word of a document: %s", configs.TypeName(typ), k.Field.Name, found, b.Comment(k))
			}
			explained++
		}
	}
	if explained < 400 {
		t.Errorf("only %d keys are explained", explained)
	}
}

// goWords are what comments say to readers of the source alone.
var goWords = regexp.MustCompile(`\bnil\b|\bpackage [a-z]+[.,;:)]|package comment|Defaults returns|\b[Zz]ero (value|[A-Z])|\[\w+\.\w+\]|\bgoroutine|\bWith[A-Z]|^[A-Z]\w* (is|are|says|describes|names|chooses) `)

// onlyShown takes the comments of types off a table that no key shows, because it has its own.
func onlyShown(table map[string]string, types map[reflect.Type][]configs.Key) {
	shown := map[string]bool{}
	for _, keys := range sorted.Func(types, byTypeName) {
		for _, k := range keys {
			if t := k.Field.Type; table[configs.TypeName(k.Owner)+"."+k.Field.Name] == "" {
				if t.Kind() == reflect.Pointer {
					t = t.Elem()
				}
				shown[configs.TypeName(t)] = true
			}
		}
	}
	for typ := range sorted.Func(types, byTypeName) {
		if name := configs.TypeName(typ); !shown[name] {
			delete(table, name)
		}
	}
}

// sources parses the files of a package without its tests.
func sources(t *testing.T, folder string) (files []*ast.File) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no source: %v", folder, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// structDecl is a declaration of a struct and its comment.
type structDecl struct {
	doc    string
	fields []*ast.Field
}

func findStruct(t *testing.T, files []*ast.File, name string) structDecl {
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok || spec.Name.Name != name {
					continue
				}
				if st, ok := spec.Type.(*ast.StructType); ok {
					doc := spec.Doc.Text()
					if doc == "" {
						doc = g.Doc.Text()
					}
					return structDecl{doc, st.Fields.List}
				}
			}
		}
	}
	t.Fatalf("no struct %s in the source", name)
	return structDecl{}
}

// fieldNames are the keys of fields whose names are no words, such as NumEnvs, unless structs call
// them differently: comments speak of the fields of other structs, too.
func fieldNames(types map[reflect.Type][]configs.Key) map[string]string {
	named, noWord := map[string]string{}, regexp.MustCompile(`^[A-Z][a-z0-9]+[A-Z]|^[A-Z]+[A-Z][a-z]`)
	for _, keys := range sorted.Func(types, byTypeName) {
		for _, k := range keys {
			if n := k.Field.Name; noWord.MatchString(n) {
				if old, there := named[n]; there && old != k.Name {
					named[n] = n
				} else if !there {
					named[n] = k.Name
				}
			}
		}
	}
	return named
}

// describe adds what the source says of a struct's keys. A field without a comment has that of the
// fields before it, if it is mentioned there.
func describe(table map[string]string, name string, s structDecl, keys []configs.Key, all map[string]string) {
	named, words := map[string]string{}, maps.Clone(all)
	for _, k := range keys {
		named[k.Field.Name], words[k.Field.Name] = k.Name, k.Name
	}
	add := func(key, text string) {
		if text = plain(text, words); text != "" {
			table[key] = text
		}
	}
	add(name, s.doc)
	last := ""
	for _, f := range s.fields {
		text := f.Doc.Text() + f.Comment.Text()
		for _, n := range f.Names {
			if named[n.Name] == "" {
				continue
			}
			switch {
			case text != "":
				last = text
				add(name+"."+n.Name, text)
			case slices.Contains(wordsOfText.FindAllString(last, -1), n.Name):
				add(name+"."+n.Name, last)
			}
		}
	}
}

// plain is the text of a comment with a line for each paragraph and with keys for the names of
// fields.
func plain(text string, named map[string]string) string {
	p := &comment.Printer{TextWidth: -1}
	text = strings.TrimSpace(string(p.Text(new(comment.Parser).Parse(text))))
	text = wordsOfText.ReplaceAllStringFunc(text, func(word string) string {
		if key := named[word]; key != "" {
			return key
		}
		return word
	})
	// Links to other symbols are none here.
	return linksOfText.ReplaceAllString(text, "$1")
}

var (
	wordsOfText = regexp.MustCompile(`\w+`)
	linksOfText = regexp.MustCompile(`\[([A-Z][a-z]\w*(\.\w+)*)\]`)
)

func byTypeName(a, b reflect.Type) int {
	return strings.Compare(configs.TypeName(a), configs.TypeName(b))
}
