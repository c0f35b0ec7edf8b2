// Package connect opens what the configuration names: the object store, the scanner, the models, the mail server, Redis, and
// the certificates of a cluster. The commands serve and doctor call it, so that both use the same. It starts no process and
// listens on no address.
package connect

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/cluster"
	"turnstone/cmd/turnstone/settings"
	"turnstone/persistence/objects"
	"turnstone/persistence/objects/disk"
	"turnstone/persistence/objects/s3"
	"turnstone/providers/mail"
	"turnstone/providers/model/open"
	"turnstone/providers/scanner"
	"turnstone/providers/scanner/clamd"
	"turnstone/providers/scanner/signatures"
)

// Objects opens the configured bucket, or the local folder if none is configured.
func Objects(ctx context.Context, config *settings.Config) (store objects.Store, closeStore func() error, err error) {
	if config.Stores.S3Bucket == "" {
		local, err := disk.Open(config.FilesFolder())
		if err != nil {
			return nil, nil, err
		}
		return local, local.Close, nil
	}
	remote, err := s3.Open(ctx, s3.Options{
		Endpoint: config.Stores.S3Endpoint, Region: config.Stores.S3Region, Bucket: config.Stores.S3Bucket,
	})
	if err != nil {
		return nil, nil, err
	}
	return remote, remote.Close, nil
}

// Scanner returns a client of the configured ClamAV daemon, or the test-signature scanner if none is configured.
func Scanner(config *settings.Config) (scanner.Scanner, error) {
	if config.Stores.ClamdAddress == "" {
		return signatures.Scanner{}, nil
	}
	return clamd.New(config.Stores.ClamdAddress)
}

// Models returns the configured routes, and the model that calls their providers.
func Models(config *settings.Config, log *zap.Logger) (*settings.Models, *open.Routed, error) {
	models, err := config.Models()
	if err != nil {
		return nil, nil, err
	}
	for i := range models.Clients {
		client := &models.Clients[i]
		client.Config.Client.Log = log.Named("model")
		if client.Name != "" {
			client.Config.Client.Log = client.Config.Client.Log.With(zap.String("route", client.Name))
		}
	}
	model, err := open.Models(models.Clients)
	return models, model, err
}

// Mail returns the client of the configured mail server; nil: none is configured.
func Mail(config *settings.Config) (*mail.Client, error) {
	if config.Mail.URL == "" {
		return nil, nil // the service works without it
	}
	return mail.New(mail.Options{URL: config.Mail.URL, From: config.Mail.From, CAFile: config.Mail.CAFile})
}

// ClusterTLS returns the TLS configuration of connections between nodes, or nil if the node is alone.
func ClusterTLS(config *settings.Config, log *zap.Logger) (*tls.Config, error) {
	if config.Cluster.Listen == "" {
		return nil, nil
	}
	secure, err := cluster.Load(log, config.Cluster.CA, config.Cluster.Cert, config.Cluster.Key)
	if err != nil {
		return nil, fmt.Errorf("TURNSTONE_CLUSTER_CA_FILE, _CERT_FILE, _KEY_FILE: %w", err)
	}
	return secure, nil
}

// Login returns the role that DATABASE_URL names, or "" if it names none.
func Login(config *settings.Config) string {
	address, err := url.Parse(config.Stores.DatabaseURL)
	if err != nil || address.User == nil {
		return ""
	}
	return address.User.Username()
}
