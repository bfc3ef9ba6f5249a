package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"aead.dev/minisign"
)

const sumsName = "SHA256SUMS"

// writeSums writes the checksums of all files, and their signature if MINISIGN_KEY
// names the file of a key. MINISIGN_PASSWORD is its password, if it has one.
func (r *release) writeSums() error {
	slices.Sort(r.made)
	var sums bytes.Buffer
	for _, name := range r.made {
		f, err := os.Open(filepath.Join(r.dist, name))
		if err != nil {
			return err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		if err := closed(f, err); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sum.Sum(nil), name)
	}
	if err := os.WriteFile(filepath.Join(r.dist, sumsName), sums.Bytes(), 0o644); err != nil {
		return err
	}
	keyFile := os.Getenv("MINISIGN_KEY")
	if keyFile == "" {
		return nil
	}
	signature, err := r.sign(keyFile, sums.Bytes())
	if err != nil {
		return fmt.Errorf("sign with MINISIGN_KEY: %w", err)
	}
	return os.WriteFile(filepath.Join(r.dist, sumsName+".minisig"), signature, 0o644)
}

// sign signs as minisign does. Its comments have no time, so that the bytes are the same again.
func (r *release) sign(keyFile string, message []byte) ([]byte, error) {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	var key minisign.PrivateKey
	if minisign.IsEncrypted(text) {
		key, err = minisign.DecryptKey(os.Getenv("MINISIGN_PASSWORD"), text)
	} else {
		err = key.UnmarshalText(text)
	}
	if err != nil {
		return nil, err
	}
	reader := minisign.NewReader(bytes.NewReader(message))
	if _, err := io.Copy(io.Discard, reader); err != nil {
		return nil, err
	}
	return reader.SignWithComments(key, "leadetl "+r.version.String(), "signature of the leadetl authors"), nil
}
