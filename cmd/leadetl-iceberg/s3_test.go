package main

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestS3 publishes a dataset on a real S3 server in a table there.
func TestS3(t *testing.T) {
	gateway := exec.Command("go", "-C", filepath.Join(root, "internal/testkit/testservers/versitygw"), "tool", "-n", "versitygw")
	gateway.Stderr = os.Stderr
	path, err := gateway.Output()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	const id, secret = "leadetl-test", "CanaryOfTheSecretKey"
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "lake"), 0o755); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	server := exec.Command(strings.TrimSpace(string(path)), "--port", address, "--region", "us-east-1", "--quiet", "posix", folder)
	server.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+id, "ROOT_SECRET_KEY="+secret)
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(time.Minute); ; <-ticker.C {
		response, err := http.Get("http://" + address)
		if err == nil {
			response.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("versitygw does not listen: %v", err)
		}
	}
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": "http://" + address,
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	hems(t, "s3://lake/hems", "--set", "s3_path_style=true")
	catalog := filepath.Join(t.TempDir(), "catalog.db")
	args := []string{"s3://lake/hems", "--catalog", "sqlite:" + catalog, "--table", "leads.hems", "--warehouse", "s3://lake/tables"}
	must(t, args...)
	if again := must(t, args...); !strings.Contains(again, "was published before") {
		t.Error(again)
	}
	tbl := load(t, catalog, "leads", "hems")
	if got := len(rows(t, tbl)); got != 30 || !strings.HasPrefix(tbl.MetadataLocation(), "s3://lake/tables/") {
		t.Errorf("%d rows, metadata at %s", got, tbl.MetadataLocation())
	}
	if code, _, errs := publish(t, "s3://lake/nothing", "--catalog", "sqlite:"+catalog, "--table", "leads.hems"); code != exitUsage {
		t.Errorf("a dataset that is not there: exit %d: %s", code, errs)
	}
}
