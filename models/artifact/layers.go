package artifact

// Media types of a version's parts.
const (
	// ArtifactType is the artifactType of a version's image manifest.
	ArtifactType = "application/vnd.onnxrl.model.v1"
	// DataArtifactType is that of a version without a model.
	DataArtifactType = "application/vnd.onnxrl.data.v1"
	// ConfigType is the Manifest as JSON.
	ConfigType = "application/vnd.onnxrl.model.config.v1+json"
	// ModelType is the ONNX file.
	ModelType = "application/vnd.onnxrl.model.v1+onnx"
	// DataType is a file of external data, titled as the model refers to it.
	DataType = "application/vnd.onnxrl.model.data.v1"
	// GoldenType is the file of golden inputs and outputs.
	GoldenType = "application/vnd.onnxrl.golden.v1+safetensors"
	// FileType is any other file.
	FileType = "application/octet-stream"
)

// Titles of the parts that every version may have.
const (
	ModelTitle  = "model.onnx"
	GoldenTitle = "golden.safetensors"
)
