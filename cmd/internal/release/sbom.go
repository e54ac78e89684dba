package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The parts of an SPDX 2.3 document that are used here.
type spdxDocument struct {
	Version       string             `json:"spdxVersion"`
	DataLicense   string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Creation      spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name             string          `json:"name"`
	ID               string          `json:"SPDXID"`
	Version          string          `json:"versionInfo"`
	FileName         string          `json:"packageFileName,omitempty"`
	DownloadLocation string          `json:"downloadLocation"`
	FilesAnalyzed    bool            `json:"filesAnalyzed"`
	Checksums        []spdxChecksum  `json:"checksums,omitempty"`
	Concluded        string          `json:"licenseConcluded"`
	Declared         string          `json:"licenseDeclared"`
	Copyright        string          `json:"copyrightText"`
	Comment          string          `json:"comment,omitempty"`
	References       []spdxReference `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const noAssertion = "NOASSERTION"

// sbom lists the program, Go's library and the modules that the program says are linked into it, as
// SPDX 2.3 in JSON. What their licences are is for who reads licences/ to conclude.
func sbom(info *buildinfo.BuildInfo, t target, v version, program []byte) ([]byte, error) {
	sum := fmt.Sprintf("%x", sha256.Sum256(program))
	const document, root = "SPDXRef-DOCUMENT", "SPDXRef-onnxrl"
	d := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: document,
		Name:      strings.Join(append([]string{"onnxrl", v.name}, t.words()...), "-"),
		Namespace: fmt.Sprintf("https://%s/spdx/%s/%s", info.Main.Path, v.name, sum),
		Creation:  spdxCreation{v.time.Format(time.RFC3339), []string{"Tool: onnxrl-release", "Organization: onnxrl"}},
		Packages: []spdxPackage{{
			Name: info.Path, ID: root, Version: v.name, FileName: "onnxrl" + t.exe(), DownloadLocation: noAssertion,
			Checksums: []spdxChecksum{{"SHA256", sum}}, Concluded: "Apache-2.0", Declared: "Apache-2.0", Copyright: noAssertion,
			References: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + info.Main.Path + "@" + v.name + "#cmd/onnxrl"}},
		}},
		Relationships: []spdxRelationship{{document, "DESCRIBES", root}},
	}
	add := func(name, version, sum string) {
		p := spdxPackage{
			Name: name, ID: "SPDXRef-" + regexp.MustCompile(`[^A-Za-z0-9.-]`).ReplaceAllString(name, "-"), Version: version,
			DownloadLocation: noAssertion, Concluded: noAssertion, Declared: noAssertion, Copyright: noAssertion,
			// A purl's names and versions are percent-encoded; of those of modules that is + alone.
			References: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")}},
		}
		if sum != "" {
			p.Comment = "go.sum: " + sum
		}
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, spdxRelationship{root, "DEPENDS_ON", p.ID})
	}
	add("std", strings.TrimPrefix(info.GoVersion, "go"), "")
	for _, m := range info.Deps {
		add(m.Path, m.Version, m.Sum)
	}
	return json.MarshalIndent(d, "", "  ")
}
