// Package s3test gives tests a real S3 server: versitygw, which checks signatures, checksums and policies. Its module is
// tools/s3, and it is built when it is first needed. Only tests import this package.
package s3test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"turnstone/protocol/clocktest"
	"turnstone/providers/embedded/process"
)

// The account that owns the buckets, and the region of the server.
const (
	AccessKey = "owner"
	SecretKey = "owner-secret"
	Region    = "us-east-1"
)

const (
	module  = "tools/s3"
	program = "github.com/versity/versitygw/cmd/versitygw"

	pollEvery = 10 * time.Millisecond
)

// Gateway is a server with a folder of its own. It ends with this process.
type Gateway struct {
	Endpoint string

	program, folder, address string
	server                   *process.Process // nil while it is stopped
}

// Start builds and starts a server. address is where it listens; "": on a port that is free now.
func Start(address string) (_ *Gateway, err error) {
	g := &Gateway{address: address}
	if g.program, err = build(); err != nil {
		return nil, err
	}
	if g.address == "" {
		if g.address, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	g.Endpoint = "http://" + g.address
	if g.folder, err = os.MkdirTemp("", "turnstone-s3-"); err != nil {
		return nil, err
	}
	for _, name := range []string{"data", "attributes", "users"} {
		err = errors.Join(err, os.Mkdir(g.path(name), 0o700))
	}
	if err == nil {
		err = g.Restart()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(g.folder))
	}
	return g, nil
}

// build builds the server, unless bin has it already, and returns its path. Concurrent packages that need it build it one
// at a time.
func build() (string, error) {
	output, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module's folder: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(output)))
	path := filepath.Join(root, "bin", "versitygw")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }() // releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	command := exec.Command("go", "build", "-C", filepath.Join(root, module), "-ldflags=-s -w", "-o", path, program)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the S3 server: %w: %s", err, output)
	}
	return path, nil
}

// freeAddress returns an address whose port is, most likely, still free a moment later.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (g *Gateway) path(name string) string { return filepath.Join(g.folder, name) }

// Restart starts the server again after Kill, with its objects, and returns when it accepts connections.
func (g *Gateway) Restart() (err error) {
	var log bytes.Buffer
	command := exec.Command(g.program, "--port", g.address, "--access", AccessKey, "--secret", SecretKey, "--region", Region,
		"--iam-dir", g.path("users"), "--quiet", "posix", "--sidecar", g.path("attributes"), g.path("data"))
	command.Dir, command.Env = g.folder, []string{"HOME=" + g.folder}
	command.Stdout, command.Stderr = &log, &log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if g.server, err = process.Start(command); err != nil {
		return err
	}
	if err := g.await(); err != nil {
		return errors.Join(err, g.Kill(), fmt.Errorf("the S3 server printed: %s", log.String())) // it writes no more
	}
	return nil
}

func (g *Gateway) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.HangGuard)
	defer cancel()
	var err error
	waited := clocktest.Poll(ctx, pollEvery, func() bool {
		var connection net.Conn
		if connection, err = net.Dial("tcp", g.address); err == nil {
			err = connection.Close()
			return true
		}
		return g.server.Exited()
	})
	switch {
	case waited != nil:
		return fmt.Errorf("the S3 server does not listen: %w", err)
	case g.server.Exited():
		return fmt.Errorf("the S3 server ended: %w", g.server.Err())
	}
	return err
}

// Kill ends the server with SIGKILL and waits until it has ended. Its objects are kept.
func (g *Gateway) Kill() error { return g.server.Stop(context.Background()) }

// Close ends the server and removes its objects.
func (g *Gateway) Close() error { return errors.Join(g.Kill(), os.RemoveAll(g.folder)) }

// CreateBucket creates a bucket that only its owner has access to.
func (g *Gateway) CreateBucket(ctx context.Context, name string) error {
	_, err := g.owner().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(name)})
	return err
}

// AddUser creates an account without permissions.
func (g *Gateway) AddUser(ctx context.Context, accessKey, secretKey string) error {
	command := exec.CommandContext(ctx, g.program, "admin", "--endpoint-url", g.Endpoint, "--access", AccessKey, "--secret", SecretKey,
		"--region", Region, "create-user", "--access", accessKey, "--secret", secretKey, "--role", "user")
	command.Dir, command.Env = g.folder, []string{"HOME=" + g.folder}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("creating a user: %w: %s", err, output)
	}
	return nil
}

// SetPolicy sets the policy of a bucket.
func (g *Gateway) SetPolicy(ctx context.Context, bucket, policy string) error {
	_, err := g.owner().PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: aws.String(bucket), Policy: aws.String(policy)})
	return err
}

// IncompleteUploads returns the keys of the multipart uploads of a bucket that were neither completed nor aborted.
func (g *Gateway) IncompleteUploads(ctx context.Context, bucket string) (keys []string, err error) {
	list, err := g.owner().ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: aws.String(bucket)})
	if err != nil {
		return nil, err
	}
	for _, one := range list.Uploads {
		keys = append(keys, aws.ToString(one.Key))
	}
	return keys, nil
}

// unpooled keeps no connections, which would outlive a test.
var unpooled = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// owner returns a client of the owner's account.
func (g *Gateway) owner() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(g.Endpoint), UsePathStyle: true, Region: Region, HTTPClient: unpooled,
		Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
	})
}
