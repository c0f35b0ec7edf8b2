package main

import (
	"context"

	"turnstone/actors"
	"turnstone/persistence/objects"
	"turnstone/persistence/objects/disk"
	"turnstone/persistence/objects/s3"
	"turnstone/providers/model/open"
	"turnstone/providers/scanner"
	"turnstone/providers/scanner/clamd"
	"turnstone/providers/scanner/signatures"
)

// objectsFolder is where files are kept without a bucket, below the data folder.
const objectsFolder = "objects"

// openObjects is the bucket that is configured, or the local folder.
func openObjects(ctx context.Context, config *Config) (store objects.Store, closeStore func() error, err error) {
	if config.Stores.S3Bucket == "" {
		local, err := disk.Open(config.Service.DataDir + "/" + objectsFolder)
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

// openScanner is the daemon that is configured, or the one that says what it is.
func openScanner(config *Config) (scanner.Scanner, error) {
	if config.Stores.ClamdAddress == "" {
		return signatures.Scanner{}, nil
	}
	return clamd.New(config.Stores.ClamdAddress)
}

func openModel(config *Config) (actors.Model, error) { return open.Model(config.modelOptions()) }
