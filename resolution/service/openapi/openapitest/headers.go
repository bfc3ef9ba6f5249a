package openapitest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
)

// transportHeaders are HTTP's own, or of the server before the service: no
// document lists them.
var transportHeaders = map[string]bool{
	"Connection": true, "Content-Encoding": true, "Content-Length": true, "Content-Type": true, "Date": true,
	"Keep-Alive": true, "Strict-Transport-Security": true, "Transfer-Encoding": true, "Vary": true, "X-Content-Type-Options": true,
}

// checkHeaders finds headers that the document does not list. Those it does
// list are checkResponse's.
func checkHeaders(op *openapi3.Operation, x Exchange) error {
	response := op.Responses.Status(x.Status)
	if response == nil {
		return nil // checkResponse says so
	}
	listed := make(map[string]bool)
	for name := range response.Value.Headers {
		listed[http.CanonicalHeaderKey(name)] = true
	}
	var wrong []error
	for name, values := range x.Header {
		switch {
		case transportHeaders[name]:
		case !listed[name]:
			wrong = append(wrong, fmt.Errorf("header %s is not in the document", name))
		case len(values) != 1:
			wrong = append(wrong, fmt.Errorf("header %s occurs %d times", name, len(values)))
		}
	}
	return errors.Join(wrong...)
}
