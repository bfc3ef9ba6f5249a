package objects

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// refusal says why the store refuses a request, and what to check. It repeats
// the store's message only if it says something about permissions. It never
// contains credentials.
func (c *connection) refusal(r request, code string, status int, err error) error {
	e := &RefusedError{Location: r.String(), Code: code, Err: err}
	if e.Code == "" {
		e.Code = fmt.Sprint(status)
	}
	setting := c.endpoint().name
	var archived *types.InvalidObjectState
	switch {
	case errors.Is(err, ErrNotS3):
		e.Problem = fmt.Sprintf("the bucket %s does not exist there, or %s is not an S3 store", r.Bucket, cmp.Or(c.endpoint().String(), "the address"))
		e.Advice = "check the bucket's name, and " + setting
		return e
	case code == "InvalidObjectState":
		e.Problem = "it is archived, so it cannot be read"
		if errors.As(err, &archived) && archived.StorageClass != "" {
			e.Problem = "it is archived (storage class " + string(archived.StorageClass) + "), so it cannot be read"
		}
		e.Advice = "restore it first, with aws s3api restore-object, or leave it out"
	case code == "ExistingObjectIsDirectory", code == "XMinioObjectExistsAsDirectory": // versitygw, MinIO
		e.Problem, e.Advice = "a folder has the name of this object", "remove the folder"
	case code == "ObjectParentIsFile", code == "XMinioParentIsObject": // versitygw, MinIO
		e.Problem, e.Advice = "an object has the name of the folder", "remove that object"
	case code == "NoSuchBucket":
		e.Problem = "the bucket does not exist"
		e.Advice = "check its name, and " + setting + " where the store is not AWS"
	case code == "InvalidBucketName":
		e.Problem, e.Advice = "this is not a valid bucket name", "check what follows s3://"
	case code == "InvalidAccessKeyId", code == "XAdminUserNotFound": // AWS, versitygw
		e.Problem = "the access key does not exist"
		e.Advice = "check AWS_ACCESS_KEY_ID or AWS_PROFILE, and " + setting + " where the store is not AWS"
	case code == "SignatureDoesNotMatch":
		e.Problem = "the secret key does not match the access key"
		e.Advice = "check AWS_SECRET_ACCESS_KEY or AWS_PROFILE"
	case code == "ExpiredToken", code == "ExpiredTokenException", code == "TokenRefreshRequired", code == "RequestExpired":
		e.Problem = "the credentials have expired"
		e.Advice = "get new ones and run the same command to resume"
	case code == "InvalidToken":
		e.Problem, e.Advice = "the session token is not valid", "check AWS_SESSION_TOKEN, which belongs to one pair of keys"
	case code == "RequestTimeTooSkewed":
		e.Problem = "this machine's clock is too far off"
		e.Advice = "set the clock (NTP)"
	case isRedirect(code, status):
		e.Problem = "the bucket is in another region"
		e.Advice = "set AWS_REGION to the bucket's"
	case strings.HasPrefix(code, "KMS."):
		e.Problem = "the encryption key cannot be used (" + code + ")"
		e.Advice = "check s3_kms_key, and that kms:GenerateDataKey and kms:Decrypt are allowed"
	case code == "AccessDenied" || code == "AllAccessDisabled" || status == http.StatusForbidden:
		e.Problem = "the credentials may not " + r.verb + " it"
		e.Advice = fmt.Sprintf("allow %s on %s", r.permission, resource(r))
		if r.permission == "s3:GetObject" {
			e.Advice += "; without permission to list, S3 says the same about an object that does not exist"
		}
	case status == http.StatusBadRequest && r.verb == "look at": // the answer to HEAD has no reason
		e.Problem = "the store refuses the request"
		e.Advice = "check the credentials, whether they have expired, and the region"
	default:
		e.Problem = fmt.Sprintf("the store refuses to %s it (%s)", r.verb, said(code, status))
		if text := messageOf(err); text != "" {
			e.Problem += ": " + text
		}
	}
	e.Problem += " (" + c.where(r) + ")"
	return e
}

// where says which store a request went to.
func (c *connection) where(r request) string {
	where := "bucket " + r.Bucket + ", region " + c.region(r.Bucket)
	if endpoint := c.endpoint().String(); endpoint != "" {
		where += ", endpoint " + endpoint
	}
	return where
}

// resource is the resource of a permission, as policies write it.
func resource(r request) string {
	if strings.HasPrefix(r.permission, "s3:ListBucket") || r.permission == "s3:GetBucketVersioning" {
		return "arn:aws:s3:::" + r.Bucket
	}
	return "arn:aws:s3:::" + r.Bucket + "/" + r.Key
}

// maxMessageBytes bounds how much of a store's message is repeated.
const maxMessageBytes = 200

func messageOf(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	text := strings.Join(strings.Fields(api.ErrorMessage()), " ")
	return text[:min(len(text), maxMessageBytes)]
}
