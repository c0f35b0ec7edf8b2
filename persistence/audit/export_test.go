package audit

import (
	"context"
)

// ExpireNow runs the job that removes old audit entries.
func (s *Log) ExpireNow(ctx context.Context) error { return s.expireAudit(ctx) }
