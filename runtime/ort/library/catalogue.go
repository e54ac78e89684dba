package library

import "runtime"

// Version is the exact ONNX Runtime release that [Locate] installs, and that
// this program is tested with.
const Version = "1.32.0"

// MinMinor is the oldest usable minor release of ONNX Runtime 1.x. Those before
// compute Attention wrongly where a row is masked as a whole and where keys end
// before the row does, and ReverseSequence along the batch; onnxruntime_go and
// internal/capi would do with 24, whose API later releases keep serving.
const MinMinor = 28

// platform is a pair of GOOS and GOARCH.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

func hostPlatform() platform { return platform{runtime.GOOS, runtime.GOARCH} }

// libraryName is the name that the library has in the cache.
func (p platform) libraryName() string {
	switch p.os {
	case "windows":
		return "onnxruntime.dll"
	case "darwin":
		return "libonnxruntime." + Version + ".dylib"
	default:
		return "libonnxruntime.so." + Version
	}
}

// systemNames lists the names under which other installers leave the library,
// the preferred release first.
func (p platform) systemNames() []string {
	switch p.os {
	case "windows":
		return []string{"onnxruntime.dll"}
	case "darwin":
		return []string{"libonnxruntime." + Version + ".dylib", "libonnxruntime.1.dylib", "libonnxruntime.dylib"}
	default:
		return []string{"libonnxruntime.so." + Version, "libonnxruntime.so.1", "libonnxruntime.so"}
	}
}

// source is one published package that carries the library for one platform.
type source struct {
	client string // "npm" or "pip"
	tag    string // pip: the wheel's platform tag
	entry  string // path of the library inside the package's archive
	size   int64  // bytes
	sha256 string // of the library, lower-case hexadecimal
}

// catalogue lists, per platform, the packages that carry release [Version], in
// the order in which they are tried. Where npm has a package of the release, its
// libraries are other files than pip's; it has none of 1.32.
type catalogue map[platform][]source

const (
	npmPackage = "onnxruntime-node"
	pipPackage = "onnxruntime"
	// Every wheel of a platform carries the same library; naming one interpreter
	// makes the choice independent of the Python that runs pip.
	pipPython = "3.12"
	pipABI    = "cp312"
)

var published = catalogue{
	{"linux", "amd64"}: {
		{client: "pip", tag: "manylinux_2_28_x86_64", entry: "onnxruntime/capi/libonnxruntime.so.1.32.0",
			size: 34824680, sha256: "6c1585d1bbf45b0712ea4a21b705c5fcb4ba04ff2e30f1fbf81a49faf658638f"},
	},
	{"linux", "arm64"}: {
		{client: "pip", tag: "manylinux_2_28_aarch64", entry: "onnxruntime/capi/libonnxruntime.so.1.32.0",
			size: 27165936, sha256: "49852228a93995158b2a813d4df487d47a1b76b0eaa894507ef49e91b6d7954a"},
	},
	{"darwin", "arm64"}: {
		{client: "pip", tag: "macosx_14_0_arm64", entry: "onnxruntime/capi/libonnxruntime.1.32.0.dylib",
			size: 35272344, sha256: "fa585fabbea65b823b9a8f7e27d46aee3989d1be7e36b528203d3a1fd613aae7"},
	},
	{"windows", "amd64"}: {
		{client: "pip", tag: "win_amd64", entry: "onnxruntime/capi/onnxruntime.dll",
			size: 22668640, sha256: "443c0065fcdba17618ddef05050308f4b471893c5c7da0337d6957c9073ad8a7"},
	},
}

// bySum returns the source that carries a file with this checksum, or nil.
func (c catalogue) bySum(p platform, sum string) *source {
	for i := range c[p] {
		if c[p][i].sha256 == sum {
			return &c[p][i]
		}
	}
	return nil
}

// hasSize reports whether any source of the platform carries a file of n bytes. It
// spares hashing a file that cannot match.
func (c catalogue) hasSize(p platform, n int64) bool {
	for _, s := range c[p] {
		if s.size == n {
			return true
		}
	}
	return false
}
