// Command go calls all ten operations, and the account, with the client that oapi-codegen
// made of the document.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	openapi_types "github.com/oapi-codegen/runtime/types"

	"example.com/client/api"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := call(ctx, os.Getenv("BASE_URL"), os.Getenv("API_KEY"), os.Getenv("RECEIVER")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// answered prints an operation that answered as it is documented.
func answered[T any](operation string, status int, body []byte, answer *T, err error) (*T, error) {
	if err != nil || answer == nil {
		return nil, fmt.Errorf("%s: %d %s %w", operation, status, body, err)
	}
	fmt.Println(operation)
	return answer, nil
}

func call(ctx context.Context, url, key, receiver string) error {
	bearer := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}
	c, err := api.NewClientWithResponses(url, api.WithRequestEditorFn(bearer))
	if err != nil {
		return err
	}
	const profile = "https://network.example/in/ada-example"
	for _, email := range []string{"ada.example@bakery.example", "ecbf749d27be2a7d75d973d53b06de39"} { // an address, or its hash
		a, err := c.EmailToHemWithResponse(ctx, nil, api.EmailToHEMRequest{Email: email, CallbackUrl: receiver})
		hems, err := answered("email_to_hem", a.StatusCode(), a.Body, a.JSON200, err)
		if err != nil {
			return err
		}
		if len(hems.Lead.HashedEmails) == 0 {
			return fmt.Errorf("email_to_hem: no hashes")
		}
	}
	b, err := c.NetworkToHemWithResponse(ctx, nil, api.NetworkRequest{NetworkUrl: profile, CallbackUrl: receiver})
	if _, err := answered("network_to_hem", b.StatusCode(), b.Body, b.JSON200, err); err != nil {
		return err
	}
	p, err := c.NetworkToPhoneWithResponse(ctx, nil, api.NetworkRequest{NetworkUrl: profile, CallbackUrl: receiver})
	if _, err := answered("network_to_phone", p.StatusCode(), p.Body, p.JSON200, err); err != nil {
		return err
	}
	i, err := c.IpToCompanyWithResponse(ctx, nil, api.IPToCompanyRequest{Ip: "192.31.196.5"})
	if _, err := answered("ip_to_company", i.StatusCode(), i.Body, i.JSON200, err); err != nil {
		return err
	}
	e, err := c.EnrichmentWithResponse(ctx, nil, api.EnrichmentRequest{NetworkUrl: profile})
	if _, err := answered("enrichment", e.StatusCode(), e.Body, e.JSON200, err); err != nil {
		return err
	}
	d, err := c.DeanonymizationWithResponse(ctx, nil, api.DeanonymizationRequest{Ip: "192.31.196.5"})
	if _, err := answered("deanonymization", d.StatusCode(), d.Body, d.JSON200, err); err != nil {
		return err
	}
	if err := searches(ctx, c); err != nil {
		return err
	}
	m, err := c.AccountBalanceWithResponse(ctx, nil)
	if _, err := answered("account_balance", m.StatusCode(), m.Body, m.JSON200, err); err != nil {
		return err
	}
	u, err := c.AccountUsageWithResponse(ctx, nil)
	if _, err := answered("account_usage", u.StatusCode(), u.Body, u.JSON200, err); err != nil {
		return err
	}
	r, err := c.AccountResolutionsWithResponse(ctx, nil)
	_, err = answered("account_resolutions", r.StatusCode(), r.Body, r.JSON200, err)
	return err
}

// searches starts a list and a count and fetches their results.
func searches(ctx context.Context, c *api.ClientWithResponses) error {
	day := func(d int) *openapi_types.Date {
		return &openapi_types.Date{Time: time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC)}
	}
	asked := api.KeywordRequest{Keywords: []string{"rocket fuel"}, DateStart: day(1), DateEnd: day(20)}
	l, err := c.KeywordToLeadWithResponse(ctx, nil, asked)
	list, err := answered("keyword_to_lead", l.StatusCode(), l.Body, l.JSON200, err)
	if err != nil {
		return err
	}
	n, err := c.KeywordToLeadCountWithResponse(ctx, nil, asked)
	count, err := answered("keyword_to_lead_count", n.StatusCode(), n.Body, n.JSON200, err)
	if err != nil {
		return err
	}
	for found := false; !found; {
		r, err := c.KeywordToLeadResultWithResponse(ctx, nil, api.ResultRequest{ResolutionId: list.Resolution.Id})
		if err != nil || r.JSON200 == nil {
			return fmt.Errorf("keyword_to_lead_result: %s %w", r.Body, err)
		}
		finished, err := r.JSON200.AsListFinished()
		found = err == nil && finished.Lead.Pagination.Total > 0
	}
	fmt.Println("keyword_to_lead_result")
	for found := false; !found; {
		r, err := c.KeywordToLeadCountResultWithResponse(ctx, nil, api.ResultRequest{ResolutionId: count.Resolution.Id})
		if err != nil || r.JSON200 == nil {
			return fmt.Errorf("keyword_to_lead_count_result: %s %w", r.Body, err)
		}
		finished, err := r.JSON200.AsCountFinished()
		found = err == nil && finished.Lead.Count > 0
	}
	fmt.Println("keyword_to_lead_count_result")
	return nil
}
