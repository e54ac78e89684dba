package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"gocloud.dev/blob/s3blob"

	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/objects/web"
)

func init() { objects.Register("s3", open) }

// defaultRegion signs requests to storages at an endpoint, which have no regions.
const defaultRegion = "us-east-1"

// patience is how long a storage may say nothing.
var patience = web.StallLimit

// place is what a URL says.
type place struct {
	bucket, prefix            string
	endpoint, region, profile string
	pathStyle                 *bool
	anonymous                 bool
}

// parse reads a URL. Errors do not repeat values, but those of the endpoint's scheme.
func parse(u *url.URL) (place, error) {
	p := place{bucket: u.Host, prefix: strings.Trim(u.Path, "/")}
	if p.bucket == "" {
		return p, errors.New("expected a bucket, as in s3://BUCKET/PREFIX")
	}
	for name, values := range u.Query() {
		if len(values) != 1 {
			return p, fmt.Errorf("parameter %s is there %d times, expected once", name, len(values))
		}
		v := values[0]
		switch name {
		case "endpoint":
			e, err := url.Parse(v)
			if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || e.RawQuery != "" || e.Fragment != "" {
				return p, errors.New("parameter endpoint: expected http://HOST:PORT or https://HOST:PORT")
			}
			if e.User != nil {
				return p, errors.New("parameter endpoint: credentials do not belong into a URL")
			}
			p.endpoint = v
		case "region":
			p.region = v
		case "profile":
			p.profile = v
		case "use_path_style", "s3ForcePathStyle", "anonymous":
			b, err := strconv.ParseBool(v)
			if err != nil {
				return p, fmt.Errorf("parameter %s: expected true or false", name)
			}
			if name == "anonymous" {
				p.anonymous = b
			} else {
				p.pathStyle = &b
			}
		default:
			return p, fmt.Errorf("parameter %q: expected endpoint, region, profile, use_path_style or anonymous", name)
		}
	}
	return p, nil
}

// open opens s3://BUCKET/PREFIX. Credentials are looked for at once; the bucket is not asked.
func open(ctx context.Context, u *url.URL) (objects.Bucket, error) {
	p, err := parse(u)
	if err != nil {
		return nil, err
	}
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.DialContext = web.StallDialer(t.DialContext, patience)
		t.MaxIdleConnsPerHost = 16
	})
	o := []func(*config.LoadOptions) error{
		config.WithHTTPClient(transport),
		// Package objects tries again, and compares every object with its digest.
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
		config.WithLogger(logging.Nop{}),
	}
	if p.region != "" {
		o = append(o, config.WithRegion(p.region))
	}
	if p.profile != "" {
		o = append(o, config.WithSharedConfigProfile(p.profile))
	}
	if p.anonymous {
		o = append(o, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	cfg, err := config.LoadDefaultConfig(ctx, o...)
	if err != nil {
		return nil, fmt.Errorf("AWS's configuration: %w", err)
	}
	if !p.anonymous {
		if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
			return nil, noCredentials(ctx, err)
		}
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		if p.endpoint != "" {
			o.BaseEndpoint = aws.String(p.endpoint)
		}
		o.UsePathStyle = o.BaseEndpoint != nil
		if p.pathStyle != nil {
			o.UsePathStyle = *p.pathStyle
		}
		if o.BaseEndpoint != nil {
			o.Region = cmp.Or(o.Region, defaultRegion)
		}
	})
	if client.Options().Region == "" {
		return nil, errors.New("no region: expected ?region=… in the URL, AWS_REGION, or one in the profile")
	}
	b, err := s3blob.OpenBucket(ctx, client, p.bucket, nil)
	if err != nil {
		return nil, err
	}
	return &bucket{place: p, client: client, blob: b}, nil
}

// noCredentials says where credentials were looked for. What a credential_process has printed may
// be secret, and so is left out.
func noCredentials(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var process *processcreds.ProviderError
	why := "the credential_process of the profile failed"
	if !errors.As(err, &process) {
		why = err.Error()
	}
	return fmt.Errorf("no credentials; expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile of AWS's shared files, or a role of this machine (or ?anonymous=true): %s", why)
}
