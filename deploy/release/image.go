package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user runs the program in an image. It has no privileges.
const user = 65532

// writeImage writes a tar that docker load reads, and that is an OCI layout too. The
// image is that of deploy/Dockerfile.
func (r *release) writeImage(p platform, binary, licenses []byte) (err error) {
	image, err := r.image(p, binary, licenses)
	if err != nil {
		return err
	}
	blobs, err := r.layout(p, image)
	if err != nil {
		return err
	}
	out, err := r.create(r.name(allPrograms[0], p, ".oci.tar"))
	if err != nil {
		return err
	}
	defer func() { err = closed(out, err) }()
	t := tarFile{tar.NewWriter(out), r.time}
	for _, name := range slices.Sorted(maps.Keys(blobs)) {
		if err := t.add(&tar.Header{Name: name, Mode: 0o644}, blobs[name]); err != nil {
			return err
		}
	}
	return t.Close()
}

// layout returns the files of the tar: index.json is for OCI, manifest.json for Docker.
func (r *release) layout(p platform, image v1.Image) (map[string][]byte, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	tags := []string{"leadetl:" + r.version.String(), "leadetl:latest"}
	forDocker, err := json.Marshal([]any{map[string]any{
		"Config": blob(manifest.Config.Digest), "RepoTags": tags, "Layers": []string{blob(manifest.Layers[0].Digest)},
	}})
	if err != nil {
		return nil, err
	}
	entry, err := partial.Descriptor(image)
	if err != nil {
		return nil, err
	}
	entry.ArtifactType, entry.Platform = "", &v1.Platform{OS: p.os, Architecture: p.arch}
	entry.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version.String(), "io.containerd.image.name": tags[0]}
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{*entry}})
	if err != nil {
		return nil, err
	}
	files, err := blobsOf(image)
	if err != nil {
		return nil, err
	}
	files["index.json"], files["manifest.json"], files["oci-layout"] = index, forDocker, []byte(`{"imageLayoutVersion":"1.0.0"}`)
	return files, nil
}

// image returns the image: one layer, and what it runs.
func (r *release) image(p platform, binary, licenses []byte) (v1.Image, error) {
	layer, err := r.layer(binary, licenses)
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.time}}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.time}
	config.Config = v1.Config{
		Entrypoint: []string{"/leadetl"},
		Env:        []string{"XDG_STATE_HOME=/state"},
		User:       fmt.Sprintf("%d:%[1]d", user),
		Volumes:    map[string]struct{}{"/state": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title": "leadetl", "org.opencontainers.image.version": r.version.String(),
			"org.opencontainers.image.source": homepage, "org.opencontainers.image.licenses": license,
		},
	}
	return mutate.ConfigFile(image, config)
}

// layer holds the program, the licenses of its modules, the certificates it trusts, and the
// folders it writes to.
func (r *release) layer(binary, licenses []byte) (v1.Layer, error) {
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			if err := pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return nil, err
			}
		}
	}
	var all bytes.Buffer
	t := tarFile{tar.NewWriter(&all), r.time}
	for _, entry := range []struct {
		header tar.Header
		data   []byte
	}{
		{tar.Header{Name: "etc/", Mode: 0o755, Typeflag: tar.TypeDir}, nil},
		{tar.Header{Name: "etc/ssl/", Mode: 0o755, Typeflag: tar.TypeDir}, nil},
		{tar.Header{Name: "etc/ssl/certs/", Mode: 0o755, Typeflag: tar.TypeDir}, nil},
		{tar.Header{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644}, certificates.Bytes()},
		{tar.Header{Name: "leadetl", Mode: 0o755}, binary},
		{tar.Header{Name: licensesName, Mode: 0o644}, licenses},
		{tar.Header{Name: "state/", Mode: 0o755, Uid: user, Gid: user, Typeflag: tar.TypeDir}, nil},
		{tar.Header{Name: "tmp/", Mode: 0o1777, Typeflag: tar.TypeDir}, nil},
	} {
		if err := t.add(&entry.header, entry.data); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(all.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

func blob(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

// blobsOf returns manifest, settings and layer of an image by their paths.
func blobsOf(image v1.Image) (map[string][]byte, error) {
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	configName, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	blobs := map[string][]byte{blob(digest): manifest, blob(configName): config}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return nil, err
		}
		compressed, err := layer.Compressed()
		if err != nil {
			return nil, err
		}
		if blobs[blob(digest)], err = io.ReadAll(compressed); err != nil {
			return nil, err
		}
	}
	return blobs, nil
}
