package page

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/providers/outbound"
)

const (
	maxRobotsCache = 100            // servers, whose files have at most maxRobots bytes each
	robotsLifetime = 24 * time.Hour // at most, says RFC 9309
	// robotsRetry is how long a server counts as one that refuses because its robots.txt file could not be read.
	robotsRetry = 5 * time.Minute
)

// mayRead returns an error if robots.txt of the server of an address refuses the address.
func (r *Reader) mayRead(ctx context.Context, address *url.URL) error {
	server := address.Scheme + "://" + address.Host
	robots, known := r.robots.Get(server)
	if !known || time.Now().After(robots.expires) {
		var err error
		if robots, err = r.askRobots(ctx, server); err != nil {
			return err
		}
		r.robots.Put(server, robots, 1)
	}
	switch path := address.EscapedPath(); {
	case robots.unreachable != "":
		return &toolbox.Failure{Code: "robots_refused", Detail: "The rules of the server for programs (robots.txt) cannot be read at the moment, so the page is not read. " + robots.unreachable}
	case !robots.rules.allow(pathWithQuery(path, address)):
		return &toolbox.Failure{Code: "robots_refused", Detail: "The server does not allow programs to read this page (robots.txt), so it was not read."}
	}
	return nil
}

func pathWithQuery(path string, address *url.URL) string {
	if path == "" {
		path = "/"
	}
	if address.RawQuery != "" {
		path += "?" + address.RawQuery
	}
	return path
}

// askRobots requests the robots.txt file of a server. Without one, and with a status of 4xx, everything may be read; with one
// of 5xx, and if the server does not answer, nothing.
func (r *Reader) askRobots(ctx context.Context, server string) (robotsFile, error) {
	file := robotsFile{expires: time.Now().Add(robotsLifetime)}
	response, err := r.client.Get(ctx, outbound.Request{Address: server + "/robots.txt", MaxBody: maxRobots})
	var known *outbound.Error
	switch {
	case errors.As(err, &known) && known.Blocked:
		return robotsFile{}, err // so is the page
	case err != nil && ctx.Err() != nil:
		return robotsFile{}, ctx.Err()
	case errors.As(err, &known) && known.NoServer:
		return robotsFile{}, err
	case err != nil:
		file.unreachable, file.expires = err.Error(), time.Now().Add(robotsRetry) // a sentence
	case response.Status >= 500:
		file.unreachable, file.expires = fmt.Sprintf("The server answered with the status %d.", response.Status), time.Now().Add(robotsRetry)
	case response.Status < 300:
		file.rules = parseRules(response.Body)
	}
	return file, nil
}

// robotsFile is what is known of the robots.txt file of a server.
type robotsFile struct {
	rules       rules
	unreachable string // why the file could not be read, a sentence; empty: it could
	expires     time.Time
}
