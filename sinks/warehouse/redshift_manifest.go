package warehouse

import "encoding/json"

// File is a file to load.
type File struct {
	Name  string // relative to the dataset, with slashes
	Bytes int64
}

// RedshiftManifest lists the files that COPY … MANIFEST loads.
// Source: Amazon Redshift Database Developer Guide, "Using a manifest to
// specify data files": content_length is required for columnar files.
func RedshiftManifest(location string, files []File) ([]byte, error) {
	type meta struct {
		ContentLength int64 `json:"content_length"`
	}
	type entry struct {
		URL       string `json:"url"`
		Mandatory bool   `json:"mandatory"`
		Meta      meta   `json:"meta"`
	}
	entries := []entry{}
	for _, f := range files {
		entries = append(entries, entry{location + "/" + f.Name, true, meta{f.Bytes}})
	}
	data, err := json.MarshalIndent(map[string]any{"entries": entries}, "", "  ")
	return append(data, '\n'), err
}
