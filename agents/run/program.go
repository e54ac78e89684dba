package run

import (
	"path/filepath"
	"runtime"
	"runtime/debug"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Build says which code ran; the JSON keys are stable. Revision is empty in a build without version
// control.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	// Modified says that the sources were not those of the revision.
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

// ThisBuild describes the running program.
func ThisBuild() Build {
	v := Build{Version: Version(), Go: runtime.Version()}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return v
}

// Version is the version of the running program: that of a release, else the first twelve digits of
// its revision, else its module's version.
func Version() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := b.Main.Version; released(v) {
		return v
	}
	for _, s := range b.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	if b.Main.Version != "" {
		return b.Main.Version
	}
	return "devel"
}

// released reports whether a module's version is the tag of a release: not one that is made up from
// a revision, nor that of changed sources.
func released(version string) bool {
	return semver.IsValid(version) && semver.Build(version) == "" && !module.IsPseudoVersion(version)
}

// platform is the operating system and the processor's architecture, such as linux/amd64.
func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// program is the name and the version of the running program.
func program() string {
	name := "program"
	if b, ok := debug.ReadBuildInfo(); ok && b.Path != "" {
		name = filepath.Base(b.Path)
	}
	return name + " " + Version()
}
