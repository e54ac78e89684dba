package checkpoint

import (
	"encoding/json"
	"fmt"
)

type document = map[string]json.RawMessage

// migrations lead from the version that is the key to the next. A committed checkpoint of every
// version is loaded by a test.
var migrations = map[int]func(document) error{
	1: fileSums,
}

// migrate brings a manifest to the current layout.
func migrate(text []byte, schema int) ([]byte, error) {
	if schema == Schema {
		return text, nil
	}
	if schema > Schema {
		return nil, fmt.Errorf("manifest has schema %d, this program reads up to %d: use a newer version", schema, Schema)
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, manifestFile, err)
	}
	for ; schema < Schema; schema++ {
		step, ok := migrations[schema]
		if !ok {
			return nil, fmt.Errorf("manifest has schema %d, which nothing reads", schema)
		}
		if err := step(doc); err != nil {
			return nil, fmt.Errorf("%w: migrate %s from schema %d: %w", ErrCorrupt, manifestFile, schema, err)
		}
	}
	doc["schema"] = json.RawMessage(fmt.Sprint(Schema))
	return json.Marshal(doc)
}

// fileSums turns version 1 into 2: "hashes" (name -> SHA-256) becomes "files", which also knows
// sizes; "state" is renamed to "sections"; "created" moves into "info"; "score" is new. Version 1
// had no hash of the manifest itself.
func fileSums(doc document) error {
	var hashes map[string]string
	if err := json.Unmarshal(doc["hashes"], &hashes); err != nil {
		return fmt.Errorf("hashes: %w", err)
	}
	files := map[string]FileSum{}
	for name, sum := range hashes {
		files[name] = FileSum{Size: -1, SHA256: sum}
	}
	var created string
	if text, ok := doc["created"]; ok {
		if err := json.Unmarshal(text, &created); err != nil {
			return fmt.Errorf("created: %w", err)
		}
	}
	var err error
	if doc["files"], err = json.Marshal(files); err != nil {
		return err
	}
	if doc["info"], err = json.Marshal(map[string]string{"created": created}); err != nil {
		return err
	}
	doc["sections"] = doc["state"]
	doc["score"] = json.RawMessage("null")
	delete(doc, "hashes")
	delete(doc, "state")
	delete(doc, "created")
	return nil
}
