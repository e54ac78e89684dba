package artifact

import (
	"fmt"
	"regexp"
	"strings"
)

// Latest is the alias that every publication moves, and that a name without an alias means.
const Latest = "latest"

const (
	digestPrefix    = "sha256:"
	minDigestDigits = 4
	maxName         = 200
)

// Reference names a version; see the package comment for how it is written.
type Reference struct {
	// Store is the directory of the store; empty means the one that the context decides.
	Store string
	// Name is empty where a digest alone says which version is meant.
	Name string
	// Alias is empty where Digest is not.
	Alias string
	// Digest is "sha256:" with 4 to 64 hexadecimal digits, or empty.
	Digest string
}

var (
	namePattern   = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	aliasPattern  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{4,64}$`)
)

// CheckName reports whether an artefact may have this name.
func CheckName(name string) error {
	switch {
	case name == "sha256":
		return fmt.Errorf("artefact name %q: it is reserved for digests", name)
	case len(name) > maxName:
		return fmt.Errorf("artefact name of %d characters: expected at most %d", len(name), maxName)
	case !namePattern.MatchString(name):
		return fmt.Errorf(`artefact name %q: expected lower-case letters and digits, joined by ".", "_", "-" or "/", such as qtmrl-us16`, name)
	}
	return nil
}

// CheckAlias reports whether an alias may have this name.
func CheckAlias(alias string) error {
	if !aliasPattern.MatchString(alias) {
		return fmt.Errorf(`alias %q: expected letters, digits, "_", "." and "-", at most 128 of them and the first a letter, digit or "_"`, alias)
	}
	return nil
}

func checkDigest(d string) error {
	if !digestPattern.MatchString(d) {
		return fmt.Errorf("digest %q: expected %s and %d to 64 hexadecimal digits in lower case", d, digestPrefix, minDigestDigits)
	}
	return nil
}

// ParseReference reads a reference. The error says what is wrong with which part.
func ParseReference(s string) (Reference, error) {
	r, err := parseReference(s)
	if err != nil {
		return Reference{}, fmt.Errorf("artefact reference %q: %w", s, err)
	}
	return r, nil
}

func parseReference(s string) (Reference, error) {
	var r Reference
	rest := s
	if i := strings.LastIndex(s, "//"); i >= 0 {
		r.Store, rest = s[:i], s[i+2:]
		if r.Store == "" {
			return r, fmt.Errorf(`there is no directory before "//"`)
		}
		if strings.ContainsRune(r.Store, 0) {
			return r, fmt.Errorf("the store's directory holds a zero byte")
		}
	}
	if rest == "" {
		return r, fmt.Errorf("expected NAME, NAME:ALIAS, NAME@%s… or %s…, optionally after STORE//", digestPrefix, digestPrefix)
	}
	if strings.HasPrefix(rest, digestPrefix) {
		r.Digest = rest
		return r, checkDigest(rest)
	}
	if name, d, ok := strings.Cut(rest, "@"); ok {
		r.Name, r.Digest = name, d
		if err := CheckName(name); err != nil {
			return r, err
		}
		return r, checkDigest(d)
	}
	r.Name, r.Alias = rest, Latest
	if name, alias, ok := strings.Cut(rest, ":"); ok {
		r.Name, r.Alias = name, alias
		if err := CheckName(name); err != nil {
			return r, err
		}
		return r, CheckAlias(alias)
	}
	return r, CheckName(r.Name)
}

// String writes the reference in the form that ParseReference reads.
func (r Reference) String() string {
	s := r.Digest
	switch {
	case r.Name != "" && r.Digest != "":
		s = r.Name + "@" + r.Digest
	case r.Name != "":
		s = r.Name + ":" + r.Alias
	}
	if r.Store != "" {
		s = r.Store + "//" + s
	}
	return s
}

// tag is the index's name of an alias.
func tag(name, alias string) string { return name + ":" + alias }

// splitTag undoes tag; ok is false for the tags of other programs.
func splitTag(s string) (name, alias string, ok bool) {
	name, alias, ok = strings.Cut(s, ":")
	return name, alias, ok && CheckName(name) == nil && CheckAlias(alias) == nil
}
