// Package s3 stores objects in a bucket of an S3-compatible store. Uploads use the transfer manager, with a checksum on
// every part. Sizes are checked before an object becomes visible, so that a key has the complete new object or the
// earlier one.
//
// Credentials come from the usual sources of the AWS tools (AWS_ACCESS_KEY_ID and related variables, files, roles),
// unless Options contain them. No other package imports the SDK.
package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	client "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"turnstone/persistence/objects"
	"turnstone/protocol"
)

const (
	partSize = 8 << 20
	// multipartFrom is the threshold of the transfer manager: a smaller object is one request, held in memory.
	multipartFrom = 16 << 20
	// partsAtOnce limits the memory of an upload, which holds at most this number of parts.
	partsAtOnce = 2
	// attempts is one call and two retries.
	attempts = 3
	// The first retry waits for backoff to twice backoff, the second one for five times as long. So the duration of a failed call is
	// close to that of its attempts.
	backoff = 100 * time.Millisecond
	// abortTimeout limits the call that deletes the parts of a failed upload.
	abortTimeout = 10 * time.Second
)

// Options select the bucket. AccessKey and SecretKey are for stores whose credentials do not come from the usual
// sources.
type Options struct {
	Endpoint  string // with scheme; empty for AWS itself
	Region    string
	Bucket    string
	AccessKey string
	SecretKey string

	timeouts timeouts // set by tests; otherwise defaultTimeouts
}

// Store is an objects.Store in a bucket.
type Store struct {
	api     *client.Client
	uploads *transfermanager.Client
	bucket  string
	http    *http.Client
}

var _ objects.Store = (*Store)(nil)

// Open creates a client without a request to the store. Ready sends one.
func Open(ctx context.Context, options Options) (*Store, error) {
	if options.Bucket == "" {
		return nil, errors.New("object store: a bucket is required")
	}
	if options.timeouts == (timeouts{}) {
		options.timeouts = defaultTimeouts
	}
	// A buildable client applies AWS_CA_BUNDLE to its transport; the timeouts are set on that transport below.
	load := []func(*config.LoadOptions) error{config.WithHTTPClient(awshttp.NewBuildableClient())}
	if options.Region != "" {
		load = append(load, config.WithRegion(options.Region))
	}
	if options.AccessKey != "" {
		load = append(load, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(options.AccessKey, options.SecretKey, "")))
	}
	loaded, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("object store: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if built, ok := loaded.HTTPClient.(*awshttp.BuildableClient); ok {
		transport = built.GetTransport()
	}
	options.timeouts.applyTo(transport)
	httpClient := &http.Client{Transport: transport, CheckRedirect: noRedirect}
	api := client.NewFromConfig(loaded, func(o *client.Options) {
		o.HTTPClient = httpClient
		if options.Endpoint != "" {
			o.BaseEndpoint = aws.String(options.Endpoint)
			o.UsePathStyle = true // stores other than AWS seldom have a host name for each bucket
		}
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.Backoff = attempts, retry.BackoffDelayerFunc(pause)
		})
		o.DisableLogOutputChecksumValidationSkipped = true // only parts have checksums; a multipart object as a whole has none
	})
	uploads := transfermanager.New(api, func(o *transfermanager.Options) {
		o.PartSizeBytes = partSize
		o.MultipartUploadThreshold = multipartFrom
		o.Concurrency = partsAtOnce
		o.FailTimeout = abortTimeout
	})
	return &Store{api: api, uploads: uploads, bucket: options.Bucket, http: httpClient}, nil
}

// pause returns how long a retry waits, from 1 on.
func pause(retry int, _ error) (time.Duration, error) {
	least := backoff
	if retry > 1 {
		least *= 5
	}
	return least + rand.N(least), nil
}

// noRedirect leaves redirects to the SDK, which signs the request for the new address.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes idle connections.
func (s *Store) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, key string, body io.Reader, size int64) (objects.Digest, error) {
	if err := objects.CheckKey(key); err != nil {
		return objects.Digest{}, err
	}
	reading := objects.NewBody(body, size)
	_, err := s.uploads.UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket: aws.String(s.bucket), Key: aws.String(key), Body: reading, ContentLength: aws.Int64(size),
	})
	if err != nil {
		return objects.Digest{}, fmt.Errorf("putting an object: %w", classify(err))
	}
	return reading.Digest(), nil
}

