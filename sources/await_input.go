package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
)

const (
	// settledFor is how long names, sizes and times of all files stay the same before they are read.
	settledFor = time.Minute
	lookEvery  = 10 * time.Second
)

// ErrNotThere says that inputs were missing, or changed, until the time was over.
var ErrNotThere = errors.New("the input is not there")

// Arrival says when inputs that somebody else writes are there.
type Arrival struct {
	// Within is the time after the begin in which the last change has to be seen.
	Within time.Duration
	// Marker is the name of a file that is written last, after all files beside it; "" without one.
	Marker  string
	Objects *objects.Store
	Log     *slog.Logger
}

// state is what is seen of a file without reading it.
type state struct {
	size, time int64
	etag       string
}

// Await waits until each URI has a file, and no name, size or time of any file has changed for a
// minute. Nothing is read or locked before. The error is ErrNotThere if the time is over.
func (a Arrival) Await(ctx context.Context, uris []string) error {
	began := time.Now()
	var seen map[string]state
	var changed time.Time
	for told := ""; ; {
		files, lacks, err := a.look(ctx, uris)
		if err != nil {
			return err
		}
		now, wait := time.Now(), lookEvery
		over := false
		switch {
		case lacks != "":
			seen, wait = nil, min(lookEvery, a.Within-now.Sub(began))
			over = wait <= 0
		case seen == nil || !maps.Equal(files, seen):
			seen, changed = files, now
			over = changed.Sub(began) > a.Within // what came in time may settle
		case now.Sub(changed) >= settledFor:
			return nil
		}
		if lacks == "" {
			lacks = "its files changed less than a minute ago"
		}
		if over {
			return fmt.Errorf("%w after %s: %s", ErrNotThere, a.Within, lacks)
		}
		if told != lacks {
			a.Log.Info("waiting for the input", "because", lacks)
			told = lacks
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// There returns ErrNotThere with what is missing now, without waiting.
func (a Arrival) There(ctx context.Context, uris []string) error {
	_, lacks, err := a.look(ctx, uris)
	if err == nil && lacks != "" {
		err = fmt.Errorf("%w: %s", ErrNotThere, lacks)
	}
	return err
}

// look lists the files of all URIs with their markers, or says what they lack.
func (a Arrival) look(ctx context.Context, uris []string) (files map[string]state, lacks string, err error) {
	files = map[string]state{}
	for _, uri := range uris {
		found, _, err := expand(ctx, []string{uri}, a.Objects)
		if errors.Is(err, errNoFile) {
			return nil, uri + " has no file", nil
		}
		if err != nil {
			return nil, "", err
		}
		newest := int64(0)
		for _, name := range found {
			seen, err := a.stateOf(ctx, name)
			if errors.Is(err, fs.ErrNotExist) {
				return nil, name.uri + " does not exist", nil
			}
			if err != nil {
				return nil, "", err
			}
			files[name.uri], newest = seen, max(newest, seen.time)
		}
		if a.Marker == "" {
			continue
		}
		marker, err := markerOf(uri, a.Marker)
		if err != nil {
			return nil, "", err
		}
		seen, err := a.stateOf(ctx, marker)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, marker.uri + " does not exist", nil
		case err != nil:
			return nil, "", err
		case seen.time < newest:
			return nil, marker.uri + " is older than a file of " + uri, nil
		}
		files[marker.uri] = seen
	}
	return files, "", nil
}

// stateOf looks at a file. That it does not exist is fs.ErrNotExist.
func (a Arrival) stateOf(ctx context.Context, name named) (state, error) {
	if !objects.Is(name.uri) {
		info, err := os.Stat(name.uri)
		if err != nil {
			return state{}, err
		}
		return state{info.Size(), info.ModTime().UnixNano(), ""}, nil
	}
	o := name.object
	if o.ModTime.IsZero() { // it was not listed
		var err error
		if o, err = a.Objects.Stat(ctx, name.object.Location); err != nil {
			return state{}, err
		}
	}
	return state{o.Size, o.ModTime.UnixNano(), o.ETag}, nil
}

// markerOf is the marker in the folder that a URI names, in that of the file that it names, or in the
// last folder before the first wildcard.
func markerOf(uri, marker string) (named, error) {
	uri, err := localPath(uri)
	if err != nil {
		return named{}, err
	}
	switch kindOf(uri) {
	case namesFolder:
		uri = strings.TrimRight(uri, "/") + "/"
	case namesFiles, namesObjects:
		uri, _, _ = strings.Cut(strings.NewReplacer("?", "*", "[", "*").Replace(uri), "*")
	}
	uri = uri[:strings.LastIndexByte(uri, '/')+1] + marker
	if !objects.Is(uri) {
		return named{uri: uri}, nil
	}
	at, err := objects.Parse(uri)
	return named{uri: uri, object: objects.Info{Location: at}}, err
}
