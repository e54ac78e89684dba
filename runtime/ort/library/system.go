package library

import (
	"os"
	"path/filepath"
)

// systemDirs lists where other installers leave shared libraries: beside the
// executable, on the dynamic loader's path, and in the usual directories. Each
// directory occurs once.
func systemDirs(p platform, getenv func(string) string) []string {
	var dirs []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		dir := filepath.Dir(exe)
		dirs = append(dirs, dir, filepath.Join(filepath.Dir(dir), "lib"))
	}
	switch p.os {
	case "windows":
		// Some releases of Windows carry an old onnxruntime.dll in a directory of
		// the PATH; its release number refuses it.
		dirs = append(dirs, filepath.SplitList(getenv("PATH"))...)
	case "darwin":
		dirs = append(dirs, filepath.SplitList(getenv("DYLD_LIBRARY_PATH"))...)
		dirs = append(dirs, "/opt/homebrew/lib", "/usr/local/lib", "/opt/local/lib")
	default:
		dirs = append(dirs, filepath.SplitList(getenv("LD_LIBRARY_PATH"))...)
		multiarch := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[p.arch]
		dirs = append(dirs, "/usr/local/lib", "/usr/local/lib64", "/opt/onnxruntime/lib")
		if multiarch != "" {
			dirs = append(dirs, "/usr/local/lib/"+multiarch, "/usr/lib/"+multiarch)
		}
		dirs = append(dirs, "/usr/lib64", "/usr/lib")
	}
	seen := make(map[string]bool, len(dirs))
	unique := dirs[:0]
	for _, dir := range dirs {
		// A relative entry would make the library depend on the working directory.
		if !filepath.IsAbs(dir) || seen[filepath.Clean(dir)] {
			continue
		}
		seen[filepath.Clean(dir)] = true
		unique = append(unique, filepath.Clean(dir))
	}
	return unique
}
