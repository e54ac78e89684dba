package objects

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsAreNotShown(t *testing.T) {
	for _, raw := range []string{
		"mem://user:hunter2@host/x", "mem://host/x?secret_key=hunter2", "mem://host/x?endpoint=http://u:hunter2@h",
		"s3://b/x?a=%zz&k=hunter2", "mem://user:hunter2%zz@host", "://hunter2@", "file:///x?key=hunter2", "none://hunter2@x/y", "mem://h/%zz?k=hunter2",
	} {
		if got := Redact(raw); strings.Contains(got, "hunter2") {
			t.Errorf("redacted: %s", got)
		}
		_, err := Open(t.Context(), raw, Options{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", raw, err)
		}
	}
	const plain = "s3://bucket/prefix?endpoint=http%3A%2F%2Flocalhost%3A7070&region=eu"
	if got := Redact(plain); got != plain {
		t.Errorf("%s became %s", plain, got)
	}
}

func TestFilesAndTags(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	s, err := Open(t.Context(), "file://"+filepath.ToSlash("/"+strings.TrimPrefix(root, "/")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir := writeTree(t, 5)
	ref, err := s.PutTree(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetTag(t.Context(), "population/latest", []byte(ref)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Tag(t.Context(), "population/latest")
	if err != nil || Digest(got) != ref {
		t.Fatal(string(got), err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	if err := s.GetTree(t.Context(), Digest(got), to); err != nil {
		t.Fatal(err)
	}
	same(t, to, dir)
	if err := s.SetTag(t.Context(), "../x", nil); err == nil {
		t.Error("a tag outside")
	}
}
