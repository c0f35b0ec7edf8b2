package conversations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	// shownVersionsSQL finds the versions of artifacts that the messages of a fork show, if its original has artifacts.
	shownVersionsSQL = `
	select p.part ->> 'artifact_id' as artifact, array_agg(distinct (p.part ->> 'version')::bigint) as versions
	from messages m
	cross join lateral json_array_elements(replace(m.parts::text, '\u0000', '\ufffd')::json) p (part)
	where m.account_id = @account and m.conversation_id = @fork and position('"artifact_id"' in m.parts::text) > 0 and p.part ->> 'type' = 'artifact'
	  and exists (select from artifacts a where a.account_id = @account and a.conversation_id = @conversation)
	group by 1`
	// The artifact is as of the newest of these versions that is still there.
	copyArtifactSQL = `
	insert into artifacts (account_id, artifact_id, conversation_id, kind, language, title, version, created_by, bytes, sha256, created_at, updated_at)
	select a.account_id, @copy, @fork, a.kind, a.language, v.title, v.version, v.created_by, v.bytes, v.sha256, a.created_at, v.created_at
	from artifacts a
	cross join lateral (
		select title, version, created_by, bytes, sha256, created_at from artifact_versions
		where account_id = a.account_id and artifact_id = a.artifact_id and version = any(@versions)
		order by version desc limit 1) v
	where a.account_id = @account and a.artifact_id = @artifact and a.conversation_id = @conversation`
	copyVersionsSQL = `
	insert into artifact_versions (account_id, artifact_id, version, title, created_by, content, bytes, sha256, created_at)
	select v.account_id, c.artifact_id, v.version, v.title, v.created_by, v.content, v.bytes, v.sha256, v.created_at
	from artifacts c
	join artifact_versions v on v.account_id = c.account_id and v.artifact_id = @artifact and v.version = any(@versions)
	where c.account_id = @account and c.artifact_id = @copy`
	// An identifier occurs in the parts of artifacts, and in the calls that wrote them.
	renameArtifactSQL = `
	update messages set parts = replace(parts::text, @old, @new)::json
	where account_id = @account and conversation_id = @fork and position(@old in parts::text) > 0
	  and exists (select from artifacts c where c.account_id = @account and c.artifact_id = @copy)`
)

// copyArtifacts gives a fork copies of the artifacts that its messages show, with the versions that they show.
func copyArtifacts(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) error {
	rows, err := tx.Query(ctx, shownVersionsSQL, args)
	if err != nil {
		return fmt.Errorf("finding the artifacts of a fork: %w", err)
	}
	type shown struct {
		Artifact string
		Versions []int64
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[shown])
	if err != nil {
		return fmt.Errorf("finding the artifacts of a fork: %w", err)
	}
	batch := &pgx.Batch{}
	for _, s := range found {
		var id protocol.ArtifactID
		if id.UnmarshalText([]byte(s.Artifact)) != nil {
			continue // a part of an import that names nothing
		}
		copied := protocol.NewArtifactID()
		of := pgx.NamedArgs{
			"account": args["account"], "fork": args["fork"], "conversation": args["conversation"], "artifact": id, "copy": copied, "versions": s.Versions,
			"old": s.Artifact, "new": copied.String(),
		}
		for _, sql := range []string{copyArtifactSQL, copyVersionsSQL, renameArtifactSQL} {
			batch.Queue(sql, of)
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := tx.Run(ctx, batch); err != nil {
		return fmt.Errorf("copying the artifacts of a fork: %w", err)
	}
	return nil
}
