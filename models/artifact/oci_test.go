package artifact

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Another program's implementation of the image layout, oras-go, finds every version by tag and
// digest, reads every blob, and copies a version with all that belongs to it.
func TestOrasReadsTheStore(t *testing.T) {
	s := open(t, t.TempDir(), Options{Now: clock()})
	first := publish(t, s, draft("team/a", 1))
	d := draft("team/a", 2)
	d.Aliases = []string{"best"}
	second := publish(t, s, d)
	ctx := t.Context()
	there, err := oci.NewWithContext(ctx, s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range sorted.All(map[string]Version{"team/a:latest": second, "team/a:best": second, first.Digest: first, second.Digest: second}) {
		desc, err := there.Resolve(ctx, ref)
		if err != nil || desc.Digest.String() != want.Digest {
			t.Errorf("%s: %v, %v", ref, desc.Digest, err)
			continue
		}
		successors, err := content.Successors(ctx, there, desc)
		if err != nil || len(successors) != 1+len(want.Files) || successors[0].MediaType != ConfigType {
			t.Errorf("%s has %d parts, %v", ref, len(successors), err)
		}
		for i, f := range want.Files {
			if got := successors[1+i]; got.Digest.String() != f.Digest || got.Annotations[ocispec.AnnotationTitle] != f.Title || got.MediaType != f.MediaType {
				t.Errorf("%s: part %d is %+v", ref, i, got)
			}
			b, err := content.FetchAll(ctx, there, successors[1+i])
			if err != nil {
				t.Fatal(err)
			}
			r, err := want.Open(f.Title)
			if err != nil {
				t.Fatal(err)
			}
			own, err := io.ReadAll(r)
			if r.Close(); err != nil || !bytes.Equal(own, b) {
				t.Errorf("%s: %q differs, %v", ref, f.Title, err)
			}
		}
	}
	// A registry in memory, and from there into a store of its own.
	hub := memory.New()
	if _, err := oras.Copy(ctx, there, "team/a:best", hub, "prod", oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Resolve(ctx, "prod"); err != nil {
		t.Error(err)
	}
}

// The index's names of aliases are in the grammar of image-spec's annotations.md, but for names
// with a double underscore or more than two dashes, which no program that reads the annotation as a
// whole minds.
func TestNamesInTheIndex(t *testing.T) {
	ref := regexp.MustCompile(`^[A-Za-z0-9]+((--|[-._:@+])[A-Za-z0-9]+)*(/[A-Za-z0-9]+((--|[-._:@+])[A-Za-z0-9]+)*)*$`)
	for name, want := range sorted.All(map[string]bool{tag("qtmrl", "best"): true, tag("team/qtmrl-us16", "v1.2"): true, tag("a_b.c--d", Latest): true, tag("a__b", Latest): false}) {
		if got := ref.MatchString(name); got != want {
			t.Errorf("%s in the grammar: %v", name, got)
		}
	}
}

// Everything that oras-go writes into a store, aliases, versions of ours and artefacts of
// others, is read, kept and not taken for something else.
func TestOrasWritesIntoTheStore(t *testing.T) {
	ctx := t.Context()
	from := open(t, t.TempDir(), Options{Now: clock()})
	v := publish(t, from, draft("a", 1))
	source, err := oci.New(from.Dir())
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, t.TempDir(), Options{Now: clock()})
	own := publish(t, s, draft("b", 1))
	there, err := oci.New(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oras.Copy(ctx, source, "a:latest", there, "a:copied", oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	foreign, err := oras.PackManifest(ctx, there, oras.PackManifestVersion1_1, "application/vnd.example.other", oras.PackManifestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := there.Tag(ctx, foreign, "other"); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		if got := resolve(t, s, "a:copied"); got.Digest != v.Digest {
			t.Errorf("%s: %s", when, got)
		}
		if got := resolve(t, s, "b"); got.Digest != own.Digest || !got.Published.Equal(own.Published) {
			t.Errorf("%s: %s of %v", when, got, got.Published)
		}
		if _, err := s.Resolve(foreign.Digest.String()); err == nil {
			t.Errorf("%s: another program's artefact was found", when)
		}
		list, err := s.List()
		if err != nil {
			t.Fatal(err)
		}
		if n := verifyAll(t, s.Dir()); len(list) != n {
			t.Errorf("%s: %d listed, %d verified", when, len(list), n)
		}
		again, err := oci.New(s.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if desc, err := again.Resolve(context.Background(), "other"); err != nil || desc.Digest != foreign.Digest {
			t.Errorf("%s: the other program's artefact is gone: %v", when, err)
		}
	}
	check("after oras")
	// It has written one entry for a version and its tag: moving the tag away keeps the version.
	publish(t, s, draft("b", 2))
	if _, err := s.Alias(ctx, "b", "copied"); err != nil {
		t.Fatal(err)
	}
	d := draft("a", 2)
	d.Aliases = []string{"copied"}
	moved := publish(t, s, d)
	if got := resolve(t, s, "a:copied"); got.Digest != moved.Digest {
		t.Errorf("the alias was not moved: %s", got)
	}
	resolve(t, s, v.Digest)
	resolve(t, s, own.Digest)
	if _, err := s.Alias(ctx, v.Digest, "copied"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Alias(ctx, own.Digest, Latest); err != nil {
		t.Fatal(err)
	}
	check("after publishing")
}
