package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/leadetl/leadetl/internal/glob"
	"github.com/leadetl/leadetl/internal/objects"
)

// manifestName is the file by which a dataset is known: leadetl writes it last but
// one.
const manifestName = "_manifest.json"

// leaveOut removes the files of datasets from the files that a folder, a prefix
// or a pattern with ** names. A dataset among lists is the result of a run, and
// its rows would be those of the lists once more. depth is the number of slashes
// in the path of the folder, including the last one: a dataset that the URI names
// itself, or lies in, stays.
func leaveOut(uri string, names []named, depth int, isDataset func(folder string) (bool, error)) (kept []named, leftOut []string, err error) {
	known := map[string]bool{}
	for _, name := range names {
		dataset := ""
		for i := range name.uri {
			if name.uri[i] != '/' || strings.Count(name.uri[:i+1], "/") <= depth {
				continue
			}
			folder := name.uri[:i]
			is, looked := known[folder]
			if !looked {
				if is, err = isDataset(folder); err != nil {
					return nil, nil, err
				}
				if known[folder] = is; is {
					leftOut = append(leftOut, folder)
				}
			}
			if is {
				dataset = folder
				break
			}
		}
		if dataset == "" {
			kept = append(kept, name)
		}
	}
	if len(kept) == 0 {
		return nil, nil, &FormatError{File: uri, Problem: "has no files but those of datasets of leadetl, such as " + leftOut[0] + ", and these are left out",
			Advice: "Name a dataset itself to read it"}
	}
	return kept, leftOut, nil
}

// isLocalDataset reports whether a folder has a manifest.
func isLocalDataset(folder string) (bool, error) {
	name := filepath.Join(folder, manifestName)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, &FormatError{File: name, Problem: "cannot be read, so it is not known whether the folder is a dataset", Advice: "Make it readable", Err: err}
	}
	defer f.Close()
	return isManifest(f), nil
}

// isDataset reports whether an object is a manifest.
func isDataset(ctx context.Context, store *objects.Store, manifest objects.Info) (bool, error) {
	o, err := store.Open(ctx, manifest)
	if err != nil {
		return false, err
	}
	defer o.Close()
	text := io.NewSectionReader(o, 0, o.Size)
	is := isManifest(text)
	return is, ctx.Err()
}

// isManifest reports whether a text begins as our manifests do. Other programs
// write files of this name too, and their folders are read.
func isManifest(text io.Reader) bool {
	members := map[string]any{}
	d := json.NewDecoder(text)
	if begin, err := d.Token(); begin != json.Delim('{') || err != nil {
		return false
	}
	for len(members) < maxManifestMembers {
		name, err := d.Token()
		if err != nil {
			return false
		}
		value, err := d.Token()
		if _, nested := value.(json.Delim); nested || err != nil {
			break
		}
		members[fmt.Sprint(name)] = value
	}
	job, _ := members["job_id"].(string)
	_, hasFormat := members["format"].(float64)
	return job != "" && hasFormat && members["operation"] != nil
}

// maxManifestMembers is more than our manifests have before the first member
// that is an object.
const maxManifestMembers = 20

// WouldRead reports whether Open(uri) would read files in this folder or prefix
// whose names match one of some patterns, if there were any.
func WouldRead(uri, place string, names ...string) (bool, error) {
	uri, err := localPath(uri)
	if err != nil {
		return false, nil // Open says why
	}
	switch kind := kindOf(uri); {
	case objects.Is(uri) && objects.Is(place):
		return wouldFind(uri, place, names), nil
	case objects.Is(uri) || objects.Is(place):
		return false, nil
	case kind == namesFolder:
		below, is, err := glob.IsIn(place, uri)
		return is && !isHidden(below), err
	case kind == namesFiles:
		return glob.WouldFind(uri, place, names...)
	}
	return false, nil
}

// wouldFind is WouldRead for S3.
func wouldFind(uri, place string, names []string) bool {
	at, err := objects.Parse(uri)
	folder, failed := objects.ParseFolder(place)
	if err != nil || failed != nil || at.Bucket != folder.Bucket {
		return false
	}
	if at.Key == "" || strings.HasSuffix(at.Key, "/") {
		below, is := strings.CutPrefix(folder.Key, at.Key)
		return is && !isHidden(below)
	}
	for _, name := range names {
		if strings.ContainsAny(at.Key, "*?[") && glob.KeysOverlap(at.Key, glob.Escape(folder.Key)+name) {
			return true
		}
	}
	return false
}

// isHidden reports whether an element of a path begins with _ or . .
func isHidden(path string) bool {
	for element := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(element, "_") || strings.HasPrefix(element, ".") {
			return true
		}
	}
	return false
}