// Get implements objects.Store.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := errors.Join(objects.CheckKey(key), objects.CheckRange(offset, length)); err != nil {
		return nil, err
	}
	if length == 0 {
		return s.empty(ctx, key, offset)
	}
	input := &client.GetObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(key)}
	switch {
	case length > 0:
		input.Range = aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case offset > 0:
		input.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	output, err := s.api.GetObject(ctx, input)
	if codeOf(err) == "InvalidRange" {
		return s.empty(ctx, key, offset) // S3 has no empty ranges; objects.Store has
	}
	if err != nil {
		return nil, fmt.Errorf("getting an object: %w", classify(err))
	}
	return &objectReader{body: output.Body}, nil
}

// empty returns a reader without bytes, if the object exists and has the offset.
func (s *Store) empty(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	info, err := s.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if offset > info.Size {
		return nil, protocol.Errorf(protocol.CodeInvalid, "the object ends before %d", offset)
	}
	return http.NoBody, nil
}

// Stat implements objects.Store.
func (s *Store) Stat(ctx context.Context, key string) (objects.Info, error) {
	if err := objects.CheckKey(key); err != nil {
		return objects.Info{}, err
	}
	output, err := s.api.HeadObject(ctx, &client.HeadObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(key)})
	if err != nil {
		return objects.Info{}, fmt.Errorf("reading the attributes of an object: %w", classify(err))
	}
	return objects.Info{
		Key: key, Size: aws.ToInt64(output.ContentLength), ModifiedAt: aws.ToTime(output.LastModified),
	}, nil
}

// Copy implements objects.Store.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	if err := errors.Join(objects.CheckKey(from), objects.CheckKey(to)); err != nil {
		return err
	}
	if from == to { // S3 refuses this; a missing object must still be reported
		_, err := s.Stat(ctx, from)
		return err
	}
	_, err := s.api.CopyObject(ctx, &client.CopyObjectInput{
		Bucket: aws.String(s.bucket), Key: aws.String(to), CopySource: aws.String(url.PathEscape(s.bucket) + "/" + from),
	})
	if err != nil {
		return fmt.Errorf("copying an object: %w", classify(err))
	}
	return nil
}

// Delete implements objects.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	_, err := s.api.DeleteObject(ctx, &client.DeleteObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(key)})
	if err = classify(err); err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return fmt.Errorf("deleting an object: %w", err)
	}
	return nil
}

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, error) {
	if err := objects.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	input := &client.ListObjectsV2Input{
		Bucket: aws.String(s.bucket), Prefix: aws.String(prefix), MaxKeys: aws.Int32(int32(min(limit, objects.MaxList))),
	}
	if after != "" {
		input.StartAfter = aws.String(after)
	}
	output, err := s.api.ListObjectsV2(ctx, input)
	if err != nil {
		return nil, fmt.Errorf("listing objects: %w", classify(err))
	}
	found := make([]objects.Info, 0, len(output.Contents))
	for _, object := range output.Contents {
		found = append(found, objects.Info{
			Key: aws.ToString(object.Key), Size: aws.ToInt64(object.Size), ModifiedAt: aws.ToTime(object.LastModified),
		})
	}
	return found, nil
}

// Ready implements objects.Store. It checks that the bucket exists and the credentials give access to it.
func (s *Store) Ready(ctx context.Context) error {
	_, err := s.api.HeadBucket(ctx, &client.HeadBucketInput{Bucket: aws.String(s.bucket)}, func(o *client.Options) {
		o.Retryer = aws.NopRetryer{} // callers repeat the check soon enough
	})
	if err != nil {
		return protocol.Errorf(protocol.CodeUnavailable, "object store: %w", err)
	}
	return nil
}

// codeOf returns the error code that the store sent; empty if there is none.
func codeOf(err error) string {
	var response smithy.APIError
	if errors.As(err, &response) {
		return response.ErrorCode()
	}
	return ""
}

// classify converts an error of the store to a *protocol.Error. Errors of a body or of a context pass unchanged.
func classify(err error) error {
	var ours *protocol.Error
	switch {
	case err == nil, errors.As(err, &ours), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	switch codeOf(err) {
	case "NoSuchKey", "NotFound":
		return protocol.Errorf(protocol.CodeNotFound, "there is no such object")
	default:
		return protocol.Errorf(protocol.CodeUnavailable, "object store: %w", err)
	}
}

// objectReader converts the error of an interrupted or stalled body.
type objectReader struct{ body io.ReadCloser }

func (r *objectReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return n, err
	}
	return n, classify(err)
}

func (r *objectReader) Close() error { return r.body.Close() }
