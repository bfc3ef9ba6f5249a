module github.com/leadetl/leadetl/deploy/release

go 1.26.0

tool aead.dev/minisign/cmd/minisign

require aead.dev/minisign v0.3.0

require (
	golang.org/x/crypto v0.47.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/term v0.39.0 // indirect
)
