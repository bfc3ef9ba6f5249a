package sources

import (
	"net/url"
	"path/filepath"
	"strings"
)

// localPath turns a file URL (RFC 8089) of this machine into its path, with
// percent signs decoded. It returns other texts unchanged.
func localPath(uri string) (string, error) {
	const scheme = "file://"
	if len(uri) < len(scheme) || !strings.EqualFold(uri[:len(scheme)], scheme) {
		return uri, nil
	}
	path := uri[len(scheme):]
	if host, _, _ := strings.Cut(path, "/"); strings.EqualFold(host, "localhost") {
		path = path[len(host):]
	}
	path, err := url.PathUnescape(path)
	if err != nil || !strings.HasPrefix(path, "/") || strings.IndexByte(path, 0) >= 0 {
		return "", &FormatError{File: uri, Problem: "is not a file URL of this machine", Advice: "Write the path instead: /folder/file.csv", Err: err}
	}
	return filepath.FromSlash(path), nil
}
