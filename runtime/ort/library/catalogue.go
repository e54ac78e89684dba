package library

import "runtime"

// Version is the exact ONNX Runtime release that [Locate] installs, and that
// this program is tested with.
const Version = "1.27.0"

// MinMinor is the oldest usable minor release of ONNX Runtime 1.x: the API
// version that onnxruntime_go asks the library for. Later releases keep serving
// earlier API versions.
const MinMinor = 24

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
// the order in which they are tried. A client re-packs a library, so the two
// packages of a platform hold different files of the same release.
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
		{client: "npm", entry: "package/bin/napi-v6/linux/x64/libonnxruntime.so.1",
			size: 38023776, sha256: "d8aff4aa8abee8fb2abb2f2f2459ffc94461e781e41b9f7c072829dd0d470221"},
		{client: "pip", tag: "manylinux_2_27_x86_64", entry: "onnxruntime/capi/libonnxruntime.so.1.27.0",
			size: 23658512, sha256: "b5c9d4f124d24707f514dad926dc181820807178855df1c528e3addb2dd0e6f7"},
	},
	{"linux", "arm64"}: {
		{client: "npm", entry: "package/bin/napi-v6/linux/arm64/libonnxruntime.so.1",
			size: 20001880, sha256: "c36bc200e7e6c093b8abb0b34590fbdd8c52fd3fb5e33795b9523ffdde2fce0f"},
		{client: "pip", tag: "manylinux_2_27_aarch64", entry: "onnxruntime/capi/libonnxruntime.so.1.27.0",
			size: 20001880, sha256: "9275ef52956228686ae47b0219f67476a1148505084bdc5571e7bf1bf69b11f2"},
	},
	{"darwin", "arm64"}: {
		{client: "npm", entry: "package/bin/napi-v6/darwin/arm64/libonnxruntime.1.27.0.dylib",
			size: 38800984, sha256: "89f692a3a1a224e4ad0b796b0e7c0bd81113b0741bfe84211eceef14d05a9e59"},
		{client: "pip", tag: "macosx_14_0_arm64", entry: "onnxruntime/capi/libonnxruntime.1.27.0.dylib",
			size: 29651448, sha256: "49422a138fff12d7fcbd544373aefbffd510e473e08e18af28a8ecc3581029bf"},
	},
	{"windows", "amd64"}: {
		{client: "npm", entry: "package/bin/napi-v6/win32/x64/onnxruntime.dll",
			size: 26011960, sha256: "273f9ef9cf755c6a0f342226a80448156c10ceb74db2ae8c8370dc98e75af0eb"},
		{client: "pip", tag: "win_amd64", entry: "onnxruntime/capi/onnxruntime.dll",
			size: 17320800, sha256: "bbb4ff18db820c24ad6d9196ecdc7a62d6099268eaadf264813a23591d4d15cc"},
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
