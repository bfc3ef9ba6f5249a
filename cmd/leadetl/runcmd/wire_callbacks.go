package runcmd

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/pipeline/purchase"
)

// callbackFlags are the flags of a run that receives answers later.
type callbackFlags struct {
	listen          string
	secretFile      string
	tlsCert, tlsKey string
	timeout         time.Duration
}

func (f *callbackFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "callback-listen", "", "`address` (host:port) to receive callbacks on; also sent as callback_url unless --callback-url is given")
	flags.StringVar(&f.secretFile, "callback-secret-file", "", "`file` with the secret that signs callbacks (default: the environment variable "+CallbackSecretVariable+")")
	flags.StringVar(&f.tlsCert, "callback-tls-cert", "", "`file` with the certificate of --callback-listen (PEM)")
	flags.StringVar(&f.tlsKey, "callback-tls-key", "", "`file` with its private key (PEM)")
	flags.DurationVar(&f.timeout, "callback-timeout", 15*time.Minute, "`time` to wait for a callback")
}

// CallbackSecretVariable is the environment variable with the secret, used if
// no file is named.
const CallbackSecretVariable = "LEADETL_CALLBACK_SECRET"

func (f *callbackFlags) check() (errs []error) {
	if f.listen == "" && (f.secretFile != "" || f.tlsCert != "" || f.tlsKey != "") {
		errs = append(errs, errors.New("--callback-secret-file, --callback-tls-cert and --callback-tls-key go with --callback-listen"))
	}
	if (f.tlsCert == "") != (f.tlsKey == "") {
		errs = append(errs, errors.New("--callback-tls-cert and --callback-tls-key go together"))
	}
	if f.timeout < 0 {
		errs = append(errs, errors.New("--callback-timeout is negative"))
	}
	return errs
}

// receive listens for callbacks until stop. send means that the service is told
// the address.
func (f *callbackFlags) receive(ctx context.Context, later *purchase.Deliveries, send bool, log *slog.Logger) (address string, stop func() error, err error) {
	return listenForCallbacks(ctx, callbackListenOptions{
		Addr: f.listen, SecretFile: f.secretFile, TLSCert: f.tlsCert, TLSKey: f.tlsKey, Send: send,
	}, later, log)
}
