package dashboard

import (
	"embed"

	"github.com/onnxrl/onnxrl/export/pages"
)

//go:embed assets
var assets embed.FS

// files are what the page consists of.
var files = pages.Of(assets)
