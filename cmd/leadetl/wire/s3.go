package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/objects"
)

// S3 holds the flags for s3:// URIs. Credentials and the region are not among
// them: they come from the usual AWS settings.
type S3 struct {
	options objects.Options
	flags   *pflag.FlagSet // whose variables Open reads; nil if the command has read them
}

// Settings are those of a command that reads and writes S3.
func (f *S3) Settings() []cli.Setting {
	return append(f.reading(),
		cli.Setting{Name: "s3-sse", To: &f.options.SSE, Text: "`encryption` of objects written to S3: AES256, aws:kms or aws:kms:dsse (default: the bucket's)", Words: []string{"AES256", "aws:kms", "aws:kms:dsse"}},
		cli.Setting{Name: "s3-kms-key", To: &f.options.KMSKey, Text: "`key` of encryption aws:kms: id, ARN or alias (default: the account's)"},
		cli.Setting{Name: "s3-acl", To: &f.options.ACL, Text: "canned `ACL` of objects written to S3, such as bucket-owner-full-control (default: none)"},
	)
}

func (f *S3) reading() []cli.Setting {
	f.options.GiveUpAfter = objects.DefaultGiveUpAfter
	return []cli.Setting{
		{Name: "s3-endpoint", To: &f.options.Endpoint, Text: "`URL` of an S3 store that is not AWS; credentials and region come from the AWS environment and files"},
		{Name: "s3-path-style", To: &f.options.PathStyle, Text: "put bucket names in the path, for stores without a host name for each bucket"},
		{Name: "s3-give-up-after", To: &f.options.GiveUpAfter, Text: "stop when S3 cannot be reached for this `time`"},
	}
}

// Register registers the flags of a command that reads and writes S3 and has no job file.
func (f *S3) Register(flags *pflag.FlagSet) { f.bind(flags, f.Settings()) }

// RegisterReading registers the flags of a command that only reads S3.
func (f *S3) RegisterReading(flags *pflag.FlagSet) { f.bind(flags, f.reading()) }

func (f *S3) bind(flags *pflag.FlagSet, settings []cli.Setting) {
	f.flags = pflag.NewFlagSet("", pflag.ContinueOnError)
	f.flags.SortFlags = false
	cli.Bind(f.flags, settings...)
	flags.AddFlagSet(f.flags)
}

// Words are the flags that are given for another command, or as keys of a job with --set.
func (f *S3) Words(asKeys bool) (words []string) {
	add := func(name, value string) {
		if asKeys {
			words = append(words, "--set", strings.ReplaceAll(name, "-", "_")+"="+value)
		} else {
			words = append(words, "--"+name+"="+value)
		}
	}
	if f.options.Endpoint != "" {
		add("s3-endpoint", f.options.Endpoint)
	}
	if f.options.PathStyle {
		add("s3-path-style", "true")
	}
	return words
}

// Open checks the flags. It does not connect yet.
func (f *S3) Open(ctx context.Context, log *slog.Logger) (*objects.Store, error) {
	if f.flags != nil {
		if err := cliflag.ApplyEnvironment(f.flags); err != nil {
			return nil, err
		}
	}
	o := f.options
	o.Log = log
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("S3: %w; see s3_endpoint, s3_sse, s3_kms_key and s3_acl", err)
	}
	if f.options.GiveUpAfter <= 0 {
		return nil, fmt.Errorf("s3_give_up_after is %s; give a time such as 15m", f.options.GiveUpAfter)
	}
	return objects.New(ctx, o), nil
}

// UnlessUnavailable returns a usage error, unless the store is unavailable.
// That is not the user's mistake, and the same command may succeed later.
func UnlessUnavailable(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return ErrInterruptedEarly
	case errors.Is(err, objects.ErrUnavailable):
		return err
	}
	return cli.UsageError(err)
}

// PathIn returns the path of a file in a folder or below a URI, as users know
// it.
func PathIn(folder, name string) string {
	if at, err := objects.ParseFolder(folder); err == nil {
		return at.Below(name).String()
	}
	return filepath.Join(folder, name)
}

// Endpoint returns the address of the store from flags and environment; ""
// means AWS.
func (f *S3) Endpoint() string {
	return cmp.Or(f.options.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
}
