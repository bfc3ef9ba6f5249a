package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

const token = "CanaryOfTheToken"

// restCatalog speaks the REST interface over an SQL catalog: as much of it as a
// table needs to be made, loaded and appended to.
// Source: Apache Iceberg, rest-catalog-open-api.yaml.
type restCatalog struct {
	t      *testing.T
	tables *openedCatalog
	fault  atomic.Int32 // answers of this status instead
}

func (c *restCatalog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, kind string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": "a test", "type": kind, "code": status}})
	}
	answer := func(body any) { _ = json.NewEncoder(w).Encode(body) }
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != "Bearer "+token {
		fail(401, "NotAuthorizedException")
		return
	}
	if status := c.fault.Load(); status != 0 {
		fail(int(status), "ServiceUnavailableException")
		return
	}
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	var ident table.Identifier
	if len(path) == 4 {
		ident = table.Identifier{path[1], path[3]}
	}
	loaded := func(t *table.Table, err error) {
		switch {
		case errors.Is(err, catalog.ErrNoSuchTable):
			fail(404, "NoSuchTableException")
		case err != nil:
			fail(500, err.Error())
		default:
			answer(map[string]any{"metadata-location": t.MetadataLocation(), "metadata": t.Metadata(), "config": map[string]string{}})
		}
	}
	var body struct {
		Namespace    table.Identifier   `json:"namespace"`
		Name         string             `json:"name"`
		Schema       *iceberg.Schema    `json:"schema"`
		Properties   iceberg.Properties `json:"properties"`
		Requirements table.Requirements `json:"requirements"`
		Updates      table.Updates      `json:"updates"`
	}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			c.t.Error(err)
		}
	}
	switch ctx := r.Context(); {
	case path[0] == "config":
		answer(map[string]any{"defaults": map[string]string{}, "overrides": map[string]string{}})
	case r.Method == http.MethodGet && ident != nil:
		loaded(c.tables.LoadTable(ctx, ident))
	case r.Method == http.MethodPost && path[0] == "namespaces" && len(path) == 1:
		if err := c.tables.CreateNamespace(ctx, body.Namespace, nil); err != nil {
			fail(409, "AlreadyExistsException")
			return
		}
		answer(map[string]any{"namespace": body.Namespace, "properties": map[string]string{}})
	case r.Method == http.MethodPost && len(path) == 3 && path[2] == "tables":
		loaded(c.tables.CreateTable(ctx, table.Identifier{path[1], body.Name}, body.Schema, catalog.WithProperties(body.Properties)))
	case r.Method == http.MethodPost && ident != nil:
		metadata, location, err := c.tables.CommitTable(ctx, ident, body.Requirements, body.Updates)
		if err != nil {
			fail(409, "CommitFailedException")
			return
		}
		answer(map[string]any{"metadata-location": location, "metadata": metadata})
	default:
		fail(404, "NoSuchEndpoint "+r.Method+" "+r.URL.Path)
	}
}

// A REST catalog is given the same appends, with the credentials of the
// environment, which no message repeats.
func TestRESTCatalog(t *testing.T) {
	dir := t.TempDir()
	tables, err := openSQLite(t.Context(), filepath.Join(dir, "catalog.db"), iceberg.Properties{})
	if err != nil {
		t.Fatal(err)
	}
	defer tables.close()
	c := &restCatalog{t: t, tables: tables}
	server := httptest.NewServer(c)
	defer server.Close()
	for _, night := range []string{"2026-11-19", "2026-11-20"} {
		hems(t, filepath.Join(dir, "lake"), "--partition-by", "dt="+night)
	}
	args := func(night string) []string {
		return []string{filepath.Join(dir, "lake", "dt="+night), "--catalog", server.URL, "--table", "leads.nights"}
	}
	t.Setenv("ICEBERG_TOKEN", "wrong"+token)
	if code, _, errs := publish(t, args("2026-11-19")...); code != exitUsage || strings.Contains(errs, token) {
		t.Errorf("a wrong token: exit %d: %s", code, errs)
	}
	t.Setenv("ICEBERG_TOKEN", token)
	c.fault.Store(503)
	if code, _, errs := publish(t, args("2026-11-19")...); code != exitTryAgain {
		t.Errorf("503: exit %d: %s", code, errs)
	}
	c.fault.Store(0)
	for _, night := range []string{"2026-11-19", "2026-11-20", "2026-11-20"} {
		must(t, args(night)...)
	}
	tbl, err := tables.LoadTable(t.Context(), table.Identifier{"leads", "nights"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tbl.Metadata().Snapshots()); n != 2 || len(rows(t, tbl)) != 60 {
		t.Errorf("%d snapshots, %d rows", n, len(rows(t, tbl)))
	}
	server.Close()
	if code, _, errs := publish(t, args("2026-11-20")...); code != exitTryAgain {
		t.Errorf("out of reach: exit %d: %s", code, errs)
	}
}
