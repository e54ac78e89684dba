// Package artifact is the versioned store of what was trained: immutable, content-addressed
// versions of models with their descriptions, and names that move between them. A checkpoint
// resumes; an artefact serves.
//
// # Vocabulary
//
// A version is one model under a name: the ONNX file, its external data, further files, golden
// inputs and outputs, and a [Manifest] that says what it computes and where it comes from. It is
// identified by a digest over all of that and never changes; publishing the same content again
// finds the version that is there. A version of data ([Draft.Data]) has files alone, such as the
// transitions of a replay; programs that do not know of such do not show it. An alias ("latest",
// "best", "prod") is a name for one version of an artefact and is the only thing that moves. The
// parents of a version are the versions it was made from; following them is its lineage.
//
// # References
//
//	REF    = [ STORE "//" ] ( NAME [ ":" ALIAS | "@" DIGEST ] | DIGEST )
//	NAME   = words of lower-case letters and digits joined by ".", "_", "__" or dashes, in parts separated by "/"
//	ALIAS  = a letter, digit or "_", then up to 127 of these, "." and "-"
//	DIGEST = "sha256:" and the first 4 to 64 hexadecimal digits
//
// NAME alone means NAME:latest. A shortened digest must fit one version only. STORE is the store's
// directory: "runs/artifacts//qtmrl:best". NAME and ALIAS are what OCI registries take for
// repositories and tags; the name "sha256" is reserved.
//
// # On disk
//
// A store is an OCI image layout (image-spec 1.1), so container tools and registries can carry it:
//
//	oci-layout          what it is
//	index.json          one entry for every version, and one for every alias with the annotation org.opencontainers.image.ref.name = "name:alias"
//	blobs/sha256/…      image manifests, configurations (our Manifest as JSON) and layers: model, external data, golden values, files
//	.lock               held while blobs get their names and the index is replaced
//
// The digest of a version is that of its image manifest. Times are annotations of index entries,
// not part of what is digested, so content that is the same has the same digest whenever it was
// made.
//
// The names of aliases in the index, such as "qtmrl:best", are in the grammar that the image
// specification has for them, so programs that look up org.opencontainers.image.ref.name as a whole
// find them. Programs that take DIR:TAG with a tag of a registry, which has no colon, are given the
// digest, DIR@sha256:…, under which the index lists every version.
//
// # Registries
//
// [Store.Push] and [Store.Pull] copy versions to and from a [Target]: object storage, or a registry
// that package registry opens. In a registry an alias is a tag of the repository, and the digest is
// the same. Files that the receiver has are not sent again; the image manifest comes last and its
// tag after it, so nobody sees a part of a version. A pull checks descriptions, titles and sizes
// before it writes a file, and digests before it lists a version. The name of a version is part of
// what its digest covers: pulling does not rename.
//
// The manifest lists the digest of every file by title, so an image whose layers have changed
// places is an [ErrCrossed]. So is one whose model or golden values are not what the manifest
// describes.
//
// # Lineage and garbage
//
// [Store.Lineage] follows parents through one store or several: a training run has a store of its
// own, and its parents are in another's. [Store.Collect] removes versions that have no alias and
// that no version with one descends from, unless its options keep them. It needs to be told of
// other stores whose versions descend from those of this one. It keeps what is younger than a given
// time for the sake of programs that do not know the lock. This package's publishers do not need
// that: they look again, under the lock, for the blobs that they had counted on.
//
// # What cannot go wrong
//
// Blobs are written to temporary files, synced and renamed; then the index is replaced as a whole,
// under the lock, so that concurrent publishers, goroutines or processes, never lose each other's
// entries. A collection replaces the index before it removes blobs. After an error, a full disk or
// a kill -9 the index lists complete versions only. The next publisher removes temporary files that
// a killed process left, and the next collection removes blobs without an entry. Everything read is
// compared with its digest; damage is a [DamageError] that names the blob. Publishing or pulling a
// version again repairs damaged blobs of it.
//
// Entries that other programs put into the layout stay where they are, with what they refer to, and
// are not shown.
//
// # How to add a kind of file
//
// Add a media type to layers.go, put the file into the draft's layers in draft.go and give
// [Version] a method that reads it. A key of the manifest that older programs may ignore is a new
// field of Manifest; one that they must not ignore raises [Schema].
package artifact
