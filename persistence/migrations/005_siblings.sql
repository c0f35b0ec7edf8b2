-- A message names the newest branch on which a sibling of it stands; it is looked up by where the sibling was written.
create index branch_segments_source on branch_segments (account_id, source_branch_id, branch_id desc);
