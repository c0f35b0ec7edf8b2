package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"turnstone/providers/embedded"
)

// SQL runs statements in the service's database; see SQLIn.
func (s *Site) SQL(ctx context.Context, statements string) (string, error) {
	return s.SQLIn(ctx, DatabaseName, statements)
}

// SQLIn runs statements as the superuser and returns their output: a line per row, with | between columns.
func (s *Site) SQLIn(ctx context.Context, database, statements string) (string, error) {
	return s.sqlFrom(ctx, database, strings.NewReader(statements))
}

// SQLWith runs the statements that write writes, with their data, in the service's database.
func (s *Site) SQLWith(ctx context.Context, write func(io.Writer) error) error {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(write(writer)) }()
	_, err := s.sqlFrom(ctx, DatabaseName, reader)
	return errors.Join(err, reader.Close())
}

func (s *Site) sqlFrom(ctx context.Context, database string, statements io.Reader) (string, error) {
	psql, err := embedded.PostgresProgram("psql")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, psql, "-XAqt", "-F", "|", "-v", "ON_ERROR_STOP=1", "-d", s.Postgres.DSN(embedded.Superuser, database))
	cmd.Stdin = statements
	stderr := new(strings.Builder)
	cmd.Stderr = stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, stderr)
	}
	return strings.TrimSpace(string(output)), nil
}

// QueryNumbers runs a query that returns a single row of numbers.
func (s *Site) QueryNumbers(ctx context.Context, query string) ([]float64, error) {
	text, err := s.SQL(ctx, query)
	if err != nil {
		return nil, err
	}
	var numbers []float64
	for _, field := range strings.Split(text, "|") {
		n, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", field)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
