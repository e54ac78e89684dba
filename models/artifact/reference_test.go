package artifact

import (
	"strings"
	"testing"
)

const hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestReferences(t *testing.T) {
	good := []struct {
		text string
		want Reference
	}{
		{"qtmrl", Reference{Name: "qtmrl", Alias: "latest"}},
		{"a", Reference{Name: "a", Alias: "latest"}},
		{"qtmrl:best", Reference{Name: "qtmrl", Alias: "best"}},
		{"team/qtmrl-us16.v2:Prod_1.0-rc", Reference{Name: "team/qtmrl-us16.v2", Alias: "Prod_1.0-rc"}},
		{"a__b/c--d_e:_x", Reference{Name: "a__b/c--d_e", Alias: "_x"}},
		{"qtmrl@sha256:0123", Reference{Name: "qtmrl", Digest: "sha256:0123"}},
		{"qtmrl@sha256:" + hex64, Reference{Name: "qtmrl", Digest: "sha256:" + hex64}},
		{"sha256:beef", Reference{Digest: "sha256:beef"}},
		{"runs/artifacts//qtmrl:best", Reference{Store: "runs/artifacts", Name: "qtmrl", Alias: "best"}},
		{"/abs//x//qtmrl", Reference{Store: "/abs//x", Name: "qtmrl", Alias: "latest"}},
		{`C:\runs//sha256:beef`, Reference{Store: `C:\runs`, Digest: "sha256:beef"}},
		{".//a/b@sha256:beef", Reference{Store: ".", Name: "a/b", Digest: "sha256:beef"}},
	}
	for _, c := range good {
		got, err := ParseReference(c.text)
		if err != nil || got != c.want {
			t.Errorf("%q: %+v, %v; want %+v", c.text, got, err, c.want)
			continue
		}
		if again, err := ParseReference(got.String()); err != nil || again != got {
			t.Errorf("%q: written as %q it is %+v, %v", c.text, got.String(), again, err)
		}
	}
	bad := []struct{ text, says string }{
		{"", "expected NAME, NAME:ALIAS"},
		{"runs//", "expected NAME, NAME:ALIAS"},
		{"//qtmrl", `no directory before "//"`},
		{"a\x00b//qtmrl", "zero byte"},
		{"QTMRL", `artefact name "QTMRL": expected lower-case letters`},
		{"q tmrl", `artefact name "q tmrl"`},
		{"-a", `artefact name "-a"`},
		{"a-", `artefact name "a-"`},
		{"a..b", `artefact name "a..b"`},
		{"a/", `artefact name "a/"`},
		{"../a", `artefact name "../a"`},
		{strings.Repeat("a", 201), "artefact name of 201 characters"},
		{"sha256", "reserved for digests"},
		{"sha256@sha256:beef", "reserved for digests"},
		{"a:", `alias ""`},
		{"a:b c", `alias "b c"`},
		{"a:-b", `alias "-b"`},
		{"a:b:c", `alias "b:c"`},
		{"a:" + strings.Repeat("b", 129), "alias"},
		{"a@", `digest ""`},
		{"a@best", `digest "best": expected sha256: and 4 to 64`},
		{"a@sha256:bee", `digest "sha256:bee"`},
		{"a@sha256:BEEF", `digest "sha256:BEEF"`},
		{"a@sha512:beef", `digest "sha512:beef"`},
		{"a:best@sha256:beef", `artefact name "a:best"`},
		{"sha256:", `digest "sha256:"`},
		{"sha256:" + hex64 + "0", "digest"},
	}
	for _, c := range bad {
		got, err := ParseReference(c.text)
		if err == nil || !strings.HasPrefix(err.Error(), "artefact reference ") || !strings.Contains(err.Error(), c.says) || got != (Reference{}) {
			t.Errorf("%q: %+v, error %v, want %q", c.text, got, err, c.says)
		}
	}
	if len(good) != 12 || len(bad) != 27 {
		t.Errorf("%d good and %d bad references", len(good), len(bad))
	}
}

func TestResolveByPrefix(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	// Until two digests begin with the same four digits of which one is another's name.
	byPrefix := map[string][]Version{}
	var twins []Version
	for k := float32(0); twins == nil; k++ {
		name := "even"
		if int(k)%2 == 1 {
			name = "odd"
		}
		v := publish(t, s, Draft{Manifest: Manifest{Name: name}, ModelBytes: modelBytes(1, k)})
		p := v.Digest[:len(digestPrefix)+1]
		byPrefix[p] = append(byPrefix[p], v)
		if len(byPrefix[p]) == 2 && byPrefix[p][0].Manifest.Name != name {
			twins = byPrefix[p]
		}
	}
	short := twins[0].Digest[:len(digestPrefix)+1]
	// Parsing asks for four digits; the search itself takes any number.
	if _, err := s.ResolveReference(Reference{Digest: short}); err == nil || !strings.Contains(err.Error(), "2 versions have a digest that begins so") {
		t.Errorf("error %v", err)
	}
	for _, v := range twins {
		got, err := s.ResolveReference(Reference{Name: v.Manifest.Name, Digest: short})
		if err != nil || got.Digest != v.Digest {
			t.Errorf("%s: %s, %v", v, got, err)
		}
		resolve(t, s, v.Digest)
		if _, err := s.Resolve("other@" + v.Digest); err == nil || !strings.Contains(err.Error(), "no such artefact") {
			t.Errorf("under another name: %v", err)
		}
	}
	if _, err := s.Resolve("elsewhere//even"); err == nil || !strings.Contains(err.Error(), "it names the store elsewhere") {
		t.Errorf("error %v", err)
	}
	if _, v, err := Find(s.Dir()+"//even", "unused"); err != nil || v.Manifest.Name != "even" {
		t.Errorf("%s, %v", v, err)
	}
	if _, _, err := Find("even", t.TempDir()); err == nil || !strings.Contains(err.Error(), "no artefact store") {
		t.Errorf("error %v", err)
	}
}

func FuzzParseReference(f *testing.F) {
	for _, s := range []string{"a", "a:b", "a@sha256:beef", "sha256:beef", "x//a:b", "//", "a//b//c", "\x00//a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseReference(s)
		if err != nil {
			return
		}
		if (r.Alias == "") == (r.Digest == "") || r.Name == "" && r.Digest == "" {
			t.Errorf("%q: %+v", s, r)
		}
		if again, err := ParseReference(r.String()); err != nil || again != r {
			t.Errorf("%q: %+v, as %q %+v, %v", s, r, r.String(), again, err)
		}
	})
}
