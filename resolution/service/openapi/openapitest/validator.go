// Package openapitest holds what a service was asked and what it answered
// against the interface's document, for tests.
//
// A test gives its HTTP client Transport and makes its calls as it would
// anyway: whatever the document does not allow fails the test.
package openapitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/leadetl/leadetl/resolution/service/openapi"
)

// Validator knows the document. Its methods may be called from many
// goroutines.
type Validator struct {
	document *openapi3.T
	refused  *openapi3.Operation // what paths are answered that there are not
}

// New returns the Validator of the interface: always the same.
func New() (*Validator, error) { return validator() }

var validator = sync.OnceValues(func() (*Validator, error) {
	d, err := openapi3.NewLoader().LoadFromData(openapi.Document())
	if err != nil {
		return nil, fmt.Errorf("load the document: %w", err)
	}
	// A result call has every response there is.
	refused := *d.Paths.Value("/resolve/keyword_to_lead/result").Post
	refused.Responses = openapi3.NewResponses()
	for status, r := range d.Paths.Value("/resolve/keyword_to_lead/result").Post.Responses.Map() {
		if status >= "400" {
			refused.Responses.Set(status, r)
		}
	}
	refused.Responses.Delete("default")
	return &Validator{d, &refused}, nil
})

// Exchange is one request and its answer.
type Exchange struct {
	Request *http.Request // its body is not read
	Sent    []byte        // the request's body
	Status  int
	Header  http.Header
	Body    []byte // the answer's
}

// Check returns everything in which an exchange departs from the document, nil
// when it does not. A request is looked at only when the service took it, and
// not when its context is one of Loose. A path that is not in the document has
// to be refused as any other mistake is; pages for people, and what only the internal
// listener has, is not looked at.
func (v *Validator) Check(x Exchange) error {
	path := x.Request.URL.EscapedPath()
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	isPage := x.Status < http.StatusBadRequest && (path == "/" || strings.HasPrefix(path+"/", "/docs/"))
	if isPage || path == "/metrics" || strings.HasPrefix(path, "/internal/") {
		return nil
	}
	var wrong []error
	op, known := v.operation(path, x.Request.Method)
	input := v.input(x, path, op)
	if known && x.Status < 300 && !isLoose(x.Request.Context()) {
		wrong = append(wrong, openapi3filter.ValidateRequest(x.Request.Context(), input))
	}
	wrong = append(wrong, checkResponse(input, x), checkHeaders(op, x))
	if known {
		wrong = append(wrong, checkRules(path, x))
	}
	return in(fmt.Sprintf("%s %s: %d", x.Request.Method, path, x.Status), wrong...)
}

// CheckCallback does the same for a callback that the operation at path posted.
func (v *Validator) CheckCallback(path string, r *http.Request, body []byte) error {
	op, known := v.operation(path, http.MethodPost)
	if !known || op.Callbacks["finished"] == nil {
		return fmt.Errorf("%s posts no callbacks", path)
	}
	item := op.Callbacks["finished"].Value.Value("{$request.body#/callback_url}")
	input := v.input(Exchange{Request: r, Sent: body}, path, item.Post)
	return in("callback of "+path, openapi3filter.ValidateRequest(r.Context(), input), checkLead(body))
}

// in joins what is wrong, each with where.
func in(where string, wrong ...error) error {
	var all []error
	for _, err := range wrong {
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", where, err))
		}
	}
	return errors.Join(all...)
}

// operation is the one that a method calls at a path. HEAD is GET without the
// body. With any other method than the path's own the answer is that of its
// operation, without the successes.
func (v *Validator) operation(path, method string) (op *openapi3.Operation, known bool) {
	item := v.document.Paths.Value(path)
	if item == nil {
		return v.refused, false
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if op := item.GetOperation(method); op != nil {
		return op, true
	}
	return v.refused, false
}

func (v *Validator) input(x Exchange, path string, op *openapi3.Operation) *openapi3filter.RequestValidationInput {
	r := x.Request.Clone(x.Request.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(x.Sent)), int64(len(x.Sent))
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json") // which it is taken for
	}
	options := &openapi3filter.Options{
		IncludeResponseStatus: true,
		SkipSettingDefaults:   true,
		MultiError:            true,
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
	}
	options.WithCustomSchemaErrorFunc(func(err *openapi3.SchemaError) string {
		return fmt.Sprintf("/%s: %s", strings.Join(err.JSONPointer(), "/"), err.Reason)
	})
	return &openapi3filter.RequestValidationInput{
		Request: r,
		Route:   &routers.Route{Spec: v.document, Path: path, PathItem: &openapi3.PathItem{}, Method: r.Method, Operation: op},
		Options: options,
	}
}

func checkResponse(input *openapi3filter.RequestValidationInput, x Exchange) error {
	r := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: x.Status, Header: x.Header, Options: input.Options,
	}
	r.SetBodyBytes(x.Body)
	return openapi3filter.ValidateResponse(context.WithoutCancel(input.Request.Context()), r)
}
