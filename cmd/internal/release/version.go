package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// version is what is built.
type version struct {
	// name is the tag of a release, such as v1.2.3, or snapshot- and the revision.
	name string
	// pep is the same for pip.
	pep      string
	snapshot bool
	// time is that of the commit, which all files have.
	time time.Time
}

// versionOf returns the version of a checkout. One that has changed, or no tag, is a snapshot or
// refused.
func versionOf(ctx context.Context, root string, snapshot bool) (version, error) {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(stderr.Bytes()))
		}
		return strings.TrimSpace(string(out)), err
	}
	revision, err1 := git("rev-parse", "--short=12", "HEAD")
	seconds, err2 := git("log", "-1", "--format=%ct")
	tags, err3 := git("tag", "--points-at", "HEAD")
	changed, err4 := git("status", "--porcelain")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return version{}, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return version{}, err
	}
	v := version{snapshot: snapshot, time: time.Unix(unix, 0).UTC()}
	if snapshot {
		v.name, v.pep = "snapshot-"+revision, "0.0.0.dev0+g"+revision
		return v, nil
	}
	if changed != "" {
		return version{}, fmt.Errorf("%s is not as it was committed, expected a clean tree (--snapshot takes any):\n%s", root, changed)
	}
	for _, tag := range strings.Fields(tags) {
		if canonical(tag) && (v.name == "" || semver.Compare(tag, v.name) > 0) {
			v.name = tag
		}
	}
	if v.name == "" {
		return version{}, fmt.Errorf("commit %s has no tag of a version, expected one such as v1.2.3 (--snapshot takes any commit)", revision)
	}
	v.pep, err = pep440(v.name)
	return v, err
}

// canonical reports whether a tag is a version as Go's modules want it.
func canonical(tag string) bool { return semver.Canonical(tag) == tag && semver.Build(tag) == "" }

// pep440 is a version as pip wants it: v1.2.3-rc.1 is 1.2.3rc1.
func pep440(tag string) (string, error) {
	number, pre := strings.TrimPrefix(strings.TrimSuffix(tag, semver.Prerelease(tag)), "v"), semver.Prerelease(tag)
	if pre == "" {
		return number, nil
	}
	kind, n, _ := strings.Cut(pre[1:], ".")
	short := map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[kind]
	if n == "" {
		n = "0"
	}
	if short == "" || slices.ContainsFunc([]byte(n), func(c byte) bool { return c < '0' || c > '9' }) {
		return "", fmt.Errorf("tag %s: pip has no such version, expected -alpha.N, -beta.N or -rc.N", tag)
	}
	return number + short + n, nil
}
