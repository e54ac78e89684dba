package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/blob"

	"github.com/onnxrl/onnxrl/runtime/objects"
)

// bucket implements objects.Bucket.
type bucket struct {
	place
	client *s3.Client
	blob   *blob.Bucket
	// seen says that the bucket is known to be there.
	seen atomic.Bool
}

func (b *bucket) key(key string) string { return path.Join(b.prefix, key) }

func (b *bucket) Stat(ctx context.Context, key string) (objects.Info, error) {
	a, err := b.blob.Attributes(ctx, b.key(key))
	if err != nil {
		err = b.explain(err)
		if errors.Is(err, fs.ErrNotExist) {
			if other := b.isThere(ctx, key); other != nil {
				err = other
			}
		}
		return objects.Info{}, err
	}
	b.seen.Store(true)
	return objects.Info{Size: a.Size, Tag: a.ETag}, nil
}

// isThere is an error where the bucket is missing, or nobody knows who asks. A HEAD says no more of
// an object than that it is not there, so the first one is asked for by GET, too.
func (b *bucket) isThere(ctx context.Context, key string) error {
	if b.seen.Load() {
		return nil
	}
	body, err := b.Read(ctx, key, objects.Range{Length: 0})
	if err == nil {
		err = body.Close()
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		b.seen.Store(true)
		return nil
	}
	return err
}

func (b *bucket) missing() error {
	return objects.Final(fmt.Errorf("bucket %q is not there; expected one that exists", b.bucket))
}

func (b *bucket) Read(ctx context.Context, key string, r objects.Range) (io.ReadCloser, error) {
	body, err := b.blob.NewRangeReader(ctx, b.key(key), r.Offset, r.Length, &blob.ReaderOptions{BeforeRead: func(as func(any) bool) error {
		var in *s3.GetObjectInput
		if r.Tag != "" && as(&in) {
			in.IfMatch = aws.String(r.Tag)
		}
		return nil
	}})
	switch answer := answerOf(err); {
	case err == nil:
		return &reader{b, body}, nil
	case answer.status == http.StatusRequestedRangeNotSatisfiable:
		// The object ends before it.
		return http.NoBody, nil
	}
	return nil, b.explain(err)
}

// reader explains errors on the way.
type reader struct {
	b    *bucket
	body io.ReadCloser
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err != nil && err != io.EOF {
		err = r.b.explain(err)
	}
	return n, err
}

func (r *reader) Close() error { return r.body.Close() }

// Write sends an object in one request. The uploads of package blob come in several when an object
// has 16 MiB, and those of a process that is killed stay in the bucket, unseen and paid for.
func (b *bucket) Write(ctx context.Context, key string, content []byte) error {
	_, err := b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(b.bucket), Key: aws.String(b.key(key)), Body: bytes.NewReader(content),
		ContentLength: aws.Int64(int64(len(content))), ContentType: aws.String("application/octet-stream"),
	})
	return b.explain(err)
}

func (b *bucket) Close() error { return b.blob.Close() }

// answer is what a server said about a request that failed.
type answer struct {
	status        int
	code, message string
	// region is where the bucket is, where it is not in the one that was asked.
	region string
	// ahead is how much later it is by the server's clock than the request says.
	ahead time.Duration
}

// skewed is by how much clocks may differ before that is why a request is refused. S3 allows for 15
// minutes.
const skewed = 5 * time.Minute

func answerOf(err error) answer {
	var a answer
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil {
		a.status = response.HTTPStatusCode()
		a.region = response.Response.Header.Get("X-Amz-Bucket-Region")
		if r := response.Response.Request; r != nil {
			signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			now, other := http.ParseTime(response.Response.Header.Get("Date"))
			if err == nil && other == nil {
				a.ahead = now.Sub(signed)
			}
		}
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		a.code, a.message = api.ErrorCode(), api.ErrorMessage()
	}
	return a
}

func (a answer) text() string {
	s := fmt.Sprintf("the server answers %d", a.status)
	if a.code != "" && a.code != http.StatusText(a.status) {
		s += " " + a.code
	}
	// Some repeat in it who asks.
	if a.message != "" && a.status != http.StatusForbidden && a.status != http.StatusUnauthorized {
		s += ": " + a.message
	}
	return s
}

// Codes of S3's errors, and of others that speak its protocol.
var (
	// retried come with a status that says that the request is wrong, while it may go well later:
	// the line or a clock was wrong.
	retried = []string{"RequestTimeout", "RequestTimeTooSkewed", "IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch", "OperationAborted"}
	// nobody is said of credentials, with several statuses.
	nobody = []string{"InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "ExpiredToken", "InvalidToken", "XAdminUserNotFound"}
	// nothing is said of an object that is not there; an answer without a body has no code but its
	// status.
	nothing = []string{"NoSuchKey", "NotFound", ""}
)

// explain makes an error say what the storage said and what was expected, and marks those that are
// final.
func (b *bucket) explain(err error) error {
	if err == nil {
		return nil
	}
	a := answerOf(err)
	said := errors.New(a.text())
	switch {
	case a.status == 0:
		// The operation's name and its empty answer add nothing.
		var send *smithyhttp.RequestSendError
		if errors.As(err, &send) {
			return send.Err
		}
		return err
	case a.status < 300:
		// The answer's body is not what its headers say.
		return err
	case slices.Contains(retried, a.code), a.status == http.StatusRequestTimeout, a.status == http.StatusTooManyRequests, a.status >= 500:
		return said
	case a.status == http.StatusForbidden && a.ahead.Abs() > skewed:
		// The answer to a HEAD does not say that this is why. What comes next is signed by the
		// server's clock.
		where := "ahead of"
		if a.ahead < 0 {
			where = "behind"
		}
		return fmt.Errorf("%w; its clock is %v %s this machine's", said, a.ahead.Abs().Round(time.Second), where)
	case a.code == "NoSuchBucket":
		return b.missing()
	case slices.Contains(nobody, a.code), a.status == http.StatusForbidden, a.status == http.StatusUnauthorized:
		return fmt.Errorf("%w: %w; expected credentials that may read and write bucket %q", fs.ErrPermission, said, b.bucket)
	case a.status == http.StatusNotFound && slices.Contains(nothing, a.code):
		return fs.ErrNotExist
	case a.status == http.StatusPreconditionFailed:
		return objects.ErrChanged
	case a.status < 400:
		where := "another region"
		if a.region != "" {
			where = "region " + a.region
		}
		return objects.Final(fmt.Errorf("%w; bucket %q is in %s, expected ?region=… in the URL, or another endpoint", said, b.bucket, where))
	}
	return objects.Final(said)
}
